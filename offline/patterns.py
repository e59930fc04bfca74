"""Patterns of single servers in one slot, and the cuts that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oasis.model.errors import SolverError
from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers.budget import Budget
from oasis.solvers.knapsack import knapsack
from oasis.solvers.lp import ColumnLp, LpColumn
from offline.model.arrays import units_that_fit
from offline.model.capacities import CapacityLevel, Cover, fits

# Relative violation from which a cut counts: less hardly moves the bound, and costs a row.
CLEAR = 1e-3
# Most classes of servers a group; more give stronger cuts and more knapsacks.
MOST_CLASSES = 60
ROUNDS = 200  # of the column generation over patterns, at most
DEEP = 0.5  # a cut that takes away this share of what any cut could is good enough
QUICK_GAIN = 1e-3  # relative, at which patterns found by greedy choice will do for a round
# Rounds of knapsacks for the weights of jobs that the counts have none of, and how deep these
# weights must be: they strengthen a cut in other slots only, so that less effort is worth it.
LIFTING_ROUNDS = 5
LIFTING_DEPTH = 0.8
# Of what fits on the servers: added to the counts, so that the weights of absent jobs matter at
# all.
LIFTING_TRACE = 3e-3


def classes(capacity: FloatArray, most: int | None) -> tuple[FloatArray, IntArray]:
    """Split servers (S, R) into <= `most` classes; return largest capacities (C, R), sizes (C,)."""
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
    """Return by how much, by resource, a class's largest capacities exceed those of its servers."""
    waste: FloatArray = ((kinds.max(axis=0) - kinds) * number[:, None]).sum(axis=0)
    return waste


SAFETY = 1e-9  # relative, on top of a knapsack's bound, for HiGHS's tolerances
CLOSE = 1e-10  # relative: from how far below its limit a sum of floats is added up exactly
LIMIT = 1.0 + CAPACITY_TOLERANCE  # of the shares of a capacity, as `oasis.model.rounding.fits` says


@dataclass(slots=True)
class PatternPool:
    """Servers of one group in classes, and the patterns found so far for each class."""

    capacity: FloatArray
    number: IntArray
    demand: FloatArray
    most: IntArray
    room: IntArray = field(init=False)
    patterns: list[dict[bytes, IntArray]] = field(init=False)
    _shares: FloatArray = field(init=False)
    _above: list[list[int]] = field(init=False)
    _covers: list[list[list[CapacityLevel]]] = field(init=False)

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
        """Add the pattern with as many units of one item as fit in the class that holds most."""
        k = int(np.argmax(self.room[:, item]))
        pattern = np.zeros(len(self.most), np.int64)
        pattern[item] = self.room[k, item]
        self.patterns[k].setdefault(pattern.tobytes(), pattern)

    def guess(self, weights: FloatArray) -> IntArray:
        """Return a good pattern of each class, (C, I), by greedy choice: quick, but no bound."""
        rows = np.arange(len(self.capacity))
        best = np.zeros(self.room.shape, dtype=np.int64)
        for size in (self._shares.sum(axis=2), self._shares.max(axis=2)):
            with np.errstate(divide="ignore", invalid="ignore"):
                density = np.where((weights > 0) & (self.room > 0), weights / size, -1.0)
            free = np.full((len(rows), self.demand.shape[1]), LIMIT)
            units = np.zeros_like(best)
            for i in np.argsort(-density, axis=1, kind="stable").T[: np.count_nonzero(weights)]:
                share = self._shares[rows, i]
                with np.errstate(divide="ignore", invalid="ignore"):
                    fitting = np.where(share > 0, free / share, np.inf).min(axis=1)
                take = np.where(density[rows, i] > 0, self.room[rows, i], 0)
                take = np.minimum(take, fitting).astype(np.int64)
                units[rows, i] = take
                free -= take[:, None] * np.where(take[:, None] > 0, share, 0.0)
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
        """Return, for each class, an upper bound of the weight of any pattern, and a pattern."""
        patterns: list[tuple[float, IntArray]] = []
        for k, above in enumerate(self._above):
            fitting = [patterns[j] for j in above if (patterns[j][1] <= self.room[k]).all()]
            fitting = [(value, row) for value, row in fitting if self._fits(k, row)]
            best = min(fitting, key=lambda pair: pair[0], default=None)
            patterns.append(self._fill(k, weights, budget) if best is None else best)
            self.patterns[k][patterns[k][1].tobytes()] = patterns[k][1]
        return patterns

    def _fill(self, k: int, weights: FloatArray, budget: Budget) -> tuple[float, IntArray]:
        """Return an upper bound of the weight on a server of class k, and the best pattern."""
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
        """Return whether the verification accepts a pattern (I,) on a server of class k."""
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
        """Return the covers of class k, of which knapsacks must miss a level, by item position."""
        return [
            [(np.flatnonzero(np.isin(items, level.items)), level.count) for level in levels]
            for levels in self._covers[k]
        ]

    def maximal(self) -> list[IntArray]:
        """Return, by class, the stored patterns (P, I) that no other stored one contains."""
        tables = ([*known.values()] for known in self.patterns)
        return [_maximal(np.array(rows, np.int64).reshape(-1, len(self.most))) for rows in tables]


