"""The solver adapter: honest status, sign of the bound, warm start, progress and interruption."""

from __future__ import annotations

import math
import threading
import time
from types import SimpleNamespace

import numpy as np
import pulp
import pytest

from oasis import SolverError
from oasis.solvers import SolveProgress, Status, answers, highs, relative_gap, running
from oasis.solvers.budget import Budget
from oasis.solvers.running import RunningSolve


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


def test_optimum_of_a_small_problem_is_proved():
    solution = highs.solve(small())
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(15)
    assert 15 < solution.bound <= 15 * (1 + 1e-9), "by what HiGHS drops"
    assert 0 < solution.gap <= 1e-9
    assert solution.values == pytest.approx({"x": 2, "y": 1})


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


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e9])
def test_scale_of_the_objective_does_not_matter(scale):
    problem = small()
    problem.setObjective(problem.objective * scale)
    solution = highs.solve(problem)
    assert solution.objective == pytest.approx(15 * scale)
    assert solution.bound == pytest.approx(15 * scale)


def test_an_infeasible_model_has_no_objective():
    problem = small()
    problem.addConstraint(problem.variables()[0] >= 3)
    solution = highs.solve(problem)
    assert solution.status in (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED)
    assert solution.objective is None
    assert solution.values == {}
    assert solution.gap == math.inf


def test_an_unbounded_model_is_not_called_optimal():
    problem = pulp.LpProblem("unbounded", pulp.LpMaximize)
    problem.setObjective(problem.add_variable("x", 0) * 1)
    solution = highs.solve(problem, presolve=False)
    assert solution.status in (Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)


# Nothing chosen is a first solution, so that none of these tests depends on HiGHS's speed.
NOTHING: dict[str, float] = {}


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


def test_a_node_limit_of_zero_is_refused():
    with pytest.raises(ValueError, match="node_limit: expected at least 1, got 0"):
        highs.solve(small(), node_limit=0)


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


def test_progress_encloses_the_optimum_in_the_units_of_the_model():
    seen: list[SolveProgress] = []

    def note(progress: SolveProgress) -> None:
        seen.append(progress)
        if progress.incumbent is not None and progress.bound < 4200:
            raise KeyboardInterrupt

    highs.solve(knapsacks(pulp.LpMaximize), warm_start=NOTHING, on_progress=note)
    last = seen[-1]
    assert last.incumbent is not None
    assert 1000 <= last.incumbent < last.bound
    assert last.bound == pytest.approx(4050, rel=0.05)
    assert last.gap == relative_gap(last.incumbent, last.bound)
    assert last.elapsed > 0


def test_an_exception_of_the_progress_callback_ends_the_solve_and_arrives():
    def fail(progress: SolveProgress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # without a limit nothing else would end it
        highs.solve(knapsacks(pulp.LpMaximize), on_progress=fail)


def test_an_interrupt_keeps_the_best_solution_and_bound():
    def interrupt(progress: SolveProgress) -> None:
        if math.isfinite(progress.bound):
            raise KeyboardInterrupt

    problem = knapsacks(pulp.LpMaximize)
    solution = highs.solve(problem, warm_start=NOTHING, on_progress=interrupt)
    assert solution.status is Status.INTERRUPTED
    assert solution.objective is not None
    assert solution.objective < solution.bound < math.inf


def test_an_unproved_optimum_is_an_error(monkeypatch):
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
    solution = highs.solve(small(sense))
    leave.set()
    assert (solution.status, solution.objective, solution.values) == (Status.INTERRUPTED, None, {})
    assert solution.bound == (math.inf if sense == pulp.LpMaximize else -math.inf)


@pytest.mark.parametrize("sense", [pulp.LpMaximize, pulp.LpMinimize])
def test_a_gap_in_units_of_the_objective_ends_a_solve_without_a_claim(sense):
    wide = highs.solve(knapsacks(sense), gap=1e6)
    assert wide.status is Status.GAP_LIMIT
    assert wide.objective is not None
    assert 0 < abs(wide.bound - wide.objective) <= 1e6
    closed = highs.solve(small(sense), gap=1e-9)
    assert closed.status is Status.OPTIMAL


def test_a_run_goes_on_beside_its_caller_and_ends_when_told():
    run = highs.start(knapsacks(pulp.LpMaximize))
    assert not run.is_done
    deadline = time.perf_counter() + 60
    while run.progress is None or not math.isfinite(run.progress.bound):
        assert time.perf_counter() < deadline
        time.sleep(0.01)
    beside = highs.solve(small())
    assert beside.status is Status.OPTIMAL
    run.stop()
    solution = run.finish()
    assert solution.status is Status.INTERRUPTED
    assert math.isfinite(solution.bound)


@pytest.mark.parametrize(
    ("is_relaxation", "tolerance"), [(False, highs.FEASIBILITY), (True, highs.WIDE)]
)
def test_only_a_relaxation_forgives_a_millionth(is_relaxation, tolerance):
    run = highs.start(knapsacks(pulp.LpMaximize, 3, 1), is_relaxation=is_relaxation)
    run.finish()
    for name in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
        assert run._highs.getOptionValue(name)[1] == tolerance
