"""Given counts on the servers of one slot, or the proof that they do not fit: a small MILP."""

from __future__ import annotations

import math

import numpy as np
import pulp

from oasis import rounding
from oasis.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers import Status, highs
from offline.deadline import Deadline


def place(
    capacity: FloatArray,
    demand: FloatArray,
    counts: IntArray,
    deadline: Deadline,
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
    deadline : Deadline
        When to stop.
    worth : (I,) float array, optional
        What one unit of each item is worth, positive: where not all fit, which should; 1 each.

    Returns
    -------
    units : (I, S) int array
        A placement.
    is_proven : bool
        Whether no placement is worth more.
    """
    most = np.array(
        [rounding.units(capacity, row, n) for row, n in zip(demand, counts, strict=True)]
    )
    units = _greedy(capacity, demand, counts)
    if (units.sum(axis=1) == counts).all():
        return units, True
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
    for s, variables in enumerate(on):
        asked = sum(demand[i] * most[i, s] for i in variables)
        for r in np.flatnonzero(asked > capacity[s]).tolist():
            shares = {i: float(demand[i, r] / capacity[s, r]) for i in variables}
            total = pulp.lpSum(share * variables[i] for i, share in shares.items() if share > 0)
            problem.addConstraint(total <= 1.0 + CAPACITY_TOLERANCE)
    value = np.ones(len(counts)) if worth is None else worth
    problem.setObjective(
        pulp.lpSum(float(value[i]) * v for variables in on for i, v in variables.items())
    )
    solution = highs.solve(
        problem, time_limit=None if math.isinf(deadline.left) else deadline.left, proof=False
    )
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    found = np.zeros_like(units)
    for s, variables in enumerate(on):
        for i, variable in variables.items():
            found[i, s] = round(solution.values.get(variable.name, 0.0))
    best = found if value @ found.sum(axis=1) >= value @ units.sum(axis=1) else units
    return best, solution.status is Status.OPTIMAL


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
