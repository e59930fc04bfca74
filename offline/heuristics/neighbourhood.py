"""One neighbourhood solved exactly: the compact model of a few jobs in what the others leave."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution, PartialSolution, is_better
from offline.heuristics.params import NeighbourhoodParams
from offline.heuristics.ruin_and_recreate import DualValues
from offline.model import constraints
from offline.model.arrays import GROUPS, OfflineArrays, units_that_fit
from offline.model.capacities import Limit, limits_of, solve_within
from offline.model.schedule_model import ScheduleModel
from offline.model.variables import by_job

# Fewer jobs after a neighbourhood that took too long, twice what is added after one that did not:
# the time of HiGHS grows exponentially with their number.
SHRINKAGE = 2
# So many times likelier than others, jobs of the master's last plan are invited nearly always.
WANTED_FACTOR = 100.0


class ResidualModel(ScheduleModel):
    """The compact model of some jobs within given free capacities.

    Parameters
    ----------
    arrays : OfflineArrays
        The problem with only these jobs.
    worker_free, ps_free : (T, H, R + L) and (T, K, R + L) float arrays
        What may be used in each slot.
    """

    def __init__(self, arrays: OfflineArrays, worker_free: FloatArray, ps_free: FloatArray) -> None:
        super().__init__(arrays, "neighbourhood")
        for forms in by_job(self.jobs):
            for row in constraints.of_job(forms):
                self.problem.addConstraint(row)
        self._limits: list[Limit] = []
        for group, free in zip(GROUPS, (worker_free, ps_free), strict=True):
            self._limit(group, free)
            self._limits += limits_of(free, arrays.group(group).demand, self.jobs, group)
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


class Neighbourhoods:
    """A search over neighbourhoods that remembers how large they may be.

    Parameters
    ----------
    duals : DualValues
        What the prices make of each job.
    best : BestSolution
        Where to start, and where better solutions go.
    rng : numpy.random.Generator
        Of all choices.
    params : NeighbourhoodParams
        Sizes and times.

    Attributes
    ----------
    wanted : collection of int
        Jobs by index that are invited more often than others that do not run.
    """

    def __init__(
        self,
        duals: DualValues,
        best: BestSolution,
        rng: np.random.Generator,
        params: NeighbourhoodParams,
    ) -> None:
        self.duals, self.best, self.rng, self.params = duals, best, rng, params
        self.wanted: Collection[int] = ()
        self._size = params.first_jobs

    def want(self, forms: Collection[int]) -> None:
        """Invite the jobs of these forms more often: those of the last plan of a master."""
        ranges = enumerate(self.best.solution.arrays.forms_of)
        self.wanted = [job for job, own in ranges if not set(own).isdisjoint(forms)]

    def search(self, budget: Budget) -> bool:
        """Improve the best solution until the budget or the bound is reached.

        Returns whether there was anything to try: a job that runs, or one that could.
        """
        has_tried = False
        current, params = self.best.solution, self.params
        chances = self.duals.chances
        chances[list(self.wanted)] *= WANTED_FACTOR
        while not budget.passed and not self.best.is_proven:
            leaving, invited, until = self._chosen(current, chances)
            if not leaving and not invited:
                break
            has_tried = True
            part = budget.within(params.limit)
            trial, is_solved = exchange(current, leaving, invited, part, until)
            larger, smaller = self._size + params.growth, self._size - SHRINKAGE
            self._size = larger if is_solved else max(params.fewest_jobs, smaller)
            if is_better(trial.value, current.value):
                rest = [k for k in range(len(self.duals.best)) if k not in trial.schedules]
                order = self.duals.order(rest, self.rng)
                trial.fill(order, self.duals.worker_prices, self.duals.ps_prices)
                current = trial
                self.best.offer(current)
        return has_tried or budget.passed

    def _chosen(
        self, current: PartialSolution, chances: FloatArray
    ) -> tuple[list[int], list[int], int]:
        """Jobs that leave, nearest in time to one that does not run yet, and some of the latter.

        Also the slot before which they complete.
        """
        rng, params, jobs = self.rng, self.params, current.arrays.jobs
        best = self.duals.best
        outside = [k for k in range(len(jobs)) if k not in current.schedules and best[k] > 0]
        invited: list[int] = []
        slot = float(rng.integers(current.arrays.horizon))
        if outside:
            here = chances[outside]
            picked = rng.choice(len(outside), p=here / here.sum())
            slot = jobs[outside[picked]].arrival + float(rng.integers(params.spread))
            count = min(len(outside), max(1, int(params.invited_share * self._size)))
            gaps = np.array([abs(jobs[k].arrival - slot) for k in outside])
            order = np.argsort(gaps * rng.uniform(0.5, 1.5, len(outside)), kind="stable")
            near = (outside[k] for k in order[: count - 1].tolist())
            invited = sorted({outside[picked], *near})
        inside = sorted(current.schedules)
        until = int(slot) + params.reach
        if not inside:
            return [], invited, min(until, current.arrays.horizon)
        distance = current.distances(inside, slot)
        order = np.lexsort((rng.random(len(inside)), distance))
        count = max(1, self._size - len(invited))
        leaving = [inside[k] for k in order[:count].tolist()]
        until = max(until, *(current.schedules[k].completion + 1 for k in leaving))
        return leaving, invited, min(until, current.arrays.horizon)
