"""Which counts fit on the servers of a slot: cuts, and the search for a violated one.

What n_i workers of each job i in a slot need is the same in every slot, since servers do not
change: n must lie in the Minkowski sum of the servers' integer knapsacks. For weights pi >= 0

    sum_i pi_i n_i <= sum_h max { pi a : a workers that fit on server h, integers }

holds for every placement, in every slot. A violated cut is found by column generation over the
patterns a: the largest multiple of n that patterns cover, whose dual is pi. Servers may be taken
together in classes with the largest capacity in each: fewer knapsacks, weaker cuts.

References
----------
Gilmore and Gomory, A linear programming approach to the cutting-stock problem, 1961.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oasis.model import rounding
from oasis.model.errors import SolverError
from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers.budget import Budget
from oasis.solvers.knapsack import knapsack
from oasis.solvers.lp import ColumnLp, LpColumn

ROUNDS = 200
DEEP = 0.5  # a cut that takes away this share of what any could is good enough
QUICK = 1e-3  # patterns that gain this much, relative, need not be the best ones
SAFETY = 1e-9  # added to the right-hand side, for HiGHS's tolerances
CLEAR = 1e-3  # a cut counts if it takes away this much, relative
FEWEST = 1e-9  # units that count as some
LIFTINGS = 5  # rounds of knapsacks, with items added
LIFTED, TRACE = 0.8, 3e-3  # as DEEP, with items added; all of these, as a share of what fits


@dataclass(frozen=True, slots=True)
class Cut:
    """``weights @ counts <= 1`` for the counts of every slot.

    Parameters
    ----------
    weights : (I,) float array
        By candidate, non-negative.
    """

    weights: FloatArray

    def is_violated(self, counts: FloatArray) -> bool:
        """Whether counts (I,) break it."""
        return bool(self.weights @ counts > 1.0 + 1e-6)


@dataclass(slots=True)
class Servers:
    """Servers of one group in classes, and the patterns known of each class.

    Parameters
    ----------
    capacity : (C, R) float array
        Largest capacity in each class.
    number : (C,) int array
        Servers of each class.
    demand : (I, R) float array
        Of one unit of each candidate.
    most : (I,) int array
        Most units of each candidate in a slot.
    """

    capacity: FloatArray
    number: IntArray
    demand: FloatArray
    most: IntArray
    _room: IntArray = field(init=False)
    _shares: FloatArray = field(init=False)
    _above: list[list[int]] = field(init=False)
    _patterns: list[dict[bytes, IntArray]] = field(init=False)

    def __post_init__(self) -> None:
        order = np.lexsort(self.capacity.T[::-1])[::-1]  # the largest first
        self.capacity, self.number = self.capacity[order], self.number[order]
        pairs = zip(self.demand, self.most.tolist(), strict=True)
        room = [rounding.units(self.capacity, row, most) for row, most in pairs]
        self._room = np.array(room).reshape(-1, len(self.capacity)).T
        self._patterns = [{} for _ in self.capacity]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = self.demand / self.capacity[:, None]
        self._shares = np.where(self.demand > 0, shares, 0.0)
        # earlier classes that have at least as much of everything
        self._above = [
            np.flatnonzero((self.capacity[:k] >= row).all(axis=1)).tolist()
            for k, row in enumerate(self.capacity)
        ]

    def separate(self, counts: FloatArray, budget: Budget) -> Cut | None:
        """A cut that `counts` (I,) violate clearly; None if there is none, or no time."""
        if not (counts > FEWEST).any():
            return None
        cut = self._priced(counts, DEEP, budget)
        if cut is None or not cut.weights @ counts > 1.0 + CLEAR:
            return None
        return self._lifted(cut, counts, budget)

    def covering(self, counts: IntArray, budget: Budget) -> list[IntArray]:
        """Patterns (P, I) by class that cover `counts` (I,) by fractions, as far as any do."""
        self._priced(counts.astype(float), DEEP, budget)  # which leaves the patterns it found
        found = ([*known.values()] for known in self._patterns)
        return [_maximal(np.array(rows, np.int64).reshape(-1, len(counts))) for rows in found]

    def _lifted(self, cut: Cut, counts: FloatArray, budget: Budget) -> Cut:
        """A cut with weights for the items that `counts` have none of, if half as deep or deeper.

        A trace of each of these is added to the counts: too little to matter, enough for a price.
        """
        most = self.number @ self._room
        absent = np.flatnonzero((counts <= FEWEST) & (most > 0))
        if not absent.size:
            return cut
        added = counts.copy()
        added[absent] = TRACE / absent.size * most[absent]
        for i in absent.tolist():
            k = int(np.argmax(self._room[:, i]))
            alone = np.zeros(len(counts), np.int64)
            alone[i] = self._room[k, i]
            self._patterns[k].setdefault(alone.tobytes(), alone)
        lifted = self._priced(added, LIFTED, budget, LIFTINGS)
        least = 1.0 + DEEP * (cut.weights @ counts - 1.0)
        return cut if lifted is None or lifted.weights @ counts < least else lifted

    def _priced(
        self, counts: FloatArray, enough: float, budget: Budget, most: int = ROUNDS
    ) -> Cut | None:
        """The cut that `counts` (I,) violate most, or a share `enough` of that, if they do.

        None if patterns cover the counts, or without time. At most `most` rounds of knapsacks.
        """
        items = np.flatnonzero(counts > FEWEST)
        lp = self._covering(items, counts)
        best, weights = np.inf, np.zeros(len(counts))
        for _ in range(ROUNDS):
            solution = lp.solve(budget)
            if solution is None or solution.objective >= 1.0:
                return None
            trial = np.zeros(len(counts))
            trial[items] = solution.duals[: items.size]
            scale = float(trial @ counts)
            if scale <= 0:
                raise SolverError("the cover of the counts has no dual weights")
            trial /= scale
            guessed = self._guessed(trial)
            known = solution.duals[items.size :] / scale
            gain = self.number @ np.maximum(guessed @ trial - known, 0.0)
            if gain > QUICK * solution.objective:
                lp.add_table(_table(items, [[row] for row in guessed]))
                continue
            found = self._filled(trial, budget)
            limit = float(sum(n * value for n, (value, _) in zip(self.number, found, strict=True)))
            if limit < best:
                best, weights = limit, trial
            most -= 1
            if (
                most <= 0
                or best - solution.objective <= CLEAR / 10
                or (best < 1.0 - CLEAR and 1.0 - best >= enough * (1.0 - solution.objective))
            ):
                break
            lp.add_table(_table(items, [[row] for _, row in found]))
        return Cut(weights / best) if best > 0 else None

    def _covering(self, items: IntArray, counts: FloatArray) -> ColumnLp:
        """``max delta``: patterns that cover delta times the counts, rows of items then classes."""
        lp = ColumnLp([*np.zeros(items.size), *self.number.astype(float)])
        lp.add_columns([LpColumn(1.0, np.arange(items.size), counts[items])])
        lp.add_table(_table(items, [list(patterns.values()) for patterns in self._patterns]))
        return lp

    def _guessed(self, weights: FloatArray) -> IntArray:
        """A good pattern of each class, (C, I), by greedy choice: quick, but no bound."""
        rows = np.arange(len(self.capacity))
        best = np.zeros(self._room.shape, dtype=np.int64)
        for size in (self._shares.sum(axis=2), self._shares.max(axis=2)):
            with np.errstate(divide="ignore", invalid="ignore"):
                density = np.where((weights > 0) & (self._room > 0), weights / size, -1.0)
            left = np.full((len(rows), self.demand.shape[1]), 1.0 + CAPACITY_TOLERANCE)
            units = np.zeros_like(best)
            for i in np.argsort(-density, axis=1, kind="stable").T[: np.count_nonzero(weights)]:
                share = self._shares[rows, i]
                with np.errstate(divide="ignore", invalid="ignore"):
                    fitting = np.where(share > 0, left / share, np.inf).min(axis=1)
                take = np.where(density[rows, i] > 0, self._room[rows, i], 0)
                take = np.minimum(take, fitting).astype(np.int64)
                units[rows, i] = take
                left -= take[:, None] * np.where(take[:, None] > 0, share, 0.0)
            is_better = units @ weights > best @ weights
            best[is_better] = units[is_better]
        for known, row in zip(self._patterns, best, strict=True):
            known[row.tobytes()] = row
        return best

    def _filled(self, weights: FloatArray, budget: Budget) -> list[tuple[float, IntArray]]:
        """The best pattern of each class; what fits on a smaller server is best there too."""
        found: list[tuple[float, IntArray]] = []
        for k, above in enumerate(self._above):
            fitting = [found[j] for j in above if (found[j][1] <= self._room[k]).all()]
            fitting = [
                (value, row)
                for value, row in fitting
                if (row @ self.demand <= self.capacity[k] * (1.0 + CAPACITY_TOLERANCE)).all()
            ]
            best = min(fitting, key=lambda pair: pair[0], default=None)
            found.append(self._fill(k, weights, budget) if best is None else best)
            self._patterns[k][found[k][1].tobytes()] = found[k][1]
        return found

    def _fill(self, k: int, weights: FloatArray, budget: Budget) -> tuple[float, IntArray]:
        """Largest weight that fits on a server of class k, an upper bound of it, and how."""
        pattern = np.zeros(len(weights), dtype=np.int64)
        items = np.flatnonzero((weights > 0) & (self._room[k] > 0))
        if not items.size:
            return 0.0, pattern
        limit = 1.0 + CAPACITY_TOLERANCE
        shares = self._shares[k, items]
        room = self._room[k, items]
        bound, pattern[items] = knapsack(weights[items], shares, room, limit, budget)
        return bound * (1.0 + SAFETY), pattern


def _maximal(rows: IntArray) -> IntArray:
    """Distinct rows that are not below another one."""
    rows = np.unique(rows, axis=0)
    kept: IntArray = rows[(rows[:, None] <= rows).all(axis=2).sum(axis=1) == 1]
    return kept


def _table(items: IntArray, patterns: list[list[IntArray]]) -> FloatArray:
    """Columns of servers filled with patterns, by class; rows of the items, then of the classes."""
    rows: list[FloatArray] = []
    for k, known in enumerate(patterns):
        distinct = {row.tobytes(): row for row in (full[items] for full in known)}
        block = np.zeros((len(distinct), items.size + len(patterns)))
        if distinct:
            block[:, : items.size] = -np.array(list(distinct.values()))
            block[:, items.size + k] = 1.0
        rows.append(block[block[:, : items.size].any(axis=1)])
    return np.concatenate(rows)
