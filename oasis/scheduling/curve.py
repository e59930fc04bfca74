"""How the evaluation of a model changes as its training goes on."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

MOST_SHOWN = 4  # points in a `repr`


@dataclass(frozen=True, slots=True)
class TrainingCurve:
    """An evaluation function, such as a loss, by the share of the work that is done.

    Parameters
    ----------
    points : tuple of (share, value)
        Shares increase from 0 to 1; between two points the value changes linearly.

    Examples
    --------
    >>> TrainingCurve(((0.0, 2.0), (0.5, 0.4), (1.0, 0.2))).at(0.25)
    1.2
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        shares = [share for share, _ in self.points]
        rising = all(before < after for before, after in pairwise(shares))
        if len(shares) < 2 or shares[0] != 0.0 or shares[-1] != 1.0 or not rising:
            raise ValueError(f"points: expected shares that increase from 0 to 1, got {shares}")
        if not all(math.isfinite(value) for _, value in self.points):
            raise ValueError("points: expected finite values")

    def __repr__(self) -> str:
        if len(self.points) <= MOST_SHOWN:
            return f"TrainingCurve(points={self.points})"
        first, last = self.points[0][1], self.points[-1][1]
        return f"<TrainingCurve: {len(self.points)} points, values {first:g} to {last:g}>"

    @classmethod
    def exponential(cls, first: float, last: float, pace: float, pieces: int = 32) -> TrainingCurve:
        """A curve that goes from `first` to `last` and slows down.

        Parameters
        ----------
        first, last : float
            Values before the training and after it.
        pace : float
            The distance to the value it tends to falls by ``exp(-pace)`` over the training.
        pieces : int
            Number of linear pieces.
        """
        if not pace > 0 or pieces < 1:
            raise ValueError(f"expected pace > 0 and pieces >= 1, got {pace:g} and {pieces}")
        whole = 1.0 - math.exp(-pace)
        shares = [k / pieces for k in range(pieces + 1)]
        done = [(1.0 - math.exp(-pace * share)) / whole for share in shares]
        return cls(
            tuple((s, first + (last - first) * d) for s, d in zip(shares, done, strict=True))
        )

    def at(self, share: float) -> float:
        """The value when `share` of the work is done; shares outside 0..1 count as 0 or 1."""
        share = min(1.0, max(0.0, share))
        after = min(bisect_right(self.points, share, key=lambda p: p[0]), len(self.points) - 1)
        (left, low), (right, high) = self.points[after - 1], self.points[after]
        return low + (high - low) * (share - left) / (right - left)
