"""From a plan to writes: compare pods with the plan, and list the missing actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster.gangs import annotations_of, working_gang
from oasis.kubernetes.cluster.nodes import free_room
from oasis.kubernetes.cluster.pods import WantedPod, has_ended, phase_of
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.objects.existing import (
    BY_NAME,
    WORKLOAD,
    ExistingKind,
    is_suspended,
    name_of,
    queue_of,
)
from oasis.kubernetes.objects.node_affinity import NodeRules
from oasis.kubernetes.objects.oasis_job import JobSpec, identity
from oasis.kubernetes.objects.quantities import Amounts, take
from oasis.kubernetes.objects.workload import left_alone, stops
from oasis.model.groups import GROUPS, TaskGroup

Pod = Mapping[str, Any]  # or another object


@dataclass(frozen=True, slots=True)
class Create:
    """The action to create a pod, or the Service or the NetworkPolicy that pods of a job need."""

    job: str  # uid, as in all of these
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Open:
    """The action to open the gate of a pod, so that it is scheduled."""

    job: str
    pod: Pod
    patch: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Delete:
    """The action to delete a pod."""

    job: str
    pod: Pod
    why: str  # ``Shrunk``, ``Edited``, ``Ended``, ``Withdrawn`` or ``Failed``


@dataclass(frozen=True, slots=True)
class Switch:
    """The action to suspend an object, so that its controller deletes its pods, or to resume it."""

    job: str
    found: Mapping[str, Any]
    kind: ExistingKind
    suspend: bool  # otherwise its controller makes its pods again
    # To set when it is resumed; None leaves the number that it has. A Workload is resumed later,
    # when it has followed.
    workers: int | None = None


Action = Create | Open | Delete | Switch


def action_word(action: Action) -> str:
    """Return the name of an action in metrics and messages."""
    if isinstance(action, Switch):
        is_resize = action.kind is WORKLOAD and action.workers is not None
        return "resize" if is_resize else "suspend" if action.suspend else "resume"
    if isinstance(action, Create) and action.body["kind"] != "Pod":
        return "expose"
    return type(action).__name__.lower()


def described(action: Action) -> dict[str, Any]:
    """Return an action as plain data for people: what is done to which pod, job and node."""
    word = action_word(action)
    if isinstance(action, Switch):
        job = name_of(action.found, action.kind)
        return {"action": word, "job": job, "pod": None, "node": None}
    meta = (action.body if isinstance(action, Create) else action.pod)["metadata"]
    job = f"{meta['namespace']}/{meta['ownerReferences'][0]['name']}"
    if isinstance(action, Delete):
        word = f"{word} ({action.why})"
    pod, node = meta["name"], (meta.get("annotations") or {}).get(names.NODE)
    return {"action": word, "job": job, "pod": None if word == "expose" else pod, "node": node}


@dataclass(frozen=True, slots=True)
class Target:
    """A job with its wanted pods and its existing pods, which `reconcile` compares."""

    spec: JobSpec
    wanted: tuple[WantedPod, ...]  # by the plan, workers first
    plan: str  # hash of the allocation
    pods: Mapping[str, Pod]  # that are there, by name
    slot: int  # the present one
    withdrawn: bool = False  # its gang, in this slot: nothing more is placed before the next
    found: Mapping[str, Any] | None = None  # the object, if another controller makes the pods
    workers: int = 0  # by the plan, for such an object
    lacking: tuple[Mapping[str, Any], ...] = ()  # what its pods need in the network, to be made


@dataclass(slots=True)
class Steps:
    """The actions in order, deletions first; and what keeps jobs from theirs, by uid of the job."""

    actions: list[Action] = field(default_factory=list)  # independent of each other
    withdrawn: set[str] = field(default_factory=set)  # whose gang is withdrawn
    short: dict[str, str] = field(default_factory=dict)  # whose gang waits: the node without room
    # Whose pod its node does not admit: the pod, what it says of its nodes, and why.
    refused: dict[str, tuple[WantedPod, NodeRules, str]] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)  # for which nothing can be done


def steps_of_existing(
    target: Target, item: Mapping[str, Any], stuck: frozenset[str], steps: Steps
) -> list[WantedPod]:
    """Add a switch of the object to `steps`; return the gated pods of a complete gang, or none."""
    # A gang is never changed while it runs: where the plan asks for another one, all its pods go,
    # and it is resumed when the last one is gone. `stuck` is as in `reconcile`; `steps` is changed.
    # Pods that are ending count as there, because their nodes are not free yet.
    uid, kind = target.spec.uid, BY_NAME[target.spec.kind]
    present = {name: pod for name, pod in target.pods.items() if not has_ended(pod)}
    alive = {name: pod for name, pod in present.items() if not p.is_ending(pod)}
    if target.workers and any(pod["metadata"]["uid"] in stuck for pod in alive.values()):
        steps.withdrawn.add(uid)
    withdrawn = target.withdrawn or uid in steps.withdrawn
    # The number of workers that was set at the last resume says which gang runs now.
    resizable = names.MAXIMUM in (item["metadata"].get("annotations") or {})
    resized = resizable and target.workers != item["spec"].get("parallelism", 1)
    if is_suspended(item):
        if target.workers and not (withdrawn or present or stops(item)):
            workers = target.workers if resized else None
            steps.actions.append(Switch(uid, item, kind, suspend=False, workers=workers))
        return []
    surplus = alive.keys() - {pod.name for pod in target.wanted}
    if not target.workers or withdrawn or surplus or resized:
        steps.actions.append(Switch(uid, item, kind, suspend=True))
        return []
    if any(pod.name not in alive for pod in target.wanted):
        return []
    return [pod for pod in target.wanted if p.is_gated(alive[pod.name])]


def has_pods_but_no_plan(item: Pod, pods: Mapping[str, Pod], *, is_over: bool) -> bool:
    """Return whether pods that we placed run for an object without a live job."""
    # Where the job `is_over`, its gated pods count, too: nothing will ever place them.
    running = [pod for pod in pods.values() if not (p.is_ending(pod) or has_ended(pod))]
    is_ours = not (is_suspended(item) or left_alone(item)) and queue_of(item) is None
    return is_ours and any(is_over or not p.is_gated(pod) for pod in running)


def reconcile(
    targets: Iterable[Target],
    orphans: Iterable[tuple[str, Pod]],
    seen: Seen,
    stuck: frozenset[str],
) -> Steps:
    """Compare the existing pods with the planned ones, and list the actions that are missing."""
    # Of the `targets` in order of arrival who came first gets room first. The `orphans` are our
    # pods of jobs that want none any more, with the uids of those jobs; `stuck` are uids of pods
    # for which the scheduler has found no room for too long.
    steps = Steps()
    for uid, pod in orphans:
        if not p.is_ending(pod):
            steps.actions.append(Delete(uid, pod, "Ended"))

    def tried(step: Callable[..., Any], target: Target, *more: Any) -> Any:
        try:
            return step(target, *more, steps)
        except Exception as error:  # noqa: BLE001 (of this job: the others go on)
            steps.failed[target.spec.uid] = error
            return []

    # Gates come last: what is deleted and created
    # stands first in the list, whichever job it is for.
    prepared = [(target, tried(_prepare, target, stuck)) for target in targets]
    # Free room is a sum over all pods of the cluster. Most turns open no gate and need none.
    free = free_room(seen) if any(gated for _, gated in prepared) else {}
    for target, gated in prepared:
        if gated:
            tried(_place, target, gated, seen.nodes, free)
    # A job that failed half-way gets nothing done, because half of a change would break its gang.
    if steps.failed:
        steps.actions = [action for action in steps.actions if action.job not in steps.failed]
    return steps


def _prepare(target: Target, stuck: frozenset[str], steps: Steps) -> list[WantedPod]:
    """Add to `steps` what precedes opening gates; return the gated pods of a complete gang."""
    if target.found is not None:
        return steps_of_existing(target, target.found, stuck, steps)
    # A gang has one image: where a template was edited, all pods go, and then come anew.
    edited = False
    for pod in target.pods.values():
        digest = (pod["metadata"].get("annotations") or {}).get(names.TEMPLATE)
        task = GROUPS[_task(pod)]  # without a digest it was made by an older controller
        edited |= digest not in (None, p.template_hash(target.spec, task))
    _shrink(target, stuck, steps, edited)
    return [] if edited else _grow(target, steps)


def _shrink(target: Target, stuck: frozenset[str], steps: Steps, edited: bool) -> None:
    """Add to `steps` the deletion of pods not planned or `edited`, and of stuck gangs."""
    pod_names = {pod.name for pod in target.wanted}
    uid = target.spec.uid
    hit = any(pod["metadata"]["uid"] in stuck for pod in target.pods.values())
    withdrawn = hit or target.withdrawn
    if hit:
        steps.withdrawn.add(uid)
    # Pods that work without the new ones go on. Otherwise the whole
    # gang goes: a part of it would hold its nodes and do nothing.
    least, needed = target.spec.min_workers, target.spec.job.ps_needed
    # All that run must be served: as if none needed a server, and as they do.
    running = working_gang(target.wanted, target.pods, least, lambda _: 0)
    served = working_gang(target.wanted, target.pods, least, needed)
    keeps = bool(running) and running == served
    # Workers go first: without their parameter servers they could not exchange a gradient.
    for name, pod in sorted(target.pods.items(), key=lambda item: (_task(item[1]), item[0])):
        if p.is_ending(pod):
            continue
        if name not in pod_names:
            steps.actions.append(Delete(uid, pod, "Shrunk"))
        elif edited:
            steps.actions.append(Delete(uid, pod, "Edited"))
        elif phase_of(pod) == "Failed":
            steps.actions.append(Delete(uid, pod, "Failed"))
        elif withdrawn and not (keeps and p.is_working(pod)):
            steps.actions.append(Delete(uid, pod, "Withdrawn"))


def _task(pod: Pod) -> int:
    """Return the index in `GROUPS` of the group of a pod: 0 for workers."""
    return int((pod["metadata"].get("labels") or {}).get(names.TASK) == TaskGroup.PS)


def _grow(target: Target, steps: Steps) -> list[WantedPod]:
    """Add missing pods to `steps`; return the gated pods if the gang is complete, else none."""
    if target.withdrawn or target.spec.uid in steps.withdrawn:
        return []
    pod_names = {pod.name for pod in target.wanted}
    anew = target.spec.network is not None and not pod_names & target.pods.keys()
    if (target.spec.resize == "restart" or anew) and target.pods.keys() - pod_names:
        return []  # the new gang begins when the last pod of the old one is gone
    gated, complete = [], not target.lacking
    if target.wanted:
        steps.actions += [Create(target.spec.uid, body) for body in target.lacking]
    for pod in target.wanted:
        existing = target.pods.get(pod.name)
        if existing is None:
            body = p.pod_object(target.spec, pod, target.plan, target.slot)
            steps.actions.append(Create(target.spec.uid, body))
            complete = False
        elif p.is_ending(existing) or phase_of(existing) == "Failed":
            complete = False
        elif p.is_gated(existing):
            gated.append(pod)
    return gated if complete else []


def _place(
    target: Target,
    gated: list[WantedPod],
    nodes: Mapping[str, Pod],
    free: Mapping[str, Amounts],
    steps: Steps,
) -> None:
    """Add to `steps` the opening of all gates of a gang if its pods fit; otherwise of none."""
    for pod in gated:
        if pod.node in nodes:  # where it is not admitted, it would never be bound
            rules = NodeRules.of(target.pods[pod.name]["spec"])
            if (why := rules.refusal(nodes[pod.node])) is not None:
                steps.refused[target.spec.uid] = pod, rules, why
                return
    # Amounts are exact fractions: rounding could refuse
    # a gang that just fits, or open one that does not.
    demand: dict[str, Amounts] = {}
    for pod in gated:
        is_worker = pod.task is TaskGroup.WORKER
        asked = target.spec.worker_requests if is_worker else target.spec.ps_requests
        take(demand.setdefault(pod.node, {}), {**asked, "pods": Fraction(1)}, -1)
    for node, amounts in demand.items():
        room = free.get(node, {})
        # A request of 0 asks nothing, also of a node that does not know the resource.
        if any(amount > room.get(name, 0) for name, amount in amounts.items() if amount):
            steps.short[target.spec.uid] = node
            return
    for node, amounts in demand.items():
        take(free[node], amounts)
    spec, annotations = target.spec, annotations_of(target.spec, target.wanted, target.pods)
    for pod in gated:
        body, labels, notes = target.pods[pod.name], {}, annotations(pod)
        if target.found is not None:  # its controller made it, so that nothing says yet why
            labels = identity(spec.name, spec.uid, pod.task)
            notes |= {names.PLAN: target.plan, names.SLOT: str(target.slot)}
            notes[names.NODE] = pod.node
        patch = p.opening_patch(body, pod.node, pod.hostname)
        steps.actions.append(Open(spec.uid, body, patch + p.marking_patch(body, labels, notes)))
