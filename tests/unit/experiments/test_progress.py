"""Progress of a solve or a sweep on a terminal and in a log, and its answer to Ctrl-C."""

from __future__ import annotations

import asyncio
import io
import math
import os
import re
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments.cli import progress
from experiments.cli.commands.sweep import counted, saying_what_is_kept, sweep_progress
from experiments.cli.exit_codes import InterruptedWorkError
from experiments.cli.progress import counter, describe, solver_progress
from experiments.sweep.executors import Dask, Here
from experiments.sweep.run import SweepProgress, run_sweep
from experiments.sweep.store import ResultStore
from oasis.model.errors import OasisError
from oasis.solvers import SolveProgress
from tests.sweeping import small

ROOT = Path(__file__).parents[3]


def news(incumbent: float | None, bound: float, phase: str = "compact MILP") -> SolveProgress:
    gap = math.inf if incumbent is None else (bound - incumbent) / incumbent
    return SolveProgress(0.0, incumbent, bound, gap, phase)


def test_line_has_phase_incumbent_bound_and_gap():
    line = describe(news(400.0, 410.0))
    assert line == "compact MILP: incumbent 400, bound 410, gap 2.5%"
    assert "incumbent -, bound -, gap -" in describe(news(None, math.inf))


@pytest.fixture
def hasty(monkeypatch):
    """A second takes a fiftieth of one."""
    for name in ("PATIENCE_SECONDS", "LOG_SECONDS"):
        monkeypatch.setattr(progress, name, getattr(progress, name) / 50)


@pytest.mark.usefixtures("hasty")
def test_elsewhere_a_line_comes_only_when_something_has_changed(capsys):
    pause = threading.Event()
    with solver_progress(lambda: None) as show:
        for state in (news(1.0, 9.0), news(1.0, 9.0), news(2.0, 9.0), news(2.0, 9.0, "heuristics")):
            show(state)
            pause.wait(0.15)
    written = capsys.readouterr().err.splitlines()
    assert len(written) == 3
    assert ["incumbent 1," in written[0], "incumbent 2," in written[1]] == [True, True]
    assert "heuristics" in written[2]


def test_quick_work_says_nothing(capsys, monkeypatch):
    terminal = io.StringIO()
    screen = Console(file=terminal, force_terminal=True)
    for console in (Console(stderr=True), screen):
        monkeypatch.setattr(progress, "stderr", partial(lambda shown: shown, console))
        with solver_progress(lambda: None) as show, counter("cells", total=3) as advance:
            show(news(1.0, 2.0))
            advance()
    assert capsys.readouterr() == ("", "")
    assert "cells" not in terminal.getvalue()
    assert "incumbent" not in terminal.getvalue()
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    with counter("cells", total=4) as advance:
        advance("of a sweep")
    assert "cells of a sweep" in terminal.getvalue()
    assert " 25%" in terminal.getvalue()


@pytest.mark.usefixtures("hasty")
def test_reader_of_standard_error_that_has_gone_is_no_error(monkeypatch):
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    with solver_progress(lambda: None) as show:
        for bound in (3.0, 2.0):
            show(news(1.0, bound))
            threading.Event().wait(0.1)


def on_a_terminal(script: str) -> tuple[int, str, str]:
    """Run a script whose standard error is a terminal; its code, output, and what was shown."""
    pty = pytest.importorskip("pty", reason="POSIX terminals")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script],
        stderr=theirs,
        stdout=subprocess.PIPE,
        env=environment,
        check=False,
        text=True,
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(ours, 65536):
            shown += chunk
    os.close(ours)
    return done.returncode, done.stdout, shown.decode()


# Of each script: what is known of a solve, by the names that they use.
BEGIN = """
import logging, os, signal, time
from experiments.cli import progress
from experiments.cli.console import logging_to_stderr
from experiments.cli.interrupt import CtrlC
from oasis.solvers import SolveProgress
progress.PATIENCE_SECONDS = 0.1
def state(k):
    return SolveProgress(0.0, 400.0 + k, 410.0, 0.025, "compact MILP")
"""


LIVING = """
with progress.solver_progress(lambda: None) as show:
    show(state(0))
    time.sleep(1.2)
print("the result")
"""


def test_on_a_terminal_one_line_lives_and_is_gone_at_the_end():
    code, out, text = on_a_terminal(LIVING)
    assert (code, out) == (0, "the result\n")
    assert "compact MILP: incumbent 400, bound 410, gap 2.5%" in text
    elapsed = {part.split(" s ")[0].split()[-1] for part in text.split("compact MILP")[:-1]}
    assert len(elapsed) > 1  # the clock runs on without news
    assert text.rstrip().endswith("\x1b[2K")  # erased
    assert "\x1b[?25h" in text  # and the cursor is back


STOPPED = """
with CtrlC() as ctrl_c, progress.solver_progress(ctrl_c.check) as show:
    show(state(0))
    for _ in range({times}):
        time.sleep(0.8)
        os.kill(os.getpid(), signal.SIGINT)
print("the result")
"""


