"""Means over seeds with their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from experiments.evaluation.comparison import OF_FINISHED
from experiments.evaluation.intervals import (
    NONE,
    interval_of,
    mean_and_half_width,
    scale_of,
)
from experiments.sweep.record import DONE

LEFT = "unfinished"  # the figure of a run: how many of its jobs did not finish
_KIND = ("instance.preset", "instance.file")
_POINT = ("instance.", "policy.", "task.")


def summarise(frame: pd.DataFrame, figures: Iterable[str]) -> pd.DataFrame:
    """Mean over the seeds, geometric for ratios, with its 95 % confidence interval.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows of a sweep.
    figures : iterable of str
        Numeric columns; those that `frame` lacks are left out.

    Returns
    -------
    pandas.DataFrame
        One row a policy and grid point, in the order of `frame`: the parameters that vary,
        ``seeds`` with a result, ``failed`` cells, and for each figure ``figure`` (the mean, NaN
        without a value), ``figure.low`` and ``figure.high`` (ends of the interval, NaN below two
        values), ``figure.interval`` (what interval it is, as in
        `experiments.evaluation.intervals.Interval`), ``figure.ci95`` (half-width by Student's t
        before the interval is cut off where no value can be; NaN for ratios) and ``figure.n``
        (values that the mean is of). Beside figures of the jobs that finished alone, such as
        ``mean_completion``, ``unfinished`` is the mean number of the other jobs.

    Examples
    --------
    >>> frame = pd.DataFrame({
    ...     "policy.name": ["drf", "drf"], "seed": [0, 1], "status": "done", "jobs": [3.0, 5.0]
    ... })
    >>> summarise(frame, ["jobs"])[["seeds", "jobs"]].values.tolist()
    [[2.0, 4.0]]
    """
    axes = varying(frame)
    wanted = [name for name in figures if name in frame]
    left = _unfinished(frame) if set(OF_FINISHED) & set(wanted) and LEFT not in wanted else None
    rows = []
    for _, group in frame.groupby(_labels(frame), sort=False, dropna=False):
        failed = int((group["status"] != DONE).sum())
        row = {name: group[name].iloc[0] for name in axes}
        row |= {"seeds": len(group) - failed, "failed": failed}
        for name in wanted:
            values = [float(value) for value in group[name].dropna()]
            found = interval_of(values, scale_of(name) if min(values, default=0.0) >= 0 else "any")
            has_half = scale_of(name) != "ratio" and found.kind != NONE
            half = mean_and_half_width(values)[1] if has_half else math.nan
            row |= {name: found.mean, f"{name}.ci95": half, f"{name}.n": found.n}
            row |= {f"{name}.low": found.low, f"{name}.high": found.high}
            row[f"{name}.interval"] = found.kind
        if left is not None:
            row[LEFT] = float(left[group.index].mean())
        rows.append(row)
    return pd.DataFrame(rows)


def _unfinished(frame: pd.DataFrame) -> pd.Series[float] | None:
    """Jobs that did not finish, by cell; None where the sweep did not count jobs."""
    if LEFT in frame:
        return frame[LEFT].astype(float)
    if {"jobs", "finished"} <= set(frame):  # a version that did not count them
        return frame["jobs"].astype(float) - frame["finished"].astype(float)
    return None


def varying(frame: pd.DataFrame) -> list[str]:
    """Parameters of which `frame` has more than one value, and the name of the policy.

    A parameter that part of the rows do not have is no second value, except for the two that say
    what kind of instance it is.
    """
    names = [name for name in frame if name.startswith(_POINT)]
    return [name for name in names if name == "policy.name" or _varies(frame[name], name in _KIND)]


def _varies(column: pd.Series[Any], or_missing: bool) -> bool:
    values = column if or_missing else column.dropna()
    return len({*map(str, values)}) > 1


def _labels(frame: pd.DataFrame) -> list[pd.Series[str]]:
    """Grouping keys, as text: lists are not hashable, and missing values must agree."""
    names = [name for name in frame if name.startswith(_POINT)]
    return [frame[name].map(str) for name in names]
