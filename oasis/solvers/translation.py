"""A PuLP model in HiGHS's own form, which knows how to maximise."""

from __future__ import annotations

import math
from collections.abc import Iterable

import highspy
import numpy as np
import pulp

from oasis.model.rounding import FloatArray


def objective_scale(problem: pulp.LpProblem) -> float:
    """Power of two that brings the largest cost to about 1: HiGHS's tolerances are absolute."""
    largest = max((abs(c) for c in (problem.objective or {}).values()), default=0.0)
    return 2.0 ** -math.frexp(largest)[1] if largest else 1.0


def translated(
    problem: pulp.LpProblem,
    variables: list[pulp.LpVariable],
    scale: float,
    row_scale: float = 1.0,
) -> highspy.HighsLp:
    """HiGHS's form of a PuLP model, its objective multiplied by `scale`.

    Rows with a coefficient that is no whole number are multiplied by `row_scale`, a power of two.
    """
    index = {variable: k for k, variable in enumerate(variables)}
    rows = problem.constraints()
    entries = [[(index[v], c) for v, c in row.items() if c != 0] for row in rows]
    factors = [1.0 if all(float(c).is_integer() for _, c in row) else row_scale for row in entries]
    objective = problem.objective or pulp.LpAffineExpression()
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(variables), len(rows)
    maximise = problem.sense == pulp.LpMaximize
    lp.sense_ = highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize
    lp.offset_ = objective.constant * scale
    lp.col_cost_ = np.array([objective.get(v, 0.0) for v in variables], float) * scale
    lp.col_lower_ = _limits((v.lowBound for v in variables), -math.inf)
    lp.col_upper_ = _limits((v.upBound for v in variables), math.inf)
    lp.row_lower_ = _limits((row.getLb() for row in rows), -math.inf) * factors
    lp.row_upper_ = _limits((row.getUb() for row in rows), math.inf) * factors
    kinds = highspy.HighsVarType
    lp.integrality_ = [
        kinds.kInteger if v.cat == pulp.LpInteger else kinds.kContinuous for v in variables
    ]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *map(len, entries)], dtype=np.int32)
    lp.a_matrix_.index_ = np.array([k for row in entries for k, _ in row], np.int32)
    lp.a_matrix_.value_ = np.array(
        [c * factor for row, factor in zip(entries, factors, strict=True) for _, c in row], float
    )
    return lp


def _limits(values: Iterable[float | None], missing: float) -> FloatArray:
    return np.array([missing if value is None else value for value in values], float)
