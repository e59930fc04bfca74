"""Periods of a long horizon: how it is cut, what a round does, and when the method uses them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import compress, product
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Cluster, Constant, Deadline, Form, Instance, Job, Piecewise, Server, verify
from oasis.model.rounding import FloatArray
from oasis.solvers import Solution, Status
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
    Row,
    as_arrays,
    at_least,
    at_most,
    broken_rates,
    keep_rates,
    rate_row,
    split,
    utility_steps,
)
from offline.state import Phase, SolveState
from tests import builders

LONG = oasis.generate("calibrated", jobs=14, worker_servers=3, ps_servers=3, horizon=30, seed=3)
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


def periods_of(instance: Instance, slots: int) -> PeriodBound:
    arrays, state = OfflineArrays.of(instance), SolveState(WorkLimit(1000.0).start())
    best = BestSolution(PartialSolution(arrays, {}), state, partial(verify, instance))
    master = CountModel(arrays)
    separation = Separation(master)
    return PeriodBound(master, separation, best, slots)


@pytest.mark.parametrize(
    ("horizon", "slots", "sizes"),
    [(100, 33, [33, 34, 33]), (26, 33, [13, 13]), (300, 33, [33, 34, 33] * 3), (2, 1, [1, 1])],
)
def test_periods_are_about_equal_and_two_at_least(
    horizon: int, slots: int, sizes: list[int]
) -> None:
    periods = split(horizon, slots)
    assert [*map(len, periods)] == sizes
    assert [slot for period in periods for slot in period] == [*range(horizon)]


def test_a_horizon_of_one_slot_is_one_period() -> None:
    assert split(1, 33) == [range(1)]


def test_completions_that_count_as_one_have_the_last_slot_and_the_best_utility() -> None:
    utility = {3: 10.0, 4: 9.9, 5: 9.8, 6: 4.0, 7: 0.05, 8: 0.01}
    assert utility_steps(utility, 0.01) == {4: 10.0, 5: 9.8, 6: 4.0, 8: 0.05}
    assert utility_steps(utility, 0.0) == utility
    assert utility_steps(dict.fromkeys(range(5), 2.0), 0.0) == {4: 2.0}


def test_rows_become_arrays_whose_columns_begin_at_zero() -> None:
    rows = [at_most({4: 2.0, 6: -1.0}, 3.0), at_least({5: 1.0}), Row({}, -1.0, 1.0)]
    arrays = as_arrays(rows, first=4)
    assert arrays.starts.tolist() == [0, 2, 3, 3]
    assert arrays.columns.tolist() == [0, 2, 1]
    assert arrays.values.tolist() == [2.0, -1.0, 1.0]
    assert arrays.lower.tolist() == [-np.inf, 0.0, -1.0]
    assert arrays.upper.tolist() == [3.0, np.inf, 1.0]


def test_a_job_that_crosses_has_a_part_in_each_period_and_two_links() -> None:
    master = CountModel(OfflineArrays.of(CROSSING))
    model = PeriodModel(master, [range(3), range(3, 6)], 0.0)
    first, (second, alone) = model.parts[0][0], model.parts[1]
    assert (first.enters, first.most_brought) == (None, 0.0)
    assert first.done == {}  # its utility is the same in all slots, so the last one stands for all
    assert [*first.workers] == [1, 2]
    assert [*second.workers] == [3, 4, 5]
    assert second.most_brought == 4.0  # two workers in each of two slots
    assert model.links == [(second.enters, first.leaves), (second.brought, first.taken)]
    assert (alone.enters, alone.leaves) == (None, None)
    assert alone.before(5) == alone.done[4]
    assert alone.before(4) is None
    whole = model.whole()
    kinds = {name.split("_")[0] for name in compress(whole.names, whole.is_whole)}
    assert kinds == {"c", "enters", "leaves"}


def test_a_period_pays_for_what_it_takes_over() -> None:
    master = CountModel(OfflineArrays.of(CROSSING))
    model = PeriodModel(master, [range(3), range(3, 6)], 0.0)
    early, late = (model.period(number, np.array([0.5, 0.25])) for number in (0, 1))
    costs = dict(zip(early.names + late.names, [*early.costs, *late.costs], strict=True))
    assert (costs["leaves_0_0"], costs["taken_0_0"]) == (0.5, 0.25)
    assert (costs["enters_0_3"], costs["brought_0_3"]) == (-0.5, -0.25)


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


@pytest.mark.parametrize("cut", [2, 3])
def test_every_way_to_run_a_job_keeps_its_rates_and_a_row_of_more_work_is_broken(cut: int) -> None:
    """All choices of terms of all rows, for all counts of workers that do the job's work."""
    utility = Piecewise((1.0, 2.0, 3.0, 4.0), (9.0, 7.0, 5.0, 3.0))
    instance = instance_of(job("a", arrival=0, work=4, parallel=2, utility=utility), horizon=5)
    master = CountModel(OfflineArrays.of(instance))
    model = PeriodModel(master, [range(cut), range(cut, 5)], 0.0)
    ways = [counts for counts in product(range(3), repeat=5) if runs_as(counts) is not None]
    points = np.array([values_of(model, counts) for counts in ways])
    rng, broken = np.random.default_rng(0), 0
    for part, _ in product([part for parts in model.parts for part in parts], range(50)):
        wanted = rng.uniform(0.0, 4.0, points.shape[1])
        wanted[[*part.done.values()]] = np.sort(rng.uniform(size=len(part.done)))
        for slot, done in part.done.items():
            row = rate_row(master.jobs[0], part, slot, wanted)
            sums = sum(value * points[:, column] for column, value in row.terms.items())
            assert (sums >= row.lower - 1e-9).all()
            broken += bool((sums - points[:, done] < row.lower - 1e-9).any())
    assert broken > 50


