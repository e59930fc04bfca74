"""Pods: how those of a plan are made and opened, whose they are, what they do and report."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.api.watching import ASKED
from oasis.kubernetes.objects.conditions import said
from oasis.kubernetes.objects.existing import (
    JOB,
    JOBSET,
    JOBSET_NAME,
    TRAINJOB,
    WORKLOAD,
    Job,
)
from oasis.kubernetes.objects.network import hostname, service_name, variables, with_variables
from oasis.kubernetes.objects.node_affinity import NAME, narrowed
from oasis.kubernetes.objects.oasis_job import JobSpec, identity
from oasis.kubernetes.objects.quantities import quantity
from oasis.kubernetes.objects.workload import OF_POD
from oasis.model.errors import InstanceError
from oasis.model.groups import TaskGroup

# A pod's name is its host name, which has at most 63 characters and no dots: 40 of the job's name
# leave room for task, number and digest.
LONGEST_PREFIX = 40
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class WantedPod:
    """A pod that the plan wants for a job, and its node."""

    # The same for the same job, task, node and number: whoever asks twice asks for one pod.
    name: str
    task: TaskGroup
    node: str  # where it belongs, as the next
    hostname: str
    index: int | None = None  # among those of its task; None: it knows of no others


@lru_cache(maxsize=4096)
def template_hash(spec: JobSpec, task: TaskGroup) -> str:
    """Return ten hexadecimal digits of the pod template of a task. Cached: asked in every turn."""
    plain = json.dumps(task.of(spec), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:10]


def prefix_of(spec: JobSpec) -> str:
    """Return the common prefix of the names of a job's pods."""
    return spec.name[:LONGEST_PREFIX].rstrip("-.").replace(".", "-")


def owner_of(spec: JobSpec) -> dict[str, Any]:
    """Return the owner reference of what we create for a job; it is deleted with the job."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": spec.name,
        "uid": spec.uid,
        "controller": True,
        # True would need the right to update finalizers of OasisJobs where a cluster enforces it.
        "blockOwnerDeletion": False,
    }


def pod_object(spec: JobSpec, pod: WantedPod, plan: str, slot: int) -> dict[str, Any]:
    """Build a pod with a closed gate; hash of the `plan` and `slot` go into its annotations."""
    # It says the `plan_hash` of the allocation that asks for it, and in which slot that does.
    template = pod.task.of(spec)
    assert template is not None  # parameter servers are planned only where there is a template
    body = deepcopy(dict(template))
    meta = body.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), **identity(spec.name, spec.uid, pod.task)}
    notes = {**(meta.get("annotations") or {}), names.PLAN: plan, names.SLOT: str(slot)}
    notes |= {names.NODE: pod.node, names.TEMPLATE: template_hash(spec, pod.task)}
    for report in (names.PROGRESS, names.LOSS):  # by the training alone, which has not begun
        notes.pop(report, None)
    # A gate cannot be added to a pod that exists, so each is made with it.
    pod_spec = {"restartPolicy": "OnFailure", **body["spec"]}
    pod_spec["schedulingGates"] = [{"name": names.GATE}]
    pod_spec["terminationGracePeriodSeconds"] = spec.grace_seconds
    if spec.network is not None and pod.index is not None:
        labels[names.INDEX] = str(pod.index)
        read = variables(spec.network, pod.task, spec.resize == "elastic")
        pod_spec = with_variables(pod_spec, read)
        pod_spec["hostname"] = hostname(spec.name, pod.task, pod.index)
        pod_spec["subdomain"] = service_name(spec.name)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": spec.namespace,
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [owner_of(spec)],
        },
        "spec": pod_spec,
    }


def tried_pod(spec: JobSpec) -> dict[str, Any]:
    """Return a worker to create in a dry run, to see whether one can be made."""
    name = f"{prefix_of(spec)}-try-{spec.uid[:8]}"
    index = None if spec.network is None else 0
    return pod_object(spec, WantedPod(name, TaskGroup.WORKER, "", "", index), "", 0)


def opening_patch(pod: Mapping[str, Any], node: str, hostname: str) -> list[dict[str, Any]]:
    """Return the JSON patch that opens the gate of a pod and restricts it to `node`."""
    # It tests that the gate is still there, so that it is done once or not at all. The node
    # selector is what people look for. The name of the node, which only an affinity can ask for,
    # lets the scheduler look at this node alone: by a label it tries every node for every pod.
    spec = pod["spec"]
    gates = [gate["name"] for gate in spec.get("schedulingGates") or ()]
    path = f"/spec/schedulingGates/{gates.index(names.GATE)}"
    selector = {**(spec.get("nodeSelector") or {}), names.HOSTNAME: hostname}
    return [
        # One patch does all, and the gate goes last: once it is
        # gone, the node selector cannot change any more (422).
        {"op": "test", "path": f"{path}/name", "value": names.GATE},
        {"op": "add", "path": "/spec/nodeSelector", "value": selector},
        {"op": "add", "path": "/spec/affinity", "value": on_node(spec.get("affinity"), node)},
        {"op": "remove", "path": path},
    ]


def on_node(affinity: Mapping[str, Any] | None, node: str) -> dict[str, Any]:
    """Return the affinity of a pod restricted to one node."""
    return narrowed(affinity, [{"key": NAME, "operator": "In", "values": [node]}], "matchFields")


def phase_of(pod: Mapping[str, Any]) -> str | None:
    """Return the phase of `pod`; None before it has a status."""
    return (pod.get("status") or {}).get("phase")


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Return whether `pod` succeeded or failed, so that it uses no resources of its node."""
    return phase_of(pod) in ENDED


