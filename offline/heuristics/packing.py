"""From a plan to real servers, slot after slot.

A plan on merged servers (`offline.plan`) says how many workers each job runs in each slot. Slots
share nothing but the work that is still to do, so they are packed one after another: a small
MILP puts as much of the plan as possible on the real servers, and what finds no place is due in
the next slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pulp

from oasis.model import rounding
from oasis.model.instance import Instance, Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import COUNT, SLOT, Schedule
from oasis.solvers import Status, highs
from oasis.solvers.budget import Budget
from offline.model.constraints import ps_ratio

SECONDS = 2.0  # for one slot
URGENCY = 4.0  # weight of a worker in the job's last planned slot, against one long before
AHEAD = 0.15  # weight of a worker that the plan wants only later
WORTH = 0.3  # a job later than planned is dropped when less than this is left of its utility

Rows = list[tuple[int, int]]  # (server, count)


@dataclass(slots=True)
class _Planned:
    """A job of the plan, and how far it has come."""

    index: int
    job: Job
    counts: IntArray  # workers by slot
    end: int
    left: int
    size: float
    due: int = 0
    workers: list[tuple[int, int, int]] = field(default_factory=list)
    ps: list[tuple[int, int, int]] = field(default_factory=list)

    def weight(self, slot: int) -> float:
        return self.size * (1.0 + URGENCY / (max(0, self.end - slot) + 1))

    def is_worth(self, slot: int) -> bool:
        planned = float(self.job.utility(self.end - self.job.arrival))
        return slot <= self.end or (
            float(self.job.utility(slot - self.job.arrival)) >= WORTH * planned
        )


def pack(instance: Instance, plan: Mapping[int, Schedule], budget: Budget) -> dict[int, Schedule]:
    """Schedules on real servers after `plan`, by job index.

    Parameters
    ----------
    instance : Instance
        The problem with its real servers.
    plan : mapping of int to Schedule
        Schedules by job index; only the workers of each slot are read.
    budget : Budget
        After it, slots stay empty.

    Returns
    -------
    mapping of int to Schedule
        For the jobs that could be finished; they fit together.
    """
    jobs = [_planned(instance, k, schedule) for k, schedule in sorted(plan.items())]
    for slot in range(instance.horizon):
        here = []
        for planned in jobs:
            planned.due = min(planned.left, planned.due + int(planned.counts[slot]))
            if slot >= planned.end:
                planned.due = planned.left
            if planned.left and slot >= planned.job.arrival and planned.is_worth(slot):
                here.append(planned)
        if here:
            _pack_slot(instance, here, slot, budget)
    return {
        p.index: Schedule(p.job.id, np.array(p.workers), np.array(p.ps)) for p in jobs if not p.left
    }


def _planned(instance: Instance, index: int, schedule: Schedule) -> _Planned:
    job, rows = instance.jobs[index], schedule.workers
    counts = np.bincount(rows[:, SLOT], rows[:, COUNT], instance.horizon).astype(np.int64)
    total = np.maximum(instance.cluster.worker_capacity.sum(axis=0), 1e-300)
    size = float((as_array(job.worker, instance.cluster.resources) / total).sum())
    work = job.work(instance.slot_seconds)
    return _Planned(index, job, counts, schedule.completion, work, size)


def _pack_slot(instance: Instance, here: list[_Planned], slot: int, budget: Budget) -> None:
    problem = pulp.LpProblem("slot", pulp.LpMaximize)
    cluster = instance.cluster
    sides: list[list[dict[int, pulp.LpVariable]]] = []
    for symbol, group, capacity in (
        ("y", "worker", cluster.worker_capacity),
        ("z", "ps", cluster.ps_capacity),
    ):
        demands = [as_array(getattr(p.job, group), cluster.resources) for p in here]
        used = [p.job.needs_ps or group == "worker" for p in here]
        units = [
            {
                s: problem.add_variable(f"{symbol}_{k}_{s}", 0, most, pulp.LpInteger)
                for s, most in enumerate(
                    rounding.units(capacity, demand, min(p.job.chunks, p.left)).tolist()
                )
                if most > 0 and is_used
            }
            for k, (p, demand, is_used) in enumerate(zip(here, demands, used, strict=True))
        ]
        _capacity(problem, capacity, demands, units)
        sides.append(units)
    objective = []
    for k, p in enumerate(here):
        most = min(p.job.chunks, p.left)
        due = problem.add_variable(f"due_{k}", 0, min(most, p.due))
        ahead = problem.add_variable(f"ahead_{k}", 0, most)
        workers = pulp.lpSum(sides[0][k].values())
        problem.addConstraint(due + ahead == workers)
        problem.addConstraint(workers <= most)
        ratio = ps_ratio(p.job, most)
        if ratio is not None:
            numerator, denominator, free = ratio
            servers = pulp.lpSum(sides[1][k].values())
            problem.addConstraint(denominator * servers >= numerator * workers - numerator * free)
        objective += [p.weight(slot) * due, AHEAD * p.weight(slot) * ahead]
    problem.setObjective(pulp.lpSum(objective))
    solution = highs.solve(problem, budget=budget.within(SECONDS))
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    for k, p in enumerate(here):
        _book(p, slot, *(_taken(side[k], solution.values) for side in sides))


def _capacity(
    problem: pulp.LpProblem,
    capacity: FloatArray,
    demands: list[FloatArray],
    units: list[dict[int, pulp.LpVariable]],
) -> None:
    for s in range(len(capacity)):
        here = [(d, unit[s]) for d, unit in zip(demands, units, strict=True) if s in unit]
        for r in np.flatnonzero(capacity[s]).tolist():
            limit = float(capacity[s, r])
            terms = [(float(d[r]), v) for d, v in here if d[r] > 0]
            if sum(amount * v.upBound for amount, v in terms) > limit:
                problem.addConstraint(pulp.lpSum(a / limit * v for a, v in terms) <= 1.0)


def _taken(units: Mapping[int, pulp.LpVariable], values: Mapping[str, float]) -> Rows:
    counts = ((s, round(values.get(variable.name, 0.0))) for s, variable in units.items())
    return [(s, count) for s, count in counts if count]


def _book(planned: _Planned, slot: int, workers: Rows, ps: Rows) -> None:
    """Take note of a slot's workers, with no more parameter servers than (6) asks for."""
    count = sum(n for _, n in workers)
    planned.left -= count
    planned.due = max(0, planned.due - count)
    planned.workers += [(slot, s, n) for s, n in workers]
    missing = int(planned.job.ps_needed(count))
    for s, n in ps:
        taken = min(n, missing)
        missing -= taken
        if taken:
            planned.ps.append((slot, s, taken))
