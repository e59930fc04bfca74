"""Models as arrays: read from PuLP row by row, and without the variables that are fixed."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pulp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.solvers import Status, highs
from oasis.solvers.arrays import ArrayModel


def model() -> pulp.LpProblem:
    """Maximise 3 x + 2 y + z + 1 with x + y + z <= 4, x - y >= -1 and x, y, z of at most 3."""
    problem = pulp.LpProblem("some", pulp.LpMaximize)
    x, y, z = (problem.add_variable(name, 0, 3, pulp.LpInteger) for name in "xyz")
    problem.setObjective(3 * x + 2 * y + z + 1)
    problem.addConstraint(x + y + z <= 4)
    problem.addConstraint(x - y >= -1)
    return problem


def read(found: ArrayModel) -> list[tuple[dict[str, float], float, float]]:
    """Coefficients by variable, lower and upper limit of every row."""
    rows = found.rows
    spans = zip(rows.starts.tolist(), rows.starts[1:].tolist(), strict=False)
    terms = [
        {found.names[rows.columns[e]]: float(rows.values[e]) for e in range(*span)}
        for span in spans
    ]
    return list(zip(terms, rows.lower.tolist(), rows.upper.tolist(), strict=True))


def test_a_model_is_read_with_its_rows_and_limits() -> None:
    problem = model()
    x, y, _ = problem.variables()
    problem.addConstraint(0 * x + 2 * y <= 5)
    found = ArrayModel.of(problem)
    assert (found.names, found.costs.tolist(), found.constant) == (["x", "y", "z"], [3, 2, 1], 1.0)
    assert read(found) == [
        ({"x": 1.0, "y": 1.0, "z": 1.0}, -math.inf, 4.0),
        ({"x": 1.0, "y": -1.0}, -1.0, math.inf),
        ({"y": 2.0}, -math.inf, 5.0),
    ]
    assert found.maximise
    assert found.is_whole.all()


def test_limits_are_never_widened_and_fixed_variables_become_part_of_limits_and_costs() -> None:
    found = ArrayModel.of(model()).limited({"x": (-1, 9), "y": (2, 2), "nobody": (1, 1)})
    assert (found.lower.tolist(), found.upper.tolist()) == ([0, 2, 0], [3, 2, 3])
    assert found.fixed == {"y": 2.0}
    part = found.without_fixed()
    assert (part.names, part.costs.tolist(), part.constant) == (["x", "z"], [3, 1], 5.0)
    assert read(part) == [
        ({"x": 1.0, "z": 1.0}, -math.inf, 2.0),
        ({"x": 1.0}, 1.0, math.inf),
    ]
    assert highs.solve(part).objective == highs.solve(found).objective == 11.0


@pytest.mark.parametrize(
    ("limits", "rows", "objective"),
    [
        ({"y": (0, 1), "x": (0, 0)}, [], 6.0),  # rows that hold anyway are left out
        ({"y": (0, 1), "x": (1, 1)}, [({"y": 1.0, "z": 1.0}, -math.inf, 3.0)], 8.0),
        ({"x": (1, 1), "y": (1, 1), "z": (2, 2)}, [], 8.0),  # nothing is open
        ({"x": (0, 0), "y": (2, 2)}, None, None),  # what is left of a row cannot hold
        ({"x": (0, 0), "y": (2, 2), "z": (0, 0)}, None, None),
        ({"x": (2, 2), "y": (1, 1), "z": (2, 2)}, None, None),
        ({"x": (2, 1)}, None, None),
    ],
)
def test_what_is_left_without_fixed_variables_is_worth_the_same(
    limits: dict[str, tuple[float, float]], rows: object, objective: float | None
) -> None:
    part = ArrayModel.of(model()).limited(limits).without_fixed()
    assert rows is None or read(part) == rows
    solution = highs.solve(part)
    assert solution.objective == objective
    assert solution.status is (Status.INFEASIBLE if objective is None else Status.OPTIMAL)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_what_is_below_a_level_stays_and_nothing_else(counts: list[int]) -> None:
    """Level k is reached by the first k + 1 variables together."""
    number = len(counts)
    plain = ArrayModel.packing(
        np.ones(number), np.full(number, 2), np.zeros((0, number)), np.zeros(0)
    )
    levels = [(np.arange(k + 1), n) for k, n in enumerate(counts)]
    model = plain.below(levels, "less")
    assert len(set(model.names)) == len(model.names)
    for values in product(range(3), repeat=number):
        fixed = model.limited({str(k): (value, value) for k, value in enumerate(values)})
        is_below = any(sum(values[: k + 1]) < n for k, n in enumerate(counts))
        assert (highs.solve(fixed).status is Status.OPTIMAL) == is_below
