"""Kueue's Workload, read as a job whose pods another controller makes, and switched."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.api.resources import ResourceKind
from oasis.kubernetes.api.trimming import without_fields
from oasis.kubernetes.objects.conditions import said

Object = Mapping[str, Any]
ByPlural = Mapping[str, Iterable[Object]]

GROUP = "kueue.x-k8s.io"
API_VERSION = f"{GROUP}/v1beta2"
PREFIX = f"/apis/{API_VERSION}"
LOCAL_QUEUES = ResourceKind(PREFIX, "localqueues", optional=True)
CLUSTER_QUEUES = ResourceKind(PREFIX, "clusterqueues", namespaced=False, optional=True)
GATED_BY = f"{GROUP}/admission-gated-by"  # names, on an object and on its Workload
OF_POD = f"{GROUP}/workload"  # annotation of a pod: whose it is
POD_SET = f"{GROUP}/podset"  # label of a pod: of which podSet
HELD = ("Hold", "HoldAndDrain")  # stop policies of a LocalQueue, out of which nothing is admitted

# Annotations of a pod template that say what an object with our label says in its metadata: Kueue
# copies a template into the Workload, whatever the kind of its owner, but not the metadata.
SETTINGS = (
    *(names.UTILITY, names.WORK, names.UTILITY_CLASS, names.SERVERS, names.ON_REJECTION),
    *(names.FRAMEWORK, names.PORT, names.MINIMUM, names.MAXIMUM),
)


def kept(item: Object) -> dict[str, Any]:
    """Return a Workload as it is stored: settings of its pod templates become annotations."""
    meta = item["metadata"]
    notes: dict[str, str] = dict(meta.get("annotations") or {})
    for part in reversed(item["spec"]["podSets"]):
        said = part["template"].get("metadata", {}).get("annotations") or {}
        notes |= {name: said[name] for name in SETTINGS if name in said}
    return without_fields({**item, "metadata": {**meta, "annotations": notes}})


WORKLOADS = ResourceKind(PREFIX, "workloads", kept=kept, optional=True)


def read_workloads(seen: ByPlural, labelled: Container[str]) -> list[Object]:
    """Return gated Workloads as jobs with the uids of their owners, without `labelled` owners."""
    # A Workload may be made anew, and its owner stays the same. Of one that is `labelled` as ours,
    # too, nothing is done here: two would switch it. There the reader of its kind says so. Those of
    # namespaces that are not watched are seen, for their quota, but not their LocalQueues.
    queues = {key_of(item["metadata"]): item for item in seen.get(LOCAL_QUEUES.plural, ())}
    made = []
    for item in seen.get(WORKLOADS.plural, ()):
        owner = next((o for o in item["metadata"].get("ownerReferences") or () if "uid" in o), None)
        queue = queues.get(key_of(item["metadata"], item["spec"].get("queueName", "-")))
        if owner is None or queue is None or owner["uid"] in labelled:
            continue
        if _is_gated(item) and not _is_replaced(item):
            made.append(_as_owner(item, owner, queue))
    return made


def key_of(meta: Object, name: str = "") -> tuple[str, str]:
    """Return namespace and name of an object, or of `name` in the same namespace, as a key."""
    return meta["namespace"], name or meta["name"]


def _is_gated(item: Object) -> bool:
    templates = (part["template"]["spec"] for part in item["spec"]["podSets"])
    gates = (gate for spec in templates for gate in spec.get("schedulingGates") or ())
    return any(gate["name"] == names.GATE for gate in gates)


def _is_replaced(item: Object) -> bool:
    """Whether a Workload ended neither well nor badly: its owner has another in its place."""
    end = said(item, "Finished")
    return end.get("status") == "True" and end["reason"] not in ("Succeeded", "Failed")


def _as_owner(item: Object, owner: Object, queue: Object) -> Object:
    """Return a Workload in the shape of a job, with its owner's uid and what switching it needs."""
    meta, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    notes = meta.get("annotations") or {}
    gates = [name for name in (notes.get(GATED_BY) or "").split(",") if name]
    is_active, is_ours = spec.get("active", True), names.PAUSED in notes
    has_quota = said(item, "QuotaReserved").get("status") == "True"
    target = alone = None
    if queue["spec"].get("stopPolicy") in HELD and not has_quota:
        target = (queue["metadata"].get("annotations") or {}).get(names.STARTS_IN)
        if target is None:
            alone = f"its LocalQueue {spec['queueName']} is held, without {names.STARTS_IN}"
    if not is_active and not is_ours:
        alone = f"a person or Kueue has deactivated it, without the annotation {names.PAUSED}"
    elif is_active and is_ours:
        alone = f"another has activated it while it was paused here: remove {names.PAUSED} from it"
    # It has never started.
    waits = not has_quota and (target is not None or names.GATE in gates)
    mine = {name: text for name, text in notes.items() if name in (*SETTINGS, names.STATUS)}
    # The end that failed has a type of its own, as with other kinds.
    conditions = [
        {**c, "type": "Failed"} if (c["type"], c["reason"]) == ("Finished", "Failed") else c
        for c in status.get("conditions") or ()
    ]
    switch = {
        "suspend": waits or not is_active,
        "owner": owner,
        "target": target,  # queue to which it goes at its start
        "gates": [name for name in gates if name != names.GATE] if names.GATE in gates else None,
        "active": is_active,
        "parallelism": spec["podSets"][0]["count"],
        "alone": alone,
        # Resumed before Kueue has let go of it, it might be made anew.
        "stops": not is_active and has_quota,
    }
    return {
        **item,
        "metadata": {
            **{**meta, "uid": owner["uid"], "itself": meta["uid"], "annotations": mine},
            "labels": {names.SCHEDULED: "true"},
        },
        "spec": {**spec, **switch},
        "status": {**status, "conditions": conditions},
    }


