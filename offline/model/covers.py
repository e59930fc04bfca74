"""Counts that exceed a capacity by less than a solver's tolerance, cut off in whole numbers.

A row of floats cannot tell a capacity that is kept from one that is exceeded by 1.5e-9 of itself:
HiGHS forgives 1e-9 on top of what `oasis.model.rounding.fits` forgives. A row of small whole
numbers can. Counts that do not fit therefore become a cover: some of their items must be fewer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oasis.model import rounding
from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray

SURE = 1e-14  # relative: more than rounding moves a product, or a sum that `math.fsum` has made


@dataclass(frozen=True, slots=True)
class Level:
    """Items, and a number of their units that they must not all reach.

    Parameters
    ----------
    items : (n,) int array
        Which items.
    count : int
        Positive; the units of the items together.
    """

    items: IntArray
    count: int

    def is_reached(self, counts: IntArray) -> bool:
        """Whether counts (I,) have that many units."""
        return bool(counts[self.items].sum() >= self.count)


def used(amounts: Sequence[float], counts: Sequence[int]) -> float:
    """What counts (I,) of items use, added up as `oasis.certify.verify` does."""
    pairs = zip(amounts, counts, strict=True)
    return math.fsum(count * amount for amount, count in pairs if count)


def fits(amounts: Sequence[float], counts: Sequence[int], capacity: float) -> bool:
    """Whether counts (I,) of items of these amounts (I,) fit a capacity."""
    return rounding.fits(used(amounts, counts), capacity)


@dataclass(frozen=True, slots=True)
class Cover:
    """Counts that do not fit a capacity, and no longer overfill it with one unit less.

    Parameters
    ----------
    amounts : (I,) sequence of float
        What a unit of each item takes.
    counts : (I,) sequence of int
        The units.
    capacity : float
        What they do not fit.
    """

    amounts: Sequence[float]
    counts: Sequence[int]
    capacity: float

    @classmethod
    def within(cls, amounts: Sequence[float], counts: Sequence[int], capacity: float) -> Cover:
        """The cover in counts (I,) that do not fit: the units of the smallest items leave first."""
        least = list(counts)
        for i in np.argsort(amounts, kind="stable").tolist():
            while least[i] > 0:
                least[i] -= 1
                if fits(amounts, least, capacity):
                    least[i] += 1
                    break
        return cls(amounts, least, capacity)

    @property
    def is_sure(self) -> bool:
        """Whether rounding cannot be the reason why the counts do not fit."""
        highest = self.capacity * (1.0 + CAPACITY_TOLERANCE)
        return used(self.amounts, self.counts) > highest * (1.0 + SURE)

    def levels(self, amounts: Sequence[float] | None = None) -> list[Level]:
        """Of one of these levels, whatever fits the capacity has fewer units.

        Sort the units of the cover by size. What has as many units at least as large as the j-th
        of them as the cover has, for every j, uses no less than the cover. So what fits has fewer
        units of some size or larger. Where the cover exceeds the capacity by so little that this
        depends on how floats are rounded, a level is one item, and only the same sums are compared.

        Parameters
        ----------
        amounts : (J,) sequence of float, optional
            Of other items on the same capacity, default its own.
        """
        own, counts = np.array(self.amounts, np.float64), np.array(self.counts, np.int64)
        if self.is_sure:
            others: FloatArray = own if amounts is None else np.array(amounts, np.float64)
            sizes = np.unique(own[counts > 0])[::-1].tolist()
            return [
                Level(np.flatnonzero(others >= size), int(counts[own >= size].sum()))
                for size in sizes
            ]
        if amounts is not None:
            return []
        return [Level(np.array([i]), int(counts[i])) for i in np.flatnonzero(counts).tolist()]
