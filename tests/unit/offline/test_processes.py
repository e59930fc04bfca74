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
from typing import Any

import pytest

import oasis
from oasis import Constant
from oasis.model.errors import SolverError
from oasis.solvers import Status
from oasis.solvers.budget import Budget, Stopwatch
from offline import BendersParams, solve
from offline import processes as helper
from offline.benders import solve as benders
from offline.benders.decomposition import Decomposition
from offline.heuristics.window_search import WindowSearch
from offline.processes import Helper, Message, Partner, StateExchange
from offline.result import OfflineResult
from offline.state import Phase, SolveState

ROOT = Path(__file__).parents[3]
TINY = oasis.generate("testbed", jobs=3, worker_servers=1, ps_servers=1, horizon=4, seed=3)
# Treated as a large instance; a search beside a master is short, as the instances are tiny.
LARGE = BendersParams.from_dict({"whole_size": 0, "process_limit": 0.0, "patch_limit": 0.1})
BUSY = oasis.generate("testbed", jobs=8, worker_servers=3, ps_servers=1, seed=2)  # takes over 20 s
SECONDS = 60.0  # for a process to start on a loaded machine, and much more

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")


def idle(monkeypatch: pytest.MonkeyPatch, during: Callable[[], None] = lambda: None) -> None:
    """Let the decomposition do nothing, so that all that is learnt comes from the other process."""

    def wait(self: Decomposition, _: Any = None) -> Status:
        while not self.is_done:
            during()
            time.sleep(0.01)
        return Status.OPTIMAL if self.best.is_proven else self.budget.status

    monkeypatch.setattr(Decomposition, "run", wait)


def saying(message: object) -> str:
    """A program that reads, says a message, and waits for its end."""
    says = f"sys.stdout.buffer.write({pickle.dumps(message)!r}); sys.stdout.flush()"
    return f"import sys; sys.stdin.buffer.read1(); {says}; sys.stdin.buffer.read()"


def said_by(monkeypatch: pytest.MonkeyPatch, kind: str, content: object) -> None:
    """Let the process say this."""
    monkeypatch.setattr(helper, "CHILD", saying((kind, content)))


@pytest.mark.usefixtures("two_cores")
def test_bound_of_one_and_schedules_of_the_other_prove_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    optimum = solve(TINY, "bruteforce")
    idle(monkeypatch)
    said_by(monkeypatch, "bound", optimum.objective)
    result = solve(TINY, "benders", time_limit=SECONDS, params=LARGE, warm_start=optimum.schedules)
    assert result.status is Status.OPTIMAL
    assert (result.objective_by, result.bound_by) == (Phase.WARM_START, Phase.REPLANNING)
    assert result.upper_bound > result.objective == optimum.objective  # rounded outward


@pytest.mark.usefixtures("two_cores")
def test_a_bound_that_schedules_refute_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    optimum = solve(TINY, "bruteforce")
    idle(monkeypatch)
    said_by(monkeypatch, "bound", optimum.objective * 0.99)
    with pytest.raises(SolverError, match=r"^plans close to the schedules claims the bound"):
        solve(TINY, "benders", time_limit=SECONDS, params=LARGE, warm_start=optimum.schedules)


@pytest.mark.usefixtures("two_cores")
def test_schedules_that_break_a_constraint_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    idle(monkeypatch)
    job = TINY.jobs[0].id
    schedule = oasis.Schedule(job, [[3, 0, 1000]], [[3, 0, 1000]])
    said_by(monkeypatch, "schedules", ({job: schedule}, Phase.WINDOWS))
    with pytest.raises(SolverError, match="infeasible"):
        solve(TINY, "benders", time_limit=SECONDS, params=LARGE)


@pytest.mark.usefixtures("two_cores")
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
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    program: str,
    reason: str,
) -> None:
    failed: list[str] = []
    monkeypatch.setattr(helper, "CHILD", program)
    fail = Helper._fail
    monkeypatch.setattr(Helper, "_fail", lambda self, why: (failed.append(why), fail(self, why)))
    run = Decomposition.run

    def after(self: Decomposition, other: Any = None) -> Status:
        while not (failed or self.budget.passed):
            time.sleep(0.01)
        return run(self, other)

    monkeypatch.setattr(Decomposition, "run", after)
    result = solve(TINY, "benders", time_limit=SECONDS, params=LARGE)
    assert result.status is Status.OPTIMAL
    assert failed == [reason]
    assert result.parameters["schedule_search_failed"] == reason
    assert reason in caplog.text


@pytest.mark.usefixtures("two_cores")
def test_a_utility_that_no_file_can_have_leaves_the_decomposition_alone() -> None:
    class Own(Constant):
        """Worth the same whenever it completes, as `Constant` is."""

    own = Own(5.0)
    jobs = (replace(TINY.jobs[0], utility=own), *TINY.jobs[1:])
    result = solve(replace(TINY, jobs=jobs), "benders", time_limit=SECONDS, params=LARGE)
    assert result.status is Status.OPTIMAL
    assert "utility" in result.parameters["schedule_search_failed"]


