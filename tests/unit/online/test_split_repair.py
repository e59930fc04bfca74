"""Moves that add what is missing: steps that add up to it at the least cost."""

from __future__ import annotations

import numpy as np
import pytest

from oasis.online.dp.lagrangian import _distances, _path

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
