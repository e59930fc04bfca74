"""The assignment problem: give each row a column of its own such that the sum is largest."""

from __future__ import annotations

import numpy as np

from oasis.model.rounding import FloatArray, IntArray


def largest_assignment(weight: IntArray) -> IntArray:
    """Assign a different column to each row of (n, n) weights such that their sum is largest.

    Row k gets column k where nothing is larger than that. By shortest augmenting paths: Jonker and
    Volgenant, Computing 38, 1987. `import oasis` needs NumPy alone, so this is no call of SciPy.
    """
    n, cost = len(weight), -weight.astype(np.float64)
    of_row, of_column = np.full(n, -1), np.full(n, -1)
    row_price, column_price = cost.min(axis=1, initial=0.0), np.zeros(n)
    # At these prices a row that is best in its own column has a reduced cost of 0 there.
    own = (cost.diagonal() == row_price).nonzero()[0]
    of_row[own] = of_column[own] = own
    for row in (of_row < 0).nonzero()[0].tolist():
        _augment(cost, row_price, column_price, of_row, of_column, row)
    everyone = np.arange(n)
    if weight[everyone, of_row].sum() == weight.trace():
        return everyone
    return of_row


def _augment(
    cost: FloatArray,
    row_price: FloatArray,
    column_price: FloatArray,
    of_row: IntArray,
    of_column: IntArray,
    first: int,
) -> None:
    """Assign row `first` along the shortest path to a free column; prices change in place."""
    n = len(cost)
    shortest, before, done = np.full(n, np.inf), np.full(n, -1), np.zeros(n, dtype=bool)
    row, at, length = first, -1, 0.0
    while True:
        reduced = length + cost[row] - row_price[row] - column_price
        better = ~done & (reduced < shortest)
        shortest[better], before[better] = reduced[better], at
        at = int(np.where(done, np.inf, shortest).argmin())
        length = float(shortest[at])
        if of_column[at] < 0:
            break
        done[at], row = True, int(of_column[at])
    row_price[first] += length
    passed = done.nonzero()[0]
    row_price[of_column[passed]] += length - shortest[passed]
    column_price[passed] -= length - shortest[passed]
    # Every row on the path gives its column to the row before it.
    while at >= 0:
        previous = int(before[at])
        of_column[at] = first if previous < 0 else of_column[previous]
        of_row[of_column[at]] = at
        at = previous
