"""The end of the rounds of cuts of the decomposition, and the number of cuts they count."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oasis import Cluster, Constant, Instance, Job, Server
from oasis.solvers.budget import Budget
from offline import solve
from offline.benders import decomposition as module
from offline.benders.decomposition import REFINE_ROUNDS, ROOT_ROUNDS, Decomposition, Parts
from offline.benders.master import CountModel
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution, PartialSolution
from offline.model.arrays import OfflineArrays
from offline.params import BendersParams
from offline.state import SolveState

CLUSTER = Cluster(("cpu",), (Server("w", {"cpu": 1.0}),), (Server("p", {"cpu": 1.0}),), 1.0)
JOB = Job("a", 0, 1, 1, 1, 1.0, 0.0, {"cpu": 1.0}, {}, Constant(1.0))
INSTANCE = Instance(1, CLUSTER, (JOB,))
PARAMS = BendersParams()


@pytest.fixture
def run() -> Decomposition:
    """A decomposition that has found nothing yet, so that nothing is proved."""
    arrays, state = OfflineArrays.of(INSTANCE), SolveState(Budget())
    best = BestSolution(PartialSolution(arrays, {}), state, lambda schedules: 0.0)
    model = CountModel(arrays)
    none: Any = SimpleNamespace()
    separation = Separation(model)
    return Decomposition(Parts(model, separation, none, None, none, best), PARAMS, state.budget)


class Bounds:
    """Stands for the relaxation: its bounds are given, and counted as they are asked for."""

    def __init__(self, bounds: Iterator[float]) -> None:
        self.bounds, self.rounds = bounds, 0

    def __call__(self, problem: Any) -> Bounds:
        return self

    def solve(self, budget: Budget) -> Any:
        self.rounds += 1
        return SimpleNamespace(bound=next(self.bounds), values={})

    def add(self, rows: Any) -> None:
        pass


def cut_rows(run: Decomposition, patch: pytest.MonkeyPatch, *rows: list[Any]) -> None:
    """Let the separation find these rows, one list after the other, the last one for ever."""
    left = [*rows]
    patch.setattr(run.model, "rows", lambda rows: rows)
    patch.setattr(
        run.separation, "cut", lambda values, budget: left.pop(0) if left[1:] else left[0]
    )


@pytest.mark.parametrize("falling", [0, 1, 7])
def test_cutting_goes_on_while_the_bound_falls_and_a_little_longer(
    run: Decomposition, monkeypatch: pytest.MonkeyPatch, falling: int
) -> None:
    """A bound that then stays where it is ends it once it has not moved for some rounds."""
    bounds = [1e3 - 10.0 * k for k in range(falling)]
    relaxation = Bounds(iter([*bounds, *[500.0] * 50]))
    monkeypatch.setattr(module, "Relaxation", relaxation)
    cut_rows(run, monkeypatch, ["row"])
    run.cut_the_relaxation()
    assert relaxation.rounds == falling + ROOT_ROUNDS + 1


def test_cutting_ends_where_nothing_is_violated(
    run: Decomposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    relaxation = Bounds(iter([9.0, 8.0, 7.0, 6.0]))
    monkeypatch.setattr(module, "Relaxation", relaxation)
    cut_rows(run, monkeypatch, ["row"], ["row", "row"], [])
    run.cut_the_relaxation()
    assert relaxation.rounds == 3
    assert run.state.bound == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("found", "cuts"), [([[]], 0), ([["a"], []], 1), ([["a", "b"], ["c"], []], 3)]
)
def test_refining_counts_its_cuts(
    run: Decomposition,
    monkeypatch: pytest.MonkeyPatch,
    found: list[list[str]],
    cuts: int,
) -> None:
    falling = iter(np.arange(100.0, 0.0, -1.0))
    monkeypatch.setattr(
        module, "close_plan", lambda *_: SimpleNamespace(values={}, bound=next(falling))
    )
    cut_rows(run, monkeypatch, *found)
    assert run.refine(SimpleNamespace(values={}), Budget()) == cuts  # type: ignore[arg-type]


def test_refining_ends_where_the_value_of_the_plan_does_not_move(
    run: Decomposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = SimpleNamespace(values={}, bound=5.0)
    monkeypatch.setattr(module, "close_plan", lambda *_: still)
    cut_rows(run, monkeypatch, ["row"])
    assert run.refine(still, Budget()) == REFINE_ROUNDS + 1  # type: ignore[arg-type]


def test_seed_zero_is_the_default_and_recorded() -> None:
    result = solve(INSTANCE, "benders")
    assert result.parameters["seed"] == 0
    assert result.objective == 1.0
    assert solve(INSTANCE, "benders", seed=7).parameters["seed"] == 7
