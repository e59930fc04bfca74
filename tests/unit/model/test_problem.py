"""Jobs, servers, clusters and instances: the quantities of section III, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.cluster import Cluster, Server
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.resources import ResourceVector
from oasis.model.utility import Constant
from tests.oracle.reference_search import minibatch_slots, ps_for, total_work
from tests.strategies import clusters, instances, jobs

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
SERVERS = (Server("w", {"cpu": 4.0}),), (Server("p", {"cpu": 4.0}),)


def cluster(**changes: Any) -> Cluster:
    fields = {
        "resources": ("cpu", "bandwidth_gbps"),
        "worker_servers": SERVERS[0],
        "ps_servers": SERVERS[1],
        "slot_seconds": 10.0,
    }
    return Cluster(**(fields | changes))


# -- a job's work ----------------------------------------------------------------------------------


def test_minibatch_trains_pushes_and_pulls() -> None:
    """kappa = tau + 2 e / b: 125 MB are 1 Gbit, 1 s at 1 Gbit/s, a tenth of a slot; twice."""
    assert JOB.minibatch_slots(10.0) == pytest.approx(0.3)
    assert JOB.minibatch_slots(1.0) == pytest.approx(2.1)
    assert replace(JOB, gradient_mb=0.0).minibatch_slots(10.0) == 0.1


def test_work_is_epochs_times_chunks_times_minibatches_times_kappa() -> None:
    """W = 4 * 5 * 3 * 0.3 = 18 worker-slots, at best 18 / 5 rounded up = 4 slots."""
    assert JOB.work(10.0) == 18
    assert JOB.shortest_duration(10.0) == 4


def test_work_is_rounded_up_but_not_for_a_last_bit() -> None:
    assert replace(JOB, gradient_mb=0.0, minibatch_time=0.11).work(10.0) == 7  # 6.6
    assert replace(JOB, gradient_mb=0.0, minibatch_time=0.1 + 1e-13).work(10.0) == 6
    assert replace(JOB, gradient_mb=0.0, minibatch_time=1e-9).work(10.0) == 1


def test_without_bandwidth_no_parameter_server_is_needed() -> None:
    local = replace(JOB, gradient_mb=0.0, worker={"cpu": 1.0}, ps={})
    assert not local.needs_ps
    assert local.ps_needed(np.arange(4)).tolist() == [0, 0, 0, 0]


@given(jobs(5, most_work=40), clusters(), st.integers(0, 10))
def test_work_and_parameter_servers_agree_with_the_reference(
    job: Job, machines: Cluster, workers: int
) -> None:
    assert job.work(machines.slot_seconds) == total_work(job, machines)
    assert job.minibatch_slots(machines.slot_seconds) == pytest.approx(
        minibatch_slots(job, machines)
    )
    assert job.ps_needed(workers) == ps_for(job, workers)
    assert ps_for(job, workers) <= workers  # (6) and (7) can hold together


# -- servers and clusters --------------------------------------------------------------------------


# -- resource vectors ------------------------------------------------------------------------------


def test_resource_vector_is_a_read_only_mapping() -> None:
    vector = ResourceVector({"cpu": 1, "gpu": 0.5})
    assert dict(vector) == {"cpu": 1.0, "gpu": 0.5}
    assert (len(vector), list(vector), "tpu" in vector) == (2, ["cpu", "gpu"], False)
    assert vector == {"gpu": 0.5, "cpu": 1.0}
    assert hash(vector) == hash(ResourceVector({"gpu": 0.5, "cpu": 1.0}))
    assert pickle.loads(pickle.dumps(vector)) == vector
    with pytest.raises(TypeError):
        vector["cpu"] = 2.0  # type: ignore[index]


def test_resource_vector_keeps_no_tie_to_its_source() -> None:
    source = {"cpu": 1.0}
    vector = ResourceVector(source)
    source["cpu"] = 2.0
    assert vector["cpu"] == 1.0


# -- instances -------------------------------------------------------------------------------------


def test_jobs_of_one_slot_arrive_in_the_order_of_the_file() -> None:
    names = [("c", 1), ("a", 0), ("b", 1), ("d", 0)]
    made = tuple(replace(JOB, id=name, arrival=arrival) for name, arrival in names)
    instance = Instance(3, cluster(), made)
    assert [job.id for job in instance.jobs_by_arrival()] == ["a", "d", "c", "b"]


@given(instances())
def test_problem_data_is_frozen_and_survives_pickling(instance: Instance) -> None:
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
