"""Schedules that a second process looks for while the masters are solved."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis.model.instance_file import instance_to_dict
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline import BendersParams, solve
from offline import processes as helper
from offline.benders.decomposition import UNFINISHED, Decomposition, Parts
from offline.benders.master import CountModel
from offline.benders.solve import Benders
from offline.benders.subproblem import Separation
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.problem import OfflineProblem
from offline.processes import Message, Partner, ProcessTask
from offline.state import OnlinePrices, Phase, SolveState, WarmStart
from offline.tasks import Child

TINY = oasis.generate("testbed", jobs=3, worker_servers=1, ps_servers=1, horizon=4, seed=3)
HARD = oasis.generate("testbed", jobs=60, seed=2)  # a gap of 9 % after 20 s
# Treated as a large instance; a search beside a master is short, as the instances are tiny.
LARGE = BendersParams.from_dict({"whole_size": 0, "process_limit": 0.0, "patch_limit": 0.1})
SECONDS = 60.0  # for a process to start on a loaded machine, and much more

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")


def idle(monkeypatch: pytest.MonkeyPatch, bound: float) -> None:
    """Let this process know a bound and do nothing: what is found comes from the other one."""

    def wait(self: Decomposition, _: Any = None) -> Status:
        self.state.record_bound(bound)
        while not self.is_done:
            time.sleep(0.01)
        return self.budget.status

    monkeypatch.setattr(Decomposition, "run", wait)
    monkeypatch.setattr(WindowSearch, "start", lambda *_: None)


@pytest.mark.usefixtures("two_cores")
def test_the_other_process_alone_finds_the_enumerated_optimum(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    optimum = solve(TINY, "bruteforce").objective
    idle(monkeypatch, optimum * (1 + 1e-9))
    found = solve(TINY, "benders", time_limit=SECONDS, params=LARGE, warm_start={})
    assert found.objective == pytest.approx(optimum, rel=1e-9)
    assert found.objective_by in (Phase.REPLANNING, Phase.WINDOWS)
    assert found.parameters["processes"] == 2
    assert [process.returncode in (0, -signal.SIGKILL) for process in started] == [True]


@pytest.mark.usefixtures("two_cores")
def test_a_search_that_fails_is_reported_and_made_here(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    """The process is gone before the masters begin, and they look for schedules themselves."""
    monkeypatch.setattr(helper, "CHILD", "import sys; sys.exit(7)")
    run, looked = Decomposition.run, Decomposition.look_around
    searches: list[float] = []

    def after(self: Decomposition, other: Any = None) -> Status:
        while self.state.notes.get("schedule_search_failed") is None:
            assert not self.budget.passed
            time.sleep(0.01)
        return run(self, other)

    def noted(self: Decomposition) -> float:
        searches.append(self.best.value)
        self.budget.stopping.end(Status.TIME_LIMIT)
        return looked(self)

    monkeypatch.setattr(Decomposition, "run", after)
    monkeypatch.setattr(Decomposition, "look_around", noted)
    result = solve(HARD, "benders", time_limit=SECONDS, params=LARGE)
    assert result.parameters["schedule_search_failed"] == "its process ended with 7"
    assert len(started) == 1
    assert searches


def test_a_search_that_ends_during_a_master_is_gone_on_with_here() -> None:
    run = prepared(LARGE)
    working = iter([True, True, False, False])
    run._helper = SimpleNamespace(is_working=True)  # type: ignore[assignment]
    looked: list[float] = []

    def look() -> float:
        looked.append(0.0)
        return 1.0

    with pytest.MonkeyPatch.context() as patch:
        helped = property(lambda _: next(working, False))
        patch.setattr(Decomposition, "_is_helped", helped)
        patch.setattr(Decomposition, "is_done", property(lambda _: len(looked) > 1))
        patch.setattr(run, "look_around", look)
        patch.setattr(run, "_is_awaited", lambda _: True)
        patch.setattr(run, "_note", lambda _: None)
        patch.setattr(run, "_finish", lambda _: UNFINISHED)
        master = SimpleNamespace(wait=lambda: False)
        patch.setattr(run, "_start", lambda *_: nullcontext(master))
        assert run._master_and_meanwhile(0.0) is UNFINISHED
    assert len(looked) == 2


def test_schedules_that_refute_a_bound_are_told_before_the_error() -> None:
    said: list[Message] = []
    Child(task(0.6 * solve(TINY, "bruteforce").objective), said.append).run()
    assert [kind for kind, _ in said] == ["schedules", "error"]


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize(
    ("params", "limit"),
    [
        ({"second_process": False}, {"time_limit": SECONDS}),
        ({"process_limit": 2 * SECONDS}, {"time_limit": SECONDS}),
        ({}, {"work_limit": 0.01}),
    ],
)
def test_no_second_process(
    started: list[subprocess.Popen[bytes]], params: dict[str, Any], limit: dict[str, Any]
) -> None:
    given = LARGE.to_dict() | params
    result = solve(TINY, "benders", params=given, **limit)
    assert result.status is (Status.WORK_LIMIT if "work_limit" in limit else Status.OPTIMAL)
    assert not started
    assert "processes" not in result.parameters


def nothing_known(state: SolveState) -> OfflineProblem:
    """The instance with prices of 0, and no schedules."""
    state.record_solution(0.0, {})
    free = np.zeros((4, 1, len(TINY.cluster.resources)))
    return OfflineProblem(TINY, WarmStart({}, OnlinePrices(free, free, {})), state)


def prepared(params: BendersParams) -> Decomposition:
    """A decomposition that knows nothing, without a limit."""
    state = SolveState(Budget())
    known, rng = nothing_known(state), np.random.default_rng(0)
    return Benders(params).prepare(known, state.budget, rng)


def task(bound: float) -> ProcessTask:
    """The task as the process has it, without schedules to start from."""
    free = np.zeros((TINY.horizon, 1, len(TINY.cluster.resources)))
    known: Any = {"instance": instance_to_dict(TINY), "bound": bound, "seconds": SECONDS}
    return ProcessTask("schedule search", Phase.REPLANNING, LARGE, 0, (free, free), **known)


def test_the_process_tells_of_schedules_until_they_meet_the_bound() -> None:
    optimum, said = solve(TINY, "bruteforce"), list[Message]()
    search = Child(task(1e6), said.append)
    search.partner.inbox.put(("bound", optimum.objective * (1 + 1e-9)))
    search.run()
    assert said[-1] == ("status", "optimal")
    told = [content for kind, content in said if kind == "schedules"]
    assert told
    assert all(by in set(Phase) for _, by in told)
    assert search.state.incumbent == pytest.approx(optimum.objective)


def test_a_search_ends_with_its_seconds() -> None:
    spent, rng = Budget(0.0), np.random.default_rng(0)
    known = nothing_known(SolveState(spent))
    status = Benders(LARGE).assist(known, spent, rng, Partner(lambda _: None))
    assert status is Status.TIME_LIMIT


def test_messages_wait_for_who_takes_them() -> None:
    taken: list[int] = []
    partner = Partner(lambda _: None)
    partner.pass_on(("cuts", 1))
    partner.on("cuts", taken.append)
    partner.pass_on(("cuts", 2))
    assert taken == [1, 2]


def test_a_cut_of_one_side_is_one_of_the_other() -> None:
    arrays = OfflineArrays.of(TINY)
    one, other = (Separation(CountModel(arrays)) for _ in range(2))
    hears = Partner(lambda _: None)
    other.share(hears)
    one.share(Partner(hears.pass_on))
    most = np.array([c.parallel for c in one.model.jobs], dtype=np.int64) * 50
    group = next(g for g in ("worker", "ps") if one.cut_off(g, most, range(0), Budget()))
    known = len(other.model.cuts[group])
    values = {variable.name: 0.0 for variable in other.model.problem.variables()}
    assert not other.cut(values, Budget())
    assert len(other.model.cuts[group]) == known + 1
    assert (other.model.cuts[group][-1].weights == one.model.cuts[group][-1].weights).all()


def test_parts_of_a_small_problem_have_no_replanning() -> None:
    """Whole counts are tried before any master there."""
    parts = prepared(BendersParams()).parts
    assert isinstance(parts, Parts)
    assert parts.replanning is None
