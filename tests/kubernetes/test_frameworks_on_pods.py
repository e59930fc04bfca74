"""Pods that know each other on a real control plane, with the shipped rights alone.

What each pod is told after any change is in `tests/unit/kubernetes/test_frameworks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.api.resources import PODS, SERVICES
from tests.kubernetes.adapter import delete_job, edit_job, elastic, rigid, scene_of
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.audit import denied
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene


@pytest.fixture
def scene(cluster: Cluster) -> Iterator[Scene]:
    return scene_of(cluster)


def networked(scene: Scene, name: str, framework: str, most: int, **spec: Any) -> dict[str, Any]:
    return elastic(scene, name, 1, most, 1e6, network={"framework": framework}, **spec)


def told(scene: Scene, job: str, *variables: str) -> set[tuple[str, ...]]:
    """Name in the network and uid of the pods of a job, and what their containers would read."""
    found = set()
    for pod in scene.admin.list_all(PODS, scene.namespace)[0]:
        meta, spec = pod["metadata"], pod["spec"]
        if meta["labels"].get(names.JOB_NAME) == job and pod["status"]["phase"] == "Running":
            env = spec["containers"][0]["env"]
            paths = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in env}
            read = [paths[name].removeprefix("metadata.annotations['")[:-2] for name in variables]
            values = (meta["annotations"][path] for path in read)
            found.add((f"{spec['hostname']}.{spec['subdomain']}", meta["uid"], *values))
    return found


def test_gangs_are_told_of_each_other_and_resized(cluster: Cluster, scene: Scene) -> None:
    start = cluster.plane.audit_position()
    jax, torch = ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"), ("RANK", "OASIS_HOSTS")
    with scene.controller(FIFO):
        scene.submit(networked(scene, "anew", "jax", 2, resizePolicy="restart"))
        scene.submit(networked(scene, "grows", "torch", 2))
        until(lambda: len(told(scene, "grows", *torch)) == 2, "two workers know each other")
        until(lambda: len(told(scene, "anew", *jax)) == 2, "two processes know each other")
        hosts = "grows-worker-0.grows,grows-worker-1.grows"
        before = {job: told(scene, job, *of) for job, of in (("anew", jax), ("grows", torch))}
        assert {(name, *read) for name, _, *read in before["grows"]} == {
            (host, str(k), hosts) for k, host in enumerate(hosts.split(","))
        }
        service = scene.admin.get(SERVICES, "grows", scene.namespace)
        assert service is not None
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["publishNotReadyAddresses"] is True
        for name in ("anew", "grows"):
            edit_job(scene, name, {"workers": {"maximum": 3}})
        until(lambda: len(told(scene, "grows", *torch)) == 3, "there is one more")
        assert {uid for _, uid, *_ in before["grows"]} < {
            uid for _, uid, *_ in told(scene, "grows", *torch)
        }, "an elastic gang keeps its pods"
        until(lambda: len(told(scene, "anew", *jax)) == 3, "all of them begin anew")
        now = told(scene, "anew", *jax)
        assert {tuple(read) for _, _, *read in now} == {(str(k), "3") for k in range(3)}
        assert not {uid for _, uid, *_ in before["anew"]} & {uid for _, uid, *_ in now}
        delete_job(scene, "grows")
        until(
            lambda: scene.admin.get(SERVICES, "grows", scene.namespace) is None,
            "the Service goes with its job",
        )
    assert not denied(cluster.plane.requests(scene.account, start))


def test_the_api_server_takes_what_can_train(scene: Scene) -> None:
    scene.submit(elastic(scene, "right", 1, 3, 60.0, network={"framework": "torch"}))
    scene.submit(
        elastic(scene, "anew", 1, 3, 60.0, network={"framework": "jax"}, resizePolicy="restart")
    )
    scene.submit(rigid(scene, "rigid", 3, 1.0, network={"framework": "jax"}))


def test_a_service_of_another_is_left_alone_and_the_job_says_so(scene: Scene) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "bert", "namespace": scene.namespace},
        "spec": {"clusterIP": "None", "selector": {"app": "another"}},
    }
    scene.admin.create(SERVICES, body)

    def told() -> str:
        conditions = scene.statuses().get("bert", {}).get("conditions") or ()
        return " ".join(c["message"] for c in conditions if c["reason"] == "Refused")

    with scene.controller(FIFO):
        scene.submit(networked(scene, "bert", "torch", 3))
        until(lambda: "services" in told(), "the job says why", 30.0)
        assert '"bert" already exists' in told()
        pods = [pod for pods in scene.our_pods().values() for pod in pods.values()]
        gates = [pod["spec"].get("schedulingGates") for pod in pods]
        assert all(gates), "no pod of a gang without names begins"
    found = scene.admin.get(SERVICES, "bert", scene.namespace)
    assert found is not None
    assert found["spec"]["selector"] == {"app": "another"}
