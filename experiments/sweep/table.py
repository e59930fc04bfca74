"""Means over seeds as a table for people: labels of the grid's points, means with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from experiments.evaluation import texts
from experiments.evaluation.comparison import OF_FINISHED
from experiments.evaluation.intervals import CUT, RANGE, scale_of
from experiments.sweep.summary import LEFT

TITLE = "Mean over the seeds ± half of its 95 % interval"
MARKS = {CUT: "*", RANGE: "**"}
NOTES = {
    CUT: "*: the interval is cut off where no value can be, so it is not symmetrical",
    RANGE: "**: smallest and largest; these seeds are too few for an interval",
}
LEFT_MARK = "†"
MOST_NAMED = 6  # points of the grid in a note
_ENDS = ("low", "high")


def label(row: Mapping[Any, Any], prefix: str) -> str:
    """Name a point of the grid by the parameters that vary.

    Examples
    --------
    >>> label({"policy.name": "las", "policy.line": "fit", "seed": 3}, "policy.")
    'las line=fit'
    """
    parts = []
    for name, value in row.items():
        if name.startswith(prefix) and not is_missing(value):
            short = name.removeprefix(prefix)
            text = _text(value)
            parts.append(text if short in {"preset", "file", "name"} else f"{short}={text}")
    return " ".join(parts)


def columns_of(figures: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    """Headings of the table of means, and whether a column holds numbers."""
    about = (("instance", False), ("policy", False), ("seeds", True))
    return (*about, *((name, True) for name in figures))


def rows_of(table: pd.DataFrame, figures: Sequence[str]) -> list[tuple[str, ...]]:
    """A row for each point of the grid, as text.

    Parameters
    ----------
    table : pandas.DataFrame
        Of `experiments.sweep.summary.summarise`.
    figures : sequence of str
        Columns of `table` that are shown.
    """
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
    """What the marks and the ratios in the table mean, where there are some."""
    kinds = {kind for name in figures for kind in table[f"{name}.interval"]}
    notes = [note for kind, note in NOTES.items() if kind in kinds]
    if any(scale_of(name) == "ratio" for name in figures):
        notes.append("ratios: geometric mean, interval of the logarithms")
    left = {_point(row): row[LEFT] for row in table.to_dict("records") if _left(row)}
    if left and any(name in OF_FINISHED for name in figures):
        counts = ", ".join(f"{point} {count:.4g}" for point, count in left.items())
        if len(left) > MOST_NAMED:
            counts = f"at {len(left)} of {len(table)} points; column {LEFT} of the file"
        notes.append(f"{LEFT_MARK}: of the jobs that finished alone. Not finished: {counts}")
    return notes


def _left(row: Mapping[Any, Any]) -> float:
    """Mean number of jobs that did not finish at a point; 0 where the table does not have it."""
    count: Any = row.get(LEFT)
    return 0.0 if is_missing(count) else float(count)


def _point(row: Mapping[Any, Any]) -> str:
    return " ".join(filter(None, (label(row, "instance."), label(row, "policy."))))


def interval_in(row: Mapping[Any, Any], name: str) -> dict[str, float | None]:
    """Mean and ends of the interval of a figure, and how many jobs did not finish.

    None for what there is not.

    Examples
    --------
    >>> interval_in({"jobs": 4.0, "jobs.low": 3.0, "jobs.high": math.nan}, "jobs")
    {'mean': 4.0, 'low': 3.0, 'high': None, 'unfinished': None}
    """
    found = {"mean": row[name]} | {end: row[f"{name}.{end}"] for end in _ENDS}
    found |= {LEFT: row.get(LEFT)}
    return {end: None if is_missing(value) else float(value) for end, value in found.items()}


def is_missing(value: Any) -> bool:
    """Whether a cell of a data frame holds nothing."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def plain(value: Any) -> Any:
    """A cell of a data frame as Python's own kind of value."""
    return value.tolist() if hasattr(value, "tolist") else value


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    value = plain(value)
    return f"[{','.join(map(_text, value))}]" if isinstance(value, list) else str(value)


def _mean(row: Mapping[Any, Any], name: str) -> str:
    """Mean with its interval, a plus-minus where it is symmetrical; the ends in brackets else."""
    n = row[f"{name}.n"]
    if not n:
        return "-"
    mark = MARKS.get(row[f"{name}.interval"], "")
    text = texts.interval(interval_in(row, name))
    mark += LEFT_MARK if name in OF_FINISHED and _left(row) else ""
    return f"{text}{mark}" + ("" if n == row["seeds"] else f" (of {n})")
