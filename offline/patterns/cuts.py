"""Which counts fit on the servers of a slot: cuts, and the search for a violated one.

What n_i workers of each job i in a slot need is the same in every slot, since servers do not
change: n must lie in the Minkowski sum of the servers' integer knapsacks. For weights pi >= 0

    sum_i pi_i n_i <= sum_h max { pi a : a workers that fit on server h, integers }

holds for every placement, in every slot. A violated cut is found by column generation over the
patterns a: the largest multiple of n that patterns cover, whose dual values are pi. Servers may
be taken together in classes with the largest capacity in each: fewer knapsacks, weaker cuts.

References
----------
Gilmore and Gomory, A linear programming approach to the cutting-stock problem, 1961.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oasis.model.errors import SolverError
from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers.budget import Budget
from oasis.solvers.lp import ColumnLp, LpColumn
from offline.patterns.params import CutParams
from offline.patterns.patterns import PatternPool

FEWEST = 1e-9  # units that count as some
VIOLATED = 1e-6  # relative excess from which a known cut counts as violated


@dataclass(frozen=True, slots=True)
class Cut:
    """``weights @ counts <= 1`` for the counts of every slot.

    Parameters
    ----------
    weights : (I,) float array
        By job of the master, non-negative.
    """

    weights: FloatArray

    def is_violated(self, counts: FloatArray) -> bool:
        """Whether counts (I,) break it."""
        return bool(self.weights @ counts > 1.0 + VIOLATED)


class CutGenerator:
    """Finds cuts for the servers of one group.

    Parameters
    ----------
    pool : PatternPool
        The servers and their patterns; it grows.
    params : CutParams
        How long to look.
    """

    def __init__(self, pool: PatternPool, params: CutParams) -> None:
        self.pool, self.params = pool, params

    def separate(self, counts: FloatArray, budget: Budget) -> Cut | None:
        """A cut that `counts` (I,) violate clearly; None if there is none, or no time."""
        if not (counts > FEWEST).any():
            return None
        params = self.params
        cut = self._deepest(counts, params.deep, params.rounds, budget)
        if cut is None or not cut.weights @ counts > 1.0 + params.clear:
            return None
        return self._lifted(cut, counts, budget)

    def covering(self, counts: IntArray, budget: Budget) -> list[IntArray]:
        """Patterns (P, I) by class that cover `counts` (I,) by fractions, as far as any do."""
        # the search for a cut leaves the patterns that it has met in the pool
        self._deepest(counts.astype(float), self.params.deep, self.params.rounds, budget)
        return self.pool.maximal()

    def _lifted(self, cut: Cut, counts: FloatArray, budget: Budget) -> Cut:
        """`cut`, or one as deep that has weights for items that `counts` have none of.

        The search gives no weight to items that are absent from the counts, and so says nothing
        about them. Here a small amount of each of these is added to the counts, too little to
        change the cut, enough for a weight.
        """
        pool, params = self.pool, self.params
        most = pool.number @ pool.room
        absent = np.flatnonzero((counts <= FEWEST) & (most > 0))
        if not absent.size:
            return cut
        with_traces = counts.copy()
        with_traces[absent] = params.lifting_trace / absent.size * most[absent]
        for item in absent.tolist():
            pool.add_alone(item)
        lifted = self._deepest(with_traces, params.lifting_depth, params.lifting_rounds, budget)
        least = 1.0 + params.deep * (cut.weights @ counts - 1.0)
        return cut if lifted is None or lifted.weights @ counts < least else lifted

    def _deepest(self, counts: FloatArray, enough: float, most: int, budget: Budget) -> Cut | None:
        """The cut that `counts` (I,) violate most, or a share `enough` of that, if they do.

        None if patterns cover the counts, or without time. At most `most` rounds of knapsacks.
        """
        pool, params = self.pool, self.params
        items = np.flatnonzero(counts > FEWEST)
        lp = self._covering_lp(items, counts)
        best, weights = np.inf, np.zeros(len(counts))
        for _ in range(params.rounds):
            solution = lp.solve(budget)
            if solution is None or solution.objective >= 1.0:
                return None
            trial = np.zeros(len(counts))
            trial[items] = solution.duals[: items.size]
            scale = float(trial @ counts)
            if scale <= 0:
                raise SolverError("the cover of the counts has no dual weights")
            trial /= scale
            guessed = pool.guessed(trial)
            known = solution.duals[items.size :] / scale
            gain = pool.number @ np.maximum(guessed @ trial - known, 0.0)
            if gain > params.quick_gain * solution.objective:
                lp.add_table(_table(items, [[row] for row in guessed]))
                continue
            found = pool.best(trial, budget)
            limit = float(sum(n * value for n, (value, _) in zip(pool.number, found, strict=True)))
            if limit < best:
                best, weights = limit, trial
            most -= 1
            if most <= 0 or self._is_deep(best, solution.objective, enough):
                break
            lp.add_table(_table(items, [[row] for _, row in found]))
        return Cut(weights / best) if best > 0 else None

    def _is_deep(self, right_hand_side: float, least: float, enough: float) -> bool:
        """Whether no cut is much deeper than one with this right-hand side; `least` bounds all."""
        clear = self.params.clear
        is_best = right_hand_side - least <= clear / 10
        is_clear = right_hand_side < 1.0 - clear
        return is_best or (is_clear and 1.0 - right_hand_side >= enough * (1.0 - least))

    def _covering_lp(self, items: IntArray, counts: FloatArray) -> ColumnLp:
        """``max delta``: patterns that cover delta times the counts, rows of items then classes."""
        lp = ColumnLp([*np.zeros(items.size), *self.pool.number.astype(float)])
        lp.add_columns([LpColumn(1.0, np.arange(items.size), counts[items])])
        lp.add_table(_table(items, [list(known.values()) for known in self.pool.patterns]))
        return lp


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
