"""Windows of a service: no job runs where servers are kept from it, also after a restart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from baselines import FIFO, SRTF
from oasis import LiveScheduler, OasisError
from tests.live import (
    CLUSTER,
    KINDS,
    SERVERS,
    check_windows,
    random_job,
    random_window,
)
from tests.unit.states import frozen

POLICIES: dict[str, Callable[[], Any]] = {"fifo": lambda: FIFO(3), "srtf": lambda: SRTF(3)}


def begun(kind: str) -> LiveScheduler:
    return LiveScheduler(POLICIES[kind](), CLUSTER) if kind in POLICIES else KINDS[kind]()


@pytest.mark.parametrize("kind", [*KINDS, *POLICIES])
def test_no_job_runs_in_a_window_and_a_restart_keeps_them(kind, tmp_path):
    rng, windows, journal = np.random.default_rng(5), {}, tmp_path / "journal"
    scheduler, jobs, ran = begun(kind), {}, 0
    scheduler.open_journal(journal)
    for slot in range(25):
        scheduler.advance(slot)
        for _ in range(int(rng.poisson(0.8))):
            name = f"j{len(jobs)}"
            jobs[name] = random_job(rng, name, slot)
            scheduler.submit(jobs[name])
        if rng.random() < 0.4:  # now and then one takes the place of another
            window = random_window(rng, slot)
            windows[window["name"]] = window
            scheduler.reserve(**window)
        if slot % 6 == 5:
            before = frozen(scheduler, tmp_path)
            scheduler = LiveScheduler.reopen(journal, POLICIES.get(kind, lambda: None)())
            assert frozen(scheduler, tmp_path) == before
            if slot % 12 == 11:
                scheduler.checkpoint()
        ran += check_windows(scheduler.plan(1), jobs, windows.values())
    assert ran > 10


def test_a_window_is_taken_back_and_is_forgotten_when_it_is_over():
    scheduler = begun("none")
    scheduler.reserve("all", 2, 5, SERVERS)
    rng = np.random.default_rng(1)
    for k in range(4):
        scheduler.submit(random_job(rng, f"j{k}", 0))
    with_it = scheduler.plan()
    assert not any(slot in (2, 3, 4) for plan in with_it.values() for slot, *_ in plan.workers)
    scheduler.reserve("all", 2, 5, [])
    assert not scheduler._service._driver.calendar
    scheduler.reserve("all", 2, 5, SERVERS)
    scheduler.advance(5)
    assert not scheduler._service._driver.calendar


def test_a_policy_of_the_present_slot_is_asked_where_a_window_begins_and_ends():
    long = replace(random_job(np.random.default_rng(3), "long", 0), epochs=12, chunks=1)
    slots = long.work(CLUSTER.slot_seconds)
    for jumps in ([1] * 60, [60]):
        scheduler, done = begun("fifo"), []
        scheduler.submit(long)
        scheduler.reserve("all", 2, 5, SERVERS)
        for slots_ahead in jumps:
            done += scheduler.advance(scheduler.now + slots_ahead).completed
        assert [(job.job_id, job.slot) for job in done] == [("long", slots + 3 - 1)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "name: expected"),
        ({"begin": 3}, "begin: expected an integer >= 4"),
        ({"end": 5}, "end: expected an integer >= 6"),
        ({"servers": "w#0"}, "servers: expected a list, got 'w#0'"),
        ({"servers": 3}, "servers: expected a list, got 3"),
        ({"servers": ["nowhere"]}, "servers: expected the id of a server, got 'nowhere'"),
    ],
)
def test_what_makes_no_window_is_named_and_changes_nothing(changed, message, tmp_path):
    scheduler = begun("none")
    scheduler.open_journal(tmp_path / "journal")
    scheduler.advance(4)
    before = frozen(scheduler, tmp_path)
    given = {"name": "w", "begin": 5, "end": 6, "servers": SERVERS[:1]}
    with pytest.raises(OasisError, match=message):
        scheduler.reserve(**{**given, **changed})
    assert frozen(scheduler, tmp_path) == before
    scheduler.reserve(**given)
    scheduler.close()
    assert LiveScheduler.reopen(tmp_path / "journal").calls == 2
