"""A limit of time also ends what comes before HiGHS: models, pricing, plans to search from."""

from __future__ import annotations

import numpy as np
import pulp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oasis
from oasis.solvers import budget as budgets
from oasis.solvers.budget import Budget, OutOfTimeError, Stopping, TimeLimit, WorkLimit
from offline import OfflineResult, Status, solve
from offline.benders.master import CountModel
from offline.column_generation import generation, pricing
from offline.heuristics import best_solution, window_search
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.model.milp import CompactModel
from offline.state import SolveState, trivial_bound

SIZES = {"jobs": 5, "worker_servers": 2, "ps_servers": 2}
INSTANCE = oasis.generate("testbed", **SIZES, seed=1)
ONLINE = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE)).total_utility
LIMITED = ("milp", "benders", "colgen")


class Clock:
    """Shows a second more each time that it is asked."""

    is_repeatable = False

    def __init__(self) -> None:
        self.asked = 0

    def read(self) -> float:
        self.asked += 1
        return float(self.asked)

    def charge(self, work: float) -> None:
        """Do nothing: only questions take time."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the limits of a solve."""
    made = Clock()
    monkeypatch.setattr(budgets, "Stopwatch", lambda: made)
    return made


def built(what: str, arrays: OfflineArrays, budget: Budget) -> int:
    """Build a part of a solve; return what it consists of: variables and rows, or jobs."""
    if what == "window search":
        best = BestSolution.of(INSTANCE, arrays, SolveState(budget))
        WindowSearch(arrays, best, np.random.default_rng(0))
        return len(arrays.jobs)
    if what == "dual values":
        prices = (np.ones((arrays.horizon, 2, arrays.worker.resources)) for _ in range(2))
        best_solution.DualValues.of(arrays, *prices, budget)
        return len(arrays.jobs)
    kinds = {"compact model": CompactModel, "counts": CountModel}
    problem = kinds[what](arrays, budget).problem
    return len(problem.variables()) + len(problem.constraints())


@pytest.mark.parametrize("what", ["compact model", "counts", "dual values", "window search"])
def test_whatever_is_built_asks_the_clock_all_along_and_stops(what: str) -> None:
    arrays, clock = OfflineArrays.of(INSTANCE), Clock()
    parts = built(what, arrays, Budget(1e9, clock))
    whole = clock.asked
    assert whole > parts / len(INSTANCE.cluster.worker_ids)
    for limit in range(0, whole // 4, 1 + whole // 20):  # asked several times for one answer
        clock = Clock()
        with pytest.raises(OutOfTimeError):
            built(what, arrays, Budget(limit, clock))
        assert clock.asked <= limit + 5


@pytest.mark.parametrize("method", LIMITED)
@pytest.mark.parametrize("limit", [0, 10, 200])
def test_once_the_time_is_over_nothing_more_is_made(
    method: str, limit: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = []

    def noting(owner: object, name: str) -> None:
        make = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *g, **n: late.append(clock.asked > limit + 1) or make(*g, **n)
        )

    for owner in (generation, best_solution):
        noting(owner, "price")
    for name in ("add_variable", "addConstraint"):
        noting(pulp.LpProblem, name)
    result = solve(INSTANCE, method, time_limit=limit)
    assert result.status in (Status.TIME_LIMIT, Status.OPTIMAL)
    assert sum(late) <= 5  # those of one slot, or of one job


def check(result: OfflineResult) -> None:
    assert result.status in (Status.TIME_LIMIT, Status.OPTIMAL)
    assert oasis.verify(INSTANCE, result) == result.objective
    assert ONLINE <= result.objective <= result.upper_bound <= trivial_bound(INSTANCE) * (1 + 1e-8)
    assert (result.status is Status.OPTIMAL) == (result.gap <= 1e-6)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from((*LIMITED, "auto")), st.integers(0, 1200), st.integers(0, 9))
def test_whenever_the_time_is_over_the_result_is_valid(method: str, limit: int, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "Stopwatch", Clock)
        check(solve(INSTANCE, method, time_limit=limit, seed=seed))


@pytest.mark.parametrize("method", ["benders", "colgen"])
@pytest.mark.parametrize(
    ("module", "name", "step"),
    [
        (window_search, "PLAN_SECONDS_PER_PRICE", "a plan to search from"),
        (pricing, "SECONDS_PER_RUN", "the best schedule of j"),
    ],
)
def test_a_step_that_takes_longer_than_there_is_time_is_not_begun_and_the_result_says_so(
    method: str, module: object, name: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "Stopwatch", Clock)
    monkeypatch.setattr(module, name, 1e6)
    result = solve(INSTANCE, method, time_limit=400)
    check(result)
    assert result.parameters["skipped"].startswith(step)


def test_a_budget_says_what_it_is_too_small_for_and_a_criterion_that_is_met_ends_it() -> None:
    """Work is no time, but a limit of time beside it counts."""
    budget = Budget(10.0, Clock())
    budget.need(5.0, "a step")
    with pytest.raises(OutOfTimeError, match=r"^a step: takes about 20 s, \d s were left$"):
        budget.need(20.0, "a step")
    work = WorkLimit(1.0).start()
    work.charge(2.0)
    assert [*work.over("ab")] == ["a", "b"]
    stopping = Stopping(gap=0.5)
    stopping.note(1.0, 1.1, 0.0, verified=1.0)
    for late in ((WorkLimit(1.0) | TimeLimit(0.0)).start(), Budget(None, Clock(), stopping)):
        with pytest.raises(OutOfTimeError):
            late.need()
