"""Columns and rows of a model that is written without PuLP: numbered variables, sparse rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from oasis.solvers.arrays import RowArrays


class Row(NamedTuple):
    """``lower <= sum of coefficient times variable <= upper``.

    Parameters
    ----------
    terms : mapping of int to float
        Coefficients by the number of the variable.
    lower, upper : float
        Limits, infinite where there is none.
    """

    terms: Mapping[int, float]
    lower: float
    upper: float


def at_least(terms: Mapping[int, float], lower: float = 0.0) -> Row:
    """A row with a lower limit."""
    return Row(terms, lower, np.inf)


def at_most(terms: Mapping[int, float], upper: float = 0.0) -> Row:
    """A row with an upper limit."""
    return Row(terms, -np.inf, upper)


def as_arrays(rows: Sequence[Row], first: int = 0) -> RowArrays:
    """Rows as arrays; the variable with the number `first` becomes number 0."""
    lengths = [len(row.terms) for row in rows]
    columns = [column - first for row in rows for column in row.terms]
    return RowArrays(
        starts=np.append(0, np.cumsum(lengths, dtype=np.int64)),
        columns=np.array(columns, dtype=np.int64),
        values=np.array([value for row in rows for value in row.terms.values()], dtype=float),
        lower=np.array([row.lower for row in rows], dtype=float),
        upper=np.array([row.upper for row in rows], dtype=float),
    )
