"""The heuristics: feasible at every moment, never worse, and the same for the same seed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import oasis
from oasis.model.errors import VerificationError
from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution, DualValues, PartialSolution, is_better
from offline.model.arrays import OfflineArrays
from offline.state import SolveState, warm_start_of

SIZES = {"jobs": 12, "worker_servers": 4, "ps_servers": 4, "horizon": 10}
INSTANCE = oasis.generate("calibrated", **SIZES, seed=3)
ARRAYS = OfflineArrays.of(INSTANCE)
FREE = [np.zeros((ARRAYS.horizon, *g.capacity.shape)) for g in (ARRAYS.worker, ARRAYS.ps)]


def duals_of(instance: oasis.Instance) -> DualValues:
    """Payoffs of all jobs at OASiS's final prices."""
    state = SolveState(Budget())
    start = warm_start_of(instance, {}, state, needs_prices=True)
    assert start.prices is not None
    arrays = OfflineArrays.of(instance)
    return DualValues.of(arrays, start.prices.worker, start.prices.ps)


def nothing(instance: oasis.Instance, limit: Budget | None = None) -> BestSolution:
    """No job admitted yet."""
    arrays, state = OfflineArrays.of(instance), SolveState(limit or Budget())
    return BestSolution(PartialSolution(arrays), state, partial(oasis.verify, instance))


def test_distances_are_zero_while_a_job_runs() -> None:
    solution = PartialSolution(ARRAYS)
    solution.fill(range(len(ARRAYS.jobs)), *FREE)
    k, schedule = next(iter(solution.schedules.items()))
    slots = (schedule.start - 2, schedule.start, schedule.completion, schedule.completion + 3)
    assert [solution.distances([k], slot)[0] for slot in slots] == [2.0, 0.0, 0.0, 3.0]


def test_only_better_solutions_are_kept_and_infeasible_ones_are_errors() -> None:
    best, filled = nothing(INSTANCE), PartialSolution(ARRAYS)
    filled.fill(range(len(ARRAYS.jobs)), *FREE)
    assert best.offer(filled)
    kept = best.solution
    assert not best.offer(PartialSolution(ARRAYS))
    assert not best.offer(PartialSolution(ARRAYS, kept.by_id))
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
