"""Parts of the search for the cheapest split: bounds, repair, first completion, minimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis.online.dp.lagrangian as module
from oasis.model.rounding import FloatArray, IntArray
from oasis.online.dp import ChunkSplit, worker_slots
from oasis.online.dp.lagrangian import Envelope, _assign, _distances, _path, repair
from oasis.online.dp.worker_slots import best_split, falls_after, first_if_best, workers_for
from tests.builders import rows
from tests.oracle.textbook_split import costs

ROWS = rows(__file__, "splits.toml")


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


CASES = [found for found in map(case, range(40)) if found[2]]


@pytest.mark.parametrize("found", CASES)
def test_bounds_are_the_best_of_the_multipliers_and_the_costs_if_slots_could_be_divided(found):
    """And so at most the true costs."""
    envelope = Envelope(*found)
    costs_of, lengths, demand = found
    n = int(lengths.sum())
    multipliers = envelope.multipliers(np.arange(envelope.earliest, n))
    bounds = envelope.bounds(multipliers)
    alone = np.array([envelope.bounds(multipliers[k : k + 1]) for k in range(len(multipliers))])
    np.testing.assert_array_equal(bounds, alone.max(axis=0))
    true = costs(np.repeat(costs_of, lengths, axis=0), demand)
    assert np.flatnonzero(np.isfinite(true))[0] == envelope.earliest
    for completion in range(envelope.earliest, n):
        slots, multiplier, missing = envelope.relaxed(completion)
        relaxed = float(costs_of[slots.row, slots.count] @ slots.number) + multiplier * missing
        assert bounds[completion] == pytest.approx(relaxed, rel=1e-12)
        assert relaxed <= true[completion] + 1e-9
        assert slots.count @ slots.number + missing == demand


def test_every_slot_of_a_group_may_move_and_the_cheapest_group_first():
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


def test_a_slot_that_moves_once_does_not_move_again():
    """One slot that may step by 1 or by 2: not both."""
    group, step, cost = np.array([0, 0]), np.array([1, 2]), np.array([1.0, 1.0])
    assert _assign([1, 2], group, step, cost, np.array([1])) is None
    found = _assign([1, 2], group, step, cost, np.array([2]))
    assert found is not None
    assert found.tolist() == [0, 1]


@pytest.mark.parametrize(("utility", "at_least", "kept"), ROWS["kept"])
def test_costs_that_no_payoff_of_interest_could_bear_are_left_out(
    utility, at_least, kept, monkeypatch
):
    """Sums with far dearer costs would drown the digits of the others."""
    seen: list[FloatArray] = []

    def envelope(rows: FloatArray, lengths: IntArray, demand: int) -> Envelope:
        seen.append(rows)
        return Envelope(rows, lengths, demand)

    monkeypatch.setattr(worker_slots, "Envelope", envelope)
    rows = np.array([[0.0, 0.2, 0.4, 0.9]])
    worker_slots.best_split(rows, np.array([1]), np.array([utility]), 1, at_least)
    assert [int(np.isfinite(row[1:]).sum()) for row in seen[0]] == [kept]


@pytest.mark.parametrize("row", ROWS["path"])
def test_a_path_is_made_of_steps_of_the_least_cost_in_all(row):
    levels = _distances(np.array(row["steps"]), np.array(row["costs"]), 4, within=20.0)
    assert sorted(_path(levels, row["total"])) == row["path"]
    price = dict(zip(row["steps"], row["costs"], strict=True))
    assert levels[-1][4 + row["total"]] == sum(price[step] for step in row["path"])


def test_a_repair_that_is_not_wanted_within_rounding_is_none():
    """The dearest move that is wanted lies between the single move and a bound of equal cost."""
    reduced = np.array([[0, 45 - 2.5e-8, 1000.0], [0, 1000.0, 90.0]])
    ones = np.ones(2, dtype=np.int64)
    assert repair(reduced, 0 * ones, ones, 2, limit=90 - 4e-8, noise=1e-8)[1] is None


def test_a_tie_that_does_not_pay_leaves_the_later_completion_that_does():
    rows, worth = np.array([[0.0, 10 + 5e-9], [0.0, 10 - 1e-9]]), np.full(2, 10.0)
    split = best_split(rows, np.array([1, 1]), worth, 1, at_least=0.0)
    assert split is not None
    assert split.completion == 1
    by_chunks = ChunkSplit.of(rows, np.array([0, 1]), 1).best(worth)
    assert by_chunks is not None
    assert by_chunks.payoff > 0


def repaired(row: dict[str, Any]) -> tuple[float, list[list[int]] | None]:
    number = np.full(1, 2, np.int64)
    limit, noise = row.get("limit", np.inf), row.get("noise", 0.0)
    rows, count, missing = np.array([row["costs"]]), np.array([1]), row.get("missing", 2)
    total, find = module.repair(rows, count, number, missing, limit, noise)
    if find is None:
        return total, None
    group, new = find()
    return total, sorted(map(list, zip(group.tolist(), new.tolist(), strict=True)))


@pytest.mark.parametrize("row", ROWS["gap"])
def test_the_gap_is_closed_at_the_least_total_below_the_limit(row):
    assert repaired(row) == (row["total"], row.get("moves"))


@pytest.mark.parametrize("row", ROWS["looked_at"])
def test_moves_dearer_than_the_answer_may_be_are_not_looked_at(row, monkeypatch):
    costs: list[float] = []
    original = module._distances

    def distances(step: IntArray, cost: FloatArray, *rest: Any) -> list[FloatArray]:
        costs.extend(cost[step != 0].tolist())
        return original(step, cost, *rest)

    monkeypatch.setattr(module, "_distances", distances)
    repaired(row)
    assert sorted(costs) == row["seen"]


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


def test_it_is_what_the_search_of_all_completions_finds():
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
def test_a_later_completion_must_be_worth_less_than_the_payoff_of_the_first(utility, taken):
    """The work costs 6 in the first slot, so its payoff is 4."""
    found = first_if_best(np.array([[0.0, 6.0]]), ONE, np.array(utility), 1)
    assert (found is not None) == taken
    if found is not None:
        assert (found.payoff, found.completion) == (4.0, 0)
        assert found.counts.tolist() == [1] + [0] * (len(utility) - 1)


def test_a_utility_falls_if_each_later_one_is_less_by_more_than_rounding():
    assert falls_after(np.array([8.0, 7.0, 0.0]), 0)
    assert not falls_after(np.array([8.0, 8.0]), 0)
    assert not falls_after(np.array([8.0, 8.0 - 4e-14]), 0)
    assert falls_after(np.array([8.0, 8.0]), 1)
    assert not falls_after(np.array([0.0, 0.0]), 1)


counts_of_slots = st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any)


@given(counts_of_slots, st.integers(1, 5))
def test_counts_are_raised_and_the_work_ends_where_it_can(counts, least):
    given_counts = np.array(counts)
    work = int(given_counts.sum())
    workers = workers_for(given_counts, least, work)
    assert given_counts.tolist() == counts  # not written over
    assert all(n == 0 or n >= least for n in workers)
    assert workers.sum() >= work > workers[:-1].sum()
    raised = workers_for(given_counts, least, None)
    assert raised.tolist() == [max(n, least) if n else 0 for n in counts]
    lowered = workers < raised[: len(workers)]
    assert set(workers.tolist()) <= {0, least} or workers.sum() == work  # no more than it has to do
    assert (workers <= raised[: len(workers)]).all()
    for first in np.flatnonzero(lowered)[:1]:  # all that could be lowered after it are at `least`
        assert (workers[first + 1 :] <= least).all()
