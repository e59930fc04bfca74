"""The search of Algorithm 2 for one job at the prices of a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, get_args

import numpy as np

from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.groups import GROUPS
from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray, IntArray, payoff_noise
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule
from oasis.online.completions import Completions, completions, completions_by_form
from oasis.online.dp import ChunkSplit, Split, best_split, smallest_cost, smallest_factor
from oasis.online.dp.worker_slots import (
    costs_of_work,
    falls_after,
    first_if_best,
    workers_for,
)
from oasis.online.ledger import Ledger, run_lengths

Granularity = Literal["worker-slot", "chunk"]
SERVED_MARGIN = 1e-6  # more than all rounding of the parameter servers that workers need


def check_granularity(granularity: str) -> None:
    """Raise `ValueError` for an unknown unit of work."""
    if granularity not in get_args(Granularity):
        expected = " or ".join(get_args(Granularity))
        raise InputError("granularity", f"expected {expected}", granularity)


@dataclass(frozen=True, slots=True)
class RemainingWork:
    """Work that is left of a job, from which slot on, and its possible completions."""

    start: int  # the first slot that may be used
    work: int  # worker-slots left to do, at least 1
    ends: Completions  # slots that the rest can reach, and utilities, measured from the arrival


@dataclass(frozen=True, slots=True)
class _RunCapacity:
    """Free capacity for a job in each run of equal slots until slot `end`."""

    end: int
    starts: IntArray
    lengths: IntArray
    fit: IntArray
    fits: FloatArray
    ps_fits: FloatArray

    def until(self, end: int) -> _RunCapacity:
        """Return the free capacity before slot `end`, which is at most `self.end`."""
        if end == self.end:
            return self
        # All slots of a run are alike, so the run that `end`
        # falls into is cut there and stays a run.
        slots = int(self.lengths.sum()) - (self.end - end)
        before = self.lengths.cumsum() - self.lengths
        q = int(before.searchsorted(slots))
        lengths = self.lengths[:q].copy()
        lengths[-1] = slots - before[q - 1]
        return _RunCapacity(
            end, self.starts[:q], lengths, self.fit[:q], self.fits[:q], self.ps_fits[:q]
        )


class Search:
    """Cheapest schedules of one job at given prices, in the capacity left by commitments.

    `job` is a job of one form, or a job in the form with the index `form`, which its schedules
    name. Work is split over slots by `granularity` (docs/theory, "Work is counted in
    worker-slots"). Without `remaining`, all of the job is scheduled, and every completion counts
    that is worth anything. The ledger is not changed.
    """

    def __init__(
        self,
        job: Job,
        ledger: Ledger,
        granularity: Granularity = "worker-slot",
        remaining: RemainingWork | None = None,
        form: int = 0,
    ) -> None:
        check_granularity(granularity)
        if job.in_form(0) is not job:
            # Its own fields are but the defaults of its forms.
            raise InputError("job", f"expected {job.id!r} in one of its forms")
        self.job, self.form = job, form
        self.ledger = ledger
        self.granularity = granularity
        seconds = ledger.cluster.slot_seconds
        if remaining is None:
            ends = completions(job, ledger.end, seconds, 0.0)
            remaining = RemainingWork(job.arrival, job.work(seconds), ends)
        # The work is ceil(W_i) of (2) for a whole job; what a job has
        # done already is never asked for again.
        self.start, self.work, self.ends = remaining.start, remaining.work, remaining.ends
        # (3), and never more than the work unless the minimum is more
        self.most = job.workers_near(self.work)
        # These two are caches: one decision asks for the same counts and capacity several times.
        self._needed = np.zeros(0, dtype=np.int64)
        self._known: _RunCapacity | None = None
        self._worker, self._ps = (
            as_array(amounts, ledger.cluster.resources) for amounts in (job.worker, job.ps)
        )
        # The machines whose labels admit its tasks; None if all do.
        self.admitted, self.ps_admitted = (ledger.cluster.admitted(job, group) for group in GROUPS)

    @cached_property
    def utility(self) -> FloatArray:
        """f_i at completion in each slot from `start` to the last that counts; 0 if impossible."""
        counted = self.ends.counted.nonzero()[0]
        if not len(counted):
            return np.zeros(0)
        first = self.ends.first - self.start
        utility = np.zeros(first + int(counted[-1]) + 1)
        utility[first:] = self.ends.utility[: int(counted[-1]) + 1]
        return utility

    @property
    def most_worth(self) -> float:
        """The utility of the earliest completion, which no payoff exceeds."""
        utility = self.ends.utility
        return float(utility[0]) if len(utility) else 0.0

    def best(self) -> Split | None:
        """Return the split of largest positive payoff, the earliest of equals; None without one."""
        utility = self.utility
        # No cost is computed for a job whose work does not fit at all.
        if not self._has_capacity(self.start + len(utility)):
            return None
        if self.granularity == "worker-slot":
            # Costs and bounds of later slots are saved where the earliest completion wins. The
            # printed form in chunks computes every completion in one pass anyway.
            first = self._first_if_best()
            if first is not None:
                return first
        rows, lengths = self._rows_that_count
        if rows is None:
            return None
        if self.granularity == "chunk":
            return self._chunk_split(rows, lengths).best(utility)
        # Alg. 1, l. 6 admits a payoff above 0 only, so the search
        # may skip all that cannot reach it.
        return best_split(rows, lengths, utility, self.work, 0.0)

    def _first_if_best(self) -> Split | None:
        """The earliest split; None if a later completion may pay as much (docs/theory-search).

        Then costs are needed up to the earliest completion alone. There must be room.
        """
        capacity = self._capacity(self.start + len(self.utility))
        used = _first_slots(capacity.fit, capacity.lengths, self.work)
        # The utilities are asked first, as no cost is needed for that: where they stay flat
        # a later and cheaper completion always has a chance.
        if used is None or not falls_after(self.utility, int(used.sum()) - 1):
            return None
        return first_if_best(self._first_costs(capacity, len(used)), used, self.utility, self.work)

    def soonest(self) -> int | None:
        """First slot in which the work may be complete, by `_at_most`; None: too late to count."""
        end = self.start + len(self.utility)
        if end <= self.start:
            return None
        starts, lengths = self.ledger.runs(self.start, end)
        used = _first_slots(self._at_most(starts), lengths, self.work)
        return None if used is None else self.start + int(used.sum()) - 1

    def earliest(self, until: int) -> Split | None:
        """Return the split that completes first, by slot `until`, at least cost; else None.

        It is the best split if prices are next to nothing: no utility grows with time.
        """
        utility = self.utility[: max(0, until + 1 - self.start)]
        if not len(utility):
            return None
        capacity = self._capacity(self.start + len(utility))
        used = _first_slots(capacity.fit, capacity.lengths, self.work)
        # No utility grows with time: if the earliest completion is
        # worth nothing, so is every later one.
        if used is None or utility[used.sum() - 1] <= 0:
            return None
        # At prices next to nothing any repair costs less than this noise, so that the
        # first one found is taken and no table of moves is made.
        rows = self._first_costs(capacity, len(used))
        return smallest_cost(rows, used, self.work, noise=payoff_noise(float(utility.max())))

    def cheapest(self) -> Split | None:
        """The cheapest split by the horizon (payoff is minus cost); None if there is no room."""
        if self.start < self.ledger.end:
            # Fill the cache at once: the upper bound of `_at_most` would rarely rule the job out.
            self._capacity(self.ledger.end)
        rows, lengths = self._slot_costs(self.ledger.end)
        if rows is None:
            return None
        if self.granularity == "chunk":
            return self._chunk_split(rows, lengths).cheapest()
        return smallest_cost(rows, lengths, self.work)

    def smallest_factor(self) -> float | None:
        """Least factor on the utility at which a schedule breaks even; None if there is none."""
        utility = self.utility
        rows, lengths = self._rows_that_count
        if rows is None:
            return None
        if self.granularity == "chunk":
            return self._chunk_split(rows, lengths).smallest_factor(utility)
        return smallest_factor(rows, lengths, utility, self.work)

    def schedule(self, split: Split) -> Schedule:
        """Return the schedule that places `split` and its parameter servers on cheapest servers."""
        job, ledger = self.job, self.ledger
        counts = split.counts[: split.completion + 1]
        # The split says how much work each slot does. A gang may have to run more workers for it.
        if job.is_gang:
            work = self.work if self.granularity == "worker-slot" else None
            counts = workers_for(counts, job.worker_counts[0], work)
        row = self.start - ledger.origin
        # Neighbouring slots with the same commitments and the same count get the
        # same servers: one greedy search serves them all.
        marks = ledger.changes[row : row + len(counts)].copy()
        marks[0] = True
        marks[1:] |= counts[1:] != counts[:-1]
        starts, lengths = run_lengths(marks)
        # Slots without a worker hold no parameter server either (7), so they have no rows.
        busy = counts[starts] > 0
        starts, lengths = starts[busy], lengths[busy]
        number = counts[starts]
        capacity = self._capacity_beyond(self.start + len(counts))
        # Each of these runs lies within one run of the search, whose room is known already.
        run = capacity.starts.searchsorted(row + starts, side="right") - 1
        tables = []
        hosts = self._ps_needed(int(number.max()))[number]
        for group, demand, units, fits in (
            (ledger.worker, self._worker, number, capacity.fits),
            (ledger.ps, self._ps, hosts, capacity.ps_fits),
        ):
            # Alg. 2, l. 25-31 for the workers, l. 36-40 for the parameter servers.
            at, servers, placed = group.fill(demand, row + starts, units, fits[run])
            tables.append(_rows(self.start + starts[at], lengths[at], servers, placed))
        workers, ps = tables
        return Schedule(job.id, workers, ps, self.form)

    def room_until(self, slot: int) -> int:
        """Number of worker-slots, with parameter servers, that fit from `start` to `slot`."""
        capacity = self._capacity(slot + 1)
        return int(capacity.fit @ capacity.lengths)

    @cached_property
    def _rows_that_count(self) -> tuple[FloatArray | None, IntArray]:
        """Result of `_slot_costs` for the slots up to the last completion that counts."""
        return self._slot_costs(self.start + len(self.utility))

    def _slot_costs(self, end: int) -> tuple[FloatArray | None, IntArray]:
        """COST_t of 0..N workers (inf: no room) in a slot of each run, or None; run lengths."""
        if not self._has_capacity(end):
            return None, np.zeros(0, dtype=np.int64)
        capacity = self._capacity(end)
        return self._first_costs(capacity, len(capacity.fit)), capacity.lengths

    def _has_capacity(self, end: int) -> bool:
        """Return whether there is room for all the work in the slots before `end`."""
        if end <= self.start:
            return False
        # A bound on the room comes first: it needs one number per slot and
        # resource, where the room itself needs one per server. It is never below
        # the room, so nothing is refused that would fit.
        if self._known is None or self._known.end < end:
            starts, lengths = self.ledger.runs(self.start, end)
            if self._at_most(starts) @ lengths < self.work:
                return False
        capacity = self._capacity(end)
        return bool(capacity.fit @ capacity.lengths >= self.work)

    def _first_costs(self, capacity: _RunCapacity, n: int) -> FloatArray:
        """COST_t in one slot of each of the first `n` runs; of a gang, by worker-slots of work."""
        rows = self._costs(
            capacity.starts[:n], capacity.fit[:n], capacity.fits[:n], capacity.ps_fits[:n]
        )
        if not self.job.is_gang:
            return rows
        return costs_of_work(rows, self.job.worker_counts[0], self.work)

    def _costs(
        self, starts: IntArray, fit: IntArray, fits: FloatArray, ps_fits: FloatArray
    ) -> FloatArray:
        """COST_t in one slot of each run; other arguments are results of `_free_capacity`."""
        # No slot has room for more, and N_i may be far above it:
        # the table is only as wide as needed.
        most = int(fit.max())
        workers, hosts = self.ledger.worker, self.ledger.ps
        # COST_t of Alg. 2 (32): workers on the cheapest servers with room, l. 25-34 ...
        rows = workers.total_costs(self._worker, starts, workers.on_columns(fits), most)
        needed = self._ps_needed(most)
        # ... then the fewest parameter servers that (6) allows, l. 35-43. Both costs
        # simply add up, because no machine hosts both groups.
        servers = int(needed[-1])
        if servers:
            room = hosts.on_columns(ps_fits)
            rows += hosts.total_costs(self._ps, starts, room, servers)[:, needed]
        return rows

    def _at_most(self, starts: IntArray) -> IntArray:
        """Upper bound on workers in a slot of each run, as if all servers of a group were one."""
        job = self.job
        # Were all servers of a group one, no less would fit; nothing is rounded per server.
        workers = self.ledger.worker.units_at_most(self._worker, starts, self.most)
        if not job.needs_ps:
            return workers
        share = job.ps_per_worker
        servers = self.ledger.ps.units_at_most(self._ps, starts, self.most)
        served = (servers * (1 + SERVED_MARGIN) + SERVED_MARGIN) / share  # (6)
        at_most: IntArray = np.minimum(workers, np.minimum(served, self.most).astype(np.int64))
        return at_most

    def _capacity(self, end: int) -> _RunCapacity:
        """Return the free capacity of the slots before `end`."""
        return self._capacity_beyond(end).until(end)

    def _capacity_beyond(self, end: int) -> _RunCapacity:
        """Return cached free capacity of the slots at least up to `end`."""
        if self._known is None or self._known.end < end:
            starts, lengths = self.ledger.runs(self.start, end)
            self._known = _RunCapacity(end, starts, lengths, *self._free_capacity(starts))
        return self._known

    def _free_capacity(self, starts: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Room in one slot of each of q runs of equal slots, which start at the given rows.

        Returns the workers that fit together with their parameter servers, shape (q,), and the
        workers and the parameter servers that fit on one server of each column, shapes (q, C).
        """
        worker, ps = self.ledger.worker, self.ledger.ps
        fits = worker.fits(self._worker, starts, self.most, self.admitted)
        # Workers alone; it bounds how many parameter servers can be needed at all.
        workers = worker.on_columns(fits).sum(axis=1)
        needed = self._ps_needed(int(min(self.most, workers.max())))  # N_i may be far above it
        ps_fits = ps.fits(self._ps, starts, int(needed[-1]), self.ps_admitted)
        # The most workers whose parameter servers still fit: `needed` never falls as workers rise.
        fit = needed.searchsorted(ps.on_columns(ps_fits).sum(axis=1), side="right") - 1
        fit = np.minimum(fit, workers).astype(np.int64)
        if self.job.is_gang:
            # A slot that cannot hold the minimum holds no worker of this job at all.
            fit[fit < self.job.worker_counts[0]] = 0
        return fit, fits, ps_fits

    def _ps_needed(self, most: int) -> IntArray:
        """Return the parameter servers that each of 0..`most` workers needs (6)."""
        if len(self._needed) <= most:
            self._needed = _ps_for(self.job.ps_per_worker, most)
        return self._needed[: most + 1]

    def _chunk_split(self, rows: FloatArray, lengths: IntArray) -> ChunkSplit:
        """Solve the printed dynamic programme: d chunks take ceil(d M_i kappa_i) workers."""
        job = self.job
        counts = np.arange(rows.shape[1])
        chunk = job.minibatches * job.minibatch_slots(self.ledger.cluster.slot_seconds)
        total = job.epochs * job.chunks
        # d chunks need ceil(d M_i kappa_i) workers (Alg. 2, l. 24), so
        # n workers do floor(n / (M_i kappa_i)).
        whole = np.minimum(rounding.floor(counts / chunk), total).astype(np.int64)
        whole[0] = 0
        # The printed recurrence goes from slot to slot, so equal slots are told apart again.
        return ChunkSplit.of(np.repeat(rows, lengths, axis=0), whole, total)


def searches(
    job: Job,
    ledger: Ledger,
    granularity: Granularity = "worker-slot",
    min_utility_fraction: float = 0.0,
) -> list[Search]:
    """Make a search for each form of a job; together they cover all its schedules."""
    seconds = ledger.cluster.slot_seconds
    ends = completions_by_form(job, ledger.cluster, ledger.end, min_utility_fraction)
    return [
        Search(
            form,
            ledger,
            granularity,
            remaining=RemainingWork(form.arrival, form.work(seconds), of_form),
            form=k,
        )
        for k, (form, of_form) in enumerate(zip(job.in_forms, ends, strict=True))
    ]


@lru_cache(maxsize=16)
def _ps_for(share: float, most: int) -> IntArray:
    """Parameter servers for each of 0..`most` workers, of which each needs `share` of one (6)."""
    # The array is shared by every search with this ratio; a write to it would change the others.
    needed: IntArray = rounding.ceil(np.arange(most + 1) * share).astype(np.int64)
    needed.flags.writeable = False
    return needed


def _rows(first: IntArray, lengths: IntArray, servers: IntArray, counts: IntArray) -> IntArray:
    """Repeat each placement in `lengths` slots from `first` on, as rows (slot, server, count)."""
    rows = np.empty((int(lengths.sum()), 3), dtype=np.int64)
    if len(rows) > len(lengths):
        later = np.arange(len(rows)) - (lengths.cumsum() - lengths).repeat(lengths)
        first, servers, counts = (part.repeat(lengths) for part in (first, servers, counts))
        first += later
    rows[:, SLOT], rows[:, SERVER], rows[:, COUNT] = first, servers, counts
    return rows


def _first_slots(fit: IntArray, lengths: IntArray, work: int) -> IntArray | None:
    """Number of slots used of each run, up to the last needed, until `work` fits; None: never."""
    done = (fit * lengths).cumsum()
    last = int(done.searchsorted(work))
    if last == len(done):
        return None
    used = lengths[: last + 1].copy()
    before = int(done[last - 1]) if last else 0
    # The last slot need not be full, hence a division that rounds up.
    used[last] = -((before - work) // int(fit[last]))
    return used
