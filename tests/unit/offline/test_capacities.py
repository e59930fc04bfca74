"""Capacities kept exactly: solves that are refused and cut off by covers, which spare what fits."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pulp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis import SolverError
from oasis.model.rounding import CAPACITY_TOLERANCE
from oasis.solvers import Solution, Status, highs
from oasis.solvers.arrays import ArrayModel
from offline.model.capacities import CapacityLevel, Cover, Limit, fits, solve_within

HALF = 0.5 * (1.0 + 1.0013e-9)  # of a capacity: two are forgiven by HiGHS, not by `fits`
BY_ROUNDING = 0.5 * (1.0 + 1.001e-9) * (1 + 2**-52)  # the same, but by the last bit alone


def servers(
    number: int, amounts: tuple[float, ...] = (HALF, HALF)
) -> tuple[pulp.LpProblem, list[Limit]]:
    """As many units as fit on servers of one size, at most one of each item on each.

    The last item is worth most.
    """
    problem = pulp.LpProblem("servers", pulp.LpMaximize)
    units = [
        [problem.add_variable(f"n_{s}_{k}", 0, 1, pulp.LpInteger) for k in range(len(amounts))]
        for s in range(number)
    ]
    problem.setObjective(pulp.lpSum((1 + k) * v for here in units for k, v in enumerate(here)))
    limits = [Limit(1.0, amounts, tuple(here)) for here in units]
    for limit in limits:
        problem.addConstraint(limit.row())
    return problem, limits


def test_highs_forgives_what_the_verification_refuses() -> None:
    """When this fails, HiGHS may have become exact and `solve_within` may go."""
    problem, [limit] = servers(1)
    assert not limit.holds(highs.solve(problem, row_scale=highs.ROW_SCALE).values)


def answering(monkeypatch: pytest.MonkeyPatch, status: Status) -> Callable[..., Any]:
    """HiGHS always says that both units fit."""

    def solve(problem: pulp.LpProblem, **options: Any) -> Solution:
        return Solution(status, 3.0, 4.0, 1 / 3, {"n_0_0": 1.0, "n_0_1": 1.0})

    monkeypatch.setattr(highs, "solve", solve)
    return solve


def test_a_limit_that_ends_the_solve_leaves_the_bound_alone(monkeypatch) -> None:
    answering(monkeypatch, Status.TIME_LIMIT)
    problem, limits = servers(1)
    found = solve_within(problem, lambda: limits)
    assert found == Solution(Status.TIME_LIMIT, None, 4.0, math.inf, {})


@pytest.mark.parametrize("amount", [HALF, BY_ROUNDING])
def test_a_solver_that_breaks_rows_of_whole_numbers_is_an_error(monkeypatch, amount) -> None:
    answering(monkeypatch, Status.OPTIMAL)
    problem, limits = servers(1, (amount, amount))
    with pytest.raises(SolverError, match="breaks a row of whole numbers"):
        solve_within(problem, lambda: limits)


UNEVEN = (0.314159 * 2 * HALF, 0.685841 * 2 * HALF)


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("amounts", [(HALF, HALF), (BY_ROUNDING, BY_ROUNDING), UNEVEN])
def test_a_refused_solution_is_cut_off_on_every_server_at_once(amounts, number) -> None:
    """The next best is found; variables of the rows that cut off have names of their own."""
    asked, refused = list[ArrayModel](), list[None]()
    solve = highs.solve
    problem, limits = servers(number, amounts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(highs, "solve", lambda m, **by: asked.append(m) or solve(m, **by))
        found = solve_within(problem, lambda: limits, lambda: refused.append(None))
    assert (found.status, found.objective) == (Status.OPTIMAL, 2.0 * number)
    assert found.objective <= found.bound <= found.objective * (1 + 2e-9) + 1e-15
    assert all(limit.holds(found.values) for limit in limits)
    assert len(refused) == 1
    assert len(problem.variables()) == 2 * number
    names = asked[-1].names
    assert len(names) == len(set(names)) == 2 * number * (1 if amounts == (HALF, HALF) else 2)


# -- covers ----------------------------------------------------------------------------------------

SIZES = st.sampled_from([1 / 2, 1 / 3, 2 / 3, 0.1, 0.314159, 0.685841, 0.25])
HAIRS = st.sampled_from([0.0, 1e-9, CAPACITY_TOLERANCE, 1.2e-9, 2e-9, 1e-3])


@st.composite
def overfull(draw: st.DrawFn) -> tuple[list[float], list[int], float]:
    """Amounts, counts that do not fit, and a capacity."""
    capacity = draw(st.sampled_from([1.0, 61.0, 0.3]))
    items = draw(st.integers(1, 4))
    factor = capacity * (1.0 + draw(HAIRS))
    amounts = [factor * draw(SIZES) for _ in range(items)]
    counts = [draw(st.integers(0, 4)) for _ in range(items)]
    while fits(amounts, counts, capacity):
        counts[0] += 1
    return amounts, counts, capacity


def below_some_level(levels: list[CapacityLevel], counts: tuple[int, ...]) -> bool:
    return any(not level.is_reached(np.array(counts)) for level in levels)


@given(overfull())
def test_what_fits_is_below_a_level_and_the_cover_is_not_but_has_no_unit_to_spare(case) -> None:
    amounts, counts, capacity = case
    cover = Cover.within(amounts, counts, capacity)
    levels = cover.levels()
    assert not below_some_level(levels, tuple(counts))
    assert not below_some_level(levels, tuple(cover.counts))
    for other in product(*(range(n + 2) for n in counts)):
        assert below_some_level(levels, other) or not fits(amounts, other, capacity)
    assert all(least <= n for least, n in zip(cover.counts, counts, strict=True))
    assert not fits(amounts, cover.counts, capacity)
    for i, n in enumerate(cover.counts):
        fewer = [*cover.counts[:i], n - 1, *cover.counts[i + 1 :]]
        assert n == 0 or fits(amounts, fewer, capacity)


@given(overfull(), st.lists(SIZES, min_size=1, max_size=3))
def test_levels_hold_for_other_items_on_the_same_capacity(case, sizes) -> None:
    amounts, counts, capacity = case
    others = [capacity * size for size in sizes] + amounts[:1]
    levels = Cover.within(amounts, counts, capacity).levels(others)
    for other in product(*(range(4) for _ in others)):
        assert not levels or below_some_level(levels, other) or not fits(others, other, capacity)


def test_equal_items_share_one_level_and_what_rounding_decides_is_cut_off_item_by_item() -> None:
    sure = Cover.within([0.5 * (1 + 1.5e-9)] * 3, [0, 1, 1], 1.0)
    [level] = sure.levels()
    assert (level.items.tolist(), level.count, sure.is_sure) == ([0, 1, 2], 2, True)
    amount = (1.0 + CAPACITY_TOLERANCE) / 2 * (1 + 2**-52)
    cover = Cover.within([amount] * 3, [1, 0, 1], 1.0)
    assert not cover.is_sure
    assert [(level.items.tolist(), level.count) for level in cover.levels()] == [([0], 1), ([2], 1)]
    assert cover.levels([amount, amount]) == []
