"""The search of Algorithm 2: cheapest schedules of one job for every completion slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from oasis import rounding
from oasis.cluster import Cluster
from oasis.completions import Completions, completions
from oasis.job import Job
from oasis.rounding import FloatArray, IntArray
from oasis.schedule import Schedule
from oasis.slot_costs import SlotCosts
from oasis.work_split import WorkSplit

Granularity = Literal["worker-slot", "chunk"]


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices and committed amounts of every slot and server.

    Parameters
    ----------
    worker_prices, ps_prices : (T, H, R) and (T, K, R) float arrays
        p_h^r(t) and q_k^r(t), utility per unit of resource r.
    worker_used, ps_used : (T, H, R) and (T, K, R) float arrays
        g_h^r(t) and v_k^r(t), units of resource r already committed.
    """

    worker_prices: FloatArray
    ps_prices: FloatArray
    worker_used: FloatArray
    ps_used: FloatArray

    def arrays(self) -> dict[str, FloatArray]:
        """The four arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def since(self, slot: int) -> Prices:
        """Views of the slots from `slot` on."""
        return Prices(
            self.worker_prices[slot:],
            self.ps_prices[slot:],
            self.worker_used[slot:],
            self.ps_used[slot:],
        )


class Search:
    """Cheapest schedules of one job for every completion slot.

    Parameters
    ----------
    job, cluster, horizon
        What is scheduled, where, and the number of slots T.
    prices : Prices
        Prices and committed amounts.
    granularity : {"worker-slot", "chunk"}
        Unit in which work is split over slots (docs/theory, "Work is counted in worker-slots").
    min_utility_fraction : float
        phi: completions worth less than phi times the best count as worthless.

    Attributes
    ----------
    ends : Completions
        Completion slots and their utilities.
    cost : (n,) float array
        Cheapest cost for completion by each of those slots; inf where there is no room.
    """

    def __init__(
        self,
        job: Job,
        cluster: Cluster,
        horizon: int,
        prices: Prices,
        granularity: Granularity,
        min_utility_fraction: float,
    ) -> None:
        self.job = job
        self.cluster = cluster
        self.prices = prices
        seconds = cluster.slot_seconds
        self.ends: Completions = completions(job, horizon, seconds, min_utility_fraction)
        self.work = job.work(seconds)
        self.cost = np.empty(0)
        if self.ends.first >= horizon:
            return
        late = prices.since(job.arrival)
        self._slots = SlotCosts.of(
            job, cluster, late.worker_prices, late.ps_prices, late.worker_used, late.ps_used
        )
        progress, total = self._units(granularity)
        self._split = WorkSplit.of(self._slots.table, progress, total)
        self.cost = self._split.cost[self.ends.first - job.arrival :]

    def _units(self, granularity: Granularity) -> tuple[IntArray, int]:
        """Work done by each worker count in a slot, and the work of the whole job."""
        counts = np.arange(self._slots.table.shape[1])
        if granularity == "worker-slot":
            return counts, self.work
        if granularity != "chunk":
            raise ValueError(f"granularity: expected worker-slot or chunk, got {granularity!r}")
        # as printed: d chunks in a slot need ceil(d M_i kappa_i) workers
        job = self.job
        chunk = job.minibatches * job.minibatch_slots(self.cluster.slot_seconds)
        total = job.epochs * job.chunks
        whole = np.minimum(rounding.floor(counts / chunk), total).astype(np.int64)
        return np.where(counts > 0, whole, 0), total

    @property
    def payoff(self) -> FloatArray:
        """Utility minus cost for each completion slot that counts; -inf elsewhere."""
        return np.where(self.ends.counted, self.ends.utility - self.cost, -np.inf)

    def best(self) -> int | None:
        """Index into `ends` of the best payoff, the earliest of equals; None without room."""
        payoff = self.payoff
        if not payoff.size or payoff.max() == -np.inf:
            return None
        return int(np.argmax(payoff))

    def schedule(self, end: int) -> Schedule:
        """The cheapest schedule that completes by the slot with index `end`."""
        counts = self._split.counts(self.ends.first - self.job.arrival + end)
        return place(self.job, counts, self._slots)

    def room_until(self, slot: int) -> int:
        """Worker-slots, with their parameter servers, that fit from the arrival to `slot`."""
        rows = self._slots.table[: slot - self.job.arrival + 1]
        return int(np.isfinite(rows[:, 1:]).sum())


def place(job: Job, counts: Sequence[int] | IntArray, slots: SlotCosts) -> Schedule:
    """Put `counts` workers per slot after arrival, and their PSs, on the cheapest servers."""
    tables: tuple[list[IntArray], list[IntArray]] = ([], [])
    for slot, count in enumerate(counts):
        if count == 0:
            continue
        units = (int(count), int(slots.ps_needed[count]))
        for rows, fill, wanted in zip(tables, (slots.workers, slots.ps), units, strict=True):
            servers, taken = fill.place(slot, wanted)
            slot_column = np.full(len(servers), job.arrival + slot)
            rows.append(np.column_stack([slot_column, servers, taken]))
    empty = np.empty((0, 3), dtype=np.int64)
    workers, ps = (np.vstack([empty, *rows]) for rows in tables)
    return Schedule(job.id, workers, ps)
