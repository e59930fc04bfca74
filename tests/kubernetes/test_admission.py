"""The scheduler itself is asked: which nodes admit a pod, and whether it admits what is planned."""

from __future__ import annotations

import random
from typing import Any

import pytest

from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.cluster.pods import on_node
from oasis.kubernetes.names import HOSTNAME
from oasis.kubernetes.objects.node_affinity import REQUIRED, NodeRules
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene, scene_of, told
from tests.unit.kubernetes.played import policy
from tests.unit.kubernetes.test_node_affinity import KEYS, NODES, REFUSED, template

TEMPLATES = 200
TAINTED = (
    ("n2", "team=x:NoSchedule"),
    ("n3", "team=y:NoExecute", "gpu:NoSchedule"),
    ("n4", "gpu=x:PreferNoSchedule", "team:NoSchedule"),
)


def add_nodes(cluster: Cluster, draw: random.Random) -> dict[str, Any]:
    """Six nodes: one without labels, one that is cordoned, three with taints; as they are then."""
    nodes = cluster.plane.nodes
    for name in NODES:
        drawn = {key: draw.choice(values) for key, values in KEYS.items() if draw.random() < 0.8}
        labels = {} if name == "n0" else drawn
        nodes.add(name, {"cpu": "1000", "pods": "10000"}, labels)
    nodes.wait_ready(*NODES)
    for name, *taints in TAINTED:
        cluster.plane.kubectl("taint", "node", name, *taints)
    nodes.cordon("n5")
    until(lambda: len(nodes.read("n5")["spec"].get("taints") or ()) == 1, "n5 is tainted")
    return {name: nodes.read(name) for name in NODES}


def pod(name: str, rules: dict[str, Any], node: str) -> dict[str, Any]:
    """A pod with these rules that may go to one node, if to any."""
    spec = {**rules, "affinity": on_node(rules.get("affinity"), node)}
    container = {"name": "train", "image": "train"}
    return {"metadata": {"name": name}, "spec": {**spec, "containers": [container]}}


def verdicts(cluster: Cluster) -> dict[str, bool]:
    """By name of the pod, whether the scheduler admitted it; those that it has looked at."""
    found = {}
    for name, made in cluster.read().items():
        for each in made["status"].get("conditions") or ():
            if each["type"] == "PodScheduled":
                found[name] = each["status"] == "True"
    return found


def test_the_scheduler_admits_what_the_rules_admit(cluster: Cluster) -> None:
    draw = random.Random(1)
    nodes = add_nodes(cluster, draw)
    expected = {}
    for k in range(TEMPLATES):
        rules = template(draw)
        for name, node in nodes.items():
            cluster.create(pod(f"t{k}-{name}", rules, name))
            expected[f"t{k}-{name}"] = NodeRules.of(rules).refusal(node) is None
    until(lambda: len(verdicts(cluster)) == len(expected), "it has looked at all pods", 180.0)
    assert verdicts(cluster) == expected
    share = sum(expected.values()) / len(expected)
    assert 0.2 < share < 0.8, f"both verdicts are tried: {share:.0%} are admitted"


@pytest.mark.parametrize(("spec", "said"), REFUSED)
def test_the_api_server_refuses_what_is_bad_input(
    cluster: Cluster, spec: dict[str, Any], said: str
) -> None:
    made = {
        "metadata": {"name": "bad"},
        "spec": {**spec, "containers": [{"name": "a", "image": "a"}]},
    }
    with pytest.raises(ApiError) as caught:
        cluster.create(made)
    assert caught.value.status in (400, 422), said


def gang(scene: Scene, name: str, spec: dict[str, Any], workers: int, slots: int) -> dict[str, Any]:
    made = scene.rigid(name, workers, slots)
    made["spec"]["workers"]["template"]["spec"] |= spec
    return made


def test_what_the_cluster_refuses_is_learnt(cluster: Cluster) -> None:
    """Anti-affinity to a pod on n0 sends a gang elsewhere; a job that is refused holds no room."""
    clock = SlotClock(slot_seconds=2.0)
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
