"""Exact optimum of tiny instances by enumeration: an oracle that shares nothing with the MILP.

Capacities do not change over time, so which worker counts (n_1, .., n_I) the servers can hold
together in a slot is enumerated once. A search over slots then hands each slot one of these
counts; it remembers what the best continuation from any remaining work is worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from oasis.model.cluster import Cluster
from oasis.model.errors import InputError
from oasis.model.groups import GROUPS
from oasis.model.job import Job
from oasis.model.rounding import fits
from oasis.model.schedule import Schedule, placements
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.params import EnumerationParams
from offline.problem import Method, OfflineProblem
from offline.state import Phase

Counts = tuple[int, ...]
Units = tuple[tuple[int, ...], ...]  # units of each job on each server


class Enumeration(Method[EnumerationParams]):
    """Method "bruteforce": enumerate all joint worker counts of all slots, for tiny instances."""

    name, kind, heeds_limits = "bruteforce", EnumerationParams, False

    def solve(self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator) -> Status:
        """Find the optimum; raise `InputError` if that takes more than `max_steps` steps."""
        instance, state, most = problem.instance, problem.state, self.params.max_steps
        state.enter(Phase.ENUMERATION)
        steps = 0
        # Each job in one of its forms, in all ways: a schedule never changes its form.
        for chosen in product(*(range(len(job.in_forms)) for job in instance.jobs)):
            jobs = [job.in_forms[k] for job, k in zip(instance.jobs, chosen, strict=True)]
            work = tuple(job.work(instance.slot_seconds) for job in jobs)
            pairs = zip(jobs, work, strict=True)
            # More workers than the work has worker-slots help no job, but a gang needs its minimum.
            parallel = [max(job.min_workers, min(job.chunks, w)) for job, w in pairs]
            # Before the counts are enumerated, and then before the search over slots.
            _refuse(steps + math.prod(n + 1 for n in parallel), most)
            fitting = fitting_counts(jobs, parallel, instance.cluster)
            steps += math.prod(w + 1 for w in work) * instance.horizon * len(fitting)
            _refuse(steps, most)
            schedules = _Search(jobs, chosen, work, instance.horizon, fitting).schedules()
            state.record_solution(schedules)
        # Everything was tried, so the best value is the optimum.
        state.record_bound(state.incumbent or 0.0)
        return Status.OPTIMAL


def _refuse(steps: int, most: int) -> None:
    if steps > most:
        raise InputError(
            "the instance is too large for brute force",
            f"{steps} steps, at most {most}; use method 'auto'",
        )


class _Search:
    """Memoised search for the best continuation from a slot and the work that each job has left."""

    def __init__(
        self,
        jobs: Sequence[Job],
        forms: Counts,
        work: Counts,
        horizon: int,
        fitting: dict[Counts, SlotPlacement],
    ) -> None:
        self.jobs, self.forms, self.work = jobs, forms, work
        self.horizon, self.placements = horizon, fitting
        self.best: dict[tuple[int, Counts], tuple[float, Counts]] = {}

    def value(self, slot: int, remaining: Counts) -> float:
        """Return the largest utility that jobs with `remaining` work can reach from `slot` on."""
        if slot == self.horizon or not any(remaining):
            return 0.0
        key = slot, remaining
        if key not in self.best:
            self.best[key] = max(
                (self._gain(slot, remaining, n) + self.value(slot + 1, _minus(remaining, n)), n)
                for n in self._choices(slot, remaining)
            )
        return self.best[key][0]

    def _choices(self, slot: int, remaining: Counts) -> Iterator[Counts]:
        for counts in self.placements:
            if all(
                n == 0 or (job.arrival <= slot and work and n in _counts_for(job, work))
                for n, work, job in zip(counts, remaining, self.jobs, strict=True)
            ):
                yield counts

    def _gain(self, slot: int, remaining: Counts, counts: Counts) -> float:
        return sum(
            float(job.utility(slot - job.arrival))
            for job, work, n in zip(self.jobs, remaining, counts, strict=True)
            if work and n >= work
        )

    def schedules(self) -> dict[str, Schedule]:
        """Return schedules of the jobs that complete with some utility in an optimal solution."""
        workers: list[list[tuple[int, int, int]]] = [[] for _ in self.work]
        ps: list[list[tuple[int, int, int]]] = [[] for _ in self.work]
        remaining, ended = self.work, {}
        for slot in range(self.horizon):
            self.value(slot, remaining)
            if (slot, remaining) not in self.best:
                break
            counts = self.best[slot, remaining][1]
            placement = self.placements[counts]
            for i, n in enumerate(counts):
                workers[i] += [(slot, h, y) for h, y in enumerate(placement.workers[i]) if y]
                ps[i] += [(slot, k, z) for k, z in enumerate(placement.ps[i]) if z]
                if n and n >= remaining[i]:
                    ended[i] = slot
            remaining = _minus(remaining, counts)
        return {
            job.id: Schedule(job.id, placements(workers[i]), placements(ps[i]), self.forms[i])
            for i, slot in sorted(ended.items())
            for job in [self.jobs[i]]
            if job.utility(slot - job.arrival) > 0
        }


def _counts_for(job: Job, work: int) -> range:
    """Return the worker counts that can help a job with this much work left."""
    # More workers than work is left would only take room.
    return range(job.min_workers, max(work, job.min_workers) + 1)


def _minus(remaining: Counts, counts: Counts) -> Counts:
    return tuple(max(0, work - n) for work, n in zip(remaining, counts, strict=True))


@dataclass(frozen=True, slots=True)
class SlotPlacement:
    """Placement of the workers and parameter servers of each job in one slot."""

    workers: Units
    ps: Units


def fitting_counts(
    jobs: Sequence[Job], most: Sequence[int], cluster: Cluster
) -> dict[Counts, SlotPlacement]:
    """Return each vector of worker counts that fits the empty servers, with one placement of it."""
    fitting: dict[Counts, SlotPlacement] = {}
    for counts in product(*(range(n + 1) for n in most)):
        # fewer workers always fit where more do, and product() counts upwards
        if all(n == 0 or _one_less(counts, i) in fitting for i, n in enumerate(counts)):
            placement = _placed(jobs, counts, cluster)
            if placement is not None:
                fitting[counts] = placement
    return fitting


def _placed(jobs: Sequence[Job], counts: Counts, cluster: Cluster) -> SlotPlacement | None:
    """Place worker `counts` and the parameter servers that (6) needs; None if they do not fit."""
    needed = [int(job.ps_needed(n)) for job, n in zip(jobs, counts, strict=True)]
    placed = []
    for group, units in zip(GROUPS, (counts, needed), strict=True):
        rows = [[group.of(job).get(name, 0.0) for name in cluster.resources] for job in jobs]
        servers = group.servers(cluster)
        labels = [server.labels for server in servers for _ in server.ids]
        may = [[group.required(job).admits(one) for one in labels] for job in jobs]
        capacity = group.capacity(cluster).tolist()
        packing = next(_packings(list(units), rows, may, capacity, []), None)
        if packing is None:
            return None
        placed.append(packing)
    return SlotPlacement(*placed)


def _packings(
    units: Sequence[int],
    demands: Sequence[Sequence[float]],
    may: Sequence[Sequence[bool]],
    capacity: Sequence[Sequence[float]],
    placed: list[tuple[int, ...]],
) -> Iterator[Units]:
    """Yield each way to put ``units[i]`` of item i where it `may` be, after those `placed`."""
    if len(placed) == len(units):
        yield tuple(placed)
        return
    for split in _splits(units[len(placed)], len(capacity)):
        packing, admitted = [*placed, split], may[len(placed)]
        if any(n and not is_in for n, is_in in zip(split, admitted, strict=True)):
            continue
        if all(_fits(packing, demands, limits, server) for server, limits in enumerate(capacity)):
            yield from _packings(units, demands, may, capacity, packing)


def _fits(
    placed: list[tuple[int, ...]],
    demands: Sequence[Sequence[float]],
    limits: Sequence[float],
    server: int,
) -> bool:
    return all(
        fits(
            math.fsum(
                row[server] * demand[r] for row, demand in zip(placed, demands, strict=False)
            ),
            limit,
        )
        for r, limit in enumerate(limits)
    )


def _splits(total: int, servers: int) -> Iterator[tuple[int, ...]]:
    """Yield each way to split `total` items over `servers` servers."""
    if servers <= 1:
        if servers or not total:  # without a server there is one way to place nothing
            yield (total,) * servers
        return
    for first in range(total, -1, -1):
        for counts in _splits(total - first, servers - 1):
            yield (first, *counts)


def _one_less(counts: Counts, i: int) -> Counts:
    return (*counts[:i], counts[i] - 1, *counts[i + 1 :])
