"""The relaxation that grows by rows against the same linear program solved from scratch."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pulp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from oasis.model.errors import SolverError
from oasis.solvers import Status, highs
from oasis.solvers.arrays import ArrayModel
from oasis.solvers.budget import Budget
from oasis.solvers.lp import ColumnLp, Relaxation
from tests.linear import as_arrays
from tests.strategies import fewer

VARIABLES, MOST = 5, 3


def drawn(rng: np.random.Generator, category: str) -> pulp.LpProblem:
    """A model in which all variables may be 0, with a constant in its objective."""
    problem = pulp.LpProblem("drawn", pulp.LpMaximize)
    x = [problem.add_variable(f"x{k}", 0, MOST, category) for k in range(VARIABLES)]
    problem.setObjective(pulp.lpDot((10.0 ** rng.integers(-3, 5, VARIABLES)).tolist(), x) + 7)
    return problem


def rows(rng: np.random.Generator, problem: pulp.LpProblem) -> list[pulp.LpConstraint]:
    """A few rows of either direction that 0 satisfies, one of them with a constant."""
    x = problem.variables()
    made = []
    for _ in range(int(rng.integers(1, 4))):
        total = pulp.lpDot(rng.integers(-1, 4, len(x)).tolist(), x)
        limit = float(rng.integers(0, 8))
        made.append([total <= limit, -1 * total >= -limit, total - 2 <= limit - 2][rng.integers(3)])
    return made


def optimum(problem: pulp.LpProblem) -> float:
    """The same linear program with SciPy, its costs so large that tolerances do not matter."""
    model = ArrayModel.of(problem)
    rows, factor = model.rows, 1e4
    table = np.zeros((len(rows.lower), len(model.costs)))
    np.add.at(table, (rows.row_of, rows.columns), rows.values)
    above, below = np.isfinite(rows.upper), np.isfinite(rows.lower)
    solved = linprog(
        -factor * model.costs,
        np.vstack([table[above], -table[below]]),
        np.append(rows.upper[above], -rows.lower[below]),
        bounds=np.column_stack([model.lower, model.upper]),
    )
    assert solved.status == 0
    return float(model.constant - solved.fun / factor)


@given(st.integers(0, 2**32 - 1))
@example(33065)  # HiGHS, with its tolerance of the costs as they are, ends below the optimum
@fewer(2)
def test_rows_lower_the_bound_to_that_of_a_cold_solve(seed: int) -> None:
    made = {}
    for category in (pulp.LpInteger, pulp.LpContinuous):
        rng = np.random.default_rng(seed)
        problem = drawn(rng, category)
        grown = Relaxation(ArrayModel.of(problem))
        bounds = []
        for _ in range(4):
            added = rows(rng, problem)
            grown.add(as_arrays(problem, added))
            for row in added:
                problem.addConstraint(row)
            solution = grown.solve(Budget())
            assert solution is not None
            assert solution.status is Status.OPTIMAL
            value = pulp.LpAffineExpression.value
            for variable in problem.variables():
                assert -1e-7 <= solution.values[variable.name] <= MOST + 1e-7
                variable.setInitialValue(np.clip(solution.values[variable.name], 0.0, MOST))
            assert all(row.valid(1e-6) for row in problem.constraints())
            assert value(problem.objective) == pytest.approx(solution.objective, rel=1e-9)
            if category == pulp.LpContinuous:
                assert solution.bound == pytest.approx(optimum(problem), rel=1e-9)
            else:
                cold = highs.solve(problem, presolve=False)
                assert cold.objective is not None
                assert solution.bound >= cold.objective * (1 - 1e-9)
            bounds.append(solution.bound)
        assert all(later <= first * (1 + 1e-12) for first, later in pairwise(bounds))
        made[category] = bounds
    assert made[pulp.LpInteger] == made[pulp.LpContinuous]


def test_rows_that_nothing_satisfies_are_an_error() -> None:
    problem = drawn(np.random.default_rng(0), pulp.LpInteger)
    relaxation = Relaxation(ArrayModel.of(problem))
    relaxation.add(as_arrays(problem, [pulp.lpSum(problem.variables()) <= -1]))
    with pytest.raises(SolverError, match=r"Infeasible"):
        relaxation.solve(Budget())


def test_no_time_is_no_bound_and_time_again_is_the_bound() -> None:
    """HiGHS counts over all solves, and a solve without time must not claim one."""
    rng = np.random.default_rng(2)
    problem = pulp.LpProblem("large", pulp.LpMaximize)
    x = [problem.add_variable(f"x{k}", 0, 1) for k in range(300)]
    problem.setObjective(pulp.lpDot(rng.random(300).tolist(), x))
    for weights in rng.random((200, 300)).tolist():
        problem.addConstraint(pulp.lpDot(weights, x) <= 30)
    relaxation = Relaxation(ArrayModel.of(problem))
    assert relaxation.solve(Budget(0.0)) is None
    solution = relaxation.solve(Budget(60.0))
    assert solution is not None
    assert solution.bound == pytest.approx(highs.solve(problem).bound, rel=1e-9)


def test_the_bound_is_not_below_what_is_better_by_less_than_the_tolerance_of_highs() -> None:
    """Of two units, one of which is worth a ten-billionth more, HiGHS takes the other one."""
    hair = 8e-11
    problem = pulp.LpProblem("pair", pulp.LpMaximize)
    x, y = (problem.add_variable(name, 0, 3) for name in "xy")
    problem.setObjective(1.0 * x + (1.0 + hair) * y)
    relaxation = Relaxation(ArrayModel.of(problem))
    relaxation.add(as_arrays(problem, [3 * x + 3 * y <= 3, x + y <= 5]))
    solution = relaxation.solve(Budget())
    assert solution is not None
    assert solution.objective is not None
    assert solution.objective < 1.0 + hair / 2, "else the test says nothing"
    assert 1.0 + hair <= solution.bound <= 1.0 + 4 * hair


def test_a_table_without_columns_adds_none() -> None:
    lp = ColumnLp([1.0])
    lp.add_table(np.zeros((0, 1)))
    assert lp.columns == 0