def is_gated(pod: Mapping[str, Any]) -> bool:
    """Return whether `pod` still has our scheduling gate."""
    return any(g["name"] == names.GATE for g in pod["spec"].get("schedulingGates") or ())


def is_ending(pod: Mapping[str, Any]) -> bool:
    """Return whether `pod` is being deleted."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def lingers(pod: Mapping[str, Any], by: float) -> bool:
    """Return whether `pod` was to be gone at the time `by` and still exists."""
    end = pod["metadata"].get("deletionTimestamp")  # with its grace period
    return end not in (None, ASKED) and seconds_of(end) <= by


def seconds_of(text: str) -> float:
    """Convert a time as Kubernetes writes it to seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def is_working(pod: Mapping[str, Any]) -> bool:
    """Return whether `pod` is Running and Ready, and not being deleted."""
    running = phase_of(pod) == "Running" and not is_ending(pod)
    return running and said(pod, "Ready").get("status") == "True"


def is_unschedulable(pod: Mapping[str, Any]) -> bool:
    """Return whether the scheduler found no capacity for `pod`."""
    placed = said(pod, "PodScheduled")
    is_refused = (placed.get("status"), placed.get("reason")) == ("False", "Unschedulable")
    return is_refused and not pod["spec"].get("nodeName")


def failures(pod: Mapping[str, Any]) -> int:
    """Count the failures of a pod and its containers; 0 if the pod was deleted on purpose."""
    disruption = said(pod, "DisruptionTarget")  # evicted or preempted, which is not its fault
    if is_ending(pod) or disruption.get("status") == "True":
        return 0
    restarts = sum(one.get("restartCount", 0) for one in container_statuses(pod))
    return int(restarts) + (phase_of(pod) == "Failed")


