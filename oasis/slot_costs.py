"""COST_t of Algorithm 2: the cheapest way to run n workers in one slot, for every n and slot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oasis import rounding
from oasis.cluster import Cluster
from oasis.job import Job
from oasis.resources import as_array
from oasis.rounding import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Fill:
    """The servers of one group in every slot, cheapest first (Alg. 2, l. 23 and 28).

    Parameters
    ----------
    order : (n, S) int array
        Server indices by non-decreasing unit cost; equal costs by lower index.
    room : (n, S) int array
        Units that still fit on each of them.
    cost : (n, S) float array
        Utility per unit, sum_r p^r w^r.
    """

    order: IntArray
    room: IntArray
    cost: FloatArray

    @classmethod
    def of(
        cls,
        demand: FloatArray,
        capacity: FloatArray,
        used: FloatArray,
        prices: FloatArray,
        limit: int,
    ) -> Fill:
        """Sort the servers for units of `demand` (R,); `used`, `prices` have shape (n, S, R).

        `limit` caps the units that one server may be asked to hold.
        """
        needed = demand > 0
        ratios = (capacity[:, needed] - used[:, :, needed]) / demand[needed]
        fits = rounding.floor(ratios.min(axis=2, initial=float(limit)))
        room = np.clip(fits, 0, limit).astype(np.int64)
        cost = prices @ demand
        order = np.argsort(cost, axis=1, kind="stable")
        return cls(
            order,
            np.take_along_axis(room, order, axis=1),
            np.take_along_axis(cost, order, axis=1),
        )

    def total_cost(self, units: int) -> FloatArray:
        """Cost of 0, 1, .., `units` units in each slot, shape (n, units + 1); inf beyond room."""
        slots = len(self.cost)
        filled = np.minimum(np.cumsum(self.room, axis=1), units)
        taken = np.diff(filled, axis=1, prepend=0, append=units)  # last column: what never fits
        unit_costs = np.hstack([self.cost, np.full((slots, 1), np.inf)])
        marginal = np.repeat(unit_costs.ravel(), taken.ravel()).reshape(slots, units)
        return np.hstack([np.zeros((slots, 1)), np.cumsum(marginal, axis=1)])

    def place(self, slot: int, units: int) -> tuple[IntArray, IntArray]:
        """Servers and counts that hold `units` in row `slot`, cheapest first."""
        filled = np.minimum(np.cumsum(self.room[slot]), units)
        taken = np.diff(filled, prepend=0)
        used = taken > 0
        return self.order[slot][used], taken[used]


@dataclass(frozen=True, slots=True)
class SlotCosts:
    """Cheapest cost of every worker count in every slot, and how to realise it.

    Parameters
    ----------
    table : (n, N + 1) float array
        Cost of 0..N workers with their parameter servers in each slot; inf where they do not fit.
    workers, ps : Fill
        The servers to use.
    ps_needed : (N + 1,) int array
        Parameter servers for each worker count, constraint (6).
    """

    table: FloatArray
    workers: Fill
    ps: Fill
    ps_needed: IntArray

    @classmethod
    def of(
        cls,
        job: Job,
        cluster: Cluster,
        worker_prices: FloatArray,
        ps_prices: FloatArray,
        worker_used: FloatArray,
        ps_used: FloatArray,
    ) -> SlotCosts:
        """Compute the table for slots whose prices and usage are given, shapes (n, H | K, R)."""
        limit = min(job.chunks, job.work(cluster.slot_seconds))  # (3); never more than the work
        resources = cluster.resources
        workers = Fill.of(
            as_array(job.worker, resources),
            cluster.worker_capacity,
            worker_used,
            worker_prices,
            limit,
        )
        limit = min(limit, int(workers.room.sum(axis=1).max(initial=0)))
        needed = job.ps_needed(np.arange(limit + 1))
        most = int(needed[-1])
        ps = Fill.of(as_array(job.ps, resources), cluster.ps_capacity, ps_used, ps_prices, most)
        table = workers.total_cost(limit) + ps.total_cost(most)[:, needed]
        return cls(table, workers, ps, needed)
