"""Reduce watched objects to the fields that the controller reads, so that the cache stays small.

A pod as the API server sends it is 30 kB in memory, and a node with its list of images even
more. Thousands of them are kept for as long as the controller runs, so the rest is let go.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from oasis.kubernetes.names import ENV

Object = dict[str, Any]

META = (
    *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "ownerReferences"),
)
POD_SPEC = (
    *("nodeName", "nodeSelector", "schedulingGates", "resources", "overhead"),
    *("hostname", "subdomain"),
)
# The affinity is narrowed when the gate is opened, if the node tolerates such a pod.
GATED_SPEC = (*POD_SPEC, "affinity", "tolerations")
CONTAINER = ("resources", "restartPolicy")
POD_STATUS = ("phase", "reason", "message")
POD_CONDITIONS = ("Ready", "PodScheduled", "DisruptionTarget")
NODE_STATUS = ("allocatable", "conditions")


def without_fields(found: Mapping[str, Any]) -> Object:
    """Return an object without its lists of managed fields; the managers' names stay."""
    meta = dict(found["metadata"])
    _shorten(meta)
    return {**found, "metadata": meta}


def trimmed_pod(found: Mapping[str, Any]) -> Object:
    """Return the fields of a pod that are read: owner, requests, constraints and state."""
    spec, status = found["spec"], found.get("status") or {}
    kept_spec = _parts(spec, POD_SPEC if not spec.get("schedulingGates") else GATED_SPEC)
    for name in ("containers", "initContainers"):
        if spec.get(name):
            kept_spec[name] = [_parts(container, CONTAINER) for container in spec[name]]
    kept_status = _parts(status, POD_STATUS)
    if status.get("conditions"):
        kept_status["conditions"] = [c for c in status["conditions"] if c["type"] in POD_CONDITIONS]
    for name in ("initContainerStatuses", "containerStatuses"):
        if troubled := [one for one in map(_trouble, status.get(name) or ()) if one]:
            kept_status[name] = troubled
    return {"metadata": _metadata(found), "spec": kept_spec, "status": kept_status}


def trimmed_node(found: Mapping[str, Any]) -> Object:
    """Return the fields of a node that are read: labels, taints, conditions, allocatable."""
    return {
        "metadata": _metadata(found),
        "spec": _parts(found.get("spec") or {}, ("unschedulable", "taints")),
        "status": _parts(found.get("status") or {}, NODE_STATUS),
    }


def _trouble(container: Mapping[str, Any]) -> Object | None:
    """Return the restarts of a container, and why it waits or ended, where it does."""
    kept = {"restartCount": container["restartCount"]} if container.get("restartCount") else {}
    for when in ("state", "lastState"):
        said = _parts(container.get(when) or {}, ("waiting", "terminated"))
        if said:
            kept[when] = {
                how: _parts(told, ("exitCode", "reason", "message")) for how, told in said.items()
            }
    return {"name": container.get("name", ""), **kept} if kept else None


def _metadata(found: Mapping[str, Any]) -> Object:
    """Names, owners and marks; the keys of the marks, which are the same on all, are kept once."""
    meta = found["metadata"]
    kept = _parts(meta, META)
    for name in ("labels", "annotations"):
        if meta.get(name):
            kept[name] = {
                sys.intern(key): value
                for key, value in meta[name].items()
                if not key.startswith(ENV)  # these are for the containers, and long in large gangs
            }
    # The managers tell the pods that we made from others that carry our labels.
    if "managedFields" in meta:
        kept["managedFields"] = meta["managedFields"]
    _shorten(kept)
    return kept


def _shorten(meta: Object) -> None:
    if meta.get("managedFields"):
        managers = {entry.get("manager") or "" for entry in meta["managedFields"]}
        meta["managedFields"] = [{"manager": sys.intern(name)} for name in sorted(managers)]


def _parts(found: Mapping[str, Any], names: Iterable[str]) -> Object:
    return {name: found[name] for name in names if name in found}
