"""Compare pods with plan: the list of what has to be done so that they agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from oasis.kubernetes.acting.actions import Create, Delete, Open, Pod
from oasis.kubernetes.acting.existing_steps import steps_of_existing
from oasis.kubernetes.acting.steps import Steps, Target
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster.existing_pods import sending_patch
from oasis.kubernetes.cluster.pods import WantedPod
from oasis.kubernetes.names import TASK

Free = dict[str, dict[str, Fraction]]


def reconcile(
    targets: Iterable[Target],
    orphans: Iterable[tuple[str, Pod]],
    free: Free,
    stuck: frozenset[str] = frozenset(),
) -> Steps:
    """Compare what is there with what is wanted.

    Parameters
    ----------
    targets : iterable of Target
        Jobs in order of arrival: who came first gets room first.
    orphans : iterable of (str, mapping)
        Our pods of jobs that want none any more, with the uids of those jobs.
    free : dict
        What is left of each node; changed as room is given out.
    stuck : frozenset of str
        Uids of pods for which the scheduler has found no room for too long.
    """
    steps = Steps()
    for uid, pod in orphans:
        if not p.is_ending(pod):
            steps.actions.append(Delete(uid, pod, "Ended"))
    waiting: list[tuple[Target, list[WantedPod]]] = []
    for target in targets:
        try:
            gated = _prepare(target, stuck, steps)
        except Exception as error:  # noqa: BLE001 (of this job: the others go on)
            steps.failed[target.spec.uid] = error
            continue
        if gated:
            waiting.append((target, gated))
    for target, gated in waiting:
        try:
            _place(target, gated, free, steps)
        except Exception as error:  # noqa: BLE001 (of this job: the others go on)
            steps.failed[target.spec.uid] = error
    if steps.failed:
        steps.actions = [action for action in steps.actions if action.job not in steps.failed]
    return steps


def _prepare(target: Target, stuck: frozenset[str], steps: Steps) -> list[WantedPod]:
    """What has to be done before gates are opened; the gated pods of the gang if all are there."""
    if target.found is not None:
        return steps_of_existing(target, target.found, stuck, steps)
    _shrink(target, stuck, steps)
    return _grow(target, steps)


def _shrink(target: Target, stuck: frozenset[str], steps: Steps) -> None:
    """Delete pods that the plan does not name, workers first, and gangs that found no room."""
    wanted = {pod.name for pod in target.wanted}
    uid = target.spec.uid
    hit = any(pod["metadata"]["uid"] in stuck for pod in target.pods.values())
    if hit:
        steps.withdrawn.add(uid)
    keeps = not (hit or target.withdrawn) or _works_without_the_new(target)
    for name, pod in sorted(target.pods.items(), key=_workers_first):
        if p.is_ending(pod):
            continue
        phase = (pod.get("status") or {}).get("phase")
        if name not in wanted:
            steps.actions.append(Delete(uid, pod, "Shrunk"))
        elif phase == "Failed":
            steps.actions.append(Delete(uid, pod, "Failed"))
        elif (hit or target.withdrawn) and not (keeps and p.is_working(pod)):
            steps.actions.append(Delete(uid, pod, "Withdrawn"))


def _workers_first(item: tuple[str, Pod]) -> tuple[bool, str]:
    labels = item[1]["metadata"].get("labels") or {}
    return labels.get(TASK) != "worker", item[0]


def _works_without_the_new(target: Target) -> bool:
    """Whether the pods that run are a gang by themselves, so that only the new ones go."""
    counts = {"worker": 0, "ps": 0}
    for pod in target.wanted:
        found = target.pods.get(pod.name)
        if found is not None and p.is_working(found):
            counts[pod.task] += 1
    job = target.spec.job
    return counts["worker"] >= target.spec.min_workers and counts["ps"] >= int(
        job.ps_needed(counts["worker"])
    )


def _grow(target: Target, steps: Steps) -> list[WantedPod]:
    """Create missing pods; return the gated pods of the gang if all are there, else none."""
    if target.withdrawn or target.spec.uid in steps.withdrawn:
        return []
    if target.spec.resize == "restart" and target.pods.keys() - {w.name for w in target.wanted}:
        return []  # the new gang begins when the last pod of the old one is gone
    gated, complete = [], True
    for pod in target.wanted:
        found = target.pods.get(pod.name)
        if found is None:
            body = p.pod_object(target.spec, pod, target.plan, target.slot)
            steps.actions.append(Create(target.spec.uid, pod.name, body))
            complete = False
        elif p.is_ending(found) or (found.get("status") or {}).get("phase") == "Failed":
            complete = False
        elif p.is_gated(found):
            gated.append(pod)
    return gated if complete else []


def _place(target: Target, gated: list[WantedPod], free: Free, steps: Steps) -> None:
    """Open the gates of all pods of a gang if all of them fit, and of none otherwise."""
    taken: list[tuple[str, Mapping[str, Fraction]]] = []
    for pod in gated:
        asked = target.spec.worker_requests if pod.task == "worker" else target.spec.ps_requests
        demand = {**asked, "pods": Fraction(1)}
        room = free.get(pod.node, {})
        if any(amount > room.get(name, 0) for name, amount in demand.items() if amount):
            for node, back in taken:
                _take(free[node], back, -1)
            steps.short[target.spec.uid] = pod.node
            return
        _take(room, demand, 1)
        taken.append((pod.node, demand))
    for pod in gated:
        found = target.pods[pod.name]
        if target.found is None:
            patch = p.opening_patch(found, pod.node, pod.hostname)
        else:
            patch = sending_patch(found, pod, target.spec, target.plan, target.slot)
        steps.actions.append(Open(target.spec.uid, found, patch))


def _take(room: dict[str, Fraction], demand: Mapping[str, Fraction], sign: int) -> None:
    for name, amount in demand.items():
        room[name] = room.get(name, Fraction(0)) - sign * amount
