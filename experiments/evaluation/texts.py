"""Numbers for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

ROUNDING = 1e-8  # bounds are rounded outward by less than that


def number(value: float | None) -> str:
    """A number for people: six significant digits; a dash where there is none."""
    if value is None or value in (float("inf"), float("-inf")):
        return "-"
    return f"{value:.6g}"


def interval(found: Mapping[str, Any]) -> str:
    """A mean over seeds with its interval: ± half of it, or its ends where it is not symmetrical.

    Parameters
    ----------
    found : mapping
        Of `experiments.evaluation.intervals.Interval.to_dict`.
    """
    mean, low, high = found["mean"], found["low"], found["high"]
    if mean is None:
        return "-"
    if low is None:
        return number(mean)
    if low == high:
        return f"{number(mean)} ± 0"
    if not math.isclose(high - mean, mean - low, rel_tol=1e-6):
        return f"{mean:.4g} ({low:.3g} to {high:.3g})"
    half = (high - low) / 2
    places = max(0, 1 - math.floor(math.log10(half)))
    return f"{mean:.{places}f} ± {half:.{places}f}"


def percent(value: float | None) -> str:
    """A fraction as a percentage; a dash where there is none, 0 if it is nothing but rounding."""
    if value is None or value == float("inf"):
        return "-"
    return "0%" if abs(value) < ROUNDING else f"{100 * value:.3g}%"


def seconds(value: float) -> str:
    """A duration for people."""
    return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.3g} s"
