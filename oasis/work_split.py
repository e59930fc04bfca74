"""DP_COST of Algorithm 2: the cheapest split of a job's work over slots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oasis.rounding import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class WorkSplit:
    """Cheapest ways to do all the work by the end of each slot.

    Parameters
    ----------
    table : (n, N + 1) float array
        Cost of each worker count in each slot.
    progress : (N + 1,) int array
        Work that each count does in a slot; non-decreasing, starts at 0.
    value : (n + 1, D + 1) float array
        ``value[s, d]`` is the cheapest cost of at least d units of work in the first s slots.
    """

    table: FloatArray
    progress: IntArray
    value: FloatArray

    @classmethod
    def of(cls, table: FloatArray, progress: IntArray, total: int) -> WorkSplit:
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
