"""Jobs and instances: the quantities of section III, and what is left of a job."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.model.job import Job, remaining_job
from oasis.model.resources import ResourceVector
from oasis.model.utility import Constant, later
from oasis.testing import clusters, instances, jobs
from tests import builders
from tests.oracle.reference_search import minibatch_slots, ps_for, total_work

JOB = Job(
    id="j",
    arrival=2,
    epochs=4,
    chunks=5,
    minibatches=3,
    minibatch_time=0.1,
    gradient_mb=125.0,
    worker={"cpu": 2.0, "bandwidth_gbps": 1.0},
    ps={"cpu": 1.0, "bandwidth_gbps": 3.0},
    utility=Constant(1.0),
)


def test_work_is_what_the_model_says_rounded_up_but_not_for_a_last_bit():
    """kappa = tau + 2 e / b: 125 MB are 1 Gbit, a tenth of a slot, twice: 0.1 + 0.2 slots.

    W = 4 * 5 * 3 * 0.3 = 18 worker-slots, at best 18 / 5 rounded up = 4 slots.
    """
    assert [JOB.minibatch_slots(seconds) for seconds in (10.0, 1.0)] == pytest.approx([0.3, 2.1])
    assert (JOB.work(10.0), JOB.shortest_duration(10.0)) == (18, 4)
    local = replace(JOB, gradient_mb=0.0, worker={"cpu": 1.0}, ps={})
    assert (local.minibatch_slots(10.0), local.needs_ps) == (0.1, False)
    assert local.ps_needed(np.arange(4)).tolist() == [0, 0, 0, 0]
    for time, work in ((0.11, 7), (0.1 + 1e-13, 6), (1e-9, 1)):
        assert replace(local, minibatch_time=time).work(10.0) == work


@given(jobs(5, most_work=40), clusters(), st.integers(0, 10))
def test_work_and_parameter_servers_agree_with_the_reference(job, machines, workers):
    assert job.work(machines.slot_seconds) == total_work(job, machines)
    assert job.minibatch_slots(machines.slot_seconds) == pytest.approx(
        minibatch_slots(job, machines)
    )
    assert job.ps_needed(workers) == ps_for(job, workers)
    assert ps_for(job, workers) <= workers  # (6) and (7) can hold together


def test_resource_vector_is_a_read_only_mapping():
    vector = ResourceVector(source := {"cpu": 1, "gpu": 0.5})
    source["cpu"] = 2
    assert repr(ResourceVector({"cpu": 2})) == "ResourceVector({'cpu': 2.0})"
    assert dict(vector) == {"cpu": 1.0, "gpu": 0.5}
    assert (len(vector), list(vector), "tpu" in vector) == (2, ["cpu", "gpu"], False)
    assert vector == {"gpu": 0.5, "cpu": 1.0}
    assert hash(vector) == hash(ResourceVector({"gpu": 0.5, "cpu": 1.0}))
    assert pickle.loads(pickle.dumps(vector)) == vector
    with pytest.raises(TypeError):
        vector["cpu"] = 2.0


@given(instances())
def test_problem_data_is_frozen_and_survives_pickling(instance):
    again = pickle.loads(pickle.dumps(instance))
    assert again == instance
    assert np.array_equal(again.cluster.worker_capacity, instance.cluster.worker_capacity)
    with pytest.raises(ValueError, match="read-only"):
        instance.cluster.worker_capacity[0, 0] = 2.0
    for thing, name in (
        (instance, "horizon"),
        (instance.cluster, "slot_seconds"),
        (instance.jobs[0], "epochs"),
        (instance.cluster.worker_servers[0], "count"),
    ):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, name, 1)


def test_the_rest_of_a_job_is_worth_what_the_job_is_worth():
    job = oasis.generate("testbed", jobs=3, seed=1).jobs[0]
    rest = remaining_job(job, 5, now=job.arrival + 4, slots=30)
    assert rest.work(1200.0) == 5
    assert rest.utility(range(20)).tolist() == job.utility(range(4, 24)).tolist()
    assert rest.ps_needed(3) == job.ps_needed(3)
    assert later(job.utility, 0, 30) is job.utility
    assert later(job.utility, 0, 30, end=6)(range(5, 8)).tolist()[1:] == [0.0, 0.0]


BOTH = (
    builders.job(chunks=5, min_workers=2),
    builders.policy_job(min_workers=2, max_workers=5),
)


@pytest.mark.parametrize("job", BOTH, ids=["of the model", "of a policy"])
def test_a_gang_says_which_counts_of_workers_it_may_have(job):
    assert [*job.worker_counts] == [2, 3, 4, 5]
    assert job.is_gang
    assert not builders.job(workers=3).is_gang
    assert [job.workers_near(wanted) for wanted in (0, 1, 2, 4, 5, 9)] == [2, 2, 2, 4, 5, 5]
    assert [[*job.workers_down_from(n)] for n in (9, 3, 1)] == [[5, 4, 3, 2], [3, 2], []]
    assert [job.spare_workers(workers) for workers in (0, 1, 2, 3, 5)] == [0, 0, 0, 1, 3]
