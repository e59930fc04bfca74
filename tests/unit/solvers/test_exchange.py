"""Solutions that go to HiGHS and come from it while it runs."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
import pulp
import pytest

from oasis.solvers import Solution, highs
from oasis.solvers.budget import Budget, WorkCounter
from oasis.solvers.running import Exchange
from tests.unit.solvers.test_highs import knapsacks

ITEMS = 60


def knapsack() -> pulp.LpProblem:
    """A knapsack whose best solution HiGHS finds after several others."""
    return knapsacks(pulp.LpMaximize, ITEMS, 8)


class Box:
    """Has one solution, which it gives once; keeps what it gets."""

    def __init__(self, solution: Mapping[str, float] | None = None, pause: float = 0.0) -> None:
        self.solution, self.pause = solution, pause
        self.asked: list[float] = []
        self.got: list[Mapping[str, float]] = []

    def better(self, objective: float) -> Mapping[str, float] | None:
        self.asked.append(objective)
        if len(self.asked) < 5:
            time.sleep(self.pause)  # so that the calling thread looks meanwhile
        given, self.solution = self.solution, None
        return given

    def record(self, values: Mapping[str, float]) -> None:
        self.got.append(values)


def at_the_root(exchange: Exchange | None, budget: Budget | None = None) -> Solution:
    return highs.solve(knapsack(), node_limit=1, exchange=exchange, budget=budget)


@pytest.fixture(scope="module")
def alone() -> Solution:
    return at_the_root(None)


def test_a_better_solution_is_taken_up_while_the_solve_runs(alone: Solution) -> None:
    without, box = Box(), Box(alone.values)
    assert at_the_root(without).objective == alone.objective
    assert at_the_root(box).objective == pytest.approx(alone.objective)
    assert alone.objective is not None
    assert box.asked[0] == without.asked[0] == -np.inf
    assert without.asked[1] < 0.9 * alone.objective, "HiGHS takes its time to find it"
    assert box.asked[1] == pytest.approx(alone.objective)


def test_a_solution_that_breaks_a_row_is_ignored(alone: Solution) -> None:
    box = Box({f"x{k}": 1.0 for k in range(ITEMS)})
    assert at_the_root(box).objective == alone.objective
    assert box.solution is None, "it was given"


def test_what_is_found_meanwhile_is_passed_on(alone: Solution) -> None:
    box = Box(pause=0.3)
    solution = at_the_root(box)
    assert solution.objective == alone.objective
    assert box.got
    problem = knapsack()
    for values in box.got:
        for row in problem.constraints():
            assert sum(c * values[v.name] for v, c in row.items()) <= row.getUb() + 1e-6
    worth = [sum(c * values[v.name] for v, c in problem.objective.items()) for values in box.got]
    assert worth == sorted(worth)


def test_a_solve_that_must_repeat_exchanges_nothing(alone: Solution) -> None:
    box = Box({f"x{k}": 0.0 for k in range(ITEMS)})
    assert at_the_root(box, Budget(1e6, WorkCounter())).objective == alone.objective
    assert (box.asked, box.got) == ([], [])
