"""The variables (11)-(13) of one form of a job that can be worth something."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pulp

from oasis.model.job import Job
from oasis.model.rounding import IntArray
from oasis.solvers.budget import NO_LIMIT, Budget
from offline.model.arrays import OfflineArrays


@dataclass(frozen=True, slots=True)
class JobVariables:
    """A form of a job that can be worth something, with its variables by slot (and server)."""

    index: int
    owner: int
    form: int
    job: Job
    work: int
    parallel: int
    utility: Mapping[int, float]
    done: Mapping[int, pulp.LpVariable]
    completed: Mapping[int, pulp.LpVariable]
    workers: Mapping[tuple[int, int], pulp.LpVariable]
    ps: Mapping[tuple[int, int], pulp.LpVariable]
    runs: Mapping[int, pulp.LpVariable]
    worker_hosts: tuple[int, ...] = field(init=False)
    ps_hosts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        for name, variables in (("worker_hosts", self.workers), ("ps_hosts", self.ps)):
            object.__setattr__(self, name, tuple(dict.fromkeys(s for _, s in variables)))

    @property
    def slots(self) -> range:
        """Slots from arrival to the last completion worth something."""
        return range(self.job.arrival, max(self.utility) + 1)

    def running(self, slot: int) -> pulp.LpAffineExpression:
        """Return 1 if the job is admitted and completes in `slot` or later, as an expression."""
        admitted = self.completed[max(self.completed)]
        return admitted - self.completed[slot - 1] if slot - 1 in self.completed else +admitted

    def units(self, group: str) -> Mapping[tuple[int, int], pulp.LpVariable]:
        """`workers` or `ps`, by the name of the group: "worker" or "ps"."""
        return self.workers if group == "worker" else self.ps

    def workers_in(self, slot: int) -> pulp.LpAffineExpression:
        """sum_h y_ih(t)."""
        return pulp.lpSum(self.workers[slot, server] for server in self.worker_hosts)

    def ps_in(self, slot: int) -> pulp.LpAffineExpression:
        """sum_k z_ik(t)."""
        return pulp.lpSum(self.ps[slot, server] for server in self.ps_hosts)


def by_job(forms: Iterable[JobVariables]) -> list[list[JobVariables]]:
    """Group forms by job, in the order of the jobs; the forms of a job must be adjacent."""
    return [list(group) for _, group in groupby(forms, key=lambda c: c.owner)]


def variables_of(
    arrays: OfflineArrays,
    owner: int,
    form: int,
    problem: pulp.LpProblem,
    *,
    are_merged: bool = False,
    budget: Budget = NO_LIMIT,
) -> JobVariables | None:
    """Make (11)-(13) of a form from its arrival on (9)(10); None if worthless."""
    # `are_merged`: one server stands for each group of equal ones.
    index = arrays.forms_of[owner][form]
    job = arrays.forms[index]
    rooms = [group.units(index, job.chunks) for group in (arrays.worker, arrays.ps)]
    parallel = _parallel(job, *rooms)
    if parallel not in job.worker_counts:
        return None
    work = job.work(arrays.slot_seconds)
    # The work of a job may be beyond all integers of an array, the horizon is not.
    first = min(job.arrival + -(-work // parallel) - 1, arrays.horizon)
    slots = range(first, arrays.horizon)
    values = job.utility(np.arange(first, arrays.horizon) - job.arrival).tolist()
    utility = {slot: value for slot, value in zip(slots, values, strict=True) if value > 0}
    if not utility:
        return None
    done, completed = (
        {
            t: problem.add_variable(f"{symbol}_{index}_{t}", 0, 1, pulp.LpInteger)
            for t in budget.over(utility)
        }
        for symbol in "uc"
    )
    # Each server by itself bounds the counts: capacity that is scattered over servers holds no
    # task.
    if are_merged:
        rooms = [room.sum(keepdims=True) for room in rooms]
    of_workers, of_ps = rooms
    workers, ps = (
        {
            (t, s): problem.add_variable(f"{symbol}_{index}_{s}_{t}", 0, most, pulp.LpInteger)
            for t in budget.over(range(job.arrival, max(utility) + 1))
            for s, most in enumerate(np.minimum(units, parallel).tolist())
            if most > 0
        }
        for symbol, units in (("y", of_workers), ("z", of_ps if job.needs_ps else of_ps[:0]))
    )
    # With a minimum of one worker, any number of workers will do and no binary is needed.
    slots = range(job.arrival, max(utility) + 1) if job.is_gang else range(0)
    runs = {t: problem.add_variable(f"w_{index}_{t}", 0, 1, pulp.LpInteger) for t in slots}
    place = index, owner, form
    return JobVariables(*place, job, work, parallel, utility, done, completed, workers, ps, runs)


def _parallel(job: Job, room: IntArray, ps_room: IntArray) -> int:
    """Return the most workers that fit the empty cluster together with their parameter servers."""
    counts = range(min(job.chunks, int(room.sum())) + 1)
    return bisect_right(counts, int(ps_room.sum()), key=lambda n: int(job.ps_needed(n))) - 1
