"""Plans, completions and lost machines carried out: who then holds what, and works how fast."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oasis.model.errors import PolicyError
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.job import NOTHING, Allocation, Demand, PolicyJob, Tasks
from oasis.scheduling.policy import Plan
from oasis.scheduling.site import GROUPS
from oasis.simulator.costs import Costs, GangChange
from oasis.simulator.events import COMPLETION, INFINITY, SAVED, Agenda
from oasis.simulator.speed import Speed
from oasis.simulator.state import JobProgress, State

Balance = dict[int, list[int]]


def check(plan: Plan, state: State, policy: str) -> None:
    """Raise `PolicyError` unless `plan` can be carried out as it is, now."""
    if not isinstance(plan, Plan):
        raise PolicyError(policy, f"expected a Plan, got {plan!r:.60}")
    for name in ("changes", "rejected"):
        if not isinstance(found := getattr(plan, name), dict):
            raise PolicyError(policy, f"{name}: expected a dict, got {found!r:.60}")
    if plan.wake_at is not None:
        _check_timer(plan.wake_at, state, policy)
    if not plan.changes and not plan.rejected:
        return
    need: Balance = {}
    for index in plan.rejected:
        progress = _known(index, state, policy)
        if index in plan.changes:
            raise PolicyError(policy, "both changed and rejected", job=progress.job.id)
        _add(need, state, progress.allocation, progress.job, -1)
    for index, allocation in plan.changes.items():
        progress = _known(index, state, policy)
        job, before = progress.job, progress.allocation
        _check_shape(allocation, job, state, policy)
        if before is not NOTHING:
            _add(need, state, before, job, -1)
        _add(need, state, allocation, job, 1)
    for machine, row in need.items():
        for resource, amount in enumerate(row):
            if amount > state.free[machine][resource]:
                _refuse_load(plan, state, policy, machine, resource)


def _known(index: Any, state: State, policy: str) -> JobProgress:
    progress = state.jobs.get(index) if type(index) is int else None
    if progress is None:
        raise PolicyError(policy, "expected the index of an unfinished job", job=f"{index!r:.40}")
    return progress


def _check_timer(wake_at: Any, state: State, policy: str) -> None:
    real = isinstance(wake_at, (int, float)) and math.isfinite(wake_at) and wake_at is not True
    if not real or not wake_at > state.now:
        expected = f"expected a finite time after {state.now:g}"
        raise PolicyError(policy, f"wake_at: {expected}, got {wake_at!r:.40}")


def _check_shape(allocation: Any, job: PolicyJob, state: State, policy: str) -> None:
    """Counts that (3), (6) and (7) allow, on machines that are there and take such tasks."""
    if type(allocation) is not Allocation:
        raise PolicyError(policy, f"expected an Allocation, got {allocation!r:.60}", job=job.id)
    workers = _count(allocation.workers, "worker", job, state, policy)
    has_none = type(allocation.ps) is tuple and not allocation.ps  # as most jobs of a trace
    ps = 0 if has_none else _count(allocation.ps, "ps", job, state, policy)
    if workers == 0 and ps == 0:
        return
    if state.site.partial_gangs:
        _check_partial(workers, ps, job, policy)
        return
    if not job.min_workers <= workers <= job.max_workers:
        expected = f"expected {job.min_workers}..{job.max_workers} workers (3)"
        raise PolicyError(policy, f"{expected}, got {workers}", job=job.id)
    needed, most = job.ps_needed(workers), job.ps_most(workers)
    if not needed <= ps <= most:
        expected = f"expected {needed}..{most} parameter servers (6)(7)"
        raise PolicyError(policy, f"{expected}, got {ps}", job=job.id)


def _check_partial(workers: int, ps: int, job: PolicyJob, policy: str) -> None:
    """Where gangs may be incomplete, only more than a job can ever use is refused."""
    if workers > job.max_workers:
        expected = f"expected 0..{job.max_workers} workers"
        raise PolicyError(policy, f"{expected}, got {workers}", job=job.id)
    most = job.ps_most(job.max_workers)
    if ps > most:
        raise PolicyError(policy, f"expected 0..{most} parameter servers, got {ps}", job=job.id)


def _count(tasks: Any, group: str, job: PolicyJob, state: State, policy: str) -> int:
    if type(tasks) is not tuple:
        raise PolicyError(policy, f"{group}: expected a tuple, got {tasks!r:.60}", job=job.id)
    machines = state.site.machines
    total = 0
    seen = set()
    for task in tasks:
        machine, count = task if type(task) is tuple and len(task) == 2 else (None, None)
        if type(machine) is not int or type(count) is not int:
            detail = f"{group}: expected (machine, count), got {task!r:.60}"
            raise PolicyError(policy, detail, job=job.id)
        if not 0 <= machine < len(machines):
            detail = f"{group}: expected a machine 0..{len(machines) - 1}, got {machine}"
            raise PolicyError(policy, detail, job=job.id)
        fault = (
            f"expected a positive count of {group} tasks, got {count}"
            if count < 1
            else f"named twice for {group} tasks"
            if machine in seen
            else f"hosts no {group} tasks"
            if group not in machines[machine].hosts
            else "is down"
            if machine in state.down
            else None
        )
        if fault:
            raise PolicyError(policy, fault, job=job.id, server=machines[machine].id)
        seen.add(machine)
        total += count
    return total


def _add(need: Balance, state: State, allocation: Allocation, job: PolicyJob, sign: int) -> None:
    _add_tasks(need, state, allocation.workers, job.worker, sign)
    if allocation.ps:
        _add_tasks(need, state, allocation.ps, job.ps, sign)


def _add_tasks(need: Balance, state: State, tasks: Tasks, demand: Demand, sign: int) -> None:
    for machine, count in tasks:
        row = need.get(machine)
        if row is None:
            row = need[machine] = [0] * len(state.site.resources)
        for resource, amount in demand:
            row[resource] += sign * count * amount


def _refuse_load(plan: Plan, state: State, policy: str, machine: int, resource: int) -> None:
    """Name the last job of the plan that takes the resource there."""
    culprit = ""
    for index, allocation in plan.changes.items():
        job = state.jobs[index].job
        for group, demand in zip(GROUPS, (job.worker, job.ps), strict=True):
            takes = any(r == resource for r, _ in demand)
            if takes and machine in dict(
                getattr(allocation, "workers" if group == "worker" else group)
            ):
                culprit = job.id
    site = state.site
    raise PolicyError(
        policy,
        "more than is free",
        job=culprit,
        server=site.machines[machine].id,
        resource=site.resources[resource],
    )


Settled = Callable[[JobProgress], None]


class Execution:
    """Changes the state of a run, and enters in the agenda what will follow from that.

    Parameters
    ----------
    state : State
        Of the run.
    agenda : Agenda
        Of the run.
    speed : Speed
        How fast jobs work.
    costs : Costs
        What changes cost in time.
    on_settled : callable, optional
        Called for each job that finished or was rejected.

    Attributes
    ----------
    settled : dict of int to JobProgress
        Jobs that finished or were rejected, by index.
    """

    def __init__(
        self,
        state: State,
        agenda: Agenda,
        speed: Speed,
        costs: Costs,
        on_settled: Settled | None = None,
    ) -> None:
        self._state, self._agenda = state, agenda
        self._speed, self._costs = speed, costs
        self._coupled, self._slotted = speed.coupled, state.site.slotted
        self._on_settled = on_settled
        self.settled: dict[int, JobProgress] = {}

    def complete(self, progress: JobProgress) -> None:
        """End a job whose work is done."""
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
                progress.advance(self._state.now)
                progress.roll_back()
                self._hold(progress, NOTHING)
                self._schedule(progress, 0.0)
                evicted.append(progress.seen)
        self._state.lose(machine)
        return evicted

    def carry_out(self, plan: Plan) -> bool:
        """Do what `plan` says, which has been checked; whether anything changed."""
        jobs, now = self._state.jobs, self._state.now
        for index, reason in plan.rejected.items():
            progress = jobs[index]
            progress.advance(now)
            progress.refusal = str(reason)
            self._leave(progress)
        changed = []
        for index, allocation in plan.changes.items():
            progress = jobs[index]
            before = progress.allocation
            if allocation != before:
                progress.advance(now)
                worked, saved_at = NOTHING, now
                if progress.complete:
                    worked, saved_at = before, self._save(progress, allocation)
                self._hold(progress, allocation)
                changed.append((progress, worked, saved_at))
        for progress, worked, saved_at in changed:
            if progress.complete:
                self._delay(progress, worked, saved_at)
        for progress, _, _ in changed:
            if self._coupled:  # the speeds of all follow at the end of the instant
                self._schedule(progress, 0.0)
            else:
                self._set_speed(progress)
        return bool(changed or plan.rejected)

    def set_speeds(self) -> None:
        """Work out anew how fast the jobs work that slow each other down."""
        for index in self._state.load.take_affected():
            progress = self._state.jobs[index]
            rate = self._speed.rate(progress.job, progress.allocation, self._state.load)
            if rate != progress.rate:
                progress.advance(self._state.now)
                self._schedule(progress, rate)

    def _set_speed(self, progress: JobProgress) -> None:
        """Work out how fast a job works that no other job slows down."""
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
        """Let a job save its state before it gives up what it holds; when that is done.

        One that is still being set up has nothing new to save.
        """
        now, job, before = self._state.now, progress.job, progress.allocation
        if progress.checkpoints is not None:
            progress.checkpoints.write(progress.remaining)
        saving = self._costs.saving(job, before, after) if progress.ready <= now else 0.0
        if not saving:
            return now
        self._state.saving.keep(job, before, after, now, now + saving)
        self._agenda.add(now + saving, SAVED, job.index, 0)
        return now + saving

    def _delay(self, progress: JobProgress, worked: Allocation, saved_at: float) -> None:
        """Charge what the change costs in time; `worked` is what the job worked with before."""
        now, after = self._state.now, progress.allocation
        started = progress.started is not None
        if started:
            progress.changes += (GangChange.of(worked, after, started),)
        saving = self._state.saving
        if saving.kept:
            free = saving.free_at(progress.job, worked, after, now, self._state.free)
            saved_at = max(saved_at, free)
        lost = self._costs.overhead(progress.job, worked, after, started)
        progress.ready = max(progress.ready if worked.workers else now, saved_at + lost)
        if not started:
            progress.started = now

    def _schedule(self, progress: JobProgress, rate: float) -> None:
        """Plan the completion at the new speed; in a slotted workload, at the end of its slot."""
        progress.rate = rate
        progress.version += 1
        if rate <= 0.0:
            progress.finish = INFINITY
            return
        now = self._state.now
        finish = max(now, progress.ready) + progress.remaining / rate
        free_at = finish
        if self._slotted:
            free_at = max(math.ceil(finish - TOLERANCE), math.floor(now) + 1.0)
            finish = min(finish, free_at)
        progress.finish = finish
        self._agenda.add(free_at, COMPLETION, progress.job.index, progress.version)