def test_on_a_terminal_what_ctrl_c_says_has_a_line_of_its_own():
    code, out, text = on_a_terminal(STOPPED.format(times=1))
    assert (code, out) == (0, "the result\n")
    before, notice, _ = text.partition("oasis: stopping with what is known so far")
    assert notice
    assert "gap 2.5%" in before
    assert before.endswith("\r\x1b[2K")
    code, out, text = on_a_terminal(STOPPED.format(times=2))
    assert (code, out) == (130, "")
    assert text.endswith("\r\x1b[2K\x1b[?25h"), "an empty line and the cursor"


def screen_of(shown: str) -> list[str]:
    """What is left on an endless terminal: rows after all movements of the cursor."""
    rows, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|.", shown, re.DOTALL):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            rows += [""] * (row + 1 - len(rows))
        elif part == "\x1b[2K":
            rows[row] = ""
        elif part.endswith("A") and part.startswith("\x1b["):
            row -= int(part[2:-1] or 1)
        elif not part.startswith("\x1b"):
            whole = rows[row].ljust(column)
            rows[row] = whole[:column] + part + whole[column + 1 :]
            column += 1
    return [text.rstrip() for text in rows]


VERBOSE = """
log = logging.getLogger("offline.solve")
with logging_to_stderr(), progress.solver_progress(lambda: None) as show:
    for k in range(5):
        show(state(k))
        time.sleep(0.5)
        log.info("schedule %d is the best by now", k)
        log.info("and a line that is longer than the terminal is wide, %s", "x" * 70)
"""


def test_on_a_terminal_what_is_logged_stays_above_the_live_line():
    code, _, text = on_a_terminal(VERBOSE)
    assert code == 0
    assert text.count("compact MILP: incumbent") > 5
    said = [line[11:] for line in screen_of(text) if line]
    long = f"offline.solve: and a line that is longer than the terminal is wide, {'x' * 70}"
    assert said == [
        line for k in range(5) for line in (f"offline.solve: schedule {k} is the best by now", long)
    ]


def test_off_a_terminal_lines_come_late_and_seldom(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    with sweep_progress() as show:
        for done in range(41):  # a cell a second
            show(SweepProgress(total=40, done=done))
            now += 1.0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("s  ")[1] for line in lines] == [
        f"{done} of 40 cells" for done in (10, 20, 30)
    ]


def test_an_address_that_is_none_is_told_in_a_notebook_too():
    def connect() -> None:
        expected = r"^scheduler: expected a Dask scheduler at foo://x:1: unknown address scheme"
        with pytest.raises(OasisError, match=expected):
            list(Dask("foo://x:1", 1.0).run([]))

    async def cell() -> None:
        connect()

    connect()
    asyncio.run(cell())


def test_an_interrupted_sweep_counts_the_record_that_it_had_just_written(tmp_path, monkeypatch):
    """Ctrl-C may come when a record is written and nobody has been told of it yet."""

    save = ResultStore.save
    saved: list[Any] = []
    told: list[SweepProgress] = []

    def save_then_stop(store: ResultStore, *given: Any) -> None:
        save(store, *given)
        saved.append(given)
        if len(saved) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(ResultStore, "save", save_then_stop)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(small(), tmp_path / "small.parquet", executor=Here(), on_progress=told.append)
    assert len(list(ResultStore.beside(tmp_path / "small.parquet").directory.glob("*.json"))) == 3
    assert told[-1].done == 3


SILENCED = """
import logging
from experiments.cli.commands.sweep import Workers, engine_of
engine_of(Workers(engine="dask", scheduler="tcp://h:1"))
import distributed
print(logging.getLogger("distributed.client").isEnabledFor(logging.CRITICAL))
"""


def test_importing_dask_does_not_make_it_talk_again():
    """What its client logs of a scheduler that dies would stand beside the one line."""
    command = [sys.executable, "-c", SILENCED]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


STARTED = """
import signal
import joblib
from experiments.sweep.executors import ENDINGS, _signals_held
def held():
    return set(ENDINGS) <= signal.pthread_sigmask(signal.SIG_BLOCK, [])
if __name__ == "__main__":
    with _signals_held():
        found = joblib.Parallel(n_jobs=2, return_as="generator")([joblib.delayed(held)()] * 2)
    print(list(found), held())
"""


def test_ctrl_c_never_reaches_processes_that_start(tmp_path):
    """They would print a traceback of their imports beside the one line of the command."""
    script = tmp_path / "started.py"
    script.write_text(STARTED)
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert found.stdout == "[True, True] False\n"


@pytest.mark.parametrize("line", ["sweep grid.toml", "figure fig3"])
def test_ctrl_c_while_a_sweep_starts_says_once_what_is_kept(line, call, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in ("experiments.sweep.read_config", "experiments.figures.figure.run_sweep"):
        monkeypatch.setattr(name, stop)
    kept = "what was recorded before is kept, the same command goes on from there"
    assert call(line) == (130, "", f"oasis: interrupted; {kept}\n")


def test_an_interruption_counts_shared_solves_as_the_bar_does():
    reached = SweepProgress(total=12, done=1, failed=1, shared_total=4, shared_done=3)
    assert counted(reached) == "3 of 4 shared solves, 1 of 12 cells, 1 failed"
    said = "interrupted; 3 of 4 shared solves, 1 of 12 cells are recorded, the same command"
    kept = saying_what_is_kept()
    kept.__enter__().append(reached)
    with pytest.raises(InterruptedWorkError, match=f"^{said}"):
        kept.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
