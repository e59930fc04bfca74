"""The linear relaxation of a model that grows by cutting planes, with HiGHS.

New rows keep the dual simplex basis feasible, so that every solve starts warm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import highspy
import numpy as np
import pulp

from oasis.model.rounding import FloatArray
from oasis.solvers import Solution, Status, highs
from oasis.solvers.answers import accept
from oasis.solvers.arrays import ArrayModel, RowArrays
from oasis.solvers.budget import Budget
from oasis.solvers.lp import run_to_optimum
from oasis.solvers.translation import objective_scale, translated

_CONTINUOUS = highspy.HighsVarType.kContinuous


class Relaxation:
    """A model without its integrality; the model itself is not modified.

    Parameters
    ----------
    problem : pulp.LpProblem or ArrayModel
        Its rows so far; later ones come through `add`, or through `append` if it is in arrays.
    scale : float
        What the objective is multiplied by for HiGHS, whose tolerance of dual values is absolute:
        the larger, the closer is a solution's value to the bound that it stands for.

    Raises
    ------
    SolverError
        If HiGHS refuses the model.
    """

    def __init__(self, problem: pulp.LpProblem | ArrayModel, scale: float = 1.0) -> None:
        if isinstance(problem, ArrayModel):
            model, variables = problem, []
        else:
            model, variables = ArrayModel.of(problem), problem.variables()
        self._names = model.names
        self._index = {variable: k for k, variable in enumerate(variables)}
        self._scale = objective_scale(model) * scale
        self._highs = highs.configured(None, None, presolve=True, seed=0)
        lp = translated(model, self._scale)
        lp.integrality_ = [_CONTINUOUS] * len(self._names)
        accept(self._highs.passModel(lp), "refused the model")

    def add(self, rows: Iterable[pulp.LpConstraint]) -> None:
        """Add rows over variables of the model."""
        for row in rows:
            entries = [(self._index[v], c) for v, c in row.items() if c != 0]
            columns = np.array([k for k, _ in entries], np.int32)
            lower = -math.inf if row.getLb() is None else row.getLb()
            upper = math.inf if row.getUb() is None else row.getUb()
            values = np.array([c for _, c in entries])
            accept(self._highs.addRow(lower, upper, len(entries), columns, values), "refused a row")

    def append(self, rows: RowArrays) -> None:
        """Add rows whose columns are numbers of variables of the model."""
        entries = rows.starts[:-1].astype(np.int32), rows.columns.astype(np.int32), rows.values
        number = len(rows.lower)
        if number:
            added = self._highs.addRows(number, rows.lower, rows.upper, len(rows.values), *entries)
            accept(added, "refused rows")

    @property
    def duals(self) -> FloatArray:
        """Sizes of the dual values of all rows in the last solution, shape (M,).

        For a row with one limit, that says which sign the value has.
        """
        duals: FloatArray = np.abs(np.array(self._highs.getSolution().row_dual)) / self._scale
        return duals

    def solve(self, budget: Budget) -> Solution | None:
        """Solve to optimality; None if the budget is spent first.

        Raises
        ------
        SolverError
            If HiGHS fails, or finds the relaxation infeasible or unbounded.
        """
        if not run_to_optimum(self._highs, budget):
            return None
        values = self._highs.getSolution().col_value
        objective = float(self._highs.getInfo().objective_function_value) / self._scale
        named = dict(zip(self._names, map(float, values), strict=True))
        return Solution(Status.OPTIMAL, objective, objective, 0.0, named)
