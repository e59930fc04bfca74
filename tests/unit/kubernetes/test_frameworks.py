"""What frameworks read when their pods start, written down by hand for each of them."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

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

W = [f"bert-worker-{k}.bert" for k in range(4)]
P = [f"bert-ps-{k}.bert" for k in range(2)]
THREE = Gang("bert", dict(enumerate(W[:3])), {})
WITH_PS = Gang("bert", dict(enumerate(W[:3])), dict(enumerate(P)))
ELASTIC = Gang("bert", {0: W[0], 2: W[2]}, {0: P[0]}, span=(1, 4))


def ours(task: str, index: int, hosts: str, ps: str = "", port: int = 2222) -> dict[str, str]:
    return {
        "OASIS_TASK": task,
        "OASIS_INDEX": str(index),
        "OASIS_HOSTS": hosts,
        "OASIS_PS_HOSTS": ps,
        "OASIS_PORT": str(port),
    }


HOSTS = "bert-worker-0.bert,bert-worker-1.bert,bert-worker-2.bert"
BOTH_PS = "bert-ps-0.bert,bert-ps-1.bert"


def test_without_a_framework_pods_learn_who_is_there() -> None:
    assert environment(PodNetwork(), WITH_PS, "worker", 2) == ours("worker", 2, HOSTS, BOTH_PS)
    assert environment(PodNetwork(), WITH_PS, "ps", 1) == ours("ps", 1, HOSTS, BOTH_PS)


def test_torch_with_fixed_ranks() -> None:
    found = environment(PodNetwork("torch", 29500), THREE, "worker", 1)
    assert found == ours("worker", 1, HOSTS, port=29500) | {
        "PET_RDZV_ENDPOINT": "bert-worker-0.bert:29500",
        "PET_RDZV_ID": "bert",
        "PET_NNODES": "3",
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": "bert-worker-0.bert",
        "PET_MASTER_PORT": "29500",
        "MASTER_ADDR": "bert-worker-0.bert",
        "MASTER_PORT": "29500",
        "WORLD_SIZE": "3",
        "RANK": "1",
    }


@pytest.mark.parametrize(("index", "is_host"), [(0, "is_host=1"), (2, "is_host=0")])
def test_torch_with_workers_that_come_and_go(index: int, is_host: str) -> None:
    found = environment(PodNetwork("torch"), ELASTIC, "worker", index)
    hosts = "bert-worker-0.bert,bert-worker-2.bert"
    assert found == ours("worker", index, hosts, "bert-ps-0.bert") | {
        "PET_RDZV_ENDPOINT": "bert-worker-0.bert:2222",
        "PET_RDZV_ID": "bert",
        "PET_NNODES": "1:4",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_CONF": is_host,
        "PET_MAX_RESTARTS": "100",
    }
    assert environment(PodNetwork("torch"), ELASTIC, "ps", 0) == ours(
        "ps", 0, hosts, "bert-ps-0.bert"
    )


def test_jax() -> None:
    assert environment(PodNetwork("jax"), THREE, "worker", 2) == ours("worker", 2, HOSTS) | {
        "JAX_COORDINATOR_ADDRESS": "bert-worker-0.bert:2222",
        "JAX_NUM_PROCESSES": "3",
        "JAX_PROCESS_ID": "2",
    }


def tf_config(gang: Gang, task: str, index: int) -> Any:
    return json.loads(environment(PodNetwork("tensorflow"), gang, task, index)["TF_CONFIG"])


def test_tensorflow_without_parameter_servers() -> None:
    cluster = {
        "worker": ["bert-worker-0.bert:2222", "bert-worker-1.bert:2222", "bert-worker-2.bert:2222"]
    }
    assert tf_config(THREE, "worker", 1) == {
        "cluster": cluster,
        "task": {"type": "worker", "index": 1},
    }


def test_tensorflow_with_parameter_servers_has_worker_0_as_its_chief() -> None:
    cluster = {
        "chief": ["bert-worker-0.bert:2222"],
        "worker": ["bert-worker-1.bert:2222", "bert-worker-2.bert:2222"],
        "ps": ["bert-ps-0.bert:2222", "bert-ps-1.bert:2222"],
    }
    for task, index, role, number in (
        ("worker", 0, "chief", 0),
        ("worker", 2, "worker", 1),
        ("ps", 1, "ps", 1),
    ):
        found = tf_config(WITH_PS, task, index)
        assert found == {"cluster": cluster, "task": {"type": role, "index": number}}
    alone = Gang("bert", {0: W[0]}, {0: P[0]})
    assert tf_config(alone, "ps", 0)["cluster"] == {
        "chief": ["bert-worker-0.bert:2222"],
        "ps": ["bert-ps-0.bert:2222"],
    }


def test_tensorflow_with_workers_that_come_and_go_has_a_sparse_cluster() -> None:
    assert tf_config(ELASTIC, "worker", 2) == {
        "cluster": {"worker": {"2": "bert-worker-2.bert:2222"}, "ps": ["bert-ps-0.bert:2222"]},
        "task": {"type": "worker", "index": 2},
    }
    # TensorFlow's server refuses gradients of workers that it does not know: of those to come, too.
    workers = {str(k): f"bert-worker-{k}.bert:2222" for k in range(8)}
    assert tf_config(ELASTIC, "ps", 0) == {
        "cluster": {"worker": workers, "ps": ["bert-ps-0.bert:2222"]},
        "task": {"type": "ps", "index": 0},
    }


@pytest.mark.parametrize("framework", ["none", "torch", "tensorflow", "jax"])
@pytest.mark.parametrize("task", ["worker", "ps"])
@pytest.mark.parametrize("gang", [WITH_PS, ELASTIC], ids=["fixed", "elastic"])
def test_which_variables_there_are_does_not_depend_on_the_gang(
    framework: str, task: str, gang: Gang
) -> None:
    network = PodNetwork(framework)
    found = environment(network, gang, task, 0)
    assert tuple(found) == variables(network, task, elastic=gang.span is not None)


def test_containers_read_annotations_and_keep_what_their_owner_wrote() -> None:
    own = [{"name": "RANK", "value": "7"}, {"name": "ARGS", "value": "--rank $(OASIS_INDEX)"}]
    spec = {
        "initContainers": [{"name": "data"}],
        "containers": [{"name": "train", "env": own}, {"name": "proxy"}],
        "nodeSelector": {"a": "b"},
    }
    before = deepcopy(spec)
    name = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    index = {
        "name": "OASIS_INDEX",
        "valueFrom": {
            "fieldRef": {"fieldPath": "metadata.annotations['env.oasis-scheduler.io/OASIS_INDEX']"}
        },
    }
    rank = {
        "name": "RANK",
        "valueFrom": {
            "fieldRef": {"fieldPath": "metadata.annotations['env.oasis-scheduler.io/RANK']"}
        },
    }
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
