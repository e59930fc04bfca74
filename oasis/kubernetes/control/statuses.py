"""The status of each job, kept as it was written last."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from oasis.driver.entry import Entry
from oasis.kubernetes import names
from oasis.kubernetes.cluster.nodes import Place
from oasis.kubernetes.objects.conditions import (
    ADMITTED,
    BAD_IF_TRUE,
    COMPLETE,
    GATED,
    IN_STATE,
    LATE,
    OVERRUN,
    PLACED,
    STALLED,
    UNDERESTIMATED,
    VALID,
    decision_message,
    reason_word,
    said,
    time_text,
    with_condition,
)
from oasis.kubernetes.objects.existing import WORKLOAD, ExistingKind, name_of, own_uid, status_of
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.schema import HOLDING, PHASES
from oasis.model.decision import Decision
from oasis.scheduling.job import Allocation

log = logging.getLogger("oasis.kubernetes")

Status = dict[str, Any]
NO_NODE = "NoNode"  # the reason of `PLACED` while no node admits the job
PODS_REFUSED = "PodsRefused"  # and while the API server takes none of its pods
NO_JOBSET = "NoJobSet"  # and while nothing says how many pods a TrainJob has
CLAIM_REFUSED = "ClaimRefused"  # and while its class does not let it in
LEFT_ALONE = "LeftAlone"  # and while another switches its Workload
NO_QUOTA = "NoQuota"  # and while its ClusterQueue has no quota for it
TOO_LONG = "TooLong"  # and while it takes more slots than the policy plans ahead
KEPT_OUT = frozenset({NO_NODE, PODS_REFUSED, CLAIM_REFUSED, LEFT_ALONE, NO_QUOTA})
WINDOWED = "Maintenance"  # and while it waits for a capacity window
# Reasons of `PLACED` that hold until the gang works, however often it is planned: what comes and
# goes in every slot would be two events a slot.
TROUBLES = frozenset({"Refused", "Withdrawn", "NotAdmitted", "PodsNotReady", "Preempted"})
STOPPED = frozenset({"Invalid", "Failed"})  # phases of jobs that nothing is done for until an edit


class StatusWriter:
    """Collects changes of one object's status, which is an annotation on kinds other than ours."""

    def __init__(
        self, item: Mapping[str, Any], clock: SlotClock, kind: ExistingKind | None = None
    ) -> None:
        self.meta, self.kind = item["metadata"], kind
        known = status_of(item, kind)
        self.status: Status = dict(known or {"phase": "Pending"})  # what it is to be
        self.written: Status | None = dict(known) if known else None
        # Type, reason, message and time of events that say what happened.
        self.news: list[tuple[str, str, str, float]] = []
        self.refusals, self.again_at = 0, 0.0  # of its writes in a row, and when to try next
        self._clock = clock

    def say(self, kind: str, status: str, reason: str, message: str, now: float) -> None:
        """Set the condition of type `kind`; a change of its status or reason makes an event."""
        now = self._clock.wall(now)
        generation = int(self.meta.get("generation", 1))
        before = self.said(kind)
        self.status["conditions"] = with_condition(
            self.status.get("conditions") or (), kind, status, reason, message, now, generation
        )
        if (before.get("status"), before.get("reason")) != (status, reason):
            # Most conditions are bad news when they are
            # False, those about delays when they are True.
            bad = (kind in BAD_IF_TRUE) == (status == "True")
            self.news.append(("Warning" if bad else "Normal", reason, message, now))
            log.info(
                "%s: %s: %s", self.name, reason, message, extra={"job": self.name, "reason": reason}
            )

    def said(self, kind: str) -> Mapping[str, Any]:
        """Return the condition of type `kind`; empty if there is none."""
        return said({"status": self.status}, kind)

    def _tell(self, kind: str, reason: str, message: str | None, now: float) -> None:
        """Set condition `kind` to True; with `message` None remove it, as it does not hold."""
        if message is not None:
            self.say(kind, "True", reason, message, now)
        else:
            self._unsay(kind)

    def _unsay(self, kind: str) -> None:
        if self.said(kind):
            self.status["conditions"] = [c for c in self.status["conditions"] if c["type"] != kind]

    @property
    def name(self) -> str:
        """Name of the job with its namespace, as `JobSpec.id`."""
        return name_of({"metadata": self.meta}, self.kind)

    @property
    def is_claimed(self) -> bool:
        """Whether the status on the object names the controller that schedules the job."""
        return (self.written or {}).get("controller") == self.status.get("controller")

    @property
    def phase(self) -> str:
        """Phase of the job, such as Running; Pending at first."""
        return str(self.status.get("phase", "Pending"))

    def valid(self, now: float) -> None:
        """Record that the object is valid; if the job was stopped, it is pending again."""
        if self.is_stopped:
            self.status["phase"] = "Pending"
            self._unsay(COMPLETE)
            self.say(VALID, "True", "Valid", "the object makes sense now", now)

    def put_aside(self, phase: str, reason: str, message: str, now: float) -> None:
        """Set the phase to Invalid or Failed, and why; the job does not run until an edit."""
        self.status["phase"] = phase
        self.say(VALID, "False", reason, message, now)
        self.ended(now)
        self._unsay(PLACED)

    def failed_to_train(self, reason: str, message: str, now: float) -> None:
        """Record that the job's own processes failed; it does not run on."""
        self.status["phase"] = "Failed"
        self.say(COMPLETE, "False", reason, message, now)
        self.ended(now)

    def stalled(self, message: str | None, now: float) -> None:
        """Record that the policy fails and the last plan is kept; `message` None: it works."""
        self._tell(STALLED, "PolicyError", message, now)

    def admitted(
        self, entry: Entry[JobSpec], decision: Decision | None, promised: int | None, now: float
    ) -> None:
        """Record that the policy accepted the job, and `promised`, its slot of completion."""
        self.status["phase"] = "Waiting"
        self.status["arrivalSlot"] = entry.arrived
        if promised is not None:
            self.status["promisedSlot"] = promised
            self.status["promisedCompletion"] = self._end_of(promised)
        completes = None
        if decision is not None and decision.completion is not None:
            completes = self._end_of(decision.completion)
        message = decision_message(decision, "", completes)
        message += "; as far as quota allows" if self.kind is WORKLOAD else ""
        self.say(ADMITTED, "True", "Admitted", message, now)

    def _end_of(self, slot: int) -> str:
        return time_text(self._clock.wall(self._clock.begin(slot + 1)))

    @property
    def is_kept_out(self) -> bool:
        """Whether a reason in `KEPT_OUT` keeps the job waiting, also of a former controller."""
        return self.placed in KEPT_OUT

    def waits(self, reason: str, message: str, now: float) -> None:
        """Record that the job holds nothing, and why nothing is planned for it now."""
        if self.phase in HOLDING:
            self.status["phase"] = "Waiting"
        self.ended(now)
        self.say(PLACED, "False", reason, message, now)

    @property
    def is_stopped(self) -> bool:
        """Whether the job was put aside, and runs again only once it is changed."""
        return self.phase in STOPPED

    @property
    def may_begin_early(self) -> bool:
        """Whether the job may start between slots: claimed, undecided, and no Workload."""
        # Quota is read at boundaries alone, so a Workload starts there.
        is_told = self.said(ADMITTED) or self.said(PLACED)
        is_new = self.is_claimed and self.phase == "Pending" and not is_told
        return is_new and self.kind is not WORKLOAD

    def begins_early(
        self, entry: Entry[JobSpec], slot: int, places: Sequence[Place], now: float
    ) -> None:
        """Record that the job starts in `slot`, before the first slot that it is planned in."""
        self.status |= {"phase": HOLDING[False], "workers": entry.allocation.worker_count}
        self.status["plan"] = [_slot(slot, entry.allocation, places)]
        self.say(PLACED, "True", "BetweenSlots", "on machines that the plan leaves free", now)

    def in_trouble(self, reason: str, message: str, now: float) -> None:
        """Record why the job's pods do not run, unless `PodsNotReady` says more."""
        if self.placed != "PodsNotReady":
            self.say(PLACED, "False", reason, message, now)

    @property
    def placed(self) -> str | None:
        """Reason of the condition `PLACED`; None if there is no such condition."""
        return self.said(PLACED).get("reason")

    def works(self, is_working: bool) -> None:
        """Record whether the job's gang works now, if it holds capacity."""
        if self.phase in HOLDING:
            self.status["phase"] = HOLDING[is_working]

    def resumed(self, is_resumed: bool, now: float) -> None:
        """Record that the owner resumed a job kept out or stopped; else remove the condition."""
        is_refused = self.is_kept_out or self.is_stopped
        message = "its owner resumed it, but nothing is planned for it: its pods stay gated"
        self._tell(GATED, "Resumed", message if is_resumed and is_refused else None, now)

    def planned(self, overrun: str | None, now: float) -> None:
        """Record that the job may be planned; `overrun`: why it is worth nothing, or None."""
        if self.placed in (*KEPT_OUT, NO_JOBSET, TOO_LONG):
            self._unsay(PLACED)
        self._tell(OVERRUN, OVERRUN, overrun, now)

    def rejected(
        self, reason: str, decision: Decision | None, again: float | None, now: float
    ) -> None:
        """Record that the policy rejected the job; it is tried again at `again`, None: never."""
        self.status["phase"] = "Rejected" if again is None else "Pending"
        message = decision_message(decision, reason, None)
        if again is not None:
            message += f"; tried again at {time_text(self._clock.wall(again))}"
        self.say(ADMITTED, "False", reason_word(reason), message, now)

    def given_up(self, reason: str, now: float) -> None:
        """Record that the policy dropped a job that it had accepted."""
        self.status["phase"] = "GivenUp"
        self.ended(now)
        self.say(COMPLETE, "False", "GivenUp", reason, now)
        if "promisedSlot" in self.status:
            self.say(LATE, "True", "PromiseBroken", reason, now)

    def completed(self, entry: Entry[JobSpec], slot: int, now: float) -> None:
        """Set phase, completion slot and utility; record a broken promise if `slot` is late."""
        utility = float(entry.spec.job.utility(max(0, slot - entry.arrived)))
        self.status |= {"phase": "Completed", "completionSlot": slot, "utility": utility}
        self.progress(max(entry.done, entry.work), entry.work)
        self.ended(now)
        message = (
            f"completed in slot {slot}, {slot - entry.arrived} after its arrival: {utility:.6g}"
        )
        self.say(COMPLETE, "True", "WorkDone", message, now)
        promised = self.status.get("promisedSlot")
        if promised is not None and slot > promised:
            message = f"completed in slot {slot}, promised for slot {promised}"
            self.say(LATE, "True", "PromiseBroken", message, now)

    def in_state(self, state: str | None, now: float) -> None:
        """Record the state of the job in the policy's words; remove it if None or a phase."""
        # It is a condition as long as the policy says it, unless the phase says the same.
        # As conditions write their reasons.
        word = "".join(part.capitalize() for part in (state or "").split())
        message = None if word in ("", *PHASES) else f"the policy says that it is {state}"
        self._tell(IN_STATE, word, message, now)

    def ended(self, now: float) -> None:
        """Record that the job holds no workers and that nothing is planned for it any more."""
        self.status["workers"] = 0
        self.status.pop("plan", None)
        self.in_state(None, now)
        self.stalled(None, now)

    def progress(self, done: float, work: float) -> None:
        """Record the work done so far and the whole work, both given in worker-slots."""
        unit = self._clock.work_seconds
        self.status["progress"] = {
            "workerSeconds": round(done * unit, 3),
            "total": round(work * unit, 3),
            "percent": min(100, int(100 * done / work)) if work else 100,
        }

    def holds(
        self,
        entry: Entry[JobSpec],
        ahead: Sequence[tuple[int, Allocation]],
        places: Sequence[Place],
        now: float,
        *,
        is_working: bool,
        is_whole: bool,
        cause: str | None = None,
        taker: str | None = None,
    ) -> None:
        """Record what the job holds in this and the next slots, its progress, and why it waits."""
        # `is_working` says whether its gang works, `is_whole` whether with all that was planned;
        # `cause` is the sentence if a capacity window keeps it waiting, `taker` who has taken the
        # room that it had.
        workers = entry.allocation.worker_count
        before = self.phase
        self.status["phase"] = HOLDING[is_working] if workers else "Waiting"
        self.status["workers"] = workers
        if entry.resizes:
            self.status["resizes"] = {"count": entry.resizes, "restarts": entry.restarts}
        if entry.has_form and entry.spec.forms:
            self.status["form"] = entry.form
        self.status["plan"] = [_slot(slot, allocation, places) for slot, allocation in ahead]
        self.progress(entry.done, entry.work)
        if entry.extensions:
            unit = self._clock.work_seconds
            message = f"its work is done, of {entry.done * unit:.6g} worker-seconds by now, and it "
            message += f"still trains: {entry.remaining * unit:.6g} more are expected"
            self.say(UNDERESTIMATED, "True", UNDERESTIMATED, message, now)
        if self.placed in TROUBLES and not is_whole and (workers or before not in HOLDING):
            return
        if workers:
            message = f"{workers} workers and {entry.allocation.ps_count} parameter servers"
            self.say(PLACED, "True", "Planned", message, now)
        elif cause is not None:
            self.say(PLACED, "False", WINDOWED, cause, now)
        elif before in HOLDING:
            message = f"paused: {taker or 'others go before it now'}"
            self.say(PLACED, "False", "Displaced", message, now)
        elif self.placed is None or self.placed == WINDOWED:
            self.say(PLACED, "False", "Waiting", "its turn comes later", now)

    def body(self) -> dict[str, Any]:
        """Return the body of the write: the status, or the annotation in its place."""
        status = {**self.status, "observedGeneration": int(self.meta.get("generation", 1))}
        meta = {"name": self.meta["name"], "namespace": self.meta["namespace"]}
        if self.kind is not None:
            # The uid makes the API server refuse the patch if another object has the name by now.
            text = json.dumps(self.status, sort_keys=True, separators=(",", ":"))
            meta = {**meta, "uid": own_uid(self.meta), "annotations": {names.STATUS: text}}
            return {"metadata": meta}
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": meta,
            "status": status,
        }


def _slot(slot: int, allocation: Allocation, places: Sequence[Place]) -> Status:
    return {
        "slot": slot,
        "workers": {places[k].id: count for k, count in allocation.workers},
        "parameterServers": {places[k].id: count for k, count in allocation.ps},
    }
