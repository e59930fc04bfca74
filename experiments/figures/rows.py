"""Rows of figures: picked, averaged over seeds, written as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.evaluation.intervals import interval_of
from oasis.model.files import write_text

Row = dict[str, Any]


def groups(cells: Iterable[Row], *keys: str) -> dict[tuple[Hashable, ...], list[Row]]:
    """Group cells by their values of `keys`, in order of appearance.

    Examples
    --------
    >>> list(groups([{"jobs": 3}, {"jobs": 5}, {"jobs": 3}], "jobs"))
    [(3,), (5,)]
    """
    found: dict[tuple[Hashable, ...], list[Row]] = {}
    for cell in cells:
        found.setdefault(tuple(_hashable(cell[key]) for key in keys), []).append(cell)
    return found


def interval(values: Sequence[float], name: str, scale: str = "any") -> Row:
    """Mean over the seeds and its 95 % confidence interval by Student's t; None without one.

    The interval keeps to what the values of `scale` can be
    (`experiments.evaluation.intervals.interval_of`).
    """
    found = interval_of(values, scale).to_dict()
    return {name: found["mean"], f"{name}_low": found["low"], f"{name}_high": found["high"]}


def fraction(values: Sequence[float], name: str) -> Row:
    """Mean of fractions; the interval, by Student's t, is cut off at 0 and 1."""
    return interval(values, name, "fraction")


def amount(values: Sequence[float], name: str) -> Row:
    """Mean of what cannot be negative; the interval, by Student's t, is cut off at 0."""
    return interval(values, name, "amount")


def ratio(values: Sequence[float], name: str) -> Row:
    """Geometric mean of ratios of 1 and more; the interval is that of the logarithms, from 1 on."""
    return interval(values, name, "ratio")


def firsts(cells: Sequence[Row], figure: str, same: Sequence[str]) -> Callable[[Row], bool]:
    """Whether a cell has the largest `figure` of the cells that agree with it in `same`."""
    best = {key: max(c[figure] for c in part) for key, part in groups(cells, *same).items()}
    return lambda cell: cell[figure] == best[tuple(_hashable(cell[key]) for key in same)]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write rows that have the same keys; numbers as they are, an empty field for None."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


def read_csv(path: Path) -> list[Row]:
    """Rows that `write_csv` wrote; fields that are numbers become numbers again."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(stream)]


def for_people(row: Mapping[str, Any], column: str) -> str:
    """Text for a table: a value of a row, rounded, with its interval; a dash where there is none.

    Examples
    --------
    >>> for_people({"x": 12.3456, "x_low": 10.0, "x_high": 14.5}, "x")
    '12.35 (10 to 14.5)'
    """
    value, low, high = row.get(column), row.get(f"{column}_low"), row.get(f"{column}_high")
    if isinstance(value, str):
        return value
    ends = [end for end in dict.fromkeys((low, high)) if end is not None]
    interval = " to ".join(map(_short, ends))
    if value is None:
        return interval or "-"
    mean = _short(value, 4)
    return f"{mean} ({interval})" if interval else mean


def _short(value: float, digits: int = 3) -> str:
    """Text with so many digits; below 100,000 with all that stand before the point."""
    return f"{value:.0f}" if 10**digits <= abs(value) < 100_000 else f"{value:.{digits}g}"


def half_widths(rows: Sequence[Mapping[str, Any]], name: str) -> list[list[float]]:
    """Lengths of error bars below and above the means, for matplotlib."""
    below, above = [], []
    for row in rows:
        low, high, mean = row[f"{name}_low"], row[f"{name}_high"], row[name]
        below.append(mean - low if low is not None else 0.0)
        above.append(high - mean if high is not None else 0.0)
    return [below, above]


def _hashable(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value


def _value(text: str) -> Any:
    if text == "":
        return None
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text
