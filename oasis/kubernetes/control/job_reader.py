"""Reads the jobs of a cluster, reports the invalid ones on themselves, and keeps all statuses."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import LEFT_ALONE, NO_JOBSET, StatusWriter
from oasis.kubernetes.objects.conditions import COMPLETE, VALID, error_text
from oasis.kubernetes.objects.existing import (
    TRAINJOB,
    ExistingKind,
    Job,
    ended,
    own_uid,
    parse,
    version_of,
)
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.schema import HOLDING, TERMINAL
from oasis.kubernetes.objects.workload import left_alone
from oasis.model.errors import InstanceError
from oasis.scheduling.policy import Policy, wants

log = logging.getLogger("oasis.kubernetes")

Object = Mapping[str, Any]


class JobReader:
    """Reads the jobs of a cluster, each once per edit, and holds their statuses."""

    def __init__(self, clock: SlotClock, settings: ControllerSettings, metrics: Metrics) -> None:
        self._clock, self._settings, self._metrics = clock, settings, metrics
        self.statuses: dict[str, StatusWriter] = {}  # by uid of the object
        self.specs: dict[str, JobSpec] = {}  # jobs that make sense, by uid
        # Those of them that have not ended, oldest first: as they were read last.
        self.unfinished: dict[str, JobSpec] = {}
        self.complete: set[str] = set()  # uids of objects that their own controllers say are so
        self._first: dict[str, int] = {}  # versions in which jobs were first seen, by uid
        self._versions: dict[str, int] = {}  # that were read last, by uid
        self._stopped: dict[str, int | None] = {}  # versions for which nothing more is done, by uid

    def read_jobs(
        self, jobs: Iterable[Job], policy: Policy, live: Container[str], now: float
    ) -> None:
        """Read all jobs; `live`: the uids of those that run."""
        existing = set()
        self.unfinished = {}
        self.complete.clear()
        for kind, item in self._in_order(jobs):
            uid = item["metadata"]["uid"]
            if item["metadata"].get("deletionTimestamp"):
                continue
            existing.add(uid)
            try:
                spec = self._take(kind, item, policy, uid in live, now)
            except InstanceError as error:  # a mistake of its owner, looked for at each boundary
                self.specs.pop(uid, None)
                self.statuses[uid].put_aside("Invalid", "Invalid", str(error), now)
                continue
            except Exception as error:  # noqa: BLE001 (any error is reported on this job)
                self.fail(uid, error, "reading", now)
                continue
            if spec is not None:
                self.unfinished[uid] = spec
        kept: tuple[dict[str, Any], ...] = self.statuses, self.specs
        for known in (*kept, self._first, self._versions, self._stopped):
            for uid in known.keys() - existing:
                del known[uid]

    def has_new(self, jobs: Iterable[Job]) -> bool:
        """Return whether one of the jobs is new, so that its status is to name this controller."""
        return any(self._is_new(kind, item) for kind, item in jobs)

    def _is_new(self, kind: ExistingKind | None, item: Object) -> bool:
        job = self.statuses.get(item["metadata"]["uid"])
        if job is not None and job.placed == NO_JOBSET:
            return kind is TRAINJOB and bool(kind.parts(item))
        return job is None and not item["metadata"].get("deletionTimestamp")

    def _take(
        self, kind: ExistingKind | None, item: Object, policy: Policy, live: bool, now: float
    ) -> JobSpec | None:
        """Return the spec of one job; None if it has ended, is stopped or has no valid spec yet."""
        uid = item["metadata"]["uid"]
        job = self.statuses.get(uid)
        if job is None:
            job = self.statuses[uid] = StatusWriter(item, self._clock, kind)
        if own_uid(job.meta) != own_uid(item["metadata"]):  # made anew, with nothing written on it
            job.written = None
        job.meta = item["metadata"]
        is_out = job.phase in TERMINAL or self._is_stopped(job, item)
        if is_out or self._is_over(job, item, live, now):
            return None
        job.status["controller"] = self._settings.controller
        if (why := left_alone(item)) is not None:
            self.specs.pop(uid, None)
            job.waits(LEFT_ALONE, why, now)
        elif kind is TRAINJOB and not kind.parts(item):
            if uid not in self.specs:  # else the Trainer makes its JobSet anew
                job.waits(NO_JOBSET, "waits for the JobSet that the Trainer makes of it", now)
        elif uid not in self.specs or self.specs[uid].generation != self._versions[uid]:
            spec = parse(item, kind, self._clock, self._settings.resources)
            if spec.is_existing and spec.ps is not None and wants(policy, "plans_in_model"):
                expected = f"expected none: policy {policy.name} plans them by bandwidth"
                path = f"metadata.annotations.{names.SERVERS}"
                raise InstanceError(path, f"{expected}, got {spec.ps_count}")
            self.specs[uid] = spec
            job.valid(now)
        return self.specs.get(uid)

    def _is_stopped(self, job: StatusWriter, item: Object) -> bool:
        """Return whether the job failed and was not edited since, under any controller."""
        uid = job.meta["uid"]
        version = self._versions[uid] = version_of(item, job.kind)
        if uid not in self._stopped and job.phase == "Failed":
            condition = job.said(COMPLETE) or job.said(VALID)
            # A condition notes the generation that it is about. The version of another kind is a
            # checksum, which no condition holds, so its failed objects count as not edited.
            is_edited = job.kind is None and condition.get("observedGeneration") != version
            self._stopped[uid] = None if is_edited else version
        return uid in self._stopped and self._stopped[uid] == version

    def fail(self, uid: str, error: Exception, doing: str, now: float) -> None:
        """Report an error on the job that causes it; the job is ignored until it is edited."""
        # An `InstanceError` is a mistake of its owner: the job is Invalid. Everything else is a
        # fault of ours or of the policy: the job is Failed, and the traceback is in the log.
        self.specs.pop(uid, None)
        self.unfinished.pop(uid, None)
        job, self._stopped[uid] = self.statuses.get(uid), self._versions.get(uid)
        self._metrics.job_errors.labels(doing).inc()
        name = uid if job is None else job.name
        if isinstance(error, InstanceError):
            log.warning("%s: %s, found when %s it", name, error, doing)
            if job is not None:
                job.put_aside("Invalid", "Invalid", str(error), now)
            return
        log.error("%s: an error when %s it", name, doing, exc_info=error, extra={"job": name})
        if job is not None:
            why = f"{error_text(error)}, when {doing} it; see the log of the controller, and edit "
            job.put_aside("Failed", "Error", f"{why}the job to try again", now)

    def fail_to_train(self, uid: str, reason: str, message: str, now: float) -> None:
        """Stop a job with too many failures of its own processes, until it is edited."""
        self._stopped[uid] = self.specs.pop(uid).generation
        self.unfinished.pop(uid, None)
        self.statuses[uid].failed_to_train(reason, message, now)

    def _in_order(self, jobs: Iterable[Job]) -> list[Job]:
        """Return all jobs, each after its kind, in order of creation."""

        # Times of creation are whole seconds. Within a second it is the version that tells, the
        # first one that was seen: later ones tell when we wrote the status.
        def age(entry: Job) -> tuple[str, int]:
            meta = entry[1]["metadata"]
            first = self._first.setdefault(meta["uid"], int(meta.get("resourceVersion", 0)))
            return meta.get("creationTimestamp", ""), first

        # Jobs arrive in this order, so a list that the API
        # server returns in another one changes no plan.
        return sorted(jobs, key=age)

    def recall(self, unwritten: Mapping[str, Any], jobs: Iterable[Job]) -> None:
        """Restore statuses that were decided, but perhaps not written before the takeover."""
        for kind, item in jobs:
            uid = item["metadata"]["uid"]
            if uid in unwritten:
                self.statuses[uid] = StatusWriter(item, self._clock, kind)
                # `written` stays what the object says, so that
                # the difference is written in the next turn.
                self.statuses[uid].status = dict(unwritten[uid])

    def _is_over(self, job: StatusWriter, item: Object, live: bool, now: float) -> bool:
        """Return whether an object has ended and its job is left out; a failure is reported."""
        # One that is complete leaves at the next boundary, where its utility is told; one that
        # failed leaves at once, also while it waits for a node or for its pods.
        if job.kind is None:
            return False
        complete, failed = ended(item, job.kind)
        if failed is not None and (live or job.phase in ("Waiting", *HOLDING)):
            self._stopped[job.meta["uid"]] = self._versions.get(job.meta["uid"])
            job.failed_to_train(f"{job.kind.name}Failed", failed, now)
        if complete and live:
            self.complete.add(job.meta["uid"])
            return False
        # A job that ended before it ever ran here earned nothing here, and is left out.
        return complete or failed is not None
