"""DRAGON by scenarios: each branch of its control flow."""

from baselines.dragon import Dragon, LocalityAware
from tests.unit.baselines.controllers import engine, job, workers


def test_a_request_that_the_empty_cluster_cannot_hold_shrinks_and_one_that_never_fits_is_refused():
    run = engine(LocalityAware(), job("a", 2, 9, asked=9), job("b", 5), gpus=(4,))
    assert workers(run) == {"a": {0: 4}}
    assert run.settled[1].refusal == "does not fit the empty cluster"


# --- scale-up -----------------------------------------------------------------------------------


def test_it_goes_through_no_end_of_alarms():
    run = engine(Dragon(0.0, 0.0), job("a", 1, 4, asked=2), job("b", 3, arrival=1.0), until=2e3)
    assert len(run.settled) == 2
    assert len(run.policy_seconds) < 10
