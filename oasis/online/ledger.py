"""The ledger of Algorithm 1: committed amounts, prices, and which neighbouring slots differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oasis.model.calendar import EVER_OPEN, Calendar
from oasis.model.cluster import BoolArray, Cluster
from oasis.model.errors import InputError
from oasis.model.groups import GROUPS, PerGroup
from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule
from oasis.online.prices import Prices
from oasis.online.server_group import ServerGroup

AnyPrices = PerGroup[Prices]  # the paper's, or one's own
_COLUMNS = ("used", "price", "server", "copies")


@dataclass(slots=True)
class Ledger:
    """Committed amounts and prices of both server groups, for each slot of the horizon."""

    cluster: Cluster
    worker: ServerGroup
    ps: ServerGroup
    changes: BoolArray  # (T,): slots that differ from the one before; between them, runs
    origin: int = 0  # the slot of the first row of every array: 0, unless the ledger was rolled
    calendar: Calendar = EVER_OPEN  # which machines are closed when: worker servers first

    @classmethod
    def idle(cls, cluster: Cluster, horizon: int, bounds: AnyPrices) -> Ledger:
        """Make a ledger with nothing committed and every price at its lower bound L."""
        worker, ps = (
            ServerGroup.idle(group.servers(cluster), group.capacity(cluster), horizon, price)
            for group, price in ((group, group.of(bounds)) for group in GROUPS)
        )
        # Nothing differs while nothing is committed: the horizon is one run.
        return cls(cluster, worker, ps, np.zeros(horizon, dtype=bool))

    @classmethod
    def of_arrays(
        cls,
        cluster: Cluster,
        worker_prices: FloatArray,
        ps_prices: FloatArray,
        worker_used: FloatArray,
        ps_used: FloatArray,
    ) -> Ledger:
        """Make a ledger of given prices and amounts, shapes (T, H, R) and (T, K, R)."""
        arrays = (worker_prices, ps_prices, worker_used, ps_used)
        changes = np.zeros(len(worker_prices), dtype=bool)
        for array in arrays:
            # Here prices are given, not computed from what is used, so they are compared, too.
            changes[1:] |= (array[1:] != array[:-1]).any(axis=(1, 2))
        return cls(
            cluster,
            ServerGroup.of_arrays(cluster.worker_capacity, worker_used, worker_prices),
            ServerGroup.of_arrays(cluster.ps_capacity, ps_used, ps_prices),
            changes,
        )

    @property
    def horizon(self) -> int:
        """Number of slots T."""
        return len(self.changes)

    @property
    def end(self) -> int:
        """The slot after the last one; T, unless the ledger was rolled."""
        return self.origin + self.horizon

    @property
    def worker_used(self) -> FloatArray:
        """g_h^r(t) of every worker server, a copy of shape (T, H, R)."""
        return self.worker.expand(self.worker.used)

    @property
    def ps_used(self) -> FloatArray:
        """v_k^r(t) of every parameter-server host, a copy of shape (T, K, R)."""
        return self.ps.expand(self.ps.used)

    @property
    def worker_prices(self) -> FloatArray:
        """p_h^r(t) of every worker server, a copy of shape (T, H, R)."""
        return self.worker.expand(self.worker.price)

    @property
    def ps_prices(self) -> FloatArray:
        """q_k^r(t) of every parameter-server host, a copy of shape (T, K, R)."""
        return self.ps.expand(self.ps.price)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that persist between jobs."""
        arrays = [getattr(group.of(self), name) for group in GROUPS for name in _COLUMNS]
        return sum(array.nbytes for array in (self.changes, *arrays))

    def runs(self, first: int, end: int) -> tuple[IntArray, IntArray]:
        """Return first row and length of each run of equal slots among ``first .. end - 1``."""
        row = first - self.origin
        marks = self.changes[row : end - self.origin].copy()
        # A run that began before `first` is cut there.
        marks[0] = True
        starts, lengths = run_lengths(marks)
        return row + starts, lengths

    def commit(self, job: Job, schedule: Schedule, bounds: AnyPrices | None) -> None:
        """Add the demand of the schedule of `job`; if `bounds`, update prices (Alg. 1, l. 9-12)."""
        self._add(job, schedule, bounds, 1)

    def release(self, job: Job, schedule: Schedule, bounds: AnyPrices | None) -> None:
        """Undo a `commit` with the same arguments, and update the prices of its servers.

        Amounts come back to the last bit if sums of the demands are exact (`live_job.grid_of`).
        """
        self._add(job, schedule, bounds, -1)

    def _add(self, job: Job, schedule: Schedule, bounds: AnyPrices | None, sign: int) -> None:
        """Add (`sign` 1) or take back (-1) the demand of a schedule; update prices if `bounds`."""
        names, job = self.cluster.resources, job.in_form(schedule.form)
        for group in GROUPS:
            rows = group.placed(schedule)
            amounts = (sign * rows[:, COUNT, None]) * as_array(group.of(job), names)
            # Alg. 1, l. 9 and 11: g += w_i y, v += s_i z; l. 10 and 12, the prices, follow inside.
            price = group.of(bounds) if bounds else None
            group.of(self).commit(rows[:, SLOT] - self.origin, rows[:, SERVER], amounts, price)
        # Only from the first slot of the schedule to the one after the last can a flag change.
        first = max(schedule.start - self.origin, 1)
        end = min(schedule.completion - self.origin + 2, self.horizon)
        self._compare(first, end)

    def _compare(self, first: int, end: int) -> None:
        """Set `changes`: whether each row from `first` >= 1 on differs from the row before."""
        differs = np.zeros(max(end - first, 0), dtype=bool)
        for servers in (self.worker, self.ps):
            # Prices are not compared: they follow from what is used, except for recourse's prices
            # next to nothing, whose differences no utility notices.
            closed = None if servers.closed is None else servers.closed[None]
            for array in (servers.used, closed):
                if array is not None:
                    changed = array[:, first:end] != array[:, first - 1 : end - 1]
                    differs |= changed.any(axis=(0, 2))
        self.changes[first:end] = differs

    def close(self, calendar: Calendar) -> None:
        """Close machines in the windows of `calendar`, instead of the last one's; amounts stay."""
        self.calendar = calendar
        first_ps = len(self.cluster.worker_ids)
        for group, offset in zip(GROUPS, (0, first_ps), strict=True):
            closed: dict[int, BoolArray] = {}
            for window in calendar.windows:
                begin = max(window.begin - self.origin, 0)
                rows = slice(begin, max(window.end - self.origin, begin))
                for machine in window.machines:
                    if 0 <= machine - offset < len(group.capacity(self.cluster)):
                        slots = np.zeros(self.horizon, dtype=bool)
                        closed.setdefault(machine - offset, slots)[rows] = True
            group.of(self).close(closed)
        self._compare(1, self.horizon)

    def lacks_room(self, schedule: Schedule) -> bool:
        """Whether `schedule`, already committed, uses a closed or overcommitted server."""
        for group in GROUPS:
            rows = group.placed(schedule)
            rows = rows[rows[:, SLOT] >= self.origin]
            slots, servers = rows[:, SLOT] - self.origin, rows[:, SERVER]
            if len(rows) and group.of(self).is_crowded(slots, servers):
                return True
        return False

    def roll(self, origin: int, bounds: AnyPrices | None) -> None:
        """Begin the ledger at slot `origin`: drop earlier slots, append as many idle ones.

        Without `bounds` prices belong to rows, not to slots, and stay where they are.
        """
        if origin < self.origin:
            raise InputError("origin", f"expected slot {self.origin} or a later one", origin)
        # After a longer pause than the horizon every row is new.
        gone = min(origin - self.origin, self.horizon)
        self.origin = origin
        if gone == 0:
            return
        remaining = self.horizon - gone
        busy = False
        for group in GROUPS:
            servers = group.of(self)
            # The first new slot is idle: it differs from the last old one if that is not.
            busy |= bool(servers.used[:, -1].any())
            servers.roll(gone, group.of(bounds) if bounds else None)
        self.changes[:remaining] = self.changes[gone:]
        self.changes[remaining:] = False
        if remaining:
            self.changes[remaining] = busy
        # There is no slot before the first one any more.
        self.changes[0] = False
        if self.calendar:
            self.close(self.calendar)


