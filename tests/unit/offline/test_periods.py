"""Periods of a long horizon: how it is cut, what a round does, and when the method uses them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Cluster, Constant, Deadline, Form, Instance, Job, Piecewise, Server, verify
from oasis.model.rounding import FloatArray
from oasis.solvers import Solution, SolveProgress, Status
from oasis.solvers.budget import Budget, WorkLimit
from offline import periods as bounding
from offline import solve
from offline.benders.master import CountModel
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution, PartialSolution
from offline.model.arrays import OfflineArrays
from offline.periods import (
    PeriodBound,
    PeriodModel,
    at_least,
    broken_rates,
    keep_rates,
    split,
    utility_steps,
)
from offline.state import Phase, SolveState
from tests import builders

FULL = {"gpu": 4.0, "bandwidth_gbps": 10.0}


def job(name: str, *, arrival: int, work: int, parallel: int, utility: Any) -> Job:
    """A job of this many worker-slots whose worker takes one GPU."""
    return builders.job(
        name,
        arrival,
        epochs=work,
        chunks=parallel,
        minibatch_time=1.0 / parallel,
        worker={"gpu": 1.0},
        utility=utility,
    )


def instance_of(*jobs: Job, horizon: int = 6) -> Instance:
    """One server of four GPUs."""
    cluster = Cluster(tuple(FULL), (Server("w", FULL),), (Server("p", FULL),), 1.0)
    return Instance(horizon, cluster, jobs)


CROSSING = instance_of(
    job("a", arrival=1, work=8, parallel=2, utility=Constant(5.0)),
    job("b", arrival=4, work=2, parallel=2, utility=Deadline(3.0, 0)),
)


def periods_of(instance: Instance) -> PeriodBound:
    """Two periods of three slots."""
    arrays, state = OfflineArrays.of(instance), SolveState(WorkLimit(1000.0).start())
    best = BestSolution(PartialSolution(arrays, {}), state, partial(verify, instance))
    master = CountModel(arrays)
    return PeriodBound(master, Separation(master), best, 3)


def relaxed(instance: Instance) -> tuple[PeriodBound, SolveState]:
    periods = periods_of(instance)
    periods.relax(periods.best.state.budget)
    return periods, periods.best.state


@pytest.mark.parametrize(
    ("horizon", "slots", "sizes"),
    [
        (100, 33, [33, 34, 33]),
        (26, 33, [13, 13]),
        (300, 33, [33, 34, 33] * 3),
        (2, 1, [1, 1]),
        (1, 33, [1]),
    ],
)
def test_periods_are_about_equal_and_two_at_least(
    horizon: int, slots: int, sizes: list[int]
) -> None:
    periods = split(horizon, slots)
    assert [*map(len, periods)] == sizes
    assert [slot for period in periods for slot in period] == [*range(horizon)]


def test_completions_that_count_as_one_have_the_last_slot_and_the_best_utility() -> None:
    utility = {3: 10.0, 4: 9.9, 5: 9.8, 6: 4.0, 7: 0.05, 8: 0.01}
    assert utility_steps(utility, 0.01) == {4: 10.0, 5: 9.8, 6: 4.0, 8: 0.05}
    assert utility_steps(utility, 0.0) == utility
    assert utility_steps(dict.fromkeys(range(5), 2.0), 0.0) == {4: 2.0}


def test_half_a_job_does_not_work_at_the_speed_of_the_whole() -> None:
    utility = Piecewise((1.0, 5.0), (4.0, 2.0))
    instance = instance_of(job("a", arrival=0, work=4, parallel=2, utility=utility))
    master = CountModel(OfflineArrays.of(instance))
    model = PeriodModel(master, [range(3), range(3, 6)], 0.0)
    part = model.parts[0][0]
    values = np.zeros(len(model.whole().names))
    # one half is done by slot 1, and the other leaves the period
    values[part.done[1]], values[part.leaves] = 0.5, 0.5
    values[part.workers[0]], values[part.workers[1]] = 2.0, 0.0
    (row,) = broken_rates(master.jobs[0], part, values)
    assert row == at_least({part.done[1]: -2.0, part.workers[1]: 1.0})
    values[part.workers[1]] = 1.0
    assert not [*broken_rates(master.jobs[0], part, values)]
    values[part.workers[1]] = 0.0
    assert keep_rates(model, values) == 1
    assert model.new == [row]


RIVALS = instance_of(
    *(job(name, arrival=0, work=8, parallel=2, utility=Constant(9.0)) for name in "abc"),
    job("d", arrival=4, work=8, parallel=4, utility=Deadline(20.0, 1)),
)


EITHER = instance_of(
    replace(job("a", arrival=0, work=4, parallel=2, utility=Constant(5.0)), forms=(Form(), Form()))
)
# Nobody arrives in the first three slots.
LATE = instance_of(job("a", arrival=3, work=4, parallel=2, utility=Constant(5.0)))
# Four of these fill the server from the first slot to the last.
FIVE = instance_of(
    *(job(name, arrival=0, work=6, parallel=2, utility=Constant(9.0)) for name in "abcde")
)


@pytest.mark.parametrize(
    ("instance", "optimum"),
    [(CROSSING, 8.0), (EITHER, 5.0), (RIVALS, 38.0), (FIVE, 36.0), (LATE, 5.0)],
)
def test_a_round_of_a_few_jobs_proves_the_optimum(instance: Instance, optimum: float) -> None:
    """Without the cuts, or if jobs took along work that nobody did, all would complete."""
    periods, state = relaxed(instance)
    periods.round(state.budget)
    assert state.bound == pytest.approx(optimum)
    assert periods.is_settled


def test_cuts_end_once_two_rounds_have_lowered_the_bound_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    periods = periods_of(CROSSING)
    bounds = iter([1000.0, 900.0, 500.0, 499.9, 499.8, 499.79, 499.0])

    def solved(_: Budget) -> FloatArray:
        periods._relaxed_bound = next(bounds)
        return np.zeros(periods.model.size)

    monkeypatch.setattr(periods, "_solve_relaxation", solved)
    monkeypatch.setattr(periods, "_cut", lambda *_: 1)
    periods.relax(periods.best.state.budget)
    assert [*bounds] == [499.0]


def test_a_bound_counts_and_not_the_solution_that_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounding, "SLOW", 0.0)
    periods, state = relaxed(RIVALS)
    solve = bounding.highs.solve

    def early(*given: Any, **named: Any) -> Solution:
        found = solve(*given, **named)
        return replace(found, objective=0.0, bound=found.bound + 0.25, status=Status.TIME_LIMIT)

    monkeypatch.setattr(bounding.highs, "solve", early)
    periods.round(state.budget)
    assert state.bound >= 38.0 - 1e-6
    assert periods._has_news == [True, True]


def test_periods_without_new_rows_are_not_solved_again_until_prices_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounding, "SLOW", 0.0)
    periods, state = relaxed(CROSSING)
    periods.round(state.budget)
    monkeypatch.setattr(bounding.highs, "solve", None)
    periods.round(state.budget)
    assert state.bound == pytest.approx(8.0)
    periods.relax(state.budget)
    assert all(periods._has_news)
    assert periods._bounds == [np.inf, np.inf]


def test_without_time_for_all_periods_nothing_is_said_and_ctrl_c_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    periods, state = relaxed(CROSSING)
    before = state.bound
    nothing = Solution(Status.TIME_LIMIT, None, np.inf, np.inf, {})
    monkeypatch.setattr(bounding.highs, "solve", lambda *_, **__: nothing)
    periods.round(state.budget)
    assert state.bound == before
    assert periods.is_settled  # rather than the same again without end
    nothing = replace(nothing, status=Status.INTERRUPTED)
    with pytest.raises(KeyboardInterrupt):
        periods.round(state.budget)


def test_long_horizons_are_bounded_by_periods_and_short_ones_are_not() -> None:
    instance = oasis.generate(
        "calibrated", jobs=14, worker_servers=3, ps_servers=3, horizon=30, seed=3
    )
    found = []
    for more in ({}, {"span": 30}):
        seen: list[SolveProgress] = []
        params = {"second_process": False, "whole_size": 0, **more}
        found.append(
            solve(instance, "benders", work_limit=8, params=params, on_progress=seen.append)
        )
        assert (Phase.PERIODS in {now.phase for now in seen}) == (not more)
    least = min(result.upper_bound for result in found)
    assert max(result.objective for result in found) <= least * (1 + 1e-9)
