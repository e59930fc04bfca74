"""Means over seeds with their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from experiments.evaluation import intervals
from experiments.evaluation import tables as texts
from experiments.evaluation.comparison import OF_FINISHED
from experiments.sweep.store import DONE
from oasis.model.errors import InputError

LEFT = "unfinished"  # the figure of a run: how many of its jobs did not finish
_KIND = ("instance.preset", "instance.file")
_POINT = ("instance.", "policy.", "task.")


def summarise(frame: pd.DataFrame, figures: Iterable[str]) -> pd.DataFrame:
    """Compute means over the seeds, geometric for ratios, with 95 % intervals.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows of a sweep.
    figures : iterable of str
        Numeric columns; those that `frame` lacks are left out.

    Returns
    -------
    pandas.DataFrame
        One row per policy and grid point, in the order of `frame`: the parameters that vary,
        ``seeds`` with a result, ``failed`` cells, and for each figure ``figure`` (the mean, NaN
        without a value), ``figure.low`` and ``figure.high`` (ends of the interval, NaN below two
        values), ``figure.interval`` (what interval it is, as in
        `experiments.evaluation.intervals.Interval`), ``figure.ci95`` (half-width by Student's t
        before the interval is cut off where no value can be; NaN for ratios) and ``figure.n``
        (values that the mean is of). Beside figures of the finished jobs only, such as
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
    columns = [name for name in figures if name in frame]
    counts = _unfinished(frame) if set(OF_FINISHED) & set(columns) and LEFT not in columns else None
    rows = []
    for _, group in frame.groupby(_labels(frame), sort=False, dropna=False):
        failed = int((group["status"] != DONE).sum())
        row = {name: group[name].iloc[0] for name in axes}
        row |= {"seeds": len(group) - failed, "failed": failed}
        for name in columns:
            values = _floats(group[name].dropna()).tolist()
            # A figure of somebody's own task may be below 0, whatever its name suggests.
            scale = intervals.scale_of(name) if min(values, default=0.0) >= 0 else "any"
            is_count = name in intervals.COUNTS and "jobs" in group
            interval = intervals.interval_of(
                values, scale, _floats(group["jobs"]).max() if is_count else math.inf
            )
            has_half = intervals.scale_of(name) != "ratio" and interval.kind != intervals.NONE
            half = intervals.mean_and_half_width(values)[1] if has_half else math.nan
            row |= {name: interval.mean, f"{name}.ci95": half, f"{name}.n": interval.n}
            row |= {f"{name}.low": interval.low, f"{name}.high": interval.high}
            row[f"{name}.interval"] = interval.kind
        if counts is not None:
            row[LEFT] = float(counts[group.index].mean())
        rows.append(row)
    return pd.DataFrame(rows)


def _floats(column: pd.Series[Any]) -> pd.Series[float]:
    try:
        return column.astype(float)
    except (TypeError, ValueError):
        raise InputError(str(column.name), "expected numbers", column.tolist()) from None


def _unfinished(frame: pd.DataFrame) -> pd.Series[float] | None:
    """Number of unfinished jobs of each cell; None if the sweep did not count jobs."""
    if LEFT in frame:
        return _floats(frame[LEFT])
    if {"jobs", "finished"} <= set(frame):  # a version that did not count them
        return _floats(frame["jobs"]) - _floats(frame["finished"])
    return None


def varying(frame: pd.DataFrame) -> list[str]:
    """Names of the parameters with more than one value in `frame`, and ``policy.name``."""
    # A parameter that part of the rows lack is no second value, but for the kind of instance.
    names = [name for name in frame if name.startswith(_POINT)]
    values = {name: frame[name] if name in _KIND else frame[name].dropna() for name in names}
    return [n for n in names if n == "policy.name" or len({*map(str, values[n])}) > 1]


def _labels(frame: pd.DataFrame) -> list[pd.Series[str]]:
    """Return grouping keys as text, since lists cannot be keys and missing values must agree."""
    names = [name for name in frame if name.startswith(_POINT)]
    return [frame[name].map(str) for name in names]


TITLE = "Mean over the seeds ± half of its 95 % interval"
MARKS = {intervals.CUT: "*", intervals.RANGE: "**"}
NOTES = {
    intervals.CUT: "*: the interval is cut off where no value can be, so it is not symmetrical",
    intervals.RANGE: "**: smallest and largest; these seeds are too few for an interval",
}
UNDEFINED = (
    "(of n): of the n seeds on which it is defined; no ratio is where a policy earned nothing"
)
LEFT_MARK = "†"
MOST_NAMED = 6  # points of the grid in a note
_ENDS = ("low", "high")


