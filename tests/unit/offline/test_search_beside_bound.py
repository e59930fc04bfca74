"""Schedules that a second process looks for while the configuration LP is solved."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis.model.instance_file import instance_to_dict
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline import ConfigurationParams, solve
from offline import processes as helper
from offline.column_generation import solve as colgen
from offline.column_generation import solve as searching
from offline.column_generation.solve import Configuration, Heuristics
from offline.heuristics import recombination
from offline.heuristics.best_solution import BestSolution, PartialSolution
from offline.heuristics.recombination import take_up
from offline.model.arrays import OfflineArrays
from offline.problem import OfflineProblem
from offline.processes import Helper, Message, Partner, ProcessTask
from offline.state import OnlinePrices, Phase, SolveState, warm_start_of
from offline.tasks import Child

TINY = oasis.generate("testbed", jobs=3, worker_servers=1, ps_servers=1, horizon=4, seed=3)
HARD = oasis.generate("testbed", jobs=14, seed=2)  # colgen does not prove it
PARAMS = ConfigurationParams(process_limit=0.0, start_share=0.0, first_turn=0.1)
SECONDS = 60.0  # for a process to start on a loaded machine, and much more

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")


@posix
@pytest.mark.usefixtures("two_cores")
def test_the_other_process_alone_finds_the_enumerated_optimum(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    optimum = solve(TINY, "bruteforce").objective

    def idle(_: Configuration, heuristics: Heuristics, __: OnlinePrices, *___: Helper) -> Status:
        heuristics.state.record_bound(optimum * (1 + 1e-9))
        while not (heuristics.state.budget.passed or heuristics.best.is_proven):
            time.sleep(0.01)
        return heuristics.state.budget.status

    monkeypatch.setattr(Configuration, "_bound_and_improve", idle)
    found = solve(TINY, "colgen", time_limit=SECONDS, params=PARAMS, warm_start={})
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(optimum, rel=1e-9)
    assert found.objective_by in set(Phase) - {Phase.ONLINE, Phase.WARM_START}
    assert found.parameters["processes"] == 2
    assert [process.returncode in (0, -signal.SIGKILL) for process in started] == [True]


@posix
@pytest.mark.usefixtures("two_cores")
def test_heuristics_that_fail_are_reported_and_begun_here(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(helper, "CHILD", "import sys; sys.exit(7)")
    begun: list[float] = []
    cut = colgen.cut_configuration_lp

    def after(arrays: Any, bound: Any, state: SolveState, *others: Any) -> Any:
        while state.notes.get("heuristics_failed") is None:
            assert not state.budget.passed
            time.sleep(0.01)
        return cut(arrays, bound, state, *others)

    def start(self: Heuristics) -> None:
        begun.append(self.best.value)
        self.state.budget.stopping.end(Status.TIME_LIMIT)

    monkeypatch.setattr(colgen, "cut_configuration_lp", after)
    monkeypatch.setattr(Heuristics, "start", start)
    result = solve(HARD, "colgen", time_limit=SECONDS, params=PARAMS)
    assert result.parameters["heuristics_failed"] == "its process ended with 7"
    assert result.status is Status.TIME_LIMIT
    assert len(started) == len(begun) == 1


@posix
@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize(
    ("params", "limit"),
    [
        ({"second_process": False}, {"time_limit": SECONDS}),
        ({"process_limit": 2 * SECONDS}, {"time_limit": SECONDS}),
        ({}, {"work_limit": 1.0}),
    ],
)
def test_no_second_process(
    monkeypatch: pytest.MonkeyPatch,
    started: list[subprocess.Popen[bytes]],
    params: dict[str, Any],
    limit: dict[str, Any],
) -> None:
    helped: list[bool] = []

    def bound(
        _: Configuration, heuristics: Heuristics, __: OnlinePrices, *beside: Helper
    ) -> Status:
        helped.append(bool(beside))
        return heuristics.state.budget.status

    monkeypatch.setattr(Configuration, "_bound_and_improve", bound)
    solve(TINY, "colgen", params=PARAMS, time_limit=SECONDS)
    assert helped == [True]
    before = len(started)
    solve(TINY, "colgen", params=PARAMS.to_dict() | params, **limit)
    assert helped == [True, False]
    assert len(started) == before


def test_beside_a_search_this_process_bounds_and_takes_up_what_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not begin as it would alone, and mixes before each turn."""
    state, told, taken = SolveState(Budget()), list[Any](), list[Phase]()
    start = warm_start_of(HARD, None, state, needs_prices=True)
    state.record_solution(oasis.verify(HARD, start.schedules), start.schedules)

    def take(best: BestSolution, _: Budget) -> None:
        taken.append(best.state.phase)
        if len(taken) == 3:
            state.budget.stopping.end(Status.TIME_LIMIT)

    assert start.prices is not None
    rng = np.random.default_rng(0)
    heuristics = Heuristics(OfflineProblem(HARD, start, state), PARAMS, state.budget, rng)
    monkeypatch.setattr(Heuristics, "start", None)
    monkeypatch.setattr(searching, "take_up", take)
    beside: Any = SimpleNamespace(is_working=True, partner=Partner(told.append))
    found = Configuration(PARAMS)._bound_and_improve(heuristics, start.prices, beside)
    assert found is Status.TIME_LIMIT
    assert not told
    assert state.bound < 2 * oasis.verify(HARD, start.schedules)
    assert taken == [Phase.CUTS_IN_SLOTS, Phase.WINDOWS, Phase.WINDOWS]


