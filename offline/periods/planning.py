"""Plans in fractions of a long horizon: period by period first, then better ones close to these.

A plan uses a part of each slot alone. Dives from it (`offline.benders.dive`) then lose next to
nothing, so that schedules are worth what the plan is.

References
----------
Shaw, Using constraint programming and local search methods to solve vehicle routing problems,
CP 1998: the neighbourhoods.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers import Solution, Status, highs
from oasis.solvers.arrays import ArrayModel
from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution
from offline.periods.bound import PlanningParams
from offline.periods.model import PeriodModel

# For one period of the first plan; seconds or units of work.
PERIOD_LIMIT = 10.0
# Fewer jobs after a neighbourhood that took too long; one more after one that did not.
SHRINKAGE = 2


class Planning:
    """Makes one plan, and makes it better.

    Parameters
    ----------
    model : PeriodModel
        The periods, and the cuts on what fits in a slot.
    room : (T,) float array
        The share of each slot that a plan may use.
    best : BestSolution
        Says what is left to gain.
    rng : numpy.random.Generator
        Of the choice of neighbourhoods.
    params : PlanningParams
        How the time is spent.

    Attributes
    ----------
    values : (N,) float array or None
        Of the variables of all periods, in the best plan; None before there is one.
    """

    def __init__(
        self,
        model: PeriodModel,
        room: FloatArray,
        best: BestSolution,
        rng: np.random.Generator,
        params: PlanningParams,
    ) -> None:
        self.model, self.room, self.best = model, room, best
        self.rng, self.params = rng, params
        self.values: FloatArray | None = None
        self._size = params.first_jobs

    def begin(self, prices: FloatArray, budget: Budget) -> None:
        """Plan one period after the other.

        Each begins with what the period before leaves to it, and is paid for what it leaves itself
        at the `prices` (L,) of the links. There is no plan if there was no time.
        """
        found = np.zeros(self.model.size)
        for number in range(len(self.model.periods)):
            model = self.model.period(number, prices, self.room)
            first, end = self.model.columns(number)
            most = model.upper.copy()
            for later, earlier in self.model.links:
                if first <= later < end:
                    most[later - first] = min(most[later - first], max(0.0, found[earlier]))
            solution = self._solved(replace(model, upper=most), PERIOD_LIMIT, budget)
            if solution.objective is None:
                return
            found[first:end] = list(solution.values.values())
        self.values = found

    def improve(self, budget: Budget) -> None:
        """Free the completions of a few jobs that run at the same time, again and again."""
        if self.values is None:
            return
        whole, jobs = self.model.whole(self.room), len(self.model.master.jobs)
        is_best = False
        while not (is_best or budget.passed or self.best.is_proven):
            near = self._around(whole, self._chosen())
            solution = self._solved(near.without_fixed(), self.params.limit, budget)
            if solution.objective is not None:
                values = {**near.fixed, **solution.values}
                found = np.array([values[name] for name in whole.names])
                if whole.costs @ found > whole.costs @ self.values:
                    self.values = found
            if solution.status in (Status.OPTIMAL, Status.GAP_LIMIT):
                is_best = self._size >= jobs
                self._size += self.params.growth
            else:
                self._size = max(self.params.fewest_jobs, self._size - SHRINKAGE)

    @property
    def completions(self) -> dict[int, int]:
        """When each job completes that does, by the form in which it runs."""
        if self.values is None:
            return {}
        jobs = self.model.master.jobs
        return {
            jobs[part.job].index: min(done)
            for parts in self.model.parts
            for part in parts
            for done in [[t for t, column in part.done.items() if self.values[column] > 0.5]]
            if done
        }

    def _chosen(self) -> set[int]:
        """Jobs that run, or arrive, about some slot."""
        jobs, done = self.model.master.jobs, self.completions
        slot = int(self.rng.integers(self.model.master.arrays.horizon))
        distances = []
        for c in jobs:
            last = done.get(c.index, c.job.arrival)
            distances.append(max(0, c.job.arrival - slot, slot - last))
        noisy = np.array(distances) + self.params.noise * self.rng.random(len(jobs))
        return set(np.argsort(noisy, kind="stable")[: self._size].tolist())

    def _around(self, whole: ArrayModel, free: set[int]) -> ArrayModel:
        """The model in which jobs that are not free complete as they do now."""
        assert self.values is not None
        lower, upper = whole.lower.copy(), whole.upper.copy()
        for part in (part for parts in self.model.parts for part in parts):
            if part.job not in free:
                ends = [column for column in (part.enters, part.leaves) if column is not None]
                columns = [*part.done.values(), *ends]
                lower[columns] = upper[columns] = np.rint(self.values[columns])
        return replace(whole, lower=lower, upper=upper)

    def _solved(self, model: ArrayModel, limit: float, budget: Budget) -> Solution:
        """A model as a MILP; the values of a solution are in the order of its variables."""
        left = max(0.0, self.best.state.bound - self.best.value)
        solution = highs.solve(
            model,
            budget=budget.within(limit),
            gap=self.params.gap * left,
            proof=False,
            is_relaxation=True,
        )
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return solution