def left_alone(item: Object) -> str | None:
    """Return why a Workload may not be scheduled here now; None if it may, and for other kinds."""
    return item["spec"].get("alone")  # type: ignore[no-any-return]


def stops(item: Object) -> bool:
    """Return whether a paused Workload still has its quota, which Kueue takes back."""
    return bool(item["spec"].get("stops"))


def preempted(item: Object) -> str | None:
    """Return Kueue's message about a Workload that it preempted and that should run; else None."""
    quota, evicted = said(item, "QuotaReserved"), said(item, "Evicted")
    is_preempted = (evicted.get("status"), evicted.get("reason")) == ("True", "Preempted")
    if item["spec"].get("suspend") or quota.get("status") == "True" or not is_preempted:
        return None
    return f"Kueue has preempted it: {evicted['message']}"


def without_quota(item: Object) -> str:
    """Return why a started Workload has no quota; empty if it has, and for other kinds."""
    if "alone" not in item["spec"] or item["spec"]["suspend"]:
        return ""
    quota = said(item, "QuotaReserved")
    return "" if quota.get("status") == "True" else f"no quota: {quota.get('message', '')}"


def switching(item: Object, suspend: bool) -> tuple[ResourceKind, dict[str, Any]]:
    """Return the kind to patch and the patch that pauses, resumes or starts a Workload."""
    meta, spec = item["metadata"], item["spec"]
    if suspend or not spec["active"]:
        mark = {names.PAUSED: "true" if suspend else None}
        me = {"name": meta["name"], "uid": meta["itself"], "annotations": mark}
        body = {"metadata": {**me, "namespace": meta["namespace"]}, "spec": {"active": not suspend}}
        return WORKLOADS, body
    # It starts: Kueue reads both from the object itself, which may be of any kind.
    owner = spec["owner"]
    change: dict[str, Any] = {name: owner[name] for name in ("name", "uid")}
    change["namespace"] = meta["namespace"]
    if spec["target"] is not None:
        change["labels"] = {names.QUEUE: spec["target"]}
    if spec["gates"] is not None:
        change["annotations"] = {GATED_BY: ",".join(spec["gates"]) or None}
    where = ResourceKind(f"/apis/{owner['apiVersion']}", f"{owner['kind'].lower()}s")
    return where, {"metadata": change}
