"""The check of plans, and the form in which a policy without forms sees each job."""

from __future__ import annotations

import math
from typing import Any

from oasis.model.errors import PolicyError
from oasis.model.groups import GROUPS, TaskGroup
from oasis.scheduling.book import EmptyCluster
from oasis.scheduling.job import Allocation, LimitedDemand, PolicyJob
from oasis.scheduling.placement import BestFit, Room
from oasis.scheduling.policy import Plan
from oasis.scheduling.view import Books, Tracked, View


def choose_forms(
    view: View, books: Books, empty: EmptyCluster, *, again: bool = False, once: bool = False
) -> None:
    """Choose the form in which a policy without forms sees each job, until the job holds machines.

    `again`: the policy was asked at this instant, and a job that waits is tried in later forms.
    `once`: a job keeps the form in which it arrived, as a policy that plans ahead needs it.
    """
    # In order of arrival, the first form whose fewest tasks find room beside those of the jobs
    # before. Where none does, it stays as it was, and one that arrives is in the first form that
    # fits the empty cluster. In another form, the job leaves as the old and arrives as a new one.
    room = Room(books.site, list(books.free), books.down)
    new = {job.index for job in view.arrived}
    arrived = []
    for index, tracked in books.jobs.items():
        is_new, forms = index in new, tracked.forms
        if forms and not tracked.has_form and (is_new or not once):
            before, first = tracked.seen, tracked.form + 1 if again else 0
            chosen = next(
                (k for k in range(first, len(forms)) if place_fewest(room, forms[k])), None
            )
            if chosen is None and is_new:
                chosen = next((k for k, form in enumerate(forms) if empty.fewest(form)), 0)
            if chosen is not None and chosen != tracked.form:
                tracked.be_in(chosen)
                if not is_new:
                    view.finished.append(before)
                    is_new = True
        if is_new:
            arrived.append(tracked.seen)
    view.arrived[:] = arrived


def place_fewest(room: Room, job: PolicyJob) -> bool:
    """Place the fewest tasks of `job` in `room`, if they fit, and return whether they did."""
    least = job.worker_counts[0]
    return BestFit().place(room, job, least, job.ps_needed(least)) is not None


def check_plan(plan: Plan, books: Books, policy: str) -> None:
    """Raise `PolicyError` unless `plan` can be carried out as it is, now."""
    if not isinstance(plan, Plan):
        raise PolicyError(policy, f"expected a Plan, got {plan!r:.60}")
    for name in ("changes", "rejected"):
        if not isinstance(value := getattr(plan, name), dict):
            raise PolicyError(policy, f"{name}: expected a dict, got {value!r:.60}")
    if plan.wake_at is not None:
        _check_timer(plan.wake_at, books, policy)
    # The usual answer of a policy that has nothing to do.
    if not plan.changes and not plan.rejected:
        return
    # All that the plan gives back before anything that it takes: the order in which its parts are
    # carried out then does not matter.
    room = Room(books.site, books.free.copy())
    for index, reason in plan.rejected.items():
        progress = _known(index, books, policy)
        _check_rejection(reason, progress.job, index in plan.changes, policy)
        room.release(progress.job, progress.allocation)
    for index, allocation in plan.changes.items():
        progress = _known(index, books, policy)
        job = progress.job
        room.release(job, progress.allocation)
        if progress.forms or type(allocation) is not Allocation or allocation.form:
            job = _in_form(allocation, progress, policy)
        _check_shape(allocation, job, books, policy)
        room.occupy(job, allocation)
    for allocation in plan.changes.values():
        for machine, _ in (*allocation.workers, *allocation.ps):
            for resource, free in enumerate(room.free[machine]):
                # Amounts are whole grid units: no tolerance is needed, it is part of the capacity.
                if free < 0:
                    _refuse_load(plan, books, policy, machine, resource)


def _known(index: Any, books: Books, policy: str) -> Tracked:
    """Return the unfinished job with this index; `PolicyError` if there is none."""
    progress = books.jobs.get(index) if type(index) is int else None
    if progress is None:
        raise PolicyError(policy, "expected the index of an unfinished job", job=f"{index!r:.40}")
    return progress


