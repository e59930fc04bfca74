"""Neighbourhoods solved exactly: the compact model of a few jobs in what the others leave free.

How many jobs leave adapts: one more after a neighbourhood that HiGHS solved, fewer after one that
it did not, so that every size of instance gets neighbourhoods as large as can be solved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pulp

from oasis.model import rounding
from oasis.model.instance import Instance
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray
from oasis.solvers import Status, highs
from oasis.solvers.budget import Budget
from offline.heuristics.partial_solution import Occupancy
from offline.heuristics.ruin_and_recreate import Guide, Keeper
from offline.model import constraints
from offline.model.compact import CompactModel
from offline.model.variables import candidate_of

SECONDS = 3.0  # for one neighbourhood
FIRST, FEWEST = 8, 4  # jobs in a neighbourhood
REJECTED = 0.35  # share of them that does not run yet
WANTED = 100.0  # how much likelier a wanted one is


class ResidualModel(CompactModel):
    """The compact model of some jobs within given free capacities.

    Parameters
    ----------
    instance : Instance
        The problem with only these jobs.
    worker_free, ps_free : (T, H, R) and (T, K, R) float arrays
        What may be used in each slot.
    """

    def __init__(self, instance: Instance, worker_free: FloatArray, ps_free: FloatArray) -> None:
        self.instance = instance
        self.problem = pulp.LpProblem("neighbourhood", pulp.LpMaximize)
        made = (candidate_of(instance, k, self.problem) for k in range(len(instance.jobs)))
        self.candidates = [candidate for candidate in made if candidate is not None]
        self.trivial_bound = sum(max(c.utility.values()) for c in self.candidates)
        self.problem.setObjective(constraints.total_utility(self.candidates))
        for candidate in self.candidates:
            for row in constraints.of_job(candidate):
                self.problem.addConstraint(row)
        for row in (*self._capacity("worker", worker_free), *self._capacity("ps", ps_free)):
            self.problem.addConstraint(row)

    def _capacity(self, group: str, free: FloatArray) -> Iterator[pulp.LpConstraint]:
        """(4) or (5) with what is free in each slot; also limits each variable to it."""
        users: dict[tuple[int, int], list[tuple[FloatArray, pulp.LpVariable]]] = {}
        for candidate in self.candidates:
            demand = as_array(getattr(candidate.job, group), self.instance.cluster.resources)
            rooms = rounding.units(free, demand, candidate.parallel)
            for place, variable in candidate.variables(group).items():
                variable.upBound = min(int(variable.upBound), int(rooms[place]))
                if variable.upBound:
                    users.setdefault(place, []).append((demand, variable))
        for (place, here), r in product(users.items(), range(free.shape[2])):
            terms = [(float(demand[r]), v) for demand, v in here if demand[r] > 0]
            limit = float(free[place][r])
            if sum(amount * v.upBound for amount, v in terms) > limit > 0:
                yield pulp.lpSum(amount / limit * v for amount, v in terms) <= 1.0


def reinsert(current: Occupancy, jobs: list[int], budget: Budget) -> tuple[Occupancy, bool]:
    """`current` with some of these jobs in what it leaves free, and whether none are worth more."""
    return _solve(current, [], jobs, budget)


def reoptimise(
    start: Occupancy,
    guide: Guide,
    rng: np.random.Generator,
    budget: Budget,
    keep: Keeper,
    wanted: Collection[int] = (),
    size: int = FIRST,
) -> int:
    """Offer better solutions than `start` to `keep` until the budget or the bound is reached.

    Jobs that are `wanted`, by index, are invited more often than others that do not run. `size`
    is the number of jobs in the first neighbourhood; the one that proved right is returned.
    """
    current = start
    chances = guide.payoffs + 0.05 * guide.best + 1e-12
    chances[list(wanted)] *= WANTED
    while not budget.passed and not keep.is_proven:
        leaving, invited = _neighbourhood(current, guide, chances, rng, size)
        if not leaving and not invited:
            break
        trial, is_solved = _solve(current, leaving, invited, budget)
        size = size + 1 if is_solved else max(FEWEST, size - 2)
        if trial.value > current.value * (1 + 1e-12):
            rest = [k for k in range(len(guide.best)) if k not in trial.schedules]
            trial.fill(guide.order(rest, rng), guide.worker_prices, guide.ps_prices)
            current = trial
            keep.offer(current)
    return size


def _neighbourhood(
    current: Occupancy,
    guide: Guide,
    chances: FloatArray,
    rng: np.random.Generator,
    size: int,
) -> tuple[list[int], list[int]]:
    """Jobs that leave, nearest in time to one that does not run yet, and some of the latter."""
    jobs = current.instance.jobs
    outside = [k for k in range(len(jobs)) if k not in current.schedules and guide.best[k] > 0]
    invited: list[int] = []
    centre = float(rng.integers(current.instance.horizon))
    if outside:
        here = chances[outside]
        picked = rng.choice(len(outside), p=here / here.sum())
        centre = jobs[outside[picked]].arrival + float(rng.integers(6))
        count = min(len(outside), max(1, int(REJECTED * size)))
        gaps = np.array([abs(jobs[k].arrival - centre) for k in outside])
        near = np.argsort(gaps * rng.uniform(0.5, 1.5, len(outside)), kind="stable")[: count - 1]
        invited = sorted({outside[picked], *(outside[k] for k in near.tolist())})
    inside = sorted(current.schedules)
    distance = np.array(
        [
            max(0.0, current.schedules[k].start - centre, centre - current.schedules[k].completion)
            for k in inside
        ]
    )
    order = np.lexsort((rng.random(len(inside)), distance)) if inside else np.empty(0, np.int64)
    return [inside[k] for k in order[: max(1, size - len(invited))].tolist()], invited


def _solve(
    current: Occupancy, leaving: list[int], invited: list[int], budget: Budget
) -> tuple[Occupancy, bool]:
    """The best way to run these jobs beside the others, and whether it is proven to be."""
    instance, trial = current.instance, current.copy()
    old = {instance.jobs[k].id: trial.remove(k) for k in leaving}
    chosen = sorted(leaving + invited)
    part = replace(instance, jobs=tuple(instance.jobs[k] for k in chosen))
    model = ResidualModel(part, *trial.free())
    solution = highs.solve(
        model.problem,
        budget=budget.within(SECONDS),
        warm_start=model.values_of(old),
    )
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    found = model.schedules_of(solution.values)
    for k in chosen:
        if instance.jobs[k].id in found:
            trial.put(k, found[instance.jobs[k].id])
    return trial, solution.status is Status.OPTIMAL
