"""The first completion is taken only where the search of all completions takes it, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from oasis.model.rounding import FloatArray, IntArray
from oasis.online.dp.worker_slots import best_split, falls_after, first_if_best

ONE = np.array([1])


def _draw(seed: int) -> tuple[FloatArray, IntArray, FloatArray, int]:
    """Rows of costs, lengths of runs, falling utilities and a demand; scales and ties vary."""
    rng = np.random.default_rng(seed)
    runs, most = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    units = rng.integers(1, 4, (runs, most)) if seed % 2 else rng.random((runs, most))
    rows = np.zeros((runs, most + 1))
    if seed % 4 < 2:  # the next worker never costs less: the costs are convex
        units = np.sort(units, axis=1)
    rows[:, 1:] = np.cumsum(units * rng.choice([1e-12, 0.01, 0.1, 1.0]), axis=1)
    for row, room in zip(rows, rng.integers(0, most + 1, runs), strict=True):
        row[room + 1 :] = np.inf
    lengths = rng.integers(1, 4, runs)
    falls = rng.random(int(lengths.sum())) ** rng.choice([0.01, 1.0, 30.0])
    utility = np.sort(falls * 10.0)[::-1].copy()
    if seed % 3 == 0:
        utility[: int(rng.integers(0, len(utility)))] = utility[0]
    return rows, lengths, utility, int(rng.integers(1, 2 * most + 1))


def _window(rows: FloatArray, lengths: IntArray, demand: int) -> tuple[FloatArray, IntArray] | None:
    """The runs up to the slot in which all slots together first have room for the demand."""
    room = (rows < np.inf).sum(axis=1) - 1
    each = room.repeat(lengths).cumsum()
    slots = int((each < demand).sum()) + 1
    if slots > len(each):
        return None
    run = np.arange(len(rows)).repeat(lengths)[:slots]
    used = np.bincount(run)
    width = int(room[: len(used)].max()) + 1  # a narrower table has the same costs
    return rows[: len(used), :width], used


def test_it_is_what_the_search_of_all_completions_finds() -> None:
    taken = 0
    for seed in range(1500):
        rows, lengths, utility, demand = _draw(seed)
        window = _window(rows, lengths, demand)
        if window is None or not falls_after(utility, int(window[1].sum()) - 1):
            continue
        first = first_if_best(*window, utility, demand)
        if first is None:
            continue
        taken += 1
        best = best_split(rows, lengths, utility, demand, 0.0)
        assert best is not None
        assert (first.payoff, first.completion) == (best.payoff, best.completion), seed
        assert first.counts.tolist() == best.counts.tolist(), seed
    assert taken > 300


@pytest.mark.parametrize(
    ("utility", "taken"),
    [([10.0, 3.0], True), ([10.0, 4.0], False), ([10.0, 5.0], False), ([10.0], True)],
)
def test_a_later_completion_must_be_worth_less_than_the_payoff_of_the_first(
    utility: list[float], taken: bool
) -> None:
    """The work costs 6 in the first slot, so its payoff is 4."""
    found = first_if_best(np.array([[0.0, 6.0]]), ONE, np.array(utility), 1)
    assert (found is not None) == taken
    if found is not None:
        assert (found.payoff, found.completion) == (4.0, 0)
        assert found.counts.tolist() == [1] + [0] * (len(utility) - 1)


def test_a_first_completion_that_does_not_pay_is_not_taken() -> None:
    for cost in (10.0, 11.0):
        assert first_if_best(np.array([[0.0, cost]]), ONE, np.array([10.0, 1.0]), 1) is None


def test_a_utility_falls_if_each_later_one_is_less_by_more_than_rounding() -> None:
    assert falls_after(np.array([8.0, 7.0, 0.0]), 0)
    assert not falls_after(np.array([8.0, 8.0]), 0)
    assert not falls_after(np.array([8.0, 8.0 - 4e-14]), 0)
    assert falls_after(np.array([8.0, 8.0]), 1)
    assert not falls_after(np.array([0.0, 0.0]), 1)
