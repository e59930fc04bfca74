"""Patterns: what one server can hold, for classes of servers.

A pattern is a vector of integers (I,), units of each item that fit on a server together. Good
patterns for given weights of the items come from a greedy choice, best ones from a knapsack.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oasis.model.errors import SolverError
from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers.budget import Budget
from oasis.solvers.knapsack import knapsack
from offline.model.arrays import units_that_fit
from offline.model.covers import Cover, Level, fits

SAFETY = 1e-9  # relative, on top of a knapsack's bound, for HiGHS's tolerances
CLOSE = 1e-10  # relative: from how far below its limit a sum of floats is added up exactly
LIMIT = 1.0 + CAPACITY_TOLERANCE  # of the shares of a capacity, as `oasis.model.rounding.fits` says


@dataclass(slots=True)
class PatternPool:
    """Servers of one group in classes, and the patterns known of each class.

    Parameters
    ----------
    capacity : (C, R) float array
        Largest capacity in each class.
    number : (C,) int array
        Servers of each class.
    demand : (I, R) float array
        Of one unit of each item.
    most : (I,) int array
        Most units of each item in a slot.

    Attributes
    ----------
    room : (C, I) int array
        Most units of each item alone on an empty server of each class.
    patterns : list of dict of bytes to (I,) int array
        Known patterns of each class, by their bytes.
    """

    capacity: FloatArray
    number: IntArray
    demand: FloatArray
    most: IntArray
    room: IntArray = field(init=False)
    patterns: list[dict[bytes, IntArray]] = field(init=False)
    _shares: FloatArray = field(init=False)
    _above: list[list[int]] = field(init=False)
    _covers: list[list[list[Level]]] = field(init=False)

    def __post_init__(self) -> None:
        order = np.lexsort(self.capacity.T[::-1])[::-1]  # the largest first
        self.capacity, self.number = self.capacity[order], self.number[order]
        self.room = units_that_fit(self.capacity, self.demand, self.most).T
        self.patterns = [{} for _ in self.capacity]
        self._covers = [[] for _ in self.capacity]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = self.demand / self.capacity[:, None]
        self._shares = np.where(self.demand > 0, shares, 0.0)
        # earlier classes that have at least as much of everything
        self._above = [
            np.flatnonzero((self.capacity[:k] >= row).all(axis=1)).tolist()
            for k, row in enumerate(self.capacity)
        ]

    def add_alone(self, item: int) -> None:
        """Make known the pattern of as many units of one item as fit, where most do."""
        k = int(np.argmax(self.room[:, item]))
        alone = np.zeros(len(self.most), np.int64)
        alone[item] = self.room[k, item]
        self.patterns[k].setdefault(alone.tobytes(), alone)

    def guessed(self, weights: FloatArray) -> IntArray:
        """A good pattern of each class, (C, I), by greedy choice: quick, but no bound."""
        rows = np.arange(len(self.capacity))
        best = np.zeros(self.room.shape, dtype=np.int64)
        for size in (self._shares.sum(axis=2), self._shares.max(axis=2)):
            with np.errstate(divide="ignore", invalid="ignore"):
                density = np.where((weights > 0) & (self.room > 0), weights / size, -1.0)
            left = np.full((len(rows), self.demand.shape[1]), LIMIT)
            units = np.zeros_like(best)
            for i in np.argsort(-density, axis=1, kind="stable").T[: np.count_nonzero(weights)]:
                share = self._shares[rows, i]
                with np.errstate(divide="ignore", invalid="ignore"):
                    fitting = np.where(share > 0, left / share, np.inf).min(axis=1)
                take = np.where(density[rows, i] > 0, self.room[rows, i], 0)
                take = np.minimum(take, fitting).astype(np.int64)
                units[rows, i] = take
                left -= take[:, None] * np.where(take[:, None] > 0, share, 0.0)
            is_better = units @ weights > best @ weights
            best[is_better] = units[is_better]
        # a sum clearly below the limit needs no second look
        is_close = best @ self.demand > self.capacity * LIMIT * (1.0 - CLOSE)
        for k in np.flatnonzero(is_close.any(axis=1)).tolist():
            if not self._fits(k, best[k]):
                best[k] = 0
        for known, row in zip(self.patterns, best, strict=True):
            known[row.tobytes()] = row
        return best

    def best(self, weights: FloatArray, budget: Budget) -> list[tuple[float, IntArray]]:
        """The best pattern of each class, and an upper bound of what it weighs.

        What fits on a smaller server is best there too.
        """
        found: list[tuple[float, IntArray]] = []
        for k, above in enumerate(self._above):
            fitting = [found[j] for j in above if (found[j][1] <= self.room[k]).all()]
            fitting = [(value, row) for value, row in fitting if self._fits(k, row)]
            best = min(fitting, key=lambda pair: pair[0], default=None)
            found.append(self._filled(k, weights, budget) if best is None else best)
            self.patterns[k][found[k][1].tobytes()] = found[k][1]
        return found

    def _filled(self, k: int, weights: FloatArray, budget: Budget) -> tuple[float, IntArray]:
        """Largest weight that fits on a server of class k, an upper bound of it, and how."""
        pattern = np.zeros(len(weights), dtype=np.int64)
        items = np.flatnonzero((weights > 0) & (self.room[k] > 0))
        if not items.size:
            return 0.0, pattern
        shares, room = self._shares[k, items], self.room[k, items]
        while True:
            covers = self._covers_of(k, items)
            bound, pattern[items] = knapsack(weights[items], shares, room, LIMIT, budget, covers)
            if self._fits(k, pattern):
                return bound * (1.0 + SAFETY), pattern
            if any(all(level.is_reached(pattern) for level in c) for c in self._covers[k]):
                raise SolverError("HiGHS breaks a row of whole numbers")
            self._cut_off(k, pattern)

    def _fits(self, k: int, pattern: IntArray) -> bool:
        """Whether the verification accepts a pattern (I,) on a server of class k."""
        capacity, used = self.capacity[k], pattern @ self.demand
        close = np.flatnonzero(used > capacity * LIMIT * (1.0 - CLOSE)).tolist()
        counts = pattern.tolist()
        return all(fits(self.demand[:, r].tolist(), counts, float(capacity[r])) for r in close)

    def _cut_off(self, k: int, pattern: IntArray) -> None:
        """Keep all later knapsacks of class k from a pattern (I,) that does not fit."""
        for amounts, limit in zip(self.demand.T.tolist(), self.capacity[k].tolist(), strict=True):
            if not fits(amounts, pattern.tolist(), limit):
                self._covers[k].append(Cover.within(amounts, pattern.tolist(), limit).levels())

    def _covers_of(self, k: int, items: IntArray) -> list[list[tuple[IntArray, int]]]:
        """What knapsacks of class k must not reach, in the positions of these items."""
        return [
            [(np.flatnonzero(np.isin(items, level.items)), level.count) for level in levels]
            for levels in self._covers[k]
        ]

    def maximal(self) -> list[IntArray]:
        """Known patterns (P, I) by class that are not below another one."""
        tables = ([*known.values()] for known in self.patterns)
        return [_maximal(np.array(rows, np.int64).reshape(-1, len(self.most))) for rows in tables]


def _maximal(rows: IntArray) -> IntArray:
    """Rows (P, I), all different, that are not below another one."""
    is_below = (rows[:, None] <= rows).all(axis=2)
    kept: IntArray = rows[is_below.sum(axis=1) == 1]
    return kept
