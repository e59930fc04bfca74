"""Lagrangian bounds are as good as the multipliers allow, and no slot is kept from moving."""

from __future__ import annotations

import numpy as np
import pytest

from oasis.model.rounding import FloatArray, IntArray
from oasis.online.dp import worker_slots
from oasis.online.dp.lagrangian import Envelope, _assign
from tests.oracle.textbook_split import costs

SEEDS = range(40)


def case(seed: int) -> tuple[FloatArray, IntArray, int]:
    """Costs of 0..N workers in runs of equal slots, the lengths of the runs, and the work."""
    rng = np.random.default_rng(seed)
    runs, most = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    rows = np.zeros((runs, most + 1))
    rows[:, 1:] = np.cumsum(rng.integers(1, 9, (runs, most)), axis=1)
    if rng.random() < 0.3:
        rows[rng.integers(runs), 1 + rng.integers(most) :] = np.inf
    lengths = rng.integers(1, 4, runs)
    room = int((np.isfinite(rows).sum(axis=1) - 1) @ lengths)
    return rows, lengths, int(rng.integers(1, room + 1)) if room else 0


CASES = [found for found in map(case, SEEDS) if found[2]]


@pytest.mark.parametrize("found", CASES)
def test_bounds_are_the_best_that_any_of_the_multipliers_gives(
    found: tuple[FloatArray, IntArray, int],
) -> None:
    envelope = Envelope(*found)
    n = int(found[1].sum())
    multipliers = envelope.multipliers(np.arange(envelope.earliest, n))
    together = envelope.bounds(multipliers)
    alone = np.array([envelope.bounds(multipliers[k : k + 1]) for k in range(len(multipliers))])
    np.testing.assert_array_equal(together, alone.max(axis=0))


@pytest.mark.parametrize("found", CASES)
def test_bounds_at_all_multipliers_are_the_costs_if_slots_could_be_divided(
    found: tuple[FloatArray, IntArray, int],
) -> None:
    """And so at most the true costs."""
    envelope = Envelope(*found)
    rows, lengths, demand = found
    n = int(lengths.sum())
    bounds = envelope.bounds(envelope.multipliers(np.arange(envelope.earliest, n)))
    true = costs(np.repeat(rows, lengths, axis=0), demand)
    assert np.flatnonzero(np.isfinite(true))[0] == envelope.earliest
    for completion in range(envelope.earliest, n):
        slots, multiplier, missing = envelope.relaxed(completion)
        relaxed = float(rows[slots.row, slots.count] @ slots.number) + multiplier * missing
        assert bounds[completion] == pytest.approx(relaxed, rel=1e-12)
        assert relaxed <= true[completion] + 1e-9
        assert slots.count @ slots.number + missing == demand


def test_every_slot_of_a_group_may_move_and_the_cheapest_group_first() -> None:
    """Group 0 has two slots that step by 1 at a cost of 1, group 1 has one at a cost of 3."""
    group, step, cost = np.array([0, 1]), np.array([1, 1]), np.array([1.0, 3.0])
    number = np.array([2, 1])
    for path, chosen in (([1], [0]), ([1, 1], [0, 0]), ([1, 1, 1], [0, 0, 1])):
        found = _assign(path, group, step, cost, number)
        assert found is not None
        assert found.tolist() == chosen
    assert _assign([1] * 4, group, step, cost, number) is None
    assert _assign([2], group, step, cost, number) is None
    assert number.tolist() == [2, 1]


def test_a_slot_that_moves_once_does_not_move_again() -> None:
    """One slot that may step by 1 or by 2: not both."""
    group, step, cost = np.array([0, 0]), np.array([1, 2]), np.array([1.0, 1.0])
    assert _assign([1, 2], group, step, cost, np.array([1])) is None
    found = _assign([1, 2], group, step, cost, np.array([2]))
    assert found is not None
    assert found.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("utility", "at_least", "kept"),
    [(0.3, 0.0, 1), (0.5, 0.0, 2), (0.3, -0.3, 2), (3.0, 0.0, 3), (3.0, 2.5, 2), (0.0, 0.0, 0)],
)
def test_costs_that_no_payoff_of_interest_could_bear_are_left_out(
    monkeypatch: pytest.MonkeyPatch, utility: float, at_least: float, kept: int
) -> None:
    """Sums with far dearer costs would drown the digits of the others."""
    seen: list[FloatArray] = []

    def envelope(rows: FloatArray, lengths: IntArray, demand: int) -> Envelope:
        seen.append(rows)
        return Envelope(rows, lengths, demand)

    monkeypatch.setattr(worker_slots, "Envelope", envelope)
    rows = np.array([[0.0, 0.2, 0.4, 0.9]])
    worker_slots.best_split(rows, np.array([1]), np.array([utility]), 1, at_least)
    assert [int(np.isfinite(row[1:]).sum()) for row in seen[0]] == [kept]


def test_of_runs_that_cost_the_same_the_earlier_one_works() -> None:
    rows = np.array([[0.0, 2.0], [0.0, 2.0], [0.0, 0.1]])
    split = worker_slots.best_split(rows, np.ones(3, np.int64), np.full(3, 10.0), demand=2)
    assert split is not None
    assert split.counts.tolist() == [1, 0, 1]
