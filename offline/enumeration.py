"""Exact optimum of tiny instances by enumeration: an oracle that shares nothing with the MILP.

Capacities do not change over time, so which worker counts (n_1, .., n_I) the servers can hold
together in a slot is enumerated once. A search over slots then hands each slot one of these
counts; it remembers what the best continuation from any remaining work is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from oasis.certify.verify import verify
from oasis.model.instance import Instance
from oasis.model.rounding import fits
from oasis.model.schedule import Schedule, placements
from oasis.solvers import Progress, Status
from oasis.solvers.budget import Budget
from offline.result import OfflineResult
from offline.state import Standing, concluded
from offline.warm_start import begin

MAX_STEPS = 2_000_000

Counts = tuple[int, ...]
Units = tuple[tuple[int, ...], ...]  # units of each job on each server


def solve_brute_force(
    instance: Instance,
    warm_start: Mapping[str, Schedule] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> OfflineResult:
    """Enumerate all joint worker counts of all slots; for a few jobs of a few worker-slots.

    `warm_start` only counts if Ctrl-C ends the enumeration; it has no time limit.

    Raises
    ------
    ValueError
        If the enumeration would take more than `MAX_STEPS` steps.
    """
    standing = Standing(Budget(), on_progress)

    def work() -> Status:
        if warm_start is not None:
            begin(instance, standing, warm_start)
        standing.enter("enumeration")
        schedules = _Search(instance).schedules()
        standing.found(verify(instance, schedules), schedules)
        standing.proved(standing.incumbent or 0.0)
        return Status.OPTIMAL

    return concluded(instance, standing, work, "bruteforce", {})


@dataclass(frozen=True, slots=True)
class _Placement:
    """Where the workers and parameter servers of each job go in one slot."""

    workers: Units
    ps: Units


class _Search:
    """Best continuation from (slot, remaining work of each job), remembered."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.work = tuple(job.work(instance.slot_seconds) for job in instance.jobs)
        self._refuse(
            math.prod(min(n.chunks, w) + 1 for n, w in zip(instance.jobs, self.work, strict=True))
        )
        self.placements = self._placements()
        self._refuse(math.prod(w + 1 for w in self.work) * instance.horizon * len(self.placements))
        self.best: dict[tuple[int, Counts], tuple[float, Counts]] = {}

    def _refuse(self, steps: int) -> None:
        if steps > MAX_STEPS:
            raise ValueError(
                f"the instance is too large for brute force: {steps} steps, at most {MAX_STEPS}; "
                "use method 'auto'"
            )

    def _placements(self) -> dict[Counts, _Placement]:
        """Every vector of worker counts that fits the empty servers, with one way to place it."""
        fitting: dict[Counts, _Placement] = {}
        jobs = self.instance.jobs
        ranges = [range(min(j.chunks, w) + 1) for j, w in zip(jobs, self.work, strict=True)]
        for counts in product(*ranges):
            # fewer workers always fit where more do, and product() counts upwards
            if all(n == 0 or _one_less(counts, i) in fitting for i, n in enumerate(counts)):
                placement = self._place(counts)
                if placement is not None:
                    fitting[counts] = placement
        return fitting

    def _place(self, counts: Counts) -> _Placement | None:
        """(4)-(7) of one slot: no more parameter servers than (6) asks for, which keeps (7)."""
        jobs, cluster = self.instance.jobs, self.instance.cluster
        needed = [int(job.ps_needed(n)) for job, n in zip(jobs, counts, strict=True)]
        placed = []
        for units, demands, capacity in (
            (counts, [job.worker for job in jobs], cluster.worker_capacity.tolist()),
            (needed, [job.ps for job in jobs], cluster.ps_capacity.tolist()),
        ):
            rows = [[demand.get(name, 0.0) for name in cluster.resources] for demand in demands]
            found = next(_packings(list(units), rows, capacity, []), None)
            if found is None:
                return None
            placed.append(found)
        return _Placement(*placed)

    def value(self, slot: int, remaining: Counts) -> float:
        """Largest utility of the jobs not yet complete, from `slot` on."""
        if slot == self.instance.horizon or not any(remaining):
            return 0.0
        key = slot, remaining
        if key not in self.best:
            self.best[key] = max(
                (self._gain(slot, remaining, n) + self.value(slot + 1, _minus(remaining, n)), n)
                for n in self._choices(slot, remaining)
            )
        return self.best[key][0]

    def _choices(self, slot: int, remaining: Counts) -> Iterator[Counts]:
        jobs = self.instance.jobs
        for counts in self.placements:
            if all(
                n <= left and (n == 0 or job.arrival <= slot)
                for n, left, job in zip(counts, remaining, jobs, strict=True)
            ):
                yield counts

    def _gain(self, slot: int, remaining: Counts, counts: Counts) -> float:
        return sum(
            float(job.utility(slot - job.arrival))
            for job, left, n in zip(self.instance.jobs, remaining, counts, strict=True)
            if n and n == left
        )

    def schedules(self) -> dict[str, Schedule]:
        """Schedules of the jobs that complete with some utility, along a best path."""
        workers: list[list[tuple[int, int, int]]] = [[] for _ in self.work]
        ps: list[list[tuple[int, int, int]]] = [[] for _ in self.work]
        remaining, ended = self.work, {}
        for slot in range(self.instance.horizon):
            self.value(slot, remaining)
            if (slot, remaining) not in self.best:
                break
            counts = self.best[slot, remaining][1]
            placement = self.placements[counts]
            for i, n in enumerate(counts):
                workers[i] += [(slot, h, y) for h, y in enumerate(placement.workers[i]) if y]
                ps[i] += [(slot, k, z) for k, z in enumerate(placement.ps[i]) if z]
                if n and n == remaining[i]:
                    ended[i] = slot
            remaining = _minus(remaining, counts)
        jobs = self.instance.jobs
        return {
            jobs[i].id: Schedule(jobs[i].id, placements(workers[i]), placements(ps[i]))
            for i, slot in sorted(ended.items())
            if jobs[i].utility(slot - jobs[i].arrival) > 0
        }


def _packings(
    units: Sequence[int],
    demands: Sequence[Sequence[float]],
    capacity: Sequence[Sequence[float]],
    placed: list[tuple[int, ...]],
) -> Iterator[Units]:
    """All ways to put ``units[i]`` items of ``demands[i]`` on the servers, job after job."""
    if len(placed) == len(units):
        yield tuple(placed)
        return
    for split in _splits(units[len(placed)], len(capacity)):
        here = [*placed, split]
        if all(_fits(here, demands, limits, server) for server, limits in enumerate(capacity)):
            yield from _packings(units, demands, capacity, here)


def _fits(
    placed: list[tuple[int, ...]],
    demands: Sequence[Sequence[float]],
    limits: Sequence[float],
    server: int,
) -> bool:
    return all(
        fits(
            sum(row[server] * demand[r] for row, demand in zip(placed, demands, strict=False)),
            limit,
        )
        for r, limit in enumerate(limits)
    )


def _splits(total: int, servers: int) -> Iterator[tuple[int, ...]]:
    """All ways to split `total` items over `servers` servers."""
    if servers == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in _splits(total - first, servers - 1):
            yield (first, *rest)


def _one_less(counts: Counts, i: int) -> Counts:
    return (*counts[:i], counts[i] - 1, *counts[i + 1 :])


def _minus(remaining: Counts, counts: Counts) -> Counts:
    return tuple(left - n for left, n in zip(remaining, counts, strict=True))
