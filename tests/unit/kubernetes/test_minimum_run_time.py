"""A minimum run time, in the controller."""

from __future__ import annotations

import pytest

import oasis
from tests.unit.kubernetes.played import SLOT, Played, job
from tests.unit.kubernetes.test_jobs_of_any_shape import policy


def urgent(name: str) -> dict[str, object]:
    """A job that is worth much more than the others, if it completes soon."""
    made = job(name, slots=8.0, minimum=8)
    made["spec"]["utility"] = {"kind": "deadline", "value": 1000, "deadlineSeconds": 20 * SLOT}
    return made


@pytest.mark.parametrize("name", ["recourse", "srtf"])
def test_a_job_that_has_just_begun_is_left_alone_for_its_minimum_run_time(name: str) -> None:
    for minimum, left in ((0.0, 0), (3.5 * SLOT, 8)):
        played = Played(policy(name), minimum_run_time=minimum)
        first = played.submit(job("first", slots=200.0, minimum=8))
        played.step()
        assert played.workers(first) == 8
        second = played.submit(urgent("second"))
        held = []
        for _ in range(5):
            played.step()
            held.append((played.workers(first), played.workers(second)))
        assert held[0][0] == left
        if minimum:  # 4 slots from the first one on
            assert held[:4] == [(8, 0), (8, 0), (8, 0), (0, 8)], held


def test_a_takeover_keeps_the_minimum_run_time() -> None:
    played = Played(policy("recourse"), minimum_run_time=4 * SLOT)
    first = played.submit(job("first", slots=200.0, minimum=8))
    played.step()
    played.submit(urgent("second"))
    played.restart()
    played.run(3)
    assert played.workers(first) == 8
    played.step()
    assert played.workers(first) == 0


def test_no_job_begins_early_where_it_might_have_to_leave() -> None:
    played = Played(policy("recourse"), minimum_run_time=SLOT)
    played.step()
    played.submit(job("late"))
    seen, told = played.seen(), []
    played.reconciler.start_between(played.now() + 1.0, lambda: seen, 5.0, lambda: told.append(1))
    assert not told


def test_a_policy_that_does_not_keep_it_is_refused() -> None:
    with pytest.raises(oasis.InputError, match="minimum_run_time: expected none with policy drf"):
        Played(policy("drf"), minimum_run_time=SLOT)
