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

from oasis import rounding
from oasis.errors import SolverError
from oasis.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers.knapsack import knapsack
from oasis.solvers.lp import ColumnLp, LpColumn
from offline.deadline import Deadline

ROUNDS = 60
DEEP = 0.5  # a cut that takes away this share of what any could is good enough
SAFETY = 1e-9  # added to the right-hand side, for HiGHS's tolerances
CLEAR = 1e-3  # a cut counts if it takes away this much, relative
FEWEST = 1e-9  # units that count as some
LIFTED, ADDED = 0.8, 1e-4  # as DEEP, for items added; how many are, as a share of what fits


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
    _above: list[list[int]] = field(init=False)
    _patterns: list[dict[bytes, IntArray]] = field(init=False)

    def __post_init__(self) -> None:
        order = np.lexsort(self.capacity.T[::-1])[::-1]  # the largest first
        self.capacity, self.number = self.capacity[order], self.number[order]
        pairs = zip(self.demand, self.most.tolist(), strict=True)
        room = [rounding.units(self.capacity, row, most) for row, most in pairs]
        self._room = np.array(room).reshape(-1, len(self.capacity)).T
        self._patterns = [{} for _ in self.capacity]
        # earlier classes that have at least as much of everything
        self._above = [
            np.flatnonzero((self.capacity[:k] >= row).all(axis=1)).tolist()
            for k, row in enumerate(self.capacity)
        ]

    def separate(self, counts: FloatArray, deadline: Deadline) -> Cut | None:
        """A cut that `counts` (I,) violate clearly; None if there is none, or no time."""
        if not (counts > FEWEST).any():
            return None
        cut = self._priced(counts, DEEP, deadline)
        if cut is None or not cut.weights @ counts > 1.0 + CLEAR:
            return None
        return self._lifted(cut, counts, deadline)

    def covering(self, counts: IntArray, deadline: Deadline) -> list[IntArray]:
        """Patterns (P, I) by class that cover `counts` (I,) by fractions, as far as any do."""
        self._priced(counts.astype(float), DEEP, deadline)
        found = ([*known.values()] for known in self._patterns)
        tables = (np.array(rows, np.int64).reshape(-1, len(counts)) for rows in found)
        return [_maximal(np.minimum(table, counts)) for table in tables]

    def _lifted(self, cut: Cut, counts: FloatArray, deadline: Deadline) -> Cut:
        """A cut with weights for the items that `counts` have none of, if it is as good there.

        A few of each of these are added to the counts: too few to matter, enough for a price.
        """
        most = self.number @ self._room
        added = np.where(counts > FEWEST, counts, ADDED * most)
        if (added == counts).all():
            return cut
        lifted = self._priced(added, LIFTED, deadline)
        least = 1.0 + DEEP * (cut.weights @ counts - 1.0)
        return cut if lifted is None or lifted.weights @ counts < least else lifted

    def _priced(self, counts: FloatArray, enough: float, deadline: Deadline) -> Cut | None:
        """The cut that `counts` (I,) violate most, or a share `enough` of that; None if none."""
        items = np.flatnonzero(counts > FEWEST)
        lp = self._covering(items, counts)
        best, weights = np.inf, np.zeros(len(counts))
        for _ in range(ROUNDS):
            solution = lp.solve(deadline.left)
            if solution is None or solution.objective >= 1.0:
                return None
            trial = np.zeros(len(counts))
            trial[items] = solution.duals[: items.size]
            scale = float(trial @ counts)
            if scale <= 0:
                raise SolverError("the cover of the counts has no dual weights")
            trial /= scale
            found = self._filled(trial)
            limit = float(sum(n * value for n, (value, _) in zip(self.number, found, strict=True)))
            if limit < best:
                best, weights = limit, trial
            if best - solution.objective <= CLEAR / 10 or (
                best < 1.0 - CLEAR and 1.0 - best >= enough * (1.0 - solution.objective)
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

    def _filled(self, weights: FloatArray) -> list[tuple[float, IntArray]]:
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
            found.append(self._fill(k, weights) if best is None else best)
            self._patterns[k][found[k][1].tobytes()] = found[k][1]
        return found

    def _fill(self, k: int, weights: FloatArray) -> tuple[float, IntArray]:
        """Largest weight that fits on a server of class k, an upper bound of it, and how."""
        pattern = np.zeros(len(weights), dtype=np.int64)
        items = np.flatnonzero((weights > 0) & (self._room[k] > 0))
        if not items.size:
            return 0.0, pattern
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(self.demand > 0, self.demand / self.capacity[k], 0.0)[items]
        limit = 1.0 + CAPACITY_TOLERANCE
        bound, pattern[items] = knapsack(weights[items], shares, self._room[k, items], limit)
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


def classes(capacity: FloatArray, most: int | None) -> tuple[FloatArray, IntArray]:
    """Servers (S, R) in at most `most` classes: largest capacities (C, R) and numbers (C,).

    The class whose servers are furthest below its largest capacity is split in two, again and
    again, at the middle of the resource in which they are. None: only identical ones together.
    """
    kinds, kind = np.unique(capacity, axis=0, return_inverse=True)
    number = np.bincount(kind.ravel())
    if most is None or len(kinds) <= most:
        return kinds, number
    total = np.maximum(capacity.sum(axis=0), 1e-300)
    member = np.zeros(len(kinds), dtype=np.int64)
    for new in range(1, most):
        waste = np.array([_waste(kinds[member == k], number[member == k]) for k in range(new)])
        k, r = np.unravel_index(int(np.argmax(waste / total)), waste.shape)
        inside = np.flatnonzero(member == k)
        column = kinds[inside, r]
        member[inside[column > (column.min() + column.max()) / 2]] = new
    largest = np.array([kinds[member == k].max(axis=0) for k in range(most)])
    return largest, np.bincount(member, number).astype(np.int64)


def _waste(kinds: FloatArray, number: IntArray) -> FloatArray:
    """What a class claims too much, by resource."""
    waste: FloatArray = ((kinds.max(axis=0) - kinds) * number[:, None]).sum(axis=0)
    return waste
