"""Pods that know each other on a real control plane, with the shipped rights alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from oasis.kubernetes import names
from oasis.kubernetes.api.resources import PODS, SERVICES
from oasis.kubernetes.control.controller import Controller
from oasis.scheduling import Allocation, BasePolicy, Plan
from tests.kubernetes.adapter import CLOCK, delete_job, elastic, rigid
from tests.kubernetes.cluster import GPU, Cluster
from tests.kubernetes.controlplane.audit import denied
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene
from tests.kubernetes.stepped import Stepped

PLANS = [  # by slot: workers on n0 and on n1, parameter servers on p0
    (2, 0, 1),
    (2, 1, 1),
]
Told = dict[tuple[str, str], dict[str, Any]]  # by task and index: name, node, uid, variables


class Scripted(BasePolicy):
    """Every job gets what `PLANS` says, without parameter servers if it has none."""

    slotted = True

    def decide(self, view: Any) -> Plan:
        n0, n1, p0 = PLANS[min(int(view.now), len(PLANS) - 1)]
        workers = tuple((k, n) for k, n in enumerate((n0, n1)) if n)
        changes = {}
        for job in view.jobs():
            ps = ((2, p0),) if job.ps_needed(1) else ()
            changes[job.index] = Allocation(workers, ps)
        return Plan(changes=changes)


def networked(scene: Scene, name: str, framework: str, **spec: Any) -> dict[str, Any]:
    made = elastic(scene, name, 1, 3, 1e6, network={"framework": framework}, **spec)
    if framework == "tensorflow":
        container = {
            "name": "ps",
            "image": "train",
            "resources": {"limits": {names.BANDWIDTH: "4G"}},
        }
        made["spec"]["parameterServers"] = {"template": {"spec": {"containers": [container]}}}
        worker = made["spec"]["workers"]["template"]["spec"]["containers"][0]
        worker["resources"]["limits"][names.BANDWIDTH] = "1G"
    return made


def pods_told(scene: Scene, job: str) -> Told:
    """Variables of the pods of a job, as the API server would give them to containers."""
    found: Told = {}
    for pod in scene.admin.list_all(PODS, scene.namespace)[0]:
        meta, spec = pod["metadata"], pod["spec"]
        if meta["labels"].get(names.JOB_NAME) != job:
            continue
        refs = {
            entry["name"]: entry["valueFrom"]["fieldRef"]["fieldPath"]
            for entry in spec["containers"][0]["env"]
        }
        assert refs.pop("POD_NAME") == "metadata.name"
        key = meta["labels"][names.TASK], meta["labels"][names.INDEX]
        assert key not in found
        found[key] = {
            "name": f"{spec['hostname']}.{spec['subdomain']}",
            "node": spec["nodeName"],
            "uid": meta["uid"],
            **{
                name: meta["annotations"][path.removeprefix("metadata.annotations['")[:-2]]
                for name, path in refs.items()
            },
        }
    return found


@pytest.fixture
def scene(cluster: Cluster) -> Iterator[Scene]:
    """Two nodes for workers, and one for parameter servers."""
    made = Scene(cluster.plane, cluster.namespace, CLOCK)
    for name, role in (("n0", "worker"), ("n1", "worker"), ("p0", "ps")):
        room = {GPU: "8", "cpu": "96", "memory": "1Ti", names.BANDWIDTH: "100G"}
        cluster.plane.nodes.add(name, room, {names.NODE_ROLE: role})
    cluster.plane.nodes.wait_ready("n0", "n1", "p0")
    return made


def test_gangs_are_numbered_told_of_each_other_and_resized(cluster: Cluster, scene: Scene) -> None:
    """What each pod is told after any change is in `tests/unit/kubernetes/test_frameworks.py`."""
    start = cluster.plane.audit_position()
    seen: list[dict[str, Told]] = []

    def note(_: Controller) -> None:
        seen.append({job: pods_told(scene, job) for job in ("sparse", "anew")})

    jobs = [
        networked(scene, "sparse", "tensorflow"),
        networked(scene, "anew", "jax", resizePolicy="restart"),
        elastic(scene, "plain", 1, 3, 1e6),
    ]
    Stepped(
        scene,
        Scripted,
        lambda slot: jobs if slot == 0 else (),
        lambda reconciler: (reconciler.slot or 0) >= len(PLANS),
        note,
    ).run()
    services = {
        s["metadata"]["name"]: s["spec"] for s in scene.admin.list_all(SERVICES, scene.namespace)[0]
    }
    assert services.keys() == {"sparse", "anew"}
    assert services["sparse"]["clusterIP"] == "None"
    assert services["sparse"]["publishNotReadyAddresses"] is True
    first, grown = seen
    one = first["sparse"]["worker", "1"]
    assert (one["name"], one["node"]) == ("sparse-worker-1.sparse", "n0")
    assert one["OASIS_HOSTS"] == "sparse-worker-0.sparse,sparse-worker-1.sparse"
    cluster_of = {"worker": {"1": "sparse-worker-1.sparse:2222"}, "ps": ["sparse-ps-0.sparse:2222"]}
    task = {"type": "worker", "index": 1}
    assert json.loads(one["TF_CONFIG"]) == {"cluster": cluster_of, "task": task}
    assert {key: pod["node"] for key, pod in grown["sparse"].items()} == {
        ("worker", "0"): "n0",
        ("worker", "1"): "n0",
        ("worker", "2"): "n1",
        ("ps", "0"): "p0",
    }
    assert uids(first["sparse"]) < uids(grown["sparse"]), "an elastic gang keeps its pods"
    assert not uids(first["anew"]) & uids(grown["anew"])
    assert ranks(grown["anew"]) == {("0", "3"), ("1", "3"), ("2", "3")}
    for pod in scene.admin.list_all(PODS, scene.namespace)[0]:
        if pod["metadata"]["labels"][names.JOB_NAME] == "plain":
            assert "hostname" not in pod["spec"]
            assert "env" not in pod["spec"]["containers"][0]
            assert names.INDEX not in pod["metadata"]["labels"]
    delete_job(scene, "sparse")
    until(
        lambda: scene.admin.get(SERVICES, "sparse", scene.namespace) is None,
        "the Service goes with its job",
        60.0,
    )
    assert not denied(cluster.plane.requests(scene.account, start))


def uids(told: Told) -> set[str]:
    return {pod["uid"] for pod in told.values()}


def ranks(told: Told) -> set[tuple[str, str]]:
    return {(pod["JAX_PROCESS_ID"], pod["JAX_NUM_PROCESSES"]) for pod in told.values()}


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

    with scene.controller(Scripted):
        scene.submit(networked(scene, "bert", "torch"))
        until(lambda: "services" in told(), "the job says why", 30.0)
        assert '"bert" already exists' in told()
        gates = [p["spec"].get("schedulingGates") for p in pods_of(scene)]
        assert all(gates), "no pod of a gang without names begins"
    found = scene.admin.get(SERVICES, "bert", scene.namespace)
    assert found is not None
    assert found["spec"]["selector"] == {"app": "another"}


def pods_of(scene: Scene) -> list[dict[str, Any]]:
    return [pod for pods in scene.our_pods().values() for pod in pods.values()]
