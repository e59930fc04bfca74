"""The heuristics: feasible at every moment, never worse, and the same for the same seed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.model.errors import VerificationError
from oasis.solvers.budget import Budget, WorkCounter
from offline import solve_milp
from offline.column_generation.pricing import pricing_work
from offline.heuristics.best_solution import BestSolution, PartialSolution, is_better
from offline.heuristics.neighbourhood import Neighbourhoods, exchange, reinsert
from offline.heuristics.params import (
    InsertionParams,
    NeighbourhoodParams,
    RuinParams,
)
from offline.heuristics.ruin_and_recreate import (
    STEP_JOBS,
    DualValues,
    insert_in_orders,
    ruin_and_recreate,
)
from offline.model.arrays import OfflineArrays
from offline.state import SolveState, warm_start_of
from tests.strategies import fewer, small_instances

SIZES = {"jobs": 12, "worker_servers": 4, "ps_servers": 4, "horizon": 10}
INSTANCE = oasis.generate("calibrated", **SIZES, seed=3)
ARRAYS = OfflineArrays.of(INSTANCE)
FREE = [np.zeros((ARRAYS.horizon, *g.capacity.shape)) for g in (ARRAYS.worker, ARRAYS.ps)]


def budget(work: float) -> Budget:
    return Budget(work, WorkCounter())


def duals_of(instance: oasis.Instance) -> DualValues:
    """What OASiS's final prices make of each job."""
    state = SolveState(Budget())
    start = warm_start_of(instance, {}, state, needs_prices=True)
    assert start.prices is not None
    arrays = OfflineArrays.of(instance)
    return DualValues.of(arrays, start.prices.worker, start.prices.ps)


def nothing(instance: oasis.Instance, limit: Budget | None = None) -> BestSolution:
    """No job admitted yet."""
    arrays, state = OfflineArrays.of(instance), SolveState(limit or Budget())
    return BestSolution(PartialSolution(arrays), state, partial(oasis.verify, instance))


def improved(name: str, seed: int) -> BestSolution:
    """What one heuristic alone makes of nothing."""
    best, rng, duals = nothing(INSTANCE), np.random.default_rng(seed), duals_of(INSTANCE)
    if name == "insertion":
        insert_in_orders(ARRAYS, duals, best, rng, budget(0.05), InsertionParams())
    elif name == "ruin and recreate":
        ruin_and_recreate(duals, best, rng, budget(0.2), RuinParams())
    else:
        Neighbourhoods(duals, best, rng, NeighbourhoodParams()).search(budget(0.3))
    return best


@pytest.mark.parametrize("name", ["insertion", "ruin and recreate", "neighbourhoods"])
def test_a_heuristic_finds_feasible_schedules_and_the_same_again(name: str) -> None:
    best = improved(name, 0)
    assert best.value > 0
    assert oasis.verify(INSTANCE, best.solution.by_id) == pytest.approx(best.value)
    assert best.state.incumbent == pytest.approx(best.value)
    values = [m.objective for m in best.state.history if m.objective is not None]
    assert values == sorted(values)
    again = improved(name, 0)
    assert again.solution.by_id.keys() == best.solution.by_id.keys()
    assert again.value == best.value


@pytest.mark.parametrize("name", ["insertion", "ruin and recreate", "neighbourhoods"])
def test_a_spent_budget_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "left", property(lambda _: 0.0))
    assert improved(name, 0).value == 0.0


def test_patience_ends_ruin_and_recreate_where_it_finds_nothing_better() -> None:
    best, rng, duals = nothing(INSTANCE), np.random.default_rng(0), duals_of(INSTANCE)
    spent = Budget(None, WorkCounter())  # no limit: only patience ends it
    ruin_and_recreate(duals, best, rng, spent, RuinParams(patience=20))
    assert best.value > 0
    value, again = best.value, Budget(None, WorkCounter())
    ruin_and_recreate(duals, best, rng, again, RuinParams(patience=1))
    assert best.value == value
    steps = again.elapsed / (STEP_JOBS * pricing_work(ARRAYS))
    assert steps == pytest.approx(len(INSTANCE.jobs))


