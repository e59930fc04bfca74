"""The solver adapter: honest status, sign of the bound, starts, progress, interruption."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from types import SimpleNamespace

import highspy
import numpy as np
import pulp
import pytest

from oasis import SolverError
from oasis.solvers import (
    Solution,
    SolveProgress,
    Status,
    answers,
    highs,
    knapsack,
    relative_gap,
    running,
)
from oasis.solvers.arrays import ArrayModel
from oasis.solvers.budget import Budget, WorkCounter, WorkLimit
from oasis.solvers.running import Exchange, RunningSolve


def knapsacks(sense: int, size: int = 120, rows: int = 40) -> pulp.LpProblem:
    """A multi-dimensional knapsack, or the covering twin; far too hard for a few seconds."""
    rng = np.random.default_rng(0)
    problem = pulp.LpProblem("knapsacks", sense)
    x = [problem.add_variable(f"x{k}", 0, 1, pulp.LpInteger) for k in range(size)]
    problem.setObjective(pulp.lpDot(rng.integers(5, 100, size).tolist(), x) + 1000)
    for weights in rng.integers(5, 100, (rows, size)).tolist():
        load, limit = pulp.lpDot(weights, x), sum(weights) / 3
        problem.addConstraint(load <= limit if sense == pulp.LpMaximize else load >= limit)
    return problem


def small(sense: int = pulp.LpMaximize, category: str = pulp.LpInteger) -> pulp.LpProblem:
    """Best integers: x = 2, y = 1 for 8 + 7 = 15; the relaxation is worth 15.25."""
    problem = pulp.LpProblem("small", sense)
    x, y = (problem.add_variable(name, 0, 2, category) for name in "xy")
    problem.setObjective((4 * x + 3 * y + 4) * (1 if sense == pulp.LpMaximize else -1))
    problem.addConstraint(4 * x + 4 * y <= 13)
    return problem


def test_optimum_of_a_small_problem_is_proved_and_the_model_left_alone():
    problem = small()
    solution = highs.solve(problem)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(15)
    assert 15 < solution.bound <= 15 * (1 + 1e-9), "by what HiGHS drops"
    assert 0 < solution.gap <= 1e-9
    assert solution.values == pytest.approx({"x": 2, "y": 1})
    assert problem.status == pulp.LpStatusNotSolved
    assert all(variable.varValue is None for variable in problem.variables())
    mirrored = highs.solve(small(pulp.LpMinimize))
    assert (mirrored.objective, mirrored.bound) == pytest.approx((-15, -15))


def pair(sense: int, hair: float) -> pulp.LpProblem:
    """One of two, the second of which is better by a hair."""
    sign = 1.0 if sense == pulp.LpMaximize else -1.0
    problem = pulp.LpProblem("pair", sense)
    x, y = (problem.add_variable(name, 0, 1, pulp.LpInteger) for name in "xy")
    problem.setObjective(sign * x + sign * (1.0 + hair) * y)
    problem.addConstraint(2.0 * x + 2.0 * y <= 3.0)
    return problem


@pytest.mark.parametrize("sense", [pulp.LpMaximize, pulp.LpMinimize])
@pytest.mark.parametrize("hair", [1.8e-9, 1e-9, 5e-10, 1e-10])
def test_a_bound_is_beyond_what_is_better_by_a_hair(sense, hair):
    """HiGHS drops what is better than its solution by a billionth of the largest cost."""
    found = highs.solve(pair(sense, hair), warm_start={"x": 1.0}, presolve=False)
    assert found.status is Status.OPTIMAL
    assert found.values["x"] == 1.0, "it is dropped"
    assert 1.0 + hair <= abs(found.bound) <= 1.0 + 3e-9


@pytest.mark.parametrize("sense", [pulp.LpMaximize, pulp.LpMinimize])
def test_bounds_of_a_solve_that_still_runs_are_beyond_it_too(sense):
    with highs.start(pair(sense, 0.0)) as run:
        found = run.finish()
    told = found.objective * run._scale
    event = SimpleNamespace(
        data_in=SimpleNamespace(user_interrupt=False),
        data_out=SimpleNamespace(mip_primal_bound=told, mip_dual_bound=told, running_time=0.0),
    )
    run._watch_mip(event)
    assert run.progress.incumbent == found.objective
    assert run.progress.bound == found.bound != found.objective


def test_a_linear_program_is_its_own_bound_and_an_empty_one_its_constant():
    empty = pulp.LpProblem("empty", pulp.LpMaximize)
    empty.setObjective(pulp.lpSum([]) + 3)
    for problem, value in ((small(category=pulp.LpContinuous), 15.75), (empty, 3.0)):
        solution = highs.solve(problem)
        assert solution.status is Status.OPTIMAL
        assert solution.objective == solution.bound == pytest.approx(value)
        assert solution.gap == 0


def test_an_infeasible_model_has_no_objective_and_an_unbounded_one_is_not_called_optimal():
    for category in (pulp.LpInteger, pulp.LpContinuous):
        problem = small(category=category)
        problem.addConstraint(problem.variables()[0] >= 3)
        solution = highs.solve(problem)
        assert solution.status in (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED)
        assert (solution.objective, solution.values, solution.gap) == (None, {}, math.inf)
    assert solution.bound == math.inf, "nothing is known of it"
    problem = pulp.LpProblem("unbounded", pulp.LpMaximize)
    problem.setObjective(problem.add_variable("x", 0) * 1)
    solution = highs.solve(problem, presolve=False)
    assert solution.status in (Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)


# Nothing chosen is a first solution, so that none of these tests depends on HiGHS's speed.
NOTHING: dict[str, float] = {}


@pytest.mark.parametrize("sense", [pulp.LpMaximize, pulp.LpMinimize])
def test_a_time_limited_solve_is_not_optimal_and_its_bound_lies_on_the_right_side(sense):
    problem = knapsacks(sense)
    start = {variable.name: float(sense == pulp.LpMinimize) for variable in problem.variables()}
    worked = highs.solve(problem, budget=WorkLimit(0.01).start(), warm_start=start)
    solution = highs.solve(problem, budget=Budget(0.5), warm_start=start)
    assert (worked.status, solution.status) == (Status.WORK_LIMIT, Status.TIME_LIMIT)
    assert solution.objective is not None
    better = solution.bound - solution.objective
    assert better > 0 if sense == pulp.LpMaximize else better < 0
    assert solution.gap == pytest.approx(abs(better) / solution.objective)
    assert solution.gap > 1e-4


def test_a_node_limited_solve_repeats_and_claims_no_proof():
    problem = knapsacks(pulp.LpMaximize, 60, 10)
    few = highs.solve(problem, node_limit=1)
    assert few.status is Status.NODE_LIMIT
    assert few.objective is not None
    assert few.bound > few.objective
    assert highs.solve(problem, node_limit=1) == few
    enough = highs.solve(problem, node_limit=100_000)
    assert enough.status is Status.OPTIMAL
    assert few.objective <= enough.objective <= few.bound
    with pytest.raises(ValueError, match="node_limit: expected at least 1, got 0"):
        highs.solve(problem, node_limit=0)


def test_the_warm_start_is_the_first_solution():
    problem = knapsacks(pulp.LpMaximize)
    good = highs.solve(problem, budget=Budget(1.0), warm_start=NOTHING)
    again = highs.solve(problem, budget=Budget(0.05), warm_start=good.values)
    assert good.objective is not None
    assert again.objective is not None
    assert again.objective >= good.objective - 1e-6


@pytest.mark.parametrize("start", [{"x": 2, "y": 2}, {"x": 1e9}, {"y": -1}])
def test_an_infeasible_warm_start_is_ignored(start):
    """It breaks a row, or the limits of a variable, which HiGHS itself would refuse."""
    solution = highs.solve(small(), warm_start=start)
    assert solution.objective == pytest.approx(15)


def test_progress_encloses_the_optimum_and_an_interrupt_keeps_the_best_so_far():
    seen: list[SolveProgress] = []

    def note(progress: SolveProgress) -> None:
        seen.append(progress)
        if progress.incumbent is not None and progress.bound < 4200:
            raise KeyboardInterrupt

    solution = highs.solve(knapsacks(pulp.LpMaximize), warm_start=NOTHING, on_progress=note)
    last = seen[-1]
    assert last.incumbent is not None
    assert 1000 <= last.incumbent < last.bound
    assert last.bound == pytest.approx(4050, rel=0.05)
    assert last.gap == relative_gap(last.incumbent, last.bound)
    assert last.elapsed > 0
    assert solution.status is Status.INTERRUPTED
    assert solution.objective is not None
    assert last.incumbent <= solution.objective < solution.bound <= last.bound


def test_an_exception_of_the_progress_callback_ends_the_solve_and_arrives():
    def fail(progress: SolveProgress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # without a limit nothing else would end it
        highs.solve(knapsacks(pulp.LpMaximize), on_progress=fail)


def script(*lines: str) -> subprocess.Popen[str]:
    """A program of these lines, which may use what is in this file."""
    path = os.pathsep.join([os.path.dirname(__file__), os.getcwd()])
    return subprocess.Popen(
        [sys.executable, "-c", "\n".join(["from test_highs import *", *lines])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def report_running(progress: SolveProgress) -> None:
    if math.isfinite(progress.bound):
        print("running", flush=True)  # noqa: T201 - of a script


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_ends_a_solve_promptly():
    process = script(
        "problem = knapsacks(pulp.LpMaximize)",
        "found = highs.solve(problem, warm_start={}, on_progress=report_running)",
        "print(found.status, found.objective, found.bound)",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)  # without a limit nothing else would end it
    status, objective, bound = out.splitlines()[-1].split()
    assert status == "interrupted"
    assert float(objective) < float(bound)
    assert "Traceback" not in err


def test_an_unproved_optimum_and_what_highs_refuses_are_errors(monkeypatch):
    problem = small()
    problem.addConstraint(problem.variables()[0] * 1e20 <= 1)
    with pytest.raises(SolverError, match="HiGHS refused the model"):
        highs.solve(problem)
    monkeypatch.setattr(answers, "PROOF", -1.0)
    with pytest.raises(SolverError, match="not proved"):
        highs.solve(small())


def test_ctrl_c_is_not_lost_on_a_solver_that_has_just_finished(monkeypatch):
    def late(run: RunningSolve, on_progress: object) -> None:
        run._done.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(RunningSolve, "_report", late)
    solution = highs.solve(small())
    assert solution.status is Status.INTERRUPTED
    assert (solution.objective, solution.bound) == pytest.approx((15, 15))


@pytest.mark.parametrize("sense", [pulp.LpMaximize, pulp.LpMinimize])
def test_a_solver_that_does_not_hear_ctrl_c_is_left_with_the_bound_it_told(monkeypatch, sense):
    leave = threading.Event()

    def deaf(run: RunningSolve) -> None:
        leave.wait()

    def interrupt(run: RunningSolve, on_progress: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "GRACE_SECONDS", 0.01)
    monkeypatch.setattr(RunningSolve, "_work", deaf)
    monkeypatch.setattr(RunningSolve, "_report", interrupt)
    run = highs.start(small(sense))
    run.stop()
    solutions = [highs.solve(small(sense)), run.finish()]
    leave.set()
    worst = math.inf if sense == pulp.LpMaximize else -math.inf
    assert solutions == [Solution(Status.INTERRUPTED, None, worst, math.inf, {})] * 2


@pytest.mark.parametrize("sense", [pulp.LpMaximize, pulp.LpMinimize])
def test_a_gap_in_units_of_the_objective_ends_a_solve_without_a_claim(sense):
    wide = highs.solve(knapsacks(sense), gap=1e6)
    assert wide.status is Status.GAP_LIMIT
    assert wide.objective is not None
    assert 0 < abs(wide.bound - wide.objective) <= 1e6
    closed = highs.solve(small(sense), gap=1e-9)
    assert closed.status is Status.OPTIMAL


def test_a_run_of_the_model_as_it_was_goes_on_beside_its_caller_and_ends_when_told():
    problem = knapsacks(pulp.LpMaximize)
    run = highs.start(problem)
    for variable in problem.variables():
        problem.addConstraint(variable <= 0)
    assert not run.is_done
    deadline = time.perf_counter() + 60
    while run.progress is None or not math.isfinite(run.progress.bound):
        assert time.perf_counter() < deadline
        time.sleep(0.01)
    assert highs.solve(small()).status is Status.OPTIMAL
    run.stop()
    solution = run.finish()
    assert run.is_done
    assert solution.status is Status.INTERRUPTED
    assert 4000 < solution.bound < math.inf


def test_a_program_may_end_while_a_run_goes_on():
    process = script("run = highs.start(knapsacks(pulp.LpMaximize))")
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("is_relaxation", "tolerance"), [(False, highs.FEASIBILITY), (True, highs.WIDE)]
)
def test_only_a_relaxation_forgives_a_millionth(is_relaxation, tolerance):
    run = highs.start(knapsacks(pulp.LpMaximize, 3, 1), is_relaxation=is_relaxation)
    run.finish()
    for name in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
        assert run._highs.getOptionValue(name)[1] == tolerance


def test_a_relaxation_does_not_leave_out_what_is_a_little_better():
    """HiGHS by itself takes a solution within its tolerance of the best one for the best one."""
    problem = pair(pulp.LpMaximize, 3e-7)
    found = highs.solve(problem, warm_start={"x": 1.0}, presolve=False, is_relaxation=True)
    assert found.status is Status.OPTIMAL
    assert found.objective == 1.0000003
    assert found.objective <= found.bound <= found.objective * (1 + 2e-9)


# -- the form of a model and what is read of answers -----------------------------------------------


def test_a_model_keeps_its_sense_limits_and_entries_and_rows_with_fractions_are_scaled():
    problem = pulp.LpProblem("some", pulp.LpMaximize)
    x = problem.add_variable("x", 0, 3, pulp.LpInteger)
    y = problem.add_variable("y", None, None, pulp.LpContinuous)
    problem.setObjective(48 * x + y + 5)
    problem.addConstraint(x + 2 * y >= 1)
    problem.addConstraint(0.5 * x + 3 * y <= 5.5)
    model = ArrayModel.of(problem)
    lp = answers.translate(model, 0.5, 4.0)
    assert lp.sense_ == highspy.ObjSense.kMaximize
    assert (lp.offset_, list(lp.col_cost_)) == (2.5, [24.0, 0.5])
    assert (list(lp.col_lower_), list(lp.col_upper_)) == ([0.0, -math.inf], [3.0, math.inf])
    assert (list(lp.row_lower_), list(lp.row_upper_)) == ([1.0, -math.inf], [math.inf, 22.0])
    assert list(lp.a_matrix_.value_) == [1.0, 2.0, 2.0, 12.0]
    kinds = highspy.HighsVarType
    assert list(lp.integrality_) == [kinds.kInteger, kinds.kContinuous]
    assert answers.objective_scale(model) == 1 / 64, "the power of two that brings 48 to about 1"
    assert answers.objective_scale(ArrayModel.of(pulp.LpProblem("empty", pulp.LpMaximize))) == 1.0


def test_an_optimum_away_from_its_bound_is_no_proof():
    agreed, apart = (Solution(Status.OPTIMAL, 10.0, b, 0.0, {}) for b in (10.000001, 10.1))
    answers.check_proof(agreed, 1.0)
    with pytest.raises(SolverError, match="has not proved"):
        answers.check_proof(apart, 1.0)
    assert answers.is_closed(apart, 1.0, abs(apart.bound - apart.objective))
    assert answers.is_closed(Solution(Status.TIME_LIMIT, 1.0, 9.0, 8.0, {}), 1.0)


def test_knapsacks_are_charged_but_never_cut_short():
    budget = Budget(0.0, WorkCounter())
    values, shares = np.array([3.0, 2.0]), np.array([[0.6], [0.5]])
    bound, units = knapsack.knapsack(values, shares, np.array([1, 2]), 1.0, budget)
    assert (bound, units.tolist()) == (pytest.approx(4.0), [0, 2])
    assert budget.elapsed > 0


# -- solutions that go to HiGHS and come from it while it runs -------------------------------------

ITEMS = 60


def with_several_solutions() -> pulp.LpProblem:
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
    return highs.solve(with_several_solutions(), node_limit=1, exchange=exchange, budget=budget)


@pytest.fixture(scope="module")
def alone() -> Solution:
    return at_the_root(None)


def test_a_better_solution_is_taken_up_while_the_solve_runs(alone):
    without, box = Box(), Box(alone.values)
    assert at_the_root(without).objective == alone.objective
    assert at_the_root(box).objective == pytest.approx(alone.objective)
    assert alone.objective is not None
    assert box.asked[0] == without.asked[0] == -np.inf
    assert without.asked[1] < 0.9 * alone.objective, "HiGHS takes its time to find it"
    assert box.asked[1] == pytest.approx(alone.objective)


def test_a_solution_that_breaks_a_row_is_ignored(alone):
    box = Box({f"x{k}": 1.0 for k in range(ITEMS)})
    assert at_the_root(box).objective == alone.objective
    assert box.solution is None, "it was given"


def test_what_is_found_meanwhile_is_passed_on(alone):
    box = Box(pause=0.3)
    solution = at_the_root(box)
    assert solution.objective == alone.objective
    assert box.got
    problem = with_several_solutions()
    for values in box.got:
        for row in problem.constraints():
            assert sum(c * values[v.name] for v, c in row.items()) <= row.getUb() + 1e-6
    worth = [sum(c * values[v.name] for v, c in problem.objective.items()) for values in box.got]
    assert worth == sorted(worth)


def test_a_solve_that_must_repeat_exchanges_nothing(alone):
    box = Box({f"x{k}": 0.0 for k in range(ITEMS)})
    assert at_the_root(box, Budget(1e6, WorkCounter())).objective == alone.objective
    assert (box.asked, box.got) == ([], [])
