"""The column generation itself: prices, the best schedule of each job at these, the next prices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.column_generation.pricing import StabilityCentre, in_time, merged, price, pricing_work
from offline.column_generation.restricted_master import (
    Column,
    Grouping,
    RestrictedMaster,
    SlotCuts,
    columns_of,
    levels,
)
from offline.model.arrays import OfflineArrays
from offline.params import ColumnGenerationParams
from offline.state import OnlinePrices, SolveState, trivial_bound

# Relative difference of bound and master at which merged servers are split: the bound of a coarse
# grouping is not the LP's anyway.
COARSE_TOLERANCE = 2e-4
# What OASiS's final prices are multiplied by, again and again, as long as that helps.
PRICE_SCALING = 0.25
# Of the bound, and of the largest bound met: all resources together cost less, so prices become 0.
LEAST_PRICE_SHARE = 1e-3
NEGLIGIBLE_PRICES = 1e-9
# Columns that the restricted master keeps, per job and on top: more of them slow its simplex down,
# and with fewer the same columns are generated repeatedly.
COLUMNS_PER_JOB = 60
SPARE_COLUMNS = 1000


@dataclass(frozen=True, slots=True)
class Iterate:
    """One round of column generation: its bound (`dual`), and the master's value before it."""

    seconds: float
    dual: float
    master: float


@dataclass(frozen=True, slots=True)
class _Priced:
    """Result of pricing all jobs: the bound D, its subgradient by row, the best schedules."""

    dual: float
    subgradient: FloatArray
    columns: list[Column]


