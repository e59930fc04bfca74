"""Linear programs that grow and are solved again, their relaxations, and the bounds they prove."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import highspy
import numpy as np

from oasis.model.errors import SolverError
from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers import Solution, Status, highs, relative_gap
from oasis.solvers.answers import accept, objective_scale, translate
from oasis.solvers.arrays import ArrayModel, RowArrays
from oasis.solvers.budget import Budget


def weak_duality_bound(model: ArrayModel, duals: FloatArray) -> float:
    """Return the bound on a linear program that follows from dual values by weak duality.

    Parameters
    ----------
    model : ArrayModel
        With M rows; it does not matter which variables are whole numbers.
    duals : (M,) float array
        By how much the optimum grows with the limit of each row. Where a value has a sign for which
        its row has no limit, 0 takes its place.
    """
    sign, rows = (1.0 if model.maximise else -1.0), model.rows
    prices = sign * duals
    # A price on a side without a limit would make the bound infinite; 0 is always allowed.
    prices[np.isinf(np.where(prices > 0, rows.upper, rows.lower))] = 0.0
    charged = np.bincount(rows.columns, rows.values * prices[rows.row_of], len(model.costs))
    # Weak duality holds for any prices, so rounding in the duals
    # may weaken this bound, never break it.
    terms = [
        *_most(prices, rows.lower, rows.upper),
        *_most(sign * model.costs - charged, model.lower, model.upper),
    ]
    return sign * math.fsum([sign * model.constant, *terms])


def _most(factors: FloatArray, lower: FloatArray, upper: FloatArray) -> list[float]:
    """Return the largest value of each factor times a number from `lower` to `upper`."""
    ends = np.where(factors > 0, upper, lower)
    most = np.multiply(factors, ends, out=np.zeros(len(ends)), where=factors != 0)  # 0 * inf is 0
    terms: list[float] = most.tolist()
    return terms


_MODEL = highspy.HighsModelStatus
_DUAL_SIMPLEX, _PRIMAL_SIMPLEX = 1, 4  # HiGHS's own numbers
NO_ITERATION_LIMIT = 2**31 - 1  # HiGHS's own default

# Work of one solve and of one simplex iteration in it, in units of about a second, measured.
LP_WORK = 1e-3
ITERATION_WORK, ITERATION_WORK_PER_ROW = 2e-5, 1e-7

_EMPTY = (0, np.empty(0, np.int32), np.empty(0))


@dataclass(frozen=True, slots=True)
class LpColumn:
    """A variable of a linear program: objective coefficient, and non-zero entries by row."""

    cost: float
    rows: IntArray
    values: FloatArray


@dataclass(frozen=True, slots=True)
class LpSolution:
    """An optimal solution.

    Parameters
    ----------
    objective : float
        Value of the solution.
    values : (columns,) float array
        The variables.
    duals : (rows,) float array
        Non-negative dual values of the rows.
    """

    objective: float
    values: FloatArray
    duals: FloatArray


class ColumnLp:
    """A linear program, max c x with A x <= b and x >= 0, to which rows and columns are added."""

    def __init__(self, upper: Iterable[float]) -> None:
        self._highs = highspy.Highs()
        for name, value in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
            self._highs.setOptionValue(name, value)
        accept(self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize), "refused the sense")
        self.rows = 0
        self.columns = 0
        self._strategy = _PRIMAL_SIMPLEX
        self.add_rows(upper)

    def add_rows(self, upper: Iterable[float]) -> None:
        """Add rows without entries, ``0 <= upper``; later columns may use them."""
        for limit in upper:
            accept(self._highs.addRow(-math.inf, float(limit), *_EMPTY), "refused a row")
            self.rows += 1

    def add_row(self, upper: float, columns: IntArray, values: FloatArray) -> None:
        """Add one row with entries in columns that exist."""
        entries = (len(columns), columns.astype(np.int32), values)
        accept(self._highs.addRow(-math.inf, float(upper), *entries), "refused a row")
        self.rows += 1
        # The last basis breaks the new row and stays dual
        # feasible: the dual simplex goes on from it.
        self._strategy = _DUAL_SIMPLEX

    def add_columns(self, columns: Iterable[LpColumn]) -> None:
        """Add non-negative variables."""
        for column in columns:
            entries = (len(column.rows), column.rows.astype(np.int32), column.values)
            accept(self._highs.addCol(column.cost, 0.0, math.inf, *entries), "refused a column")
            self.columns += 1

    def add_table(self, table: FloatArray) -> None:
        """Add non-negative variables outside the objective; ``table[k]`` has the entries of one."""
        columns, rows = np.nonzero(table)
        number = len(table)
        starts = np.searchsorted(columns, np.arange(number)).astype(np.int32)
        accept(
            self._highs.addCols(
                number,
                np.zeros(number),
                np.zeros(number),
                np.full(number, math.inf),
                len(rows),
                starts,
                rows.astype(np.int32),
                table[columns, rows],
            ),
            "refused columns",
        )
        self.columns += number

    def remove_columns(self, columns: IntArray) -> None:
        """Delete the variables with these indices; the indices of later ones decrease."""
        # HiGHS wants them in increasing order.
        indices = np.sort(columns).astype(np.int32)
        if indices.size:
            accept(self._highs.deleteCols(len(indices), indices), "refused to delete columns")
            self.columns -= len(indices)

    def solve(self, budget: Budget | None = None) -> LpSolution | None:
        """Solve to optimality from the last basis; None if the budget is spent first.

        Raises
        ------
        SolverError
            If HiGHS fails or the program is unbounded.
        """
        self._highs.setOptionValue("simplex_strategy", self._strategy)
        self._strategy = _PRIMAL_SIMPLEX
        if not run_to_optimum(self._highs, budget or Budget()):
            return None
        solution = self._highs.getSolution()
        return LpSolution(
            objective=float(self._highs.getInfo().objective_function_value),
            values=np.array(solution.col_value, dtype=np.float64),
            # HiGHS may miss 0 by its tolerance; a negative price would be no price.
            duals=np.maximum(0.0, np.array(solution.row_dual, dtype=np.float64)),
        )


def run_to_optimum(solver: highspy.Highs, budget: Budget) -> bool:
    """Solve a linear program and charge the work; return False if the budget is spent first."""
    iteration = ITERATION_WORK + ITERATION_WORK_PER_ROW * solver.getNumRow()
    seconds, iterations = math.inf, NO_ITERATION_LIMIT
    if not budget.is_repeatable:
        # HiGHS counts its limit over all runs
        seconds = solver.getRunTime() + budget.left_without_report
    elif math.isfinite(budget.left_without_report):
        iterations = math.ceil(budget.left_without_report / iteration)
    accept(solver.setOptionValue("time_limit", seconds), "refused a time limit")
    accept(
        solver.setOptionValue("simplex_iteration_limit", iterations), "refused an iteration limit"
    )
    accept(solver.run(), "refused to solve")
    budget.charge(LP_WORK + iteration * solver.getInfo().simplex_iteration_count)
    status = solver.getModelStatus()
    if status in (_MODEL.kTimeLimit, _MODEL.kIterationLimit, _MODEL.kInterrupt):
        return False
    if status not in (_MODEL.kOptimal, _MODEL.kModelEmpty):
        text = solver.modelStatusToString(status)
        raise SolverError(f"HiGHS ended the linear program with the status {text!r}")
    return True


_CONTINUOUS = highspy.HighsVarType.kContinuous


class Relaxation:
    """The linear relaxation of a model, solved again as rows are added; the model stays as is."""

    def __init__(self, model: ArrayModel) -> None:
        self._model = model
        # HiGHS's tolerance of dual values is absolute: the larger the costs, the tighter the bound.
        self._scale = objective_scale(model) * highs.WIDE_SCALE
        self._highs = highs.new_solver(None, None, presolve=True, seed=0)
        lp = translate(model, self._scale)
        lp.integrality_ = [_CONTINUOUS] * len(model.names)
        accept(self._highs.passModel(lp), "refused the model")

    def add(self, rows: RowArrays) -> None:
        """Add rows; their columns are indices of variables of the model."""
        if rows:
            entries = rows.starts[:-1].astype(np.int32), rows.columns.astype(np.int32), rows.values
            limits = rows.lower, rows.upper
            added = self._highs.addRows(len(rows), *limits, len(rows.values), *entries)
            accept(added, "refused rows")
            self._model = replace(self._model, rows=self._model.rows.followed_by(rows))

    @property
    def duals(self) -> FloatArray:
        """Absolute values of the duals of all rows in the last solution, shape (M,).

        For a row with one limit, that says which sign the value has.
        """
        duals: FloatArray = np.abs(np.array(self._highs.getSolution().row_dual)) / self._scale
        return duals

    def solve(self, budget: Budget) -> Solution | None:
        """Solve to optimality; None if the budget is spent first.

        The bound is what the dual values prove, whatever HiGHS's tolerance of them.

        Raises
        ------
        SolverError
            If HiGHS fails, or finds the relaxation infeasible or unbounded.
        """
        if not run_to_optimum(self._highs, budget):
            return None
        solution = self._highs.getSolution()
        objective = float(self._highs.getInfo().objective_function_value) / self._scale
        bound = weak_duality_bound(self._model, np.array(solution.row_dual) / self._scale)
        named = dict(zip(self._model.names, map(float, solution.col_value), strict=True))
        return Solution(Status.OPTIMAL, objective, bound, relative_gap(objective, bound), named)
