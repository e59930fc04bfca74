"""Jobs that take long, or are to be left alone for a while: what a plan may do, and says."""

from __future__ import annotations

import pytest

import oasis
from experiments.evaluation.live import cluster_policy
from tests.unit.kubernetes.played import SLOT, Played, job, node
from tests.unit.kubernetes.test_errors_of_one_job import rigid
from tests.unit.kubernetes.test_jobs_of_any_shape import LOOKAHEAD, past, policy


@pytest.mark.parametrize("name", ["recourse", "oasis"])
def test_a_job_beyond_the_plan_is_told_what_to_change(name: str) -> None:
    played = Played(policy(name))
    uid = played.submit(job("long", slots=8.0 * (LOOKAHEAD + 20)))
    other = played.submit(rigid("other", 2, 3))
    played.run(5)
    assert played.phase(other) == "Completed"
    status, reason, message = played.said(uid, "Placed") or ("", "", "")
    assert (status, reason) == ("False", "TooLong")
    assert f"takes {LOOKAHEAD + 20} slots" in message
    assert f"plans {LOOKAHEAD} ahead" in message
    assert f"--lookahead {LOOKAHEAD + 20} or more" in message
    played.restart()
    played.nodes.append(node("n2", "worker", 4))  # eleven of twelve GPUs hold it
    played.edit(uid, workers={**played.jobs[uid]["spec"]["workers"], "maximum": 12})
    played.run(5)
    assert played.phase(uid) == "Running"
    assert played.workers(uid) == 12


@pytest.mark.parametrize("name", ["recourse", "oasis"])
@pytest.mark.parametrize("slots", [LOOKAHEAD, LOOKAHEAD + 1])
def test_what_just_fits_is_begun_and_what_is_worth_nothing_is_turned_away(
    name: str, slots: int
) -> None:
    played = Played(policy(name))
    made = job("j", slots=8.0 * slots)
    if slots > LOOKAHEAD:
        made["spec"]["utility"] = {"kind": "deadline", "value": 5, "deadlineSeconds": 60.0 * 10}
    uid = played.submit(made)
    played.run(2)
    assert played.phase(uid) in ({"Running"} if slots == LOOKAHEAD else {"Rejected", "GivenUp"})


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("name", ["recourse", "oasis", "fifo", "srtf", "dragon"])
def test_at_the_end_of_the_horizon_and_after_it_nothing_fails(name: str, horizon: int) -> None:
    """What arrives in its last slot may complete in that; later nothing is worth anything."""
    make = cluster_policy(name, {}, lookahead=LOOKAHEAD, horizon=horizon, bounds=past)
    played = Played(make, horizon=horizon)
    long = played.submit(rigid("long", 2, 9))
    played.run(horizon - 1)
    last = played.submit(rigid("last", 2, 1))
    played.run(2)
    assert played.phase(last) == "Completed"
    played.restart()
    late = played.submit(rigid("late", 2, 1))
    played.run(3)
    ended = {"Completed", "Rejected", "GivenUp", "Running", "Waiting"}
    assert {played.phase(long), played.phase(late)} <= ended
    assert played.measured("oasis_policy_errors_total") == 0
    assert played.measured("oasis_job_errors_total", doing="planning") == 0


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
