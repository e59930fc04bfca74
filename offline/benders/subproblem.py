"""Given counts on the servers of one slot, or the proof that they do not fit.

Most counts fit at once. For the others, the patterns that cover them by fractions
(`offline.patterns.cuts`) make a MILP that HiGHS solves in a tenth of a second; only what is left is
for the MILP with a variable for each item on each server, which also proves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pulp

from oasis.model import rounding
from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers import Solution, Status
from oasis.solvers.budget import Budget
from offline.benders.filling import Filling
from offline.model.arrays import units_that_fit
from offline.model.capacities import Limit, limits_of_server, solve_within
from offline.patterns.cuts import CutGenerator
from offline.patterns.params import CutParams
from offline.patterns.patterns import PatternPool
from offline.patterns.server_classes import classes


def place(
    capacity: FloatArray,
    demand: FloatArray,
    counts: IntArray,
    budget: Budget,
    params: CutParams,
    worth: FloatArray | None = None,
) -> tuple[IntArray, bool]:
    """As many of the counts as fit on the servers together.

    Parameters
    ----------
    capacity : (S, R) float array
        Of each server.
    demand : (I, R) float array
        Of one unit of each item.
    counts : (I,) int array
        Units wanted.
    budget : Budget
        When to stop.
    params : CutParams
        How patterns are looked for.
    worth : (I,) float array, optional
        What one unit of each item is worth, positive: where not all fit, which should; 1 each.

    Returns
    -------
    units : (I, S) int array
        A placement.
    is_proven : bool
        Whether no placement is worth more.
    """
    worth = np.ones(len(counts)) if worth is None else worth
    part = budget.within(params.placing_limit)
    units, is_proven = place_by_patterns(capacity, demand, counts, part, params, worth)
    if is_proven:
        return units, True
    found, status = _by_servers(capacity, demand, counts, budget, worth)
    units = max(units, found, key=lambda table: float(worth @ table.sum(axis=1)))
    return units, status is Status.OPTIMAL or bool((units.sum(axis=1) == counts).all())


def place_by_patterns(
    capacity: FloatArray,
    demand: FloatArray,
    counts: IntArray,
    budget: Budget,
    params: CutParams,
    worth: FloatArray,
) -> tuple[IntArray, bool]:
    """The same as `place` without the last resort: nothing is proven but that all of them fit."""
    units = _greedy(capacity, demand, counts)
    if (units.sum(axis=1) < counts).any():
        found = _by_patterns(capacity, demand, counts, budget, worth, params)
        units = max(units, found, key=lambda table: float(worth @ table.sum(axis=1)))
    return units, bool((units.sum(axis=1) == counts).all())


def _by_patterns(
    capacity: FloatArray,
    demand: FloatArray,
    counts: IntArray,
    budget: Budget,
    worth: FloatArray,
    params: CutParams,
) -> IntArray:
    """The best choice of one pattern a server, of those that cover the counts by fractions."""
    servers = PatternPool(*classes(capacity, None), demand, counts)
    patterns = CutGenerator(servers, params).covering(counts, budget)
    problem = pulp.LpProblem("patterns", pulp.LpMaximize)
    placed = {
        i: problem.add_variable(f"n_{i}", 0, int(counts[i]))
        for i in np.flatnonzero(counts).tolist()
    }
    filling = Filling.added(problem, "x", servers, patterns, placed)
    problem.setObjective(pulp.lpSum(float(worth[i]) * v for i, v in placed.items()))
    return filling.units(_solved(problem, budget).values, counts, capacity)


def _by_servers(
    capacity: FloatArray,
    demand: FloatArray,
    counts: IntArray,
    budget: Budget,
    worth: FloatArray,
) -> tuple[IntArray, Status]:
    """The best placement: a variable for each item on each server."""
    most = units_that_fit(capacity, demand, counts)
    items = np.flatnonzero(counts).tolist()
    problem = pulp.LpProblem("place", pulp.LpMaximize)
    on: list[dict[int, pulp.LpVariable]] = [
        {
            i: problem.add_variable(f"a_{i}_{s}", 0, int(most[i, s]), pulp.LpInteger)
            for i in items
            if most[i, s]
        }
        for s in range(len(capacity))
    ]
    for i in items:
        here = [variables[i] for variables in on if i in variables]
        problem.addConstraint(pulp.lpSum(here) <= int(counts[i]))
    limits: list[Limit] = []
    for room, variables in zip(capacity, on, strict=True):
        limits += limits_of_server(room, [(demand[i], v) for i, v in variables.items()])
    for limit in limits:
        problem.addConstraint(limit.row())
    problem.setObjective(
        pulp.lpSum(float(worth[i]) * v for variables in on for i, v in variables.items())
    )
    solution = _solved(problem, budget, limits)
    units = np.zeros((len(counts), len(capacity)), dtype=np.int64)
    for s, variables in enumerate(on):
        for i, variable in variables.items():
            units[i, s] = round(solution.values.get(variable.name, 0.0))
    return units, solution.status


def _solved(problem: pulp.LpProblem, budget: Budget, limits: Sequence[Limit] = ()) -> Solution:
    solution = solve_within(problem, lambda: limits, budget=budget, proof=False)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solution


def _greedy(capacity: FloatArray, demand: FloatArray, counts: IntArray) -> IntArray:
    """Large items first, each where it leaves least: quick, and often enough."""
    units = np.zeros((len(counts), len(capacity)), dtype=np.int64)
    total = capacity.sum(axis=0)
    shares = np.divide(demand, total, out=np.zeros_like(demand), where=total > 0)
    size = shares.max(axis=1, initial=0.0)
    scarce = counts @ shares
    total = np.where(total > 0, total, 1.0)
    left = capacity.astype(float)
    for i in np.argsort(-size, kind="stable").tolist():
        order = np.argsort((left / total) @ scarce, kind="stable")
        room = rounding.units(np.maximum(left[order], 0.0), demand[i], int(counts[i]))
        before = np.concatenate([[0], np.cumsum(room)[:-1]])
        units[i, order] = np.clip(counts[i] - before, 0, room)
        left -= units[i][:, None] * demand[i]
    return units


def adjusted(
    capacity: FloatArray, demand: FloatArray, known: IntArray, counts: IntArray
) -> IntArray | None:
    """Counts (I,) on the servers by few changes of known units (I, S); None if greed fails.

    What is known of them stays where it is, and the rest is placed where there is room.
    """
    kept = at_most(known, counts)
    left = np.maximum(capacity - kept.T @ demand, 0.0)
    units: IntArray = kept + _greedy(left, demand, counts - kept.sum(axis=1))
    return units if (units.sum(axis=1) == counts).all() else None


def at_most(units: IntArray, most: IntArray) -> IntArray:
    """Units (I, S), as many of each item as `most` (I,) says, those of the first servers."""
    before = np.cumsum(units, axis=1) - units
    kept: IntArray = np.clip(most[:, None] - before, 0, units)
    return kept
