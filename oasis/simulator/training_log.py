"""The training curve of a job from the log of a training: a CSV of steps or times, and losses."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from oasis.model.errors import InputError
from oasis.scheduling.job import TrainingCurve

POINTS = 64  # of a curve: more than the intervals in which anybody looks at a training


@dataclass(frozen=True, slots=True)
class TrainingLog:
    """The content of the log of a training."""

    curve: TrainingCurve  # the values by the share of the way from the first row to the last
    length: float  # of that way, in units of the column of steps or times
    rows: int  # that were used
    empty: int  # rows without a value


def read_training_log(
    path: str | os.PathLike[str],
    *,
    position: str | None = None,
    value: str | None = None,
    points: int = POINTS,
) -> TrainingLog:
    """Read a CSV with a header, a row for each step that was logged.

    `position` is the column of steps, epochs or times, which increase, and `value` that of the
    evaluation function, such as a loss; the first and the second if left out. Rows without a value
    are passed over. The curve has at most `points` pieces: of a longer log, the values at even
    shares.
    """
    name = os.fspath(path)
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    header = [cell.strip() for cell in rows[0]] if rows else []
    if len(header) < 2:
        raise InputError(f"{name}: line 1", "expected the names of two columns or more", header)
    places = [
        _place(header, chosen, k, f"{name}: line 1") for k, chosen in enumerate((position, value))
    ]
    found: list[tuple[float, float]] = []
    empty = 0
    for line, cells in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        pair = [cells[k].strip() if k < len(cells) else "" for k in places]
        if not pair[1]:
            empty += 1
            continue
        at, shown = (
            _number(text, f"{name}: line {line}: {header[k]}")
            for text, k in zip(pair, places, strict=True)
        )
        if found and at <= found[-1][0]:
            expected = f"expected more than {found[-1][0]:g}, that of the row before"
            raise InputError(f"{name}: line {line}: {header[places[0]]}", expected, at)
        found.append((at, shown))
    if len(found) < 2:
        raise InputError(name, "expected two rows with a value or more", len(found))
    return _log(found, points, empty)


def _log(found: list[tuple[float, float]], points: int, empty: int) -> TrainingLog:
    first, length = found[0][0], found[-1][0] - found[0][0]
    pairs = [((at - first) / length, shown) for at, shown in found]
    # Shares of rows that are nearer than a float can tell would not increase.
    distinct = all(before < after for (before, _), (after, _) in pairwise(pairs))
    if len(pairs) > points + 1 or not distinct:
        even = np.linspace(0.0, 1.0, points + 1)
        shares, shown = np.array(pairs).T
        values = np.interp(even, shares, shown)
        pairs = list(zip(even.tolist(), values.tolist(), strict=True))
    return TrainingLog(TrainingCurve(tuple(pairs)), length, len(found), empty)


def _place(header: list[str], name: str | None, default: int, where: str) -> int:
    if name is None:
        return default
    if name not in header:
        raise InputError(where, f"expected a column {name!r}", header)
    return header.index(name)


def _number(text: str, where: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InputError(where, "expected a finite number", text)
    return found
