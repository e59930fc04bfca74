"""A service around a driver: it takes in events, and planned work counts as done."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from oasis.driver import events
from oasis.driver.driver import Driver
from oasis.driver.entry import Entry, Facts, SlotOutcome, Submission
from oasis.driver.policy_state import policy_state
from oasis.model.calendar import Calendar, CalendarEntry
from oasis.model.cluster import Cluster, expect_cluster
from oasis.model.decision import Decision
from oasis.model.errors import InstanceError
from oasis.model.job import Job
from oasis.model.rounding import TOLERANCE
from oasis.model.schedule import Schedule
from oasis.model.validation import integer
from oasis.online.answers import (
    WAITS,
    Change,
    Completion,
    Planned,
    Progress,
    Quote,
    Totals,
    change_between,
)
from oasis.scheduling.policy import Planner, Policy
from oasis.scheduling.policy_check import check_interface, naming_own_line
from oasis.scheduling.site import schedule_of, site_of

RUNS = "runs from this slot on"

Live = Entry[Submission]
Answer = Decision | Progress | Change


class Service:
    """Runs a policy on the events of a live scheduler; jobs do their work exactly as planned."""

    def __init__(self, policy: Policy, cluster: Cluster) -> None:
        expect_cluster(cluster)
        check_interface(policy)
        self.policy, self.cluster = policy, cluster
        with naming_own_line(policy, "reset"):
            self._driver: Driver[Submission] = Driver(policy, site_of(cluster))
        self._driver.slot = 0
        self.totals, self.last_change, self.calls = Totals(), Change(), 0
        # Whether the policy failed at the last event: what was taken in is then not taken back.
        self.has_failed = False
        self._servers = {name: k for k, name in enumerate((*cluster.worker_ids, *cluster.ps_ids))}

    @property
    def now(self) -> int:
        """The present slot, which has not begun."""
        return int(self._driver.now)

    @property
    def jobs(self) -> tuple[str, ...]:
        """Ids of live jobs, in order of arrival."""
        return tuple(entry.job.id for entry in self._driver.jobs.values())

    def find(self, job_id: str) -> Live:
        """Return the live job with this id; `InstanceError` if there is none."""
        for entry in self._driver.jobs.values():
            if entry.job.id == job_id:
                return entry
        raise InstanceError("job_id", "expected a live job", job_id)

    def _check_new(self, job: Job) -> None:
        """Raise `InstanceError` unless `job` can arrive now."""
        self.cluster.check(job)
        if job.arrival != self.now:
            expected = f"expected the present slot {self.now}"
            raise InstanceError("arrival", expected, job.arrival, hint=f" (job {job.id!r})")
        if job.id in self.jobs:
            raise InstanceError("id", "expected the id of no live job", job.id)

    def _locate(self, server: str, lost: bool) -> int:
        """Return the index of a server; `InstanceError` unless it is in the state `lost` or not."""
        machine = self._index(server, "server")
        if (machine in self._driver.away) != lost:
            expected = "a lost server" if lost else "a server that is not lost"
            raise InstanceError("server", f"expected {expected}", server)
        return machine

    def _index(self, server: str, field: str) -> int:
        if not isinstance(server, str) or server not in self._servers:
            raise InstanceError(field, "expected the id of a server", server)
        return self._servers[server]

    def _planned(self) -> Planned:
        """Return schedule and utility of live jobs, by id; empty if the policy is no `Planner`."""
        plans = dict(self._driver.planner.planned())
        for entry in self._driver.jobs.values():
            # a policy that sees one form of a job does not know which one it is
            if entry.form and not entry.seen.forms and entry.job.id in plans:
                schedule, utility = plans[entry.job.id]
                if schedule is not None:
                    plans[entry.job.id] = replace(schedule, form=entry.form), utility
        return plans

    def schedules(self) -> dict[str, Schedule]:
        """Return the allocations decided from the present slot on, as schedules by job id."""
        if isinstance(self.policy, Planner):
            return {name: plan for name, (plan, _) in self._planned().items() if plan is not None}
        held = [entry for entry in self._driver.jobs.values() if entry.allocation.workers]
        now, site = self.now, self._driver.site
        made = (schedule_of(e.job.id, [(now, e.allocation)], site, e.form) for e in held)
        return {schedule.job_id: schedule for schedule in made}

    def promised(self, job_id: str) -> int | None:
        """Return the slot by which a live job must complete; None if nothing was promised."""
        return self._driver.planner.promised(self.find(job_id).seen)

    def quote(self, job: Job) -> Quote:
        """Return what submitting `job` now would decide and do to others; nothing changes."""
        event = events.Submit(job)
        self._check_new(job)
        quote: Quote | None = self._driver.planner.foresee(job, self.now)
        if quote is not None:
            return quote
        # The policy does not say it: everything is copied, and the call is made there.
        copy = deepcopy(self)
        decision = copy.take_in(event)
        assert isinstance(decision, Decision)
        return Quote(decision, copy.last_change)

    # -- what lasts --------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return data for JSON that `restore` accepts, without the policy's making and cluster."""
        driver = self._driver
        return {
            "state": {"driver": driver.state(), "policy": policy_state(self.policy, driver.jobs)},
            "totals": self.totals.to_dict(),
            "calls": self.calls,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Bring a new service into a state that was saved."""
        self._driver.restore(state["state"]["driver"], {}, lambda known, _: known)
        self._driver.bring_policy(state["state"]["policy"])
        self.totals = Totals.from_dict(state["totals"])
        self.calls = integer(state["calls"], "calls")

    # -- what may happen ---------------------------------------------------------------------------

    def take_in(self, event: events.Event, rounds: Sequence[int] = ()) -> Answer:
        """Carry out an event and return the answer; wrong arguments raise and change nothing."""
        # Its decisions search for exactly so many `rounds` each; by default as time allows.
        self._completed: list[Completion] = []
        self._gone: list[str] = []  # jobs that were given up
        self._broken: list[str] = []  # jobs whose promise was
        self.rounds: list[int] = []  # of the search in each decision
        self._given = list(rounds)
        # Taken before the event, and again after it: the difference is what it did to others.
        before = self._planned()
        decision, own = self._carry_out(event)
        self.last_change = change_between(
            before,
            self._planned(),
            own,
            completed=self._completed,
            gone=self._gone,
            broken=self._broken,
        )
        self.calls += 1
        if isinstance(event, events.Advance):  # what completed leaves the plan without a loss
            self.last_change = Change(given_up=tuple(self._gone))
            return Progress(self.now, tuple(self._completed), tuple(self._gone))
        return self.last_change if decision is None else decision

    def _carry_out(self, event: events.Event) -> tuple[Decision | None, str | None]:
        """Do what an event says; return the decision on a new job and the id of a job, or None."""
        facts = self._facts
        match event:
            case events.Submit():
                self._check_new(event.job)
                decision = self._submit(event.job, facts)
                self._count(submitted=1, refused=not decision.admitted)
                return decision, event.job.id
            case events.Advance():
                until = integer(event.now, "now", minimum=self.now)
                while self.now < until:
                    self._go_to(self._next_event(until))
            case events.Cancel():
                entry = self.find(event.job_id)
                others = {k: spec for k, spec in facts.specs.items() if k != entry.spec.uid}
                self._step(replace(facts, specs=others))
                self._count(cancelled=1, worker_slots_done=int(entry.done))
                return None, event.job_id
            case events.FinishEarly():
                entry = self.find(event.job_id)
                if not entry.has_gang and not entry.done:
                    raise InstanceError("job_id", "expected a job that has run", entry.job.id)
                self._step(replace(facts, ended=frozenset((entry.spec.uid,))))
                return None, event.job_id
            case events.Revise():
                # All are looked up before any is changed: one wrong id leaves everything as it was.
                works = [(self.find(job_id), left) for job_id, left in event.remaining_work.items()]
                for entry, left in works:
                    entry.work = entry.done + left
                if works:
                    self._step(facts, ask=True)
            case events.LoseServer() | events.RestoreServer():
                machine = self._locate(event.server, lost=isinstance(event, events.RestoreServer))
                # `_locate` has made sure that it changes sides.
                self._step(replace(facts, down=facts.down ^ {machine}))
            case events.ReserveWindow():
                self._reserve(event)
        return None, None

    def _count(self, **more: float) -> None:
        """Add these amounts to the fields of `totals` with the same names."""
        totals = self.totals
        sums = {name: getattr(totals, name) + amount for name, amount in more.items()}
        self.totals = replace(totals, **sums)

    def _go_to(self, slot: int) -> None:
        """Let planned work be done up to `slot`, and ask the policy, as the simulator would."""
        for entry in self._driver.jobs.values():
            entry.done += entry.allocation.worker_count * (slot - self.now)
        self._step(self._facts, slot)

    def _next_event(self, until: int) -> int:
        """Return the next slot at which the policy must be asked, at most `until`."""
        times = [until]
        if self._driver.loop.wake_at is not None:  # at the latest the next slot, if it is `slotted`
            times.append(int(self._driver.loop.wake_at))  # a later slot
        for window in self._driver.calendar.windows:
            times += [time for time in (window.begin, window.end) if time > self.now]
        for entry in self._driver.jobs.values():
            workers = entry.allocation.worker_count
            if workers:
                slots = math.ceil(entry.remaining / workers - TOLERANCE)
                times.append(self.now + max(1, slots))
        return min(times)

    def _submit(self, job: Job, facts: Facts[Submission]) -> Decision:
        """Let a job arrive in the present slot and return the policy's decision on it."""
        index = self._driver.next_index
        # Names may come again after a job has ended; the index never does.
        uid = str(index)
        # The driver says when it arrives: the slot of its step.
        spec = Submission(uid, replace(job, arrival=0))
        outcome = self._step(replace(facts, specs={**facts.specs, uid: spec}))
        decisions = self._driver.planner.last_decisions()
        if index in decisions:
            return decisions[index]
        if uid in outcome.rejected:
            return Decision(job.id, False, reason=outcome.rejected[uid])
        runs = bool(self._driver.jobs[index].allocation.workers)
        return Decision(job.id, True, reason=RUNS if runs else WAITS)

    def _reserve(self, event: events.ReserveWindow) -> None:
        """Set a maintenance window, which replaces one of the same name; no machines remove it."""
        begin = integer(event.begin, "begin", minimum=self.now)
        end = integer(event.end, "end", minimum=begin + 1)
        machines = frozenset(self._index(server, "servers") for server in event.servers)
        window = CalendarEntry(event.name, begin, end, machines)
        windows = tuple(w for w in self._driver.calendar.windows if w.name != window.name)
        windows += (window,) if window.machines else ()
        self._step(replace(self._facts, calendar=Calendar(windows)), ask=True)

    @property
    def _facts(self) -> Facts[Submission]:
        """What a step is told if nothing happened: live jobs, lost servers and windows."""
        driver = self._driver
        specs = {uid: entry.spec for uid, entry in driver.by_uid.items()}
        return Facts(specs, down=frozenset(driver.away), calendar=driver.calendar)

    def _step(
        self, facts: Facts[Submission], until: int | None = None, *, ask: bool = False
    ) -> SlotOutcome[Submission]:
        """Go to slot `until`, by default the present one, with these facts; count the outcome."""
        slot, planner = self.now if until is None else until, self._driver.planner
        cut = planner.cut_short
        ahead = Calendar(tuple(w for w in facts.calendar.windows if w.end > slot))
        facts = replace(facts, calendar=ahead)
        # Set before the step and cleared after it: whatever
        # interrupts it, the books are half changed.
        self.has_failed = True
        planner.rounds_given = self._given.pop(0) if self._given else None
        decided = self._driver.step(slot, facts, ask=ask)
        self.rounds.append(planner.rounds_done)
        planner.rounds_given = None
        self.has_failed = False
        for uid in decided.completed:
            entry = decided.entries[uid]
            # One that ends early while it runs holds its machines in this slot yet.
            last = slot if uid in facts.ended and entry.has_gang else slot - 1
            utility = float(entry.spec.job.utility(last - entry.arrived))
            self._completed.append(Completion(entry.job.id, last, utility))
            self._count(completed=1, utility=utility, worker_slots_done=int(entry.done))
        for uid in decided.given_up:
            entry = decided.entries[uid]
            self._gone.append(entry.job.id)
            done = int(entry.done)
            self._count(given_up=1, worker_slots_done=done, worker_slots_wasted=done)
            self._count(given_up_after_start=entry.done > 0)
        entries = decided.entries | self._driver.by_uid
        self._broken += [entries[uid].job.id for uid in decided.late]
        self._count(broken_promises=len(decided.late), cut_short=planner.cut_short - cut)
        return decided