def runs_as(counts: tuple[int, ...]) -> int | None:
    """The slot in which these workers complete four worker-slots of work; None if they do not."""
    is_done = np.cumsum(counts) >= 4
    end = int(np.argmax(is_done))
    return end if is_done[-1] and not any(counts[end + 1 :]) else None


def values_of(model: PeriodModel, counts: tuple[int, ...]) -> FloatArray:
    """Values of the variables of the only job's parts for these workers."""
    values, end = np.zeros(model.size), runs_as(counts)
    assert end is not None
    for period, (part,) in zip(model.periods, model.parts, strict=True):
        for slot, column in part.workers.items():
            values[column] = counts[slot]
        for slot, column in part.done.items():
            values[column] = period.start <= end <= slot
        if part.brought is not None:
            values[part.brought] = sum(counts[: period.start]) if end >= period.start else 0.0
    return values


RIVALS = instance_of(
    *(job(name, arrival=0, work=8, parallel=2, utility=Constant(9.0)) for name in "abc"),
    job("d", arrival=4, work=8, parallel=4, utility=Deadline(20.0, 1)),
)


EITHER = instance_of(
    replace(job("a", arrival=0, work=4, parallel=2, utility=Constant(5.0)), forms=(Form(), Form()))
)
# Four of these fill the server from the first slot to the last.
FIVE = instance_of(
    *(job(name, arrival=0, work=6, parallel=2, utility=Constant(9.0)) for name in "abcde")
)


@pytest.mark.parametrize(
    ("instance", "optimum"), [(CROSSING, 8.0), (EITHER, 5.0), (RIVALS, 38.0), (FIVE, 36.0)]
)
def test_a_round_of_a_few_jobs_proves_the_optimum(instance: Instance, optimum: float) -> None:
    """Without the cuts, or if jobs took along work that nobody did, all would complete."""
    periods = periods_of(instance, slots=3)
    budget = periods.best.state.budget
    periods.relax(budget)
    periods.round(budget)
    assert periods.best.state.bound == pytest.approx(optimum)
    assert periods.is_settled


