"""Servers taken together in classes: fewer knapsacks, weaker cuts (`offline.patterns.cuts`)."""

from __future__ import annotations

import numpy as np

from oasis.model.rounding import FloatArray, IntArray


def classes(capacity: FloatArray, most: int | None) -> tuple[FloatArray, IntArray]:
    """Servers (S, R) in at most `most` classes: largest capacities (C, R) and numbers (C,).

    The class whose servers are furthest below its largest capacity is split in two, again and
    again, at the middle of the resource in which they are. None: only identical ones together.
    """
    kinds, kind = np.unique(capacity, axis=0, return_inverse=True)
    number = np.bincount(kind.ravel())
    if most is None or len(kinds) <= most:
        return kinds, number
    total = np.maximum(capacity.sum(axis=0), 1e-300)
    member = np.zeros(len(kinds), dtype=np.int64)
    for new in range(1, most):
        waste = np.array([_waste(kinds[member == k], number[member == k]) for k in range(new)])
        k, r = np.unravel_index(int(np.argmax(waste / total)), waste.shape)
        inside = np.flatnonzero(member == k)
        column = kinds[inside, r]
        member[inside[column > (column.min() + column.max()) / 2]] = new
    largest = np.array([kinds[member == k].max(axis=0) for k in range(most)])
    return largest, np.bincount(member, number).astype(np.int64)


def _waste(kinds: FloatArray, number: IntArray) -> FloatArray:
    """What a class claims too much, by resource."""
    waste: FloatArray = ((kinds.max(axis=0) - kinds) * number[:, None]).sum(axis=0)
    return waste
