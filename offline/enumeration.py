"""Exact optimum of tiny instances by enumeration: an oracle that shares nothing with the MILP.

Capacities do not change over time, so which worker counts (n_1, .., n_I) the servers can hold
together in a slot is enumerated once. A search over slots then hands each slot one of these
counts; it remembers what the best continuation from any remaining work is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oasis.certify.verify import verify
from oasis.model.errors import InputError
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.schedule import Schedule, placements
from oasis.solvers import SolveProgress, Status
from offline.method import Method
from offline.params import Number, Params
from offline.result import OfflineResult
from offline.slot_counts import Counts, SlotPlacement, fitting_counts
from offline.state import Phase, SolveState, Start, WarmStart


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


def solve_brute_force(
    instance: Instance,
    time_limit: float | None = 60.0,
    *,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
    seed: int = 0,
    params: EnumerationParams | Mapping[str, Any] | None = None,
    warm_start: Start = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
) -> OfflineResult:
    """Enumerate all joint worker counts of all slots; for a few jobs of a few worker-slots.

    Takes the arguments of `offline.solve`; an enumeration heeds no limit and has no seed, and the
    warm start only counts if Ctrl-C ends it.

    Raises
    ------
    ValueError
        If the enumeration would take more than ``params.max_steps`` steps.

    Examples
    --------
    >>> import oasis
    >>> from offline import solve_brute_force, solve_milp
    >>> sizes = {"jobs": 2, "worker_servers": 1, "ps_servers": 1, "horizon": 3}
    >>> instance = oasis.generate("testbed", **sizes, seed=3)
    >>> enumerated, solved = solve_brute_force(instance), solve_milp(instance)
    >>> abs(enumerated.objective - solved.objective) < 1e-6
    True
    """
    return ENUMERATION.solve(
        instance,
        time_limit,
        work_limit=work_limit,
        gap=gap,
        no_improvement=no_improvement,
        seed=seed,
        params=params,
        warm_start=warm_start,
        on_progress=on_progress,
    )


def _run(
    instance: Instance, _: WarmStart, state: SolveState, params: EnumerationParams, seed: int
) -> Status:
    state.enter(Phase.ENUMERATION)
    jobs, most = instance.jobs, params.max_steps
    work = tuple(job.work(instance.slot_seconds) for job in jobs)
    parallel = [max(job.min_workers, min(job.chunks, w)) for job, w in zip(jobs, work, strict=True)]
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


ENUMERATION = Method("bruteforce", EnumerationParams, _run, takes_limit=False, takes_minimum=True)
