"""Closing the gap: moves dearer than the answer may be are left out, all others are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import oasis.online.dp.lagrangian as module
from oasis.model.rounding import FloatArray, IntArray

Rows = list[list[float]]


def repaired(
    rows: Rows, count: list[int], missing: int, limit: float = np.inf, noise: float = 0.0
) -> tuple[float, list[tuple[int, int]] | None]:
    number: npt.NDArray[np.int64] = np.full(len(rows), 2)
    total, find = module.repair(np.array(rows), np.array(count), number, missing, limit, noise)
    if find is None:
        return total, None
    group, new = find()
    return total, sorted(zip(group.tolist(), new.tolist(), strict=True))


INF = np.inf
# Two slots of one group at 1 worker: +1 costs 1.5, +2 costs 4, +3 costs 9, -1 costs 6.
ROWS = [[6.0, 0.0, 1.5, 4.0, 9.0]]
TIED, TINY, UP = [[9.0, 0.0, 7.0, 4.0]], [[1.0, 0.0, 0.0, 1e-15]], [[9.0, 0.0, 1.0, 2.5]]
LESS = [[1.0, 0.0, -1e-17, 3.0]]
BOTH, ONE = [(0, 2), (0, 2)], [(0, 3)]
JUST_ABOVE = float(np.nextafter(3.0, 4.0))


@pytest.mark.parametrize(
    ("rows", "missing", "limit", "noise", "total", "moves"),
    [
        # The window has slack for the rounding of sums, and the best single move lies at its end;
        # a total of just the limit is of no interest.
        (TIED, 2, INF, 0.0, 4.0, ONE),
        (TIED, 2, 4.0, 0.0, 4.0, None),
        (ROWS, 2, 3.0, 0.0, 3.0, None),
        (ROWS, 2, 2.0, 0.0, 2.0, None),
        (ROWS, 2, JUST_ABOVE, 0.0, 3.0, BOTH),
        # A single move is kept where others gain no more than noise.
        (TINY, 2, INF, 0.0, 0.0, BOTH),
        (TINY, 2, INF, 1e-15, 1e-15, ONE),
        (UP, 2, INF, 0.0, 2.0, BOTH),
        (UP, 2, INF, 0.5, 2.5, ONE),
        (UP, 2, INF, 0.4, 2.0, BOTH),
        # +3 in one slot and -1 in the other supply 2 at the cost of 2, +2 in one slot costs 5.
        ([[1.0, 0.0, 4.0, 5.0, 1.0]], 2, INF, 0.0, 2.0, [(0, 0), (0, 4)]),
        # Reduced costs below nothing are noise.
        (LESS, 1, INF, 0.0, 0.0, [(0, 2)]),
        (LESS, 2, INF, 0.0, 0.0, BOTH),
        # Infinite costs are never part of it.
        ([[INF, 0.0, INF, 3.0, INF]], 2, INF, 0.0, 3.0, ONE),
        ([[INF, 0.0, INF, INF]], 2, 10.0, 0.0, 10.0, None),
    ],
)
def test_the_gap_is_closed_at_the_least_total_below_the_limit(
    rows: Rows,
    missing: int,
    limit: float,
    noise: float,
    total: float,
    moves: list[tuple[int, int]] | None,
) -> None:
    assert repaired(rows, [1], missing, limit, noise) == (total, moves)


@pytest.mark.parametrize(
    ("rows", "limit", "noise", "looked_at"),
    [
        (ROWS, INF, 0.0, [1.5, 4.0]),
        (ROWS, 3.5, 0.0, [1.5]),
        (TIED, INF, 0.0, [4.0]),
        (TINY, INF, 1e-15, []),
    ],
)
def test_moves_dearer_than_the_answer_may_be_are_not_looked_at(
    rows: Rows,
    limit: float,
    noise: float,
    looked_at: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs: list[float] = []
    original = module._distances

    def distances(step: IntArray, cost: FloatArray, *rest: Any) -> list[FloatArray]:
        costs.extend(cost[step != 0].tolist())
        return original(step, cost, *rest)

    monkeypatch.setattr(module, "_distances", distances)
    repaired(rows, [1], 2, limit, noise)
    assert sorted(costs) == looked_at
