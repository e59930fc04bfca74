"""Exact optimum of tiny instances by enumeration: an oracle that shares nothing with the MILP.

Capacities do not change over time, so which worker counts (n_1, .., n_I) the servers can hold
together in a slot is enumerated once. A search over slots then hands each slot one of these
counts; it remembers what the best continuation from any remaining work is worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from oasis.certify.verify import verify
from oasis.model.errors import InputError
from oasis.model.job import Job
from oasis.model.schedule import Schedule, placements
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.params import Number, Params
from offline.problem import Method, OfflineProblem
from offline.slot_counts import Counts, SlotPlacement, fitting_counts
from offline.state import Phase


@dataclass(frozen=True, slots=True)
class EnumerationParams(Params):
    """When an instance is too large to enumerate.

    Parameters
    ----------
    max_steps : int
        Most steps, each a vector of counts that is tried.

    Examples
    --------
    >>> from offline import EnumerationParams
    >>> EnumerationParams(max_steps=1000).to_dict()
    {'max_steps': 1000}
    """

    max_steps: Number = 2_000_000


class Enumeration(Method[EnumerationParams]):
    """Method "bruteforce": enumerate all joint worker counts of all slots, for tiny instances."""

    name, kind, heeds_limits = "bruteforce", EnumerationParams, False

    def solve(self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator) -> Status:
        """Find the optimum.

        Raises
        ------
        ValueError
            If that would take more steps than the parameters allow.
        """
        instance, state, most = problem.instance, problem.state, self.params.max_steps
        state.enter(Phase.ENUMERATION)
        jobs = instance.jobs
        work = tuple(job.work(instance.slot_seconds) for job in jobs)
        pairs = zip(jobs, work, strict=True)
        parallel = [max(job.min_workers, min(job.chunks, w)) for job, w in pairs]
        _refuse(math.prod(n + 1 for n in parallel), most)
        fitting = fitting_counts(jobs, parallel, instance.cluster)
        _refuse(math.prod(w + 1 for w in work) * instance.horizon * len(fitting), most)
        schedules = _Search(jobs, work, instance.horizon, fitting).schedules()
        state.found(verify(instance, schedules), schedules)
        state.proved(state.incumbent or 0.0)
        return Status.OPTIMAL


def _refuse(steps: int, most: int) -> None:
    if steps > most:
        raise InputError(
            "the instance is too large for brute force",
            f"{steps} steps, at most {most}; use method 'auto'",
        )


class _Search:
    """Best continuation from (slot, remaining work of each job), remembered."""

    def __init__(
        self,
        jobs: tuple[Job, ...],
        work: Counts,
        horizon: int,
        fitting: dict[Counts, SlotPlacement],
    ) -> None:
        self.jobs, self.work, self.horizon, self.placements = jobs, work, horizon, fitting
        self.best: dict[tuple[int, Counts], tuple[float, Counts]] = {}

    def value(self, slot: int, remaining: Counts) -> float:
        """Largest utility of the jobs not yet complete, from `slot` on."""
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
                n == 0 or (job.arrival <= slot and left and n in _counts_for(job, left))
                for n, left, job in zip(counts, remaining, self.jobs, strict=True)
            ):
                yield counts

    def _gain(self, slot: int, remaining: Counts, counts: Counts) -> float:
        return sum(
            float(job.utility(slot - job.arrival))
            for job, left, n in zip(self.jobs, remaining, counts, strict=True)
            if left and n >= left
        )

    def schedules(self) -> dict[str, Schedule]:
        """Schedules of the jobs that complete with some utility, along a best path."""
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
            job.id: Schedule(job.id, placements(workers[i]), placements(ps[i]))
            for i, slot in sorted(ended.items())
            for job in [self.jobs[i]]
            if job.utility(slot - job.arrival) > 0
        }


def _counts_for(job: Job, left: int) -> range:
    """Counts of workers that a job may have while so much work is left."""
    return range(job.min_workers, max(left, job.min_workers) + 1)


def _minus(remaining: Counts, counts: Counts) -> Counts:
    return tuple(max(0, left - n) for left, n in zip(remaining, counts, strict=True))
