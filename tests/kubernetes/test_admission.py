"""The scheduler itself, asked which nodes admit a pod: it says what `NodeRules` says."""

from __future__ import annotations

import random
from typing import Any

import pytest
from kubernetes.dynamic.exceptions import DynamicApiError

from oasis.kubernetes.cluster.pods import on_node
from oasis.kubernetes.objects.node_affinity import REQUIRED, NodeRules
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.unit.kubernetes.test_node_affinity import REFUSED

TEMPLATES = 200
KEYS = {  # of labels, and the values that nodes and templates draw from
    "gpu": ("a100", "h100", "t4"),
    "zone": ("a", "b"),
    "memory": ("40", "80", "080", "1_0", "big", ""),
}
TAINTS = ("team", "gpu")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
OPERATORS = ("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
NODES = ("n0", "n1", "n2", "n3", "n4", "n5")


def expression(draw: random.Random) -> dict[str, Any]:
    key, operator = draw.choice([*KEYS, "missing"]), draw.choice(OPERATORS)
    values = KEYS.get(key, ("x",))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    if operator in ("Gt", "Lt"):
        return {"key": key, "operator": operator, "values": [draw.choice(("39", "080", "81", "x"))]}
    chosen = draw.sample(values, draw.randint(1, min(2, len(values))))
    return {"key": key, "operator": operator, "values": chosen}


def term(draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if draw.random() < 0.9:
        found["matchExpressions"] = [expression(draw) for _ in range(draw.randint(1, 2))]
    if draw.random() < 0.2:
        operator = draw.choice(("In", "NotIn"))
        name = {"key": "metadata.name", "operator": operator, "values": [draw.choice(NODES)]}
        found["matchFields"] = [name]
    return found


def toleration(draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if draw.random() < 0.8:
        found["key"] = draw.choice((*TAINTS, "node.kubernetes.io/unschedulable"))
    if "key" not in found or draw.random() < 0.5:
        found["operator"] = "Exists"
    else:
        found["value"] = draw.choice(("", "x", "y"))
    if draw.random() < 0.5:
        found["effect"] = draw.choice(EFFECTS)
    return found


def template(draw: random.Random) -> dict[str, Any]:
    """What the spec of a pod says of its nodes: each part may be missing."""
    found: dict[str, Any] = {}
    if draw.random() < 0.3:
        key = draw.choice(list(KEYS))
        found["nodeSelector"] = {key: draw.choice(KEYS[key])}
    if draw.random() < 0.5:
        terms = [term(draw) for _ in range(draw.randint(1, 3))]
        found["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    if draw.random() < 0.8:
        found["tolerations"] = [toleration(draw) for _ in range(draw.randint(1, 3))]
    return found


def add_nodes(cluster: Cluster, draw: random.Random) -> dict[str, Any]:
    """Six nodes: one without labels, one that is cordoned, three with taints; as they are then."""
    nodes = cluster.plane.nodes
    for name in NODES:
        drawn = {key: draw.choice(values) for key, values in KEYS.items() if draw.random() < 0.8}
        labels = {} if name == "n0" else drawn
        nodes.add(name, {"cpu": "1000", "pods": "10000"}, labels)
    nodes.wait_ready(*NODES)
    nodes.taint("n2", "team=x:NoSchedule")
    nodes.taint("n3", "team=y:NoExecute", "gpu:NoSchedule")
    nodes.taint("n4", "gpu=x:PreferNoSchedule", "team:NoSchedule")
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
    with pytest.raises(DynamicApiError) as caught:
        cluster.create(made)
    assert caught.value.status in (400, 422), said
