"""The work spent on a cut: rounds of knapsacks, greedy patterns, and what counts as violated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers.budget import Budget
from offline import patterns
from offline.patterns import CLEAR, CLOSE, Cut, CutGenerator, PatternPool, classes

SEEDS = range(40)


def servers(seed: int, items: int = 4) -> CutGenerator:
    """Two or three servers with two resources, and items that ask for some of each."""
    rng = np.random.default_rng(seed)
    capacity = rng.choice([1.0, 2.0, 3.0, 4.1], (int(rng.integers(2, 4)), 2))
    demand = rng.choice([0.0, 0.1, 1 / 3, 0.7, 1.0, 1.3], (items, 2))
    demand[~demand.any(axis=1), 0] = 0.5
    pool = PatternPool(*classes(capacity, None), demand, rng.integers(1, 6, items))
    return CutGenerator(pool)


def one_server(demand: float, most: int) -> PatternPool:
    """Of one unit, for one item."""
    return PatternPool(*classes(np.ones((1, 1)), None), np.full((1, 1), demand), np.array([most]))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_rounds_of_knapsacks_than_allowed(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    asked: list[Any] = []
    best = PatternPool.best
    monkeypatch.setattr(PatternPool, "best", lambda *given: asked.append(given) or best(*given))
    monkeypatch.setattr(patterns, "QUICK_GAIN", 0.0)
    needed = set()
    for seed in SEEDS:
        served = servers(seed)
        asked.clear()
        served._deepest(served.pool.most * 1.0, 1.0, most, Budget())
        needed.add(len(asked))
    assert max(needed) == most


def fits(pattern: IntArray, demand: FloatArray, capacity: FloatArray) -> bool:
    return bool((pattern @ demand <= capacity * (1 + 1e-9)).all())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_guessed_pattern_leaves_no_room_and_a_filled_one_is_worth_no_less(seed: int) -> None:
    pool = servers(seed).pool
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 4)
    found = zip(pool.guess(weights), pool.best(weights, Budget()), pool.capacity, strict=True)
    for guess, (bound, pattern), capacity in found:
        assert (guess[weights == 0.0] == 0).all()
        for units in (guess, pattern):
            assert (units <= pool.most).all()
            assert fits(units, pool.demand, capacity)
        for i in np.flatnonzero((weights > 0) & (guess < pool.most)):
            assert not fits(guess + np.eye(4, dtype=np.int64)[i], pool.demand, capacity)
        assert guess @ weights <= pattern @ weights + 1e-9 <= bound + 2e-9
        assert bound <= pattern @ weights * (1 + 1e-8)


@pytest.mark.parametrize("excess", [-5e-11, 5e-11])
def test_a_pattern_that_rounding_could_save_is_added_up_exactly(excess: float) -> None:
    """Two units are above or below what is forgiven by half of what counts as close to it."""
    pool = one_server(0.5 * (1.0 + CAPACITY_TOLERANCE) * (1.0 + excess), 2)
    assert abs(excess) < CLOSE
    assert pool._fits(0, np.array([2])) == (excess < 0)


def test_a_cut_is_violated_beyond_rounding_and_new_from_a_clear_excess_on() -> None:
    cut = Cut(np.array([0.5, 0.25]))
    for more, is_violated in ((0.0, False), (3e-6, False), (1e-5, True)):
        assert cut.is_violated(np.array([2.0, more])) == is_violated
    served = CutGenerator(one_server(1.0, 3))
    assert served.separate(np.array([1.0 + 0.5 * CLEAR]), Budget()) is None
    assert served.separate(np.array([1.0 + 2.0 * CLEAR]), Budget()) is not None
