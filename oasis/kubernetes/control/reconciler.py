"""State of the controller between two rounds of its loop: slots, work, decisions and statuses."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from oasis.driver.driver import Driver
from oasis.driver.entry import Entry, Facts, SlotOutcome
from oasis.driver.policy_state import site_text
from oasis.kubernetes import names
from oasis.kubernetes.acting import (
    Action,
    Create,
    Steps,
    Switch,
    Target,
    action_word,
    has_pods_but_no_plan,
    reconcile,
)
from oasis.kubernetes.api.resources import NETWORK_POLICIES, SERVICES
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster.gangs import (
    has_succeeded,
    network_objects,
    plan_hash,
    wanted_of,
    working_gang,
)
from oasis.kubernetes.cluster.nodes import Machines, NodesError, check_fits_nodes
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.admission import Admission, Learning, too_long
from oasis.kubernetes.control.checkpoint import Checkpoint
from oasis.kubernetes.control.job_reader import JobReader
from oasis.kubernetes.control.meter import WorkMeter
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.patience import LONGEST_WAIT, STUCK, Failure, Patience
from oasis.kubernetes.control.planning import Planning
from oasis.kubernetes.control.quota import Quota
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import CLAIM_REFUSED, NO_NODE, NO_QUOTA, TOO_LONG
from oasis.kubernetes.control.tenants import Tenants
from oasis.kubernetes.control.windows import Windows
from oasis.kubernetes.objects.conditions import ADMITTED, LATE, PLACED, error_text, time_text
from oasis.kubernetes.objects.existing import WORKLOAD, is_suspended
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.schema import TERMINAL
from oasis.kubernetes.objects.workload import left_alone, preempted, without_quota
from oasis.model.errors import InstanceError
from oasis.model.groups import TaskGroup
from oasis.model.instance_file import cluster_to_dict
from oasis.scheduling.policy import Planner, Policy, state_of
from oasis.scheduling.site import cluster_of

log = logging.getLogger("oasis.kubernetes")

Live = Mapping[str, Entry[JobSpec]]  # by uid
FORMAT = 8  # of the checkpoint
SHOWN_SLOTS = 5  # of the plan in the status of a job
LITTLE = 1e-6  # worker-slots that are nothing but rounding


class Reconciler:
    """Makes the pods follow the plan: counts work, asks the policy at each slot, lists writes."""

    def __init__(
        self,
        policy: Policy,
        settings: ControllerSettings,
        clock: SlotClock,
        checkpoint: Checkpoint,
        metrics: Metrics,
        seen: Seen,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.settings, self.clock, self.metrics, self.now = settings, clock, metrics, now
        self._checkpoint = checkpoint
        self.meter = WorkMeter(clock)
        self.reader = JobReader(clock, settings, metrics)
        self.statuses = self.reader.statuses  # by uid of the object
        self.done: dict[str, float] = {}  # worker-slots that count
        self.metered: dict[str, float] = {}  # for which workers were seen at work
        self.losses: dict[str, float] = {}  # what was reported anew in the slot that ended
        self._reports: dict[str, p.Report] = {}
        self._telling: set[str] = set()  # uids of jobs whose training has told its progress
        self.withdrawn: set[str] = set()
        self._short: dict[str, str] = {}
        self._taken: dict[int, str] = {}  # machines that are smaller than before, and what has it
        longest = min(LONGEST_WAIT, settings.slot_seconds)
        self.patience = Patience(settings.pods_ready_timeout, longest)
        self._policy_error: Exception | None = None  # that was logged last
        self._unsaved: Literal["plan", "starts"] | None = None  # what the checkpoint does not have
        self.planning: Planning | None = None  # a question that may still be running
        self._read_in: int | None = None  # slot in which the jobs are those of the last look
        self._undecided = frozenset[str]()  # uids of jobs, when it was last seen if they fit
        # The slot that runs, None before the first plan, and live jobs by uid with what they hold
        # in it: the books of the driver may be those of the next one, or be changed by a thread.
        self.slot: int | None = None
        self.live: Live = {}
        self.machines = self._machines(seen)
        self.admission = Admission(self.machines.places, seen.nodes.values())
        self.learning = Learning(clock, self.reader, self.patience, self.admission)
        check_fits_nodes(policy, self.machines.site, settings.minimum_run)
        self.quota = Quota(settings.resources)
        self.quota.read_queues(seen)
        site = self.quota.shrunk(self.machines.site, ())
        self.driver: Driver[JobSpec] = Driver(policy, site, settings.minimum_run)
        self.tenants = Tenants(clock, self.driver)
        self.tenants.follow_classes(seen.classes)  # the slot that runs is counted by them
        self.windows = Windows(settings, clock)

    # -- the cluster -------------------------------------------------------------------------------

    def _machines(self, seen: Seen) -> Machines:
        of = self.settings
        return Machines.of(seen, of.resources, of.ps_share, self.clock.work_seconds, of.horizon)

    def _take_in_nodes(self, seen: Seen) -> None:
        """Update machines and quota from the nodes; if those are wrong the machines stay."""
        self._taken, before = {}, self.machines
        try:
            self.quota.read_queues(seen)
            if has_grown := before.have_grown(seen):
                machines = self._machines(seen)
                check_fits_nodes(self.driver.policy, machines.site)
            else:
                machines = before.resized(seen, set(self._short.values()), self._late)
                self._taken = before.taken(machines, seen)
        except NodesError as error:
            self.metrics.failures.inc()
            log.error("%s; the machines stay as they were", error)  # noqa: TRY400 (it says it all)
            return
        self.machines = machines
        site = self.quota.shrunk(machines.site, () if has_grown else self.driver.jobs.values())
        if has_grown:
            self.driver.rebuild(site)
            self.live = {}
        elif site != self.driver.site:
            self.driver.resize(site)

    def read_jobs(self, seen: Seen, now: float, ran: Iterable[str] = ()) -> None:
        """Read all jobs; `ran`: uids of those that were live before a takeover."""
        live = {*self.driver.by_uid, *ran}
        self.reader.read_jobs(seen.jobs, self.driver.policy, live, now)

    def admissible(self, seen: Seen, now: float) -> dict[str, JobSpec]:
        """Return the unfinished jobs that were read last, each limited to nodes that admit it."""
        specs, slot = self.reader.unfinished, self.clock.slot(now)
        self.tenants.follow_classes(seen.classes)
        self.admission.follow_nodes(self.machines.places, seen.nodes.values())
        self.admission.forget_others(specs)
        self.learning.accept_bound(seen.pods, slot)
        return {
            uid: self.admission.on_admitting(spec, seen.pods.get(uid, {}).values(), slot)
            for uid, spec in specs.items()
        }

    @contextmanager
    def handling(self, uid: str, doing: str, now: float) -> Iterator[None]:
        """Report an error inside the block on this job alone, so that the other jobs go on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (any error is reported on this job)
            self.reader.fail(uid, error, doing, now)

    # -- slots -------------------------------------------------------------------------------------

    def adopt_plan(self) -> None:
        """Set `slot` and `live` to those of the driver, as its last plan is in force now."""
        self.slot, self.live = self.driver.slot, self.driver.running()

    @property
    def next_boundary(self) -> float:
        """Time at which the next slot begins; before the first plan, that of slot 0."""
        return self.clock.epoch if self.slot is None else self.clock.begin(self.slot + 1)

    def plan_if_due(
        self,
        now: float,
        look: Callable[[], Seen],
        patience: float = 0.0,
        on_end: Callable[[], None] | None = None,
    ) -> bool:
        """Plan the present slot, or jobs that came in it; return whether a new plan is in force."""
        # `look` says what is there. With `on_end` a plan is waited for `patience` seconds alone; it
        # is called by the thread when the plan is made: then call this again. Until it returns
        # True, `live` and `slot` are those of before.
        planning = self.planning
        if planning is None:
            seen = look()
            if self._unsaved:  # the last write of the checkpoint failed, and nothing was done since
                self._save()
            if self._is_due(now):
                if self._read_in != self.clock.slot(now):
                    self.read_jobs(seen, now)
                planning = self._prepare(now, seen)
            else:
                planning = self._prepare_between(now, seen)
            if planning is None:
                return False
            # Without a plan, the pods of jobs that arrive again would go meanwhile.
            if on_end is None or self.driver.arriving_again & seen.pods.keys():
                planning.make()
            else:
                planning.start(on_end, patience)
        if planning.answered.done():
            self._put_in_force(planning, look())
        return self.planning is None

    def _is_due(self, now: float) -> bool:
        slot = self.clock.slot(now)
        return slot >= 0 and (self.driver.slot is None or slot > self.driver.slot)

    def _prepare(self, now: float, seen: Seen) -> Planning:
        """Close the past slots and take in nodes; return the question to ask on this slot."""
        slot = self.clock.slot(now)
        # The work of the slots that end is counted first, by the plan under
        # which it was done; new nodes may make all jobs arrive again.
        self._close(slot, seen.pods, now)
        self._take_in_nodes(seen)
        down = self.machines.lost(seen)
        succeeded = self._succeeded(seen, now)
        specs = self._plannable(self.admissible(seen, now), now, seen)
        ended = frozenset(self.reader.complete | succeeded)
        closed = self.windows.calendar(seen, self.machines, now)
        done = dict.fromkeys(self.statuses, 0.0) | self.done
        facts = Facts(specs, done, dict(self.losses), ended, down, closed)
        self.planning = Planning(slot, specs, now, partial(self.driver.boundary, slot, facts))
        return self.planning

    def _prepare_between(self, now: float, seen: Seen) -> Planning | None:
        """Return the planning of jobs that came within a slot; None unless one fits now."""
        driver = self.driver
        if is_read := self.reader.has_new(seen.jobs):  # a job is claimed, then it begins
            self.read_jobs(seen, now)
        came = frozenset(uid for uid, job in self.statuses.items() if job.may_begin_early)
        if came == self._undecided or self.slot is None or not driver.may_be_asked:
            return None
        self._undecided = came
        if not is_read:
            self.read_jobs(seen, now)
        specs = {uid: spec for uid, spec in self.admissible(seen, now).items() if uid in came}
        specs, room = self._plannable(specs, now), driver.room
        any_fits = False
        for uid, spec in specs.items():
            with self.handling(uid, "planning", now):
                any_fits |= driver.fits(spec, room)
        if any_fits:
            self.planning = Planning(self.slot, specs, now, partial(driver.arrive, specs))
        return self.planning

    def _put_in_force(self, planning: Planning, seen: Seen) -> None:
        """Put a plan that is made into force: report its decisions, and save it."""
        self.planning = None
        slot, now, outcome = planning.slot, planning.now, planning.answered.result()
        before, is_between = self.live, slot == self.slot
        self.adopt_plan()
        self.metrics.policy_seconds.observe(planning.seconds)
        # What failed while the plan was made leaves at the next boundary, and was told why.
        outcome.forget(planning.specs.keys() - self.reader.specs.keys())
        # Statuses come before the checkpoint, which holds those that are not written yet: a crash
        # between here and the writes loses no decision.
        if outcome.error is None:
            self.tenants.decided(self.driver.by_uid)
        self._tell(slot, outcome, now)
        if is_between:
            self._unsaved = "starts"
            self._report_starts(slot, outcome, now, before)
        else:
            self._unsaved = "plan"
            count, jobs = len(outcome.changed), len(self.driver.jobs)
            figures = {"slot": slot, "count": count, "seconds": round(planning.seconds, 6)}
            log.info("slot %d: %d jobs, %d changed", slot, jobs, count, extra=figures)
            self._report_slot(slot, outcome, now, before, seen)
        self._save()

    def _report_starts(
        self, slot: int, outcome: SlotOutcome[JobSpec], now: float, before: Live
    ) -> None:
        """Report the jobs that start within `slot`, planned from the next slot on."""
        if outcome.error is not None:  # the next boundary tells it on the jobs
            log.warning("no job begins before the next slot: %s", error_text(outcome.error))
        for uid in before.keys() - self.live.keys():
            self.meter.note(uid, [], now)  # its pods go, and earn nothing until then
        for uid, entry in self.live.items():
            ran = uid in before and before[uid].allocation.workers
            if entry.allocation.workers and not ran and uid in self.statuses:
                self.statuses[uid].begins_early(entry, slot, self.machines.places, now)

    def _report_slot(
        self, slot: int, outcome: SlotOutcome[JobSpec], now: float, before: Live, seen: Seen
    ) -> None:
        """Report the plan of a slot that begins, and drop records of the slots before it."""
        self._tell_errors(outcome, now)
        self._tell_plans(slot, now, before)
        self.withdrawn.clear()
        self.patience.begin_slot()
        self._short.clear()
        for uid in self.live:  # what the plan takes away earns nothing until it is gone
            self.note(uid, seen, self.now(), broken_at=self.clock.begin(slot))
        self.meter.forget(self.live.__contains__)
        self.patience.forget(self.statuses, self.live)
        unfinished = {uid for uid, job in self.statuses.items() if job.phase not in TERMINAL}
        self.tenants.forget_others(unfinished, self.metered, outcome.completed)
        kept: tuple[dict[str, Any], ...] = self.done, self.metered, self._reports
        for known in kept:
            for uid in known.keys() - self.statuses.keys():
                del known[uid]
        self._telling &= self.statuses.keys()

    def _save(self) -> None:
        """Write the checkpoint, before any pod of the new plan or of an early start."""
        # So a takeover finds no pod that it cannot explain. If another controller has written, this
        # write is refused (409) and nothing is done.
        self._checkpoint.write(self.state())
        self.metrics.checkpoint_bytes.set(self._checkpoint.size)
        if self._unsaved == "plan":
            slot = self.driver.slot or 0
            self.metrics.slot.set(slot)
            self.metrics.boundary_lag.observe(max(0.0, self.now() - self.clock.begin(slot)))
        self._unsaved = None

    def _plannable(
        self, specs: Mapping[str, JobSpec], now: float, seen: Seen | None = None
    ) -> dict[str, JobSpec]:
        """Return the jobs that may be planned; with `seen`, those with unready pods lose room."""
        live, plannable = self.driver.by_uid, {}
        for uid, spec in specs.items():
            with self.handling(uid, "judging", now):
                judged = self._judged(spec, live.get(uid), now)
                if judged is not None and seen is not None:
                    judged = self._ready_in_time(judged, live.get(uid), seen, now)
                if judged is not None:
                    plannable[uid] = judged
        return plannable

    def _judged(self, spec: JobSpec, known: Entry[JobSpec] | None, now: float) -> JobSpec | None:
        """Return the job with its corrected work; None if it has to wait, as its status says."""
        uid, driver, job = spec.uid, self.driver, self.statuses[spec.uid]
        reason, is_new = "", known is None
        if why := self.admission.verdicts.why(spec, self.clock.slot(now)):
            pass  # which its status says since the verdict
        elif why := self.admission.refused.get(uid):
            reason = NO_NODE  # a policy would reject it for good, though a node may come
        elif why := self.quota.excess(spec):
            reason = NO_QUOTA
        elif is_new and self.settings.horizon is None and (why := too_long(driver, spec)):
            reason = TOO_LONG
        elif why := self.tenants.refusal(spec, known):
            reason = CLAIM_REFUSED
        if why:
            self.meter.note(uid, [], now)  # its pods go, and earn nothing until they are gone
            if reason:
                job.waits(reason, why, now)
            return None
        counted = self.tenants.counted(spec)
        if is_new and job.is_kept_out:
            self.remember(uid, counted)
        job.planned(self.tenants.overrun(counted), now)
        return counted

    def _ready_in_time(
        self, spec: JobSpec, known: Entry[JobSpec] | None, seen: Seen, now: float
    ) -> JobSpec | None:
        """Return the job, limited to the workers that become ready; None while it is paused."""
        if known is not None and self.patience.is_over(spec.uid, now):
            self._release(known, spec, seen, now)
        limited, comes_back = self.patience.as_planned(spec, now)
        if limited is not None and comes_back:
            self.remember(spec.uid, limited)
        return limited

    def _release(self, entry: Entry[JobSpec], spec: JobSpec, seen: Seen, now: float) -> None:
        """Free the room of unready pods: plan fewer workers if some work, else pause the job."""
        uid, pods = spec.uid, seen.pods.get(spec.uid, {})
        why = self.patience.last_refusal(uid) or p.complaint(pods.values())
        if not why and uid in seen.existing:
            why = without_quota(seen.existing[uid][1])
        if not why and uid in self._short:
            why = f"node {self._short[uid]} has no room for them"
        message = f"its pods were not ready within {self.settings.pods_ready_timeout:g} s"
        message += f" ({why})" if why else ""
        # What works, or else what the API server took, says how many there can be.
        running = len(self.meter.working(uid)) or sum(
            (pod["metadata"].get("labels") or {}).get(names.TASK) == TaskGroup.WORKER
            for pod in pods.values()
        )
        most = max(running, spec.begun_in(entry.form).min_workers)
        if running and most < entry.allocation.worker_count:
            self.patience.plan_at_most(spec, most)
            message += f"; from now on at most {most} workers are planned, until it is edited"
            self.statuses[uid].say(PLACED, "False", "PodsNotReady", message, now)
            return
        again = self.patience.pause(spec, now)
        at = time_text(self.clock.wall(again))
        message += f"; its room is for others, and it is tried again at {at}"
        self.statuses[uid].waits("PodsNotReady", message, now)
        self.meter.note(uid, [], now)  # its pods go, and earn nothing until they are gone

    def tries(self, seen: Seen, now: float) -> list[Create]:
        """Read the jobs if a slot is due or one is new; return pods to create in a dry run."""
        # `learning.tried` takes the answers.
        if self.clock.slot(now) < 0 or self.planning is not None:
            return []
        is_due = self._is_due(now)
        if is_due or self.reader.has_new(seen.jobs):
            self.read_jobs(seen, now)
        tries = self.learning.tries(now, is_due, seen)
        # The answers take a while, in which jobs come and go: they are then read anew.
        self._read_in = self.clock.slot(now) if is_due and not tries else None
        return tries

    def remember(self, uid: str, spec: JobSpec) -> None:
        """Let a job that was admitted before arrive again, with the work that its status says."""
        # It arrives no later than now: slots may be counted anew, and annotations may be edited.
        status = self.statuses[uid].status
        if self.statuses[uid].said(ADMITTED).get("status") == "True":
            seconds = (status.get("progress") or {}).get("workerSeconds", 0.0)
            done = self.done[uid] = max(self.done.get(uid, 0.0), seconds / self.clock.work_seconds)
            self.metered[uid] = max(self.metered.get(uid, 0.0), done)
            arrived = min(max(0, self.clock.slot(self.now())), status.get("arrivalSlot", 0))
            form, workers = status.get("form", 0), None
            if spec.forms and "form" in status:  # it began in this form, and stays in it
                workers = spec.begun_in(form).min_workers
            self.driver.remember(spec, arrived, done, workers, form)

    def _close(self, slot: int, job_pods: p.Pods, now: float) -> None:
        """Count the work of the slots that end before `slot`, and read reports of progress."""
        if self.driver.slot is None:
            return
        # After a pause several slots end at once. Each is closed by
        # itself, because a worker earns at most one worker-slot in each.
        for s in range(self.driver.slot + 1, slot + 1):
            worked = self.meter.close(self.clock.begin(s))
            for uid, amount in worked.items():
                self.metered[uid] = self.metered.get(uid, 0.0) + amount
                if uid not in self._telling:  # then nothing is work before it is reported
                    self.done[uid] = self.done.get(uid, 0.0) + amount
            # What began early counts from its first boundary on: less than it held, never more.
            held = [each for each in self.live.values() if each.arrived <= self.driver.slot]
            for entry in held:
                lost = entry.allocation.worker_count - worked.get(entry.spec.uid, 0.0)
                self.metrics.lost.inc(lost if lost > LITTLE else 0.0)
            self.tenants.held(held)
        self.losses.clear()
        for uid, pods in job_pods.items():
            with self.handling(uid, "following", now):
                self._read_report(uid, pods)

    def _read_report(self, uid: str, pods: Mapping[str, Any]) -> None:
        """Read the progress that the training of a job reports."""
        try:
            reported = p.reported(pods)
        except InstanceError as error:
            log.warning("job %s: %s", uid, error)
            return
        # What the training counts itself replaces what the meter saw of its pods, as far as they
        # can have done it: without a start, a worker works for all of a slot.
        if reported.progress is not None:
            self._telling.add(uid)
            most = self.metered.get(uid, 0.0) * self.clock.slot_seconds
            self.done[uid] = min(reported.progress, most) / self.clock.work_seconds
        # Annotations stay on the pod: the same report again is no new evaluation of the loss.
        if reported.loss is not None and reported != self._reports.get(uid):
            self.losses[uid] = reported.loss
        self._reports[uid] = reported

    def _succeeded(self, seen: Seen, now: float) -> set[str]:
        """Return the uids of the live OasisJobs whose processes are done."""
        succeeded = set()
        for uid, entry in self.live.items():
            # The pods of an OasisJob are ours, and no other controller says when they are complete.
            if not entry.spec.is_existing:
                with self.handling(uid, "following", now):
                    wanted = wanted_of(entry, self.machines.places, seen)
                    if has_succeeded(wanted, seen.pods.get(uid, {})):
                        succeeded.add(uid)
        return succeeded

    def note(self, uid: str, seen: Seen, at: float, broken_at: float | None = None) -> None:
        """Record which workers of a job work from `at` on; if one is gone, from `broken_at` on."""
        entry, pods = self.live.get(uid), seen.pods.get(uid, {})
        if entry is None:
            return
        with self.handling(uid, "following", at):
            least = entry.spec.begun_in(entry.form).min_workers
            wanted = wanted_of(entry, self.machines.places, seen)
            gang = working_gang(wanted, pods, least, entry.job.ps_needed)
            # A worker that was credited is gone. Of news that came together
            # the first counts, so that it earns nothing after it left.
            if broken_at is not None and not self.meter.working(uid) <= set(gang):
                at = broken_at
            self.meter.note(uid, gang, at)
            count = entry.allocation.worker_count + entry.allocation.ps_count
            existing = [pods[pod.name] for pod in wanted if pod.name in pods]
            done = "Succeeded" if entry.spec.ends_itself else ""
            ready = sum(p.is_working(pod) or p.phase_of(pod) == done for pod in existing)
            since = self.patience.note(uid, ready == count if count else None, at)
            if since is not None:
                self.metrics.startup.observe(at - self.clock.begin(self.clock.slot(since)))
            if any(p.is_ending(pod) and not p.lingers(pod, self._late) for pod in pods.values()):
                self.patience.excuse(uid, at)
            if uid in self.statuses:
                self.statuses[uid].works(bool(gang))

    @property
    def _late(self) -> float:
        """Wall-clock time; a pod whose deletion was due earlier does not end by itself."""
        return self.clock.wall(self.now()) - self.settings.pods_ready_timeout

    def _has_failed(self, entry: Entry[JobSpec], pods: Mapping[str, Any], now: float) -> bool:
        """Return whether a job failed more often than its limit; if so, stop it and report."""
        uid, spec = entry.spec.uid, entry.spec
        count = self.patience.failures(uid, pods.values())
        if spec.is_existing or count <= spec.backoff_limit or uid not in self.reader.specs:
            return False
        why = next((failure for pod in pods.values() if (failure := p.last_failure(pod))), "")
        message = f"{count} failures of pods and containers, more than backoffLimit "
        message += f"({spec.backoff_limit})" + (f"; the last one: {why}" if why else "")
        self.patience.forgive(uid)
        self.meter.note(uid, [], now)
        self.reader.fail_to_train(uid, "BackoffLimitExceeded", message, now)
        return True

    # -- what is to be done ------------------------------------------------------------------------

    def steps(self, seen: Seen, now: float) -> Steps:
        """Return the actions that make the pods those of the plan."""
        if self.slot is None or self._unsaved:
            return Steps()
        existing, job_pods = seen.existing, seen.pods
        metas = (item["metadata"] for _, item in seen.jobs)
        uids = {meta["uid"] for meta in metas if not meta.get("deletionTimestamp")}
        uids &= self.reader.specs.keys()  # for jobs without a valid object no pod runs
        uids -= {uid for uid, (_, item) in existing.items() if left_alone(item)}
        entries = {uid: entry for uid, entry in self.live.items() if uid in uids}
        targets = []
        for uid, entry in entries.items():
            with self.handling(uid, "acting on", now):
                if self._has_failed(entry, job_pods.get(uid, {}), now):
                    continue
                targets.append(self._target(entry, seen))
        # Pods of other kinds than ours are never deleted one by one, because their controller
        # would make them anew: the object is suspended below.
        orphans = [
            (uid, pod)
            for uid, pods in job_pods.items()
            if uid not in entries and uid not in existing
            for pod in pods.values()
        ]
        stuck = self.patience.stuck(seen.ours, now, STUCK * self.settings.slot_seconds)
        steps = reconcile(targets, orphans, seen, stuck)
        for uid, (kind, item) in existing.items():
            job, pods, is_planned = self.statuses.get(uid), job_pods.get(uid, {}), uid in entries
            # A Workload for which nothing is planned would hold its quota.
            is_over = kind is WORKLOAD or (job is not None and job.phase in TERMINAL)
            if not is_planned and has_pods_but_no_plan(item, pods, is_over=is_over):
                steps.actions.append(Switch(uid, item, kind, suspend=True))
            if job and is_planned and (why := preempted(item)) is not None:
                job.in_trouble("Preempted", why, now)
            if job:
                waits = not is_planned and not is_suspended(item)
                job.resumed(waits and any(map(p.is_gated, pods.values())), now)
        for uid, error in steps.failed.items():
            self.reader.fail(uid, error, "acting on", now)
        self._withdraw(steps, seen, stuck, now)
        steps.actions = [
            action
            for action in steps.actions
            if self.patience.may_write(action.job, action_word(action), now)
        ]
        return steps

    def _target(self, entry: Entry[JobSpec], seen: Seen) -> Target:
        """Return a job, its wanted and its existing pods; raise if others switched its object."""
        uid, slot, pods = entry.spec.uid, self.slot, seen.pods.get(entry.spec.uid, {})
        assert slot is not None
        spec = entry.spec.begun_in(entry.form)
        kind, item = seen.existing.get(uid, (None, None))
        # What a Workload says itself is `left_alone`: it follows our switch of its owner later.
        if item and kind is not WORKLOAD and self.patience.others_switched(uid, is_suspended(item)):
            verb = "suspended" if is_suspended(item) else "resumed"
            expected = f"expected to be changed here alone, and another {verb} it"
            raise InstanceError("spec.suspend", f"{expected}: it is left alone until it is edited")
        return Target(
            spec,
            wanted_of(entry, self.machines.places, seen),
            plan_hash(entry.allocation, self.machines.places),
            pods,
            slot,
            uid in self.withdrawn,
            item,
            entry.allocation.worker_count,
            network_objects(spec, seen.of(SERVICES), seen.of(NETWORK_POLICIES)),
        )

    def _withdraw(self, steps: Steps, seen: Seen, stuck: Container[str], now: float) -> None:
        """Record the withdrawn gangs, refused pods and nodes without room that `steps` names."""
        for uid in steps.withdrawn:
            self.metrics.withdrawn.inc()
            self.withdrawn.add(uid)
            self.learning.withdrawn(uid, seen.pods.get(uid, {}).values(), stuck, now)
        if steps.refused:
            self.admission.follow_nodes(self.machines.places, seen.nodes.values())
            forms = {uid: entry.form for uid, entry in self.live.items()}
            self.learning.not_admitted(steps, forms, now)
        # Others give the room back, or the node is told to be smaller in the next slot.
        nodes = set(steps.short.values())
        going = self.machines.changing(seen, nodes, self._late)
        for uid, node in steps.short.items():
            self._short.setdefault(uid, node)
            if node in going:
                self.patience.excuse(uid, now)

    def did(self, actions: Iterable[Action], failures: Collection[Failure], now: float) -> None:
        """Record that `actions` were done; those in `failures` are reported on their jobs."""
        asked = [(action.job, action_word(action)) for action in actions]
        self.patience.wrote(asked, failures, now)
        for uid, _, why in failures:
            if isinstance(why, Exception):
                self.reader.fail(uid, why, "acting on", now)
            elif uid in self.statuses:
                self.statuses[uid].in_trouble("Refused", why, now)

    # -- what is remembered --------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the checkpoint as plain data, for `memory.restore_controller`."""
        driver = self.driver
        planner = driver.policy if isinstance(driver.policy, Planner) else None
        return {
            "format": FORMAT,
            "epoch": self.clock.wall(self.clock.epoch),
            "slot_seconds": self.clock.slot_seconds,
            "startup_seconds": self.clock.startup_seconds,
            "policy": driver.policy.name,
            # JSON turns tuples into lists, and a takeover compares these with what it reads back.
            "parameters": json.loads(json.dumps(driver.policy.parameters)),
            "making": None if planner is None else planner.making(),
            "cluster": None if planner is None else cluster_to_dict(cluster_of(self.machines.site)),
            "site": site_text(self.driver.site),
            "driver": driver.state(),
            "done": self.done,
            "metered": self.metered,
            "patience": self.patience.state(self.clock),
            "verdicts": self.admission.verdicts.state(),
            "tenants": self.tenants.state(),
            "unwritten": {
                uid: job.status for uid, job in self.statuses.items() if job.status != job.written
            },
            # While the policy fails, the last plan is kept, and with it the policy's state after
            # that plan; None if that cannot be written down: then all jobs arrive once more.
            "state": driver.kept_policy,
        }

    # -- what is said ------------------------------------------------------------------------------

    def _tell(self, slot: int, outcome: SlotOutcome[JobSpec], now: float) -> None:
        """Report on each job what the policy decided: completed, rejected, admitted or late."""
        planner, entries = self.driver.planner, self.driver.by_uid
        by_id = {decision.job_id: decision for decision in planner.last_decisions().values()}
        self.metrics.broken.inc(len(outcome.late))
        gone = (*outcome.completed, *outcome.rejected, *outcome.given_up)
        for uid in dict.fromkeys((*gone, *outcome.admitted, *outcome.late)):
            with self.handling(uid, "telling of", now):
                job = self.statuses.get(uid)
                if job is None:
                    log.info("%s was deleted when its work was done", outcome.entries[uid].spec.id)
                    continue
                decision = by_id.get(job.name)
                if uid in outcome.completed:
                    entry = outcome.entries[uid]
                    # It may have done all its work before it arrived.
                    job.completed(entry, max(slot - 1, entry.arrived), now)
                    self.metrics.utility.inc(job.status["utility"])
                if uid in outcome.rejected:
                    due = outcome.retried.get(uid)
                    again = None if due is None else self.clock.begin(due)
                    job.rejected(outcome.rejected[uid], decision, again, now)
                if uid in outcome.given_up:
                    job.given_up(outcome.given_up[uid], now)
                if uid in outcome.admitted:
                    entry = entries[uid]
                    job.admitted(entry, decision, planner.promised(entry.job), now)
                # One that was given up is told so.
                if uid in outcome.late and uid in entries:
                    message = "its promised completion cannot be kept"
                    job.say(LATE, "True", "PromiseBroken", message, now)
        for uid, cause in outcome.failed.items():
            self.reader.fail(uid, cause, "planning", now)

    def _tell_errors(self, outcome: SlotOutcome[JobSpec], now: float) -> None:
        """Report an error of the policy that no single job causes, on all jobs."""
        message, error = None, outcome.error
        self.metrics.stalled.set(error is not None)
        if error is not None:
            assert outcome.again_at is not None
            name, again = self.driver.policy.name, f"slot {outcome.again_at}"
            # Until the driver asks the policy again it returns
            # the same error, whose traceback is logged once.
            if error is not self._policy_error:
                self.metrics.policy_errors.inc()
                log.error("policy %s fails, and not for one job alone", name, exc_info=error)
            message = f"policy {name} fails: {error_text(error)}; the last plan is kept, and the "
            message += f"policy is asked again in {again}"
            log.warning("%s", message)
        self._policy_error = error
        for uid in self.reader.specs:
            if self.statuses[uid].phase not in TERMINAL:
                self.statuses[uid].stalled(message, now)

    def _tell_plans(self, slot: int, now: float, before: Live) -> None:
        """Write progress and the plan for the next slots into the status of each live job."""
        planned: Mapping[int, Any] = {}
        try:
            planned = self.driver.planner.ahead(SHOWN_SLOTS)
        except Exception:
            self.metrics.policy_errors.inc()
            log.exception("policy %s cannot say what it plans", self.driver.policy.name)
        for uid, entry in self.driver.by_uid.items():
            job = self.statuses.get(uid)
            if job is None or job.phase in TERMINAL or uid not in self.reader.specs:
                continue
            with self.handling(uid, "telling of", now):
                had = before[uid].allocation.machines if uid in before else ()
                taken = (self._taken[machine] for machine in had if machine in self._taken)
                now_only = [(slot, entry.allocation)] if entry.allocation.workers else []
                job.holds(
                    replace(entry, done=entry.done + entry.early),
                    planned.get(entry.job.index, now_only),
                    self.machines.places,
                    now,
                    is_working=bool(self.meter.working(uid)),
                    is_whole=self.patience.is_whole(uid),
                    cause=self.windows.cause(entry, self.driver),
                    taker=next(taken, None),
                )
                job.in_state(state_of(self.driver.policy, entry.job), now)
        self.metrics.count_phases([job.phase for job in self.statuses.values()])
