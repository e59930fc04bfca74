"""Refusing what cannot run: an answer is checked whole before any of it is carried out."""

from __future__ import annotations

import math
from typing import Any

from oasis.model.errors import PolicyError
from oasis.scheduling.allocation import NOTHING, Allocation, Tasks
from oasis.scheduling.job import Demand, PolicyJob
from oasis.scheduling.policy import Plan
from oasis.scheduling.site import GROUPS
from oasis.simulator.state import Progress, State

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


def _known(index: Any, state: State, policy: str) -> Progress:
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
