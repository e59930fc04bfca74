"""Lower convex envelopes of slot costs, and the Lagrangian bounds they give.

Slots share only the total of their worker counts, so one multiplier, the price of a worker-slot,
bounds the cost of every completion at once (docs/theory, "Why the search is exact").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.online.dp.split import Split

ROUNDING = 1e-15  # relative error of the terms of a bound


@dataclass(frozen=True, slots=True)
class Slots:
    """Groups of slots with the same costs and the same number of workers.

    Parameters
    ----------
    row : (g,) int array
        Run of equal slots that each group belongs to.
    count : (g,) int array
        Workers in each slot of the group.
    number : (g,) int array
        Slots in the group.
    """

    row: IntArray
    count: IntArray
    number: IntArray

    def per_slot(self, n: int) -> IntArray:
        """Workers in slots 0..n-1; among equal slots the earlier ones get the larger counts."""
        order = np.lexsort((-self.count, self.row))
        counts = np.repeat(self.count[order], self.number[order])
        return np.concatenate((counts, np.zeros(n - len(counts), np.int64)))


class Envelope:
    """Lower convex envelopes of the costs of each run, and the Lagrangian bounds they give.

    Parameters
    ----------
    rows : (q, N + 1) float array
        Cost of 0..N workers in one slot of each of q runs of equal slots; inf beyond the room.
    lengths : (q,) int array
        Slots in each run, in order of time.
    demand : int
        Worker-slots to place.
    """

    def __init__(self, rows: FloatArray, lengths: IntArray, demand: int) -> None:
        self.rows, self.lengths, self.demand = rows, lengths, demand
        self.starts = lengths.cumsum() - lengths
        self.run = np.arange(len(rows)).repeat(lengths)
        place, self._cost, slope = _lower_hulls(rows)
        row, self._count = np.divmod(place, rows.shape[1] + 1)
        edges = (~np.isnan(slope)).nonzero()[0]
        edges = edges[slope[edges].argsort(kind="stable")]
        self._slope, self._row = slope[edges], row[edges]
        self._width = place[edges + 1] - place[edges]
        self._first = (self._count == 0).nonzero()[0]
        room = np.bincount(self._row, self._width, len(rows))
        self.earliest = int(room[self.run].cumsum().searchsorted(demand))

    def slots_until(self, completion: IntArray | int) -> IntArray:
        """Slots of each run up to `completion`; shape (q,) or, for m completions, (m, q)."""
        slots: IntArray = np.add.outer(completion, 1 - self.starts)
        np.minimum(slots, self.lengths, out=slots)
        return np.maximum(slots, 0, out=slots)

    def multipliers(self, completions: IntArray) -> FloatArray:
        """Optimal multipliers of the given completions, which increase; duplicates removed."""
        taken = (self.slots_until(completions)[:, self._row] * self._width).cumsum(axis=1)
        falling = self._slope[(taken < self.demand).sum(axis=1)]
        is_new = np.ones(len(falling), dtype=bool)
        np.less(falling[1:], falling[:-1], out=is_new[1:])
        distinct: FloatArray = falling[is_new]
        return distinct

    def bounds(self, multipliers: FloatArray) -> FloatArray:
        """Lower bound on the cost of every completion, the best over `multipliers`; shape (n,)."""
        price = multipliers[:, None]
        gain = np.fmin.reduceat(self._cost - price * self._count, self._first, axis=1)
        gains = gain[:, self.run].cumsum(axis=1)  # each <= 0
        bounds = gains + price * self.demand
        bounds -= ROUNDING * (price * self.demand - gains)  # the two may cancel
        best: FloatArray = bounds.max(axis=0)
        return best

    def split(self, slots: Slots, utility: FloatArray) -> Split:
        """The split that `slots` are, and its payoff, in as many slots as `utility` has."""
        counts = slots.per_slot(len(utility))
        completion = int(counts.nonzero()[0][-1])
        run = self.run[: len(counts)]
        costs = np.zeros(len(counts))  # how many terms a sum has decides on its last bit
        costs[: len(run)] = self.rows[run, counts[: len(run)]]
        return Split(float(utility[completion]) - float(costs.sum()), completion, counts)

    def relaxed(self, completion: int) -> tuple[Slots, float, int]:
        """The cheapest work up to `completion` if costs were those of the convex envelopes.

        Edges of the envelopes are taken by rising slope as long as they fit into the demand.

        Returns
        -------
        Slots
            The counts that the whole edges add up to.
        float
            The multiplier: the slope of the first edge that does not fit.
        int
            The worker-slots still missing, fewer than that edge has. A part of the edge would cost
            the multiplier for each of them.
        """
        slots = self.slots_until(completion)
        taken = (self._width * slots[self._row]).cumsum()
        last = int(taken.searchsorted(self.demand))
        width, row = int(self._width[last]), self._row[last]
        before = int(taken[last - 1]) if last else 0
        copies, missing = divmod(self.demand - before, width)
        count = np.bincount(self._row[:last], self._width[:last], len(slots)).astype(np.int64)
        slots[row] -= copies
        if copies:
            parts = ((np.arange(len(slots)), row), (count, count[row] + width), (slots, copies))
            groups = [with_last(*part) for part in parts]
        else:
            groups = [np.arange(len(slots)), count, slots]
        used = groups[2].nonzero()[0]
        return Slots(*(part[used] for part in groups)), float(self._slope[last]), missing


def with_last(array: IntArray, value: int) -> IntArray:
    """`array` and one more value; `np.append` takes three times as long."""
    longer = np.empty(len(array) + 1, dtype=np.int64)
    longer[:-1], longer[-1] = array, value
    return longer


def _lower_hulls(rows: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Vertices of the lower convex hull of each row: flat position, cost, slope to the next one.

    A point on or above the chord between its two neighbours is no vertex. All such points are
    dropped at once, until none is left. The rows lie one after the other with a nan between them:
    every comparison with nan is false, so no vertex is dropped because of another row.
    """
    apart = np.full((len(rows), rows.shape[1] + 1), np.nan)
    apart[:, :-1] = rows
    flat = apart.ravel()
    place = (flat != np.inf).nonzero()[0]
    cost = flat[place]
    while True:
        slope = (cost[1:] - cost[:-1]) / (place[1:] - place[:-1])
        keep = np.ones(len(place), bool)
        np.logical_not(slope[1:] <= slope[:-1], out=keep[1:-1])
        if keep.all():
            return place, cost, slope
        place, cost = place[keep], cost[keep]
