"""OASiS on a horizon that rolls: what becomes of a schedule that was fixed."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from oasis.model.calendar import Calendar, CalendarEntry
from oasis.model.cluster import Cluster, Server
from oasis.model.forms import Speeds
from oasis.model.groups import TaskGroup
from oasis.model.job import Job
from oasis.model.utility import Constant
from oasis.online.commitments import Commitments
from oasis.online.prices import PriceBounds
from oasis.online.rolling import differs, restricted
from tests import builders

CLUSTER = builders.cluster(gpus=2.0, servers=2)
LOOKAHEAD = 8


def job(name: str, slots: int, value: float = 20.0) -> Job:
    """A job that takes all four GPUs for this many slots."""
    return builders.job(name, 0, slots, value, workers=4)


def commitments(patience: int | None = None) -> Commitments:
    bounds = PriceBounds.from_jobs([job("cheap", 4, 1.0), job("dear", 1, 20.0)], CLUSTER, LOOKAHEAD)
    return Commitments(CLUSTER, LOOKAHEAD, bounds, patience)


def test_all_losses_come_before_anything_is_placed_again():
    """A job that is placed while one of two lost servers still counts would move twice."""
    held = commitments()
    held.submit(0, job("a", 2))
    assert held.lose([(TaskGroup.WORKER, 0), (TaskGroup.WORKER, 1)]) == [0]
    assert held.live == {}
    assert held.broken == [0]


@pytest.mark.parametrize("patience", [LOOKAHEAD + 1, LOOKAHEAD, 6])
def test_work_that_grows_may_end_in_the_last_slot_that_counts(patience):
    for more, fits in ((0, True), (1, False)):
        held = commitments(patience)
        held.submit(0, replace(job("a", 1), utility=Constant(20.0)))
        assert held.revise(0, 4 * min(patience, LOOKAHEAD) + more) is fits


def test_the_last_slot_of_a_gang_may_do_more_than_its_work():
    held = commitments()
    gang = Job(
        "g", 0, 1, 4, 1, 1.5, 0.0, {"gpu": 1.0}, {}, Constant(20.0), min_workers=4
    )  # six worker-slots, four at a time
    held.submit(0, gang)
    live = held.live[0]
    assert live.remaining == 6
    assert live.schedule is not None
    assert live.schedule.worker_slots == 8
    assert [differs(live, left) for left in (5, 6, 7, 8, 9)] == [True, False, False, False, True]
    assert restricted(live.schedule, live.schedule.start) is None


def two_kinds() -> tuple[Commitments, Job]:
    """Two fast servers and a slow one; a job in a slow and in a fast form."""
    servers = (
        Server("slow", {"gpu": 4.0}, labels={"gpu": "t4"}),
        Server("fast", {"gpu": 4.0}, count=2, labels={"gpu": "h100"}),
    )
    given = Cluster(("gpu",), servers, (), slot_seconds=1.0)
    several = replace(job("a", 4), speeds=Speeds("gpu", {"t4": 1.0, "h100": 2.0}))
    return Commitments(
        given, LOOKAHEAD, PriceBounds.from_jobs([several], given, LOOKAHEAD)
    ), several


def test_what_is_left_of_a_job_keeps_its_form():
    held, several = two_kinds()
    decision = held.submit(7, several)
    assert decision.schedule is not None
    assert (decision.schedule.form, decision.completion) == (1, 1)
    held.advance(1)
    at = decision.schedule.workers[0, 1]
    assert held.lose([(TaskGroup.WORKER, int(at))]) == []
    schedule = held.live[7].schedule
    assert schedule is not None
    assert schedule.form == 1
    assert set(schedule.workers[:, 1].tolist()) == {3 - at}
    assert restricted(schedule, 2).form == 1
    # There is no fast server any more, and it has begun on one.
    assert held.lose([(TaskGroup.WORKER, int(3 - at))]) == [7]


def test_the_rest_of_a_job_is_placed_in_the_form_that_it_has():
    held, several = two_kinds()
    decision = held.submit(7, several.in_forms[1], form=1)
    assert decision.schedule is not None
    assert decision.schedule.form == held.live[7].form == 1


def on_one_server() -> Commitments:
    """A server of four GPUs."""
    cluster = builders.cluster(gpus=4.0, servers=1)
    priced = [builders.job("cheap", 0, 8, 1.0, workers=4), builders.job("dear", 0, 1, 20.0)]
    return Commitments(cluster, LOOKAHEAD, PriceBounds.from_jobs(priced, cluster, LOOKAHEAD))


def test_less_work_than_was_planned_never_ends_later():
    """At the prices of the moment it could, where others came since: the schedule then stays."""
    stayed = []
    for slots, rest, left in product((2, 3), (1, 4), range(1, 6)):
        held = on_one_server()
        patient = replace(builders.job("a", 0, slots, workers=2), utility=Constant(20.0))
        held.submit(0, patient)
        held.submit(1, builders.job("b", 0, rest, 20.0, rest - 1, workers=2))
        before, used = held.live[0].schedule, held.ledger.worker_used
        assert before is not None
        anew = deepcopy(held)
        anew.leave(0)
        fresh = anew.submit(2, replace(patient, id="c", epochs=left, minibatch_time=0.5)).schedule
        if left >= held.live[0].remaining:
            continue
        assert held.revise(0, left)
        stays = fresh is None or fresh.completion > before.completion
        after, expected = held.live[0].schedule, before if stays else fresh
        assert after is not None
        assert expected is not None
        assert np.array_equal(after.workers, expected.workers)
        assert np.array_equal(held.ledger.worker_used, used if stays else anew.ledger.worker_used)
        assert held.broken == []
        stayed.append((stays, after.completion == before.completion))
    assert set(stayed) == {(True, True), (False, True), (False, False)}


def test_only_what_a_window_displaces_is_planned_anew():
    """In order of arrival. Who stays would move, too: a job that stood in its way has left."""
    jobs = (
        replace(builders.job("a", 0, 2, workers=2), utility=Constant(20.0)),
        builders.job("b", 0, 2, 20.0, 1),
    )
    places = ({2, 3}, {0, 1})  # slots
    for begin, slots in product((0, 1, 2), (1, 2, 8)):
        held, closed = on_one_server(), set(range(begin, begin + slots))
        held.submit(9, builders.job("first", 0, 2, 20.0, 1, workers=3))
        expected = [held.submit(k, each).schedule for k, each in enumerate(jobs)]
        held.leave(9)
        anew = deepcopy(held)
        calendar = Calendar((CalendarEntry("w", begin, begin + slots, frozenset({0})),))
        hit = [k for k in range(2) if closed & places[k]]
        for k in hit:
            anew.leave(k)
        assert anew.plan_around(calendar) == []
        for k in hit:
            expected[k] = anew.submit(k, jobs[k]).schedule
        given_up = [k for k, schedule in enumerate(expected) if schedule is None]
        assert held.plan_around(calendar) == given_up
        for k, live in held.live.items():
            assert np.array_equal(live.schedule.workers, expected[k].workers)
        assert np.array_equal(held.ledger.worker_used, anew.ledger.worker_used)