def test_cuts_end_once_two_rounds_have_lowered_the_bound_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    periods = periods_of(CROSSING, slots=3)
    bounds = iter([1000.0, 900.0, 500.0, 499.9, 499.8, 499.79, 499.0])

    def relaxed(_: Budget) -> FloatArray:
        periods._relaxed_bound = next(bounds)
        return np.zeros(periods.model.size)

    monkeypatch.setattr(periods, "_solve_relaxation", relaxed)
    monkeypatch.setattr(periods, "_cut", lambda *_: 1)
    periods.relax(periods.best.state.budget)
    assert [*bounds] == [499.0]


def test_a_bound_counts_and_not_the_solution_that_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounding, "SLOW", 0.0)
    periods = periods_of(RIVALS, slots=3)
    periods.relax(periods.best.state.budget)
    solve = bounding.highs.solve

    def early(*given: Any, **named: Any) -> Solution:
        found = solve(*given, **named)
        return replace(found, objective=0.0, bound=found.bound + 0.25, status=Status.TIME_LIMIT)

    monkeypatch.setattr(bounding.highs, "solve", early)
    periods.round(periods.best.state.budget)
    assert periods.best.state.bound >= 38.0 - 1e-6
    assert periods._has_news == [True, True]


def test_a_period_without_jobs_is_worth_nothing() -> None:
    """Nobody arrives in the first three slots."""
    late = instance_of(job("a", arrival=3, work=4, parallel=2, utility=Constant(5.0)))
    periods = periods_of(late, slots=3)
    periods.relax(periods.best.state.budget)
    periods.round(periods.best.state.budget)
    assert periods.is_settled
    assert periods.best.state.bound == pytest.approx(5.0)


def test_periods_without_new_rows_are_not_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding, "SLOW", 0.0)
    periods = periods_of(CROSSING, slots=3)
    periods.relax(periods.best.state.budget)
    periods.round(periods.best.state.budget)

    def solve(*_: Any, **__: Any) -> Solution:
        raise AssertionError

    monkeypatch.setattr(bounding.highs, "solve", solve)
    periods.round(periods.best.state.budget)
    assert periods.best.state.bound == pytest.approx(8.0)


def test_without_time_for_all_periods_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    periods = periods_of(CROSSING, slots=3)
    periods.relax(periods.best.state.budget)
    before = periods.best.state.bound
    nothing = Solution(Status.TIME_LIMIT, None, np.inf, np.inf, {})
    monkeypatch.setattr(bounding.highs, "solve", lambda *_, **__: nothing)
    periods.round(periods.best.state.budget)
    assert periods.best.state.bound == before
    assert periods.is_settled  # rather than the same again without end


def test_ctrl_c_in_a_period_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    periods = periods_of(CROSSING, slots=3)
    stopped = Solution(Status.INTERRUPTED, None, np.inf, np.inf, {})
    monkeypatch.setattr(bounding.highs, "solve", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt):
        periods.round(periods.best.state.budget)


def test_long_horizons_are_bounded_by_periods_and_short_ones_are_not() -> None:
    seen: list[str] = []
    params = {"second_process": False, "whole_size": 0}
    found = solve(
        LONG, "benders", work_limit=8, params=params, on_progress=lambda now: seen.append(now.phase)
    )
    assert Phase.PERIODS in seen
    assert found.objective <= found.upper_bound * (1 + 1e-9)
    seen.clear()
    whole = {**params, "span": 30}
    other = solve(
        LONG, "benders", work_limit=8, params=whole, on_progress=lambda now: seen.append(now.phase)
    )
    assert Phase.PERIODS not in seen
    assert other.objective <= found.upper_bound * (1 + 1e-9)
    assert found.objective <= other.upper_bound * (1 + 1e-9)


def test_prices_that_change_make_all_periods_new() -> None:
    periods = periods_of(CROSSING, slots=3)
    periods.relax(periods.best.state.budget)
    periods.round(periods.best.state.budget)
    assert not any(periods._has_news)
    periods.relax(periods.best.state.budget)
    assert all(periods._has_news)
    assert periods._bounds == [np.inf, np.inf]
