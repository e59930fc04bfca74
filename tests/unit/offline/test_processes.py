"""The second process of a solve: what the two tell each other, and how it ends."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Constant
from oasis.model.errors import SolverError
from oasis.model.instance_file import instance_to_dict
from oasis.solvers import Status
from oasis.solvers.budget import Budget, Stopwatch
from offline import BendersParams, ConfigurationParams, solve
from offline import processes as helper
from offline.benders import solve as benders
from offline.benders.decomposition import Decomposition
from offline.benders.master import CountModel
from offline.benders.subproblem import Separation
from offline.column_generation import solve as colgen
from offline.column_generation.solve import Configuration, Heuristics
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.problem import OfflineProblem
from offline.processes import Helper, Message, Partner, ProcessTask, StateExchange
from offline.result import OfflineResult
from offline.state import Phase, SolveState, warm_start_of
from offline.tasks import Child

ROOT = Path(__file__).parents[3]
TINY = oasis.generate("testbed", jobs=3, worker_servers=1, ps_servers=1, horizon=4, seed=3)
OPTIMUM = solve(TINY, "bruteforce")
BUSY = oasis.generate("testbed", jobs=8, worker_servers=3, ps_servers=1, seed=2)  # takes over 20 s
HARD = oasis.generate("testbed", jobs=14, seed=2)  # colgen does not prove it
SECONDS = 60.0  # for a process to start on a loaded machine, and much more
# Treated as a large instance; a search beside a master is short, as the instances are tiny.
LARGE = BendersParams.from_dict({"whole_size": 0, "process_limit": 0.0, "patch_limit": 0.1})
PARAMS: dict[str, Any] = {
    "benders": LARGE,
    "colgen": ConfigurationParams(process_limit=0.0, start_share=0.0, first_turn=0.1),
}
both = pytest.mark.parametrize("method", PARAMS)
pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes"),
    pytest.mark.usefixtures("two_cores"),
]


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods start a second process, whatever this machine has."""
    for method in (benders, colgen):
        monkeypatch.setattr(method, "has_second_core", lambda: True)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process that a solve starts."""
    made: list[subprocess.Popen[bytes]] = []
    start = helper._start_process

    def noted() -> subprocess.Popen[bytes]:
        made.append(start())
        return made[-1]

    monkeypatch.setattr(helper, "_start_process", noted)
    return made


def solved(method: str = "benders", instance: oasis.Instance = TINY, **given: Any) -> OfflineResult:
    return solve(instance, method, **{"time_limit": SECONDS, "params": PARAMS[method]} | given)


def idle(
    monkeypatch: pytest.MonkeyPatch, during: Callable[[SolveState], None] = lambda state: None
) -> None:
    """Let this process do nothing, so that all that is learnt comes from the other one."""

    def wait(state: SolveState) -> Status:
        while not (state.budget.passed or state.is_proven):
            during(state)
            time.sleep(0.01)
        return Status.OPTIMAL if state.is_proven else state.budget.status

    monkeypatch.setattr(Decomposition, "run", lambda run, *_: wait(run.state))
    monkeypatch.setattr(Configuration, "_bound_and_improve", lambda _, run, *__: wait(run.state))
    monkeypatch.setattr(WindowSearch, "start", lambda *_: None)


def saying(message: object) -> str:
    """A program that reads, says a message, and waits for its end."""
    says = f"sys.stdout.buffer.write({pickle.dumps(message)!r}); sys.stdout.flush()"
    return f"import sys; sys.stdin.buffer.read1(); {says}; sys.stdin.buffer.read()"


# -- what the other process finds ------------------------------------------------------------------


@both
def test_the_other_process_alone_finds_the_enumerated_optimum(method, monkeypatch, started):
    idle(monkeypatch, lambda state: state.record_bound(OPTIMUM.objective * (1 + 1e-9)))
    found = solved(method, warm_start={})
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(OPTIMUM.objective, rel=1e-9)
    assert found.objective_by in set(Phase) - {Phase.ONLINE, Phase.WARM_START}
    assert found.parameters["processes"] == 2
    assert [process.returncode in (0, -signal.SIGKILL) for process in started] == [True]


@pytest.mark.parametrize(
    ("factor", "gap", "status"), [(1.0, None, Status.OPTIMAL), (1.09, 0.1, Status.GAP_LIMIT)]
)
def test_bound_of_one_and_schedules_of_the_other_end_the_solve(monkeypatch, factor, gap, status):
    idle(monkeypatch)
    monkeypatch.setattr(helper, "CHILD", saying(("bound", OPTIMUM.objective * factor)))
    result = solved(gap=gap, warm_start=OPTIMUM.schedules)
    assert result.status is status
    assert (result.objective_by, result.bound_by) == (Phase.WARM_START, Phase.REPLANNING)
    assert result.upper_bound > result.objective == OPTIMUM.objective  # rounded outward
    assert result.gap == pytest.approx(factor - 1.0, abs=1e-8)


NAME = TINY.jobs[0].id
FALSE = {NAME: oasis.Schedule(NAME, [[3, 0, 1000]], [[3, 0, 1000]])}


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (("bound", OPTIMUM.objective * 0.99), "^plans close to the schedules claims the bound"),
        (("schedules", (FALSE, Phase.WINDOWS)), "infeasible"),
    ],
)
def test_what_is_refuted_is_no_result(monkeypatch, message, says):
    idle(monkeypatch)
    monkeypatch.setattr(helper, "CHILD", saying(message))
    with pytest.raises(SolverError, match=says):
        solved(warm_start=OPTIMUM.schedules)


@pytest.mark.parametrize(("incumbent", "told"), [(99.9, []), (100.0, ["bound"])])
def test_a_bound_that_is_little_lower_is_told_if_it_is_the_proof(incumbent, told):
    state, said = SolveState(TINY, Budget()), list[Message]()
    state.record_solution({}, "somebody", incumbent)
    state.record_bound(100.0, "somebody")
    known = state.schedules, 100.0005
    StateExchange(Partner(said.append), state, known, "others").report()
    assert [kind for kind, _ in said] == told


def test_schedules_that_are_found_here_reach_the_other_process(monkeypatch, started):
    """The process fails as soon as it is told of them."""
    one = dict([next(iter(OPTIMUM.schedules.items()))])
    hears = "pickle.load(sys.stdin.buffer); kind, (news, by) = pickle.load(sys.stdin.buffer)"
    says = "write(('error', f'told of {len(news)} by {by}'), sys.stdout.buffer)"
    child = f"import pickle, sys; from offline.processes import write; {hears}; {says}"
    monkeypatch.setattr(helper, "CHILD", child)

    def find(state: SolveState) -> None:
        if started:
            state.record_solution(one, "somebody")
        if "schedule_search_failed" in state.notes:
            state.budget.stopping.end(Status.TIME_LIMIT)

    idle(monkeypatch, find)
    result = solved(warm_start={})
    assert result.parameters["schedule_search_failed"] == "told of 1 by somebody"
    assert result.objective_by == "somebody"


def test_beside_a_search_this_process_bounds_and_takes_up_what_comes(monkeypatch):
    """It does not begin as it would alone, and mixes before each turn."""
    state, told, taken = SolveState(HARD, Budget()), list[Any](), list[Phase]()
    start = warm_start_of(None, state, needs_prices=True)

    def take(best: BestSolution, _: Budget) -> None:
        taken.append(best.state.phase)
        if len(taken) == 3:
            state.budget.stopping.end(Status.TIME_LIMIT)

    assert start.prices is not None
    rng, params = np.random.default_rng(0), PARAMS["colgen"]
    heuristics = Heuristics(OfflineProblem(start, state), params, state.budget, rng)
    monkeypatch.setattr(Heuristics, "start", None)
    monkeypatch.setattr(colgen, "take_up", take)
    beside: Any = SimpleNamespace(is_working=True, partner=Partner(told.append))
    found = Configuration(params)._bound_and_improve(heuristics, start.prices, beside)
    assert found is Status.TIME_LIMIT
    assert not told
    assert state.bound < 2 * oasis.verify(HARD, start.schedules)
    assert taken == [Phase.CUTS_IN_SLOTS, Phase.WINDOWS, Phase.WINDOWS]


# -- faults ----------------------------------------------------------------------------------------


@pytest.fixture
def failed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why processes have failed, so far."""
    found: list[str] = []
    fail = Helper._fail
    monkeypatch.setattr(Helper, "_fail", lambda self, why: (found.append(why), fail(self, why)))
    return found


