"""Which nodes admit a pod: each rule of the Kubernetes documentation, one case at a time.

Sources: "Assigning Pods to Nodes" and "Taints and Tolerations". The scheduler itself is asked in
`tests/kubernetes/test_admission.py`.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import oasis
from oasis.kubernetes.objects.node_affinity import REQUIRED, NodeRules

LABELS = {"gpu": "a100", "zone": "b", "memory": "80", "empty": "", "odd": "1_0", "huge": "9" * 30}


def node(*taints: str, labels: dict[str, str] = LABELS, cordoned: bool = False) -> dict[str, Any]:
    """A node; a taint is written as `kubectl taint` takes it."""
    found = []
    for taint in taints:
        name, effect = taint.split(":")
        key, _, value = name.partition("=")
        found.append({"key": key, "effect": effect} | ({"value": value} if value else {}))
    spec: dict[str, Any] = {"taints": found} | ({"unschedulable": True} if cordoned else {})
    return {"metadata": {"name": "n1", "labels": labels}, "spec": spec}


def asks(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def affinity(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def expressions(*asked: Any) -> dict[str, Any]:
    return {"matchExpressions": list(asked)}


def by_name(operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [asks("metadata.name", operator, *values)]}


def admits(spec: dict[str, Any], found: dict[str, Any]) -> bool:
    return NodeRules.of(spec).refusal(found) is None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, True),
        ({"nodeSelector": None, "affinity": None, "tolerations": None}, True),
        ({"nodeName": "n1"}, True),
        ({"nodeName": "n2"}, False),
        # every label of a selector has to be there, with its value
        ({"nodeSelector": {}}, True),
        ({"nodeSelector": {"gpu": "a100"}}, True),
        ({"nodeSelector": {"gpu": "a100", "zone": "c"}}, False),
        ({"nodeSelector": {"missing": "x"}}, False),
        ({"nodeSelector": {"missing": ""}}, False),
        ({"nodeSelector": {"empty": ""}}, True),
        # what is only preferred does not count
        (
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
            True,
        ),
        ({"affinity": {"nodeAffinity": {REQUIRED: None}}}, True),
        # the operators
        (affinity(expressions(asks("gpu", "In", "t4", "a100"))), True),
        (affinity(expressions(asks("gpu", "In", "t4"))), False),
        (affinity(expressions(asks("missing", "In", "t4"))), False),
        (affinity(expressions(asks("gpu", "NotIn", "t4"))), True),
        (affinity(expressions(asks("gpu", "NotIn", "t4", "a100"))), False),
        (affinity(expressions(asks("missing", "NotIn", "t4"))), True),
        (affinity(expressions(asks("gpu", "Exists"))), True),
        (affinity(expressions(asks("empty", "Exists"))), True),
        (affinity(expressions(asks("missing", "Exists"))), False),
        (affinity(expressions(asks("gpu", "DoesNotExist"))), False),
        (affinity(expressions(asks("missing", "DoesNotExist"))), True),
        (affinity(expressions(asks("memory", "Gt", "79"))), True),
        (affinity(expressions(asks("memory", "Gt", "80"))), False),
        (affinity(expressions(asks("memory", "Lt", "81"))), True),
        (affinity(expressions(asks("memory", "Lt", "80"))), False),
        (affinity(expressions(asks("memory", "Lt", "0100"))), True),  # a number, not a text
        (affinity(expressions(asks("memory", "Gt", "few"))), False),  # no number: it never holds
        (affinity(expressions(asks("gpu", "Gt", "1"))), False),
        (affinity(expressions(asks("gpu", "Lt", "1"))), False),
        (affinity(expressions(asks("missing", "Lt", "1"))), False),
        (affinity(expressions(asks("odd", "Gt", "1"))), False),
        (affinity(expressions(asks("huge", "Gt", "1"))), False),  # numbers have 64 bits
        # terms are alternatives, what is in one of them holds together
        (
            affinity(expressions(asks("gpu", "In", "t4")), expressions(asks("zone", "In", "b"))),
            True,
        ),
        (affinity(expressions(asks("gpu", "In", "a100"), asks("zone", "In", "c"))), False),
        (affinity(expressions(asks("gpu", "Gt", "x")), expressions(asks("gpu", "Exists"))), True),
        (affinity({}), False),
        (affinity({"matchExpressions": [], "matchFields": None}), False),
        (affinity({}, expressions(asks("gpu", "Exists"))), True),
        # the name of the node
        (affinity(by_name("In", "n1")), True),
        (affinity(by_name("In", "n2")), False),
        (affinity(by_name("NotIn", "n1")), False),
        (affinity(by_name("NotIn", "n2")), True),
        (affinity(by_name("In", "n1") | expressions(asks("gpu", "In", "t4"))), False),
        # selector and affinity hold together
        ({"nodeSelector": {"zone": "c"}, **affinity(expressions(asks("gpu", "Exists")))}, False),
        ({"nodeSelector": {"zone": "b"}, **affinity(expressions(asks("gpu", "In", "x")))}, False),
    ],
)
def test_labels(spec: dict[str, Any], expected: bool) -> None:
    assert admits(spec, node()) is expected


@pytest.mark.parametrize(
    ("tolerations", "taints", "expected"),
    [
        ([], [], True),
        ([], ["a=x:NoSchedule"], False),
        ([], ["a=x:NoExecute"], False),
        ([], ["a=x:PreferNoSchedule"], True),
        ([], ["a:NoSchedule"], False),
        # Equal is what an operator that is left out means
        ([{"key": "a", "operator": "Equal", "value": "x"}], ["a=x:NoSchedule"], True),
        ([{"key": "a", "value": "x"}], ["a=x:NoSchedule"], True),
        ([{"key": "a", "value": "y"}], ["a=x:NoSchedule"], False),
        ([{"key": "b", "value": "x"}], ["a=x:NoSchedule"], False),
        ([{"key": "a"}], ["a=x:NoSchedule"], False),
        ([{"key": "a"}], ["a:NoSchedule"], True),
        ([{"key": "a", "operator": "Exists"}], ["a=x:NoSchedule"], True),
        ([{"key": "b", "operator": "Exists"}], ["a=x:NoSchedule"], False),
        # no effect: all of them
        ([{"key": "a", "operator": "Exists"}], ["a=x:NoExecute"], True),
        ([{"key": "a", "operator": "Exists", "effect": ""}], ["a=x:NoExecute"], True),
        ([{"key": "a", "operator": "Exists", "effect": "NoSchedule"}], ["a=x:NoExecute"], False),
        ([{"key": "a", "operator": "Exists", "effect": "NoExecute"}], ["a=x:NoSchedule"], False),
        ([{"key": "a", "value": "x", "effect": "NoExecute"}], ["a=x:NoExecute"], True),
        # for some time, too: what evicts it later does not keep it away
        (
            [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
            ["a=x:NoExecute"],
            True,
        ),
        # no key and Exists: everything
        ([{"operator": "Exists"}], ["a=x:NoSchedule", "b:NoExecute"], True),
        (
            [{"operator": "Exists", "effect": "NoSchedule"}],
            ["a=x:NoSchedule", "b:NoExecute"],
            False,
        ),
        # each taint has to be tolerated
        ([{"key": "a", "operator": "Exists"}], ["a:NoSchedule", "b:NoSchedule"], False),
        (
            [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
            ["a:NoSchedule", "b:NoSchedule"],
            True,
        ),
        ([{"key": "a", "operator": "Exists"}], ["a=x:NoSchedule", "a=y:NoExecute"], True),
        ([{"key": "a", "value": "x"}], ["a=x:NoSchedule", "a=y:NoExecute"], False),
    ],
)
def test_taints(tolerations: list[Any], taints: list[str], expected: bool) -> None:
    assert admits({"tolerations": tolerations}, node(*taints)) is expected


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], True),
        ([{"key": "node.kubernetes.io/unschedulable"}], True),
        ([{"operator": "Exists", "effect": "NoExecute"}], False),
        ([{"key": "a", "operator": "Exists"}], False),
    ],
)
def test_a_cordoned_node_is_one_with_a_taint(tolerations: list[Any], expected: bool) -> None:
    assert admits({"tolerations": tolerations}, node(cordoned=True)) is expected


@pytest.mark.parametrize(
    ("spec", "taints", "said"),
    [
        ({"nodeName": "n2"}, (), "spec.nodeName is n2"),
        ({"nodeSelector": {"gpu": "t4"}}, (), "label gpu is not t4"),
        (affinity(expressions(asks("gpu", "In", "t4", "v100"))), (), "label gpu is not t4 or v100"),
        (affinity(expressions(asks("gpu", "NotIn", "a100", "t4"))), (), "label gpu is a100 or t4"),
        (affinity(expressions(asks("disk", "Exists"))), (), "label disk is missing"),
        (affinity(expressions(asks("gpu", "DoesNotExist"))), (), "label gpu is there"),
        (affinity(expressions(asks("memory", "Gt", "90"))), (), "label memory is not above 90"),
        (affinity(expressions(asks("memory", "Lt", "9"))), (), "label memory is not below 9"),
        (affinity(by_name("In", "n2")), (), "metadata.name is not n2"),
        (affinity({}), (), "an empty term of its affinity holds nowhere"),
        (
            affinity(expressions(asks("gpu", "In", "t4")), expressions(asks("zone", "In", "c"))),
            (),
            "label gpu is not t4 and label zone is not c",
        ),
        ({}, ("a=x:NoSchedule",), "taint a=x:NoSchedule is not tolerated"),
        ({}, ("a:NoExecute",), "taint a:NoExecute is not tolerated"),
    ],
)
def test_a_refusal_names_the_label_or_the_taint(
    spec: dict[str, Any], taints: tuple[str, ...], said: str
) -> None:
    assert NodeRules.of(spec).refusal(node(*taints)) == said


PLACE = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"nodeSelector": ["a"]}, "spec.nodeSelector: expected an object"),
    ({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a: expected text, got 1"),
    (affinity(expressions(asks("a", "in", "x"))), f"{PLACE}[0].matchExpressions[0].operator: "),
    (affinity(expressions({"operator": "Exists"})), "matchExpressions[0].key: missing"),
    ({"tolerations": [3]}, "spec.tolerations[0]: expected an object"),
    ({"tolerations": [{"key": 3}]}, "spec.tolerations[0].key: expected text"),
]


@pytest.mark.parametrize(("spec", "said"), REFUSED)
def test_rules_that_cannot_be_read_are_bad_input(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(oasis.InstanceError) as caught:
        NodeRules.of(spec)
    assert said in str(caught.value)


def test_what_the_api_server_refuses_is_read_and_holds_nowhere() -> None:
    """A dry run tells the owner, before anything is planned."""
    for spec in (
        affinity(expressions(asks("a", "In"))),
        affinity(expressions(asks("a", "Gt"))),
        affinity({}),
    ):
        assert NodeRules.of(spec).refusal(node(labels={"a": "1"}))


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
    """Constraints of a pod's spec on its nodes; each part may be missing."""
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
