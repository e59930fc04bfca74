"""What is kept of a watched object says the same as the whole of it, to everybody who reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oasis.kubernetes import names
from oasis.kubernetes.api.resources import NODES, OASIS_JOBS, PODS, Objects, ResourceKind
from oasis.kubernetes.api.trimming import trimmed_node, trimmed_pod, without_fields
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster import world as w
from oasis.kubernetes.cluster.nodes import allocatable, has_ended, is_usable, places_of
from oasis.kubernetes.cluster.pods import WantedPod, claimed, sending_patch
from oasis.kubernetes.names import HOSTNAME, NODE_ROLE
from oasis.kubernetes.objects.node_affinity import REQUIRED, NodeRules
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.test_existing_edits import stored
from tests.unit.kubernetes.test_existing_jobs import job
from tests.unit.kubernetes.test_existing_jobs import read as read_job

FIELDS = [
    {"manager": names.FIELD_MANAGER, "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}},
    {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {"f:b": {}}}},
    {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {"f:c": {}}}},
]


def pod(gated: bool, **meta: Any) -> dict[str, Any]:
    """A pod with all fields that an API server sends."""
    asked = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1", "memory": "1Gi"}}
    container = {"name": "train", "image": "train:1", "resources": asked, "volumeMounts": [{}]}
    sidecar = {**container, "restartPolicy": "Always"}
    owner = {"kind": names.KIND, "uid": "u", "controller": True, "name": "j"}
    gates = [{"name": "other"}, {"name": names.GATE}]
    return {
        "kind": "Pod",
        "metadata": {
            "name": "a",
            "namespace": "d",
            "uid": "1",
            "resourceVersion": "7",
            "generateName": "a-",
            "labels": {names.JOB_UID: "u", names.TASK: "worker"},
            "annotations": {names.NODE: "n", names.PROGRESS: "60", names.LOSS: "0.5"},
            "ownerReferences": [owner],
            "managedFields": FIELDS,
            **meta,
        },
        "spec": {
            "containers": [container, container],
            "initContainers": [sidecar, container],
            "overhead": {"cpu": "250m"},
            "resources": {"requests": {"cpu": "8"}},
            "volumes": [{"name": "token", "projected": {"sources": [{}] * 3}}],
            "tolerations": [{"key": "a"}, {"operator": "Exists"}],
            "nodeSelector": {"zone": "z"},
            "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": []}]}}},
            **({"schedulingGates": gates} if gated else {"nodeName": "n"}),
        },
        "status": {
            "phase": "Pending" if gated else "Running",
            "hostIPs": [{"ip": "10.0.0.1"}],
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
                {"type": "Ready", "status": str(not gated), "lastTransitionTime": "t"},
                {"type": "Initialized", "status": "True"},
            ],
            "containerStatuses": [{"imageID": "x" * 100}],
        },
    }


def read(found: dict[str, Any]) -> list[Any]:
    """All that is ever asked of a pod."""
    facts = (p.is_gated, p.is_ending, p.is_working, p.is_unschedulable, p.target_node)
    return [
        *(fact(found) for fact in facts),
        has_ended(found),
        w.Requests().of(found),
        w.reported({"a": found}),
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


@pytest.mark.parametrize(
    "status",
    [
        {"containerStatuses": [{"name": "a", "restartCount": 3}, {"name": "b", "restartCount": 1}]},
        {
            "containerStatuses": [
                {"name": "a", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
            ]
        },
        {"containerStatuses": [{"name": "a", "lastState": {"terminated": {"exitCode": 3}}}]},
        {"initContainerStatuses": [{"name": "i", "restartCount": 2}]},
        {"phase": "Failed", "reason": "Evicted", "message": "no memory"},
        {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {
            "phase": "Failed",
            "containerStatuses": [
                {"name": "ok", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                {"name": "b", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
            ],
        },
    ],
)
def test_of_what_went_wrong_in_a_pod_everything_is_kept_that_is_told(status: Any) -> None:
    whole = pod(gated=False)
    whole["status"] |= status
    assert read(trimmed_pod(whole)) == read(whole) != read(pod(gated=False))
    assert trimmed_pod(trimmed_pod(whole)) == trimmed_pod(whole)


def test_a_kept_pod_is_sent_to_its_node_by_the_same_patches() -> None:
    whole, spec = pod(gated=True), read_job(stored(job(2, uid="u")))
    wanted = WantedPod("a", "worker", "n", "host")
    assert p.opening_patch(trimmed_pod(whole), "n", "host") == p.opening_patch(whole, "n", "host")
    patch = sending_patch(whole, wanted, spec, "hash", 3, {})
    assert sending_patch(trimmed_pod(whole), wanted, spec, "hash", 3, {}) == patch
    bare = pod(gated=True, labels=None, annotations=None)
    patch = sending_patch(bare, wanted, spec, "hash", 3, {})
    assert sending_patch(trimmed_pod(bare), wanted, spec, "hash", 3, {}) == patch


def test_of_a_node_everything_is_kept_that_is_read() -> None:
    whole = {
        "metadata": {
            "name": "n1",
            "resourceVersion": "3",
            "uid": "1",
            "labels": {NODE_ROLE: "both", HOSTNAME: "h1"},
            "managedFields": FIELDS,
        },
        "spec": {
            "unschedulable": True,
            "podCIDR": "10.0.0.0/24",
            "taints": [{"key": "a", "effect": "NoSchedule"}],
        },
        "status": {
            "allocatable": {"cpu": "8", "nvidia.com/gpu": "4"},
            "capacity": {"cpu": "8"},
            "images": [{"names": ["train"] * 2, "sizeBytes": 1}] * 50,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
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
