"""The heuristics: feasible at every moment, never worse, repeatable, and in turns."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import oasis
from oasis.model.errors import VerificationError
from oasis.solvers.budget import Budget, WorkCounter
from oasis.testing import small_instances
from offline import solve
from offline.heuristics import recombination, window_search
from offline.heuristics.best_solution import BestSolution, DualValues, PartialSolution, is_better
from offline.heuristics.recombination import Alternation, take_up
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.state import SolveState, warm_start_of
from tests.strategies import fewer

INSTANCE = oasis.generate("calibrated", jobs=30, worker_servers=4, ps_servers=4, horizon=30, seed=3)
ARRAYS = OfflineArrays.of(INSTANCE)
FREE = [np.zeros((ARRAYS.horizon, *g.capacity.shape)) for g in (ARRAYS.worker, ARRAYS.ps)]
EVERYBODY = range(len(ARRAYS.jobs))


def nothing(instance: oasis.Instance = INSTANCE) -> BestSolution:
    """No job admitted yet."""
    return BestSolution(OfflineArrays.of(instance), SolveState(instance, Budget()))


def search_of(instance: oasis.Instance = INSTANCE) -> WindowSearch:
    best = nothing(instance)
    return WindowSearch(best.solution.arrays, best, np.random.default_rng(0))


def started(work: float, instance: oasis.Instance = INSTANCE) -> WindowSearch:
    search = search_of(instance)
    search.start(Budget(work, WorkCounter()))
    return search


# -- solutions and prices --------------------------------------------------------------------------


def test_distances_are_zero_while_a_job_runs():
    solution = PartialSolution(ARRAYS)
    solution.fill(EVERYBODY, *FREE)
    k, schedule = next(iter(solution.schedules.items()))
    slots = (schedule.start - 2, schedule.start, schedule.completion, schedule.completion + 3)
    assert [solution.distances([k], slot)[0] for slot in slots] == [2.0, 0.0, 0.0, 3.0]


def test_only_better_solutions_are_kept_and_infeasible_ones_are_errors():
    best, filled, wrong = nothing(), PartialSolution(ARRAYS), PartialSolution(ARRAYS)
    filled.fill(EVERYBODY, *FREE)
    assert best.offer(filled)
    assert not best.offer(PartialSolution(ARRAYS))
    assert not best.offer(PartialSolution(ARRAYS, filled.by_id))
    for k, schedule in filled.schedules.items():
        wrong.put(k, schedule)
        wrong.values[k] *= 2
        rows = schedule.workers.copy()
        rows[:, 2] *= 1000
        wrong.schedules[k] = oasis.Schedule(schedule.job_id, rows, schedule.ps)
    with pytest.raises(VerificationError):
        best.offer(wrong)
    assert best.solution is filled
    assert not is_better(1.0 + 1e-13, 1.0)


def test_orders_are_orders_and_chances_are_positive():
    start = warm_start_of({}, SolveState(INSTANCE, Budget()), needs_prices=True)
    assert start.prices is not None
    duals = DualValues.of(ARRAYS, start.prices.worker, start.prices.ps)
    jobs, rng = [7, 2, 9], np.random.default_rng(0)
    for _ in range(20):
        assert sorted(duals.order(jobs, rng)) == sorted(jobs)
    assert (duals.chances > 0).all()
    assert (duals.payoffs <= duals.best + 1e-9).all()
    assert duals.order([], rng) == []


# -- ruin and recreate in windows ------------------------------------------------------------------


def test_a_search_improves_on_insertion_and_does_the_same_again():
    inserted = search_of()
    inserted.insert_by_density(Budget())
    found, again = started(0.3), started(0.3)
    assert 0 < inserted.best.value < found.best.value
    assert oasis.verify(INSTANCE, found.best.solution.by_id) == pytest.approx(found.best.value)
    assert again.best.solution.by_id == found.best.solution.by_id


@given(small_instances())
@fewer(4)
def test_it_never_exceeds_the_optimum(instance):
    optimum = solve(instance, "milp", time_limit=None).objective
    found = started(0.05, instance).best
    assert oasis.verify(instance, found.solution.by_id) <= optimum * (1 + 1e-6) + 1e-9


def test_a_better_solution_of_another_search_is_where_it_goes_on(monkeypatch):
    better = started(0.3).best.solution
    monkeypatch.setattr(window_search, "TEMPERATURE", 0.0)
    search = search_of()
    search.insert_by_density(Budget())
    assert search.best.value < better.value
    search.best.offer(better)
    search.search(Budget(0.05, WorkCounter()))
    assert search.best.value >= better.value
    assert list(search._plan.planned())
    assert search._plan.value >= better.value * (1 - 1e-9)


def test_patience_a_spent_budget_and_the_bound_that_is_reached_end_a_search():
    search = search_of()
    search.start(Budget())  # no limit: only patience ends it
    value, spent = search.best.value, Budget(None, WorkCounter())
    search.search(spent, patience=0)
    assert spent.elapsed == 0.0
    search.search(Budget(0.0))
    search.best.state.record_bound(value)
    search.search(Budget())  # no limit: only the proof ends it
    assert search.best.value == value


@pytest.mark.parametrize(("most", "insertions"), [(0.0, 0), (3.5, 4)])
def test_insertion_heeds_a_limit_that_has_passed_or_passes(most, insertions):
    search = search_of()
    budget = Budget(most * search._work, WorkCounter())
    search.start(budget)
    assert search._plan.insertions == insertions
    assert budget.elapsed == pytest.approx(insertions * search._work)
    assert (search.best.value > 0.0) == (insertions > 0)


# -- what another process has found ----------------------------------------------------------------


@pytest.mark.parametrize("is_own", [True, False])
def test_better_schedules_from_elsewhere_are_mixed_with_those_found_here(is_own, monkeypatch):
    instance = oasis.generate("testbed", jobs=4, worker_servers=3, ps_servers=3, seed=1)
    best, arrays = nothing(instance), OfflineArrays.of(instance)
    schedules = dict(oasis.simulate(instance, oasis.OASiS.from_instance(instance)).schedules)
    least, *others = sorted(
        schedules, key=lambda name: PartialSolution(arrays, {name: schedules[name]}).value
    )
    assert others
    if is_own:
        best.offer(PartialSolution(arrays, {least: schedules[least]}))
    found = {name: schedules[name] for name in others}
    best.state.record_solution(found, "another process")
    mixes = list[Any]()
    mix = recombination.recombine
    monkeypatch.setattr(
        recombination, "recombine", lambda *given: mixes.append(given) or mix(*given)
    )
    for _ in range(2):  # nothing new from elsewhere changes nothing
        take_up(best, Budget())
        assert len(mixes) == is_own
        assert set(best.solution.by_id) == set(schedules if is_own else others)
        assert best.is_own == is_own
        assert best.state.incumbent == pytest.approx(best.value)


# -- searches in turn ------------------------------------------------------------------------------


class Log:
    """Searches that gain what they are told to, and who had its turn for how long."""

    def __init__(self) -> None:
        self.turns: list[tuple[str, float]] = []
        state = SimpleNamespace(enter=lambda phase: None)
        self.best: Any = SimpleNamespace(value=0.0, is_proven=False, state=state)

    def search(
        self, name: str, gain: float, spend: float = 1.0, has_tried: bool = True
    ) -> Callable[[Budget], bool]:
        def run(budget: Budget) -> bool:
            self.turns.append((name, budget.left))
            self.best.value += gain
            budget.charge(budget.left * spend)
            return has_tried

        return run

    @property
    def names(self) -> str:
        return "".join(name for name, _ in self.turns)

    def run(self, work: float, a: dict[str, Any], b: dict[str, Any]) -> str:
        searches = [(name, self.search(name, **how)) for name, how in (("a", a), ("b", b)) if how]
        seen, before = list[str](), len(self.turns)
        turns = Alternation(searches, self.best, 1.0, 1.0, lambda: seen.append(self.names))
        turns.search(Budget(work, WorkCounter()))
        assert seen == [self.names[:k] for k in range(before, len(self.turns))], "before each turn"
        return self.names


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(recombination, "GROWTH", 2.0)
    monkeypatch.setattr(recombination, "MOST_WAIT", 3)
    return Log()


@pytest.mark.parametrize(
    ("a", "b", "work", "turns"),
    [
        # the one that gains most gets most turns, but not all
        ({"gain": 1.0}, {"gain": 5.0}, 12.0, "abbbabbbabbb"),
        # one that does nothing, or has nothing to try, has no further turn
        ({"gain": 0.0, "spend": 0.0}, {"gain": 1.0}, 3.0, "abbb"),
        ({"gain": 0.0, "has_tried": False}, {"gain": 1.0}, 3.0, "abb"),
        ({"gain": 0.0, "spend": 0.0}, {}, 3.0, "a"),
    ],
)
def test_turns_go_to_who_gains_and_nobody_waits_for_ever(log, a, b, work, turns):
    assert log.run(work, a, b) == turns
    log.best.is_proven = True
    assert log.run(work, a, b) == turns, "nothing is left to gain"


def test_searches_that_gain_nothing_take_longer_turns_one_after_the_other(log):
    log.run(14.0, {"gain": 0.0}, {"gain": 0.0})
    assert log.turns == [("a", 1.0), ("b", 1.0), ("a", 2.0), ("b", 2.0), ("a", 4.0), ("b", 4.0)]


def test_no_turn_takes_all_that_is_left(log):
    budget = Budget(16.0, WorkCounter())
    too_much = log.search("b", 0.0, spend=4.0)  # takes more than it is given
    Alternation([("a", log.search("a", 0.0)), ("b", too_much)], log.best, 9.0, 0.25).search(budget)
    assert log.turns[:2] == [("a", 4.0), ("b", 3.0)]
    assert budget.passed
