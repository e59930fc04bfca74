"""Large neighbourhood search over counts: most jobs complete as they do, the master plans again.

Where the completions of most jobs stay, the master finds the best counts of all of them within
seconds, however full the servers are. A neighbourhood frees the completions of a few jobs; the
others may complete earlier or leave, but not complete later, and the counts of all may change in
every slot. A plan in fractions says which completions are worth a try, cuts around it say so more
exactly, and whole counts close to it are placed slot by slot.

References
----------
Shaw, Using constraint programming and local search methods to solve vehicle routing problems,
CP 1998.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import pulp

from oasis.solvers import Solution, Status
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import ReplanningParams
from offline.benders.plans import close_plan
from offline.benders.primal import PrimalHeuristic
from offline.benders.separation import Separation
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.dual_values import DualValues


class Replanning:
    """A search over plans close to the best schedules; it remembers how many jobs to free.

    Parameters
    ----------
    model : CountModel
        The master.
    separation : Separation
        Of its cuts.
    primal : PrimalHeuristic
        Plans in whole numbers, and places the plans.
    best : BestSolution
        Where to start, and where better schedules go.
    duals : DualValues
        What the prices make of each job.
    rng : numpy.random.Generator
        Of all choices.
    params : ReplanningParams
        Sizes and times.
    """

    def __init__(
        self,
        model: CountModel,
        separation: Separation,
        primal: PrimalHeuristic,
        best: BestSolution,
        duals: DualValues,
        rng: np.random.Generator,
        params: ReplanningParams,
    ) -> None:
        self.model, self.separation, self.primal = model, separation, primal
        self.best, self.duals, self.rng, self.params = best, duals, rng, params
        self._size = params.first_jobs
        self._tries = 0  # left to the neighbourhood
        self._rows: list[pulp.LpConstraint] = []  # of the neighbourhood
        self._known = math.nan  # value of the schedules that it is a neighbourhood of
        self._most = math.inf  # what its next plan may be worth

    def begin(self, rows: list[pulp.LpConstraint]) -> None:
        """Make the plans within these rows the first neighbourhood."""
        self._known, self._most = self.best.value, math.inf
        self._rows, self._tries = rows, self.params.tries

    def search(self, budget: Budget) -> bool:
        """Improve the best schedules until the budget or the bound is reached.

        A try that has begun may go on beyond the budget, by `limit` at most, as long as the solve
        has time. Returns whether there was anything to try: a job that can be worth something.
        """
        while self.model.jobs and not (budget.passed or self.best.is_proven):
            if self._tries <= 0 or self.best.value != self._known:
                self.begin(self._rows_around(self._chosen()))
            self._try(self.best.state.budget.within(self.params.limit))
            if self.best.value != self._known:  # the same neighbourhood may have better ones still
                self._known, self._tries = self.best.value, self.params.tries
        return bool(self.model.jobs)

    def _try(self, budget: Budget) -> None:
        """Plan in fractions, refine that plan, and look for schedules close to it."""
        params, known, gain = self.params, self._known, self._gain
        rows = [*self._rows, *self.model.worth(known + gain, self._most)]
        part = budget.within(params.plan_limit)
        solution = self._plan(rows, part, params.gap * self._left)
        if self._most == math.inf:
            self._adapt(solution)
        self._tries -= 1
        if solution.objective is None or not solution.values:
            self._tries = 0
            return
        self._most = solution.objective - params.lower * (solution.objective - known)
        near = self.model.near(self.model.completions(solution.values), params.window)
        if self._refined(solution, [*near, *self.model.worth(known + gain)], budget):
            self.place(near, budget)

    def place(self, near: Sequence[pulp.LpConstraint], budget: Budget) -> int:
        """Better schedules by plans in whole numbers within these rows; the number of new cuts."""
        return self.primal.search(near, budget, self._gain, self.params.primal)

    @property
    def _left(self) -> float:
        """The difference between the bound and the value of the best schedules."""
        return max(0.0, self.best.state.bound - self.best.value)

    @property
    def _gain(self) -> float:
        """How much more than the best schedules a plan must be worth."""
        return self.params.least_gain * self._left

    def _plan(
        self, rows: Sequence[pulp.LpConstraint], budget: Budget, gap: float = 0.0
    ) -> Solution:
        """The best plan within these rows, counts in fractions."""
        self.model.require(pulp.LpContinuous, pulp.LpContinuous)
        return close_plan(self.model, rows, budget, self.params.primal, gap=gap)

    def _adapt(self, solution: Solution) -> None:
        """Free more jobs next time if that was solved, fewer if not."""
        params = self.params
        if solution.values or solution.status is Status.INFEASIBLE:
            self._size += params.growth
        else:
            self._size = max(params.fewest_jobs, self._size - params.shrinkage)

    def _refined(
        self, solution: Solution, near: Sequence[pulp.LpConstraint], budget: Budget
    ) -> bool:
        """Cut off what violates cuts close to a plan; whether that leaves a plan."""
        for _ in range(self.params.rounds):
            if budget.passed or not self.separation.cut(solution.values, budget):
                break
            solution = self._plan(near, budget)
            if not solution.values:
                return False
        return True

    def _rows_around(self, free: Collection[int]) -> list[pulp.LpConstraint]:
        """Rows that keep all but the free jobs from completing later than they do now."""
        schedules, slots = self.best.solution.schedules, {}
        for c in self.model.jobs:
            if c.index in free:
                slots[c.job.id] = range(self.model.arrays.horizon)
            elif c.index in schedules:
                slots[c.job.id] = range(schedules[c.index].completion + 1)
        return self.model.completing(slots)

    def _chosen(self) -> set[int]:
        """Jobs whose completion is free: some that do not run yet, and some that run near these."""
        rng, params, current = self.rng, self.params, self.best.solution
        outside = [c.index for c in self.model.jobs if c.index not in current.schedules]
        invited: list[int] = []
        slot = float(rng.integers(current.arrays.horizon))
        if outside:
            chances = self.duals.chances[outside]
            count = min(len(outside), max(1, round(params.invited_share * self._size)))
            picked = rng.choice(len(outside), count, replace=False, p=chances / chances.sum())
            invited = [outside[k] for k in picked.tolist()]
            arrival = current.arrays.jobs[invited[0]].arrival
            slot = arrival + float(rng.integers(params.spread))
        inside = sorted(current.schedules)
        distance = current.distances(inside, slot)
        if rng.random() < params.random_share:
            distance = np.zeros(len(inside))
        order = np.lexsort((rng.random(len(inside)), distance))
        count = max(1, self._size - len(invited))
        return {*invited, *(inside[k] for k in order[:count].tolist())}
