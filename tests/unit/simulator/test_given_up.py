"""Jobs that ran and never finished, and the work done for nothing, from the engine's records."""

from __future__ import annotations

from functools import partial

import pytest

import oasis
from baselines import DRF, FIFO, SRTF
from experiments.evaluation.comparison import compare
from oasis import Instance, OASiS
from oasis.online.recourse.policy import Recourse
from oasis.simulator import Outage
from oasis.simulator.costs import ChangeCosts
from tests import builders

CLUSTER = builders.cluster()
job = partial(builders.job, gpus=4.0)  # one worker on all four GPUs


def test_a_job_that_the_policy_gives_up_after_it_ran_is_counted() -> None:
    jobs = (job("cheap", 0, 4, 1.0, 3), job("dear", 1, 4, 10.0, 3))
    outcome = oasis.simulate(Instance(8, CLUSTER, jobs), Recourse()).outcome
    assert outcome is not None
    assert [times.is_given_up for times in outcome.jobs] == [True, False]
    assert [times.work_done for times in outcome.jobs] == [1.0, 4.0]
    assert outcome.given_up_after_start == 1
    assert outcome.wasted_share == 1 / 5
    assert outcome.to_dict()["wasted_share"] == 1 / 5


def test_a_job_that_the_horizon_cuts_off_is_counted_and_one_that_never_ran_is_not() -> None:
    jobs = (job("long", 0, 9, 1.0, 8), job("waits", 0, 1, 1.0, 8))
    outcome = oasis.simulate(Instance(4, CLUSTER, jobs), FIFO()).outcome
    assert outcome is not None
    assert outcome.given_up_after_start == 1
    assert outcome.wasted_share == 1.0
    assert [times.is_given_up for times in outcome.jobs] == [True, False]


def test_without_work_there_is_no_share() -> None:
    outcome = oasis.simulate(Instance(4, CLUSTER, ()), FIFO()).outcome
    assert outcome is not None
    assert (outcome.given_up_after_start, outcome.wasted_share) == (0, None)


def test_work_lost_with_a_server_is_wasted_even_if_the_job_finishes() -> None:
    instance = Instance(20, CLUSTER, (job("only", 0, 4, 1.0, 19),))
    outcome = oasis.simulate(
        instance,
        FIFO(),
        costs=ChangeCosts(checkpoint_interval=100.0),
        outages=[Outage(0, 2.0, 5.0)],
    ).outcome
    assert outcome is not None
    (times,) = outcome.jobs
    assert times.end is not None
    assert (times.work_done, times.wasted_work) == (6.0, 2.0)
    assert outcome.given_up_after_start == 0


@pytest.mark.parametrize("seed", range(4))
def test_recourse_and_the_engine_count_the_same(seed: int) -> None:
    """Oracle: the planner's own record of what it gave up."""
    instance = oasis.generate("testbed", jobs=12, seed=seed)
    run = oasis.simulate(instance, Recourse(rounds=2))
    outcome, report = run.outcome, run.report
    assert outcome is not None
    names = [times.job_id for times in outcome.jobs if times.is_given_up]
    assert sorted(names) == sorted(report["given_up_after_start"])
    assert sum(times.wasted_work for times in outcome.jobs) == report["worker_slots_wasted"]
    works = {job.id: job.work(instance.slot_seconds) for job in instance.jobs}
    whole = [
        times.work_done if times.end is None else works[times.job_id] for times in outcome.jobs
    ]
    assert sum(whole) == report["worker_slots_done"]  # the planner counts begun worker-slots


def test_every_policy_is_compared_by_it_and_oasis_wastes_nothing() -> None:
    instance = oasis.generate("testbed", jobs=12, seed=3)
    policies = {"oasis": lambda: OASiS.from_instance(instance), "drf": DRF, "srtf": SRTF}
    found = compare(instance, policies).policies
    for figures in found.values():
        unfinished = figures["admitted"] - figures["finished"]
        assert figures["given_up_after_start"] <= unfinished
        assert 0 <= figures["wasted_share"] <= 1
    assert (found["oasis"]["given_up_after_start"], found["oasis"]["wasted_share"]) == (0, 0.0)
