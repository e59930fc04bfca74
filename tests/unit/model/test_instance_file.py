"""The parts of an instance file as plain data: each class there and back, and strict JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.model.instance_file import (
    FORMAT,
    VERSION,
    cluster_from_dict,
    cluster_to_dict,
    instance_from_dict,
    instance_to_dict,
    job_from_dict,
    job_to_dict,
    read_json,
)
from oasis.model.job import Job
from oasis.model.utility import UTILITIES, Constant, Piecewise, Sigmoid
from tests.strategies import clusters, fewer, instances, jobs

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


@pytest.mark.parametrize(
    ("least", "said"),
    [
        (0, "min_workers: expected an integer >= 1, got 0"),
        (4, "min_workers: expected at most chunks (3), got 4"),
        (1.5, "min_workers: expected an integer >= 1, got 1.5"),
        ("2", "min_workers: expected an integer >= 1, got '2'"),
    ],
)
def test_a_minimum_that_makes_no_sense_is_named(least: Any, said: str) -> None:
    data = {**instance_to_dict(Instance(2, CLUSTER, (JOB,)))}
    data["jobs"][0]["min_workers"] = least
    with pytest.raises(InstanceError) as refused:
        instance_from_dict(data)
    assert str(refused.value) == f"jobs[0].{said}"


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


@fewer(4)
@given(jobs(5))
def test_a_job_comes_back_equal(job: Job) -> None:
    assert job_from_dict(json.loads(json.dumps(job_to_dict(job)))) == job


@fewer(4)
@given(clusters())
def test_a_cluster_comes_back_equal_with_the_same_rows(cluster: Cluster) -> None:
    again = cluster_from_dict(json.loads(json.dumps(cluster_to_dict(cluster))))
    assert again == cluster
    assert np.array_equal(again.worker_capacity, cluster.worker_capacity)
    assert (again.worker_ids, again.ps_ids) == (cluster.worker_ids, cluster.ps_ids)


@fewer(4)
@given(instances())
def test_an_instance_comes_back_equal(instance: Instance) -> None:
    plain = instance_to_dict(instance)
    assert (plain["format"], plain["version"]) == (FORMAT, VERSION)
    assert "metadata" not in plain
    assert instance_from_dict(json.loads(json.dumps(plain))) == instance


def test_metadata_is_copied_both_ways() -> None:
    source = {"seed": 7}
    instance = Instance(2, CLUSTER, (JOB,), source)
    plain = instance_to_dict(instance)
    plain["metadata"]["seed"] = 8
    assert instance.metadata == {"seed": 7}
    again = instance_from_dict(plain)
    plain["metadata"]["seed"] = 9
    assert again.metadata == {"seed": 8}


@pytest.mark.parametrize("kind", sorted(UTILITIES))
def test_every_kind_of_utility_is_found_by_the_name_it_is_written_under(kind: str) -> None:
    assert UTILITIES[kind].kind == kind


def test_only_the_class_itself_is_written_not_one_made_of_it() -> None:
    """A subclass may compute something else, so its name would be a lie in the file."""

    class Halved(Constant):
        def __call__(self, delay: Any) -> Any:
            return super().__call__(delay) / 2

    with pytest.raises(InstanceError) as caught:
        job_to_dict(replace(JOB, utility=Halved(1.0)))
    assert str(caught.value) == (
        "utility: expected one of sigmoid, constant, deadline, piecewise to write a file"
    )


@dataclass(frozen=True)
class Case:
    change: dict[str, Any]
    message: str


UTILITY_CASES = [
    Case({"utility": 3}, "utility: expected an object with a kind, got 3"),
    Case({"utility": {}}, "utility.kind: expected an object with a kind, got {}"),
    Case(
        {"utility": {"kind": "step"}},
        "utility.kind: expected one of sigmoid, constant, deadline, piecewise, got 'step'",
    ),
    Case(
        {"utility": {"kind": ["constant"]}},
        "utility.kind: expected one of sigmoid, constant, deadline, piecewise, got ['constant']",
    ),
    Case(
        {"utility": {"kind": "constant", "value": 1, "decay": 2}},
        "utility.decay: unknown key; expected one of kind, value",
    ),
    Case(
        {"utility": {"kind": "sigmoid", "priority": 1, "decay": 2}},
        "utility.target: missing; this key is required",
    ),
    Case(
        {"utility": {"kind": "constant", "value": -1}},
        "utility.value: expected a finite number >= 0, got -1",
    ),
]


@pytest.mark.parametrize("case", UTILITY_CASES, ids=lambda case: case.message)
def test_a_bad_utility_of_a_job_is_located(case: Case) -> None:
    with pytest.raises(InstanceError) as caught:
        job_from_dict(job_to_dict(JOB) | case.change)
    assert str(caught.value) == case.message


@pytest.mark.parametrize(
    ("version", "shown"), [(2, "2"), (1.0, "1.0"), (True, "True"), ("1", "'1'"), (None, "None")]
)
def test_only_the_integer_one_is_the_version(version: Any, shown: str) -> None:
    plain = instance_to_dict(Instance(2, CLUSTER, ())) | {"version": version}
    with pytest.raises(InstanceError, match=r"^version: expected 1, got ") as caught:
        instance_from_dict(plain)
    assert str(caught.value).endswith(shown)


def test_numbers_that_json_does_not_know_are_refused_in_the_metadata() -> None:
    plain = instance_to_dict(Instance(2, CLUSTER, ())) | {"metadata": {"deep": [float("nan")]}}
    with pytest.raises(InstanceError) as caught:
        instance_from_dict(plain)
    assert str(caught.value) == "metadata: expected finite numbers, got NaN or infinity"


def test_the_path_of_a_bad_field_goes_down_to_the_resource() -> None:
    plain = instance_to_dict(Instance(2, CLUSTER, (JOB,)))
    plain["jobs"][0]["worker"]["gpu"] = "one"
    with pytest.raises(InstanceError) as caught:
        instance_from_dict(plain)
    assert caught.value.field == "jobs[0].worker.gpu"
    plain["jobs"] = []
    plain["worker_servers"][1]["capacity"]["gpu"] = -2
    with pytest.raises(InstanceError) as caught:
        instance_from_dict(plain)
    assert caught.value.field == "worker_servers[1].capacity.gpu"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1, "a": 2}', "a: repeated key; expected each key once in an object"),
        (b'[{"b": {"c": 1, "c": 1}}]', "c: repeated key; expected each key once in an object"),
        (b"\xff{}", "expected UTF-8 text ("),
        (b"{", "expected JSON: "),
        (b"[" * 100_000, "expected JSON: "),
    ],
)
def test_text_that_is_no_strict_json_is_refused(
    content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(content)
    with pytest.raises(InstanceError) as caught:
        read_json(path)
    assert str(caught.value).startswith(message)


def test_json_of_any_kind_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text('{"a": [1, 2.5, null, "ü"], "b": {}}', encoding="utf-8")
    assert read_json(path) == {"a": [1, 2.5, None, "ü"], "b": {}}


def test_sigmoids_are_written_to_the_last_bit() -> None:
    sigmoid = Sigmoid(0.1 + 0.2, 1 / 3, 5e-324)
    again = job_from_dict(json.loads(json.dumps(job_to_dict(replace(JOB, utility=sigmoid)))))
    assert again.utility == sigmoid
