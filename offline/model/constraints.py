"""The objective and the constraints of the compact model, one function for each equation.

Every row is written so that the solver accepts exactly the schedules that `oasis.model.rounding`
accepts: (6) has integer coefficients, and capacities are scaled to 1 and widened by the common
tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np
import pulp

from oasis.model import rounding
from oasis.model.instance import Instance, Job
from oasis.model.resources import as_array
from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray
from offline.model.variables import Candidate

Rows = Iterator[pulp.LpConstraint]


def total_utility(candidates: list[Candidate]) -> pulp.LpAffineExpression:
    """(1): sum_i sum_t f_i(t - a_i) u_i(t)."""
    return pulp.lpSum(c.utility[t] * var for c in candidates for t, var in c.done.items())


def admitted_once(c: Candidate) -> Rows:
    """(11): x_i = sum_t u_i(t) is at most 1."""
    yield pulp.lpSum(c.done.values()) <= 1


def training_work(c: Candidate) -> Rows:
    """(2): sum_t sum_h y_ih(t) >= ceil(W_i) x_i."""
    yield pulp.lpSum(c.workers.values()) >= pulp.lpSum(c.work * var for var in c.done.values())


def work_by_completion(c: Candidate) -> Rows:
    """(2), once for each completion t: a job done by t has had ceil(W_i) worker-slots by t.

    For integers the last row says it all; the others tighten the relaxation.
    """
    for slot in c.done:
        had = pulp.lpSum(var for (t, _), var in c.workers.items() if t <= slot)
        yield had >= pulp.lpSum(c.work * var for t, var in c.done.items() if t <= slot)


def workers_at_most_chunks(c: Candidate) -> Rows:
    """(3): at most N_i workers in a slot (or what fits), and none unless the job is running."""
    for slot in c.slots:
        yield c.workers_in(slot) <= c.parallel * c.running(slot)


def worker_capacity(instance: Instance, candidates: list[Candidate]) -> Rows:
    """(4): sum_i w_i^r y_ih(t) <= c_h^r."""
    return _capacity(
        instance.cluster.worker_capacity,
        [(as_array(c.job.worker, instance.cluster.resources), c.workers) for c in candidates],
    )


def ps_capacity(instance: Instance, candidates: list[Candidate]) -> Rows:
    """(5): sum_i s_i^r z_ik(t) <= c_k^r."""
    return _capacity(
        instance.cluster.ps_capacity,
        [(as_array(c.job.ps, instance.cluster.resources), c.ps) for c in candidates],
    )


def _capacity(
    capacity: FloatArray,
    groups: list[tuple[FloatArray, Mapping[tuple[int, int], pulp.LpVariable]]],
) -> Rows:
    """Rows (4) or (5), divided by the capacity; those that cannot bind are left out."""
    users: dict[tuple[int, int], list[tuple[FloatArray, pulp.LpVariable]]] = {}
    for demand, variables in groups:
        for place, variable in variables.items():
            users.setdefault(place, []).append((demand, variable))
    for ((_, server), here), r in product(users.items(), range(capacity.shape[1])):
        limit = float(capacity[server, r])
        terms = [(float(demand[r]), var) for demand, var in here if demand[r] > 0]
        if not rounding.fits(sum(amount * var.upBound for amount, var in terms), limit):
            widened = 1.0 + CAPACITY_TOLERANCE  # `rounding.fits`, divided by the capacity
            yield pulp.lpSum(amount / limit * var for amount, var in terms) <= widened


def ps_bandwidth(c: Candidate) -> Rows:
    """(6): at least ceil(n b_i / B_i) parameter servers for n workers, as integers (`ps_ratio`)."""
    ratio = ps_ratio(c.job, c.parallel)
    if ratio is not None:
        p, q, free = ratio
        for slot in c.slots:
            yield q * c.ps_in(slot) >= p * c.workers_in(slot) - p * free


def ps_ratio(job: Job, most: int) -> tuple[int, int, int] | None:
    """Integers p, q and m with ``ps_needed(n) = ceil((n - m) p / q)`` for m <= n <= `most`.

    `Job.ps_needed` rounds b_i / B_i with a tolerance. The smallest ps_needed(n) / n is a fraction
    that gives the same counts without one, so that a row with these integers is either kept or
    broken by a whole unit. m counts the workers that need no parameter server: 0, unless b_i / B_i
    is below the tolerance. None if no worker needs any.
    """
    needed = job.ps_needed(np.arange(most + 1))
    free = int(np.flatnonzero(needed == 0)[-1])
    if free == most:
        return None
    counts = np.arange(1, most - free + 1)
    best = int(np.argmin(needed[free + 1 :] / counts))
    return int(needed[free + 1 + best]), int(counts[best]), free


def ps_at_most_workers(c: Candidate) -> Rows:
    """(7): no more parameter servers than workers."""
    for slot in c.slots if c.ps else ():
        yield c.ps_in(slot) <= c.workers_in(slot)


def no_worker_after_completion(c: Candidate) -> Rows:
    """(8): no worker after the completion.

    (3) implies these rows for integers; server by server they tighten the relaxation.
    """
    running = {slot: c.running(slot) for slot in c.slots}
    for (slot, _), var in c.workers.items():
        yield var <= var.upBound * running[slot]


def of_job(c: Candidate, work: Callable[[Candidate], Rows] = training_work) -> Rows:
    """(2), as `work` writes it, (3), (6), (7) and (11): the rows of one job alone."""
    yield from admitted_once(c)
    yield from work(c)
    yield from workers_at_most_chunks(c)
    yield from ps_bandwidth(c)
    yield from ps_at_most_workers(c)


def of_all(instance: Instance, candidates: list[Candidate]) -> Rows:
    """Every row of the model: of each job, then (4) and (5), which jobs share."""
    for candidate in candidates:
        yield from of_job(candidate)
        yield from no_worker_after_completion(candidate)
    yield from worker_capacity(instance, candidates)
    yield from ps_capacity(instance, candidates)
