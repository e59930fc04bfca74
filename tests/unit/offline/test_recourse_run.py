"""The run of recourse as a start of an offline solve."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import oasis
from oasis.online.recourse.policy import Recourse
from oasis.solvers.budget import Budget, WorkCounter
from offline import solve_configuration
from offline.heuristics import recourse_run
from offline.heuristics.best_solution import BestSolution, PartialSolution
from offline.heuristics.params import RecourseRunParams, WindowParams
from offline.heuristics.recourse_run import INSERTIONS_PER_ROUND, follow_recourse
from offline.heuristics.window_search import WindowSearch, insertion_work
from offline.model.arrays import OfflineArrays
from offline.state import SolveState

INSTANCE = oasis.generate("calibrated", jobs=12, worker_servers=4, ps_servers=4, seed=3)
ARRAYS = OfflineArrays.of(INSTANCE)
PARAMS = RecourseRunParams(rounds=3)
ROUND = len(INSTANCE.jobs) * INSERTIONS_PER_ROUND * insertion_work(ARRAYS)


def followed(limit: float | None) -> tuple[BestSolution, Budget, bool]:
    budget = Budget(limit, WorkCounter())
    check = partial(oasis.verify, INSTANCE)
    best = BestSolution(PartialSolution(ARRAYS), SolveState(budget), check)
    return best, budget, follow_recourse(INSTANCE, ARRAYS, best, 5, budget, PARAMS)


@pytest.mark.parametrize(("limit", "rounds"), [(None, 3), (100 * ROUND, 3), (2.5 * ROUND, 2)])
def test_the_budget_decides_how_many_rounds_there_are(limit: float | None, rounds: int) -> None:
    best, budget, has_run = followed(limit)
    run = oasis.simulate(INSTANCE, Recourse("none", seed=5, rounds=rounds))
    assert has_run
    assert best.value == pytest.approx(run.total_utility)
    assert budget.elapsed == pytest.approx(rounds * ROUND)


def test_without_enough_for_one_round_there_is_no_run() -> None:
    best, budget, has_run = followed(0.9 * ROUND)
    assert (best.value, budget.elapsed, has_run) == (0.0, 0.0, False)


def test_a_limit_in_seconds_is_shared_by_the_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float | None] = []

    def noted(*args: Any, seconds: float | None = None, **options: Any) -> Recourse:
        given.append(seconds)
        return Recourse(*args, seconds=seconds, **options)

    monkeypatch.setattr(recourse_run, "Recourse", noted)
    followed(None)
    budget = Budget(1000.0)
    check = partial(oasis.verify, INSTANCE)
    best = BestSolution(PartialSolution(ARRAYS), SolveState(budget), check)
    assert follow_recourse(INSTANCE, ARRAYS, best, 5, budget, PARAMS)
    assert given[0] is None
    assert given[1] == pytest.approx(1000.0 / len(INSTANCE.jobs), rel=0.2)


class Decisions:
    """A meter by which each decision of the run takes as long as any other."""

    is_repeatable = False

    def __init__(self) -> None:
        self.done = 0

    def read(self) -> float:
        return float(self.done)

    def charge(self, work: float) -> None:
        pass


@pytest.mark.parametrize(("limit", "made"), [(3.0, 3), (1.0, 1), (1000.0, None)])
def test_a_run_that_spends_its_budget_is_given_up_before_the_next_decision(
    limit: float, made: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter, decide = Decisions(), Recourse.decide

    def counted(policy: Recourse, view: Any) -> Any:
        meter.done += 1
        return decide(policy, view)

    monkeypatch.setattr(Recourse, "decide", counted)
    budget = Budget(limit, meter)
    check = partial(oasis.verify, INSTANCE)
    best = BestSolution(PartialSolution(ARRAYS), SolveState(budget), check)
    has_run = follow_recourse(INSTANCE, ARRAYS, best, 5, budget, PARAMS)
    assert has_run == (made is None)
    assert (best.value > 0) == (made is None), "half a run is no solution"
    assert meter.done == made or (made is None and meter.done > 3)


def test_with_nothing_to_gain_there_is_no_run() -> None:
    check = partial(oasis.verify, INSTANCE)
    state = SolveState(Budget())
    best = BestSolution(PartialSolution(ARRAYS), state, check)
    state.proved(0.0)
    assert not follow_recourse(INSTANCE, ARRAYS, best, 0, state.budget, PARAMS)


def test_larger_clusters_cost_more_to_insert_in() -> None:
    larger = oasis.generate("calibrated", jobs=2, worker_servers=40, ps_servers=40, seed=3)
    assert insertion_work(OfflineArrays.of(larger)) > insertion_work(ARRAYS) > 0
    best = followed(None)[0]
    search = WindowSearch(ARRAYS, best, np.random.default_rng(0), WindowParams())
    assert search.arrays is ARRAYS


def test_the_method_is_at_least_as_good_as_the_run() -> None:
    run = oasis.simulate(INSTANCE, Recourse("none", seed=0, rounds=PARAMS.rounds))
    params = {"recourse": PARAMS.to_dict(), "recourse_share": 1.0, "windows": {"patience": 1}}
    result = solve_configuration(INSTANCE, work_limit=1.0, params=params)
    assert result.objective >= run.total_utility * (1 - 1e-9)
