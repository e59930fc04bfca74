"""`simulate` on instances of the model: OASiS keeps its contract, others are held to it."""

import math

import pytest

import oasis
from baselines import FIFO
from oasis.model.groups import GROUPS
from oasis.model.schedule import committed
from oasis.online.oasis import REFUSAL
from oasis.simulator import PlainJob
from oasis.simulator.run import replay
from oasis.simulator.workload import Workload, rigid_workload
from tests import builders


def instances():
    return [oasis.generate("testbed", seed=seed) for seed in range(4)] + [
        oasis.generate("calibrated", jobs=30, worker_servers=4, ps_servers=4, horizon=40, seed=5)
    ]


@pytest.mark.parametrize("granularity", ["worker-slot", "chunk"])
def test_oasis_decides_as_if_it_were_asked_directly(granularity):
    for instance in instances():
        alone = oasis.OASiS.from_instance(instance, granularity=granularity)
        expected = [alone.submit(job) for job in instance.jobs_by_arrival()]
        told = []
        scheduler = oasis.OASiS.from_instance(instance, granularity=granularity)
        run = oasis.simulate(instance, scheduler, on_decision=told.append)
        assert list(run.decisions) == expected == told
        assert run.bounds is scheduler.bounds
        assert len(run.decision_seconds) == len(instance.jobs)
        oasis.verify(instance, run)
        check_machines_do_what_was_planned(instance, run)


def check_machines_do_what_was_planned(instance, run):
    for decision, times in zip(run.decisions, run.outcome.jobs, strict=True):
        assert decision.job_id == times.job_id
        if decision.admitted:
            assert math.ceil(times.end - 1e-9) - 1 == decision.completion
            assert times.overhead == 0.0
        else:
            assert times.refusal == REFUSAL
    used = committed(instance, run.schedules)
    for group, amounts in zip(GROUPS, used, strict=True):
        supply = instance.horizon * getattr(instance.cluster, f"{group}_capacity").sum(axis=0)
        taken = amounts.sum(axis=(0, 1))
        for r, name in enumerate(instance.cluster.resources):
            expected = pytest.approx(taken[r] / supply[r], abs=1e-9) if supply[r] > 0 else None
            assert run.outcome.utilisation[group][name] == expected


def test_outcomes_say_what_ran_and_with_which_parameters():
    instance = instances()[0]
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance, scale=0.5))
    outcome = run.outcome
    assert (outcome.policy, outcome.seed, outcome.version) == ("oasis", 0, oasis.__version__)
    assert outcome.parameters == run.parameters
    assert outcome.parameters["scale"] == 0.5
    replayed = replay(Workload.from_instance(instance), FIFO(4))
    expected = {"seed": 4, "line": "strict", "placement": None}
    assert (replayed.policy, replayed.parameters) == ("fifo", expected)
    assert set(replayed.to_dict()) >= {"policy", "parameters", "seed", "version", "makespan"}


def test_a_job_that_does_not_finish_earns_nothing_and_has_no_schedule():
    instance = instances()[-1]
    run = oasis.simulate(instance, FIFO())
    unfinished = [d for d in run.decisions if d.admitted and d.completion is None]
    assert unfinished
    assert all(d.utility == 0.0 and d.schedule is None and d.reason for d in unfinished)


def test_oasis_needs_jobs_of_an_instance():

    scheduler = oasis.OASiS.from_instance(instances()[0])
    with pytest.raises(ValueError, match="needs jobs of an instance"):
        replay(rigid_workload([PlainJob("a", 0.0, 1.0, 1)], 1, 1), scheduler)


def test_a_job_that_the_policy_gives_up_after_it_ran_is_counted():
    jobs = (
        builders.job("cheap", 0, 4, 1.0, 3, gpus=4.0),
        builders.job("dear", 1, 4, 10.0, 3, gpus=4.0),
    )
    outcome = oasis.simulate(builders.instance(*jobs), oasis.Recourse()).outcome
    assert [times.is_given_up for times in outcome.jobs] == [True, False]
    assert [times.work_done for times in outcome.jobs] == [1.0, 4.0]
    assert outcome.given_up_after_start == 1
    assert outcome.wasted_share == 1 / 5
    assert outcome.to_dict()["wasted_share"] == 1 / 5


@pytest.mark.parametrize("seed", range(4))
def test_recourse_and_the_engine_count_the_same(seed):
    """Oracle: the planner's own record of what it gave up."""
    instance = oasis.generate("testbed", jobs=12, seed=seed)
    run = oasis.simulate(instance, oasis.Recourse(rounds=2))
    outcome, report = run.outcome, run.report
    names = [times.job_id for times in outcome.jobs if times.is_given_up]
    assert sorted(names) == sorted(report["given_up_after_start"])
    assert sum(times.wasted_work for times in outcome.jobs) == report["worker_slots_wasted"]
    works = {job.id: job.work(instance.slot_seconds) for job in instance.jobs}
    whole = [
        times.work_done if times.end is None else works[times.job_id] for times in outcome.jobs
    ]
    assert sum(whole) == report["worker_slots_done"]  # the planner counts begun worker-slots
