"""Closing the gap: moves dearer than the answer may be are left out, all others are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import oasis.online.dp.lagrangian as module
from oasis.model.rounding import FloatArray, IntArray

Rows = list[list[float]]


class Spy:
    """Records the costs of the moves that are combined."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.costs: list[float] = []
        original = module._distances

        def distances(step: IntArray, cost: FloatArray, *rest: Any) -> list[FloatArray]:
            self.costs += cost[step != 0].tolist()
            return original(step, cost, *rest)

        monkeypatch.setattr(module, "_distances", distances)


def repaired(
    rows: Rows, count: list[int], missing: int, limit: float = np.inf, noise: float = 0.0
) -> tuple[float, list[tuple[int, int]] | None]:
    number: npt.NDArray[np.int64] = np.full(len(rows), 2)
    total, find = module.repair(np.array(rows), np.array(count), number, missing, limit, noise)
    if find is None:
        return total, None
    group, new = find()
    return total, sorted(zip(group.tolist(), new.tolist(), strict=True))


# two slots of one group at 1 worker: +1 costs 1.5, +2 costs 4, +3 costs 9, -1 costs 6
ROWS = [[6.0, 0.0, 1.5, 4.0, 9.0]]


def test_moves_dearer_than_the_best_single_one_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spy = Spy(monkeypatch)
    assert repaired(ROWS, [1], 2) == (3.0, [(0, 2), (0, 2)])
    assert sorted(spy.costs) == [1.5, 4.0]


def test_moves_dearer_than_the_limit_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    assert repaired(ROWS, [1], 2, limit=3.5) == (3.0, [(0, 2), (0, 2)])
    assert spy.costs == [1.5]


def test_a_move_of_just_the_cost_of_the_answer_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window has slack for the rounding of sums, and the best single move lies at its end."""
    spy = Spy(monkeypatch)
    assert repaired([[9.0, 0.0, 7.0, 4.0]], [1], 2) == (4.0, [(0, 3)])
    assert spy.costs == [4.0]
    assert repaired([[9.0, 0.0, 7.0, 4.0]], [1], 2, limit=4.0) == (4.0, None)


def test_a_total_of_just_the_limit_is_of_no_interest() -> None:
    assert repaired(ROWS, [1], 2, limit=3.0) == (3.0, None)
    assert repaired(ROWS, [1], 2, limit=2.0) == (2.0, None)
    total, moves = repaired(ROWS, [1], 2, limit=float(np.nextafter(3.0, 4.0)))
    assert (total, moves) == (3.0, [(0, 2), (0, 2)])


def test_a_total_that_is_noise_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    assert repaired([[1.0, 0.0, 0.0, 1e-15]], [1], 2, noise=1e-15) == (1e-15, [(0, 3)])
    assert spy.costs == []
    assert repaired([[1.0, 0.0, 0.0, 1e-15]], [1], 2) == (0.0, [(0, 2), (0, 2)])


def test_single_move_is_kept_where_others_gain_no_more_than_noise() -> None:
    rows = [[9.0, 0.0, 1.0, 2.5]]
    assert repaired(rows, [1], 2) == (2.0, [(0, 2), (0, 2)])
    assert repaired(rows, [1], 2, noise=0.5) == (2.5, [(0, 3)])
    assert repaired(rows, [1], 2, noise=0.4) == (2.0, [(0, 2), (0, 2)])


def test_moves_may_go_down_to_go_up_further() -> None:
    """+3 in one slot and -1 in the other supply 2 at the cost of 2, +2 in one slot costs 5."""
    assert repaired([[1.0, 0.0, 4.0, 5.0, 1.0]], [1], 2) == (2.0, [(0, 0), (0, 4)])


def test_negative_reduced_costs_are_noise_and_count_as_nothing() -> None:
    assert repaired([[1.0, 0.0, -1e-17, 3.0]], [1], 1) == (0.0, [(0, 2)])
    total, moves = repaired([[1.0, 0.0, -1e-17, 3.0]], [1], 2)
    assert (total, moves) == (0.0, [(0, 2), (0, 2)])


def test_infinite_costs_are_never_part_of_a_repair() -> None:
    assert repaired([[np.inf, 0.0, np.inf, 3.0, np.inf]], [1], 2) == (3.0, [(0, 3)])
    total, moves = repaired([[np.inf, 0.0, np.inf, np.inf]], [1], 2, limit=10.0)
    assert (total, moves) == (10.0, None)
