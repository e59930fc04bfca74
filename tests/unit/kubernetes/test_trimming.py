"""What is kept of a watched object says the same as the whole of it, to everybody who reads it."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from oasis.kubernetes import names
from oasis.kubernetes.api.resources import NODES, OASIS_JOBS, PODS, Objects, ResourceKind
from oasis.kubernetes.api.trimming import trimmed_node, trimmed_pod, without_fields
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster.nodes import allocatable, has_ended, is_usable, places_of
from oasis.kubernetes.cluster.pods import claimed
from oasis.kubernetes.objects.node_affinity import NodeRules
from oasis.kubernetes.objects.quantities import requests_of
from tests.unit.kubernetes.fake_api import FakeConnection

WHOLE = yaml.safe_load(Path(__file__).with_name("untrimmed.yaml").read_text(encoding="utf-8"))
FIELDS = WHOLE["pod"]["metadata"]["managedFields"]


def pod(gated: bool, **meta: Any) -> dict[str, Any]:
    """A pod with all fields that an API server sends."""
    made = deepcopy(WHOLE["pod"])
    made["metadata"] |= meta
    del made["spec"]["nodeName" if gated else "schedulingGates"]
    made["status"]["phase"] = "Pending" if gated else "Running"
    made["status"]["conditions"][1]["status"] = str(not gated)
    return made  # type: ignore[no-any-return]


def read(found: dict[str, Any]) -> list[Any]:
    """All that is ever asked of a pod."""
    facts = (p.is_gated, p.is_ending, p.is_working, p.is_unschedulable, p.target_node)
    return [
        *(fact(found) for fact in facts),
        has_ended(found),
        requests_of(found["spec"]),
        p.reported({"a": found}),
        p.condition(found, "Ready"),
        *(fact(found) for fact in (p.failures, p.last_failure)),
        p.complaint([found]),
        claimed(found, {("Job", "d", "u"): "x", (names.KIND, "d", "u"): "u"}),
    ]


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"deletionTimestamp": "2031-01-01T00:00:00Z"},
        {"managedFields": FIELDS[1:]},
        {"labels": None, "annotations": {}},
        {"ownerReferences": [{"kind": "Job", "uid": "u", "controller": True}]},
    ],
)
def test_of_a_pod_everything_is_kept_that_is_read(gated: bool, meta: dict[str, Any]) -> None:
    whole = pod(gated, **meta)
    kept = trimmed_pod(whole)
    assert read(kept) == read(whole)
    assert trimmed_pod(kept) == kept, "what an own write answered may be cut down twice"
    text = json.dumps(kept)
    for gone in ("fieldsV1", "image", "Initialized", "hostIPs"):
        assert gone in json.dumps(whole)
        assert gone not in text
    for name in ("affinity", "tolerations"):
        assert (name in kept["spec"]) == gated, "nobody asks for it once the gate is open"
    if gated:
        assert NodeRules.of(kept["spec"]) == NodeRules.of(whole["spec"])
    assert whole == pod(gated, **meta), "the whole one is left as it was"


@pytest.mark.parametrize("status", WHOLE["troubles"], ids=str)
def test_of_what_went_wrong_in_a_pod_everything_is_kept_that_is_told(status: Any) -> None:
    whole = pod(gated=False)
    whole["status"] |= status
    assert read(trimmed_pod(whole)) == read(whole) != read(pod(gated=False))
    assert trimmed_pod(trimmed_pod(whole)) == trimmed_pod(whole)


def test_of_a_node_everything_is_kept_that_is_read() -> None:
    whole = WHOLE["node"]
    kept = trimmed_node(whole)
    assert is_usable(kept) == is_usable(whole) is False
    assert allocatable(kept) == allocatable(whole)
    assert places_of([kept], None) == places_of([whole], None)
    ready = {**whole, "spec": {}}
    assert is_usable(trimmed_node(ready)) is is_usable(ready) is True
    assert "images" not in kept["status"]


def test_each_kind_knows_what_is_kept_of_it_and_lists_it_so() -> None:
    assert (PODS.kept, NODES.kept, OASIS_JOBS.kept) == (trimmed_pod, trimmed_node, without_fields)
    assert ResourceKind("/api/v1", "others").kept is without_fields
    found = without_fields(pod(gated=True))
    managers = [{"manager": "kubelet"}, {"manager": names.FIELD_MANAGER}]
    assert found["metadata"].pop("managedFields") == managers
    whole = pod(gated=True)
    del whole["metadata"]["managedFields"]
    assert found == whole
    connection = FakeConnection()
    page = {"items": [pod(gated=True)], "metadata": {"resourceVersion": "9"}}
    connection.objects["/api/v1/pods"] = page
    objects = Objects(connection)  # type: ignore[arg-type]
    assert objects.list_all(PODS) == ([pod(gated=True)], "9")
    assert objects.list_all(PODS, kept=PODS.kept) == ([trimmed_pod(pod(gated=True))], "9")


def test_names_in_the_network_are_kept_and_the_variables_of_containers_are_not() -> None:
    """The variables of a large gang are long, and nobody here reads them again."""
    whole = pod(gated=True)
    whole["spec"] |= {"hostname": "a-worker-0", "subdomain": "a"}
    whole["metadata"]["annotations"][f"{names.ENV}OASIS_HOSTS"] = "a-worker-0.a"
    kept = trimmed_pod(whole)
    assert (kept["spec"]["hostname"], kept["spec"]["subdomain"]) == ("a-worker-0", "a")
    assert kept["metadata"]["annotations"].keys() == {names.NODE, names.PROGRESS, names.LOSS}
