"""A PuLP model in HiGHS's form, and what is read of HiGHS's answers."""

from __future__ import annotations

import math

import highspy
import pulp
import pytest

from oasis.model.errors import SolverError
from oasis.solvers import Solution, Status, knapsack
from oasis.solvers.answers import accept, check_proof, is_closed, objective_scale, translate
from oasis.solvers.arrays import ArrayModel
from oasis.solvers.budget import Budget, WorkCounter


def model() -> pulp.LpProblem:
    """Maximise 48 x + y + 5 with 1 <= x + 2 y <= .., x whole."""
    problem = pulp.LpProblem("some", pulp.LpMaximize)
    x = problem.add_variable("x", 0, 3, pulp.LpInteger)
    y = problem.add_variable("y", None, None, pulp.LpContinuous)
    problem.setObjective(48 * x + y + 5)
    problem.addConstraint(x + 2 * y >= 1)
    problem.addConstraint(x - y <= 4)
    return problem


def test_a_model_keeps_its_sense_limits_and_entries() -> None:
    problem = model()
    lp = translate(ArrayModel.of(problem), 0.5)
    assert lp.sense_ == highspy.ObjSense.kMaximize
    assert (lp.offset_, list(lp.col_cost_)) == (2.5, [24.0, 0.5])
    assert (list(lp.col_lower_), list(lp.col_upper_)) == ([0.0, -math.inf], [3.0, math.inf])
    assert (list(lp.row_lower_), list(lp.row_upper_)) == ([1.0, -math.inf], [math.inf, 4.0])
    assert list(lp.a_matrix_.value_) == [1.0, 2.0, 1.0, -1.0]
    kinds = highspy.HighsVarType
    assert list(lp.integrality_) == [kinds.kInteger, kinds.kContinuous]


def test_the_largest_cost_is_scaled_to_about_one_by_a_power_of_two() -> None:
    scale = objective_scale(ArrayModel.of(model()))
    assert math.frexp(scale)[0] == 0.5
    assert 0.5 <= 48 * scale <= 1.0
    assert objective_scale(ArrayModel.of(pulp.LpProblem("empty", pulp.LpMaximize))) == 1.0


def test_an_optimum_away_from_its_bound_is_no_proof() -> None:
    agreed, apart = (Solution(Status.OPTIMAL, 10.0, b, 0.0, {}) for b in (10.000001, 10.1))
    assert is_closed(agreed, 1.0)
    assert not is_closed(apart, 1.0)
    assert is_closed(apart, 1.0, abs(apart.bound - apart.objective))
    check_proof(agreed, 1.0)
    with pytest.raises(SolverError, match="has not proved"):
        check_proof(apart, 1.0)
    assert is_closed(Solution(Status.TIME_LIMIT, 1.0, 9.0, 8.0, {}), 1.0)


def test_what_highs_refuses_is_named() -> None:
    accept(highspy.HighsStatus.kWarning, "refused this")
    with pytest.raises(SolverError, match="HiGHS refused that"):
        accept(highspy.HighsStatus.kError, "refused that")


def test_knapsacks_are_charged_but_never_cut_short() -> None:
    import numpy as np

    budget = Budget(0.0, WorkCounter())
    values, shares = np.array([3.0, 2.0]), np.array([[0.6], [0.5]])
    bound, units = knapsack.knapsack(values, shares, np.array([1, 2]), 1.0, budget)
    assert (bound, units.tolist()) == (pytest.approx(4.0), [0, 2])
    assert budget.elapsed > 0


def test_only_rows_with_fractions_are_scaled() -> None:
    problem = pulp.LpProblem("rows", pulp.LpMaximize)
    x, y = (problem.add_variable(name, 0, 3, pulp.LpInteger) for name in "xy")
    problem.addConstraint(2 * x + 3 * y <= 5)
    problem.addConstraint(0.5 * x + 3 * y <= 5.5)
    problem.addConstraint(0.25 * x + y >= 0.75)
    lp = translate(ArrayModel.of(problem), 1.0, 4.0)
    assert list(lp.a_matrix_.value_) == [2.0, 3.0, 2.0, 12.0, 1.0, 4.0]
    assert list(lp.row_upper_) == [5.0, 22.0, math.inf]
    assert list(lp.row_lower_) == [-math.inf, -math.inf, 3.0]
