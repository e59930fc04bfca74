"""Criteria that end a solve before its limit, with clocks that the test sets."""

from __future__ import annotations

import math

import pulp
import pytest

from oasis.solvers import Status, highs
from oasis.solvers.budget import (
    DEFAULT_STOP,
    LEAST_PROGRESS,
    Budget,
    Gap,
    NoImprovement,
    Stop,
    Stopping,
    TimeLimit,
    WorkCounter,
    WorkLimit,
    stop_of,
)
from tests.unit.solvers.test_highs import knapsacks


def test_the_gap_is_that_of_what_is_verified():
    never, stopping = Stopping(), Stopping(gap=0.25)
    for verified in (None, 7.9, 8.0):
        assert stopping.check(0.0) is None
        for each in (never, stopping):
            each.note(9.0, 10.0, 0.0, verified=verified)
    assert stopping.check(0.0) is Status.GAP_LIMIT
    assert stopping.left(0.0) == 0.0
    assert (never.check(1e9), never.left(1e9)) == (None, math.inf)


def test_what_is_shorter_by_a_thousandth_is_an_improvement_and_less_is_not():
    stopping = Stopping(gap=0.1, no_improvement=10.0)
    stopping.note(0.0, 100.0, 1.0)
    stopping.note(0.0, 100.0 * (1 - LEAST_PROGRESS / 2), 5.0)
    assert stopping.left(5.0) == 6.0
    stopping.note(0.3, 100.0, 7.0)
    assert stopping.left(7.0) == 10.0
    assert stopping.check(16.9) is None
    assert stopping.check(17.0) is Status.NO_IMPROVEMENT
    stopping.note(100.0, 100.0, 18.0, verified=100.0)
    assert stopping.check(18.0) is Status.NO_IMPROVEMENT, "it was met first"
    assert Stopping(no_improvement=1.0, now=100.0).left(100.5) == 0.5  # not what was before


def test_many_small_steps_add_up_to_an_improvement():
    stopping = Stopping(no_improvement=10.0)
    for step in range(41):
        stopping.note(0.0, 100.0 - 0.03 * step, float(step))
        assert stopping.check(float(step)) is None


@pytest.mark.parametrize("bad", [-1.0, math.nan, True, "1"])
def test_what_is_no_amount_is_refused_by_its_name(bad):
    for name in ("gap", "no_improvement"):
        with pytest.raises(ValueError, match=f"^{name}: expected an? .* >= 0, or None"):
            Stopping(**{name: bad})  # type: ignore[arg-type]


def test_every_part_of_a_budget_ends_with_the_whole():
    whole = (WorkLimit(10.0) | Gap(0.5) | NoImprovement(4.0)).start()
    part = whole.share(0.5).within(3.0)
    assert (part.left, part.left_without_report) == (3.0, 3.0)
    part.charge(2.0)
    assert (part.left, whole.left, whole.left_without_report) == (1.0, 8.0, 2.0)
    whole.stopping.note(2.0, 3.0, 2.0, verified=2.0)
    assert part.passed
    assert whole.passed
    assert (part.status, whole.status) == (Status.GAP_LIMIT, Status.GAP_LIMIT)
    assert not (WorkLimit(10.0) | TimeLimit(1e6)).start().passed


@pytest.mark.parametrize("ask_first", [True, False])
@pytest.mark.parametrize(
    ("patience", "status"), [(12.0, Status.WORK_LIMIT), (8.0, Status.NO_IMPROVEMENT)]
)
def test_the_status_is_what_was_met_first(patience, status, ask_first):
    """One long step goes beyond both."""
    budget = (WorkLimit(10.0) | NoImprovement(patience)).start()
    budget.charge(13.0)
    assert not ask_first or budget.passed
    assert budget.status is status


