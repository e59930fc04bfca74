"""A job with its pods, and what is to be done about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oasis.kubernetes.acting.actions import Action, Pod
from oasis.kubernetes.cluster.pods import WantedPod
from oasis.kubernetes.objects.oasis_job import JobSpec


@dataclass(frozen=True, slots=True)
class Target:
    """A job, the pods it is to have and those it has.

    Parameters
    ----------
    spec : JobSpec
        The job.
    wanted : tuple of WantedPod
        By the plan, workers first.
    plan : str
        Hash of the allocation.
    pods : mapping of str to mapping
        Pods that are there, by name.
    slot : int
        The present slot.
    withdrawn : bool
        Whether its gang was withdrawn in this slot: nothing more is placed before the next.
    found : mapping or None
        The object, if another controller makes the pods.
    workers : int
        By the plan, for such an object.
    """

    spec: JobSpec
    wanted: tuple[WantedPod, ...]
    plan: str
    pods: Mapping[str, Pod]
    slot: int
    withdrawn: bool = False
    found: Mapping[str, Any] | None = None
    workers: int = 0


@dataclass(slots=True)
class Steps:
    """What is to be done, in this order; deletions first.

    Attributes
    ----------
    actions : list of Action
        Independent of each other.
    withdrawn : set of str
        Uids of jobs whose gang is withdrawn.
    short : dict of str to str
        By uid of a job whose gang waits for room: the node that has too little.
    failed : dict of str to Exception
        By uid of a job for which nothing can be done: the error that says why.
    """

    actions: list[Action] = field(default_factory=list)
    withdrawn: set[str] = field(default_factory=set)
    short: dict[str, str] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)
