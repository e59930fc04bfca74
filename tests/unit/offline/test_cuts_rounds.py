"""The work spent on a cut: rounds of knapsacks, traces of absent items, and greedy patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers.budget import Budget
from offline import patterns
from offline.patterns import (
    CLEAR,
    CLOSE,
    FEWEST,
    LIFTING_TRACE,
    Cut,
    CutGenerator,
    PatternPool,
    classes,
)

NO_LIMIT = Budget()
SEEDS = range(40)


def servers(seed: int, items: int = 4) -> CutGenerator:
    """Two or three servers with two resources, and items that ask for some of each."""
    rng = np.random.default_rng(seed)
    capacity = rng.choice([1.0, 2.0, 3.0, 4.1], (int(rng.integers(2, 4)), 2))
    demand = rng.choice([0.0, 0.1, 1 / 3, 0.7, 1.0, 1.3], (items, 2))
    demand[~demand.any(axis=1), 0] = 0.5
    pool = PatternPool(*classes(capacity, None), demand, rng.integers(1, 6, items))
    return CutGenerator(pool)


class Calls:
    """Counts the calls of a method and keeps its first arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self.first: list[Any] = []
        original = getattr(owner, name)

        def called(it: Any, first: Any, *rest: Any) -> Any:
            self.first.append(first)
            return original(it, first, *rest)

        monkeypatch.setattr(owner, name, called)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_rounds_of_knapsacks_than_allowed(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    knapsacks = Calls(monkeypatch, PatternPool, "best")
    monkeypatch.setattr(patterns, "QUICK_GAIN", 0.0)
    needed = set()
    for seed in SEEDS:
        served = servers(seed)
        knapsacks.first.clear()
        served._deepest(served.pool.most * 1.0, 1.0, most, NO_LIMIT)
        needed.add(len(knapsacks.first))
    assert max(needed) == most


@pytest.mark.parametrize("seed", SEEDS)
def test_traces_of_all_absent_items_together_are_one_small_share_of_what_fits(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """As a share of the units of it that the servers hold, and of every item the same."""
    served = servers(seed)
    counts = np.zeros(4)
    counts[seed % 4] = 2.0
    searched = Calls(monkeypatch, CutGenerator, "_deepest")
    served._lift(Cut(np.ones(4)), counts, NO_LIMIT)
    (added,) = searched.first
    held = (served.pool.number @ served.pool.room).astype(float)
    absent = (counts <= FEWEST) & (held > 0)
    assert (added[~absent] == counts[~absent]).all()
    shares = added[absent] / held[absent]
    assert shares == pytest.approx(np.full(absent.sum(), LIFTING_TRACE / absent.sum()))


def test_without_absent_items_there_is_nothing_to_lift(monkeypatch: pytest.MonkeyPatch) -> None:
    served = servers(1)
    searched = Calls(monkeypatch, CutGenerator, "_deepest")
    cut = Cut(np.ones(4))
    assert served._lift(cut, np.ones(4), NO_LIMIT) is cut
    assert searched.first == []


def fits(pattern: IntArray, demand: FloatArray, capacity: FloatArray) -> bool:
    return bool((pattern @ demand <= capacity * (1 + 1e-9)).all())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_guessed_pattern_fits_and_leaves_no_room_for_another_unit(seed: int) -> None:
    pool = servers(seed).pool
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 4)
    for pattern, capacity in zip(pool.guess(weights), pool.capacity, strict=True):
        assert (pattern[weights == 0.0] == 0).all()
        assert (pattern <= pool.most).all()
        assert fits(pattern, pool.demand, capacity)
        for i in np.flatnonzero((weights > 0) & (pattern < pool.most)):
            more = pattern + np.eye(4, dtype=np.int64)[i]
            assert not fits(more, pool.demand, capacity)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_filled_pattern_is_worth_no_less_than_a_guessed_one(seed: int) -> None:
    pool = servers(seed).pool
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 4)
    guessed = pool.guess(weights)
    filled = pool.best(weights, NO_LIMIT)
    for guess, (bound, pattern), capacity in zip(guessed, filled, pool.capacity, strict=True):
        assert fits(pattern, pool.demand, capacity)
        assert guess @ weights <= pattern @ weights + 1e-9 <= bound + 2e-9
        assert bound <= pattern @ weights * (1 + 1e-8)


@pytest.mark.parametrize("excess", [-5e-11, 5e-11])
def test_a_pattern_that_rounding_could_save_is_added_up_exactly(excess: float) -> None:
    """Two units are above or below what is forgiven by half of what counts as close to it."""
    half = 0.5 * (1.0 + CAPACITY_TOLERANCE) * (1.0 + excess)
    pool = PatternPool(*classes(np.ones((1, 1)), None), np.full((1, 1), half), np.array([2]))
    assert abs(excess) < CLOSE
    assert pool._fits(0, np.array([2])) == (excess < 0)


def test_a_cut_is_violated_beyond_the_tolerance_of_rounding() -> None:
    cut = Cut(np.array([0.5, 0.25]))
    assert not cut.is_violated(np.array([2.0, 0.0]))
    assert not cut.is_violated(np.array([2.0, 3e-6]))
    assert cut.is_violated(np.array([2.0, 1e-5]))


@pytest.mark.parametrize("excess", [0.5, 2.0])
def test_a_point_that_hardly_exceeds_what_fits_gives_no_cut(excess: float) -> None:
    """One server of one unit: counts above 1 are cut off from a clear excess on."""
    pool = PatternPool(*classes(np.ones((1, 1)), None), np.ones((1, 1)), np.array([3]))
    served = CutGenerator(pool)
    cut = served.separate(np.array([1.0 + excess * CLEAR]), NO_LIMIT)
    assert (cut is not None) == (excess > 1)


def test_patterns_below_another_one_are_left_out() -> None:
    rows = np.array([[1, 2], [2, 1], [1, 1], [0, 2], [0, 0]])
    pool = PatternPool(*classes(np.ones((1, 2)), None), np.ones((2, 2)), np.array([2, 2]))
    pool.patterns[0] = {row.tobytes(): row for row in rows}
    assert sorted(pool.maximal()[0].tolist()) == [[1, 2], [2, 1]]
