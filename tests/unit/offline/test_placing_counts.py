"""Placing the counts of one slot on servers: all of them, or as many as are worth most."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers import Solution, Status
from oasis.solvers.budget import Budget, WorkLimit
from offline.benders import subproblem
from offline.benders.subproblem import place, place_by_patterns
from offline.model import capacities
from tests.strategies import fewer


def table(*rows: list[float]) -> FloatArray:
    return np.array(rows, dtype=np.float64)


def placed(
    capacity: FloatArray, demand: FloatArray, counts: list[int], worth: list[float] | None = None
) -> tuple[IntArray, bool]:
    weights = None if worth is None else np.array(worth)
    return place(capacity, demand, np.array(counts), Budget(), weights)


def check_fits(units: IntArray, capacity: FloatArray, demand: FloatArray) -> None:
    assert (units >= 0).all()
    assert (units.T @ demand <= capacity * (1 + 1e-9) + 1e-9).all()


def most_worth(
    capacity: FloatArray, demand: FloatArray, counts: list[int], worth: FloatArray
) -> float:
    """The best value of any placement, by trying all of them."""
    servers = len(capacity)
    best = 0.0
    choices = [range(n + 1) for n in counts for _ in range(servers)]
    for choice in product(*choices):
        units = np.array(choice).reshape(len(counts), servers)
        fits = (units.T @ demand <= capacity + 1e-9).all()
        if fits and (units.sum(axis=1) <= counts).all():
            best = max(best, float(worth @ units.sum(axis=1)))
    return best


def test_large_items_are_put_where_they_leave_least() -> None:
    """The item of 3 goes on the server of 3, so that the two of 2 find the server of 4."""
    units = subproblem._greedy(table([4.0], [3.0]), table([2.0], [3.0]), np.array([2, 1]))
    assert units.tolist() == [[2, 0], [0, 1]]


def test_what_the_greedy_choice_misses_is_found() -> None:
    """(3, 3, 2, 2, 2) on two servers of 6: the threes together, or nobody can place all twos."""
    capacity, demand, counts = table([6.0], [6.0]), table([3.0], [2.0]), np.array([2, 3])
    units, is_complete = place_by_patterns(capacity, demand, counts, Budget(), np.ones(2))
    assert (units.sum(axis=1).tolist(), is_complete) == ([2, 3], True)
    check_fits(units, capacity, demand)
    units, status = subproblem._by_servers(capacity, demand, counts, Budget(), np.ones(2))
    assert (units.sum(axis=1).tolist(), status) == ([2, 3], Status.OPTIMAL)
    check_fits(units, capacity, demand)
    units, is_proven = placed(capacity, demand, [2, 3])
    assert (units.sum(axis=1).tolist(), is_proven) == ([2, 3], True)


def test_patterns_alone_prove_nothing_of_counts_that_do_not_fit() -> None:
    capacity, demand, counts = table([3.0], [3.0]), table([2.0]), np.array([3])
    units, is_complete = place_by_patterns(capacity, demand, counts, Budget(), np.ones(1))
    assert (units.sum(), is_complete) == (2, False)


def test_items_that_ask_for_nothing_fit_anywhere() -> None:
    units, is_proven = placed(table([0.0]), table([0.0]), [7])
    assert (units.tolist(), is_proven) == ([[7]], True)


def test_without_time_what_the_greedy_choice_found_is_returned_without_proof() -> None:
    capacity, demand, counts = table([6.0], [6.0]), table([3.0], [2.0]), np.array([2, 4])
    units, is_proven = place(capacity, demand, counts, WorkLimit(0.0).start())
    assert not is_proven
    check_fits(units, capacity, demand)
    assert (units >= subproblem._greedy(capacity, demand, counts)).all()


def test_ctrl_c_in_the_solver_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Solution(Status.INTERRUPTED, None, 0.0, np.inf, {})
    monkeypatch.setattr(capacities.highs, "solve", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt):
        placed(table([3.0], [3.0]), table([2.0]), [3])


@fewer(4)
@given(
    capacity=st.lists(st.integers(0, 5), min_size=1, max_size=2),
    items=st.lists(
        st.tuples(st.integers(1, 4), st.integers(0, 3), st.sampled_from([1.0, 2.5])),
        min_size=1,
        max_size=3,
    ),
)
def test_no_placement_is_worth_more_and_each_search_agrees(
    capacity: list[int], items: list[tuple[int, int, float]]
) -> None:
    room = table(*([float(c)] for c in capacity))
    demand = table(*([float(size)] for size, _, _ in items))
    counts = [count for _, count, _ in items]
    worth = np.array([value for _, _, value in items])
    best = most_worth(room, demand, counts, worth)
    units, is_proven = placed(room, demand, counts, worth.tolist())
    check_fits(units, room, demand)
    assert is_proven
    assert float(worth @ units.sum(axis=1)) == pytest.approx(best)
    units, status = subproblem._by_servers(room, demand, np.array(counts), Budget(), worth)
    check_fits(units, room, demand)
    assert status is Status.OPTIMAL
    assert float(worth @ units.sum(axis=1)) == pytest.approx(best)
