"""The variables (11)-(13) of one job that can be worth something."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pulp

from oasis.model import rounding
from oasis.model.instance import Instance, Job
from oasis.model.resources import as_array
from oasis.model.rounding import IntArray


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that can be worth something, with its variables by slot (and server).

    Parameters
    ----------
    work : int
        ceil(W_i), worker-slots.
    parallel : int
        Most workers in one slot: N_i, or what the empty cluster holds.
    utility : mapping of int to float
        f_i at each completion slot that is worth something.
    done : mapping of int to binary variable
        u_i(t): whether the job completes in slot t.
    workers, ps : mapping of (slot, server) to integer variable
        y_ih(t) and z_ik(t).
    """

    job: Job
    work: int
    parallel: int
    utility: Mapping[int, float]
    done: Mapping[int, pulp.LpVariable]
    workers: Mapping[tuple[int, int], pulp.LpVariable]
    ps: Mapping[tuple[int, int], pulp.LpVariable]
    worker_hosts: tuple[int, ...] = field(init=False)
    ps_hosts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        for name, variables in (("worker_hosts", self.workers), ("ps_hosts", self.ps)):
            object.__setattr__(self, name, tuple(dict.fromkeys(s for _, s in variables)))

    @property
    def slots(self) -> range:
        """Slots from arrival to the last completion worth something."""
        return range(self.job.arrival, max(self.utility) + 1)

    def running(self, slot: int) -> pulp.LpAffineExpression:
        """Whether the job completes in `slot` or later."""
        return pulp.lpSum(var for t, var in self.done.items() if t >= slot)

    def variables(self, group: str) -> Mapping[tuple[int, int], pulp.LpVariable]:
        """The variables of a group, "worker" or "ps"."""
        return self.workers if group == "worker" else self.ps

    def workers_in(self, slot: int) -> pulp.LpAffineExpression:
        """sum_h y_ih(t)."""
        return pulp.lpSum(self.workers[slot, server] for server in self.worker_hosts)

    def ps_in(self, slot: int) -> pulp.LpAffineExpression:
        """sum_k z_ik(t)."""
        return pulp.lpSum(self.ps[slot, server] for server in self.ps_hosts)


def candidate_of(instance: Instance, index: int, problem: pulp.LpProblem) -> Candidate | None:
    """Variables (11)-(13) of a job, None if it can be worth nothing.

    (9)(10) hold because there are none before its arrival.
    """
    return _candidate(instance, index, problem, _rooms(instance, index))


def counted_candidate_of(
    instance: Instance, index: int, problem: pulp.LpProblem
) -> Candidate | None:
    """The same with all servers of a group taken for one, number 0: counts of each slot."""
    rooms = _rooms(instance, index)
    return _candidate(instance, index, problem, rooms, [room.sum(keepdims=True) for room in rooms])


def _rooms(instance: Instance, index: int) -> list[IntArray]:
    """Workers and parameter servers that each empty server holds."""
    job, cluster = instance.jobs[index], instance.cluster
    return [
        rounding.units(capacity, as_array(demand, cluster.resources), job.chunks)
        for capacity, demand in (
            (cluster.worker_capacity, job.worker),
            (cluster.ps_capacity, job.ps),
        )
    ]


def _candidate(
    instance: Instance,
    index: int,
    problem: pulp.LpProblem,
    rooms: list[IntArray],
    hosts: list[IntArray] | None = None,
) -> Candidate | None:
    job = instance.jobs[index]
    parallel = _parallel(job, *rooms)
    if parallel == 0:
        return None
    work = job.work(instance.slot_seconds)
    first = job.arrival + -(-work // parallel) - 1
    slots = range(first, instance.horizon)
    values = job.utility(np.arange(first, instance.horizon) - job.arrival).tolist()
    utility = {slot: value for slot, value in zip(slots, values, strict=True) if value > 0}
    if not utility:
        return None
    done = {t: problem.add_variable(f"u_{index}_{t}", 0, 1, pulp.LpInteger) for t in utility}
    of_workers, of_ps = rooms if hosts is None else hosts
    workers, ps = (
        {
            (t, s): problem.add_variable(f"{symbol}_{index}_{s}_{t}", 0, most, pulp.LpInteger)
            for t in range(job.arrival, max(utility) + 1)
            for s, most in enumerate(np.minimum(units, parallel).tolist())
            if most > 0
        }
        for symbol, units in (("y", of_workers), ("z", of_ps if job.needs_ps else of_ps[:0]))
    )
    return Candidate(job, work, parallel, utility, done, workers, ps)


def _parallel(job: Job, room: IntArray, ps_room: IntArray) -> int:
    """Most workers of a job that fit the empty cluster together with their parameter servers."""
    counts = range(min(job.chunks, int(room.sum())) + 1)
    return bisect_right(counts, int(ps_room.sum()), key=lambda n: int(job.ps_needed(n))) - 1
