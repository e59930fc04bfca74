"""Reduce watched objects to the fields that are read: a whole pod is 30 kB in memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from oasis.kubernetes.names import ENV

Object = dict[str, Any]
Shape = Mapping[str, Any]  # names of what is kept, each with its shape; None: all of it


def _all(names: str) -> Object:
    return dict.fromkeys(names.split())


METADATA = _all(
    "name namespace uid resourceVersion generation creationTimestamp deletionTimestamp "
    "ownerReferences labels annotations managedFields"
)
CONTAINERS = dict.fromkeys(("containers", "initContainers"), _all("resources restartPolicy"))
POD_SPEC = CONTAINERS | _all(
    "nodeName nodeSelector schedulingGates resources overhead hostname subdomain"
)
# The affinity is narrowed when the gate is opened, if the node tolerates such a pod.
GATED_SPEC = POD_SPEC | _all("affinity tolerations")
STATE = dict.fromkeys(("waiting", "terminated"), _all("exitCode reason message"))
CONTAINER_STATUS = {**_all("name restartCount"), "state": STATE, "lastState": STATE}
POD_STATUS = {
    **_all("phase reason message conditions"),
    "initContainerStatuses": CONTAINER_STATUS,
    "containerStatuses": CONTAINER_STATUS,
}
POD_CONDITIONS = ("Ready", "PodScheduled", "DisruptionTarget")


def without_fields(item: Mapping[str, Any]) -> Object:
    """Return an object without its lists of managed fields; the managers' names stay."""
    return {**item, "metadata": _shortened(item["metadata"])}


def trimmed_pod(pod: Mapping[str, Any]) -> Object:
    """Return the fields of a pod that are read: owner, requests, constraints and state."""
    spec, status = pod["spec"], _cut(pod.get("status"), POD_STATUS)
    if "conditions" in status:
        status["conditions"] = [c for c in status["conditions"] if c["type"] in POD_CONDITIONS]
    shape = GATED_SPEC if spec.get("schedulingGates") else POD_SPEC
    return {"metadata": _metadata(pod), "spec": _cut(spec, shape), "status": status}


def trimmed_node(node: Mapping[str, Any]) -> Object:
    """Return the fields of a node that are read: labels, taints, conditions, allocatable."""
    spec = _cut(node.get("spec"), _all("unschedulable taints"))
    status = _cut(node.get("status"), _all("allocatable conditions"))
    return {"metadata": _metadata(node), "spec": spec, "status": status}


def _cut(value: Any, shape: Shape | None) -> Any:
    """Return the part of a value that its shape names; empty parts are left out."""
    if shape is None:
        return value
    if isinstance(value, list):
        return [_cut(each, shape) for each in value]
    inner = ((name, _cut(value[name], shape[name])) for name in shape if name in (value or ()))
    return {name: kept for name, kept in inner if kept or shape[name] is None}


def _metadata(item: Mapping[str, Any]) -> Object:
    """Return the metadata that are read; labels and annotations share the texts of their keys."""
    kept = _cut(item["metadata"], METADATA)
    for name in ("labels", "annotations"):
        if kept.get(name):
            kept[name] = {
                sys.intern(key): value
                for key, value in kept[name].items()
                if not key.startswith(ENV)  # these are for the containers, and long in large gangs
            }
    return _shortened(kept)


def _shortened(meta: Mapping[str, Any]) -> Object:
    """Return metadata with the names of managers alone, which tell our pods from copies."""
    if not meta.get("managedFields"):
        return dict(meta)
    managers = {entry.get("manager") or "" for entry in meta["managedFields"]}
    fields = [{"manager": sys.intern(name)} for name in sorted(managers)]
    return {**meta, "managedFields": fields}
