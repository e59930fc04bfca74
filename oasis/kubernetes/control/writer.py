"""Writes planned actions and statuses to the API server, many requests at a time."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.acting import Action, Create, Open, Switch, action_word
from oasis.kubernetes.api.connection import ApiError, LostAnswerError, TooLateError
from oasis.kubernetes.api.resources import (
    EVENTS,
    NETWORK_POLICIES,
    OASIS_JOBS,
    PODS,
    SERVICES,
    WINDOWS,
    Objects,
    ResourceKind,
)
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.cluster.pods import is_gated
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.patience import Failure, longer
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.objects.conditions import said, time_text
from oasis.kubernetes.objects.existing import JOB, WORKLOAD, controller_of, counts_of, own_uid
from oasis.kubernetes.objects.workload import switching

log = logging.getLogger("oasis.kubernetes")

WRITERS = 16  # requests in flight at a time
CREATED = {"Pod": PODS, "Service": SERVICES, "NetworkPolicy": NETWORK_POLICIES}


class ClusterWriter:
    """Writes pods and statuses, many requests at a time."""

    # The `stores`, by plural of their kind, learn at once what a write answered.
    def __init__(
        self, objects: Objects, stores: Mapping[str, ObjectStore], metrics: Metrics
    ) -> None:
        self._objects, self._stores, self._metrics = objects, stores, metrics
        self._pool = ThreadPoolExecutor(WRITERS, thread_name_prefix="write")
        self._untold = ""  # why a status, or the conditions of a window, could not be written

    def close(self) -> None:
        """Wait for the writes under way; those that have not begun are cancelled."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def do(self, actions: Iterable[Action]) -> list[Failure]:
        """Carry out `actions` in parallel; return each failure as job, action and error."""
        return [failure for failure in self._each(self._do_one, actions) if failure is not None]

    def try_out(self, tries: Iterable[Create]) -> list[Failure]:
        """Create pods in a dry run, in parallel; return the refusals of the API server."""
        return [failure for failure in self._each(self._would_create, tries) if failure is not None]

    def _each(self, ask: Callable[[Any], Any], of: Iterable[Any]) -> list[Any]:
        """Call `ask` with each of these objects in parallel; return the results in order."""
        begun = [self._pool.submit(ask, each) for each in of]
        wait(begun)  # once: to be woken by each of thousands takes time
        return [done.result() for done in begun]

    def _would_create(self, action: Create) -> Failure | None:
        try:
            self._objects.create(PODS, action.body, dry_run=True)
        except ApiError as error:
            # A webhook that cannot be asked this way may let the pod be made.
            if "does not support dry run" not in error.message:
                return action.job, "create", f"create: {error}"
        except LostAnswerError as error:  # which says nothing of the pod
            log.warning("%s", error)
        return None

    def write_statuses(self, jobs: Iterable[StatusWriter]) -> None:
        """Write each status that changed, and the events that say why."""
        now = time.monotonic()
        # What an older CRD refuses is refused again: it is tried less and less often.
        due = [job for job in jobs if job.status != job.written and now >= job.again_at]
        for job, error in zip(due, self._each(self._write, due), strict=True):
            job.refusals = job.refusals + 1 if isinstance(error, ApiError) else 0
            job.again_at = now + longer(job.refusals) if job.refusals else 0.0
            if isinstance(error, (ApiError, LostAnswerError)):
                if not self._is_told(error):
                    log.warning("%s; tried again", error)
            elif error is not None:
                self._metrics.job_errors.labels("telling").inc()
                log.error("a status could not be written; tried again", exc_info=error)

    def write_windows(self, windows: Iterable[tuple[Mapping[str, Any], list[Any]]]) -> None:
        """Write the conditions of capacity windows; refused ones come at the next boundary."""
        self._each(self._write_window, windows)

    def _is_told(self, error: ApiError | LostAnswerError) -> bool:
        """Return whether `error` has the cause of the one before; remember its own."""
        before, self._untold = self._untold, error.advice or str(error)
        return before == self._untold

    def _write_window(self, window: tuple[Mapping[str, Any], list[Any]]) -> None:
        item, conditions = window
        # Of two controllers that write at a time, one is refused (409): the list is everybody's.
        meta = {name: item["metadata"][name] for name in ("name", "resourceVersion")}
        body = {"metadata": meta, "status": {"conditions": conditions}}
        try:
            answer = self._objects.merge_patch(WINDOWS, body, "status")
            self._stores[WINDOWS.plural].put(WINDOWS.kept(answer))
        except (ApiError, LostAnswerError) as error:
            is_changed = isinstance(error, ApiError) and error.status == 409
            if not (is_changed or self._is_told(error)):
                log.warning("%s; what becomes of the window is only in this log", error)

    def _do_one(self, action: Action) -> Failure | None:
        """Carry out one action; return why it failed, or None if it was done."""
        kind = action_word(action)
        try:
            self._one(action)
        except (ApiError, LostAnswerError) as error:
            log.warning("%s: %s", kind, error)
            return action.job, kind, f"{kind}: {error}"
        except TooLateError:  # of no job: whoever holds the lease now does it
            raise
        except Exception as error:  # noqa: BLE001 (of this job: it is told there)
            return action.job, kind, error
        self._metrics.actions.labels(kind).inc()
        return None

    def _one(self, action: Action) -> None:
        """Carry out one action, and put the answer into the store of its kind."""
        # Each answer goes into a store before the watch tells of it:
        # otherwise the next turn would plan the same write once more.
        kind = PODS
        if isinstance(action, Create):
            kind = CREATED[action.body["kind"]]
            written = self._objects.create(kind, action.body)
        elif isinstance(action, Switch):
            if action.workers is not None and action.kind is WORKLOAD:
                self._resize(action.found, action.workers)
                return
            kind, body = _switch_patch(action)
            written = self._objects.merge_patch(kind, body)
            if kind != action.kind.where:  # the owner of a Workload, which no store has
                return
        elif isinstance(action, Open):
            written = self._open(action)
        else:
            self._objects.delete(PODS, action.pod)
            self._stores[PODS.plural].end(action.pod)
            return
        if not self._objects.is_dry:
            self._stores[kind.plural].put(kind.kept(written))

    def _resize(self, item: Mapping[str, Any], workers: int) -> None:
        """Set the worker count of a Workload's Job, once the Job says that it is suspended."""
        # Before that, Kueue would make the Workload anew, active.
        owner, space = item["spec"]["owner"], item["metadata"]["namespace"]
        meta = {"name": owner["name"], "namespace": space, "uid": owner["uid"]}
        # A patch that changes nothing answers with the Job as it is.
        job = self._objects.merge_patch(JOB.where, {"metadata": meta})
        change = counts_of(job, workers)
        is_suspended = said(job, "Suspended").get("status") == "True"
        if is_suspended and not change.items() <= job["spec"].items():
            meta["resourceVersion"] = job["metadata"]["resourceVersion"]
            self._objects.merge_patch(JOB.where, {"metadata": meta, "spec": change})

    def _open(self, action: Open) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._objects.json_patch(PODS, action.pod, body=action.patch)
        except ApiError as error:
            # 409 and 422 are also the answers if the gate is gone already: the patch tests for the
            # gate, and the node selector of a pod without it cannot change.
            if error.status not in (409, 422):
                raise
            # an answer may have been lost: is it as we wanted?
            meta = action.pod["metadata"]
            existing = self._objects.get(PODS, meta["name"], meta["namespace"])
            if existing is None or existing["metadata"]["uid"] != meta["uid"] or is_gated(existing):
                raise
            return existing
        return answer

    def _write(self, job: StatusWriter) -> Exception | None:
        """Write one status and its events; return the error, or None if there was none."""
        status = dict(job.status)
        try:
            # The status comes before its events: a takeover goes on from the status, and events are
            # for people alone. An event leaves the list only once it is written.
            body = job.body()
            if not job.is_claimed and not self._claims(job, body["metadata"]):
                return None  # another controller was faster
            if job.kind is None:
                self._objects.apply(OASIS_JOBS, body, "status")
            else:
                self._objects.merge_patch(job.kind.where, body)
            while job.news:
                self._objects.create(EVENTS, _event(job, *job.news[0]))
                job.news.pop(0)
        except ApiError as error:
            # A patch may also meet an object of the same name with another uid.
            is_another = "uid" in error.message and "modified" not in error.message
            if error.status == 404 or (error.status == 409 and is_another):  # the object is gone
                job.written = status
                return None
            return error
        except TooLateError:
            raise
        except Exception as error:  # noqa: BLE001 (of this job: it is logged)
            return error
        job.written = status
        return None

    def _claims(self, job: StatusWriter, meta: dict[str, Any]) -> bool:
        """Return whether no other controller has the job; put its known version into `meta`."""
        plural = OASIS_JOBS.plural if job.kind is None else job.kind.where.plural
        store = self._stores.get(plural)
        existing = None if store is None else store.get(meta["namespace"], meta["name"])
        if existing is not None:
            meta["resourceVersion"] = existing["metadata"]["resourceVersion"]
        mine = (None, job.status.get("controller"))
        return existing is None or controller_of(existing, job.kind) in mine


