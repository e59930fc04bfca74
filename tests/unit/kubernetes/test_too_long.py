"""Jobs that take long, or are to be left alone for a while: what a plan may do, and says."""

from __future__ import annotations

import pytest

import oasis
from experiments.evaluation.live import cluster_policy
from tests.unit.kubernetes.played import SLOT, Played, job
from tests.unit.kubernetes.test_errors_of_one_job import rigid
from tests.unit.kubernetes.test_jobs_of_any_shape import LOOKAHEAD, past, policy


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
