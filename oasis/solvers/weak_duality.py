"""The bound that dual values of a linear program prove, however exact they are.

A solver stops once no reduced cost is wrong by more than its tolerance, so that the value of its
solution can be a little below the optimum of a maximisation. For any dual values y of the rows,

    c x = y A x + (c - y A) x,

and each of the two sums is at most what its terms can be within their limits. At an exact optimum
that is the optimal value.

References
----------
Neumaier and Shcherbina, Safe bounds in linear and mixed-integer linear programming, Mathematical
Programming 99, 2004.
"""

from __future__ import annotations

import math

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers.arrays import ArrayModel


def weak_duality_bound(model: ArrayModel, duals: FloatArray) -> float:
    """What no solution of a linear program exceeds, or falls below if it is a minimisation.

    Parameters
    ----------
    model : ArrayModel
        With M rows; it does not matter which variables are whole numbers.
    duals : (M,) float array
        By how much the optimum grows with the limit of each row. Where a value has a sign for which
        its row has no limit, 0 takes its place.

    Returns
    -------
    float
        Infinite if a variable without a limit has a reduced cost of the wrong sign.

    Examples
    --------
    At most 3 of two units that are worth 1 and 2, two of each at most, are worth 5:

    >>> import numpy as np
    >>> from oasis.solvers.arrays import ArrayModel, RowArrays
    >>> row = RowArrays(
    ...     np.array([0, 2]), np.array([0, 1]), np.ones(2), np.array([-np.inf]), np.array([3.0])
    ... )
    >>> limits = np.zeros(2), np.full(2, 2.0)
    >>> model = ArrayModel(
    ...     ["x", "y"], np.array([1.0, 2.0]), 0.0, *limits, np.zeros(2, bool), row, maximise=True
    ... )
    >>> [weak_duality_bound(model, np.array([price])) for price in (0.5, 1.0, 1.5)]
    [5.5, 5.0, 5.5]
    """
    sign, rows = (1.0 if model.maximise else -1.0), model.rows
    prices = sign * duals
    prices[np.isinf(np.where(prices > 0, rows.upper, rows.lower))] = 0.0
    charged = np.bincount(rows.columns, rows.values * prices[rows.row_of], len(model.costs))
    terms = [
        *_most(prices, rows.lower, rows.upper),
        *_most(sign * model.costs - charged, model.lower, model.upper),
    ]
    return sign * math.fsum([sign * model.constant, *terms])


def _most(factors: FloatArray, lower: FloatArray, upper: FloatArray) -> list[float]:
    """The most that each factor times a number within its limits can be."""
    ends = np.where(factors > 0, upper, lower)
    most = np.multiply(factors, ends, out=np.zeros(len(ends)), where=factors != 0)  # 0 * inf is 0
    terms: list[float] = most.tolist()
    return terms
