"""Servers filled with patterns as a part of a model, on servers that can be followed by hand."""

from __future__ import annotations

import numpy as np
import pulp
import pytest

from oasis.model.rounding import FloatArray
from oasis.solvers import Solution, highs
from offline.benders.subproblem import Filling
from offline.patterns import PatternPool, classes

# Two servers of 4 and one of 2, for items of 2 and of 1.
CAPACITY = np.array([[4.0], [2.0], [4.0]])
DEMAND = np.array([[2.0], [1.0]])
PATTERNS = {4.0: [[2, 0], [1, 2]], 2.0: [[1, 0], [0, 2]]}


def filled(counts: list[int], weights: list[float]) -> tuple[Filling, Solution, FloatArray]:
    """The heaviest of these counts on the servers, by these patterns alone."""
    problem = pulp.LpProblem("servers", pulp.LpMaximize)
    placed = {i: problem.add_variable(f"n_{i}", 0, n) for i, n in enumerate(counts) if n}
    servers = PatternPool(*classes(CAPACITY, None), DEMAND, np.array(counts))
    tables = [np.array(PATTERNS[float(row[0])]) for row in servers.capacity]
    filling = Filling.added(problem, "x", servers, tables, placed)
    problem.setObjective(pulp.lpSum(weights[i] * v for i, v in placed.items()))
    return filling, highs.solve(problem), CAPACITY


@pytest.mark.parametrize(
    ("counts", "weights", "units"),
    [
        ([5, 0], [1.0, 1.0], [[2, 1, 2], [0, 0, 0]]),
        ([2, 6], [1.0, 1.0], [[1, 0, 1], [2, 2, 2]]),
        ([9, 9], [5.0, 1.0], [[2, 1, 2], [0, 0, 0]]),
    ],
)
def test_each_server_has_one_pattern_of_its_class(
    counts: list[int], weights: list[float], units: list[list[int]]
) -> None:
    filling, solution, capacity = filled(counts, weights)
    assert filling.units(solution.values, np.array(counts), capacity).tolist() == units


def test_what_a_pattern_holds_beyond_the_counts_is_left_out() -> None:
    filling, solution, capacity = filled([1, 0], [1.0, 1.0])
    assert filling.units(solution.values, np.array([1, 0]), capacity).sum() == 1


def test_units_stand_for_the_first_pattern_that_holds_them() -> None:
    filling, _, capacity = filled([3, 2], [1.0, 1.0])
    values = filling.values_of(np.array([[1, 0, 2], [1, 0, 0]]), capacity)
    chosen = {name: value for name, value in values.items() if value}
    by_class = {
        (float(filling.servers.capacity[k][0]), j): filling.chosen[k][j].name
        for k, rows in enumerate(filling.patterns)
        for j in range(len(rows))
    }
    # the server with one item each needs the mixed pattern; the empty one is below any
    assert chosen == {by_class[4.0, 1]: 1.0, by_class[4.0, 0]: 1.0, by_class[2.0, 0]: 1.0}


def test_units_that_no_pattern_holds_stand_for_nothing() -> None:
    filling, _, capacity = filled([3, 4], [1.0, 1.0])
    values = filling.values_of(np.array([[0, 0, 0], [4, 0, 0]]), capacity)
    assert sum(values.values()) == 2.0  # of the two empty servers
