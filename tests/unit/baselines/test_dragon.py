"""DRAGON by scenarios: each branch of its control flow, and each case that tells readings apart."""

import pytest

from baselines.dragon import Dragon, LocalityAware
from tests.unit.baselines.controllers import engine, job, workers


def test_a_request_that_the_empty_cluster_cannot_hold_shrinks_and_one_that_never_fits_is_refused():
    run = engine(LocalityAware(), job("a", 2, 9, asked=9), job("b", 5), gpus=(4,))
    assert workers(run) == {"a": {0: 4}}
    assert run.settled[1].refusal == "does not fit the empty cluster"


# --- scale-up -----------------------------------------------------------------------------------


def test_without_alarms_it_acts_only_when_something_happens():
    jobs = [job("a", 1, 4, asked=2, work=4e3), job("b", 1, work=30.0), job("c", 1, arrival=500.0)]
    run = engine(Dragon(alarms=False), *jobs, until=499.0)
    assert workers(run) == {"a": {0: 2}}
    assert workers(engine(Dragon(), *jobs, until=499.0)) == {"a": {0: 4}}
    run = engine(Dragon(alarms=False), *jobs, until=500.0)
    assert workers(run)["a"] == {0: 3}  # at the arrival of c, what c leaves


def test_it_goes_through_no_end_of_alarms():
    run = engine(Dragon(0.0, 0.0), job("a", 1, 4, asked=2), job("b", 3, arrival=1.0), until=2e3)
    assert len(run.settled) == 2
    assert len(run.policy_seconds) < 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"urgent_after": -1.0}, "urgent_after: expected seconds >= 0"),
        ({"idle_after": float("inf")}, "idle_after: expected seconds >= 0"),
        ({"reading": "x"}, "reading: expected text, code or release"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Dragon(**options)
