"""What frameworks read when their pods start, written down for each of them."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from oasis.kubernetes.objects.network import (
    LABEL,
    Gang,
    PodNetwork,
    environment,
    hostname,
    service_name,
    variables,
    with_variables,
)
from oasis.kubernetes.objects.oasis_job import JobSpec, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.model.errors import InstanceError
from tests.unit.kubernetes.test_objects import CLOCK, plain

ROWS = yaml.safe_load(Path(__file__).with_name("environments.yaml").read_text(encoding="utf-8"))


def gang(row: dict[str, Any]) -> Gang:
    hosts = [
        {index: f"bert-{task}-{index}.bert" for index in row[of]}
        for task, of in (("worker", "workers"), ("ps", "ps"))
    ]
    return Gang("bert", *hosts, span=tuple(row["span"]) if "span" in row else None)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['framework']} {row['task']}")
def test_a_pod_is_told_what_its_framework_reads(row: dict[str, Any]) -> None:
    network = PodNetwork(row["framework"], row.get("port", 2222))
    found: dict[str, Any] = environment(network, gang(row), row["task"], row["index"])
    if "TF_CONFIG" in found:
        found["TF_CONFIG"] = json.loads(found["TF_CONFIG"])
    assert found == row["variables"]
    # and which variables there are does not depend on who is there
    assert tuple(found) == variables(network, row["task"], elastic="span" in row)


def test_containers_read_annotations_and_keep_what_their_owner_wrote() -> None:
    own = [{"name": "RANK", "value": "7"}, {"name": "ARGS", "value": "--rank $(OASIS_INDEX)"}]
    spec = {
        "initContainers": [{"name": "data"}],
        "containers": [{"name": "train", "env": own}, {"name": "proxy"}],
        "nodeSelector": {"a": "b"},
    }
    before = deepcopy(spec)
    name = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    index, rank = (
        {
            "name": key,
            "valueFrom": {
                "fieldRef": {"fieldPath": f"metadata.annotations['env.oasis-scheduler.io/{key}']"}
            },
        }
        for key in ("OASIS_INDEX", "RANK")
    )
    assert with_variables(spec, ["OASIS_INDEX", "RANK"]) == {
        "initContainers": [{"name": "data", "env": [name, index, rank]}],
        "containers": [
            {"name": "train", "env": [name, index, *own]},
            {"name": "proxy", "env": [name, index, rank]},
        ],
        "nodeSelector": {"a": "b"},
    }
    assert spec == before


@pytest.mark.parametrize("job", ["bert", "7b", "a.b", "a-b", "x" * 41, "x" * 42, "y" * 39 + ".z"])
def test_names_fit_into_the_network(job: str) -> None:
    assert LABEL.fullmatch(service_name(job)), "as the API server wants the names of Services"
    assert len(service_name(job)) <= 40
    assert len(hostname(job, "worker", 99_999)) <= 63


def test_no_two_jobs_have_one_name_in_the_network() -> None:
    jobs = ["a.b", "a-b", "j-a-b", "x" * 253, "x" * 252, "x" * 41]
    assert len({service_name(job) for job in jobs}) == len(jobs)


def with_network(network: Any, **more: Any) -> JobSpec:
    made = plain()
    made["spec"] |= {"network": network, **more}
    return parse_job(made, CLOCK, DEFAULT_RESOURCES)


def test_a_network_is_read() -> None:
    assert with_network({}).network == PodNetwork("none", 2222)
    assert with_network({"framework": "torch", "port": 29500}).network == PodNetwork("torch", 29500)
    assert parse_job(plain(), CLOCK, DEFAULT_RESOURCES).network is None


@pytest.mark.parametrize("name", ["hostname", "subdomain"])
def test_names_that_the_network_decides_on_are_refused_in_a_template(name: str) -> None:
    made = plain()
    made["spec"]["workers"]["template"]["spec"][name] = "mine"
    parse_job(made, CLOCK, DEFAULT_RESOURCES)
    made["spec"]["network"] = {}
    with pytest.raises(InstanceError, match=r"spec\.network decides on it") as caught:
        parse_job(made, CLOCK, DEFAULT_RESOURCES)
    assert caught.value.field == f"spec.workers.template.spec.{name}"


@pytest.mark.parametrize(
    ("framework", "has_ps", "resizes"),
    [
        ("none", False, True),
        ("torch", False, True),
        ("tensorflow", True, True),
        ("tensorflow", False, False),
        ("jax", True, False),
    ],
)
def test_workers_come_and_go_where_the_framework_lets_them(
    framework: str, has_ps: bool, resizes: bool
) -> None:
    made = plain()
    made["spec"]["network"] = {"framework": framework}
    if not has_ps:
        del made["spec"]["parameterServers"]
        made["spec"]["work"] = {"workerSeconds": 60}
    assert made["spec"]["workers"]["maximum"] > 1
    if resizes:
        assert parse_job(made, CLOCK, DEFAULT_RESOURCES).resize == "elastic"
    else:
        with pytest.raises(InstanceError, match="expected restart: the processes of") as caught:
            parse_job(made, CLOCK, DEFAULT_RESOURCES)
        assert caught.value.field == "spec.resizePolicy"
    made["spec"]["resizePolicy"] = "restart"
    assert parse_job(made, CLOCK, DEFAULT_RESOURCES).resize == "restart"
    # Of a fixed number of workers none comes or goes, but one that moves restarts all.
    made["spec"] |= {"resizePolicy": "elastic"}
    made["spec"]["workers"]["minimum"] = made["spec"]["workers"]["maximum"]
    assert parse_job(made, CLOCK, DEFAULT_RESOURCES).resize == "restart"
