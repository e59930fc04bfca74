"""Reads the jobs of a cluster, says on each whether it makes sense, and keeps its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.control.statuses import Job
from oasis.kubernetes.objects.existing import parse_existing
from oasis.kubernetes.objects.existing_kinds import ExistingKind, ended, job_items, version_of
from oasis.kubernetes.objects.oasis_job import Clock, JobSpec, parse_job
from oasis.kubernetes.objects.quantities import ResourceMap
from oasis.kubernetes.objects.schema import TERMINAL
from oasis.kubernetes.planning.driver import Driver, plans_ahead
from oasis.model.errors import InstanceError
from oasis.scheduling.policy import Policy

Seen = Mapping[str, list[Any]]


class JobReader:
    """The jobs that are there, read once for each edit.

    Parameters
    ----------
    clock : Clock
        Slots.
    resources : ResourceMap
        Turns requests into demands.

    Attributes
    ----------
    statuses : dict of str to Job
        By uid of the object.
    specs : dict of str to JobSpec
        Jobs that make sense, by uid.
    complete : set of str
        Uids of objects whose own controllers say that they are complete.
    """

    def __init__(self, clock: Clock, resources: ResourceMap) -> None:
        self._clock, self._resources = clock, resources
        self.statuses: dict[str, Job] = {}
        self.specs: dict[str, JobSpec] = {}
        self.complete: set[str] = set()
        self._first: dict[str, int] = {}  # versions in which jobs were first seen, by uid

    def read(self, seen: Seen, driver: Driver, now: float) -> dict[str, JobSpec]:
        """Unfinished jobs that make sense, by uid, in order of creation.

        Parameters
        ----------
        seen : mapping
            Objects by plural of their kind.
        driver : Driver
            Knows which jobs are live, and which policy has to plan them.
        now : float
            Time, for conditions.
        """
        found = {}
        there = set()
        live = driver.by_uid
        self.complete.clear()
        for kind, item in self._in_order(seen):
            meta = item["metadata"]
            uid = meta["uid"]
            if meta.get("deletionTimestamp"):
                continue
            there.add(uid)
            job = self.statuses.get(uid)
            if job is None:
                job = self.statuses[uid] = Job(item, self._clock, kind)
            job.meta = meta
            if job.phase in TERMINAL or self._is_over(job, item, uid in live, now):
                continue
            self._read_one(job, item, driver.policy, now)
            if uid in self.specs:
                found[uid] = self.specs[uid]
        self.statuses = {uid: job for uid, job in self.statuses.items() if uid in there}
        self.specs = {uid: spec for uid, spec in self.specs.items() if uid in there}
        self._first = {uid: version for uid, version in self._first.items() if uid in there}
        return found

    def _in_order(self, seen: Seen) -> list[tuple[ExistingKind | None, Mapping[str, Any]]]:
        """Jobs in order of creation.

        Times of creation are whole seconds. Within a second it is the version that tells, the first
        one that was seen: later ones tell when we wrote the status.
        """
        for _, item in job_items(seen):
            meta = item["metadata"]
            self._first.setdefault(meta["uid"], int(meta.get("resourceVersion", 0)))

        def age(entry: tuple[ExistingKind | None, Mapping[str, Any]]) -> tuple[str, int]:
            meta = entry[1]["metadata"]
            return meta.get("creationTimestamp", ""), self._first[meta["uid"]]

        return sorted(job_items(seen), key=age)

    def recall(self, unwritten: Mapping[str, Any], seen: Seen) -> None:
        """Statuses that were decided, but perhaps not written before the controller ended."""
        for kind, item in job_items(seen):
            uid = item["metadata"]["uid"]
            if uid in unwritten:
                self.statuses[uid] = Job(item, self._clock, kind)
                self.statuses[uid].status = dict(unwritten[uid])

    def _read_one(self, job: Job, item: Mapping[str, Any], policy: Policy, now: float) -> None:
        """Read what is new or was edited; what makes no sense is told on the object."""
        uid, kind = job.meta["uid"], job.kind
        try:
            known = self.specs.get(uid)
            if known is not None and known.generation == version_of(item, kind):
                return
            if kind is None:
                spec = parse_job(item, self._clock, self._resources)
            else:
                spec = parse_existing(item, kind, self._clock, self._resources)
            check_plannable(spec, policy)
            self.specs[uid] = spec
            job.valid(now)
        except InstanceError as error:
            self.specs.pop(uid, None)
            job.invalid(str(error), now)

    def _is_over(self, job: Job, item: Mapping[str, Any], live: bool, now: float) -> bool:
        """Whether the controller of its kind says that a job has ended, and no more is to be done.

        One that is complete leaves at the next boundary, where its utility is told; one that failed
        leaves at once.
        """
        if job.kind is None:
            return False
        complete, failed = ended(item, job.kind)
        if failed is not None and live:
            job.given_up(failed, now)
        if complete and live:
            self.complete.add(job.meta["uid"])
            return False
        return complete or failed is not None


def check_plannable(spec: JobSpec, policy: Policy) -> None:
    """Raise `InstanceError` if a policy that plans ahead cannot plan such a job."""
    if not plans_ahead(policy):
        return
    if spec.fixed_ps is not None:
        expected = f"expected none: policy {policy.name} plans them by bandwidth"
        path = f"metadata.annotations.{names.SERVERS}"
        raise InstanceError(path, f"{expected}, got {spec.fixed_ps}")
