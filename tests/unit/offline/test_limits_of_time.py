"""What ends a solve ends also what comes before HiGHS: limits of time, and Ctrl-C at any moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pulp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oasis
from oasis.solvers import SolveProgress, Status
from oasis.solvers import budget as budgets
from oasis.solvers.budget import Budget, OutOfTimeError, Stopping, TimeLimit, WorkLimit
from oasis.solvers.running import RunningSolve
from offline import OfflineResult, solve
from offline.benders import decomposition
from offline.benders.decomposition import LEVELS
from offline.benders.master import CountModel
from offline.column_generation import generation, pricing
from offline.heuristics import best_solution, window_search
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.recombination import Alternation
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.model.milp import CompactModel
from offline.params import BendersParams
from offline.state import SolveState, trivial_bound
from tests.oracle.odds import CROSSED, at_odds, unit_job
from tests.unit.offline.test_benders import SMALL, unaided

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
def test_whatever_is_built_asks_the_clock_all_along_and_stops(what):
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
def test_once_the_time_is_over_nothing_more_is_made(method, limit, clock, monkeypatch):
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
def test_whenever_the_time_is_over_the_result_is_valid(method, limit, seed):
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
    method, module, name, step, monkeypatch
):
    monkeypatch.setattr(budgets, "Stopwatch", Clock)
    monkeypatch.setattr(module, name, 1e6)
    result = solve(INSTANCE, method, time_limit=400)
    check(result)
    assert result.parameters["skipped"].startswith(step)
    assert result.parameters.get("configuration_lp") in (None, "time_limit")  # never optimal


def test_a_budget_says_what_it_is_too_small_for_and_a_criterion_that_is_met_ends_it():
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


# -- Ctrl-C inside the decomposition ---------------------------------------------------------------

FRACTIONS, _, WHOLE = (phase for phase, *_ in LEVELS)
WINDOWS = "ruin and recreate in windows"  # it takes turns with another search
LIMIT = 600.0  # without one, nobody looks at the clock; never reached
AT_A_LOOK_AT_THE_CLOCK, WHILE_HIGHS_RUNS = "clock", "HiGHS"


class CtrlC:
    """Raises once: at the moment of this number and kind in a phase."""

    def __init__(self, phase: str, kind: str, number: int) -> None:
        self.phases: list[str] = []
        self.came_in = ""
        self._moment, self._seen = (phase, kind, number), Counter[tuple[str, str]]()

    def watch(self, progress: SolveProgress) -> None:
        if self.phases[-1:] != [progress.phase]:
            self.phases.append(progress.phase)

    def before(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, of which every call is a moment."""

        def called(*given: Any) -> Any:
            here = self.phases[-1] if self.phases else ""
            self._seen[here, kind] += 1
            if not self.came_in and (here, kind, self._seen[here, kind]) == self._moment:
                self.came_in = here
                raise KeyboardInterrupt
            return function(*given)

        return called


@pytest.mark.parametrize(
    ("phase", "kind", "number"),
    [
        ("configuration LP", AT_A_LOOK_AT_THE_CLOCK, 2),
        ("configuration LP", AT_A_LOOK_AT_THE_CLOCK, 5),
        ("cutting planes", AT_A_LOOK_AT_THE_CLOCK, 3),
        ("cutting planes", AT_A_LOOK_AT_THE_CLOCK, 6),  # while patterns are looked for
        (FRACTIONS, AT_A_LOOK_AT_THE_CLOCK, 2),
        (FRACTIONS, WHILE_HIGHS_RUNS, 1),
        (WINDOWS, AT_A_LOOK_AT_THE_CLOCK, 2),
        ("cuts around the plan", AT_A_LOOK_AT_THE_CLOCK, 2),
        ("plans that fit", AT_A_LOOK_AT_THE_CLOCK, 2),
        ("plans that fit", WHILE_HIGHS_RUNS, 1),  # a plan
        ("plans that fit", WHILE_HIGHS_RUNS, 2),  # its placement
        (WHOLE, WHILE_HIGHS_RUNS, 1),
        (WHOLE, WHILE_HIGHS_RUNS, 2),
    ],
)
def test_ctrl_c_ends_the_decomposition_where_it_comes(monkeypatch, phase, kind, number):
    instance = at_odds(CROSSED, *(unit_job(f"j{k}", 1.0) for k in range(4)))
    ctrl_c = CtrlC(phase, kind, number)
    with_turns = Alternation.search
    unaided(monkeypatch)
    if phase == WINDOWS:
        monkeypatch.setattr(Alternation, "search", with_turns)
    if phase == "plans that fit":  # of a small instance, whose whole counts have no time
        monkeypatch.setattr(decomposition, "WHOLE_LIMIT", 0.0)
    is_small = phase in (WHOLE, "plans that fit")
    params = BendersParams(whole_size=SMALL if is_small else 0, second_process=False)
    elapsed = Budget.elapsed.fget
    assert elapsed is not None
    clock = property(ctrl_c.before(AT_A_LOOK_AT_THE_CLOCK, elapsed))
    monkeypatch.setattr(Budget, "elapsed", clock)
    waiting = ctrl_c.before(WHILE_HIGHS_RUNS, RunningSolve._report)
    monkeypatch.setattr(RunningSolve, "_report", waiting)
    result = solve(instance, "benders", time_limit=LIMIT, params=params, on_progress=ctrl_c.watch)
    assert ctrl_c.came_in == phase, ctrl_c.phases
    assert result.status is Status.INTERRUPTED
    assert ctrl_c.phases[-1] == phase
    assert oasis.verify(instance, result) == result.objective
    assert 0 < result.objective <= 3.0 <= result.upper_bound
