"""Execution of plans, completions and lost machines: allocations and speeds of jobs."""

from __future__ import annotations

import math
from collections.abc import Callable

from oasis.driver.loop import INFINITY
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.policy import Plan
from oasis.simulator.costs import ChangeCosts, GangChange
from oasis.simulator.events import COMPLETION, SAVED, Agenda
from oasis.simulator.speed import Speed
from oasis.simulator.state import JobProgress, State

Settled = Callable[[JobProgress], None]


class Execution:
    """Changes the state of a run, and enters in the agenda what will follow from that."""

    def __init__(
        self,
        state: State,
        agenda: Agenda,
        speed: Speed,
        costs: ChangeCosts,
        on_settled: Settled | None = None,
    ) -> None:
        self._state, self._agenda = state, agenda
        self._speed, self._costs = speed, costs
        self._coupled, self._slotted = speed.coupled, state.site.slotted
        # Jobs that finished or were rejected, by index; each is told as it does.
        self._on_settled = on_settled
        self.settled: dict[int, JobProgress] = {}

    def complete(self, progress: JobProgress) -> None:
        """End a job that has done its work."""
        # In a slotted workload the work may end within a slot whose machines are held to its end.
        end = progress.finish
        progress.advance(end)
        progress.remaining = 0.0
        progress.end = end
        self._leave(progress)

    def lose(self, machine: int) -> list[PolicyJob]:
        """Take a machine out of service; the jobs that were on it and now hold nothing."""
        evicted = []
        for progress in list(self._state.jobs.values()):
            if machine in progress.allocation.machines:
                # Work done up to the loss counts before it is rolled back to the last checkpoint.
                progress.advance(self._state.now)
                progress.roll_back()
                self._hold(progress, NOTHING)
                self._schedule(progress, 0.0)
                evicted.append(progress.seen)
        # Last: the jobs gave their room back, and none of it is left on a lost machine.
        self._state.lose(machine)
        return evicted

    def carry_out(self, plan: Plan) -> bool:
        """Carry out `plan`, which has been checked; return whether anything changed."""
        jobs, now = self._state.jobs, self._state.now
        for index, reason in plan.rejected.items():
            progress = jobs[index]
            # A job that is given up may have run: its time and work up to now still count.
            progress.advance(now)
            progress.refusal = str(reason)
            self._leave(progress)
        changed = []
        for index, allocation in plan.changes.items():
            progress = jobs[index]
            before = progress.allocation
            if allocation != before:
                switches = self._switches(progress, allocation)
                progress.advance(now)
                # An incomplete gang did no work, so it has nothing to save.
                worked, saved_at, ready = NOTHING, now, now
                if progress.complete:
                    ready = progress.ready
                    # In another form it begins anew from what was saved, as after a pause.
                    worked = NOTHING if switches else before
                    saved_at = self._save(progress, NOTHING if switches else allocation)
                if switches:
                    self._hold(progress, NOTHING)
                    progress.be_in(allocation.form)
                self._hold(progress, allocation)
                changed.append((progress, worked, saved_at, ready))
        # In a pass of its own: a job may wait for what another
        # saves that comes after it in the plan.
        for progress, worked, saved_at, ready in changed:
            if progress.complete:
                self._delay(progress, worked, saved_at, ready)
        for progress, *_ in changed:
            if self._coupled:  # the speeds of all follow at the end of the instant
                self._schedule(progress, 0.0)
            else:
                self._set_speed(progress)
        return bool(changed or plan.rejected)

    @staticmethod
    def _switches(progress: JobProgress, allocation: Allocation) -> bool:
        """Return whether `allocation` is in another form than the one that the job is in."""
        holds = bool(allocation.workers or allocation.ps)
        chosen = bool(progress.seen.forms) and holds
        return chosen and (not progress.has_form or allocation.form != progress.form)

    def set_speeds(self) -> None:
        """Recompute the speeds of the jobs that slow each other down."""
        for index in self._state.load.take_affected():
            progress = self._state.jobs[index]
            rate = self._speed.rate(progress.job, progress.allocation, self._state.load)
            # An unchanged speed keeps its completion: rounding would
            # move it, and the agenda would grow.
            if rate != progress.rate:
                progress.advance(self._state.now)
                self._schedule(progress, rate)

    def _set_speed(self, progress: JobProgress) -> None:
        """Set the speed of a job that no other job slows down."""
        rate = 0.0
        if progress.complete:
            rate = self._speed.rate(progress.job, progress.allocation, self._state.load)
        self._schedule(progress, rate)

    def _leave(self, progress: JobProgress) -> None:
        self._hold(progress, NOTHING)
        del self._state.jobs[progress.job.index]
        self.settled[progress.job.index] = progress
        if self._on_settled is not None:
            self._on_settled(progress)

    def _hold(self, progress: JobProgress, allocation: Allocation) -> None:
        before = progress.allocation
        if allocation.workers or before.workers or allocation.ps or before.ps:
            self._state.hold(progress, allocation, self._coupled)

    def _save(self, progress: JobProgress, after: Allocation) -> float:
        """Let a job save its state before it gives up its allocation; return when that is done.

        One that is still being set up has nothing new to save.
        """
        now, job, before = self._state.now, progress.job, progress.allocation
        if progress.checkpoints is not None:
            # Saving before a change is a checkpoint as good as any.
            progress.checkpoints.write(progress.remaining)
        saving = self._costs.saving(job, before, after) if progress.ready <= now else 0.0
        if not saving:
            return now
        self._state.saving.keep(job, before, after, now, now + saving)
        self._agenda.add(now + saving, SAVED, job.index, 0)
        return now + saving

    def _delay(
        self, progress: JobProgress, worked: Allocation, saved_at: float, ready: float
    ) -> None:
        """Charge what the change costs in time; `worked` is what the job worked with before.

        Had nothing changed, it would be set up at `ready`.
        """
        now, after = self._state.now, progress.allocation
        started = progress.started is not None
        if started:
            progress.changes += (GangChange.of(worked, after, started),)
        saving = self._state.saving
        if saving.kept:
            free = saving.free_at(progress.job, worked, after, now, self._state.free)
            saved_at = max(saved_at, free)
        lost = self._costs.overhead(progress.job, worked, after, started)
        # A change in the middle of being set up does not make the first one shorter.
        progress.ready = max(ready, saved_at + lost)
        if not started:
            progress.started = now

    def _schedule(self, progress: JobProgress, rate: float) -> None:
        """Plan the completion at the new speed; in a slotted workload, at the end of its slot."""
        progress.rate = rate
        # Completions planned before are out of date from here on.
        progress.version += 1
        if rate <= 0.0:
            progress.finish = INFINITY
            return
        now = self._state.now
        finish = max(now, progress.ready) + progress.remaining / rate
        free_at = finish
        if self._slotted:
            # A slot is held to its end even if the work ends sooner;
            # rounding beyond it is not another slot.
            free_at = max(math.ceil(finish - TOLERANCE), math.floor(now) + 1.0)
            finish = min(finish, free_at)
        progress.finish = finish
        self._agenda.add(free_at, COMPLETION, progress.job.index, progress.version)
