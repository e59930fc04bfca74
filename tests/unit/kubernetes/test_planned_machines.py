"""Changes of the machines since the policy's last plan."""

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


def test_a_node_more_is_growth_and_a_node_less_is_a_loss() -> None:
    before = seen()
    machines = Machines.of(before, SETTINGS, CLOCK)
    assert not machines.have_grown(before, SHARE)
    assert machines.lost(before) == frozenset()
    assert machines.have_grown({**before, "nodes": [*before["nodes"], node("c", "ps")]}, SHARE)
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


def cpus(machines: Machines) -> list[float]:
    return [m.amounts[machines.site.resources.index("cpu")] for m in machines.site.machines]


def test_what_others_take_counts_where_it_was_missed_and_what_they_give_back_everywhere() -> None:
    machines = Machines.of(seen(pods=[foreign("x", "2", "a")]), SETTINGS, CLOCK)
    assert cpus(machines) == [62.0, 64.0]
    for pods, short, left in (
        ([foreign("y", "2", "a")], "ab", [62.0, 64.0]),
        ([foreign("y", "3", "a"), foreign("z", "1", "b")], "", [62.0, 64.0]),
        ([foreign("y", "3", "a"), foreign("z", "1", "b")], "a", [61.0, 64.0]),
        ([foreign("y", "1", "a")], "", [63.0, 64.0]),
        ([], "", [64.0, 64.0]),
    ):
        found = machines.resized(seen(pods=pods), SETTINGS, set(short))
        assert cpus(found) == left
        assert (found is machines) == (left == [62.0, 64.0])
        assert cpus(found.resized(seen(), SETTINGS, set())) == [64.0, 64.0]
