"""A linear program that grows by columns and rows and is solved again from where it was.

``max c x`` subject to ``A x <= b``, ``x >= 0``, with HiGHS: the restricted master of a column
generation. New columns keep the primal simplex basis feasible, new rows the dual one, so that every
solve starts warm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import highspy
import numpy as np

from oasis.model.errors import SolverError
from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers.answers import accept
from oasis.solvers.budget import Budget

_MODEL = highspy.HighsModelStatus
_DUAL_SIMPLEX, _PRIMAL_SIMPLEX = 1, 4
NO_ITERATION_LIMIT = 2**31 - 1  # HiGHS's own default

# Work of one solve and of one simplex iteration in it, in units of about a second, measured.
LP_WORK = 1e-3
ITERATION_WORK, ITERATION_WORK_PER_ROW = 2e-5, 1e-7

_EMPTY = (0, np.empty(0, np.int32), np.empty(0))


@dataclass(frozen=True, slots=True)
class LpColumn:
    """A variable: its objective coefficient and its non-zero entries by row."""

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
    """A maximisation in standard inequality form, grown row by row and column by column.

    Parameters
    ----------
    upper : iterable of float
        Right-hand sides of the first rows.
    """

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
        self._strategy = _DUAL_SIMPLEX

    def add_columns(self, columns: Iterable[LpColumn]) -> None:
        """Add non-negative variables."""
        for column in columns:
            entries = (len(column.rows), column.rows.astype(np.int32), column.values)
            accept(self._highs.addCol(column.cost, 0.0, math.inf, *entries), "refused a column")
            self.columns += 1

    def add_table(self, table: FloatArray) -> None:
        """Add non-negative variables that cost nothing, from their entries (columns, rows)."""
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
        """Delete variables; those that follow move up."""
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
            duals=np.maximum(0.0, np.array(solution.row_dual, dtype=np.float64)),
        )


def run_to_optimum(solver: highspy.Highs, budget: Budget) -> bool:
    """Solve a linear program; False if the budget is spent first.

    Raises
    ------
    SolverError
        If HiGHS fails, or finds it infeasible or unbounded.
    """
    iteration = ITERATION_WORK + ITERATION_WORK_PER_ROW * solver.getNumRow()
    seconds, iterations = math.inf, NO_ITERATION_LIMIT
    if not budget.is_repeatable:
        # HiGHS counts its limit over all runs
        seconds = solver.getRunTime() + budget.left_without_news
    elif math.isfinite(budget.left_without_news):
        iterations = math.ceil(budget.left_without_news / iteration)
    accept(solver.setOptionValue("time_limit", seconds), "refused a time limit")
    accept(
        solver.setOptionValue("simplex_iteration_limit", iterations), "refused an iteration limit"
    )
    accept(solver.run(), "refused to solve")
    budget.charge(LP_WORK + iteration * solver.getInfo().simplex_iteration_count)
    found = solver.getModelStatus()
    if found in (_MODEL.kTimeLimit, _MODEL.kIterationLimit, _MODEL.kInterrupt):
        return False
    if found not in (_MODEL.kOptimal, _MODEL.kModelEmpty):
        text = solver.modelStatusToString(found)
        raise SolverError(f"HiGHS ended the linear program with the status {text!r}")
    return True
