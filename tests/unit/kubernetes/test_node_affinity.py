"""Which nodes admit a pod: each rule of the Kubernetes documentation, one case at a time.

Sources: "Assigning Pods to Nodes" and "Taints and Tolerations". The scheduler itself is asked in
`tests/kubernetes/test_adapter.py`.
"""

from __future__ import annotations

import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

import oasis
from oasis.kubernetes.cluster.pods import on_node
from oasis.kubernetes.objects.node_affinity import REQUIRED, NodeRules
from oasis.kubernetes.objects.schema import checked_template
from tests.unit.kubernetes.played import Played, policy, rigid
from tests.unit.kubernetes.played import node as worker_node

LABELS = {"gpu": "a100", "zone": "b", "memory": "80", "empty": "", "odd": "1_0", "huge": "9" * 30}


def taint_object(text: str) -> dict[str, str]:
    name, effect = text.split(":")
    key, _, value = name.partition("=")
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def node(*taints: str, labels: dict[str, str] = LABELS, cordoned: bool = False) -> dict[str, Any]:
    """A node; a taint is written as `kubectl taint` takes it."""
    spec: dict[str, Any] = {"taints": [taint_object(taint) for taint in taints]}
    spec |= {"unschedulable": True} if cordoned else {}
    return {"metadata": {"name": "n1", "labels": labels}, "spec": spec}


def spec_of(spec: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in spec.items() if name != "terms"}
    asked = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": spec.get("terms")}}}
    return found | ({"affinity": asked} if "terms" in spec else {})


ROWS = yaml.safe_load(Path(__file__).with_name("node_rules.yaml").read_text(encoding="utf-8"))
REFUSED = [(spec_of(row["spec"]), row["said"]) for row in ROWS["bad"]]


@pytest.mark.parametrize("row", [*ROWS["labels"], *ROWS["taints"], *ROWS["cordoned"]], ids=str)
def test_a_node_admits_a_pod_as_the_documentation_says(row: dict[str, Any]) -> None:
    found = node(*row.get("taints", ()), cordoned=row.get("cordoned", False))
    assert (NodeRules.of(spec_of(row["spec"])).refusal(found) is None) is row["admitted"]


@pytest.mark.parametrize("row", ROWS["refusals"], ids=str)
def test_a_refusal_names_the_label_or_the_taint(row: dict[str, Any]) -> None:
    said = NodeRules.of(spec_of(row["spec"])).refusal(node(*row.get("taints", ())))
    assert said == row["said"]


