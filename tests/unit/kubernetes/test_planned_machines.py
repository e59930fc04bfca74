"""What became of the machines since the policy was told of them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from oasis.kubernetes.control.machines import Machines
from tests.unit.kubernetes.test_existing_edits import SETTINGS, cluster
from tests.unit.kubernetes.test_missing_nodes import node
from tests.unit.kubernetes.test_objects import CLOCK

SHARE = SETTINGS.ps_share


def foreign(name: str, cpu: str, on: str) -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "uid": name},
        "spec": {"nodeName": on, "containers": [container]},
    }


def seen(**more: list[Any]) -> dict[str, list[Any]]:
    return cluster(nodes=[node("a", "worker"), node("b", "ps")], **more)


def test_a_node_more_or_another_amount_is_growth_and_a_node_less_is_a_loss() -> None:
    before = seen()
    machines = Machines.of(before, SETTINGS, CLOCK)
    assert not machines.have_grown(before, SHARE)
    assert machines.lost(before) == frozenset()
    assert machines.have_grown({**before, "nodes": [*before["nodes"], node("c", "ps")]}, SHARE)
    other = deepcopy(before)
    other["nodes"][0]["status"]["allocatable"]["cpu"] = "63"
    assert machines.have_grown(other, SHARE)
    less = {**before, "nodes": before["nodes"][:1]}
    assert not machines.have_grown(less, SHARE)
    assert machines.lost(less) == {1}
    cordoned = deepcopy(before)
    cordoned["nodes"][0]["spec"] = {"unschedulable": True}
    assert machines.lost(cordoned) == {0}
    for key, lost in (("not-ready", {0}), ("unreachable", {0}), ("memory-pressure", set())):
        tainted = deepcopy(before)
        taint = {"key": f"node.kubernetes.io/{key}", "effect": "NoSchedule"}
        tainted["nodes"][0]["spec"] = {"taints": [taint]}
        assert machines.lost(tainted) == lost, "away is what the control plane calls away"


def test_a_node_is_crowded_when_others_ask_more_than_they_did() -> None:
    machines = Machines.of(seen(pods=[foreign("x", "2", "a")]), SETTINGS, CLOCK)
    assert machines.site.machines[0].amounts[machines.site.resources.index("cpu")] == 62.0
    assert machines.crowded(seen(pods=[foreign("y", "2", "a")])) == set()
    assert machines.crowded(seen(pods=[foreign("y", "3", "a"), foreign("z", "1", "b")])) == {
        "a",
        "b",
    }
