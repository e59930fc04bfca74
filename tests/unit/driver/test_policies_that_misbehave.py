"""A policy of somebody's own that fails in a service: one line, and no call that is half done."""

from __future__ import annotations

import sys
import threading
from functools import partial
from typing import Any

import pytest

from oasis import InputError, LiveScheduler, OasisError, PolicyError
from oasis.driver.live import FAILED
from oasis.scheduling import BasePolicy, Plan, View
from tests import builders

CLUSTER = builders.cluster(gpus=2.0, servers=2)
job = partial(builders.job, latest=9.0, workers=4)


class Idle(BasePolicy):
    """Starts nothing."""

    def decide(self, view: View) -> Plan:
        return Plan()


class Leaving(Idle):
    def decide(self, view: View) -> Plan:
        if view.arrived[0].id == "b":
            sys.exit(7)
        return Plan()


class NoBeginning(Idle):
    def reset(self, site: Any) -> None:
        raise ValueError("no machines for me")


class Locked(Idle):
    def reset(self, site: Any) -> None:
        super().reset(site)
        self.guards = {"all": threading.Lock()}


class Remembering(Idle):
    """Rejects every job, with how many it has seen and how large they were."""

    def __init__(self, *, told: bool) -> None:
        self.told_remaining = told

    def reset(self, site: Any) -> None:
        super().reset(site)
        self.seen: list[Any] = []

    def decide(self, view: View) -> Plan:
        self.seen += view.arrived
        sizes = [seen.work if self.told_remaining else seen.max_workers for seen in self.seen]
        return Plan(rejected={new.index: f"after {sizes}" for new in view.arrived})


def test_an_error_in_reset_is_one_of_the_policy():
    with pytest.raises(PolicyError, match=r"ValueError: no machines for me in reset"):
        LiveScheduler(NoBeginning(), CLUSTER)


def test_a_policy_that_ends_the_program_does_not_and_the_journal_goes_on(tmp_path):
    path = tmp_path / "journal"
    scheduler = LiveScheduler(Leaving(), CLUSTER)
    scheduler.open_journal(path)
    scheduler.submit(job("a", 0, 1, 5.0))
    with pytest.raises(PolicyError, match=r"policy Leaving: .*: SystemExit: 7 in decide at time 0"):
        scheduler.submit(job("b", 0, 1, 5.0))
    with pytest.raises(OasisError) as caught:
        scheduler.submit(job("c", 0, 1, 5.0))
    assert str(caught.value) == FAILED
    assert LiveScheduler.reopen(path, Leaving()).jobs == ("a",)


def test_what_cannot_be_written_down_is_named(tmp_path):
    with pytest.raises(InputError) as caught:
        LiveScheduler(Locked(), CLUSTER).open_journal(tmp_path / "journal")
    assert (caught.value.field, caught.value.got) == ("policy.guards", "'_thread.lock'")


@pytest.mark.parametrize("told", [True, False])
def test_jobs_that_left_are_still_known_after_reopening(told, tmp_path):
    path = tmp_path / "journal"
    steady = LiveScheduler(Remembering(told=told), CLUSTER)
    killed = LiveScheduler(Remembering(told=told), CLUSTER)
    killed.open_journal(path)
    for name in "abc":
        new = job(name, 0, 1, 5.0)
        decision = steady.submit(new)
        assert killed.submit(new) == decision
        killed.checkpoint()
        killed = LiveScheduler.reopen(path, Remembering(told=told))
    assert decision.reason == f"after {[4.0, 4.0, 4.0] if told else [4, 4, 4]}"
