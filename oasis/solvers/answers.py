"""Answers of HiGHS as plain data: its model status, and bounds with the right sign."""

from __future__ import annotations

import math
from typing import Any

import highspy
import numpy as np

from oasis.model.errors import SolverError
from oasis.solvers import PROOF, Solution, Status, relative_gap
from oasis.solvers.arrays import ArrayModel


def objective_scale(model: ArrayModel) -> float:
    """Return the power of two that brings the largest cost to about 1, for absolute tolerances."""
    largest = float(np.abs(model.costs).max(initial=0.0))
    return 2.0 ** -math.frexp(largest)[1] if largest else 1.0


def translate(model: ArrayModel, scale: float, row_scale: float = 1.0) -> highspy.HighsLp:
    """Return the model in the form of HiGHS, with the objective multiplied by `scale`.

    Rows with a coefficient that is no whole number are multiplied by `row_scale`, a power of two.
    """
    rows = model.rows
    # Rows of whole numbers, such as covers, are exact as they are.
    has_fraction = rows.sums((rows.values != np.floor(rows.values)).astype(float)) > 0
    factors = np.where(has_fraction, row_scale, 1.0)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.names), len(rows.lower)
    lp.sense_ = highspy.ObjSense.kMaximize if model.maximise else highspy.ObjSense.kMinimize
    lp.offset_ = model.constant * scale
    lp.col_cost_ = model.costs * scale
    lp.col_lower_, lp.col_upper_ = model.lower, model.upper
    lp.row_lower_, lp.row_upper_ = rows.lower * factors, rows.upper * factors
    kinds = highspy.HighsVarType
    lp.integrality_ = [
        kinds.kInteger if is_whole else kinds.kContinuous for is_whole in model.is_whole.tolist()
    ]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = rows.starts.astype(np.int32)
    lp.a_matrix_.index_ = rows.columns.astype(np.int32)
    lp.a_matrix_.value_ = rows.values * factors[rows.row_of]
    return lp


_MODEL = highspy.HighsModelStatus
_STATUS = {
    _MODEL.kOptimal: Status.OPTIMAL,
    _MODEL.kModelEmpty: Status.OPTIMAL,
    _MODEL.kTimeLimit: Status.TIME_LIMIT,
    _MODEL.kSolutionLimit: Status.NODE_LIMIT,  # the node limit is the only one of its kind set here
    _MODEL.kInterrupt: Status.INTERRUPTED,
    _MODEL.kInfeasible: Status.INFEASIBLE,
    _MODEL.kUnbounded: Status.UNBOUNDED,
    _MODEL.kUnboundedOrInfeasible: Status.INFEASIBLE_OR_UNBOUNDED,
}


def accept(status: Any, what: str) -> None:
    """Raise `SolverError` unless HiGHS's status is good; `what` says what HiGHS did, if not."""
    # kWarning is what a time limit or an interrupt comes back as.
    if status not in (highspy.HighsStatus.kOk, highspy.HighsStatus.kWarning):
        raise SolverError(f"HiGHS {what} ({status})")


def bound_correction(highs: highspy.Highs) -> float:
    """Return what to add to the bound that HiGHS reports for a mixed-integer model.

    HiGHS discards nodes that are better than its incumbent by no more than its feasibility
    tolerance, even if no gap is allowed, and then reports the value of the incumbent as the bound.
    """
    tolerance: float = highs.getOptionValue("mip_feasibility_tolerance")[1]
    is_maximum = highs.getObjectiveSense()[1] == highspy.ObjSense.kMaximize
    return tolerance if is_maximum else -tolerance


def solution_of(highs: highspy.Highs, names: list[str], scale: float, *, is_mip: bool) -> Solution:
    """Return the solution of a finished solve; objective and bound are divided by `scale`."""
    model_status = highs.getModelStatus()
    if model_status not in _STATUS:
        raise SolverError(
            f"HiGHS ended with the status {highs.modelStatusToString(model_status)!r}"
        )
    status = _STATUS[model_status]
    if model_status == _MODEL.kModelEmpty:
        # A model without columns is not solved: its value is the constant of the objective.
        offset = highs.getObjectiveOffset()[1] / scale
        return Solution(status, offset, offset, 0.0, {})
    info = highs.getInfo()
    is_feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    objective, values = None, {}
    # A solve that was cut short may have no solution yet; its
    # objective is then a meaningless number.
    if is_feasible or status is Status.OPTIMAL:
        objective = info.objective_function_value / scale
        values = dict(zip(names, map(float, highs.getSolution().col_value), strict=True))
    worst = math.inf if highs.getObjectiveSense()[1] == highspy.ObjSense.kMaximize else -math.inf
    if is_mip:
        bound = (info.mip_dual_bound + bound_correction(highs)) / scale
    elif status is Status.OPTIMAL and objective is not None:
        # HiGHS's tolerance of dual values can leave it a little short of the optimum.
        bound = objective
    else:
        bound = worst
    return Solution(status, objective, bound, relative_gap(objective, bound), values)


def is_closed(solution: Solution, scale: float, moved: float = 0.0) -> bool:
    """Whether `solution` meets its bound up to rounding and `moved`; True if not called optimal."""
    if solution.status is not Status.OPTIMAL or solution.objective is None:
        return True
    # Relative to the objective, but never tighter than HiGHS's absolute tolerance at this scale.
    allowed = PROOF * max(1.0 / scale, abs(solution.objective)) + moved
    return abs(solution.bound - solution.objective) <= allowed


def check_proof(solution: Solution, scale: float, moved: float = 0.0) -> None:
    """Raise `SolverError` unless `is_closed`; `moved`: by how much the bound was relaxed."""
    if not is_closed(solution, scale, moved):
        text = f"objective {solution.objective:.12g} against bound {solution.bound:.12g}"
        raise SolverError(f"HiGHS calls a solution optimal that it has not proved: {text}")
