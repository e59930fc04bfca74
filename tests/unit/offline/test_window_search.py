"""Ruin and recreate in windows: verified, never worse, repeatable, and near the optimum."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given

import oasis
from oasis.solvers.budget import Budget, WorkCounter
from offline import solve
from offline.heuristics import window_search
from offline.heuristics.best_solution import BestSolution, PartialSolution
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.state import SolveState
from tests.strategies import fewer, small_instances

INSTANCE = oasis.generate("calibrated", jobs=30, worker_servers=4, ps_servers=4, horizon=30, seed=3)


def search_of(instance: oasis.Instance, seed: int = 0) -> WindowSearch:
    arrays, state = OfflineArrays.of(instance), SolveState(Budget())
    best = BestSolution(PartialSolution(arrays), state, partial(oasis.verify, instance))
    return WindowSearch(arrays, best, np.random.default_rng(seed))


def started(instance: oasis.Instance, work: float) -> WindowSearch:
    search = search_of(instance)
    search.start(Budget(work, WorkCounter()))
    return search


def test_a_search_improves_on_insertion_and_does_the_same_again() -> None:
    inserted = search_of(INSTANCE)
    inserted.insert_by_density(Budget())
    found = started(INSTANCE, 0.3)
    assert 0 < inserted.best.value < found.best.value
    assert oasis.verify(INSTANCE, found.best.solution.by_id) == pytest.approx(found.best.value)
    again = started(INSTANCE, 0.3)
    assert again.best.value == found.best.value
    assert {k: s.workers.tolist() for k, s in again.best.solution.by_id.items()} == {
        k: s.workers.tolist() for k, s in found.best.solution.by_id.items()
    }


@given(small_instances())
@fewer(4)
def test_it_never_exceeds_the_optimum(instance: oasis.Instance) -> None:
    optimum = solve(instance, "milp", time_limit=None).objective
    found = started(instance, 0.05).best
    assert oasis.verify(instance, found.solution.by_id) <= optimum * (1 + 1e-6) + 1e-9


def test_a_better_solution_of_another_search_is_where_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    better = started(INSTANCE, 0.3).best.solution
    monkeypatch.setattr(window_search, "TEMPERATURE", 0.0)
    search = search_of(INSTANCE)
    search.insert_by_density(Budget())
    assert search.best.value < better.value
    search.best.offer(better)
    search.search(Budget(0.05, WorkCounter()))
    assert search.best.value >= better.value
    plan = {live.job.id for live in search._plan.planned()}
    assert search._plan.value >= better.value * (1 - 1e-9)
    assert plan


def test_nothing_is_done_without_a_budget() -> None:
    assert started(INSTANCE, 0.0).best.value == 0.0


def test_patience_ends_a_search_that_finds_nothing_better() -> None:
    search = search_of(INSTANCE)
    search.start(Budget())  # no limit: only patience ends it
    value, spent = search.best.value, Budget(None, WorkCounter())
    search.search(spent, patience=0)
    assert search.best.value == value
    assert spent.elapsed == 0.0


def test_a_spent_budget_leaves_the_best_solution_as_the_bound_that_is_reached_does() -> None:
    search = search_of(INSTANCE)
    search.insert_by_density(Budget())
    value = search.best.value
    search.search(Budget(0.0))
    assert search.best.value == value
    search.best.state.record_bound(value)
    search.search(Budget())  # no limit: only the proof ends it
    assert search.best.value == value


def test_insertion_heeds_a_limit_that_has_passed_or_passes() -> None:
    late = search_of(INSTANCE)
    late.start(Budget(0.0))
    assert late._plan.insertions == 0
    assert late.best.value == 0.0
    short = search_of(INSTANCE)
    budget = Budget(3.5 * short._work, WorkCounter())
    short.start(budget)
    assert short._plan.insertions == 4
    assert budget.elapsed == pytest.approx(4 * short._work)
    assert short.best.value > 0.0
