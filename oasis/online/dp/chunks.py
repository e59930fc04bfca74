"""DP_COST of Algorithm 2 as printed: a dynamic programme over whole chunks and slots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.online.dp.split import Split


@dataclass(frozen=True, slots=True)
class ChunkSplit:
    """Cheapest ways to do all the work by the end of each slot.

    Parameters
    ----------
    table : (n, N + 1) float array
        ``table[t, n]`` is the cost of n workers in slot t, inf where they do not fit.
    progress : (N + 1,) int array
        Work that each count does in a slot; non-decreasing, starts at 0.
    value : (n + 1, D + 1) float array
        ``value[s, d]`` is the cheapest cost of at least d units of work in the first s slots.

    Examples
    --------
    >>> import numpy as np
    >>> from oasis.online.dp import ChunkSplit
    >>> table = np.array([[0.0, 3.0, 5.0], [0.0, 1.0, 2.0]])  # cost of 0, 1, 2 workers in 2 slots
    >>> split = ChunkSplit.of(table, progress=np.array([0, 1, 2]), total=2)
    >>> split.cost, split.cheapest().counts
    (array([5., 2.]), array([0, 2]))
    """

    table: FloatArray
    progress: IntArray
    value: FloatArray

    @classmethod
    def of(cls, table: FloatArray, progress: IntArray, total: int) -> ChunkSplit:
        """Run the dynamic programme over slots; state: work done so far, 0..`total`."""
        before = np.maximum(0, np.arange(total + 1)[:, None] - progress)
        value = np.full((len(table) + 1, total + 1), np.inf)
        value[0, 0] = 0.0
        for slot, costs in enumerate(table):
            # cost(t, D) = min_n COST_t(t, n) + cost(t - 1, D - work of n workers)
            value[slot + 1] = (value[slot][before] + costs).min(axis=1)
        return cls(table, progress, value)

    @property
    def cost(self) -> FloatArray:
        """Cheapest cost of all the work by the end of each slot, shape (n,); inf if impossible."""
        return self.value[1:, -1]

    def best(self, utility: FloatArray) -> Split | None:
        """The split of the largest positive payoff, the earliest of equals; None without one."""
        payoff = np.where(utility > 0, utility - self.cost, -np.inf)
        at = int(np.argmax(payoff))
        return self._split(at, float(payoff[at])) if payoff[at] > 0 else None

    def cheapest(self) -> Split | None:
        """The cheapest split, its payoff is minus its cost; None if the work does not fit."""
        cost = float(self.cost[-1])  # never more than that of an earlier completion
        return self._split(len(self.cost) - 1, -cost) if cost < np.inf else None

    def smallest_factor(self, utility: FloatArray) -> float | None:
        """The least x at which x times `utility` pays for the work."""
        reachable = (utility > 0) & (self.cost < np.inf)
        factors = self.cost[reachable] / utility[reachable]
        return float(factors.min()) if factors.size else None

    def _split(self, last: int, payoff: float) -> Split:
        counts = self.counts(last)
        return Split(payoff, int(np.flatnonzero(counts)[-1]), counts)

    def counts(self, last: int) -> IntArray:
        """Worker counts in slots 0..`last` at cost ``cost[last]``, as early as ties allow."""
        counts = np.zeros(last + 1, dtype=np.int64)
        work = self.value.shape[1] - 1
        for slot in range(last, -1, -1):
            before = np.maximum(0, work - self.progress)
            reached = self.value[slot][before] + self.table[slot]
            counts[slot] = int(np.argmax(reached == self.value[slot + 1, work]))
            work = before[counts[slot]]
        return counts