def _switch_patch(action: Switch) -> tuple[ResourceKind, dict[str, Any]]:
    """Return the kind and the merge patch that suspend or resume an object with its uid."""
    if action.kind is WORKLOAD:
        return switching(action.found, action.suspend)
    spec: dict[str, Any] = {"suspend": action.suspend}
    if action.workers is not None:
        spec |= counts_of(action.found, action.workers)
    # With the uid, a patch is refused (409) if the
    # object was deleted and created under the same name.
    meta = {name: action.found["metadata"][name] for name in ("name", "namespace", "uid")}
    return action.kind.where, {"metadata": meta, "spec": spec}


def _event(job: StatusWriter, kind: str, reason: str, message: str, at: float) -> dict[str, Any]:
    """Build an Event of a job; equal content gives an equal name, so that it is created once."""
    meta = job.meta
    # A name made from the content lets an event whose answer was lost be sent again without a
    # second one appearing. At most 220 of the 253 characters of a name are used.
    content = "\0".join((reason, message, str(at)))
    number = hashlib.sha256(content.encode()).hexdigest()[:10]
    moment = time_text(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{meta['name'][:200]}.{meta['uid'][:8]}.{number}",
            "namespace": meta["namespace"],
        },
        "involvedObject": {
            "apiVersion": names.API_VERSION if job.kind is None else job.kind.api_version,
            "kind": names.KIND if job.kind is None else job.kind.name,
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": own_uid(meta),
        },
        "type": kind,
        "reason": reason,
        "message": message[:1024],
        "source": {"component": names.FIELD_MANAGER},
        "reportingComponent": names.FIELD_MANAGER,
        "reportingInstance": names.FIELD_MANAGER,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