def label(row: Mapping[Any, Any], *prefixes: str) -> str:
    """Name a grid point by its parameters that begin with `prefixes`, such as ``policy.``."""
    parts = []
    for prefix in prefixes:
        for name, value in row.items():
            if name.startswith(prefix) and not is_missing(value):
                short = name.removeprefix(prefix)
                text = _text(value)
                parts.append(text if short in {"preset", "file", "name"} else f"{short}={text}")
    return " ".join(parts)


PROVEN = "proven"
_WITHOUT_PROOF = (PROVEN, "ratio_lower", "ratio_upper")


def shown_of(frame: pd.DataFrame, figures: Iterable[str]) -> list[str]:
    """Return the columns to show; bounds of ratios are left out if all optima are proven."""
    columns = [name for name in figures if name in frame]
    if PROVEN not in columns or "ratio" not in frame or not frame[PROVEN].dropna().all():
        return columns
    return [*(name for name in columns if name not in _WITHOUT_PROOF), "ratio"]


def columns_of(figures: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    """Headings of the table of means, each with whether its column holds numbers."""
    about = (("instance", False), ("policy", False), ("seeds", True))
    return (*about, *((name, True) for name in figures))


def rows_of(table: pd.DataFrame, figures: Sequence[str]) -> list[tuple[str, ...]]:
    """Return a row of text for each grid point in `table`."""
    return [
        (
            label(row, "instance."),
            label(row, "policy."),
            f"{row['seeds']}" + (f" ({row['failed']} failed)" if row["failed"] else ""),
            *(_mean(row, name) for name in figures),
        )
        for row in table.to_dict("records")
    ]


def notes_of(table: pd.DataFrame, figures: Sequence[str]) -> list[str]:
    """Return notes that explain marks and ratios in the table of means."""
    kinds = {kind for name in figures if name != PROVEN for kind in table[f"{name}.interval"]}
    notes = [note for kind, note in NOTES.items() if kind in kinds]
    if any((table[f"{name}.n"] < table["seeds"]).any() for name in figures if name != PROVEN):
        notes.append(UNDEFINED)
    if any(intervals.scale_of(name) == "ratio" for name in figures):
        notes.append("ratios: geometric mean, interval of the logarithms")
        notes.append(f"proof: {texts.CHECKED}")
    incomplete = [row for row in table.to_dict("records") if _unfinished_jobs(row)]
    unfinished = {label(row, "instance.", "policy."): row[LEFT] for row in incomplete}
    if unfinished and any(name in OF_FINISHED for name in figures):
        counts = ", ".join(f"{point} {texts.brief(count)}" for point, count in unfinished.items())
        if len(unfinished) > MOST_NAMED:
            counts = f"at {len(unfinished)} of {len(table)} points; column {LEFT} of the file"
        notes.append(f"{LEFT_MARK}: of the finished jobs only. Not finished: {counts}")
    return notes


def _unfinished_jobs(row: Mapping[Any, Any]) -> float:
    """Mean number of unfinished jobs at a grid point; 0 if it is unknown."""
    count: Any = row.get(LEFT)
    return 0.0 if is_missing(count) else float(count)


def interval_in(row: Mapping[Any, Any], name: str) -> dict[str, float | None]:
    """Return mean, ends of the interval, and mean number of unfinished jobs; None if unknown."""
    interval = {"mean": row[name]} | {end: row[f"{name}.{end}"] for end in _ENDS}
    interval |= {LEFT: row.get(LEFT)}
    return {end: None if is_missing(value) else float(value) for end, value in interval.items()}


def is_missing(value: Any) -> bool:
    """Whether a cell of a data frame is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def plain(value: Any) -> Any:
    """Convert a cell of a data frame from NumPy's type to Python's."""
    return value.tolist() if hasattr(value, "tolist") else value


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    value = plain(value)
    return f"[{','.join(map(_text, value))}]" if isinstance(value, list) else str(value)


def _mean(row: Mapping[Any, Any], name: str) -> str:
    """Text of a mean and its interval, with marks; a dash without values."""
    n = row[f"{name}.n"]
    if not n:
        return "-"
    if name == PROVEN:  # a count, of which there is no interval
        return f"{row[name] * n:.0f} of {n}"
    mark = MARKS.get(row[f"{name}.interval"], "")
    text = texts.interval(interval_in(row, name))
    mark += LEFT_MARK if name in OF_FINISHED and _unfinished_jobs(row) else ""
    return f"{text}{mark}" + ("" if n == row["seeds"] else f" (of {n})")