def test_the_process_tells_of_schedules() -> None:
    optimum, said = solve(TINY, "bruteforce"), list[Message]()
    known: Any = {"instance": instance_to_dict(TINY), "bound": 1e6, "seconds": SECONDS}
    child = Child(ProcessTask("heuristics", Phase.WINDOWS, PARAMS, 0, **known), said.append)
    child.partner.inbox.put(("bound", optimum.objective * (1 + 1e-9)))
    child.run()
    assert said[-1] == ("status", "optimal")
    assert all(content[1] in set(Phase) for kind, content in said if kind == "schedules")


def empty_and_known() -> tuple[BestSolution, dict[str, Any]]:
    """A best solution without jobs, and schedules of two jobs or more."""
    instance = oasis.generate("testbed", jobs=4, worker_servers=3, ps_servers=3, seed=1)
    schedules = dict(oasis.simulate(instance, oasis.OASiS.from_instance(instance)).schedules)
    assert len(schedules) >= 2
    state = SolveState(Budget())
    start = PartialSolution(OfflineArrays.of(instance))
    return BestSolution(start, state, lambda found: oasis.verify(instance, found)), schedules


@pytest.mark.parametrize("is_own", [True, False])
def test_better_schedules_from_elsewhere_are_mixed_with_those_found_here(
    is_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    best, schedules = empty_and_known()
    arrays = best.solution.arrays
    least, *others = sorted(
        schedules, key=lambda name: PartialSolution(arrays, {name: schedules[name]}).value
    )
    if is_own:
        best.offer(PartialSolution(arrays, {least: schedules[least]}))
    found = {name: schedules[name] for name in others}
    value = PartialSolution(arrays, found).value
    best.state.record_solution(value, found, "another process")
    mixes = list[float]()

    def counted(*solutions: Any) -> PartialSolution:
        mix = original(*solutions)
        mixes.append(mix.value)
        return mix

    original = recombination.recombine
    monkeypatch.setattr(recombination, "recombine", counted)
    take_up(best, Budget())
    take_up(best, Budget())
    assert len(mixes) == is_own
    assert set(best.solution.by_id) == set(schedules if is_own else others)
    assert best.is_own == is_own
    assert best.state.incumbent == pytest.approx(best.value)


def test_nothing_new_from_elsewhere_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    best, schedules = empty_and_known()
    best.offer(PartialSolution(best.solution.arrays, schedules))
    known = best.solution
    monkeypatch.setattr(recombination, "recombine", None)
    take_up(best, Budget())
    assert best.solution is known