@pytest.mark.parametrize(("spec", "said"), REFUSED)
def test_rules_that_cannot_be_read_are_bad_input(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(oasis.InstanceError) as caught:
        checked_template({"spec": spec}, "")
    assert said in str(caught.value)


@pytest.mark.parametrize("spec", ROWS["hold nowhere"], ids=str)
def test_what_the_api_server_refuses_is_read_and_holds_nowhere(spec: dict[str, Any]) -> None:
    assert NodeRules.of(spec_of(spec)).refusal(node(labels={"a": "1"}))


def test_rules_that_say_the_same_are_equal() -> None:
    """They are read once for many pods."""
    one = {"nodeSelector": {"a": "x", "b": "y"}, "containers": [{"name": "one"}]}
    other = {"nodeSelector": {"b": "y", "a": "x"}, "containers": [{"name": "other"}]}
    assert NodeRules.of(one) == NodeRules.of(other)
    assert hash(NodeRules.of(one)) == hash(NodeRules.of(other))
    assert NodeRules.of({}) != NodeRules.of({"tolerations": [{"operator": "Exists"}]})


# -- templates drawn at random: for the tests that ask the scheduler, and for those that play it --

KEYS = {  # of labels, and the values that nodes and templates draw from
    "gpu": ("a100", "h100", "t4"),
    "zone": ("a", "b"),
    "memory": ("40", "80", "080", "1_0", "big", ""),
}
NODES = ("n0", "n1", "n2", "n3", "n4", "n5")


def template(draw: random.Random) -> dict[str, Any]:
    """Constraints of a pod's spec on its nodes; each part may be missing."""

    def some(kind: str, most: int = 3) -> list[Any]:
        return [draw.choice(ROWS["drawn"][kind]) for _ in range(draw.randint(1, most))]

    found: dict[str, Any] = {}
    if draw.random() < 0.2:
        (found["nodeSelector"],) = some("selectors", 1)
    if draw.random() < 0.5:
        terms = [{"matchExpressions": some("expressions", 2)} for _ in range(draw.randint(1, 3))]
        if draw.random() < 0.3:
            draw.choice(terms)["matchFields"] = some("fields", 1)
        found = spec_of({**found, "terms": terms})
    if draw.random() < 0.8:
        found["tolerations"] = some("tolerations")
    return found


ASKED = {  # taints, as `kubectl taint` takes them
    "n2": ("team=x:NoSchedule",),
    "n3": ("team=y:NoExecute", "gpu:NoSchedule"),
    "n4": ("gpu=x:PreferNoSchedule", "team:NoSchedule"),
}
CORDONED = "n5"
# What the scheduler itself says of each drawn template on each node, 1 where it admits the pod.
VERDICTS = Path(__file__).with_name("verdicts.txt").read_text(encoding="utf-8").split()


def labels_of(draw: random.Random) -> dict[str, str]:
    return {key: draw.choice(values) for key, values in KEYS.items() if draw.random() < 0.8}


def drawn() -> tuple[dict[str, dict[str, str]], list[dict[str, Any]]]:
    """Labels of nodes, of which the first has none, and a template for each row of verdicts."""
    draw = random.Random(1)
    labels = {name: labels_of(draw) for name in NODES} | {"n0": {}}
    return labels, [template(draw) for _ in VERDICTS]


def test_a_node_admits_a_pod_as_the_scheduler_does() -> None:
    labels, templates = drawn()
    nodes = [node(*ASKED.get(n, ()), labels=labels[n], cordoned=n == CORDONED) for n in NODES]
    for name, found in zip(NODES, nodes, strict=True):
        found["metadata"]["name"] = name
    rules = [NodeRules.of(each) for each in templates]
    said = ["".join("01"[r.refusal(one) is None] for one in nodes) for r in rules]
    assert said == VERDICTS
    share = "".join(said).count("1") / len("".join(said))
    assert 0.2 < share < 0.8, f"both verdicts are tried: {share:.0%} are admitted"


def test_the_own_wishes_of_a_pod_hold_beside_the_node() -> None:
    given = ROWS["on node n1"]
    before = deepcopy(given["affinity"])
    assert on_node(before, "n1") == given["becomes"]
    assert before == given["affinity"]


TAINTED = ((), (), ("team:NoSchedule",), ("gpu:NoExecute", "team:PreferNoSchedule"))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["fifo", "oasis", "recourse", "drf", "srtf"])
def test_a_plan_on_nodes_that_stay_as_they_are_is_never_refused(name: str, seed: int) -> None:
    """`Played` refuses to open a gate where the scheduler would not admit the pod."""
    draw = random.Random(seed)
    made, nodes = Played(policy(name)), []
    for each in NODES:
        found = worker_node(each, "worker", 4)
        found["metadata"]["labels"] |= labels_of(draw)
        nodes.append({**found, "spec": node(*draw.choice(TAINTED))["spec"]})
    made.nodes = [*nodes, worker_node("p0", "ps", 0)]
    made.restart()
    bodies = [rigid(f"j{k}", draw.randint(1, 6), 2) for k in range(8)]
    for body in bodies:
        body["spec"]["workers"]["template"]["spec"] |= template(draw)
    rules = [NodeRules.of(body["spec"]["workers"]["template"]["spec"]) for body in bodies]
    admitting = [sum(each.refusal(one) is None for one in nodes) for each in rules]
    uids = [made.submit(body) for body in bodies]
    for _ in range(12):
        made.run(1)
        assert not made.reconciler.steps(made.seen(), made.now()).refused
    for uid, count, body in zip(uids, admitting, bodies, strict=True):
        if not count:
            assert made.said(uid, "Placed")[1] == "NoNode"
        fits = body["spec"]["workers"]["minimum"] <= 4 * count
        assert (made.phase(uid) == "Completed") == fits
    assert made.measured("oasis_gangs_withdrawn_total") == 0
