"""The one rounding rule of the toolkit (docs/theory, "Ties and rounding").

Counts come from quotients of floats: ``(c - g) / w`` may be 2.9999999999999996 where three workers
fit. Search, ledger, verification and the MILP all round with the same tolerance, so that none of
them sees a worker more or a worker less than the others.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

TOLERANCE = 1e-9
LARGEST_SLACK = 0.5  # the tolerance grows with the count, but never beyond half a unit
CAPACITY_TOLERANCE = 1.001e-9  # relative excess over a capacity that TOLERANCE allows
ULPS = 1e-14  # relative rounding error of a sum of floats
SPLIT = 2.0**23 + 1.0  # times this, a float keeps 30 bits in the difference of `key`


def _slack(x: FloatArray) -> FloatArray:
    slack: FloatArray = np.minimum(TOLERANCE * np.maximum(1.0, np.abs(x)), LARGEST_SLACK)
    return slack


def ceil(x: npt.ArrayLike) -> FloatArray:
    """Round up, forgiving an excess of ``1e-9 max(1, |x|)``."""
    values = np.asarray(x, dtype=np.float64)
    rounded: FloatArray = np.ceil(values - _slack(values))
    return rounded


def ceil_number(x: float) -> int:
    """Return `ceil` of one number as an int; quicker."""
    return math.ceil(x - min(TOLERANCE * max(1.0, abs(x)), LARGEST_SLACK))


def floor(x: npt.ArrayLike) -> FloatArray:
    """Round down, forgiving a shortfall of ``1e-9 max(1, |x|)``."""
    values = np.asarray(x, dtype=np.float64)
    rounded: FloatArray = np.floor(values + _slack(values))
    return rounded


def floor_counts(x: FloatArray) -> FloatArray:
    """Round down as `floor` does, negative numbers to 0; quicker, and `x` is overwritten."""
    slack = np.maximum(x, 1.0)  # whatever is below 0 becomes 0 anyway
    slack *= TOLERANCE
    np.minimum(slack, LARGEST_SLACK, out=slack)
    x += slack
    np.floor(x, out=x)
    return np.maximum(x, 0.0, out=x)


def units(capacity: FloatArray, demand: FloatArray, most: int) -> IntArray:
    """Return how many units of `demand` (R,) fit capacities (..., R), at most `most`, as (...)."""
    needed = demand > 0
    with np.errstate(over="ignore"):  # the quotient by a tiny demand is inf, which `most` caps
        fits = floor(capacity[..., needed] / demand[needed]).min(axis=-1, initial=float(most))
    counts: IntArray = np.clip(fits, 0, most).astype(np.int64)
    return counts


def within(count: float, limit: float) -> bool:
    """Return whether ``count <= limit`` up to the tolerance of `floor`; for counts of tasks."""
    return bool(count <= limit + TOLERANCE * max(1.0, abs(limit)))


def fits(used: float, capacity: float) -> bool:
    """Return whether an amount fits a capacity, up to a relative tolerance."""
    return bool(used <= capacity * (1.0 + CAPACITY_TOLERANCE))


def key(x: float) -> float:
    """Return `x` rounded to 30 significant bits, so that numbers equal up to rounding are equal."""
    # But for one in some thousands, in the middle between two keys. Veltkamp's split, rounded to
    # nearest as all floats are; what has no product is not a number here, and stays as it is.
    product = x * SPLIT
    high = product - (product - x)
    return high if high == high else x  # noqa: PLR0124


def payoff_noise(utility: float, cost: float = 0.0) -> float:
    """Return the difference up to which a payoff, utility less cost, equals another."""
    # Prices are known less exactly than utilities.
    return ULPS * utility + TOLERANCE * cost


def difference(one: float, other: float) -> float:
    """Return ``one - other``, or 0 if they are equal up to rounding."""
    gap = one - other
    return 0.0 if abs(gap) <= TOLERANCE * max(abs(one), abs(other)) else gap


def ascending(values: FloatArray, error: FloatArray | None = None) -> IntArray:
    """Return a stable argsort along the last axis; values equal up to rounding, or `error`, tie."""
    # Equal: no gap between neighbours is above the tolerance and the absolute `error`, (n,).
    order: IntArray = values.argsort(axis=-1, kind="stable")
    ordered = np.sort(values, axis=-1)
    low, high = ordered[..., :-1], ordered[..., 1:]
    limit = low + TOLERANCE * np.abs(low)
    if error is not None:
        limit += error[order[1:]]
    near = high <= limit
    # Most often what is near is equal to the last bit, and this sort was stable.
    if not np.count_nonzero(near & (low != high)):  # far quicker than `any`
        return order
    rank = np.zeros_like(order)
    np.put_along_axis(rank, order[..., 1:], (~near).cumsum(axis=-1), axis=-1)
    return rank.argsort(axis=-1, kind="stable")


def first_of_least(values: FloatArray) -> IntArray:
    """Return the index along the last axis of the first value that is least up to rounding."""
    least = values.min(axis=-1, keepdims=True)
    first: IntArray = (values <= least + TOLERANCE * np.abs(least)).argmax(axis=-1)
    return first
