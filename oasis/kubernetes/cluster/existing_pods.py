"""Pods that other controllers make for a job: whose they are, and where they belong.

Such a pod is never made or deleted here: its gate is opened towards a node, and all pods of a job
go when the job is suspended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster.nodes import Place, has_ended, natural
from oasis.kubernetes.objects.existing_kinds import (
    BY_NAME,
    JOB,
    JOBSET,
    JOBSET_NAME,
    REPLICATED_JOB,
    TRAINJOB,
    Part,
    items_of,
)
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.scheduling.allocation import Allocation, Tasks

Object = Mapping[str, Any]
Claim = tuple[str, str, str]


def claims_of(seen: Mapping[str, Iterable[Object]]) -> dict[Claim, str]:
    """For each mark that pods carry, the uid of the job that they belong to.

    The pods of a Job are owned by it. Those of a JobSet have its name as a label, and those of a
    TrainJob that of the JobSet that it makes, which is its own.
    """
    found: dict[Claim, str] = {}
    for kind in (TRAINJOB, JOBSET):
        for item in items_of(seen, kind):
            meta = item["metadata"]
            found[JOBSET.name, meta["namespace"], meta["name"]] = meta["uid"]
    for item in items_of(seen, JOB):
        meta = item["metadata"]
        found[JOB.name, meta["namespace"], meta["uid"]] = meta["uid"]
    return found


def claimed(pod: Object, claims: Mapping[Claim, str]) -> str | None:
    """Uid of the job that `pod` belongs to; None unless it has, or had, our gate."""
    meta = pod["metadata"]
    if not claims or not (p.is_gated(pod) or names.NODE in (meta.get("annotations") or {})):
        return None
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == JOB.name:
            uid = claims.get((JOB.name, meta["namespace"], owner["uid"]))
            if uid is not None:
                return uid
            labels = meta.get("labels") or {}
            return claims.get((JOBSET.name, meta["namespace"], labels.get(JOBSET_NAME, "")))
    return None


def matched(
    spec: JobSpec,
    found: Object,
    allocation: Allocation,
    places: tuple[Place, ...],
    pods: Mapping[str, Object],
) -> tuple[p.WantedPod, ...]:
    """The pods of an allocation by the names that their controller gave them, workers first.

    A pod whose gate was opened stays where it was sent. Gated ones, in order of their names, go to
    what is left of the allocation. What there is no pod for yet has a name that no pod can have.

    Parameters
    ----------
    spec : JobSpec
        The job as it was read last. Which template is whose stands there, because the object's
        annotations may have been edited since.
    found : mapping
        The object as it is now.
    allocation : Allocation
        What the job is to hold.
    places : tuple of Place
        The machines.
    pods : mapping of str to mapping
        Pods of the job by name.
    """
    parts = {part.name: part for part in BY_NAME[spec.kind].parts(found)}
    made: list[p.WantedPod] = []
    for task, name, tasks in zip(("worker", "ps"), spec.part_names, allocation, strict=True):
        part = None if name is None else parts.get(name)
        if part is not None:
            made += _of_task(task, part, tasks, places, _of_part(pods, part.name))
    return tuple(made)


def _of_task(
    task: str, part: Part, tasks: Tasks, places: tuple[Place, ...], pods: Mapping[str, Object]
) -> list[p.WantedPod]:
    alive = {
        name: pods[name]
        for name in sorted(pods, key=natural)
        if not has_ended(pods[name]) and not p.is_ending(pods[name])
    }
    sent: dict[str | None, list[str]] = {}
    for name, pod in alive.items():
        if not p.is_gated(pod):
            sent.setdefault(p.target_node(pod), []).append(name)
    gated = [name for name, pod in alive.items() if p.is_gated(pod)]
    succeeded = sum((pod.get("status") or {}).get("phase") == "Succeeded" for pod in pods.values())
    due = part.completions - succeeded  # its controller makes no more pods than that
    places_left = []
    made = []
    for machine, count in tasks:
        place = places[machine]
        stay = sent.get(place.node, [])[:count]
        made += [p.WantedPod(name, task, place.node, place.hostname) for name in stay]
        places_left += [place] * (count - len(stay))
    for k, place in enumerate(places_left):
        name = gated[k] if k < len(gated) else f"?{task}-{k}"
        if k < len(gated) or len(made) < due:
            made.append(p.WantedPod(name, task, place.node, place.hostname))
    return made


def _of_part(pods: Mapping[str, Object], name: str) -> dict[str, Object]:
    """The pods of one replicated job, or all pods where there is only one template."""
    return {
        key: pod
        for key, pod in pods.items()
        if not name or (pod["metadata"].get("labels") or {}).get(REPLICATED_JOB) == name
    }


def sending_patch(
    pod: Object, wanted: p.WantedPod, spec: JobSpec, plan: str, slot: int
) -> list[dict[str, Any]]:
    """The JSON patch that sends a gated pod of another controller to its node, and says why."""
    meta = pod["metadata"]
    labels = {**p.identity(spec), names.TASK: wanted.task}
    notes = {names.PLAN: plan, names.SLOT: str(slot), names.NODE: wanted.node}
    marks = []
    for field, added in (("labels", labels), ("annotations", notes)):
        if meta.get(field) is None:
            marks.append({"op": "add", "path": f"/metadata/{field}", "value": added})
            continue
        for key, value in added.items():
            path = f"/metadata/{field}/{key.replace('/', '~1')}"
            marks.append({"op": "add", "path": path, "value": value})
    return [*p.opening_patch(pod, wanted.node, wanted.hostname), *marks]
