"""A snapshot of the cluster at one moment, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster.nodes import allocatable, has_ended, phase_of
from oasis.kubernetes.objects.quantities import Amounts, quantity, requests_of, take
from oasis.model.errors import InstanceError
from oasis.model.groups import TaskGroup

Object = Mapping[str, Any]


def free_room(
    nodes: Mapping[str, Object], pods: Iterable[Object], own: Container[str] = ()
) -> dict[str, Amounts]:
    """Return the free capacity of each node beside every pod bound, or about to bind."""
    # `own` are uids of pods.
    free = {name: dict(allocatable(node)) for name, node in nodes.items()}
    for pod in pods:
        # A pod that is ending still holds its node, until the kubelet has stopped it.
        if has_ended(pod):
            continue
        is_ours = pod["metadata"]["uid"] in own
        node = p.target_node(pod) if is_ours else pod["spec"].get("nodeName")
        if node in free:
            take(free[node], {**requests_of(pod["spec"]), "pods": Fraction(1)})
    return free


def working_gang(
    wanted: Iterable[p.WantedPod],
    pods: Mapping[str, Object],
    min_workers: int,
    ps_needed: Any,
) -> list[str]:
    """Uids of the workers that do work now: none unless the gang is complete."""
    # Where parameter servers are missing, only workers that the others can serve count.
    workers, ps = [], 0
    for pod in wanted:
        existing = pods.get(pod.name)
        if existing is not None and p.is_working(existing):
            if pod.task is TaskGroup.WORKER:
                workers.append(existing["metadata"]["uid"])
            else:
                ps += 1
    while workers and int(ps_needed(len(workers))) > ps:
        workers.pop()
    return workers if len(workers) >= min_workers else []


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


def has_succeeded(wanted: Iterable[p.WantedPod], pods: Mapping[str, Object]) -> bool:
    """Return whether the chief has succeeded: worker 0, or the first pod if none has an index."""
    workers = [pod for pod in wanted if pod.task is TaskGroup.WORKER]
    chief = min(workers, key=lambda pod: pod.index or 0, default=None)
    existing = None if chief is None else pods.get(chief.name)
    return existing is not None and phase_of(existing) == "Succeeded"
