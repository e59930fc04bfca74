"""The objects as of one look; what several readers need of them is made once, when needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from oasis.kubernetes.api.resources import CLASSES, NODES, PODS, WINDOWS, ResourceKind
from oasis.kubernetes.cluster.pods import Claim, Pods, claimed, claims_of
from oasis.kubernetes.objects.capacity_window import CapacityWindow, parse_window
from oasis.kubernetes.objects.conditions import said
from oasis.kubernetes.objects.existing import ExistingKind, Job, job_items
from oasis.kubernetes.objects.utility_class import Classes
from oasis.model.errors import InstanceError

Object = Mapping[str, Any]
# Taints by which the control plane says that a node is away. A node has them for a moment longer
# than its conditions say so, and for as long no new pod gets there.
_STATES = "not-ready unreachable unschedulable network-unavailable out-of-service"
AWAY = frozenset(f"node.kubernetes.io/{state}" for state in _STATES.split())


class Seen:
    """The objects of a cluster as they were seen at one moment."""

    # What is made of them is made when it is first asked for: most turns of the controller need
    # little of it.
    def __init__(self, objects: Mapping[str, list[Any]]) -> None:
        self.objects = objects  # by plural of their kind

    @cached_property
    def classes(self) -> Classes:
        """The utility classes."""
        return Classes(self.of(CLASSES))

    @cached_property
    def jobs(self) -> list[Job]:
        """All jobs to schedule; what those of other kinds do not say is as their classes say it."""
        jobs, fill = job_items(self.objects), self.classes.filled
        return [(kind, fill(item) if kind else item) for kind, item in jobs]

    @cached_property
    def existing(self) -> dict[str, tuple[ExistingKind, Object]]:
        """The jobs whose pods other controllers create, as kind and object, by uid."""
        return {item["metadata"]["uid"]: (kind, item) for kind, item in self.jobs if kind}

    @cached_property
    def claims(self) -> dict[Claim, str]:
        """The uids of the jobs by the marks of their pods."""
        return claims_of(self.jobs)

    @cached_property
    def _owners(self) -> list[tuple[str | None, Object]]:
        return [(claimed(pod, self.claims), pod) for pod in self.of(PODS)]

    @cached_property
    def pods(self) -> Pods:
        """Our pods by uid of their job and by name, whichever controller made them."""
        jobs: dict[str, dict[str, Object]] = {}
        for uid, pod in self._owners:
            if uid is not None:
                jobs.setdefault(uid, {})[pod["metadata"]["name"]] = pod
        return jobs

    @property
    def ours(self) -> Iterator[Object]:
        """Our pods one by one."""
        return (pod for uid, pod in self._owners if uid is not None)

    @cached_property
    def others(self) -> list[Object]:
        """The pods of others."""
        return [pod for uid, pod in self._owners if uid is None]

    @cached_property
    def nodes(self) -> dict[str, Object]:
        """The nodes by name."""
        return {node["metadata"]["name"]: node for node in self.of(NODES)}

    @cached_property
    def windows(self) -> dict[str, CapacityWindow | str]:
        """The capacity windows by name; of one that makes no sense what is wrong with it."""
        windows: dict[str, CapacityWindow | str] = {}
        for item in self.of(WINDOWS):
            try:
                windows[item["metadata"]["name"]] = parse_window(item)
            except InstanceError as error:
                windows[item["metadata"]["name"]] = str(error)
        return windows

    @cached_property
    def usable(self) -> frozenset[str]:
        """Names of the nodes that take new pods."""
        return frozenset(name for name, node in self.nodes.items() if is_usable(node))

    def of(self, kind: ResourceKind) -> list[Object]:
        """Return the objects of a kind as they are."""
        return self.objects.get(kind.plural, [])


def is_usable(node: Mapping[str, Any]) -> bool:
    """Return whether `node` takes new pods: Ready, not cordoned, not being deleted."""
    spec = node.get("spec") or {}
    if node["metadata"].get("deletionTimestamp") or spec.get("unschedulable"):
        return False
    if any(taint["key"] in AWAY for taint in spec.get("taints") or ()):
        return False
    return said(node, "Ready").get("status") == "True"
