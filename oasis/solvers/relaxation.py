"""The linear relaxation of a model that grows by cutting planes, with HiGHS.

New rows keep the dual simplex basis feasible, so that every solve starts warm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import highspy
import numpy as np
import pulp

from oasis.model.rounding import FloatArray
from oasis.solvers import Solution, Status, highs, relative_gap
from oasis.solvers.answers import accept
from oasis.solvers.arrays import ArrayModel, RowArrays, RowReader
from oasis.solvers.budget import Budget
from oasis.solvers.lp import run_to_optimum
from oasis.solvers.translation import objective_scale, translated
from oasis.solvers.weak_duality import weak_duality_bound

_CONTINUOUS = highspy.HighsVarType.kContinuous


class Relaxation:
    """A model without its integrality; the model itself is not modified.

    Parameters
    ----------
    problem : pulp.LpProblem or ArrayModel
        Its rows so far; later ones come through `add`, or through `append` if it is in arrays.

    Raises
    ------
    SolverError
        If HiGHS refuses the model.
    """

    def __init__(self, problem: pulp.LpProblem | ArrayModel) -> None:
        if isinstance(problem, ArrayModel):
            model, variables = problem, []
        else:
            model, variables = ArrayModel.of(problem), problem.variables()
        self._model = model
        self._reader = RowReader(variables)
        # HiGHS's tolerance of dual values is absolute: the larger the costs, the tighter the bound.
        self._scale = objective_scale(model) * highs.WIDE_SCALE
        self._highs = highs.configured(None, None, presolve=True, seed=0)
        lp = translated(model, self._scale)
        lp.integrality_ = [_CONTINUOUS] * len(model.names)
        accept(self._highs.passModel(lp), "refused the model")

    def add(self, rows: Iterable[pulp.LpConstraint]) -> None:
        """Add rows over variables of the model."""
        self.append(self._reader.read(list(rows)))

    def append(self, rows: RowArrays) -> None:
        """Add rows whose columns are numbers of variables of the model."""
        number = len(rows.lower)
        if number:
            entries = rows.starts[:-1].astype(np.int32), rows.columns.astype(np.int32), rows.values
            added = self._highs.addRows(number, rows.lower, rows.upper, len(rows.values), *entries)
            accept(added, "refused rows")
            self._model = replace(self._model, rows=self._model.rows.followed_by(rows))

    @property
    def duals(self) -> FloatArray:
        """Sizes of the dual values of all rows in the last solution, shape (M,).

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
        found = self._highs.getSolution()
        objective = float(self._highs.getInfo().objective_function_value) / self._scale
        bound = weak_duality_bound(self._model, np.array(found.row_dual) / self._scale)
        named = dict(zip(self._model.names, map(float, found.col_value), strict=True))
        return Solution(Status.OPTIMAL, objective, bound, relative_gap(objective, bound), named)
