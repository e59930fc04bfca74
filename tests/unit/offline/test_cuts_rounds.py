"""The work spent on a cut: rounds of knapsacks, traces of absent items, and greedy patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers.budget import Budget
from offline.benders import cuts
from offline.benders.cuts import CLEAR, FEWEST, TRACE, Cut, Servers
from offline.benders.server_classes import classes

NO_LIMIT = Budget()
SEEDS = range(40)


def servers(seed: int, items: int = 4) -> Servers:
    """Two or three servers with two resources, and items that ask for some of each."""
    rng = np.random.default_rng(seed)
    capacity = rng.choice([1.0, 2.0, 3.0, 4.1], (int(rng.integers(2, 4)), 2))
    demand = rng.choice([0.0, 0.1, 1 / 3, 0.7, 1.0, 1.3], (items, 2))
    demand[~demand.any(axis=1), 0] = 0.5
    return Servers(*classes(capacity, None), demand, rng.integers(1, 6, items))


class Calls:
    """Counts the calls of a method and keeps its first arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.first: list[Any] = []
        original = getattr(Servers, name)

        def called(served: Servers, first: Any, *rest: Any) -> Any:
            self.first.append(first)
            return original(served, first, *rest)

        monkeypatch.setattr(Servers, name, called)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_rounds_of_knapsacks_than_allowed(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(cuts, "QUICK", 0.0)
    filled = Calls(monkeypatch, "_filled")
    needed = set()
    for seed in SEEDS:
        served = servers(seed)
        filled.first.clear()
        served._priced(served.most * 1.0, 2.0, NO_LIMIT, most)
        needed.add(len(filled.first))
    assert max(needed) == most


@pytest.mark.parametrize("seed", SEEDS)
def test_traces_of_all_absent_items_together_are_one_small_share_of_what_fits(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """As a share of the units of it that the servers hold, and of every item the same."""
    served = servers(seed)
    counts = np.zeros(4)
    counts[seed % 4] = 2.0
    priced = Calls(monkeypatch, "_priced")
    served._lifted(Cut(np.ones(4)), counts, NO_LIMIT)
    (added,) = priced.first
    held = (served.number @ served._room).astype(float)
    absent = (counts <= FEWEST) & (held > 0)
    assert (added[~absent] == counts[~absent]).all()
    shares = added[absent] / held[absent]
    assert shares == pytest.approx(np.full(absent.sum(), TRACE / absent.sum()))


def test_without_absent_items_there_is_nothing_to_lift(monkeypatch: pytest.MonkeyPatch) -> None:
    served = servers(1)
    priced = Calls(monkeypatch, "_priced")
    cut = Cut(np.ones(4))
    assert served._lifted(cut, np.ones(4), NO_LIMIT) is cut
    assert priced.first == []


def fits(pattern: IntArray, demand: FloatArray, capacity: FloatArray) -> bool:
    return bool((pattern @ demand <= capacity * (1 + 1e-9)).all())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_guessed_pattern_fits_and_leaves_no_room_for_another_unit(seed: int) -> None:
    served = servers(seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 4)
    for pattern, capacity in zip(served._guessed(weights), served.capacity, strict=True):
        assert (pattern[weights == 0.0] == 0).all()
        assert (pattern <= served.most).all()
        assert fits(pattern, served.demand, capacity)
        for i in np.flatnonzero((weights > 0) & (pattern < served.most)):
            more = pattern + np.eye(4, dtype=np.int64)[i]
            assert not fits(more, served.demand, capacity)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_filled_pattern_is_worth_no_less_than_a_guessed_one(seed: int) -> None:
    served = servers(seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 4)
    guessed = served._guessed(weights)
    filled = served._filled(weights, NO_LIMIT)
    for guess, (bound, pattern), capacity in zip(guessed, filled, served.capacity, strict=True):
        assert fits(pattern, served.demand, capacity)
        assert guess @ weights <= pattern @ weights + 1e-9 <= bound + 2e-9
        assert bound <= pattern @ weights * (1 + 1e-8)


def test_a_cut_is_violated_beyond_the_tolerance_of_rounding() -> None:
    cut = Cut(np.array([0.5, 0.25]))
    assert not cut.is_violated(np.array([2.0, 0.0]))
    assert not cut.is_violated(np.array([2.0, 3e-6]))
    assert cut.is_violated(np.array([2.0, 1e-5]))


@pytest.mark.parametrize("excess", [0.5, 2.0])
def test_a_point_that_hardly_exceeds_what_fits_gives_no_cut(excess: float) -> None:
    """One server of one unit: counts above 1 are cut off from a clear excess on."""
    served = Servers(*classes(np.ones((1, 1)), None), np.ones((1, 1)), np.array([3]))
    cut = served.separate(np.array([1.0 + excess * CLEAR]), NO_LIMIT)
    assert (cut is not None) == (excess > 1)


def test_patterns_below_another_one_and_repeated_ones_are_left_out() -> None:
    rows = np.array([[1, 2], [2, 1], [1, 1], [2, 1], [0, 2], [0, 0]])
    assert sorted(cuts._maximal(rows).tolist()) == [[1, 2], [2, 1]]
