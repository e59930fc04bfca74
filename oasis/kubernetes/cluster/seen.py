"""What is there at one moment: each kind of object is read here, once, and passed on as facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from oasis.kubernetes.api.resources import CLASSES, NODES, PODS, WINDOWS, ResourceKind
from oasis.kubernetes.cluster.pods import Claim, Pods, claimed, claims_of
from oasis.kubernetes.objects.capacity_window import CapacityWindow, window_or_error
from oasis.kubernetes.objects.existing import ExistingKind, Job, job_items
from oasis.kubernetes.objects.utility_class import Classes, with_defaults

Object = Mapping[str, Any]


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
        """All jobs to schedule; what they do not say is as their classes say it."""
        return job_items(with_defaults(self.objects, self.classes))

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
        return {item["metadata"]["name"]: window_or_error(item) for item in self.of(WINDOWS)}

    def of(self, kind: ResourceKind) -> list[Object]:
        """Return the objects of a kind as they are."""
        return self.objects.get(kind.plural, [])
