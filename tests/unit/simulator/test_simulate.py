"""`simulate` on instances of the model: OASiS keeps its contract, others are held to it."""

import math

import pytest

import oasis
from baselines import FIFO
from oasis.online.oasis import REFUSAL
from oasis.simulator import PlainJob
from oasis.simulator.run import replay
from oasis.simulator.workload import Workload, rigid_workload


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


def test_what_oasis_planned_is_what_the_machines_do():
    for instance in instances():
        run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
        for decision, times in zip(run.decisions, run.outcome.jobs, strict=True):
            assert decision.job_id == times.job_id
            if decision.admitted:
                assert math.ceil(times.end - 1e-9) - 1 == decision.completion
                assert times.overhead == 0.0
            else:
                assert times.refusal == REFUSAL


def test_simulated_use_of_the_machines_is_that_of_the_schedules():
    from oasis.model.schedule import committed

    for instance in instances():
        run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
        cluster = instance.cluster
        capacities = (cluster.worker_capacity, cluster.ps_capacity)
        used = committed(instance, run.schedules)
        for group, amounts, capacity in zip(("worker", "ps"), used, capacities, strict=True):
            supply = instance.horizon * capacity.sum(axis=0)
            taken = amounts.sum(axis=(0, 1))
            shares = {
                name: taken[r] / supply[r] if supply[r] > 0 else None
                for r, name in enumerate(cluster.resources)
            }
            assert run.outcome.utilisation[group] == pytest.approx(shares, abs=1e-9)


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


def test_jobs_are_numbered_in_order_of_arrival():
    workload = Workload.from_instance(instances()[-1])
    assert [job.index for job in workload.jobs] == list(range(30))
    assert all(job.source is not None for job in workload.jobs)
