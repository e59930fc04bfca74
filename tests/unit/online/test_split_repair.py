"""Moves that add what is missing: steps that add up to it at the least cost."""

from __future__ import annotations

import numpy as np
import pytest

from oasis.online.dp import ChunkSplit, best_split
from oasis.online.dp.lagrangian import _distances, _path, repair

UP, UP_TWO, DOWN = 1, 2, -1


@pytest.mark.parametrize(
    ("steps", "costs", "total", "expected"),
    [
        ([UP], [1.0], 1, [UP]),
        ([UP], [1.0], 3, [UP, UP, UP]),
        ([UP, UP_TWO], [3.0, 1.0], 3, [UP, UP_TWO]),
        ([DOWN, UP_TWO], [1.0, 1.0], 3, [DOWN, UP_TWO, UP_TWO]),
        ([UP, UP_TWO], [1.0, 5.0], 2, [UP, UP]),
    ],
)
def test_a_path_is_made_of_steps_of_the_least_cost_in_all(
    steps: list[int], costs: list[float], total: int, expected: list[int]
) -> None:
    levels = _distances(np.array(steps), np.array(costs), 4, within=20.0)
    assert sorted(_path(levels, total)) == expected
    price = dict(zip(steps, costs, strict=True))
    assert levels[-1][4 + total] == sum(price[step] for step in expected)


def test_a_repair_that_is_not_wanted_within_rounding_is_none() -> None:
    """The dearest move that is wanted lies between the single move and a bound of equal cost."""
    reduced = np.array([[0, 45 - 2.5e-8, 1000.0], [0, 1000.0, 90.0]])
    ones = np.ones(2, dtype=np.int64)
    assert repair(reduced, 0 * ones, ones, 2, limit=90 - 4e-8, noise=1e-8)[1] is None


def test_a_tie_that_does_not_pay_leaves_the_later_completion_that_does() -> None:
    rows, worth = np.array([[0.0, 10 + 5e-9], [0.0, 10 - 1e-9]]), np.full(2, 10.0)
    split = best_split(rows, np.array([1, 1]), worth, 1, at_least=0.0)
    assert split is not None
    assert split.completion == 1
    by_chunks = ChunkSplit.of(rows, np.array([0, 1]), 1).best(worth)
    assert by_chunks is not None
    assert by_chunks.payoff > 0
