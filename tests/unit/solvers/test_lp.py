"""Models as arrays, linear programs that grow, their relaxations, and what dual values prove."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pulp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from oasis.model.errors import SolverError
from oasis.solvers import Status, highs
from oasis.solvers.arrays import ArrayModel, RowArrays
from oasis.solvers.budget import Budget
from oasis.solvers.lp import Relaxation, weak_duality_bound
from tests.linear import as_arrays
from tests.strategies import fewer


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


def test_a_model_is_read_with_its_rows_and_limits():
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


def test_limits_are_never_widened_and_fixed_variables_become_part_of_limits_and_costs():
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
def test_what_is_left_without_fixed_variables_is_worth_the_same(limits, rows, objective):
    found = ArrayModel.of(model()).limited(limits)
    part = found.without_fixed()
    assert len(part.names) == max(1, len(found.names) - len(found.fixed))
    assert rows is None or read(part) == rows
    solution = highs.solve(part)
    assert solution.objective == objective
    assert solution.status is (Status.INFEASIBLE if objective is None else Status.OPTIMAL)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_what_is_below_a_level_stays_and_nothing_else(counts):
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


# -- linear programs -------------------------------------------------------------------------------

SEEDS = st.integers(0, 2**32 - 1)
VARIABLES, MOST = 5, 3


def drawn(rng: np.random.Generator, category: str) -> pulp.LpProblem:
    """A model in which all variables may be 0, with a constant in its objective."""
    problem = pulp.LpProblem("drawn", pulp.LpMaximize)
    x = [problem.add_variable(f"x{k}", 0, MOST, category) for k in range(VARIABLES)]
    problem.setObjective(pulp.lpDot((10.0 ** rng.integers(-3, 5, VARIABLES)).tolist(), x) + 7)
    return problem


def a_few_rows(rng: np.random.Generator, problem: pulp.LpProblem) -> list[pulp.LpConstraint]:
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


@given(SEEDS)
@example(33065)  # HiGHS, with its tolerance of the costs as they are, ends below the optimum
@fewer(2)
def test_rows_lower_the_bound_to_that_of_a_cold_solve(seed):
    made = {}
    for category in (pulp.LpInteger, pulp.LpContinuous):
        rng = np.random.default_rng(seed)
        problem = drawn(rng, category)
        grown = Relaxation(ArrayModel.of(problem))
        bounds = []
        for _ in range(4):
            added = a_few_rows(rng, problem)
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


def test_rows_that_nothing_satisfies_are_an_error():
    problem = drawn(np.random.default_rng(0), pulp.LpInteger)
    relaxation = Relaxation(ArrayModel.of(problem))
    relaxation.add(as_arrays(problem, [pulp.lpSum(problem.variables()) <= -1]))
    with pytest.raises(SolverError, match=r"Infeasible"):
        relaxation.solve(Budget())


def test_no_time_is_no_bound_and_time_again_is_the_bound():
    """HiGHS counts over all solves, and a solve without time must not claim one."""
    rng = np.random.default_rng(2)
    most, room = np.ones(300), np.full(200, 30.0)
    model = ArrayModel.packing(rng.random(300), most, rng.random((200, 300)), room)
    relaxation = Relaxation(model)
    assert relaxation.solve(Budget(0.0)) is None
    solution = relaxation.solve(Budget(60.0))
    assert solution is not None
    whole = replace(model, is_whole=np.zeros(300, bool))
    assert solution.bound == pytest.approx(highs.solve(whole).bound, rel=1e-9)


def test_the_bound_is_not_below_what_is_better_by_less_than_the_tolerance_of_highs():
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


def test_a_relaxation_grows_by_rows_and_its_duals_price_them():
    """max 3x + 2y, 0 <= x, y <= 10: with x + y <= 4 and then x <= 1, y is worth 2 and x 1 more."""
    total = RowArrays.of_table(np.ones((1, 2)), np.array([4.0]))
    few = replace(RowArrays.of_table(-np.eye(2)[:1], np.array([9.0])), lower=np.array([-1.0]))
    limits = np.array([3.0, 2.0]), 0.0, np.zeros(2), np.full(2, 10.0)
    model = ArrayModel(["x", "y"], *limits, np.array([True, False]), total, maximise=True)
    relaxation = Relaxation(model)
    none = RowArrays.of_terms([], *np.zeros((2, 0)))
    for added, values, duals in ((none, (4.0, 0.0), [3.0]), (few, (1.0, 3.0), [2.0, 1.0])):
        relaxation.add(added)
        found = relaxation.solve(Budget())
        assert found is not None
        assert found.values == pytest.approx(dict(zip("xy", values, strict=True)))
        assert relaxation.duals == pytest.approx(duals)


# -- weak duality ----------------------------------------------------------------------------------


def model_of(rng: np.random.Generator, *, maximise: bool) -> ArrayModel:
    """A few variables within small limits, and rows with a limit on either side or on both."""
    size, number = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    table = rng.integers(-2, 4, (number, size)).astype(float)
    ends = np.sort(rng.integers(-6, 9, (2, number)).astype(float), axis=0)
    lower, upper = np.where(rng.random((2, number)) < 0.4, [[-np.inf], [np.inf]], ends)
    rows = RowArrays(
        np.arange(number + 1) * size, np.tile(np.arange(size), number), table.ravel(), lower, upper
    )
    least = rng.integers(-1, 2, size).astype(float)
    return ArrayModel(
        *([f"x{k}" for k in range(size)], rng.normal(size=size), float(rng.normal())),
        *(least, least + rng.integers(0, 3, size), np.zeros(size, bool), rows),
        maximise=maximise,
    )


@pytest.mark.parametrize("maximise", [True, False])
@given(SEEDS)
def test_no_point_within_the_limits_is_beyond_the_bound(maximise, seed):
    rng = np.random.default_rng(seed)
    model = model_of(rng, maximise=maximise)
    duals = rng.normal(size=len(model.rows.lower)) * rng.integers(0, 2, len(model.rows.lower))
    bound = weak_duality_bound(model, duals)
    assert np.isfinite(bound), "all variables have limits"
    sign = 1.0 if maximise else -1.0
    for point in product(*map(np.arange, model.lower, model.upper + 0.5, [0.5] * len(model.costs))):
        sums = model.rows.sums(model.rows.values * np.array(point)[model.rows.columns])
        if (sums >= model.rows.lower).all() and (sums <= model.rows.upper).all():
            assert sign * (model.constant + model.costs @ np.array(point)) <= sign * bound + 1e-9


def one_row(upper: float) -> ArrayModel:
    """max 2 + 3x, where x is at least 0 and at most what its one row says."""
    row = RowArrays(
        np.array([0, 1]), np.array([0]), np.ones(1), np.array([-np.inf]), np.array([upper])
    )
    limits = np.zeros(1), np.full(1, np.inf)
    return ArrayModel(["x"], np.array([3.0]), 2.0, *limits, np.zeros(1, bool), row, maximise=True)


@pytest.mark.parametrize(
    ("price", "bound"), [(3.0, 14.0), (4.0, 18.0), (2.999, np.inf), (0.0, np.inf), (-1.0, np.inf)]
)
def test_a_price_that_leaves_a_gain_without_limit_proves_nothing(price, bound):
    assert weak_duality_bound(one_row(4.0), np.array([price])) == pytest.approx(bound)
    assert weak_duality_bound(one_row(np.inf), np.array([price])) == np.inf
