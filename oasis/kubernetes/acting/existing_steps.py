"""What has to be done for a job whose pods another controller makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.acting.actions import Switch
from oasis.kubernetes.acting.steps import Steps, Target
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster.nodes import has_ended
from oasis.kubernetes.cluster.pods import WantedPod
from oasis.kubernetes.objects.existing_kinds import BY_NAME, is_suspended


def steps_of_existing(
    target: Target, found: Mapping[str, Any], stuck: frozenset[str], steps: Steps
) -> list[WantedPod]:
    """Suspend or resume the object; return the gated pods of its gang if all are there, else none.

    A gang is never changed while it runs: where the plan asks for another one, all its pods go,
    and it is resumed when the last one is gone.

    Parameters
    ----------
    target : Target
        The job, and the pods that it is to have.
    found : mapping
        The object.
    stuck : frozenset of str
        Uids of pods for which the scheduler has found no room for too long.
    steps : Steps
        Changed.
    """
    uid, kind = target.spec.uid, BY_NAME[target.spec.kind]
    there = {name: pod for name, pod in target.pods.items() if not has_ended(pod)}
    alive = {name: pod for name, pod in there.items() if not p.is_ending(pod)}
    if not target.workers:
        if not is_suspended(found):
            steps.actions.append(Switch(uid, found, kind, suspend=True))
        return []
    if any(pod["metadata"]["uid"] in stuck for pod in alive.values()):
        steps.withdrawn.add(uid)
    withdrawn = target.withdrawn or uid in steps.withdrawn
    resizable = names.MAXIMUM in (found["metadata"].get("annotations") or {})
    if is_suspended(found):
        if not (withdrawn or there):
            workers = target.workers if resizable else None
            steps.actions.append(Switch(uid, found, kind, suspend=False, workers=workers))
        return []
    others = alive.keys() - {pod.name for pod in target.wanted}
    resized = resizable and target.workers != found["spec"].get("parallelism", 1)
    if withdrawn or others or resized:
        steps.actions.append(Switch(uid, found, kind, suspend=True))
        return []
    if any(pod.name not in alive for pod in target.wanted):
        return []
    return [pod for pod in target.wanted if p.is_gated(alive[pod.name])]


def has_pods_but_no_plan(found: Mapping[str, Any], pods: Mapping[str, Any]) -> bool:
    """Whether pods that we placed still run for an object that no live job stands for."""
    return not is_suspended(found) and any(
        not (p.is_gated(pod) or p.is_ending(pod) or has_ended(pod)) for pod in pods.values()
    )