def _in_form(allocation: Any, progress: Tracked, policy: str) -> PolicyJob:
    """Return the job in the form of `allocation`; `PolicyError` for a form it may not switch to."""
    job = progress.job
    if type(allocation) is not Allocation:
        raise PolicyError(policy, f"expected an Allocation, got {allocation!r:.60}", job=job.id)
    form, forms = allocation.form, progress.seen.in_forms
    if type(form) is not int or not 0 <= form < len(forms):
        expected = f"expected 0..{len(forms) - 1}"
        raise PolicyError(policy, f"form: {expected}, got {form!r:.40}", job=job.id)
    if len(forms) == 1 or not (allocation.workers or allocation.ps):
        return job
    if progress.has_form and form != progress.form and not progress.seen.may_switch:
        expected = f"expected {progress.form}, the form in which it began"
        raise PolicyError(policy, f"form: {expected}, got {form}", job=job.id)
    return forms[form]


def _check_rejection(reason: Any, job: PolicyJob, is_changed: bool, policy: str) -> None:
    if not isinstance(reason, str):
        detail = f"rejected: expected a reason in words, got {reason!r:.60}"
        raise PolicyError(policy, detail, job=job.id)
    if is_changed:
        raise PolicyError(policy, "both changed and rejected", job=job.id)


def _check_timer(wake_at: Any, books: Books, policy: str) -> None:
    # True is an int to Python, but a slip where a time is expected.
    real = isinstance(wake_at, (int, float)) and math.isfinite(wake_at) and wake_at is not True
    if not real or not wake_at > books.now:
        expected = f"expected a finite time after {books.now:g}"
        raise PolicyError(policy, f"wake_at: {expected}, got {wake_at!r:.40}")


def _check_shape(allocation: Any, job: PolicyJob, books: Books, policy: str) -> None:
    """Raise `PolicyError` unless counts satisfy (3), (6), (7) and the machines take the tasks."""
    workers = _count(allocation.workers, TaskGroup.WORKER, job, books, policy)
    has_none = type(allocation.ps) is tuple and not allocation.ps  # as most jobs of a trace
    ps = 0 if has_none else _count(allocation.ps, TaskGroup.PS, job, books, policy)
    # Holding nothing is a pause, which any job may have.
    if workers == 0 and ps == 0:
        return
    counts, needed, most = job.worker_counts, job.ps_needed(workers), job.ps_most(workers)
    laws = " (3)", " (6)(7)"
    if books.site.partial_gangs:  # no more than the job can ever use
        counts, needed, laws = range(job.max_workers + 1), 0, ("", "")
        most = job.ps_most(job.max_workers)
    if workers not in counts:
        expected = f"expected {counts[0]}..{counts[-1]} workers{laws[0]}"
        raise PolicyError(policy, f"{expected}, got {workers}", job=job.id)
    if not needed <= ps <= most:
        expected = f"expected {needed}..{most} parameter servers{laws[1]}"
        raise PolicyError(policy, f"{expected}, got {ps}", job=job.id)


def _count(tasks: Any, group: TaskGroup, job: PolicyJob, books: Books, policy: str) -> int:
    if type(tasks) is not tuple:
        raise PolicyError(policy, f"{group}: expected a tuple, got {tasks!r:.60}", job=job.id)
    machines, demand = books.site.machines, group.of(job)
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
            if machine in books.down
            else None
            if not isinstance(demand, LimitedDemand) or machine in demand.machines
            else f"does not admit its {group.tasks}, which require: {demand.requires}"
        )
        if fault:
            raise PolicyError(policy, fault, job=job.id, server=machines[machine].id)
        seen.add(machine)
        total += count
    return total


def _refuse_load(plan: Plan, books: Books, policy: str, machine: int, resource: int) -> None:
    """Raise `PolicyError`, naming the last job of the plan that takes the resource on `machine`."""
    culprit = ""
    for index, allocation in plan.changes.items():
        job = books.jobs[index].seen.in_forms[allocation.form]
        for group in GROUPS:
            takes = any(r == resource for r, _ in group.of(job))
            if takes and machine in dict(group.placed(allocation)):
                culprit = job.id
    site = books.site
    raise PolicyError(
        policy,
        "more than is free",
        job=culprit,
        server=site.machines[machine].id,
        resource=site.resources[resource],
    )
