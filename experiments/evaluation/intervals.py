"""Means over seeds with intervals cut off at impossible values: no share is below 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oasis.extras import require
from oasis.model.document import entry, mapping, optional, real
from oasis.model.errors import InputError, InstanceError

CONFIDENCE = 0.95
LARGEST = 1e150  # of a value; squares of larger ones are infinite
WIDEST = 1000.0  # a factor between the ends from which an interval of a ratio says nothing
LIMITS = {
    "any": (-math.inf, math.inf),
    "amount": (0.0, math.inf),
    "fraction": (0.0, 1.0),
    "ratio": (1.0, math.inf),
}  # scale -> the smallest and the largest value that there can be
RATIOS = ("ratio", "ratio_lower", "ratio_upper")
COUNTS = ("admitted", "rejected", "finished", "unfinished", "given_up_after_start")  # of jobs
FRACTIONS = ("proven", "wasted_share", "gpu_utilisation")
# By Student's t, for ratios from their logarithms; the same, cut off where no value can be; the
# smallest and the largest value, where the first, of ratios, would span more than `WIDEST`; none.
STUDENT, CUT, RANGE, NONE = "student", "cut", "range", "none"


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds and its interval; `kind` is `STUDENT`, `CUT`, `RANGE` or `NONE`."""

    mean: float  # of ratios geometric
    low: float
    high: float
    n: int  # values
    kind: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; None for NaN and infinite values."""
        ends = {"mean": self.mean, "low": self.low, "high": self.high}
        plain = {name: value if math.isfinite(value) else None for name, value in ends.items()}
        return {**plain, "n": self.n, "interval": self.kind}


def read_interval(data: Any) -> Mapping[str, Any]:
    """Check data of `Interval.to_dict` and return them; raise `InstanceError` if they are wrong."""
    ends = [entry(data, name, optional(real)) for name in ("low", "mean", "high")]
    if ends[0] is None and ends[2] is None:
        return mapping(data)
    known = [end for end in ends if end is not None]
    # rounding may put the mean of equal values beside both ends
    if len(known) < len(ends) or not (known == sorted(known) or math.isclose(known[0], known[2])):
        raise InstanceError("", "expected low <= mean <= high", ends)
    return mapping(data)


def scale_of(figure: str) -> str:
    """Return the range of a figure by its name: a key of `LIMITS`."""
    if figure in RATIOS:
        return "ratio"
    return "fraction" if figure in FRACTIONS else "amount"


def interval_of(values: Sequence[float], scale: str = "any", largest: float = math.inf) -> Interval:
    """Mean and interval of `values`, cut off at the limits of `scale` and at `largest`."""
    least, most = LIMITS[scale]
    for value in values:
        if not least * (1 - ROUNDING) <= value <= most * (1 + ROUNDING):
            raise InputError("values", f"expected {least:g} to {most:g} for {scale}", value)
    if infinite := {value for value in values if math.isinf(value)}:
        mean = infinite.pop() if len(infinite) == 1 else math.nan  # where both ends are among them
        return Interval(mean, math.nan, math.nan, len(values), NONE)
    if scale == "ratio":
        # Ratios multiply, so their logarithms are what an interval may be symmetrical in.
        center, half = mean_and_half_width([math.log(value) for value in values])
        mean = math.exp(center)
        # Two seeds of 2 and 8 would give one over many powers of ten: the values say more.
        if 2 * half > math.log(WIDEST):
            return Interval(mean, min(values), max(values), len(values), RANGE)
        low, high = math.exp(center - half), math.exp(center + half)
    else:
        for value in values:
            if abs(value) > LARGEST:
                raise InputError("values", f"expected at most {LARGEST:g} in size", value)
        mean, half = mean_and_half_width(values)
        low, high, most = mean - half, mean + half, min(most, largest)
    if math.isnan(low):
        return Interval(mean, math.nan, math.nan, len(values), NONE)
    # The mean of ratios of 1 may be 1 - 1e-16.
    ends = min(max(low, least), mean), max(min(high, most), mean)
    return Interval(mean, *ends, len(values), STUDENT if (low, high) == ends else CUT)


ROUNDING = 1e-5  # of a ratio whose two sides are equal but for what solvers round


def mean_and_half_width(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half-width of its 95 % interval; NaN with no value, or for the width with one."""
    n = len(values)
    if not n:
        return math.nan, math.nan
    mean = math.fsum(values) / n
    if n == 1:
        return mean, math.nan
    if min(values) == max(values):
        return values[0], 0.0  # not the rounding error of the mean
    require("an interval over seeds", "scipy")
    from scipy.special import stdtrit  # noqa: PLC0415 (needs an extra)

    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    # Student's t, two-sided: 95 % inside leaves 2.5 % beyond each end.
    return mean, float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * math.sqrt(variance / n)
