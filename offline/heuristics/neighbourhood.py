"""One neighbourhood solved exactly: the compact model of a few jobs in what the others leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.heuristics.partial_solution import PartialSolution
from offline.model import constraints
from offline.model.arrays import GROUPS, OfflineArrays, units_that_fit
from offline.model.capacities import Limit, limits_of, solve_within
from offline.model.schedule_model import ScheduleModel


class ResidualModel(ScheduleModel):
    """The compact model of some jobs within given free capacities.

    Parameters
    ----------
    arrays : OfflineArrays
        The problem with only these jobs.
    worker_free, ps_free : (T, H, R) and (T, K, R) float arrays
        What may be used in each slot.
    """

    def __init__(self, arrays: OfflineArrays, worker_free: FloatArray, ps_free: FloatArray) -> None:
        super().__init__(arrays, "neighbourhood")
        for job in self.jobs:
            for row in constraints.of_job(job):
                self.problem.addConstraint(row)
        for group, free in zip(GROUPS, (worker_free, ps_free), strict=True):
            self._limit(group, free)
        self._limits: list[Limit] = []
        for group, free in zip(GROUPS, (worker_free, ps_free), strict=True):
            demand = arrays.group(group).demand
            self._limits += limits_of(free, demand, self.jobs, group)
        for limit in self._limits:
            self.problem.addConstraint(limit.row())

    def limits(self) -> list[Limit]:
        """(4) and (5) within what is free."""
        return self._limits

    def _limit(self, group: str, free: FloatArray) -> None:
        """Limit each variable to what is free in its slot."""
        demand = self.arrays.group(group).demand[[c.index for c in self.jobs]]
        most = np.array([c.parallel for c in self.jobs], dtype=np.int64)
        for c, rooms in zip(self.jobs, units_that_fit(free, demand, most), strict=True):
            for place, variable in c.units(group).items():
                variable.upBound = min(int(variable.upBound), int(rooms[place]))


def reinsert(
    current: PartialSolution, jobs: list[int], budget: Budget
) -> tuple[PartialSolution, bool]:
    """Add the best of these jobs to `current`, and return whether that is proven to be best."""
    return exchange(current, [], jobs, budget)


def exchange(
    current: PartialSolution,
    leaving: list[int],
    invited: list[int],
    budget: Budget,
    until: int | None = None,
) -> tuple[PartialSolution, bool]:
    """Find the best way to run these jobs beside the others, and whether it is proven best.

    Parameters
    ----------
    current : PartialSolution
        The solution; it is not changed.
    leaving, invited : list of int
        Jobs that run in it and may move or leave, and jobs that do not and may join.
    budget : Budget
        For the model.
    until : int, optional
        All of them complete before this slot; by default, before the horizon.
    """
    arrays, trial = current.arrays, current.copy()
    old = {arrays.jobs[k].id: trial.remove(k) for k in leaving}
    chosen = sorted(leaving + invited)
    end = arrays.horizon if until is None else until
    part = replace(arrays.part(chosen), horizon=end)
    model = ResidualModel(part, *(free[:end] for free in trial.free()))
    known = model.values_of(old)
    solution = solve_within(model.problem, model.limits, budget=budget, warm_start=known)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    found = model.schedules_of(solution.values)
    for k in chosen:
        if arrays.jobs[k].id in found:
            trial.put(k, found[arrays.jobs[k].id])
    return trial, solution.status is Status.OPTIMAL
