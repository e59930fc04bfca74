"""Solves that keep capacities exactly: refused, cut off, solved again."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pulp
import pytest

from oasis import Cluster, Instance, Server, SolverError
from oasis.solvers import Solution, Status, highs
from oasis.solvers.arrays import ArrayModel
from offline.model.arrays import OfflineArrays
from offline.model.capacities import Limit, solve_within
from offline.model.milp import CompactModel
from tests import builders

HALF = 0.5 * (1.0 + 1.0013e-9)  # of a capacity: two are forgiven by HiGHS, not by `fits`
BY_ROUNDING = 0.5 * (1.0 + 1.001e-9) * (1 + 2**-52)  # the same, but by the last bit alone


def pair(amounts: tuple[float, ...] = (HALF, HALF)) -> tuple[pulp.LpProblem, list[Limit]]:
    """As many units as fit on one capacity, at most one of each item, the last worth most."""
    problem = pulp.LpProblem("pair", pulp.LpMaximize)
    units = [problem.add_variable(f"n_{k}", 0, 1, pulp.LpInteger) for k in range(len(amounts))]
    problem.setObjective(pulp.lpSum((1 + k) * v for k, v in enumerate(units)))
    limit = Limit(1.0, amounts, tuple(units))
    problem.addConstraint(limit.row())
    return problem, [limit]


def test_highs_forgives_what_the_verification_refuses() -> None:
    """When this fails, HiGHS may have become exact and `solve_within` may go."""
    problem, [limit] = pair()
    assert not limit.holds(highs.solve(problem, row_scale=highs.ROW_SCALE).values)


@pytest.mark.parametrize("amounts", [(HALF, HALF), (0.314159 * 2 * HALF, 0.685841 * 2 * HALF)])
def test_a_refused_solution_is_cut_off_and_the_next_best_is_found(amounts) -> None:
    problem, limits = pair(amounts)
    refused: list[None] = []
    found = solve_within(problem, lambda: limits, lambda: refused.append(None))
    best = max(
        sum((1 + k) * n for k, n in enumerate(counts))
        for counts in product(range(2), repeat=2)
        if limits[0].holds({f"n_{k}": float(n) for k, n in enumerate(counts)})
    )
    assert (found.status, found.objective) == (Status.OPTIMAL, best)
    assert best <= found.bound <= best * (1 + 2e-9) + 1e-15
    assert limits[0].holds(found.values)
    assert len(refused) == 1


def answering(monkeypatch: pytest.MonkeyPatch, status: Status) -> Callable[..., Any]:
    """HiGHS always says that both units fit."""

    def solve(problem: pulp.LpProblem, **options: Any) -> Solution:
        return Solution(status, 3.0, 4.0, 1 / 3, {"n_0": 1.0, "n_1": 1.0})

    monkeypatch.setattr(highs, "solve", solve)
    return solve


def test_a_limit_that_ends_the_solve_leaves_the_bound_alone(monkeypatch) -> None:
    answering(monkeypatch, Status.TIME_LIMIT)
    problem, limits = pair()
    found = solve_within(problem, lambda: limits)
    assert found == Solution(Status.TIME_LIMIT, None, 4.0, math.inf, {})


@pytest.mark.parametrize("amount", [HALF, BY_ROUNDING])
def test_a_solver_that_breaks_rows_of_whole_numbers_is_an_error(monkeypatch, amount) -> None:
    answering(monkeypatch, Status.OPTIMAL)
    problem, limits = pair((amount, amount))
    with pytest.raises(SolverError, match="breaks a row of whole numbers"):
        solve_within(problem, lambda: limits)


def servers(number: int, amounts: tuple[float, ...]) -> tuple[pulp.LpProblem, list[Limit]]:
    """As many units as fit on servers of one size, at most one of each item on each."""
    problem = pulp.LpProblem("servers", pulp.LpMaximize)
    limits = []
    for s in range(number):
        units = [problem.add_variable(f"n_{s}_{k}", 0, 1, pulp.LpInteger) for k in range(2)]
        limits.append(Limit(1.0, amounts, tuple(units)))
    problem.setObjective(pulp.lpSum(v for limit in limits for v in limit.variables))
    for limit in limits:
        problem.addConstraint(limit.row())
    return problem, limits


@pytest.mark.parametrize("amount", [HALF, BY_ROUNDING])
def test_a_cover_applies_on_every_capacity_of_its_size(amount: float) -> None:
    """And all that rounding decides in a solution is cut off at once."""
    problem, limits = servers(3, (amount, amount))
    refused: list[None] = []
    found = solve_within(problem, lambda: limits, lambda: refused.append(None))
    assert found.objective == 3.0
    assert len(refused) == 1


def test_variables_of_the_rows_that_cut_off_have_names_of_their_own(monkeypatch) -> None:
    asked, solve = list[ArrayModel](), highs.solve
    monkeypatch.setattr(highs, "solve", lambda m, **by: asked.append(m) or solve(m, **by))
    problem, limits = servers(3, (0.314159 * 2 * HALF, 0.685841 * 2 * HALF))
    assert solve_within(problem, lambda: limits).objective == 3.0
    assert len(problem.variables()) == 6
    assert len(asked[-1].names) == len(set(asked[-1].names)) == 6 + 2 * 3


def test_each_server_has_a_limit_of_its_own_in_each_slot() -> None:
    servers = tuple(Server(f"w{n}", {"gpu": float(n)}) for n in (1, 3))
    cluster = Cluster(("gpu",), servers, (), 1.0)
    jobs = tuple(builders.job(name, 0, 1, workers=2) for name in "ab")
    model = CompactModel(OfflineArrays.of(Instance(2, cluster, jobs)))
    limits = {(limit.capacity, limit.amounts) for limit in model.limits()}
    assert limits == {(1.0, (1.0, 1.0)), (3.0, (1.0, 1.0))}
    assert len([*model.limits()]) == 4