class ColumnGeneration:
    """A column generation, from OASiS's prices to those that solve the configuration LP."""

    def __init__(
        self,
        arrays: OfflineArrays,
        budget: Budget,
        state: SolveState,
        params: ColumnGenerationParams,
    ) -> None:
        self.arrays, self.budget, self.state, self.params = arrays, budget, state, params
        self.status = budget.status
        self.value = 0.0
        self.rounds: list[Iterate] = []
        self.columns: list[Column] = []
        self.weights: FloatArray = np.empty(0)
        self.centre = StabilityCentre(
            np.zeros((arrays.horizon, *arrays.worker.priced.shape)),
            np.zeros((arrays.horizon, *arrays.ps.priced.shape)),
        )

    def run(self, prices: OnlinePrices, columns: Iterable[Column]) -> None:
        """Solve the configuration LP from these prices and columns; Ctrl-C ends it early."""
        try:
            is_solved = False
            with self.state.in_time():
                self._start(prices, columns)
                is_solved = self._solve()
            self.status = Status.OPTIMAL if is_solved else self.budget.status
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED

    def _solve(self) -> bool:
        """Solve the LP with ever more classes of servers; return whether the last is solved."""
        # Few classes of servers mean few rows: the master is solved quickly while prices are
        # still far off, and its prices and columns are a good start for finer rows.
        *coarse, finest = levels(self.arrays, self.params.classes)
        tolerance = self.params.tolerance
        for grouping in coarse:
            self.refine(self._master(grouping), max(COARSE_TOLERANCE, tolerance))
        return self.refine(self._master(finest), tolerance)

    def _start(self, prices: OnlinePrices, columns: Iterable[Column]) -> None:
        """Try OASiS's prices, scaled down while the bound falls; take its schedules as columns."""
        self.columns = [*columns, *columns_of(self.arrays, prices.schedules)]
        grouping = Grouping.of(self.arrays, 1)
        duals = grouping.duals(prices.worker, prices.ps)
        most = trivial_bound(self.arrays)
        # The sum of the duals is what all resources cost.
        duals *= min(1.0, most / max(float(duals.sum()), 1e-300))
        least = 0.0
        while not self.budget.passed:
            priced = self._price(grouping, duals, 0.0, SlotCuts(self.arrays))
            self.columns += priced.columns
            if priced.dual > self.centre.bound:
                break
            self._move(grouping, duals, priced.dual)
            if not duals.any():
                break
            # where no job pays at any price, D is what the resources cost and falls with them
            least = max(least, NEGLIGIBLE_PRICES * priced.dual)
            matters = duals.sum() > max(least, LEAST_PRICE_SHARE * priced.dual)
            duals = duals * PRICE_SCALING if matters else np.zeros_like(duals)

    def _master(self, grouping: Grouping) -> RestrictedMaster:
        master = RestrictedMaster(grouping)
        master.add(self.state.budget.over(self.columns))
        return master

    def refine(self, master: RestrictedMaster, tolerance: float) -> bool:
        """Solve the LP with the rows of `master`; return whether `tolerance` was reached."""
        centre = self.centre
        best = np.zeros(master.size)
        resources = master.grouping.size
        best[:resources] = master.grouping.duals(centre.worker_prices, centre.ps_prices)
        best[resources : resources + len(centre.cut_duals)] = centre.cut_duals
        self.centre.restart()
        self.value = 0.0
        most = COLUMNS_PER_JOB * len(self.arrays.jobs) + SPARE_COLUMNS
        while not self.budget.passed:
            solution = master.solve(self.budget)
            if solution is None:
                return False
            self.value = solution.value
            self.columns, self.weights = list(master.columns), solution.weights
            if self._has_converged(tolerance):
                return True
            master.keep_best(solution, most)
            smoothing = self.centre.smoothing
            duals = smoothing * best + (1 - smoothing) * solution.duals
            priced = self._price(master.grouping, duals, solution.value, master.cuts)
            is_better = priced.dual < self.centre.bound
            is_idle = master.add(priced.columns) == 0 and not is_better
            if is_idle and smoothing == 0:
                return False  # the master's own prices find nothing: only rounding is left
            # Where D falls no further towards the master's prices, the next prices stay closer to
            # the centre.
            descent = float(priced.subgradient @ (solution.duals - best))
            self.centre.adapt(is_idle=is_idle, is_beyond=descent >= 0)
            if is_better:
                self._move(master.grouping, duals, priced.dual)
                best = duals
        return False

    def _has_converged(self, tolerance: float) -> bool:
        incumbent = self.state.incumbent
        # A bound that meets the incumbent proves the optimum, wherever the LP ends.
        known = self.value if incumbent is None else max(self.value, incumbent)
        return self.centre.bound - known <= tolerance * abs(self.centre.bound)

    def _move(self, grouping: Grouping, duals: FloatArray, bound: float) -> None:
        prices, of_cuts = duals[: grouping.size], duals[grouping.size :]
        self.centre.move(grouping.prices(prices), bound, of_cuts)
        self.state.record_bound(bound)

    def _price(
        self, grouping: Grouping, duals: FloatArray, master: float, cuts: SlotCuts
    ) -> _Priced:
        """Price all jobs on the empty cluster at `duals`; record `master` beside the bound."""
        of_cuts = duals[grouping.size :]
        ledger = merged(grouping, duals[: grouping.size])
        # Slots with equal prices and different surcharges must not share a run.
        ledger.changes[cuts.changes(of_cuts)] = True
        payoffs, columns, subgradient = [], [], np.ones(len(duals))
        # A pass outlives its share of the time, because its bound counts once it is complete.
        jobs = in_time(self.arrays.jobs, ledger, self.state.budget)
        for index, job in enumerate(jobs):
            payoff, schedule = price(job, ledger, cuts.surcharges(index, of_cuts))
            if schedule is not None:
                payoffs.append(payoff)
                columns.append(Column.of(self.arrays, index, schedule))
                for first, (rows, shares) in (
                    (0, grouping.usage(index, schedule)),
                    (grouping.size, cuts.usage(index, schedule)),
                ):
                    subgradient[first + rows] -= shares
        # (19): the dual of a row is price times capacity, and a cut has the right-hand side 1.
        dual = math.fsum([float(duals.sum()), *payoffs])
        self.budget.charge(len(self.arrays.forms) * pricing_work(self.arrays))
        self.rounds.append(Iterate(self.budget.seconds, dual, master))
        return _Priced(dual, subgradient, columns)
