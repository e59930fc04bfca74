"""A clock that is set, and a controller that was away for long: time that passes counts."""

from __future__ import annotations

import time

import pytest

from oasis.kubernetes.objects.conditions import time_text
from tests.unit.kubernetes.played import EPOCH, SLOT, Played, policy, rigid


def test_times_that_people_read_are_those_on_the_wall() -> None:
    played = Played(policy("fifo"))
    uid = played.submit(rigid("j", 2, 12))
    played.run(1)
    played.ahead = 3600.0
    other = played.submit(rigid("other", 2, 3))
    played.run(1)
    for status, at in ((uid, EPOCH), (other, EPOCH + SLOT + 3600.0)):
        told = {found["lastTransitionTime"] for found in played.status(status)["conditions"]}
        assert told == {time_text(at)}


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
