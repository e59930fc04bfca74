"""The search of Algorithm 2 for one job at the prices of a ledger."""

from __future__ import annotations

from typing import Literal

import numpy as np

from oasis import rounding
from oasis.completions import Completions, completions
from oasis.job import Job
from oasis.ledger import Ledger
from oasis.resources import as_array
from oasis.rounding import FloatArray, IntArray
from oasis.schedule import Schedule
from oasis.split import ChunkSplit, Split, best_split, smallest_cost, smallest_factor

Granularity = Literal["worker-slot", "chunk"]


class Search:
    """Cheapest schedules of one job, given what is committed and what it costs.

    Parameters
    ----------
    job : Job
        What is scheduled.
    ledger : Ledger
        Prices and committed amounts; not changed.
    granularity : {"worker-slot", "chunk"}
        Unit in which work is split over slots (docs/theory, "Work is counted in worker-slots").
    min_utility_fraction : float
        phi: completions worth less than phi times the best count as worthless.

    Attributes
    ----------
    ends : Completions
        Completion slots and their utilities.
    work : int
        ceil(W_i), worker-slots.
    """

    def __init__(
        self,
        job: Job,
        ledger: Ledger,
        granularity: Granularity = "worker-slot",
        min_utility_fraction: float = 0.0,
    ) -> None:
        if granularity not in {"worker-slot", "chunk"}:
            raise ValueError(f"granularity: expected worker-slot or chunk, got {granularity!r}")
        self.job = job
        self.ledger = ledger
        self.granularity = granularity
        seconds = ledger.cluster.slot_seconds
        self.ends: Completions = completions(job, ledger.horizon, seconds, min_utility_fraction)
        self.work = job.work(seconds)

    @property
    def utility(self) -> FloatArray:
        """f_i at completion in each slot from arrival to the last that counts; 0 if impossible."""
        counted = np.flatnonzero(self.ends.counted)
        if not len(counted):
            return np.zeros(0)
        first = self.ends.first - self.job.arrival
        utility = np.zeros(first + int(counted[-1]) + 1)
        utility[first:] = self.ends.utility[: int(counted[-1]) + 1]
        return utility

    def best(self) -> Split | None:
        """The split of the best positive payoff, the earliest of equals; None if there is none."""
        utility = self.utility
        if not len(utility):
            return None
        starts, lengths = self.ledger.runs(self.job.arrival, self.job.arrival + len(utility))
        rows = self._slot_costs(starts, lengths)
        if rows is None:
            return None
        if self.granularity == "chunk":
            split = self._chunk_split(rows, lengths)
            return split.best(utility)
        return best_split(rows, lengths, utility, self.work, 0.0)

    def cheapest(self) -> Split | None:
        """The cheapest split that completes by the horizon; its payoff is minus its cost."""
        starts, lengths = self.ledger.runs(self.job.arrival, self.ledger.horizon)
        rows = self._slot_costs(starts, lengths)
        if rows is None:
            return None
        if self.granularity == "chunk":
            return self._chunk_split(rows, lengths).cheapest()
        return smallest_cost(rows, lengths, self.work)

    def smallest_factor(self) -> float | None:
        """Least multiple of the job's utility that would pay; None without room or utility."""
        utility = self.utility
        if not len(utility):
            return None
        starts, lengths = self.ledger.runs(self.job.arrival, self.job.arrival + len(utility))
        rows = self._slot_costs(starts, lengths)
        if rows is None:
            return None
        if self.granularity == "chunk":
            return self._chunk_split(rows, lengths).smallest_factor(utility)
        return smallest_factor(rows, lengths, utility, self.work)

    def schedule(self, split: Split) -> Schedule:
        """Put the workers of `split`, and their parameter servers, on the cheapest servers."""
        job, ledger = self.job, self.ledger
        counts = split.counts[: split.completion + 1]
        marks = np.diff(counts, prepend=0) != 0
        marks |= ledger.changes[job.arrival : job.arrival + len(counts)]
        starts = np.flatnonzero(marks)
        ends = np.append(starts[1:], len(counts))
        names = ledger.cluster.resources
        groups = (
            (ledger.worker, as_array(job.worker, names)),
            (ledger.ps, as_array(job.ps, names)),
        )
        tables: tuple[list[IntArray], list[IntArray]] = ([], [])
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            number = int(counts[start])
            slots = job.arrival + np.arange(start, end)
            units = (number, int(job.ps_needed(number)))
            for (group, demand), wanted, table in zip(groups, units, tables, strict=True):
                if wanted:
                    servers, taken = group.fill(demand, int(slots[0]), wanted)
                    each = (np.repeat(slots, len(servers)), np.tile(servers, len(slots)))
                    table.append(np.column_stack([*each, np.tile(taken, len(slots))]))
        empty = np.empty((0, 3), dtype=np.int64)
        workers, ps = (np.vstack([empty, *rows]) for rows in tables)
        return Schedule(job.id, workers, ps)

    def room_until(self, slot: int) -> int:
        """Worker-slots, with their parameter servers, that fit from the arrival to `slot`."""
        starts, lengths = self.ledger.runs(self.job.arrival, slot + 1)
        rows = self._slot_costs(starts, lengths, at_least=0)
        assert rows is not None  # no room is enough for nothing
        return int((np.isfinite(rows).sum(axis=1) - 1) @ lengths)

    def _slot_costs(
        self, starts: IntArray, lengths: IntArray, at_least: int | None = None
    ) -> FloatArray | None:
        """COST_t: the cost of 0..N workers in a slot of each run, inf where they do not fit.

        None if all runs together lack room for `at_least` (default: all) worker-slots.
        """
        job, ledger = self.job, self.ledger
        most = min(job.chunks, self.work)  # (3); never more than the work
        worker, ps = (
            as_array(amounts, ledger.cluster.resources) for amounts in (job.worker, job.ps)
        )
        room = ledger.worker.room(worker, starts, most)
        in_slot = np.minimum(room.sum(axis=1), most)
        if in_slot @ lengths < (self.work if at_least is None else at_least):
            return None
        most = int(in_slot.max())
        if most == 0:
            return np.zeros((len(starts), 1))
        rows = ledger.worker.total_costs(worker, starts, room, most)
        needed = job.ps_needed(np.arange(most + 1))  # (6)
        servers = int(needed[-1])
        if servers:
            room = ledger.ps.room(ps, starts, servers)
            rows += ledger.ps.total_costs(ps, starts, room, servers)[:, needed]
        return rows

    def _chunk_split(self, rows: FloatArray, lengths: IntArray) -> ChunkSplit:
        """As printed: d chunks in a slot need ceil(d M_i kappa_i) workers."""
        job = self.job
        counts = np.arange(rows.shape[1])
        chunk = job.minibatches * job.minibatch_slots(self.ledger.cluster.slot_seconds)
        total = job.epochs * job.chunks
        whole = np.minimum(rounding.floor(counts / chunk), total).astype(np.int64)
        whole[0] = 0
        return ChunkSplit.of(np.repeat(rows, lengths, axis=0), whole, total)