def once_failed(monkeypatch: pytest.MonkeyPatch, failed: list[str], owner: Any, name: str) -> None:
    """Let this step of the solve wait until the process has failed."""
    step = getattr(owner, name)

    def after(*given: Any) -> Any:
        budget = next(each.budget for each in given if hasattr(each, "budget"))
        while not failed:
            assert not budget.passed
            time.sleep(0.01)
        return step(*given)

    monkeypatch.setattr(owner, name, after)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.stdin.buffer.read1(); sys.exit(7)", "its process ended with 7"),
        ("import os; os.kill(os.getpid(), 9)", "its process ended with -9"),
        (saying(("error", "SolverError: no")), "SolverError: no"),
        (
            f"import sys; sys.stdout.buffer.write({pickle.dumps(('bound', 1.0))[:-3]!r})",
            "expected a message: pickle data was truncated",
        ),
        (
            "import time; print(3, flush=True); time.sleep(60)",
            "expected a message: invalid load key, '3'.",
        ),
        (
            r"import time; print('cfoo\nbar\n.', flush=True); time.sleep(60)",
            "expected a message: No module named 'foo'",
        ),
        ("import sys; sys.stdin.close()", "its process ended with 0"),
    ],
)
def test_a_process_that_fails_is_reported_and_the_other_goes_on(
    monkeypatch, caplog, failed, program, reason
):
    monkeypatch.setattr(helper, "CHILD", program)
    once_failed(monkeypatch, failed, Decomposition, "run")
    result = solved()
    assert result.status is Status.OPTIMAL
    assert failed == [reason]
    assert result.parameters["schedule_search_failed"] == reason
    assert reason in caplog.text


