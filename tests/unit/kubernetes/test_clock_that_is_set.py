"""A clock that is set, forwards or back: slots and work go by the time that passes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from oasis.kubernetes.control.meter import SteadyTime
from tests.unit.kubernetes.played import EPOCH, SLOT, Played, policy, rigid


class Set(Played):
    """A cluster whose controller has the clock on the wall, which `jump` sets."""

    def __init__(self, **settings: Any) -> None:
        self.passed, self.ahead = 0.0, 0.0
        self.steady = SteadyTime(lambda: EPOCH + self.passed + self.ahead, lambda: self.passed)
        super().__init__(policy("fifo"), **settings)

    def now(self) -> float:
        return self.steady()

    def step(self) -> None:
        self.slot += 1
        self.passed = self.slot * SLOT
        self.reconciler.clock.drift = self.steady.drift()  # as `Controller` does in each turn
        self.reconciler.begin_slot_if_due(self.now(), self.seen())
        self.settle()

    def takeover(self) -> None:
        self.steady.begin()
        self.restart()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("jump", [600.0, -600.0, -3.0, -0.4])
def test_a_jump_is_told_and_credited_to_nobody(
    jump: float, restarted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    played = Set()
    uid = played.submit(rigid("j", 2, 12))
    played.run(2)
    played.ahead = jump
    played.run(1)
    assert played.status(uid)["progress"]["percent"] == 16, "two of twelve slots"
    assert ("was set by" in caplog.text) == (abs(jump) >= 1)
    if restarted:
        played.takeover()
        assert abs(played.now() - EPOCH - played.passed - jump) < 1e-6, "by the new clock"
        assert played.reconciler.driver.slot == 2
    later = played.submit(rigid("later", 2, 3))
    played.run(4)
    assert played.reconciler.driver.slot == 6
    assert played.phase(later) == "Completed"
    played.run(6)
    assert played.phase(uid) == "Completed"
    assert played.status(uid)["completionSlot"] == 11
    assert caplog.text.count("was set by") == (abs(jump) >= 1), "once"


def test_times_that_people_read_are_those_on_the_wall() -> None:
    played = Set()
    uid = played.submit(rigid("j", 2, 12))
    played.run(1)
    played.ahead = 3600.0
    other = played.submit(rigid("other", 2, 3))
    played.run(1)
    for status, at in ((uid, EPOCH), (other, EPOCH + SLOT + 3600.0)):
        for found in played.status(status)["conditions"]:
            assert found["lastTransitionTime"] == time.strftime(
                "%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)
            )


def test_a_machine_whose_clock_is_behind_goes_on_with_the_slots(
    caplog: pytest.LogCaptureFixture,
) -> None:
    played = Set()
    uid = played.submit(rigid("j", 2, 12))
    played.run(3)
    played.ahead = -600.0
    played.takeover()  # on another machine, without a jump that anybody saw
    assert "the clock is 600 s behind the checkpoint" in caplog.text
    played.run(4)
    assert played.reconciler.driver.slot == 6
    assert played.status(uid)["progress"]["percent"] == 50


@pytest.mark.parametrize("name", ["fifo", "oasis", "recourse", "dragon", "gavel"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_controller_that_was_away_for_long_goes_on_at_once(name: str, restarted: bool) -> None:
    """A week of slots of a minute, in which its pods ran; slots are counted since 1970."""
    played = Played(policy(name))
    played.slot = 29_000_000
    played.restart()
    job = played.submit(rigid("j", 2, 12))
    played.run(2)
    played.slot += 10_000
    begin = time.perf_counter()
    if restarted:
        played.restart()
    played.run(1)
    late = played.submit(rigid("late", 2, 2))
    played.run(4)
    assert time.perf_counter() - begin < 5.0
    assert {played.phase(job), played.phase(late)} <= {"Completed", "GivenUp"}
    assert played.phase(late) == "Completed"
    assert played.measured("oasis_policy_errors_total") == 0
