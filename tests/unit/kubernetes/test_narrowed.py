"""How the affinity of a pod is narrowed to one node when its gate is opened."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.cluster.pods import on_node
from oasis.kubernetes.objects.node_affinity import REQUIRED


def by_name(node: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def test_the_own_wishes_of_a_pod_hold_beside_the_node() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["z"]}
    terms = [{"matchExpressions": [zone]}, {}, {"matchFields": [by_name("n9")]}]
    preferred = [{"weight": 1, "preference": {"matchExpressions": [zone]}}]
    affinity = {
        "podAntiAffinity": {REQUIRED: [{"topologyKey": names.HOSTNAME}]},
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
    }
    before = deepcopy(affinity)
    found = on_node(affinity, "n1")
    assert affinity == before
    assert found["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [
        {"matchExpressions": [zone], "matchFields": [by_name("n1")]},
        {},  # which holds nowhere, and may not be changed
        {"matchFields": [by_name("n9"), by_name("n1")]},
    ]
    before["nodeAffinity"].pop(REQUIRED)
    found["nodeAffinity"].pop(REQUIRED)
    assert found == before
