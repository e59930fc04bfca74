"""The objective and the constraints of the compact model, one function for each equation.

Every row is written so that the solver accepts exactly the schedules that `oasis.model.rounding`
accepts: (6) has integer coefficients. The capacities (4)(5) are in `offline.model.capacities`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

import numpy as np
import pulp

from oasis.model.job import Job
from oasis.model.rounding import IntArray
from offline.model.arrays import OfflineArrays
from offline.model.capacities import limits_of_empty_servers
from offline.model.variables import JobVariables, by_job

Rows = Iterator[pulp.LpConstraint]


def total_utility(jobs: Iterable[JobVariables]) -> pulp.LpAffineExpression:
    """(1): sum_i sum_t f_i(t - a_i) u_i(t)."""
    return pulp.lpSum(c.utility[t] * var for c in jobs for t, var in c.done.items())


def admitted_once(forms: Sequence[JobVariables]) -> Rows:
    """(11): x_i = sum_t u_i(t), summed over the forms of a job, is at most 1."""
    yield pulp.lpSum(var for c in forms for var in c.done.values()) <= 1


def completed_by(c: JobVariables) -> Rows:
    """Rows: a job has completed by a slot if it had by the slot before, or completes in it."""
    # HiGHS branches on single variables, and to forbid one completion says next to nothing: to fix
    # one of these cuts off all earlier or all later completions.
    before = pulp.lpSum([])
    for slot, var in c.completed.items():
        yield var == before + c.done[slot]
        before = var


def training_work(c: JobVariables) -> Rows:
    """(2): sum_t sum_h y_ih(t) >= ceil(W_i) x_i."""
    yield pulp.lpSum(c.workers.values()) >= c.work * c.completed[max(c.completed)]


def work_by_completion(c: JobVariables) -> Rows:
    """(2), once for each completion t: a job done by t has had ceil(W_i) worker-slots by t."""
    # For integers the last row says it all; the others tighten the relaxation.
    for slot, completed in c.completed.items():
        had = pulp.lpSum(var for (t, _), var in c.workers.items() if t <= slot)
        yield had >= c.work * completed


def ps_of_work(c: JobVariables) -> Rows:
    """(2) and (6) over all slots: a job that completes has had enough parameter servers in all."""
    # For integers (2) and (6) imply this row; it tightens relaxations with fractions of them.
    if c.ps:
        slots = [t - c.job.arrival + 1 for t in c.done]
        fewest = fewest_ps(c.job, c.work, c.parallel, max(slots))
        needed = zip(slots, c.done.values(), strict=True)
        yield pulp.lpSum(c.ps.values()) >= pulp.lpSum(int(fewest[n - 1]) * v for n, v in needed)


def fewest_ps(job: Job, work: int, most: int, slots: int) -> IntArray:
    """Return the least sum of parameter servers for `work` in 1, 2, .. `slots` slots; 0: never."""
    needed = job.ps_needed(np.arange(most + 1))
    numbers = np.unique(needed)
    # With a number of parameter servers, as many workers as they serve: fewer save nothing.
    workers = [min(work, int(np.flatnonzero(needed <= n)[-1])) for n in numbers.tolist()]
    never = np.iinfo(np.int64).max // 2
    fewest = np.where(np.arange(work + 1) > 0, never, 0)  # for each number of worker-slots to do
    counts = np.zeros(slots, dtype=np.int64)
    for k in range(slots):
        before, fewest = fewest, fewest.copy()
        for number, done in zip(numbers.tolist(), workers, strict=True):
            np.minimum(fewest[done:], before[: work + 1 - done] + number, out=fewest[done:])
            np.minimum(fewest[1 : done + 1], number, out=fewest[1 : done + 1])
        counts[k] = fewest[work] if fewest[work] < never else 0
        # More slots change nothing from here on.
        if (fewest == before).all():
            counts[k:] = counts[k]
            break
    return counts


def workers_at_most_chunks(c: JobVariables) -> Rows:
    """(3): at most N_i workers in a slot (or what fits), and none unless the job is running."""
    for slot in c.slots:
        yield c.workers_in(slot) <= c.parallel * c.running(slot)


def minimum_of_workers(c: JobVariables) -> Rows:
    """Rows: in each slot a gang runs with no worker, or with at least its minimum."""
    for slot, runs in c.runs.items():
        yield c.workers_in(slot) >= c.job.worker_counts[0] * runs
        yield c.workers_in(slot) <= c.parallel * runs


def ps_bandwidth(c: JobVariables) -> Rows:
    """(6): at least ceil(n b_i / B_i) parameter servers for n workers, as integers (`ps_ratio`)."""
    ratio = ps_ratio(c.job, c.parallel)
    if ratio is not None:
        p, q, free = ratio
        for slot in c.slots:
            yield q * c.ps_in(slot) >= p * c.workers_in(slot) - p * free


def ps_ratio(job: Job, most: int) -> tuple[int, int, int] | None:
    """Integers p, q, m: ``ps_needed(n) = ceil((n - m) p / q)``, m <= n <= `most`; None: all 0."""
    # `ps_needed` rounds with a tolerance. The smallest ps_needed(n) / n gives the same counts
    # without one. m workers need no parameter server: 0, unless b_i / B_i is below the tolerance.
    needed = job.ps_needed(np.arange(most + 1))
    free = int(np.flatnonzero(needed == 0)[-1])
    if free == most:
        return None
    counts = np.arange(1, most - free + 1)
    best = int(np.argmin(needed[free + 1 :] / counts))
    return int(needed[free + 1 + best]), int(counts[best]), free


def ps_at_most_workers(c: JobVariables) -> Rows:
    """(7): no more parameter servers than workers."""
    for slot in c.slots if c.ps else ():
        yield c.ps_in(slot) <= c.workers_in(slot)


def no_worker_after_completion(c: JobVariables) -> Rows:
    """(8): no worker after the completion."""
    # (3) implies these rows for integers; server by server they tighten the relaxation.
    running = {slot: c.running(slot) for slot in c.slots}
    for (slot, _), var in c.workers.items():
        yield var <= var.upBound * running[slot]


def of_job(
    forms: Sequence[JobVariables],
    work: Callable[[JobVariables], Rows] = training_work,
    further: Sequence[Callable[[JobVariables], Rows]] = (),
) -> Rows:
    """Yield (2) as `work` writes it, (3), (6), (7), (11), minimum, `completed`, `further` rows."""
    yield from admitted_once(forms)
    rows = completed_by, work, workers_at_most_chunks, minimum_of_workers
    for c, rows_of in product(forms, (*rows, ps_bandwidth, ps_at_most_workers, *further)):
        yield from rows_of(c)


def of_all(arrays: OfflineArrays, jobs: Sequence[JobVariables]) -> Rows:
    """Every row of the model: of each job, then (4) and (5), which jobs share."""
    for forms in by_job(jobs):
        yield from of_job(forms, further=[no_worker_after_completion])
    for limit in limits_of_empty_servers(arrays, jobs):
        yield limit.row()