def _maximal(rows: IntArray) -> IntArray:
    """Drop the rows of (P, I), all different, that are at most another row in every entry."""
    is_below = (rows[:, None] <= rows).all(axis=2)
    maximal: IntArray = rows[is_below.sum(axis=1) == 1]
    return maximal


FEWEST = 1e-9  # units that count as some
VIOLATED = 1e-6  # relative excess from which a known cut counts as violated


@dataclass(frozen=True, slots=True)
class Cut:
    """A valid inequality for any slot: ``weights @ counts <= 1`` for all counts (I,) that fit."""

    weights: FloatArray

    def is_violated(self, counts: FloatArray) -> bool:
        """Return whether counts (I,) violate this cut by more than the tolerance."""
        return bool(self.weights @ counts > 1.0 + VIOLATED)


class CutGenerator:
    """Finds cuts on the counts of one group, by column generation over patterns of servers."""

    def __init__(self, pool: PatternPool, deep: float = DEEP) -> None:
        self.pool, self.deep = pool, deep

    @classmethod
    def of(cls, capacity: FloatArray, demand: FloatArray, most: IntArray) -> CutGenerator:
        """Make a generator for servers (S, R), in at most `MOST_CLASSES` classes."""
        return cls(PatternPool(*classes(capacity, MOST_CLASSES), demand, most))

    def separate(self, counts: FloatArray, budget: Budget) -> Cut | None:
        """Return a cut that `counts` (I,) clearly violate; None if none was found in time."""
        if not (counts > FEWEST).any():
            return None
        cut = self._deepest(counts, self.deep, ROUNDS, budget)
        if cut is None or not cut.weights @ counts > 1.0 + CLEAR:
            return None
        return self._lift(cut, counts, budget)

    def covering(self, counts: IntArray, budget: Budget) -> list[IntArray]:
        """Return patterns (P, I) by class that cover `counts` (I,) in fractions, if any do."""
        # the search for a cut leaves the patterns that it has met in the pool
        if counts.any():
            self._deepest(counts.astype(float), self.deep, ROUNDS, budget)
        return self.pool.maximal()

    def _lift(self, cut: Cut, counts: FloatArray, budget: Budget) -> Cut:
        """Return `cut`, or another deep one with weights also for items absent from `counts`."""
        # The search gives no weight to items that are absent: a trace of them is added to the
        # counts, too little to change the cut, enough for a weight.
        pool = self.pool
        most = pool.number @ pool.room
        absent = np.flatnonzero((counts <= FEWEST) & (most > 0))
        if not absent.size:
            return cut
        with_traces = counts.copy()
        with_traces[absent] = LIFTING_TRACE / absent.size * most[absent]
        for item in absent.tolist():
            pool.add_alone(item)
        lifted = self._deepest(with_traces, LIFTING_DEPTH, LIFTING_ROUNDS, budget)
        least = 1.0 + self.deep * (cut.weights @ counts - 1.0)
        return cut if lifted is None or lifted.weights @ counts < least else lifted

    def _deepest(self, counts: FloatArray, enough: float, most: int, budget: Budget) -> Cut | None:
        """Return a cut that `counts` violate, deep `enough`, in `most` knapsack rounds, or None."""
        pool = self.pool
        items = np.flatnonzero(counts > FEWEST)
        lp = self._covering_lp(items, counts)
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
            guessed = pool.guess(trial)
            known = solution.duals[items.size :] / scale
            gain = pool.number @ np.maximum(guessed @ trial - known, 0.0)
            if gain > QUICK_GAIN * solution.objective:
                lp.add_table(_table(items, [[row] for row in guessed]))
                continue
            patterns = pool.best(trial, budget)
            limit = float(
                sum(n * value for n, (value, _) in zip(pool.number, patterns, strict=True))
            )
            if limit < best:
                best, weights = limit, trial
            most -= 1
            if most <= 0 or self._is_deep(best, solution.objective, enough):
                break
            lp.add_table(_table(items, [[row] for _, row in patterns]))
        return Cut(weights / best) if best > 0 else None

    def _is_deep(self, right_hand_side: float, least: float, enough: float) -> bool:
        """Return whether a right-hand side is `enough` of the way from 1 to its lower bound."""
        is_best = right_hand_side - least <= CLEAR / 10
        is_clear = right_hand_side < 1.0 - CLEAR
        return is_best or (is_clear and 1.0 - right_hand_side >= enough * (1.0 - least))

    def _covering_lp(self, items: IntArray, counts: FloatArray) -> ColumnLp:
        """Make the LP ``max delta``: patterns cover delta times `counts`; rows: items, classes."""
        lp = ColumnLp([*np.zeros(items.size), *self.pool.number.astype(float)])
        lp.add_columns([LpColumn(1.0, np.arange(items.size), counts[items])])
        lp.add_table(_table(items, [list(known.values()) for known in self.pool.patterns]))
        return lp


def _table(items: IntArray, patterns: list[list[IntArray]]) -> FloatArray:
    """Return columns of servers filled with patterns, by class; rows of items, then of classes."""
    rows: list[FloatArray] = []
    for k, known in enumerate(patterns):
        distinct = {row.tobytes(): row for row in (full[items] for full in known)}
        block = np.zeros((len(distinct), items.size + len(patterns)))
        if distinct:
            block[:, : items.size] = -np.array(list(distinct.values()))
            block[:, items.size + k] = 1.0
        rows.append(block[block[:, : items.size].any(axis=1)])
    return np.concatenate(rows)
