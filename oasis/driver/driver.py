"""Drives a policy slot by slot: facts go in at each boundary between slots, decisions come out.

Between two boundaries the policy is asked about jobs that come, for the slot that has not begun.

It knows neither a cluster nor a file. A world, such as the pods of a cluster or the calls of a
service, says what happened, and carries out what was decided.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, Generic

from oasis.driver.books import place_fewest
from oasis.driver.entry import (
    NO_JOB,
    AsItWas,
    Entry,
    Facts,
    SlotOutcome,
    Spec,
    differs,
    form_begun_in,
    submission_of,
)
from oasis.driver.loop import Loop, World
from oasis.driver.policy_state import policy_state, restore_policy
from oasis.model.calendar import EVER_OPEN, Calendar
from oasis.model.errors import OasisError, PolicyError
from oasis.model.job import Job, remaining_job
from oasis.model.rounding import TOLERANCE
from oasis.model.utility import later
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.placement import Room
from oasis.scheduling.policy import Plan, Planner, Policy
from oasis.scheduling.site import Site, policy_job
from oasis.scheduling.view import View

REACH = 1000  # delays, in slots, that the utility of a job that is planned anew is known for
LONGEST_WAIT = 64  # slots between two attempts of a rejected job
UNSAVED = ("policy", "planner", "site", "_facts", "_outcome", "_error")


class Driver(World, Generic[Spec]):
    """Asks a policy for a plan at the beginning of each slot (a boundary), and records it."""

    def __init__(self, policy: Policy, site: Site, minimum_run: int = 0) -> None:
        # Slots for which a policy that `keeps_run_times` leaves a job as it is after it was started
        # or changed; 0: it may be changed at every boundary. Lost machines come before that.
        self.policy, self.minimum_run = policy, minimum_run
        self.planner = policy if isinstance(policy, Planner) else Planner()  # which plans nothing
        self.slot: int | None = None  # of the last boundary
        self.ahead = 0  # slots after it that the policy was asked about last
        self.jobs: dict[int, Entry[Spec]] = {}  # live jobs by index, in order of arrival
        self.retries: dict[str, tuple[int, int, int]] = {}  # uid: arrived, due, attempts
        self.settled: set[str] = set()  # uids of jobs that ended, as long as the world has them
        self.away: set[int] = set()  # machines that are down
        self.again_at: int | None = None  # the slot up to which nothing is decided after an error
        self._error: Exception | None = None
        self._errors = 0  # boundaries in a row at which the policy failed
        self._arrive_again: list[Entry[Spec]] = []
        self.next_index = 0  # of the next job that arrives
        # What the loop takes in next, and where this says what came of it.
        self._facts: Facts[Spec] = Facts({})
        self._outcome: SlotOutcome[Spec] = SlotOutcome()
        self._begin(site)

    def _begin(self, site: Site) -> None:
        """Reset the policy, and what depends on the machines, for a run on `site`."""
        self.policy.reset(site)
        self.site = site
        self.planned_with = self._amounts()  # of the machines, as the policy knows them
        self.away.clear()
        self.calendar = EVER_OPEN  # as it stood at the last boundary
        self.closed: frozenset[int] = frozenset()  # machines that it closed then
        # Jobs that lost a closed machine while the policy failed, so that it does not know yet.
        self._untold: frozenset[int] = frozenset()
        self.kept_policy: Any = None  # its state after the last boundary; None: as it begins
        self._begins_anew = False
        self.loop = Loop(self.policy, self, self)

    @property
    def by_uid(self) -> dict[str, Entry[Spec]]:
        """Live jobs by the uid of their object."""
        return {entry.spec.uid: entry for entry in self.jobs.values()}

    @property
    def arriving_again(self) -> set[str]:
        """Uids of jobs that arrive once more at the next boundary, and are not live until then."""
        return {entry.spec.uid for entry in self._arrive_again}

    @property
    def now(self) -> float:
        """The slot that the policy was asked about last; 0 before the first."""
        return float((self.slot or 0) + self.ahead)

    @property
    def goes_on(self) -> bool:
        """Whether there is a live job."""
        return bool(self.jobs)

    @property
    def down(self) -> frozenset[int]:
        """Machines that cannot be used now: those that are lost, and those that a window closes."""
        if isinstance(self.policy, Planner):  # others are told at boundaries which ones are closed
            return self.calendar.closed(int(self.now)).union(self.away)
        return self.closed.union(self.away)

    reserved = ()  # a world of its own jobs alone

    @property
    def closing(self) -> frozenset[int]:
        """Machines that close too soon for a waiting job; none for a `Planner`: it plans ahead."""
        # The longest waiting job decides, because it is unknown which one the policy would start.
        if not self.calendar or isinstance(self.policy, Planner):
            return frozenset()
        waiting = (entry.slots_needed for entry in self.jobs.values() if not entry.has_gang)
        now = int(self.now)
        return self.calendar.closing(now, waiting) | self.calendar.closed(now) - self.closed

    @property
    def free(self) -> list[tuple[int, ...]]:
        """Free capacity of each machine, by resource; zeros for machines that are down."""
        return self._room((entry.job, entry.allocation) for entry in self.jobs.values()).free

    def _room(self, held: Iterable[tuple[PolicyJob, Allocation]]) -> Room:
        """Return the free capacity beside these allocations, without lost or closed machines."""
        view = View(self, self.policy.name, told_remaining=False)
        room = Room(self.site, view.capacity(), self.down | self.closed)
        for job, allocation in held:
            room.occupy(job, allocation)
        return room

    def step(self, slot: int, facts: Facts[Spec], *, ask: bool = False) -> SlotOutcome[Spec]:
        """Record the events up to `slot` and ask the policy; raise the error of policy or job."""
        # The caller ends on an error, so no state is saved to return to: the events are recorded.
        self._pass(slot, facts)
        outcome = self._attempt(facts, {}, ask=ask)
        for error in (outcome.error, *outcome.failed.values()):
            if error is not None:
                raise error
        return outcome

    def boundary(self, slot: int, facts: Facts[Spec]) -> SlotOutcome[Spec]:
        """Record the events up to `slot` and ask the policy, leaving out jobs with which it fails.

        If that does not help, all jobs hold what they held before, and it is asked again later.
        """
        # A plan that was made within the last slot rests on work that was expected, not yet known.
        was_asked = bool(self.ahead)
        self._pass(slot, facts)
        # After an error that no job explains, asking at once would only fail again.
        if self.again_at is not None and slot < self.again_at:
            return self._without_plan(facts, slot)
        # Every attempt changes the books and the policy: a failed
        # one must leave no trace in the next.
        saved = self._saved()
        failed: dict[str, Exception] = {}
        # Each round leaves out one more job, so this ends after as
        # many rounds as there are jobs at most.
        while (outcome := self._attempt(facts, failed, ask=was_asked)).error is not None:
            self._roll_back(saved)
            culprit = self._find_cause(facts, failed, saved, outcome.error)
            if culprit is None:
                # Twice as long each time, up to a limit: a policy that recovers is asked soon.
                self.again_at = slot + min(LONGEST_WAIT, 2**self._errors)
                self._error, self._errors = outcome.error, self._errors + 1
                return self._without_plan(facts, slot)
            failed[culprit[0]] = culprit[1]
        self.planned_with = self._amounts()
        self._untold = frozenset()
        # One boundary without an error: the waits begin at one slot again.
        self.again_at, self._error, self._errors = None, None, 0
        self._keep_policy()
        return outcome

    def _keep_policy(self) -> None:
        # Kept last, when all went well: it is the state that the next error brings the policy back
        # to. Without one, because it cannot be written down, the policy then begins anew.
        self.kept_policy = None
        with suppress(OasisError):
            self.kept_policy = policy_state(self.policy, self.jobs)

    # -- between boundaries ------------------------------------------------------------------------

    @property
    def may_be_asked(self) -> bool:
        """Whether the policy may be asked before the next boundary."""
        # Jobs that arrive once more come first, and where it failed the boundary finds out why.
        is_in_order = not self._begins_anew and self.again_at is None
        return is_in_order and self.slot is not None and not self._arrive_again

    @property
    def room(self) -> Room:
        """The free capacity of the machines until the next boundary."""
        return self._room((entry.job, entry.in_force) for entry in self.jobs.values())

    def fits(self, spec: Spec, room: Room) -> bool:
        """Place the fewest tasks of a job in `room`, in the first form that fits; False if none."""
        return any(place_fewest(room, self.as_seen(spec, form)) for form in spec.job.in_forms)

    def running(self) -> dict[str, Entry[Spec]]:
        """Return copies of the live jobs, by uid, with the allocations until the next boundary."""
        return {uid: replace(e, allocation=e.in_force) for uid, e in self.by_uid.items()}

    def arrive(self, specs: Mapping[str, Spec]) -> SlotOutcome[Spec]:
        """Ask about the next slot, which has not begun, because these jobs have come.

        A job whose machines in the plan are free until then begins at once. An error leaves
        everything as it was, and the boundary finds out what causes it.
        """
        assert self.slot is not None
        saved = self._saved()
        for entry in self.jobs.values() if not self.ahead else ():
            self._expect(entry)
        self.ahead = 1
        outcome = self._attempt(Facts(specs), {})
        if outcome.error is not None:
            self._roll_back(saved)
            return outcome
        room = self.room
        for entry in self.jobs.values():
            is_new = entry.arrived > self.slot and not entry.begun
            if is_new and entry.allocation.workers and room.hold(entry.job, entry.allocation):
                entry.put_in_force()
        self._keep_policy()
        return outcome

    def _expect(self, entry: Entry[Spec]) -> None:
        """Record the work that a job will have done at the next boundary if it works as planned."""
        # No job is over before that is known: it goes on, unless by a plan it ends there.
        least = 0.0 if isinstance(self.policy, Planner) else min(1.0, entry.work)
        done = min(entry.done + entry.allocation.worker_count, entry.work - least)
        entry.held += bool(entry.allocation.workers)
        entry.done = max(entry.done, done)

    # -- an attempt --------------------------------------------------------------------------------

    def _pass(self, slot: int, facts: Facts[Spec]) -> None:
        """Record the work that jobs did up to `slot`, before the loop goes there."""
        passed = 0 if self.slot is None else slot - int(self.now)
        # Those that will arrive once more have worked up to now, too.
        for entry in (*self.jobs.values(), *self._arrive_again):
            # The slots that have passed are those of the allocation of
            # the last boundary, not of this one.
            entry.held += passed if entry.allocation.workers else 0
            # Training may go on from an older state of it, and then reports less than before.
            if entry.spec.uid in facts.done:
                # It arrived within the slot that ends: what it did there is before its first slot.
                if self.slot is not None and entry.arrived > self.slot:
                    entry.early = facts.done[entry.spec.uid]
                entry.done = max(0.0, facts.done[entry.spec.uid] - entry.early)
            is_used_up = entry.work - entry.done <= TOLERANCE * entry.work
            if entry.spec.ends_itself and is_used_up and entry.job is not NO_JOB:
                entry.extend()
            loss = facts.losses.get(entry.spec.uid)
            if loss is not None and entry.allocation.workers:
                entry.observe(slot, loss)
        self.slot, self.ahead = slot, 0

    def _attempt(
        self, facts: Facts[Spec], failed: Mapping[str, Exception], *, ask: bool = False
    ) -> SlotOutcome[Spec]:
        """Run an instant of the loop without jobs that `failed`; return an error in the outcome."""
        assert self.slot is not None
        outcome: SlotOutcome[Spec] = SlotOutcome(failed=dict(failed))
        # The policy lost its memory in an error and had no state to
        # go back to: to it, all jobs are new.
        if self._begins_anew:
            self._arrive_again += self.jobs.values()
            self.jobs.clear()
        if failed:
            specs = {uid: spec for uid, spec in facts.specs.items() if uid not in failed}
            # To the policy a job that failed looks as if its owner had deleted it.
            facts = replace(facts, specs=specs, ended=facts.ended - failed.keys())
        self._facts, self._outcome = facts, outcome
        try:
            self.loop.instant(self.now, ask=bool(ask or self.minimum_run))
            self._check_closed()
            # Only now: an attempt that fails must let the jobs arrive again in the next one.
            self._begins_anew = False
        except Exception as error:  # noqa: BLE001 (of the policy, which may be anybody's: it is told)
            outcome.error = error
        else:
            if not self.ahead:  # a plan made within a slot comes into force at the boundary
                for entry in self.jobs.values():
                    entry.put_in_force()
        return outcome

    def rebuild(self, site: Site) -> None:
        """Replace the machines and reset the policy; at the next boundary all live jobs arrive."""
        self._begin(site)
        self._arrive_again += self.jobs.values()
        self.jobs.clear()

    def resize(self, site: Site) -> None:
        """Set new amounts of the same machines; `rebuild` if no state of the policy is saved."""
        # At the next boundary those that are smaller are lost to the policy and come back at once,
        # so that what ran there is placed again; those that are larger only come back.
        if self.kept_policy is None:
            self.rebuild(site)
            return
        self.policy.reset(site)
        self.site = site
        wake_at, self.loop = self.loop.wake_at, Loop(self.policy, self, self)
        self.loop.wake_at = wake_at
        self.bring_policy(self.kept_policy)

    def _amounts(self) -> list[Sequence[float]]:
        return [machine.amounts for machine in self.site.machines]

    # -- as a world: what happened ---------------------------------------------------------------

    def happen(self, view: View) -> bool:
        """Record completions, lost machines and arrivals since the last boundary; return True."""
        # Completions before losses before arrivals: a job that is done is not evicted from a
        # machine that went down, and what arrives meets neither.
        anew = []
        if not self.ahead:
            anew = self._leave(view)
            self._machines(view)
        self._arrive(view, anew)
        return True

    def _leave(self, view: View) -> list[Entry[Spec]]:
        """Remove completed, deleted and edited jobs; return those that arrive again as new ones."""
        specs, anew, again = self._facts.specs, list[Entry[Spec]](), self._arrive_again
        self._arrive_again = []
        for entry in (*again, *self.jobs.values()):
            uid, is_live = entry.spec.uid, self.jobs.get(entry.job.index) is entry
            spec = specs.get(uid)
            # Completion is asked before edits: a job that has done the work
            # that its owner now wants needs no plan.
            is_done = self._completes(entry, spec)
            if is_live:  # the policy knows it
                if not is_done and spec is not None and not differs(spec, entry.spec):
                    entry.spec = spec
                    continue
                del self.jobs[entry.job.index]
                if not is_done and isinstance(self.policy, Planner):
                    self.policy.withdraw(entry.seen)
                else:
                    view.finished.append(entry.seen)
            if not is_done and spec is not None and uid not in self._outcome.failed:
                entry.spec = spec  # a job that its owner deleted meanwhile does not come back
                anew.append(entry)
        # What the world has forgotten needs no place here: a service runs for years.
        self.settled &= specs.keys()
        for uid in self.retries.keys() - specs.keys():
            del self.retries[uid]
        # Edited jobs keep their place in the order of arrival.
        return sorted(anew, key=lambda entry: entry.arrived)

    def _completes(self, entry: Entry[Spec], spec: Spec | None) -> bool:
        """Record a job as complete if its work is done or it has ended; return whether it is."""
        uid, outcome = entry.spec.uid, self._outcome
        if uid in outcome.failed:
            return False
        is_unknown = entry.job is NO_JOB  # how much work it is has not been asked yet
        by_work = False
        if spec is not None and (is_unknown or differs(spec, entry.spec)):
            try:
                # It may ask for less work than is done already: then the job is complete at once.
                form = form_begun_in(spec.job.in_forms, entry.form)
                entry.work = policy_job(form, self.site).work
            except Exception as error:  # noqa: BLE001 (whatever is wrong with it, it is told)
                outcome.failed[uid] = error
                return False
        if (spec is not None or not is_unknown) and not entry.spec.ends_itself:
            # hardly any work is left from the beginning, too: a job that never ran has not done it
            has_run = entry.begun or entry.done + entry.early > 0
            by_work = has_run and entry.has_hardly_any_left
        if not by_work and uid not in self._facts.ended:
            return False
        entry.done += entry.early
        outcome.completed.append(uid)
        outcome.entries[uid] = entry
        # The world may show a job that ended for a while longer: it must not arrive as a new one.
        self.settled.add(uid)
        return True

    def _machines(self, view: View) -> None:
        """Record machines lost, returned or closed; jobs on lost ones lose their allocation."""
        facts = self._facts
        gone, were = set(facts.down), set(self.away)
        sizes = list(zip(self.planned_with, self._amounts(), strict=True))
        were_closed = self.closed
        self.calendar, self.closed = facts.calendar, facts.calendar.closed(int(view.now))
        if isinstance(self.policy, Planner):
            self.policy.plan_around(facts.calendar)
        else:
            # To a policy of the present slot a closed machine is one that is lost and comes back.
            gone |= self.closed
            were |= were_closed
        self.away = set(facts.down)
        resized = [k for k, two in enumerate(sizes) if tuple(two[0]) != two[1]]
        smaller = {k for k in resized if any(map(operator.gt, *sizes[k]))}
        view.lost += sorted((gone | smaller) - were)
        view.returned += sorted(were.union(resized) - gone)
        for index, entry in self.jobs.items():
            # A gang works whole or not at all, so one lost machine takes all its tasks.
            if not entry.allocation.machines.isdisjoint(view.lost):
                entry.allocation, entry.kept_until = NOTHING, 0.0
                entry.waiting_since = int(view.now)
                view.evicted.append(entry.seen)
            elif index in self._untold:
                view.evicted.append(entry.seen)

    def _arrive(self, view: View, anew: list[Entry[Spec]]) -> None:
        """Let jobs arrive; one that cannot be described to the policy is left out and reported."""
        facts, failed, slot = self._facts, self._outcome.failed, int(view.now)
        # By uid, not by name: a job that is deleted and created under the same name is another job.
        known = {entry.spec.uid for entry in (*self.jobs.values(), *anew)} | self.settled
        # Jobs that were here before come before the new ones.
        arriving = list(anew)
        for uid, spec in facts.specs.items():
            # A retried job keeps its first arrival: its utility falls from there.
            arrived, due, _ = self.retries.get(uid, (slot, slot, 0))
            if uid in known or uid in failed or due > slot:
                continue
            # What was done before is not told: each decision is that on a job that begins now.
            early = facts.done.get(uid, 0.0)
            entry = Entry(spec, NO_JOB, arrived, 0.0, early=early)
            is_over = bool(early or uid in facts.ended) and self._completes(entry, spec)
            if not is_over and uid not in failed:
                arriving.append(entry)
        for entry in arriving:
            try:
                self._enter(entry, slot, view)
            except Exception as error:  # noqa: BLE001 (whatever is wrong with it, it is told)
                failed[entry.spec.uid] = error

    def _enter(self, entry: Entry[Spec], slot: int, view: View) -> None:
        """Let a job arrive in `slot`, new or with the work left: make what the policy sees."""
        spec = entry.spec
        source = replace(spec.job, arrival=entry.arrived)
        if entry.has_form or entry.done:
            source = form_begun_in(source.in_forms, entry.form)
        else:
            entry.form = 0
        entry.work = policy_job(source, self.site).work
        fixed = spec.initial_workers
        if entry.given is not None:  # whoever draws counts would draw another
            fixed = source.workers_near(entry.given)
        self._show(entry, source, slot, entry.remaining, self.next_index, fixed)
        if entry.forms:
            entry.work = entry.job.work
        entry.allocation, entry.kept_until = NOTHING, 0.0
        entry.waiting_since = slot
        self.next_index += 1
        self.jobs[entry.job.index] = entry
        view.arrived.append(entry.seen)

    def _show(
        self, entry: Entry[Spec], job: Job, slot: int, left: float, index: int, fixed: int | None
    ) -> None:
        """Show the policy a job with `left` worker-slots to do as one that arrives in `slot`."""
        if len(job.in_forms) > 1:  # it has not begun
            job = replace(job, arrival=slot, utility=later(job.utility, slot - job.arrival, REACH))
        elif (slot, left) != (job.arrival, work := policy_job(job, self.site).work):
            # Whole worker-slots, forgiving what rounding left over; none would be a job without
            # work.
            slots = max(1, math.ceil(left - TOLERANCE * work))
            job = remaining_job(job, slots, slot, REACH)
        seen = self.as_seen(entry.spec, job, index, fixed)
        entry.show(seen, self.loop.told(seen), self.loop.knows_forms)

    def as_seen(
        self, spec: Spec, source: Job, index: int = 0, fixed: int | None = None
    ) -> PolicyJob:
        """Return the job as a policy sees it, with its true work and initial workers `fixed`."""
        if len(source.in_forms) > 1:
            forms = []
            for form in source.in_forms:
                has_it = fixed in form.worker_counts
                forms.append(self.as_seen(spec, form, index, fixed if has_it else None))
            return replace(forms[0], source=source, forms=tuple(forms))
        job = policy_job(source, self.site)
        if spec.ps_count is not None:
            # The owner's number of parameter servers takes the place of the rule by bandwidth (6).
            job = replace(job, ps_per_worker=0.0, fixed_ps=spec.ps_count)
        return replace(job, index=index, initial_workers=fixed)

    def fewest_slots(self, spec: Spec) -> int | None:
        """Return the slots of a job in its quickest form, on all machines; None if none fits."""
        seen = (self.as_seen(spec, one) for one in spec.job.in_forms)
        counts = [job.work / most for job in seen if (most := self.loop.empty.most_workers(job))]
        return math.ceil(min(counts) - TOLERANCE) if counts else None

    # -- what is decided ---------------------------------------------------------------------------

    def carry_out(self, plan: Plan, view: View) -> bool:
        """Record the allocations and rejections of a checked plan; return whether it has any."""
        outcome = self._outcome
        late = [entry for index, entry in self.jobs.items() if index in self.planner.late]
        outcome.late += [entry.spec.uid for entry in late]
        # Rejected jobs leave the books first, so that nothing below takes them for admitted.
        for index, reason in plan.rejected.items():
            self._reject(self.jobs.pop(index), reason)
        for index, allocation in plan.changes.items():
            entry = self.jobs[index]
            if allocation == entry.allocation:
                continue
            if entry.seen.forms and not entry.has_form:
                entry.be_in(allocation.form)
            entry.hold(allocation, int(view.now), self.minimum_run)
            outcome.changed.append(entry.spec.uid)
        # A job is admitted if it arrived and was not rejected, whether it runs at once or waits.
        for job in view.arrived:
            arrived = self.jobs.get(job.index)
            if arrived is not None and not arrived.admitted:
                arrived.admitted = True
                self.retries.pop(arrived.spec.uid, None)
                outcome.admitted.append(arrived.spec.uid)
        return bool(plan.rejected or plan.changes)

    def _reject(self, entry: Entry[Spec], reason: str) -> None:
        """Record a rejection; one admitted before is given up, a new one may be tried again."""
        uid, outcome = entry.spec.uid, self._outcome
        if entry.admitted:
            outcome.given_up[uid], outcome.entries[uid] = reason, entry
            # It was accepted once, so its owner does not ask for it to be tried again.
            self.settled.add(uid)
            return
        outcome.rejected[uid] = reason
        if entry.spec.on_rejection == "fail":
            self.settled.add(uid)
        if entry.spec.on_rejection == "retry":
            _, _, attempts = self.retries.get(uid, (0, 0, 0))
            # Waits of 1, 2, 4, .. slots: a full cluster is not asked
            # about the same job in every slot.
            due = int(self.now) + min(LONGEST_WAIT, 2**attempts)
            self.retries[uid] = (entry.arrived, due, attempts + 1)
            outcome.retried[uid] = due

    # -- what went wrong ---------------------------------------------------------------------------

    def _saved(self) -> dict[str, Any]:
        """Return copies of the attributes that an attempt changes, except the policy, by name."""
        saved = {name: copy(value) for name, value in vars(self).items() if name not in UNSAVED}
        saved["jobs"] = {k: replace(e, observed=[*e.observed]) for k, e in self.jobs.items()}
        saved["_arrive_again"] = [replace(e, observed=[*e.observed]) for e in self._arrive_again]
        return saved

    def _roll_back(self, saved: dict[str, Any]) -> None:
        """Undo an attempt, also in the policy; renew the copies in `saved` for another rollback."""
        vars(self).update(saved)
        saved.update(self._saved())
        # A fresh policy is brought back to the state of the last
        # boundary: what it did since is unknown.
        self.policy.reset(self.site)
        self._begins_anew = self.kept_policy is None
        if self.kept_policy is not None:
            self.bring_policy(self.kept_policy)

    def _find_cause(
        self,
        facts: Facts[Spec],
        failed: Mapping[str, Exception],
        saved: dict[str, Any],
        error: Exception,
    ) -> tuple[str, Exception] | None:
        """Return uid and error of the first job with which the policy fails; None: not one job."""
        # Oldest first: the job to blame is the first one with which the policy fails, so that
        # as many as possible of those that ran before are kept.
        places = {uid: k for k, uid in enumerate(self.by_uid)}
        uids = [uid for uid in facts.specs if uid not in failed]
        uids.sort(key=lambda uid: places.get(uid, len(places)))
        live, errors = sum(uid in places for uid in uids), {len(uids): error}

        def fails(count: int) -> bool:
            # A trial has the first `count` jobs alone; whatever it does is rolled back.
            left_out = dict.fromkeys(uids[count:], error)
            failure = self._attempt(facts, {**failed, **left_out}, ask=True).error
            self._roll_back(saved)
            if failure is not None:
                errors[count] = failure
            return failure is not None

        # The likely culprit is new: if the live jobs alone work, only new ones are searched.
        first = live + 1 if live < len(uids) and not fails(live) else 0
        # Bisection between a number of jobs that works and one that fails: few trials among
        # thousands. Where the policy fails with no job at all, none is to blame.
        count = bisect_left(range(len(uids)), True, first, key=fails)
        return (uids[count - 1], errors[count]) if count else None

    def _without_plan(self, facts: Facts[Spec], slot: int) -> SlotOutcome[Spec]:
        """Take jobs off closed machines, and those not begun off lost ones; return the error."""
        closed = facts.calendar.closed(slot)
        for index, entry in self.jobs.items():
            # What runs on a machine that is down stays planned there; nothing begins on one.
            lost = closed if entry.allocation == entry.in_force else closed | facts.down
            if entry.allocation.machines & lost:
                entry.allocation, entry.waiting_since = NOTHING, slot
                self._untold |= {index}
            entry.put_in_force()  # the last plan stays, which may be one for this slot
        return SlotOutcome(error=self._error, again_at=self.again_at)

    def _check_closed(self) -> None:
        """Raise `PolicyError` if a plan uses a closed machine."""
        for entry in self.jobs.values() if self.closed and not self.ahead else ():
            for machine in sorted(entry.allocation.machines & self.closed):
                where = self.site.machines[machine].id
                raise PolicyError(self.policy.name, "is closed", job=entry.job.id, server=where)

    # -- what lasts --------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return data for JSON that `restore` accepts, without the policy's own state."""
        return {
            "slot": self.slot,
            "ahead": self.ahead,
            "next": self.next_index,
            "wake_at": self.loop.wake_at,
            "down": sorted(self.away),
            "calendar": self.calendar.to_dict(),
            # Sets are sorted, so that the same state is the same bytes.
            "settled": sorted(self.settled),
            "retries": {uid: list(entry) for uid, entry in self.retries.items()},
            "entries": [e.state() for e in (*self.jobs.values(), *self._arrive_again)],
            # those that are to arrive once more: whoever goes on lets them do so
            "again": sorted(self.arriving_again),
        }

    def remember(
        self, spec: Spec, arrived: int, done: float, given: int | None = None, form: int = 0
    ) -> None:
        """Let a job accepted before, of which `done` is complete, arrive at the next boundary."""
        entry = Entry(spec, NO_JOB, arrived, 0.0, done, admitted=True, given=given, form=form)
        self._arrive_again.append(entry)

    def restore(
        self,
        state: Mapping[str, Any],
        specs: Mapping[str, Spec],
        as_it_was: AsItWas[Spec],
        *,
        remake: bool = False,
    ) -> None:
        """Restore the driver from the data of `state`, with the jobs that are there now, by uid.

        One that is gone or was edited is taken over `as_it_was`, and leaves at the next boundary.
        `remake`: the policy does not know these jobs, and they arrive once more.
        """
        self.slot, self.ahead, self.next_index = state["slot"], state["ahead"], state["next"]
        self.loop.wake_at = state["wake_at"]
        self.settled.update(state["settled"])
        self.retries = {uid: (a, b, c) for uid, (a, b, c) in state["retries"].items()}
        if not remake:
            self.away.update(state["down"])
            self.calendar = Calendar.from_dict(state["calendar"])
            self.closed = self.calendar.closed(self.slot or 0)
        for kept in state["entries"]:
            entry, uid = self.restored(kept, specs, as_it_was), kept["uid"]
            if not remake and uid not in state["again"]:
                self.jobs[entry.job.index] = entry
            # The state of the policy is lost, belongs to other machines or does not have this job.
            elif uid in specs:
                # Only its work and its times stay.
                again = replace(entry, spec=specs[uid], job=NO_JOB, allocation=NOTHING)
                self._arrive_again.append(replace(again, in_force=NOTHING))

    def restored(
        self, state: Mapping[str, Any], specs: Mapping[str, Spec], as_it_was: AsItWas[Spec]
    ) -> Entry[Spec]:
        """Return the entry that `state` describes; if its job is gone or edited, by `as_it_was`."""
        known, spec = submission_of(state), specs.get(state["uid"])
        if spec is None or (spec.generation, spec.job) != (known.generation, known.job):
            spec = as_it_was(known, spec)
        entry = Entry(spec, NO_JOB, state["arrived"], state["work"], form=state["form"])
        source = replace(spec.job, arrival=entry.arrived)
        if state["alone"]:
            source = form_begun_in(source.in_forms, entry.form)
        # The policy knew this job as what was left of it, so it is shown that again.
        shown = (state[name] for name in ("since", "left", "index", "fixed"))
        self._show(entry, source, *shown)
        entry.take_over(state)
        return entry

    def bring_policy(self, state: Any) -> None:
        """Restore the policy, which has just been reset, from its saved `state`."""
        jobs = {index: entry.seen for index, entry in self.jobs.items()}
        restore_policy(self.policy, state, jobs, self.site)
        self.kept_policy = state