@pytest.mark.parametrize(
    ("method", "begins", "waits", "task"),
    [
        ("benders", (Decomposition, "look_around"), (Decomposition, "run"), "schedule_search"),
        ("colgen", (Heuristics, "start"), (colgen, "cut_configuration_lp"), "heuristics"),
    ],
)
def test_a_search_that_fails_is_made_here(
    monkeypatch, started, failed, method, begins, waits, task
):
    monkeypatch.setattr(helper, "CHILD", "import sys; sys.exit(7)")
    once_failed(monkeypatch, failed, *waits)
    begun: list[float] = []

    def begin(self: Any) -> float:
        begun.append(self.best.value)
        self.state.budget.stopping.end(Status.TIME_LIMIT)
        return 0.0

    monkeypatch.setattr(*begins, begin)
    result = solved(method, HARD)
    assert result.parameters[f"{task}_failed"] == "its process ended with 7"
    assert result.status is Status.TIME_LIMIT
    assert len(started) == len(begun) == 1


def test_a_utility_that_no_file_can_have_leaves_the_decomposition_alone():
    class Own(Constant):
        """Worth the same whenever it completes, as `Constant` is."""

    jobs = (replace(TINY.jobs[0], utility=Own(5.0)), *TINY.jobs[1:])
    result = solved(instance=replace(TINY, jobs=jobs))
    assert result.status is Status.OPTIMAL
    assert "utility" in result.parameters["schedule_search_failed"]


# -- the end ---------------------------------------------------------------------------------------


def test_ctrl_c_leaves_the_interval_and_no_process(monkeypatch, started):
    def interrupt(_: SolveState) -> None:
        if started:
            raise KeyboardInterrupt

    idle(monkeypatch, interrupt)
    result = solved(instance=BUSY)
    assert result.status is Status.INTERRUPTED
    assert 0 < result.objective <= result.upper_bound
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def test_a_time_limit_ends_both(monkeypatch, started):
    idle(monkeypatch)
    # The time passes once the process runs, however long a loaded machine takes to start it.
    monkeypatch.setattr(Stopwatch, "read", lambda _: 2 * SECONDS if started else 0.0)
    assert solved(instance=BUSY).status is Status.TIME_LIMIT
    assert [process.returncode for process in started] == [-signal.SIGKILL]