def container_statuses(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the statuses of all containers of a pod, init containers first."""
    status = pod.get("status") or {}
    both = ("initContainerStatuses", "containerStatuses")
    return [one for name in both for one in status.get(name) or ()]


def last_failure(pod: Mapping[str, Any]) -> str:
    """Return exit code and reason of the last failure of a pod or its containers; or empty."""
    for one in container_statuses(pod):
        for when in ("state", "lastState"):
            ended = (one.get(when) or {}).get("terminated") or {}
            if ended.get("exitCode"):
                reason = ended.get("reason") or "Error"
                return (
                    f"container {one['name']} ended with exit code {ended['exitCode']} ({reason})"
                )
    status = pod.get("status") or {}
    return ": ".join(filter(None, (status.get("reason"), status.get("message"))))


def complaint(pods: Iterable[Mapping[str, Any]]) -> str:
    """Return why one of the pods does not run, such as ``ImagePullBackOff``; empty if unknown."""
    for pod in pods:
        name = pod["metadata"]["name"]
        if is_ending(pod):
            return f"pod {name} is deleted and does not go: look at its finalizers, and its node"
        if phase_of(pod) == "Succeeded":
            return f"pod {name} has ended, and the work is not done"
        for one in container_statuses(pod):
            waiting = (one.get("state") or {}).get("waiting") or {}
            if waiting.get("reason"):
                return ": ".join(filter(None, (waiting["reason"], waiting.get("message"))))
        if is_unschedulable(pod):
            return f"Unschedulable: {said(pod, 'PodScheduled').get('message', '')}"
    return ""


def target_node(pod: Mapping[str, Any]) -> str | None:
    """Return the node that our pod uses, bound to it or sent there; None while it is gated."""
    # Of a pod that is not ours the annotation says nothing: any user can write one.
    bound = pod["spec"].get("nodeName")
    if bound:
        return str(bound)
    notes = pod["metadata"].get("annotations") or {}
    return notes.get(names.NODE) if not is_gated(pod) else None


Object = Mapping[str, Any]
Pods = Mapping[str, Mapping[str, Any]]  # by uid of their job and by name
Claim = tuple[str, str, str]


def claims_of(jobs: Iterable[Job]) -> dict[Claim, str]:
    """Return the uids of our jobs by the marks of their pods: kind, namespace, uid or name."""
    # The pods of an OasisJob and of a Job are owned by it. Those of a JobSet have its name as a
    # label, and those of a TrainJob that of the JobSet that it makes, which is its own.
    # The name of a Workload is an annotation of its pods.
    claims: dict[Claim, str] = {}
    for kind, item in jobs:
        meta, name = item["metadata"], kind.name if kind else names.KIND
        if name in (JOBSET.name, TRAINJOB.name):
            mark = JOBSET.name, meta["namespace"], meta["name"]
            # A JobSet that runs keeps its pods when a TrainJob of its name comes.
            claims[mark] = claims.get(mark, meta["uid"]) if kind is TRAINJOB else meta["uid"]
        else:
            owner = meta["name"] if kind is WORKLOAD else meta["uid"]
            claims[name, meta["namespace"], owner] = meta["uid"]
    return claims


def claimed(pod: Object, claims: Mapping[Claim, str]) -> str | None:
    """Return the uid of the job of `pod` if we or the controller of its job made it; else None."""
    # Any user can copy labels and annotations, so that no single mark counts: ours is a pod in the
    # namespace of a job of ours that this job owns and that our field manager made, or opened; or
    # that our gate still holds, if another controller makes the pods. Only those may be deleted.
    meta = pod["metadata"]
    owner = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), None)
    if owner is None:
        return None
    labels, kind = meta.get("labels") or {}, owner.get("kind")
    managed = any(m.get("manager") == names.FIELD_MANAGER for m in meta.get("managedFields") or ())
    uid = claims.get((str(kind), meta["namespace"], owner["uid"]))
    if kind == names.KIND:
        return uid if managed and uid == labels.get(names.JOB_UID) else None
    if not (managed or is_gated(pod)):
        return None
    notes = meta.get("annotations") or {}
    if OF_POD in notes:
        return claims.get((WORKLOAD.name, meta["namespace"], notes[OF_POD]))
    if kind != JOB.name:
        return None
    return uid or claims.get((JOBSET.name, meta["namespace"], labels.get(JOBSET_NAME, "")))


def marking_patch(
    pod: Object, labels: Mapping[str, str], notes: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the JSON patch that adds labels, and annotations `notes`, to a pod."""
    meta, marks = pod["metadata"], []
    for field, added in (("labels", labels), ("annotations", notes)):
        # A JSON patch cannot add a key to a map that is not there: then the whole map is added.
        if meta.get(field) is None:
            marks.append({"op": "add", "path": f"/metadata/{field}", "value": dict(added)})
            continue
        for key, value in added.items():
            # JSON pointers write the slash of a key as ~1.
            path = f"/metadata/{field}/{key.replace('/', '~1')}"
            marks.append({"op": "add", "path": path, "value": value})
    return marks


@dataclass(frozen=True, slots=True)
class Report:
    """Progress and loss that the training of a job reported; None where it reported nothing."""

    progress: float | None = None  # worker-seconds done by the whole job
    loss: float | None = None  # of the process that has done most


def reported(pods: Mapping[str, Object]) -> Report:
    """Return the report in the annotations of a job's pods: the one with most progress."""
    reports = []
    for name in sorted(pods):
        notes = pods[name]["metadata"].get("annotations") or {}
        done, loss = notes.get(names.PROGRESS), notes.get(names.LOSS)
        if done is not None or loss is not None:
            progress = None if done is None else float(quantity(done, names.PROGRESS))
            reports.append(Report(progress, None if loss is None else _finite(loss)))
    return max(reports, key=lambda each: each.progress or 0.0, default=Report())


def _finite(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InstanceError(names.LOSS, "expected a finite number", text)
    return value
