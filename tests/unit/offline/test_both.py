"""The decomposition and the compact model together: what a second process adds, and its end."""

from __future__ import annotations

import json
import multiprocessing
import os
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
from oasis.solvers.budget import Budget
from offline import BothParams, both, solve, solve_benders, solve_both, solve_brute_force
from offline import processes as helper
from offline.benders.solve import Benders
from offline.both import BothParams as Params
from offline.problem import OfflineProblem
from offline.processes import Helper, plain
from offline.result import OfflineResult
from offline.state import Phase
from offline.tasks import Child

ROOT = Path(__file__).parents[3]
TINY = oasis.generate("testbed", jobs=3, worker_servers=1, ps_servers=1, horizon=4, seed=3)
HARD = oasis.generate("testbed", jobs=60, seed=2)  # a gap of 9 % after 20 s
BUSY = oasis.generate("testbed", jobs=8, worker_servers=3, ps_servers=1, seed=2)  # nor that one
AT_ONCE = BothParams(head_start=0.0)
SECONDS = 60.0  # for a process to start on a loaded machine, and much more

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")


def idle(monkeypatch: pytest.MonkeyPatch, during: Callable[[], None] = lambda: None) -> None:
    """Let the decomposition do nothing, so that all that is learnt comes from the other process."""

    def wait(_: Benders, __: OfflineProblem, stop: Budget, ___: Any) -> Status:
        while not stop.passed:
            during()
            time.sleep(0.01)
        return stop.status

    monkeypatch.setattr(Benders, "solve", wait)


