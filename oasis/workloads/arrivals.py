"""When jobs arrive: evenly likely, as a Poisson process, or shaped by hourly counts."""

from __future__ import annotations

import csv
import hashlib
import os
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from oasis.model.errors import InputError
from oasis.model.rounding import FloatArray, IntArray

Counts: TypeAlias = str | os.PathLike[str] | npt.ArrayLike
ARRIVALS = ("uniform", "poisson", "google")
HEADER = ["hour", "job_submits"]
SECONDS_PER_HOUR = 3600.0


def draw_arrivals(rng: np.random.Generator, kind: str, jobs: int, weights: FloatArray) -> IntArray:
    """Arrival slots in order; `weights` (T,) is the expected share of each slot.

    The number of arrivals is `jobs`, except for ``"poisson"``, where `jobs` is its mean.
    """
    draw = rng.poisson(jobs * weights) if kind == "poisson" else rng.multinomial(jobs, weights)
    return np.repeat(np.arange(weights.size), draw)


def slot_weights(
    counts: FloatArray | None, horizon: int, slot_seconds: float, last_arrival: int
) -> FloatArray:
    """Expected share of the arrivals in each slot, shape (T,); 0 after slot `last_arrival`.

    Slot t covers hours [t, t + 1) slot_seconds / 3600 of `counts`, which start over at their end;
    within an hour arrivals are evenly likely. Without counts every slot weighs the same.
    """
    if counts is None:
        weights = np.ones(horizon)
    else:
        cumulative = np.concatenate([[0.0], np.cumsum(counts)])
        hours = np.arange(horizon + 1) * (slot_seconds / SECONDS_PER_HOUR)
        rounds, rest = np.divmod(hours, counts.size)
        total = np.interp(rest, np.arange(counts.size + 1), cumulative)
        weights = np.diff(rounds * cumulative[-1] + total)
    weights[last_arrival + 1 :] = 0.0
    if not weights.sum() > 0:
        raise InputError("counts", "expected an arrival within the horizon, got only zeros")
    shares: FloatArray = weights / weights.sum()
    return shares


def read_counts(counts: Counts) -> FloatArray:
    """Hourly counts from an array or from a CSV file with columns ``hour,job_submits``.

    Raises
    ------
    ValueError
        Naming ``counts`` and, for a file, the line.
    """
    if isinstance(counts, (str, os.PathLike)):
        values = np.array(_read_file(Path(counts)), dtype=np.float64)
    else:
        try:
            values = np.array(counts, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("counts", "expected a path or an array of numbers") from None
    if values.ndim != 1 or not values.size:
        raise InputError("counts", f"expected a non-empty row of counts, got shape {values.shape}")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise InputError("counts", "expected finite numbers >= 0")
    return values


def fingerprint(counts: FloatArray) -> dict[str, Any]:
    """What the metadata of an instance keeps of `counts`: enough to recognise them."""
    digest = hashlib.sha256(np.ascontiguousarray(counts, "<f8").tobytes()).hexdigest()
    return {"hours": counts.size, "submits": float(counts.sum()), "sha256": digest}


def _read_file(path: Path) -> list[int]:
    submits: list[int] = []
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.reader(stream)
        header = next(rows, [])
        if header != HEADER:
            expected = ",".join(HEADER)
            raise InputError("counts", f"line 1: expected the header {expected}, got {header}")
        for row in rows:
            try:
                hour, count = map(int, row)
            except ValueError:
                expected = "expected an hour and a whole number of submits"
                raise InputError("counts", f"line {rows.line_num}: {expected}, got {row}") from None
            if hour != len(submits):
                expected = f"expected hour {len(submits)}"
                raise InputError("counts", f"line {rows.line_num}: {expected}, got {hour}")
            submits.append(count)
    return submits
