"""The parts of an instance file as plain data: each class there and back, and strict JSON."""

from __future__ import annotations

from dataclasses import replace

from oasis.model.cluster import Cluster, Server
from oasis.model.instance import Instance
from oasis.model.instance_file import (
    cluster_to_dict,
    instance_from_dict,
    instance_to_dict,
    job_from_dict,
    job_to_dict,
)
from oasis.model.job import Job
from oasis.model.utility import Piecewise

JOB = Job(
    id="j",
    arrival=1,
    epochs=2,
    chunks=3,
    minibatches=4,
    minibatch_time=0.5,
    gradient_mb=0.0,
    worker={"gpu": 1.0},
    ps={},
    utility=Piecewise((0.0, 2.5), (4.0, 1.5)),
)
CLUSTER = Cluster(
    ("gpu",), (Server("w", {"gpu": 2.0}, 3), Server("v", {"gpu": 1.0})), (Server("p", {}),), 60.0
)


def test_a_job_is_written_field_by_field() -> None:
    assert job_to_dict(JOB) == {
        "id": "j",
        "arrival": 1,
        "epochs": 2,
        "chunks": 3,
        "minibatches": 4,
        "minibatch_time": 0.5,
        "gradient_mb": 0.0,
        "worker": {"gpu": 1.0},
        "ps": {},
        "utility": {"kind": "piecewise", "delays": [0.0, 2.5], "values": [4.0, 1.5]},
    }


def test_a_minimum_of_workers_is_written_where_there_is_one() -> None:
    wide = replace(JOB, min_workers=2)
    assert job_to_dict(wide) == {**job_to_dict(JOB), "min_workers": 2}
    assert job_from_dict(job_to_dict(wide)) == wide != JOB
    assert job_from_dict({**job_to_dict(JOB), "min_workers": 1}) == JOB


def test_a_cluster_is_written_with_counts_only_where_there_are_several() -> None:
    assert cluster_to_dict(CLUSTER) == {
        "slot_seconds": 60.0,
        "resources": ["gpu"],
        "worker_servers": [
            {"id": "w", "capacity": {"gpu": 2.0}, "count": 3},
            {"id": "v", "capacity": {"gpu": 1.0}},
        ],
        "ps_servers": [{"id": "p", "capacity": {}}],
    }


def test_metadata_is_copied_both_ways() -> None:
    source = {"seed": 7}
    instance = Instance(2, CLUSTER, (JOB,), source)
    plain = instance_to_dict(instance)
    plain["metadata"]["seed"] = 8
    assert instance.metadata == {"seed": 7}
    again = instance_from_dict(plain)
    plain["metadata"]["seed"] = 9
    assert again.metadata == {"seed": 8}
