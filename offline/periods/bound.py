"""A bound from periods: prices for the links between them, then each period as a MILP.

The links are relaxed (Lagrange). Their prices are the dual values of the linear relaxation, at
which the periods add up to its bound. As MILPs they add up to a lower one: branch and bound works
on each of them by itself, and what it gains in one adds to what it gains in the others, where a
tree of the whole horizon would have to branch on all of them at once. Solutions of periods break
cuts on what fits in a slot, which then count in all slots, and the next round is better.

References
----------
Geoffrion, Lagrangean relaxation for integer programming, Mathematical Programming Study 2, 1974.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import pairwise, product

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers import Solution, Status, highs
from oasis.solvers.budget import Budget
from oasis.solvers.lp import Relaxation
from offline.benders.master import CountModel
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution
from offline.model.arrays import GROUPS
from offline.periods.model import PeriodModel, as_arrays, keep_rates
from offline.state import Phase

# Share of a job's best utility: completions whose utilities differ by no more count as one.
STEP = 2e-3
# Rounds of cuts of the relaxation over which the bound must fall, and by how much, relatively.
PATIENCE = 2
LEAST_PROGRESS = 3e-4
LIMIT = 40.0  # for one period in a round; seconds or units of work
# Shares of the difference of bound and incumbent: at which the solutions of all periods together
# are good enough, and by which a round must lower the bound for another one.
GAP = 0.02
SLOW = 0.01

SOLVED = (Status.OPTIMAL, Status.GAP_LIMIT)
SAFETY = 1e-9  # relative, on top of bounds, for rounding in sums


class PeriodBound:
    """Lowers the bound of a long horizon, round by round."""

    def __init__(
        self,
        master: CountModel,
        separation: Separation,
        best: BestSolution,
        slots: int,
    ) -> None:
        self.separation, self.best = separation, best
        self.model = PeriodModel(master, split(master.arrays.horizon, slots), STEP)
        self.is_settled = False
        self._relaxation = Relaxation(self.model.whole())
        self._relaxed_bound = math.inf
        self.model.new.clear()
        self.prices = np.zeros(len(self.model.links))
        self._found = np.zeros(self.model.size)
        self._begin()

    def _begin(self) -> None:
        """Reset the bounds of the periods, which hold at the prices of before."""
        self._bounds = [math.inf] * len(self.model.periods)
        self._has_news = [True] * len(self.model.periods)  # since the period was solved

    def relax(self, budget: Budget) -> None:
        """Solve the linear relaxation repeatedly, and cut off violated rows and cuts."""
        self.best.state.enter(Phase.CUTTING_PLANES)
        bounds = list[float]()
        slots = range(self.model.master.arrays.horizon)
        while not (budget.passed or self.best.is_proven):
            values = self._relaxed(budget)
            if values is None:
                break
            bounds.append(self._relaxed_bound)
            if len(bounds) > PATIENCE:
                progress = bounds[-1 - PATIENCE] - bounds[-1]
                if progress <= LEAST_PROGRESS * bounds[-1]:
                    break
            rates = keep_rates(self.model, values)
            if self._cut(values, slots, budget) + rates == 0:
                break
        self._begin()

    def round(self, budget: Budget) -> None:
        """Solve each period at the prices of the links, and cut off what does not fit."""
        state = self.best.state
        state.enter(Phase.PERIODS)
        before, left = state.bound, max(0.0, state.bound - self.best.value)
        for number in range(len(self.model.periods)):
            # At the same prices the same rows give the same bound.
            if self._has_news[number]:
                solution = self._solved(number, budget)
                # A bound of fewer rows at the same prices holds as well.
                self._bounds[number] = min(self._bounds[number], solution.bound)
                if solution.objective is not None:
                    self._keep(number, solution)
                    self._has_news[number] = solution.status not in SOLVED
                if budget.passed or self.best.is_proven:
                    break
        state.proved(math.fsum(self._bounds) * (1 + SAFETY))
        for number, slots in enumerate(self.model.periods):
            self._has_news[number] |= self._cut(self._found, slots, budget) > 0
        is_worth_it = state.bound < before - SLOW * left
        self.is_settled = not (is_worth_it and any(self._has_news))

    def _keep(self, number: int, solution: Solution) -> None:
        """Record the values of a period."""
        first, end = self.model.columns(number)
        self._found[first:end] = list(solution.values.values())

    def _solved(self, number: int, budget: Budget) -> Solution:
        """One period as a MILP; the values of a solution are in the order of the variables."""
        left = max(0.0, self.best.state.bound - self.best.value)
        solution = highs.solve(
            self.model.period(number, self.prices),
            budget=budget.within(LIMIT),
            # The gaps of all periods add up in the bound.
            gap=GAP * left / len(self.model.periods),
            proof=False,
            is_relaxation=True,
        )
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return solution

    def _relaxed(self, budget: Budget) -> FloatArray | None:
        """A solution of the linear relaxation that keeps all known cuts; None without time."""
        while True:
            rows = as_arrays(self.model.new)
            self.model.new.clear()
            self._relaxation.add(rows)
            solution = self._relaxation.solve(budget)
            if solution is None:
                return None
            self._relaxed_bound = solution.bound * (1 + SAFETY)
            self.best.state.proved(self._relaxed_bound)
            # Optimal for the linear relaxation, so that the periods begin with its bound.
            self.prices = self._relaxation.duals[: len(self.model.links)]
            values = np.array(list(solution.values.values()))
            if not self.model.keep_cuts(values):
                return values

    def _cut(self, values: FloatArray, slots: Collection[int], budget: Budget) -> int:
        """Look for cuts that a solution breaks in these slots; return how many it breaks."""
        counts = self.model.counts(values)
        cuts = self.model.master.cuts
        broken = 0
        for slot, group in product(slots, GROUPS):
            here = self.model.units(group, counts[:, slot])
            # A known cut costs one product, a new one a search.
            is_known = any(cut.is_violated(here) for cut in cuts[group])
            broken += is_known or self.separation.cut_off(group, here, (), budget)
        self.model.keep_cuts(values)
        return broken


def split(horizon: int, slots: int) -> list[range]:
    """Split into periods of about this number of slots, as equal as possible, at least two."""
    number = max(2, round(horizon / slots))
    ends = [round(k * horizon / number) for k in range(number + 1)]
    return [range(*pair) for pair in pairwise(ends) if pair[0] < pair[1]]
