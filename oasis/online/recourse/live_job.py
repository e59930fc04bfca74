"""A live job: its remaining work, the utility that it may still earn, and its schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from oasis.model.calendar import Calendar
from oasis.model.cluster import Cluster
from oasis.model.groups import GROUPS
from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.rounding import TOLERANCE, FloatArray, IntArray
from oasis.model.schedule import COUNT, SLOT, Schedule
from oasis.online.completions import Completions
from oasis.online.ledger import Ledger
from oasis.online.search import RemainingWork

MANTISSA = 53  # bits of a float


@dataclass(frozen=True, slots=True)
class GridJob(Job):
    """A job whose demands are multiples of a small power of two, for each resource."""

    original: Job = field(kw_only=True)  # its ratio of bandwidths decides on servers (6)

    def ps_needed(self, workers: npt.ArrayLike) -> IntArray:
        """As for the original job: rounded demands must not ask for more servers."""
        return self.original.ps_needed(workers)


def grid_of(cluster: Cluster) -> dict[str, float]:
    """For each resource, the spacing of floats at twice the largest capacity.

    Sums of multiples of it that fit a server are exact, and no task is lost unless servers differ
    by a factor of millions: it changes an amount by at most 2^-51 of the largest server.
    """
    largest = np.concatenate([group.capacity(cluster) for group in GROUPS]).max(axis=0)
    # Without the floor, a capacity near the smallest float would give a grid of 0 to divide by.
    _, exponent = np.frexp(np.maximum(largest, np.finfo(float).tiny * 2.0**60))
    return {
        name: float(np.ldexp(1.0, int(power) + 1 - MANTISSA))
        for name, power in zip(cluster.resources, exponent, strict=True)
    }


def on_grid(job: Job, grid: Mapping[str, float]) -> GridJob:
    """Return `job` with demands rounded up to the grid, so that its plans fit in raw units too."""
    values = {field.name: getattr(job, field.name) for field in fields(Job) if field.init}
    for group in GROUPS:
        demand = group.of(job)
        # Never rounded down: a plan on the grid must fit in the job's own demands.
        values[group] = {n: ceil(amount / grid[n]) * grid[n] for n, amount in demand.items()}
    return GridJob(**values, original=job)


NEVER = -1  # before every slot: no completion counts
LEAST_SHARE = 1e-12  # of a job that demands next to nothing: densities stay finite


@dataclass(frozen=True, slots=True)
class CurrentAllocation:
    """The allocation that a job holds before a decision."""

    workers: IntArray  # (n, 2): servers, and how many tasks of the job each has, by server
    ps: IntArray
    until: int = 0  # no change begins before this slot

    @property
    def count(self) -> int:
        """Number of workers."""
        return int(self.workers[:, 1].sum())

    def rows(self, slots: IntArray) -> list[IntArray]:
        """Repeat the allocation in `slots`; return rows (slot, server, count) for each group."""
        return [
            np.column_stack([slots.repeat(len(tasks)), np.tile(tasks, (len(slots), 1))])
            for tasks in (self.workers, self.ps)
        ]


@dataclass(slots=True, eq=False)
class LiveJob:
    """An unfinished job that has arrived and was not given up; or one that may arrive."""

    key: int  # its place in the order of arrival
    job: GridJob  # in its form
    table: FloatArray  # (T - a,): f(d) by delay d; 0 where a completion counts as worthless
    last: int  # slot in which a completion is worth anything; `NEVER` if there is none
    size: float  # dominant share of one worker with its part of the parameter servers
    remaining: int  # worker-slots
    done: int = 0  # worker-slots
    promise: int | None = None  # the slot by which it must be complete
    schedule: Schedule | None = None  # from the present slot on
    value: float = 0.0  # what the planned completion adds to the value of the plan
    form: int = 0  # index in `Job.in_forms`
    # It in each form that some machine admits, in all if none does; empty once it has run, or with
    # one form.
    forms: tuple[LiveJob, ...] = ()
    current: CurrentAllocation | None = None  # None if it does not run

    @classmethod
    def of(
        cls,
        key: int,
        job: Job,
        cluster: Cluster,
        horizon: int,
        grid: dict[str, float],
        min_utility_fraction: float,
        form: int = 0,
    ) -> LiveJob:
        """Make a job that has just arrived; its first form has the index `form`."""
        seconds, several = cluster.slot_seconds, len(job.in_forms) > 1
        ways = list(enumerate(job.in_forms, form))
        admitted = [(k, one) for k, one in ways if cluster.unmet(one) is None]
        # Utilities are asked for again and again while jobs come and go: they are computed once.
        table = np.asarray(job.utility(np.arange(horizon - job.arrival)), dtype=np.float64)
        durations = [one.shortest_duration(seconds) for _, one in admitted]
        shortest = min(durations, default=len(table) + 1)
        # The floor is a share of the best that the job could have got, not of what is left to get.
        best = float(table[shortest - 1]) if shortest <= len(table) else 0.0
        floor = min_utility_fraction * best * (1 - TOLERANCE)
        table = np.where(table >= floor, table, 0.0)
        counted = np.flatnonzero(table) if best > 0 else np.zeros(0, dtype=np.int64)
        last = job.arrival + int(counted[-1]) if len(counted) else NEVER
        in_forms = []
        for k, one in admitted or ways:
            size, work = dominant_share(one, cluster), one.work(seconds)
            in_forms.append(cls(key, on_grid(one, grid), table, last, size, work, form=k))
        return replace(in_forms[0], forms=tuple(in_forms)) if several else in_forms[0]

    def __deepcopy__(self, memo: dict[int, object]) -> LiveJob:
        """A copy that shares the table, schedule and forms, which are never changed."""
        return replace(self)

    @property
    def in_forms(self) -> tuple[LiveJob, ...]:
        """The job in each of its `forms`; only itself if it has one."""
        return self.forms or (self,)

    def be_in(self, form: int) -> None:
        """Change to the form with this index; the job must not have run."""
        if form != self.form:
            (one,) = [job for job in self.forms if job.form == form]
            self.form, self.job, self.size, self.remaining = form, one.job, one.size, one.remaining

    @property
    def started(self) -> bool:
        """Whether the job has run."""
        return self.done > 0

    def is_kept(self, now: int) -> bool:
        """Whether the job must keep its current allocation in slot `now`, whatever the plan."""
        return self.current is not None and self.current.until > now and self.remaining > 0

    @property
    def deadline(self) -> int:
        """The last slot in which the job may complete: that of its promise or of any worth."""
        return self.last if self.promise is None else min(self.last, self.promise)

    def arriving(self, key: int, slot: int, end: int) -> LiveJob:
        """Copy a job of slot 0 to arrive in `slot`; completions from `end` on are worthless."""
        table = self.table[: end - slot]
        counted = np.flatnonzero(table)
        last = slot + int(counted[-1]) if len(counted) else NEVER
        job = replace(self.job, arrival=slot)
        forms = tuple(form.arriving(key, slot, end) for form in self.forms)
        return replace(self, key=key, job=job, table=table, last=last, forms=forms)

    def begin(self, now: int) -> int:
        """Return the first slot from `now` on in which the job may run."""
        return max(now, self.job.arrival)

    def earliest(self, now: int) -> int:
        """First slot in which the job could complete on an idle cluster, in any of its forms."""
        if self.forms:
            return min(form.earliest(now) for form in self.forms)
        # At most N_i workers in a slot (3), so that many slots at
        # least; the double minus rounds up.
        return self.begin(now) - 1 - (-self.remaining // self.job.chunks)

    def utility_at(self, slot: int) -> float:
        """Utility of completion in `slot`."""
        return float(self.table[slot - self.job.arrival])

    def latest_worth(self, share: float, slot: int) -> int:
        """The last slot in which completion is worth at least `share` of that in `slot`."""
        worth = self.table[slot - self.job.arrival :]
        enough = worth >= share * worth[0] * (1 - TOLERANCE)
        return slot + int(enough.sum()) - 1  # no utility grows with time

    def remaining_work(
        self, now: int, until: int, lift: float = 0.0, work: int | None = None
    ) -> RemainingWork:
        """Return the rest of a job (or `work`), to complete by `until`, with utility + `lift`."""
        work = self.remaining if work is None else work
        # As in `earliest`: no completion is possible before.
        first = self.begin(now) - 1 - (-work // self.job.chunks)
        utility = self.table[first - self.job.arrival : until - self.job.arrival + 1] + lift
        # A search asks the logarithms only which completions count;
        # the utilities themselves are exact.
        counted = np.where(utility > 0, 0.0, -np.inf)
        return RemainingWork(self.begin(now), work, Completions(first, utility, counted))

    def run_until(self, now: int) -> int:
        """Count work planned before slot `now` as done; return how many worker-slots."""
        if self.schedule is None or self.schedule.start >= now:
            return 0
        rows = self.schedule.workers
        # Rows are in order of slots, so what lies before `now` is a prefix.
        work = int(rows[: np.searchsorted(rows[:, SLOT], now), COUNT].sum())
        self.schedule = self.schedule.since(now)
        self.done += work
        self.forms = ()  # once it has run, it stays in its form
        self.remaining = max(0, self.remaining - work)  # a minimum may do more than is left
        return work


def crowded_by(calendar: Calendar, ledger: Ledger, jobs: Iterable[LiveJob]) -> list[LiveJob]:
    """Close machines by `calendar`; return the jobs that are planned on closed ones."""
    ledger.close(calendar)
    return [live for live in jobs if live.schedule is not None and ledger.lacks_room(live.schedule)]


def dominant_share(job: Job, cluster: Cluster) -> float:
    """The largest share of a resource that one worker takes, with its part of the servers."""
    largest = 0.0
    for group, units in zip(GROUPS, (1.0, job.ps_per_worker), strict=True):
        # One worker brings b_i / B_i of a parameter server with it (6).
        demand = as_array(group.of(job), cluster.resources) * units
        total = group.capacity(cluster).sum(axis=0)
        shares = np.divide(demand, total, out=np.zeros_like(demand), where=total > 0)
        largest = max(largest, float(shares.max()))
    return max(largest, LEAST_SHARE)


@dataclass(slots=True)
class PromiseRecord:
    """Counts over one run: jobs given up, broken promises, work done and wasted."""

    given_up: list[str] = field(default_factory=list)  # after they had run
    wasted: int = 0  # worker-slots that those had run
    done: int = 0  # worker-slots of all jobs that have left
    broken: list[str] = field(default_factory=list)  # whose promise could not be kept
    cut_short: int = 0  # decisions in which the limit in seconds left rounds undone

    def leave(self, live: LiveJob, completed: bool) -> None:
        """Count a job that is gone; it was given up unless it is `completed` or never ran."""
        self.done += live.done
        if not completed and live.started:
            self.given_up.append(live.job.id)
            self.wasted += live.done

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "given_up_after_start": list(self.given_up),
            "worker_slots_wasted": self.wasted,
            "worker_slots_done": self.done,
            "broken_promises": list(self.broken),
            "decisions_cut_short": self.cut_short,
        }