def test_criteria_are_joined_and_told_and_of_two_of_a_kind_the_first_that_is_met_counts():
    assert NoImprovement(math.inf).to_dict() == {"time_limit": None, "no_improvement": None}
    every = WorkLimit(2.0) | Gap(0.1) | NoImprovement(3.0)
    assert every.to_dict() == {"work_limit": 2.0, "gap": 0.1, "no_improvement": 3.0}
    assert (every | TimeLimit(5.0)).to_dict() == {"time_limit": 5.0, **every.to_dict()}
    one = TimeLimit(60) | Gap(0.01) | NoImprovement(5)
    other = Gap(0.2) | TimeLimit(30) | NoImprovement(9) | WorkLimit(2)
    assert one | other == other | one == Stop(30, 2, 0.2, 5)
    assert repr(one | other) == "TimeLimit(30) | WorkLimit(2) | Gap(0.2) | NoImprovement(5)"


def test_shorthands_join_what_is_given_and_the_default_is_a_minute():
    assert stop_of(None, ..., None, None, None) == DEFAULT_STOP | Stop() == Stop(60.0)
    assert stop_of(None, ..., None, 0.1, None) == Stop(60.0, gap=0.1)
    assert stop_of(None, ..., 3.0, None, None) == Stop(work_limit=3.0)
    assert stop_of(None, None, None, None, None) == Stop()
    assert stop_of(Gap(0.1), ..., None, None, None) == Stop(gap=0.1)
    assert stop_of(Gap(0.1), 5.0, None, 0.2, None) == Stop(5.0, gap=0.2)
    with pytest.raises(TypeError, match=r"^stop: expected criteria such as TimeLimit"):
        stop_of(60.0, ..., None, None, None)  # type: ignore[arg-type]


def test_time_ends_a_solve_whose_work_is_limited_too():
    budget = (WorkLimit(1e9) | TimeLimit(0.0)).start()
    assert budget.is_repeatable
    assert budget.passed
    assert budget.status is Status.TIME_LIMIT
    solution = highs.solve(hard(100), budget=(WorkLimit(1e9) | TimeLimit(0.3)).start())
    assert solution.status is Status.TIME_LIMIT


def hard(items: int = 40) -> pulp.LpProblem:
    """A knapsack that HiGHS takes seconds for, and gets closer to for long."""
    return knapsacks(pulp.LpMaximize, items, 12)


def test_a_solve_of_the_whole_problem_ends_at_the_gap_of_its_budget_and_a_part_does_not():
    budget = (WorkLimit(60.0) | Gap(0.2)).start()
    solution = highs.solve(hard(), budget=budget, is_whole_problem=True)
    assert solution.status is Status.GAP_LIMIT
    assert 1e-6 < solution.gap <= 0.2
    assert budget.elapsed < 60.0
    part = highs.solve(hard(), budget=(WorkLimit(0.5) | Gap(0.2)).start())
    assert part.status in (Status.WORK_LIMIT, Status.OPTIMAL)
    assert part.gap < solution.gap


@pytest.mark.parametrize("is_whole_problem", [True, False])
def test_work_without_improvement_ends_a_solve_at_the_same_point_always(is_whole_problem):
    found = []
    for _ in range(2):
        budget = (WorkLimit(1000.0) | NoImprovement(0.05)).start()
        solution = highs.solve(hard(60), budget=budget, is_whole_problem=is_whole_problem)
        assert solution.status is Status.NO_IMPROVEMENT
        found.append((solution.objective, solution.bound, budget.elapsed))
    assert found[0] == found[1]
    # what it finds counts only for a solve of the whole problem
    assert (found[0][2] > 0.06) == is_whole_problem


class Meter(WorkCounter):
    """Seconds that the test sets: not repeatable, as far as a solve knows."""

    is_repeatable = False  # type: ignore[misc]


def test_seconds_without_improvement_end_a_solve_while_highs_runs():
    meter = Meter()
    budget = Budget(20.0, meter, Stopping(no_improvement=5.0))

    def passing(_: object) -> None:
        meter.charge(10.0)  # the clock jumps as soon as HiGHS has told of something

    solution = highs.solve(hard(90), budget=budget, is_whole_problem=True, on_progress=passing)
    assert solution.status is Status.NO_IMPROVEMENT
