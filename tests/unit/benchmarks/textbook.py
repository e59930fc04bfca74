"""Algorithm 2 as a careful textbook author would write it: NumPy passes, and a compiled DP.

The residual counts and the costs are plain array expressions over (T, H, R) and (T, K, R); the
dynamic programme over worker-slots is compiled with numba. `Textbook` is the printed recurrence
over every completion slot from the arrival on. `TunedTextbook` has what a patient programmer adds
without a new idea: it stops at the last completion that counts and at the room of a slot, and its
loops are in the order that the compiler can vectorise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from oasis import Cluster, Job, OASiS
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray, IntArray
from oasis.online.completions import completions


@dataclass(frozen=True)
class Answer:
    """Payoff (0.0 if none is positive), completion slot (None) and workers by slot."""

    payoff: float
    completion: int | None
    counts: IntArray | None


@dataclass(frozen=True)
class Textbook:
    """Committed amounts and prices, in arrays of shapes (T, H, R) and (T, K, R)."""

    cluster: Cluster
    horizon: int
    min_utility_fraction: float
    worker_used: FloatArray
    ps_used: FloatArray
    worker_prices: FloatArray
    ps_prices: FloatArray

    @classmethod
    def beside(cls, scheduler: OASiS) -> Textbook:
        """With a copy of the ledger of `scheduler`."""
        names = ("worker_used", "ps_used", "worker_prices", "ps_prices")
        arrays = {name: getattr(scheduler.ledger, name) for name in names}
        fraction = scheduler.bounds.min_utility_fraction
        return cls(scheduler.cluster, scheduler.horizon, fraction, **arrays)

    def decide(self, job: Job) -> Answer:
        """The best payoff, its completion and the workers by slot."""
        seconds = self.cluster.slot_seconds
        ends = completions(job, self.horizon, seconds, self.min_utility_fraction)
        counted = np.flatnonzero(ends.counted)
        if not len(counted):
            return Answer(0.0, None, None)
        utility = np.zeros(self.horizon - job.arrival)
        utility[ends.first - job.arrival :] = ends.utility
        payoff, at, counts = self._best(job, utility, job.work(seconds))
        if not payoff > 0:
            return Answer(0.0, None, None)
        return Answer(payoff, job.arrival + at, counts)

    def _best(self, job: Job, utility: FloatArray, work: int) -> tuple[float, int, IntArray]:
        return split(self.slot_costs(job, slice(job.arrival, self.horizon)), utility, work)

    def slot_costs(self, job: Job, slots: slice) -> FloatArray:
        """COST_t for 0..N workers in each slot, inf where they do not fit."""
        names, most = self.cluster.resources, job.chunks
        worker, ps = as_array(job.worker, names), as_array(job.ps, names)
        rows = _costs(
            self.cluster.worker_capacity,
            self.worker_used[slots],
            self.worker_prices[slots],
            worker,
            most,
        )
        needed = job.ps_needed(np.arange(most + 1))
        if needed[-1]:
            servers = _costs(
                self.cluster.ps_capacity,
                self.ps_used[slots],
                self.ps_prices[slots],
                ps,
                int(needed[-1]),
            )
            rows += servers[:, needed]
        return rows


class TunedTextbook(Textbook):
    """The same, tuned."""

    def _best(self, job: Job, utility: FloatArray, work: int) -> tuple[float, int, IntArray]:
        utility = utility[: int(np.flatnonzero(utility)[-1]) + 1]
        rows = self.slot_costs(job, slice(job.arrival, job.arrival + len(utility)))
        return tuned_split(rows, utility, work)


def residual_counts(capacity: FloatArray, used: FloatArray, demand: FloatArray) -> FloatArray:
    """min_r floor((c - g) / w): units that fit on each server in each slot."""
    asked = demand > 0
    if not asked.any():
        return np.full(used.shape[:2], np.inf)
    units = (capacity[:, asked] - used[:, :, asked]) / demand[asked]
    return np.maximum(np.floor(units + 1e-9).min(-1), 0)


def _costs(
    capacity: FloatArray, used: FloatArray, prices: FloatArray, demand: FloatArray, most: int
) -> FloatArray:
    """Cost of 0..most units in each slot, cheapest servers first; shape (T, most + 1)."""
    room = residual_counts(capacity, used, demand)
    unit = prices @ demand
    order = np.argsort(unit, axis=1)
    ends = np.cumsum(np.take_along_axis(room, order, 1), axis=1)
    ends = np.minimum(ends, most).astype(np.int64)
    taken = np.diff(ends, axis=1, prepend=0, append=most)
    sorted_unit = np.take_along_axis(unit, order, 1)
    never = np.full((len(unit), 1), np.inf)
    each = np.repeat(np.hstack([sorted_unit, never]).ravel(), taken.ravel())
    costs = np.zeros((len(unit), most + 1))
    np.cumsum(each.reshape(-1, most), axis=1, out=costs[:, 1:])
    return costs


@njit(cache=True)
def split(rows: FloatArray, utility: FloatArray, work: int) -> tuple[float, int, IntArray]:
    """DP_COST with back-pointers: best payoff, its earliest completion, workers by slot."""
    n, most = len(rows), rows.shape[1] - 1
    before = np.full(work + 1, np.inf)
    before[0] = 0.0
    after = np.empty(work + 1)
    choice = np.zeros((n, work + 1), np.int16)
    best, at = -np.inf, -1
    for t in range(n):
        for d in range(work + 1):
            least, pick = before[d], 0
            for k in range(1, min(most, d) + 1):
                value = before[d - k] + rows[t, k]
                if value < least:
                    least, pick = value, k
            after[d] = least
            choice[t, d] = pick
        before, after = after, before
        if utility[t] > 0 and utility[t] - before[work] > best:
            best, at = utility[t] - before[work], t
    return best, at, _counts(choice, at, work)


@njit(cache=True)
def tuned_split(rows: FloatArray, utility: FloatArray, work: int) -> tuple[float, int, IntArray]:
    """The same with the loops exchanged, up to the room of each slot."""
    n, most = len(rows), rows.shape[1] - 1
    before = np.full(work + 1, np.inf)
    before[0] = 0.0
    after = np.empty(work + 1)
    choice = np.zeros((n, work + 1), np.int16)
    best, at = -np.inf, -1
    for t in range(n):
        after[:] = before
        for k in range(1, min(most, work) + 1):
            cost = rows[t, k]
            if cost == np.inf:
                break
            for d in range(k, work + 1):
                value = before[d - k] + cost
                if value < after[d]:
                    after[d] = value
                    choice[t, d] = k
        before, after = after, before
        if utility[t] > 0 and utility[t] - before[work] > best:
            best, at = utility[t] - before[work], t
    return best, at, _counts(choice, at, work)


@njit(cache=True)
def _counts(choice: IntArray, at: int, work: int) -> IntArray:
    counts = np.zeros(len(choice), np.int64)
    left = work
    for t in range(at, -1, -1):
        counts[t] = choice[t, left]
        left -= counts[t]
    return counts


def compile_all() -> None:
    """Compile now rather than in the first decision that is timed."""
    for function in (split, tuned_split):
        function(np.array([[0.0, 1.0]]), np.array([2.0]), 1)
