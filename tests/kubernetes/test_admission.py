"""The scheduler itself is asked: which nodes admit a pod, and whether it admits what is planned."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, condition
from tests.kubernetes.controlplane.api import RefusedError
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.instance_objects import Slots
from tests.kubernetes.names import HOSTNAME, REQUIRED
from tests.kubernetes.scene import Scene, scene_of, told
from tests.unit.kubernetes.played import policy
from tests.unit.kubernetes.test_node_affinity import ASKED, CORDONED, REFUSED, VERDICTS, drawn


def add_nodes(cluster: Cluster, labels: dict[str, dict[str, str]]) -> None:
    nodes = cluster.plane.nodes
    for name, own in labels.items():
        nodes.add(name, {"cpu": "1000", "pods": "10000"}, own)
    nodes.wait_ready(*labels)
    for name, taints in ASKED.items():
        cluster.plane.kubectl("taint", "node", name, *taints)
    nodes.cordon(CORDONED)
    until(lambda: nodes.read(CORDONED)["spec"].get("taints"), "it is tainted")


def pod(name: str, rules: dict[str, Any], node: str) -> dict[str, Any]:
    """A pod with these rules that may go to one node, if to any."""
    selector = {**rules.get("nodeSelector", {}), HOSTNAME: node}
    containers = [{"name": "train", "image": "train"}]
    spec = {**rules, "nodeSelector": selector, "containers": containers}
    return {"metadata": {"name": name}, "spec": spec}


def verdicts(cluster: Cluster) -> dict[str, str]:
    """By name of the pod, whether the scheduler admitted it; those that it has looked at."""
    said = {name: condition(made, "PodScheduled") for name, made in cluster.read().items()}
    return {name: "01"[found["status"] == "True"] for name, found in said.items() if found}


def test_the_scheduler_says_what_is_written_down(cluster: Cluster) -> None:
    """The rules of the controller are held against the same table (test_node_affinity.py)."""
    labels, templates = drawn()
    add_nodes(cluster, labels)
    expected = {}
    for k, (rules, row) in enumerate(zip(templates, VERDICTS, strict=True)):
        for name, admitted in zip(labels, row, strict=True):
            cluster.create(pod(f"t{k}-{name}", rules, name))
            expected[f"t{k}-{name}"] = admitted
    until(lambda: len(verdicts(cluster)) == len(expected), "it has looked at all pods", 180.0)
    assert verdicts(cluster) == expected


@pytest.mark.parametrize(("spec", "said"), REFUSED)
def test_the_api_server_refuses_what_is_bad_input(
    cluster: Cluster, spec: dict[str, Any], said: str
) -> None:
    made = {**spec, "containers": [{"name": "a", "image": "a"}]}
    with pytest.raises(RefusedError) as caught:
        cluster.create({"metadata": {"name": "bad"}, "spec": made})
    assert caught.value.status in (400, 422), said


def gang(scene: Scene, name: str, spec: dict[str, Any], workers: int, slots: int) -> dict[str, Any]:
    made = scene.rigid(name, workers, slots)
    made["spec"]["workers"]["template"]["spec"] |= spec
    return made


def test_what_the_cluster_refuses_is_learnt(cluster: Cluster) -> None:
    """Anti-affinity to a pod on n0 sends a gang elsewhere; a job that is refused holds no room."""
    clock = Slots(slot_seconds=2.0)
    scene = scene_of(cluster, {"n0": "worker", "n1": "worker"}, clock=clock)
    container = {"name": "c", "image": "c"}
    meta = {"name": "db", "labels": {"app": "db"}}
    cluster.create({"metadata": meta, "spec": {"nodeName": "n0", "containers": [container]}})
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "db"}}}
    far = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    scene.submit(gang(scene, "never", {"priorityClassName": "is-not-there"}, 8, 2))
    scene.submit(gang(scene, "far", far, 4, 2))
    with scene.controller(policy("fifo")) as controller:
        until(lambda: scene.phases()["far"] == "Completed", "n1 is found", 60.0)
        status = scene.statuses()["never"]
        assert (status["phase"], told(status)["Placed"]["reason"]) == ("Pending", "PodsRefused")
        assert controller.metrics.withdrawn._value.get() <= 1
