"""The dynamic programme over whole chunks against all ways to spread them over a few slots."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from oasis.model.rounding import FloatArray, IntArray
from oasis.online.dp.worker_slots import ChunkSplit

SEEDS = range(60)


def case(seed: int) -> tuple[FloatArray, IntArray, int, FloatArray]:
    """Costs of 0..N workers in each slot, work of each count, the total, and utilities."""
    rng = np.random.default_rng(seed)
    slots, most = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    table = np.zeros((slots, most + 1))
    table[:, 1:] = np.cumsum(rng.integers(1, 5, (slots, most)), axis=1)
    if rng.random() < 0.4:
        table[rng.integers(slots), 1 + rng.integers(most) :] = np.inf
    progress = np.append(0, np.cumsum(rng.integers(0, 3, most)))
    total = int(rng.integers(1, 2 + slots * max(1, int(progress[-1]))))
    utility = np.sort(rng.integers(0, 20, slots))[::-1].astype(float)
    return table, progress, total, utility


def enumerated(table: FloatArray, progress: IntArray, total: int) -> list[float]:
    """Cheapest cost of all the work by the end of each slot."""
    best = np.full(len(table), np.inf)
    for counts in product(range(table.shape[1]), repeat=len(table)):
        done = np.cumsum(progress[list(counts)])
        cost = np.cumsum([table[t, n] for t, n in enumerate(counts)])
        for t in np.flatnonzero(done >= total):
            best[t] = min(best[t], cost[t])
    return best.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_costs_are_those_of_the_cheapest_way(seed: int) -> None:
    table, progress, total, _ = case(seed)
    split = ChunkSplit.of(table, progress, total)
    assert split.cost.tolist() == enumerated(table, progress, total)


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_do_the_work_at_their_cost(seed: int) -> None:
    table, progress, total, _ = case(seed)
    split = ChunkSplit.of(table, progress, total)
    for last in np.flatnonzero(split.cost < np.inf):
        counts = split.counts(int(last))
        assert counts.shape == (last + 1,)
        assert progress[counts].sum() >= total
        assert table[np.arange(last + 1), counts].sum() == split.cost[last]


@pytest.mark.parametrize("seed", SEEDS)
def test_best_is_the_earliest_of_the_highest_positive_payoffs(seed: int) -> None:
    table, progress, total, utility = case(seed)
    cost = np.array(enumerated(table, progress, total))
    payoff = np.where(utility > 0, utility - cost, -np.inf)
    found = ChunkSplit.of(table, progress, total).best(utility)
    if payoff.max() <= 0:
        assert found is None
        return
    assert found is not None
    assert found.payoff == payoff.max()
    at = int(payoff.argmax())
    assert len(found.counts) == at + 1
    assert found.completion == np.flatnonzero(found.counts)[-1] <= at


@pytest.mark.parametrize("seed", SEEDS)
def test_cheapest_and_smallest_factor_are_those_of_the_enumeration(seed: int) -> None:
    table, progress, total, utility = case(seed)
    cost = np.array(enumerated(table, progress, total))
    split = ChunkSplit.of(table, progress, total)
    cheapest = split.cheapest()
    assert (cheapest is None) == (cost[-1] == np.inf)
    if cheapest is not None:
        assert cheapest.payoff == -cost[-1]
        assert len(cheapest.counts) == len(table)
    able = (utility > 0) & (cost < np.inf)
    factor = split.smallest_factor(utility)
    assert factor == (min(cost[able] / utility[able]) if able.any() else None)


def test_a_payoff_of_nothing_is_none() -> None:
    split = ChunkSplit.of(np.array([[0.0, 2.0]]), np.array([0, 1]), 1)
    assert split.best(np.array([2.0])) is None
    found = split.best(np.array([2.5]))
    assert found is not None
    assert (found.payoff, found.completion, found.counts.tolist()) == (0.5, 0, [1])


def test_utility_of_nothing_is_not_worth_free_work() -> None:
    split = ChunkSplit.of(np.zeros((2, 2)), np.array([0, 1]), 1)
    assert split.best(np.zeros(2)) is None
    assert split.smallest_factor(np.zeros(2)) is None
    assert split.smallest_factor(np.array([1.0, 0.0])) == 0.0


def test_work_may_exceed_what_is_asked_for() -> None:
    """Two workers do 3 chunks at once, one does none: the only way to do 2 of them."""
    split = ChunkSplit.of(np.array([[0.0, 1.0, 5.0]] * 2), np.array([0, 0, 3]), 2)
    assert split.cost.tolist() == [5.0, 5.0]
    assert split.counts(1).tolist() == [2, 0]  # as early as may be