def run_lengths(marks: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return begins and lengths of runs; `marks` is True where a run begins, first at 0."""
    starts = marks.nonzero()[0]
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1] = len(marks) - starts[-1]
    return starts, lengths


class LedgerHistory:
    """A ledger that can also return its state after fewer commits.

    The same commits in the same order give the same ledger, to the last bit. So no copies are kept:
    a second ledger repeats the commits up to the requested one.
    """

    def __init__(self, begin: Callable[[], Ledger], bounds: AnyPrices) -> None:
        self._begin, self._bounds = begin, bounds
        self.present = begin()
        self._committed: list[tuple[Job, Schedule]] = []
        self._second: Ledger | None = None
        self._reached = 0  # commits of the second ledger

    @property
    def commits(self) -> int:
        """Number of committed schedules."""
        return len(self._committed)

    @property
    def jobs(self) -> Iterator[Job]:
        """Jobs of the committed schedules, in order."""
        return (job for job, _ in self._committed)

    def commit(self, job: Job, schedule: Schedule) -> None:
        """Commit the schedule of `job` to the present ledger."""
        self.present.commit(job, schedule, self._bounds)
        self._committed.append((job, schedule))

    def after(self, commits: int) -> Ledger:
        """Return the ledger after the first `commits`; read it only, until the next call."""
        if commits == self.commits:
            return self.present
        # Sums of floats cannot be taken back to the last bit, so an
        # earlier moment is reached from the start.
        if self._second is None or self._reached > commits:
            self._second, self._reached = self._begin(), 0
        for job, schedule in self._committed[self._reached : commits]:
            self._second.commit(job, schedule, self._bounds)
        self._reached = commits
        return self._second
