"""Fix-and-optimise: most jobs stay, HiGHS finds the best schedules of a few in what these leave.

How many jobs are free adapts: one more after a neighbourhood that HiGHS solved, fewer after one
that it did not, so that every size of instance gets neighbourhoods as large as can be solved.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution, is_better
from offline.heuristics.dual_values import DualValues
from offline.heuristics.neighbourhood import exchange
from offline.heuristics.params import NeighbourhoodParams
from offline.heuristics.partial_solution import PartialSolution


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
        Jobs by index that are invited more often than others that do not run: those of the last
        plan of a master, if there is one.
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

    def search(self, budget: Budget) -> bool:
        """Improve the best solution until the budget or the bound is reached.

        Returns whether there was anything to try: a job that runs, or one that could.
        """
        has_tried = False
        current, params = self.best.solution, self.params
        chances = self.duals.chances
        chances[list(self.wanted)] *= params.wanted_factor
        while not budget.passed and not self.best.is_proven:
            leaving, invited, until = self._chosen(current, chances)
            if not leaving and not invited:
                break
            has_tried = True
            part = budget.within(params.limit)
            trial, is_solved = exchange(current, leaving, invited, part, until)
            larger, smaller = self._size + params.growth, self._size - params.shrinkage
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
