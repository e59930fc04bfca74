"""The decomposition: what a master may spend, what counts of it, and periods of a horizon."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Cluster, Constant, Deadline, Form, Instance, Job, Piecewise, Server
from oasis.model.errors import SolverError
from oasis.solvers import Solution, SolveProgress, Status
from oasis.solvers.budget import WorkLimit
from offline import periods as bounding
from offline import solve
from offline.benders import decomposition as module
from offline.benders.decomposition import (
    LAST_SHARE,
    LEVELS,
    MASTER_SHARE,
    PRIMAL_UNTIL,
    REFINE_ROUNDS,
    ROOT_ROUNDS,
    UNFINISHED,
    Decomposition,
)
from offline.benders.master import CountModel
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution
from offline.model.arrays import OfflineArrays
from offline.params import BendersParams
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

LIMIT = 100.0  # of the budget


def decomposition(left: float = LIMIT, **parts: Any) -> Any:
    """A decomposition with nothing behind it but a budget that notes which shares it gave."""
    run = Decomposition.__new__(Decomposition)
    shares: list[float] = []
    proved: list[Any] = []
    budget = SimpleNamespace(limit=LIMIT, left=left, passed=False, is_repeatable=False, elapsed=0.0)
    budget.shares, budget.share = shares, lambda part: shares.append(part) or budget
    budget.within = lambda limit: budget
    state = SimpleNamespace(bound=20.0, enter=lambda phase: None, record_solver_bound=None)
    state.proved, state.record_bound = proved, lambda *bound: proved.append(bound)
    best = SimpleNamespace(value=10.0, is_proven=False, catch_up=lambda: None)
    model = SimpleNamespace(read=lambda: None, require=lambda *_: None, rows=lambda rows: rows)
    fields = {"params": BendersParams(), "budget": budget, "state": state, "best": best}
    fields |= {"model": model, "_least_bounds": [math.inf] * len(LEVELS), "_level": 0}
    fields |= {"_near": [], "_tolerance": 0.25, "replanning": None, "_helper": None}
    for name, value in (fields | parts).items():
        setattr(run, name, value)
    return run


# -- one master ------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize(("cuts", "next_tolerance"), [(1, 0.125), (0, 0.0)])
def test_each_master_is_twice_as_exact_and_exact_in_whole_counts_or_where_nothing_was_cut(
    level, cuts, next_tolerance
):
    asked: list[float] = []

    def master(tolerance: float) -> Any:
        asked.append(tolerance)
        run.state.bound = 11.0  # of an interval from 10 to 20
        return SimpleNamespace(values={"x": 1.0}, status=Status.TIME_LIMIT)

    plan = SimpleNamespace(completions=lambda values: {7: 1}, near=lambda plan, window: ["row"])
    run = decomposition(_master_and_meanwhile=master, model=plan, _level=level)
    run.refine, run.search_near_plan = lambda solution, budget: cuts, lambda: 0
    run._place = lambda solution, budget: None
    run.cycle()
    is_last = level == len(LEVELS) - 1
    assert asked == [0.0 if is_last else 0.25]
    assert (run._tolerance, run._level) == (0.25 if is_last else next_tolerance, level)
    assert run._near == ([] if is_last else ["row"])


@pytest.mark.parametrize("near", [[], ["row"]])
@pytest.mark.parametrize("part", [0.01, 0.99, 1.01, 100.0])
def test_the_last_master_gets_all_that_is_left_and_plans_only_while_there_is_time(part, near):
    """And while it pays, schedules are looked for beside it."""
    done = SimpleNamespace(is_done=True, progress=None)
    left = part * LAST_SHARE * LIMIT
    run = decomposition(left, _near=near, _start=lambda *_: nullcontext(done))
    searched: list[str] = []
    gains = [2 * run.params.pays, run.params.pays]
    run.search_near_plan = lambda: searched.append("near")
    run.look_around, run._finish = lambda: gains.pop(0), lambda master: master
    assert run._master_and_meanwhile(0.0) is done
    assert not gains
    assert run.budget.shares == [1.0 if part < 1.0 else MASTER_SHARE]
    is_time = left > PRIMAL_UNTIL * LIMIT
    assert searched == (["near"] if near and is_time else [])


def test_beside_another_process_a_master_is_waited_for_until_that_process_fails():
    run = decomposition(_finish=lambda master: master, _helper=SimpleNamespace(is_working=True))
    master = SimpleNamespace(is_done=True, progress=SimpleNamespace(bound=17.0))
    master.wait = lambda: setattr(run._helper, "is_working", False)
    looked: list[float] = []
    run._start, run.look_around = lambda *_: nullcontext(master), lambda: looked.append(0.0) or 0.0
    assert run._master_and_meanwhile(0.0) is master
    assert looked == [0.0]
    assert run.state.proved == [(17.0, LEVELS[0].phase)] * 2, "beside it, and once it is alone"


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_a_master_that_was_stopped_or_still_runs_counts_only_where_time_may(is_repeatable):
    stopped: list[bool] = []
    solution = Solution(Status.INTERRUPTED, None, 15.0, math.inf, {})
    master = SimpleNamespace(stop=lambda: stopped.append(True), finish=lambda saw: solution)
    run = decomposition()
    run.budget.is_repeatable = is_repeatable
    for progress in (None, SimpleNamespace(bound=17.0)):
        run._note(SimpleNamespace(progress=progress))
    run.budget.passed = True
    assert run._finish(master) is (UNFINISHED if is_repeatable else solution)
    assert stopped == [True]
    assert run.state.proved == ([] if is_repeatable else [(17.0, LEVELS[0].phase), (15.0,)])


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_a_plan_may_not_be_worth_more_than_a_master_with_fewer_rows_allows(level):
    """Of whole counts a bound says nothing about fractions, but the other way round it does."""
    run = decomposition(_level=1)
    run._check(Solution(Status.GAP_LIMIT, 11.0, 12.0, 1.0, {}))
    run._level = level
    run._check(Solution(Status.GAP_LIMIT, 12.00001, 13.0, 1.0, {}))
    above = Solution(Status.GAP_LIMIT, 12.001, 13.0, 1.0, {})
    if level == 0:
        run._check(above)
    else:
        with pytest.raises(SolverError, match=r"proved 12 for a master of which a plan is worth"):
            run._check(above)


# -- rounds of cuts --------------------------------------------------------------------------------


class Solved:
    """Stands for the relaxation and for a plan in fractions; bounds are counted as they are got."""

    def __init__(self, *bounds: float) -> None:
        self.left, self.rounds = list(bounds), 0

    def __call__(self, *_: Any) -> Any:
        self.rounds += 1
        return SimpleNamespace(bound=self.left.pop(0), values={})

    solve = __call__

    def add(self, rows: Any) -> None:
        pass


def cutting(*rows: list[str]) -> Any:
    """A decomposition whose separation finds these rows, the last ones for ever."""
    left = [*rows]
    found = SimpleNamespace(cut=lambda values, budget: left.pop(0) if left[1:] else left[0])
    return decomposition(separation=found)


@pytest.mark.parametrize("falling", [0, 1, 7])
def test_cutting_goes_on_while_the_bound_falls_and_a_little_longer(monkeypatch, falling):
    """A bound that then stays where it is ends it once it has not moved for some rounds."""
    bounds = [1e3 - 10.0 * k for k in range(falling)]
    relaxation = Solved(*bounds, *[500.0] * 50)
    monkeypatch.setattr(module, "Relaxation", lambda model: relaxation)
    cutting(["row"]).cut_the_relaxation()
    assert relaxation.rounds == falling + ROOT_ROUNDS + 1


def test_cutting_ends_where_nothing_is_violated_and_without_time_or_anything_to_prove(monkeypatch):
    relaxation = Solved(9.0, 8.0, 7.0, 6.0)
    monkeypatch.setattr(module, "Relaxation", lambda model: relaxation)
    run = cutting(["row"], ["row", "row"], [])
    for is_late, is_proven in ((False, False), (True, False), (False, True)):
        run.budget.passed, run.best.is_proven = is_late, is_proven
        run.cut_the_relaxation()
    assert relaxation.rounds == len(run.state.proved) == 3
    assert run.state.proved[-1] == (pytest.approx(7.0),)


@pytest.mark.parametrize(
    ("found", "bounds", "cuts"),
    [
        ([[]], [], 0),
        ([["a"], []], [9.0], 1),
        ([["a", "b"], ["c"], []], [9.0, 8.0], 3),
        ([["row"]], [5.0] * 50, REFINE_ROUNDS + 1),  # the plan's value does not move
    ],
)
def test_refining_counts_its_cuts_and_ends_where_it_is_of_no_use(monkeypatch, found, bounds, cuts):
    monkeypatch.setattr(module, "close_plan", Solved(*bounds))
    run = cutting(*found)
    assert run.refine(SimpleNamespace(values={}), run.budget) == cuts


# -- periods of a long horizon ---------------------------------------------------------------------

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
    arrays, state = OfflineArrays.of(instance), SolveState(instance, WorkLimit(1000.0).start())
    best = BestSolution(arrays, state)
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
def test_periods_are_about_equal_and_two_at_least(horizon, slots, sizes):
    periods = split(horizon, slots)
    assert [*map(len, periods)] == sizes
    assert [slot for period in periods for slot in period] == [*range(horizon)]


def test_completions_that_count_as_one_have_the_last_slot_and_the_best_utility():
    utility = {3: 10.0, 4: 9.9, 5: 9.8, 6: 4.0, 7: 0.05, 8: 0.01}
    assert utility_steps(utility, 0.01) == {4: 10.0, 5: 9.8, 6: 4.0, 8: 0.05}
    assert utility_steps(utility, 0.0) == utility
    assert utility_steps(dict.fromkeys(range(5), 2.0), 0.0) == {4: 2.0}


def test_half_a_job_does_not_work_at_the_speed_of_the_whole():
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
def test_a_round_of_a_few_jobs_proves_the_optimum(instance, optimum):
    """Without the cuts, or if jobs took along work that nobody did, all would complete."""
    periods, state = relaxed(instance)
    periods.round(state.budget)
    assert state.bound == pytest.approx(optimum)
    assert periods.is_settled


def test_a_bound_counts_and_not_the_solution_that_was_found(monkeypatch):
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


def test_periods_without_new_rows_are_not_solved_again_until_prices_change(monkeypatch):
    monkeypatch.setattr(bounding, "SLOW", 0.0)
    periods, state = relaxed(CROSSING)
    periods.round(state.budget)
    monkeypatch.setattr(bounding.highs, "solve", None)
    periods.round(state.budget)
    assert state.bound == pytest.approx(8.0)
    periods.relax(state.budget)
    assert all(periods._has_news)
    assert periods._bounds == [np.inf, np.inf]


def test_without_time_for_all_periods_nothing_is_said_and_ctrl_c_is_heard(monkeypatch):
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


def test_long_horizons_are_bounded_by_periods_and_short_ones_are_not():
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