@pytest.mark.usefixtures("two_cores")
def test_ctrl_c_leaves_the_interval_and_no_process(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    def interrupt() -> None:
        if started:
            raise KeyboardInterrupt

    idle(monkeypatch, interrupt)
    result = solve(BUSY, "benders", time_limit=SECONDS, params=LARGE)
    assert result.status is Status.INTERRUPTED
    assert 0 < result.objective <= result.upper_bound
    assert [process.returncode for process in started] == [-signal.SIGKILL]


@pytest.mark.usefixtures("two_cores")
def test_a_time_limit_ends_both(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    idle(monkeypatch)
    # The time passes once the process runs, however long a loaded machine takes to start it.
    monkeypatch.setattr(Stopwatch, "read", lambda _: 2 * SECONDS if started else 0.0)
    result = solve(BUSY, "benders", params=LARGE, time_limit=SECONDS)
    assert result.status is Status.TIME_LIMIT
    assert [process.returncode for process in started] == [-signal.SIGKILL]


@pytest.mark.usefixtures("two_cores")
def test_a_gap_that_the_other_process_reaches_ends_the_solve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    optimum = solve(TINY, "bruteforce")
    idle(monkeypatch)
    said_by(monkeypatch, "bound", optimum.objective * 1.09)
    start = optimum.schedules
    result = solve(TINY, "benders", time_limit=SECONDS, gap=0.1, params=LARGE, warm_start=start)
    assert result.status is Status.GAP_LIMIT
    assert result.gap == pytest.approx(0.09)


@pytest.mark.parametrize(("incumbent", "told"), [(99.9, []), (100.0, ["bound"])])
def test_a_bound_that_is_little_lower_is_told_if_it_is_the_proof(
    incumbent: float, told: list[str]
) -> None:
    state, said = SolveState(Budget()), list[Message]()
    state.record_solution(incumbent, {}, "somebody")
    state.record_bound(100.0, "somebody")
    known = state.schedules, 100.0005
    StateExchange(Partner(said.append), TINY, state, known, "others").report()
    assert [kind for kind, _ in said] == told


PROGRAM = """
import sys, time
import oasis
from offline import BendersParams, solve
import offline.processes
from offline.benders import solve as benders
benders.has_second_core = lambda: True
start = offline.processes._started
def noted():
    process = start()
    print(process.pid, flush=True)
    return process
offline.processes._started = noted
instance = oasis.generate("testbed", jobs=60, seed=2)
params = BendersParams.from_dict({"process_limit": 0.0})
print(solve(instance, "benders", time_limit=120.0, params=params).status, flush=True)
"""


@pytest.mark.parametrize(
    ("ending", "says"), [("SIGINT", "interrupted"), ("SIGTERM", ""), ("SIGKILL", "")]
)
def test_however_the_program_ends_its_second_process_does(ending: str, says: str) -> None:
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


def known(result: OfflineResult) -> dict[str, Any]:
    """A result without measured times."""
    return {k: v for k, v in result.to_dict().items() if k not in ("seconds", "history")}


@pytest.mark.usefixtures("two_cores")
def test_a_limit_in_work_starts_no_process_and_repeats(
    started: list[subprocess.Popen[bytes]],
) -> None:
    one, same = (solve(BUSY, "benders", work_limit=0.5, params=LARGE) for _ in range(2))
    assert known(one) == known(same)
    assert one.status is Status.WORK_LIMIT
    assert not started
    assert oasis.verify(BUSY, one) == one.objective


def test_one_core_and_workers_of_a_sweep_have_no_second_process(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert benders.has_second_core()
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    assert not benders.has_second_core()
    monkeypatch.undo()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not benders.has_second_core()
    result = solve(TINY, "benders", time_limit=SECONDS, params=LARGE)
    assert result.status is Status.OPTIMAL
    assert not started


@pytest.mark.usefixtures("two_cores")
def test_schedules_that_are_found_here_reach_the_other_process(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    """The process fails as soon as it is told of them."""
    one = dict([next(iter(solve(TINY, "bruteforce").schedules.items()))])
    hears = "pickle.load(sys.stdin.buffer); kind, (news, by) = pickle.load(sys.stdin.buffer)"
    says = "write(('error', f'told of {len(news)} by {by}'), sys.stdout.buffer)"
    child = f"import pickle, sys; from offline.processes import write; {hears}; {says}"
    monkeypatch.setattr(helper, "CHILD", child)
    monkeypatch.setattr(WindowSearch, "start", lambda *_: None)

    def find(self: Decomposition, _: Any = None) -> Status:
        while not (self.is_done or "schedule_search_failed" in self.state.notes):
            if started:
                self.state.record_solution(oasis.verify(TINY, one), one, "somebody")
            time.sleep(0.01)
        return self.budget.status

    monkeypatch.setattr(Decomposition, "run", find)
    result = solve(TINY, "benders", time_limit=SECONDS, params=LARGE, warm_start={})
    assert result.parameters["schedule_search_failed"] == "told of 1 by somebody"
    assert result.objective_by == "somebody"
