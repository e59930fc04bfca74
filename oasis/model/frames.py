"""Rows of plain data as a data frame of pandas, which is an optional part of the installation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from oasis.model.extras import require


def frame(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Any:
    """Make a data frame.

    Parameters
    ----------
    rows : sequence of mapping
        Values by column.
    columns : mapping of str to str
        The type of each column as pandas names it, in order.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    ModuleNotFoundError
        If pandas is not installed, naming the extra that brings it.

    Examples
    --------
    >>> from oasis.model.frames import frame
    >>> frame([{"job_id": "a", "start": None}], {"job_id": "string", "start": "Int64"}).shape
    (1, 2)
    """
    require("a data frame", "pandas")
    pandas = import_module("pandas")  # by name: this package itself needs NumPy alone
    return pandas.DataFrame(list(rows), columns=list(columns)).astype(dict(columns))