def said_by(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Let the process read the problem, say these lines, and wait for its end."""
    says = "".join(f"print({line!r}, flush=True);" for line in lines)
    program = f"import sys; sys.stdin.readline(); {says} sys.stdin.read()"
    monkeypatch.setattr(helper, "CHILD", program)


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("seed", [1, 3, 5])
def test_the_other_process_alone_proves_the_enumerated_optimum(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]], seed: int
) -> None:
    sizes = {"jobs": 3, "worker_servers": 1, "ps_servers": 1, "horizon": 4}
    instance = oasis.generate("testbed", **sizes, seed=seed)
    optimum = solve_brute_force(instance).objective
    idle(monkeypatch)
    result = solve_both(instance, time_limit=SECONDS, params=AT_ONCE, warm_start={})
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-9)
    assert optimum <= result.upper_bound <= optimum * (1 + 1e-6)
    assert result.objective_by == result.bound_by == Phase.COMPACT
    assert result.parameters["processes"] == 2
    assert [process.returncode in (0, -signal.SIGKILL) for process in started] == [True]


@pytest.mark.usefixtures("two_cores")
def test_bound_of_one_and_schedules_of_the_other_prove_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    optimum = solve_brute_force(TINY)
    idle(monkeypatch)
    said_by(monkeypatch, f'{{"bound": {optimum.objective!r}}}')
    result = solve_both(TINY, time_limit=SECONDS, params=AT_ONCE, warm_start=optimum.schedules)
    assert result.status is Status.OPTIMAL
    assert (result.objective_by, result.bound_by) == (Phase.WARM_START, Phase.COMPACT)
    assert result.upper_bound > result.objective == optimum.objective  # rounded outward


@pytest.mark.usefixtures("two_cores")
def test_a_bound_that_schedules_refute_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    optimum = solve_brute_force(TINY)
    idle(monkeypatch)
    said_by(monkeypatch, f'{{"bound": {optimum.objective * 0.99!r}}}')
    with pytest.raises(SolverError, match=r"^compact MILP claims the bound"):
        solve_both(TINY, time_limit=SECONDS, params=AT_ONCE, warm_start=optimum.schedules)


@pytest.mark.usefixtures("two_cores")
def test_schedules_that_break_a_constraint_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    idle(monkeypatch)
    job = TINY.jobs[0].id
    schedule = f'{{"job_id": "{job}", "workers": [[3, 0, 1000]], "ps": [[3, 0, 1000]]}}'
    said_by(monkeypatch, f'{{"schedules": [{schedule}]}}')
    with pytest.raises(SolverError, match="infeasible"):
        solve_both(TINY, time_limit=SECONDS, params=AT_ONCE)


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.stdin.readline(); sys.exit(7)", "its process ended with 7"),
        ("import os; os.kill(os.getpid(), 9)", "its process ended with -9"),
        ('print(\'{"error": "SolverError: no"}\', flush=True)', "SolverError: no"),
        ("import sys; sys.stdout.write('{\"bou')", "its process ended with 0"),
        ("print('{\"bou', flush=True)", "expected a message, got '{\"bou\\n'"),
        ("import time; print(3, flush=True); time.sleep(60)", "expected a message, got '3\\n'"),
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
    run = Benders.solve

    def after(self: Benders, problem: OfflineProblem, stop: Budget, rng: Any) -> Status:
        while not (failed or stop.passed):
            time.sleep(0.01)
        return run(self, problem, stop, rng)

    monkeypatch.setattr(Benders, "solve", after)
    result = solve_both(TINY, time_limit=SECONDS, params=AT_ONCE)
    assert result.status is Status.OPTIMAL
    assert failed == [reason]
    assert result.parameters["compact_model_failed"] == reason
    assert reason in caplog.text


@pytest.mark.usefixtures("two_cores")
def test_a_utility_that_no_file_can_have_leaves_the_decomposition_alone() -> None:
    class Own(Constant):
        """Worth the same whenever it completes, as `Constant` is."""

    own = Own(5.0)
    jobs = (replace(TINY.jobs[0], utility=own), *TINY.jobs[1:])
    result = solve_both(replace(TINY, jobs=jobs), time_limit=SECONDS, params=AT_ONCE)
    assert result.status is Status.OPTIMAL
    assert "utility" in result.parameters["compact_model_failed"]


@pytest.mark.usefixtures("two_cores")
def test_ctrl_c_leaves_the_interval_and_no_process(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]]
) -> None:
    def interrupt() -> None:
        if started:
            raise KeyboardInterrupt

    idle(monkeypatch, interrupt)
    result = solve_both(HARD, time_limit=SECONDS, params=AT_ONCE)
    assert result.status is Status.INTERRUPTED
    assert 0 < result.objective <= result.upper_bound
    assert [process.returncode for process in started] == [-signal.SIGKILL]


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize(
    ("criteria", "status"),
    [
        ({"time_limit": 1.0}, Status.TIME_LIMIT),
        ({"time_limit": None, "no_improvement": 0.5}, Status.NO_IMPROVEMENT),
    ],
)
def test_limits_and_criteria_end_both(
    monkeypatch: pytest.MonkeyPatch,
    started: list[subprocess.Popen[str]],
    criteria: dict[str, Any],
    status: Status,
) -> None:
    idle(monkeypatch)
    result = solve_both(HARD, params=AT_ONCE, **criteria)
    assert result.status is status
    assert [process.returncode for process in started] == [-signal.SIGKILL]


@pytest.mark.usefixtures("two_cores")
def test_a_gap_that_the_other_process_reaches_ends_the_solve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    optimum = solve_brute_force(TINY)
    idle(monkeypatch)
    said_by(monkeypatch, f'{{"bound": {optimum.objective * 1.09!r}}}')
    start = optimum.schedules
    result = solve_both(TINY, time_limit=SECONDS, gap=0.1, params=AT_ONCE, warm_start=start)
    assert result.status is Status.GAP_LIMIT
    assert result.gap == pytest.approx(0.09)


PROGRAM = """
import sys, time
import oasis
from offline import BothParams, solve_both
import offline.both, offline.processes
offline.both.has_second_core = lambda: True
start = offline.processes._started
def noted():
    process = start()
    print(process.pid, flush=True)
    return process
offline.processes._started = noted
instance = oasis.generate("testbed", jobs=60, seed=2)
print(solve_both(instance, time_limit=120.0, params=BothParams(head_start=0.0)).status, flush=True)
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
    """Whether there is such a process that has not ended."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(state) and not state.startswith("Z")


def known(result: OfflineResult) -> dict[str, Any]:
    """A result without measured times."""
    return {k: v for k, v in result.to_dict().items() if k not in ("seconds", "history")}


@pytest.mark.usefixtures("two_cores")
def test_a_limit_in_work_starts_no_process_and_repeats(
    started: list[subprocess.Popen[str]],
) -> None:
    params = BothParams(head_start=0.0, first_share=0.3)
    one, same = (solve_both(BUSY, work_limit=0.2, params=params) for _ in range(2))
    assert known(one) == known(same)
    assert one.status is Status.WORK_LIMIT
    assert not started
    assert oasis.verify(BUSY, one) == one.objective


def test_the_two_in_turn_are_the_one_and_then_the_other() -> None:
    only_second = solve_both(TINY, work_limit=60.0, params=BothParams(first_share=0.0))
    assert only_second.bound_by == Phase.COMPACT
    only_first = solve_both(BUSY, work_limit=0.1, params=BothParams(first_share=1.0))
    alone = solve_benders(BUSY, work_limit=0.1)
    assert only_first.objective == alone.objective
    assert only_first.upper_bound == alone.upper_bound
    optimum = solve_brute_force(TINY).objective
    assert only_second.objective == pytest.approx(optimum, rel=1e-9)


def test_one_core_and_workers_of_a_sweep_have_no_second_process(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert both.has_second_core()
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    assert not both.has_second_core()
    monkeypatch.undo()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not both.has_second_core()
    result = solve_both(TINY, time_limit=SECONDS, params=Params(head_start=0.0))
    assert result.status is Status.OPTIMAL
    assert not started


def test_auto_runs_both_where_neither_is_best() -> None:
    result = solve(HARD, time_limit=0.0)
    assert result.method == "both"
    assert "processes" not in result.parameters


def test_the_process_says_what_it_learns(capsys: pytest.CaptureFixture[str]) -> None:
    start = solve_benders(TINY, work_limit=0.0)
    problem = {
        "task": "compact model",
        "instance": oasis.model.instance_file.instance_to_dict(TINY),
        "schedules": plain(start.schedules),
        "params": {},
        "seed": 0,
    }
    Child(problem).run()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == '{"status": "optimal"}'
    assert any(line.startswith('{"bound": ') for line in lines)


@pytest.mark.usefixtures("two_cores")
def test_schedules_that_are_found_here_reach_the_other_process(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]]
) -> None:
    optimum = solve_brute_force(TINY)
    monkeypatch.setattr(
        helper,
        "CHILD",
        "import json, sys; sys.stdin.readline(); news = json.loads(sys.stdin.readline());"
        f" known = len(news['schedules']) == {len(optimum.schedules)};"
        f" print(json.dumps({{'bound': {optimum.objective!r} if known else 1e9}}), flush=True);"
        " sys.stdin.read()",
    )

    def find(_: Benders, problem: OfflineProblem, stop: Budget, __: Any) -> Status:
        while not stop.passed:
            if started:
                problem.state.found(optimum.objective, optimum.schedules, "somebody")
            time.sleep(0.01)
        return stop.status

    monkeypatch.setattr(Benders, "solve", find)
    result = solve_both(TINY, time_limit=SECONDS, params=AT_ONCE, warm_start={})
    assert result.status is Status.OPTIMAL
    assert (result.objective_by, result.bound_by) == ("somebody", Phase.COMPACT)


def test_the_process_takes_up_what_it_is_told_and_does_not_tell_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    optimum = solve_brute_force(TINY)
    problem = {
        "task": "compact model",
        "instance": oasis.model.instance_file.instance_to_dict(TINY),
        "schedules": [],
        "params": {},
        "seed": 0,
    }
    child = Child(problem)
    child.news.put(json.dumps({"schedules": plain(optimum.schedules)}))
    child.run()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == '{"status": "optimal"}'
    assert not any(line.startswith('{"schedules": ') for line in lines)
    assert child.state.incumbent == pytest.approx(optimum.objective)