@given(small_instances())
@fewer(4)
def test_the_neighbourhood_of_all_jobs_is_the_compact_model(instance: oasis.Instance) -> None:
    optimum = solve_milp(instance, time_limit=None).objective
    jobs = list(range(len(instance.jobs)))
    found, is_solved = reinsert(PartialSolution(OfflineArrays.of(instance)), jobs, Budget())
    assert is_solved
    assert oasis.verify(instance, found.by_id) == pytest.approx(optimum, rel=1e-6, abs=1e-9)


@given(st.integers(0, 10**6))
@fewer(4)
def test_an_exchange_leaves_the_other_jobs_alone_and_loses_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    current = PartialSolution(ARRAYS)
    current.fill(rng.permutation(len(ARRAYS.jobs)).tolist(), *FREE)
    before = current.by_id
    inside = sorted(current.schedules)
    leaving = [k for k in inside if rng.random() < 0.3][:3]
    outside = [k for k in range(len(ARRAYS.jobs)) if k not in current.schedules][:2]
    trial, is_solved = exchange(current, leaving, outside, budget(5.0))
    assert current.by_id == before
    assert all(trial.schedules[k] is current.schedules[k] for k in inside if k not in leaving)
    assert oasis.verify(INSTANCE, trial.by_id) == pytest.approx(trial.value)
    assert not is_solved or trial.value >= current.value * (1 - 1e-9)


def test_what_is_taken_out_leaves_nothing_behind() -> None:
    solution = PartialSolution(ARRAYS)
    solution.fill(range(len(ARRAYS.jobs)), *FREE)
    assert solution.schedules
    copy = solution.copy()
    for k in list(solution.schedules):
        solution.remove(k)
    assert (solution.value, solution.by_id) == (0.0, {})
    for free, group in zip(solution.free(), (ARRAYS.worker, ARRAYS.ps), strict=True):
        np.testing.assert_allclose(free, np.broadcast_to(group.capacity, free.shape), atol=1e-9)
    assert copy.value > 0


def test_distances_are_zero_while_a_job_runs() -> None:
    solution = PartialSolution(ARRAYS)
    solution.fill(range(len(ARRAYS.jobs)), *FREE)
    k, schedule = next(iter(solution.schedules.items()))
    slots = (schedule.start - 2, schedule.start, schedule.completion, schedule.completion + 3)
    assert [solution.distances([k], slot)[0] for slot in slots] == [2.0, 0.0, 0.0, 3.0]


def test_only_better_solutions_are_kept_and_infeasible_ones_are_errors() -> None:
    best = improved("insertion", 1)
    kept = best.solution
    assert not best.offer(PartialSolution(ARRAYS))
    assert not best.offer(kept.copy())
    assert best.solution is kept
    wrong = PartialSolution(ARRAYS)
    for k, schedule in kept.schedules.items():
        wrong.put(k, schedule)
        wrong.values[k] *= 2
        # all workers of a job in one place, thrice as many as there are
        rows = schedule.workers.copy()
        rows[:, 2] *= 1000
        wrong.schedules[k] = oasis.Schedule(schedule.job_id, rows, schedule.ps)
    with pytest.raises(VerificationError):
        best.offer(wrong)
    assert best.solution is kept
    assert not is_better(1.0 + 1e-13, 1.0)


def test_orders_are_orders_and_chances_are_positive() -> None:
    duals, rng = duals_of(INSTANCE), np.random.default_rng(0)
    jobs = [7, 2, 9]
    for _ in range(20):
        assert sorted(duals.order(jobs, rng)) == sorted(jobs)
    assert (duals.chances > 0).all()
    assert (duals.payoffs <= duals.best + 1e-9).all()
    assert duals.order([], rng) == []
