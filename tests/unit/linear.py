"""Linear models for the tests, from PuLP to arrays and back."""

from __future__ import annotations

import numpy as np
import pulp

from oasis.solvers.arrays import ArrayModel, RowArrays


def as_pulp(model: ArrayModel) -> pulp.LpProblem:
    """The same model, for other solvers and for a look at its rows."""
    problem = pulp.LpProblem("same", pulp.LpMaximize if model.maximise else pulp.LpMinimize)
    kinds = [pulp.LpInteger if whole else pulp.LpContinuous for whole in model.is_whole.tolist()]
    limits = zip(model.names, model.lower.tolist(), model.upper.tolist(), kinds, strict=True)
    variables = [problem.add_variable(*given) for given in limits]
    costs = zip(variables, model.costs.tolist(), strict=True)
    problem.setObjective(pulp.LpAffineExpression(costs, model.constant))
    rows = model.rows
    for k, (least, most) in enumerate(zip(rows.lower.tolist(), rows.upper.tolist(), strict=True)):
        entries = slice(rows.starts[k], rows.starts[k + 1])
        columns, values = rows.columns[entries].tolist(), rows.values[entries].tolist()
        terms = [(variables[c], value) for c, value in zip(columns, values, strict=True)]
        if np.isfinite(least):
            problem.addConstraint(pulp.LpAffineExpression(terms) >= least)
        if np.isfinite(most):
            problem.addConstraint(pulp.LpAffineExpression(terms) <= most)
    return problem


def as_arrays(problem: pulp.LpProblem, rows: list[pulp.LpConstraint]) -> RowArrays:
    """Rows over the variables of a problem."""
    longer = problem.copy()
    for row in rows:
        longer.addConstraint(row)
    read = ArrayModel.of(longer).rows
    is_new = np.arange(len(read)) >= len(problem.constraints())
    return read.chosen(is_new, np.ones(len(read.values), bool))