PROGRAM = """
import sys, time
import oasis
from offline import BendersParams, solve
import offline.processes
from offline.benders import solve as benders
benders.has_second_core = lambda: True
start = offline.processes._start_process
def noted():
    process = start()
    print(process.pid, flush=True)
    return process
offline.processes._start_process = noted
instance = oasis.generate("testbed", jobs=60, seed=2)
params = BendersParams.from_dict({"process_limit": 0.0})
print(solve(instance, "benders", time_limit=120.0, params=params).status, flush=True)
"""


@pytest.mark.parametrize(
    ("ending", "says"), [("SIGINT", "interrupted"), ("SIGTERM", ""), ("SIGKILL", "")]
)
def test_however_the_program_ends_its_second_process_does(ending, says):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        time.sleep(0.5)
        assert is_alive(pid)
        program.send_signal(signal.Signals[ending])
        assert program.stdout.read().strip() == says
    until = time.monotonic() + 20.0
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    """Return whether this process exists and has not ended."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(state) and not state.startswith("Z")


# -- where there is none ---------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("params", "limit"),
    [
        ({"second_process": False}, {}),
        ({"process_limit": 2 * SECONDS}, {}),
        ({}, {"work_limit": 0.01, "time_limit": ...}),
    ],
)
def test_no_second_process(method, monkeypatch, started, params, limit):
    idle(monkeypatch, lambda state: state.budget.stopping.end(Status.TIME_LIMIT))
    solved(method)
    assert len(started) == 1
    result = solved(method, params=PARAMS[method].to_dict() | params, **limit)
    assert len(started) == 1
    assert "processes" not in result.parameters


def test_one_core_and_workers_of_a_sweep_have_no_second_process(monkeypatch, started):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert helper.has_second_core()
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    assert not helper.has_second_core()
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not helper.has_second_core()
    monkeypatch.setattr(benders, "has_second_core", helper.has_second_core)
    assert solved().status is Status.OPTIMAL
    assert not started


def test_a_limit_in_work_starts_no_process_and_repeats(started):
    results = [solved(instance=BUSY, work_limit=0.5, time_limit=...).to_dict() for _ in range(2)]
    one, same = ({**each, "seconds": 0.0, "history": []} for each in results)
    assert one == same
    assert one["status"] == "work_limit"
    assert not started


# -- the other end ---------------------------------------------------------------------------------


def task(method: str, bound: float) -> ProcessTask:
    """The task as the process has it, without schedules to start from."""
    free = np.zeros((TINY.horizon, 1, len(TINY.cluster.resources)))
    known: Any = {"instance": instance_to_dict(TINY), "bound": bound, "seconds": SECONDS}
    name, prices = (
        ("schedule search", (free, free)) if method == "benders" else ("heuristics", None)
    )
    return ProcessTask(name, Phase.REPLANNING, PARAMS[method], 0, prices, **known)


@both
def test_the_process_tells_of_schedules_until_they_meet_the_bound(method):
    said: list[Message] = []
    child = Child(task(method, 1e6), said.append)
    child.partner.inbox.put(("bound", OPTIMUM.objective * (1 + 1e-9)))
    child.run()
    assert said[-1] == ("status", "optimal")
    told = [content for kind, content in said if kind == "schedules"]
    assert told
    assert all(by in set(Phase) for _, by in told)
    assert child.state.incumbent == pytest.approx(OPTIMUM.objective)


def test_schedules_that_refute_a_bound_are_told_before_the_error():
    said: list[Message] = []
    Child(task("benders", 0.6 * OPTIMUM.objective), said.append).run()
    assert [kind for kind, _ in said] == ["schedules", "error"]


def test_messages_wait_for_who_takes_them():
    taken: list[int] = []
    partner = Partner(lambda _: None)
    partner.pass_on(("cuts", 1))
    partner.on("cuts", taken.append)
    partner.pass_on(("cuts", 2))
    assert taken == [1, 2]


def test_a_cut_of_one_side_is_one_of_the_other():
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
