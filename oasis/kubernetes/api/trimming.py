"""Reduce watched objects to the fields that the controller reads, so that the cache stays small.

A pod as the API server sends it is 30 kB in memory, and a node with its list of images even
more. Thousands of them are kept for as long as the controller runs, so the rest is let go.
"""

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


def without_fields(found: Mapping[str, Any]) -> Object:
    """Return an object without its lists of managed fields; the managers' names stay."""
    return {**found, "metadata": _shortened(found["metadata"])}


def trimmed_pod(found: Mapping[str, Any]) -> Object:
    """Return the fields of a pod that are read: owner, requests, constraints and state."""
    spec, status = found["spec"], _cut(found.get("status"), POD_STATUS)
    if "conditions" in status:
        status["conditions"] = [c for c in status["conditions"] if c["type"] in POD_CONDITIONS]
    shape = GATED_SPEC if spec.get("schedulingGates") else POD_SPEC
    return {"metadata": _metadata(found), "spec": _cut(spec, shape), "status": status}


def trimmed_node(found: Mapping[str, Any]) -> Object:
    """Return the fields of a node that are read: labels, taints, conditions, allocatable."""
    spec = _cut(found.get("spec"), _all("unschedulable taints"))
    status = _cut(found.get("status"), _all("allocatable conditions"))
    return {"metadata": _metadata(found), "spec": spec, "status": status}


def _cut(found: Any, shape: Shape | None) -> Any:
    """What of a value is in its shape, without parts of which nothing is."""
    if shape is None:
        return found
    if isinstance(found, list):
        return [_cut(each, shape) for each in found]
    inner = ((name, _cut(found[name], shape[name])) for name in shape if name in (found or ()))
    return {name: kept for name, kept in inner if kept or shape[name] is None}


def _metadata(found: Mapping[str, Any]) -> Object:
    """Names, owners and marks; the keys of the marks, which are the same on all, are kept once."""
    kept = _cut(found["metadata"], METADATA)
    for name in ("labels", "annotations"):
        if kept.get(name):
            kept[name] = {
                sys.intern(key): value
                for key, value in kept[name].items()
                if not key.startswith(ENV)  # these are for the containers, and long in large gangs
            }
    return _shortened(kept)


def _shortened(meta: Mapping[str, Any]) -> Object:
    """Metadata with the managers alone, which tell our pods from others that carry our labels."""
    if not meta.get("managedFields"):
        return dict(meta)
    managers = {entry.get("manager") or "" for entry in meta["managedFields"]}
    fields = [{"manager": sys.intern(name)} for name in sorted(managers)]
    return {**meta, "managedFields": fields}
