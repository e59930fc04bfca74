"""Results of `oasis describe` on instances small enough to work out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from experiments.evaluation.description import (
    OfferedLoad,
    describe_instance,
    remarks,
    run_alone,
)
from experiments.plotting.servers import plot_load
from oasis import Cluster, Constant, Instance, Job, Server
from oasis.testing import instances
from tests import builders

JOB = builders.job(
    "j",
    1,
    workers=4,
    minibatches=2,
    worker={"gpu": 1, "bandwidth_gbps": 1.0},
    ps={"cpu": 2, "bandwidth_gbps": 2.0},
    utility=Constant(5.0),
)  # eight worker-slots, a parameter server for every two workers


def one_job(job: Job = JOB, gpus: int = 3, hosts: int = 2, horizon: int = 10) -> Instance:
    cluster = Cluster(
        ("gpu", "cpu", "bandwidth_gbps"),
        (Server("w", {"gpu": gpus, "bandwidth_gbps": 10}),),
        (Server("p", {"cpu": 2, "bandwidth_gbps": 2}, hosts),),
        60.0,
    )
    return Instance(horizon, cluster, (job,))


@pytest.mark.parametrize(
    ("given", "tasks", "completion"),
    [
        ({"gpus": 3}, (3, 2), 3),  # slots 1, 2 and 3: eight worker-slots at three a slot
        ({"gpus": 4, "hosts": 1}, (2, 1), 4),  # parameter servers limit the workers
        ({"gpus": 9}, (4, 2), 2),  # its data chunks do
        ({"gpus": 3, "horizon": 4}, (3, 2), 3),
        ({"gpus": 3, "horizon": 3}, (3, 2), None),
    ],
)
def test_a_job_alone_has_the_workers_that_fit_until_the_horizon(given, tasks, completion):
    alone = run_alone(JOB, one_job(**given))
    assert ((alone.workers, alone.ps), alone.completion) == (tasks, completion)
    assert alone.utility == (5.0 if completion else 0.0)


def test_who_never_runs_is_told_with_why():
    large = one_job(replace(JOB, worker={"gpu": 5}))
    description = describe_instance(large)
    assert description.alone[0].workers == 0
    assert not description.demand["worker"].any()
    wide = replace(JOB, min_workers=4)
    assert run_alone(wide, one_job(wide, gpus=4)).workers == 4
    assert run_alone(wide, one_job(wide, gpus=3)).workers == 0
    for instance, why in (
        (large, "no server holds a worker, or its parameter server"),
        (one_job(wide, gpus=3), "the cluster does not hold the minimum of workers"),
    ):
        first, *_ = describe_instance(instance).to_dict()["remarks"]
        assert first == f"1 job can never run: {why}"


def test_demand_by_slot_and_loads_from_the_scarcest_on():
    description = describe_instance(one_job(gpus=3, horizon=6))
    assert description.demand["worker"][:, 0].tolist() == [0, 3, 3, 3, 0, 0]
    assert description.demand["ps"][:, 1].tolist() == [0, 4, 4, 4, 0, 0]
    scarcest = description.loads[0]
    assert (scarcest.resource, scarcest.mean) == ("gpu", pytest.approx(0.5))
    assert (scarcest.peak, scarcest.peak_slot) == (1.0, 1)
    absent = OfferedLoad.of("worker", "gpu", 0.0, np.array([0.0, 2.0]))
    assert absent.mean == np.inf
    assert (absent.to_dict()["mean"], absent.to_dict()["peak_slot"]) == (None, 1)
    empty = describe_instance(replace(one_job(), jobs=()))
    assert (empty.loads, empty.can_finish, empty.most_utility) == ([], 0, 0)


@given(instances(), st.data())
def test_nobody_earns_more_than_the_sum_of_the_jobs_alone(instance, data):
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    description = describe_instance(instance)
    assert run.total_utility <= description.most_utility * (1 + 1e-9) + 1e-12
    done = {decision.job_id for decision in run.decisions if decision.admitted}
    for job, alone in zip(instance.jobs, description.alone, strict=True):
        if job.id in done:
            assert alone.completion is not None
            assert alone.completion <= run.schedules[job.id].completion


def test_the_picture_has_a_curve_for_each_of_the_scarcest_resources():
    ax = plot_load(describe_instance(oasis.generate("testbed", jobs=6, seed=1)))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[-1] == "all there is"
    assert len(labels) == 5


def test_labels_forms_and_what_no_server_admits_are_told():
    made = oasis.generate("kinds", jobs=6, seed=1)
    found = describe_instance(made).to_dict()
    assert found["labels"] == {"gpu": {"k80": 3, "p100": 3, "v100": 3}}
    assert (found["forms"], found["requiring"]) == ({"3": 6}, 6)
    # each job in the form that is best for it alone, by trying all of them
    for job, alone in zip(made.jobs, describe_instance(made).alone, strict=True):
        ways = [replace(made, jobs=(form,)) for form in job.in_forms]
        assert alone.utility == max(describe_instance(way).most_utility for way in ways)
    lost = replace(made.jobs[0], speeds=None, requires={"gpu": ["h100"]})
    told = describe_instance(replace(made, jobs=(lost,)))
    assert next(remarks(told)) == "1 job can never run: no server has the label gpu as it must be"
    # without parameter servers, what these require is not what it lacks
    fields = {"ps": {}, "gradient_mb": 0.0, "requires": {}, "ps_requires": {"gpu": ["h100"]}}
    large = replace(lost, worker={"gpu": 99.0}, **fields)  # type: ignore[arg-type]
    told = describe_instance(replace(made, jobs=(large,)))
    assert next(remarks(told)).endswith("no server holds a worker, or its parameter server")
