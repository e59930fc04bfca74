"""Progress of a solve while it runs: on a terminal, and in a log."""

from __future__ import annotations

import io
import math
import os
import re
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from experiments.cli import progress
from experiments.cli.progress import counter, describe, solver_progress
from oasis.solvers import SolveProgress

ROOT = Path(__file__).parents[3]


def news(incumbent: float | None, bound: float, phase: str = "compact MILP") -> SolveProgress:
    gap = math.inf if incumbent is None else (bound - incumbent) / incumbent
    return SolveProgress(0.0, incumbent, bound, gap, phase)


def nothing() -> None:
    """No Ctrl-C."""


def test_line_has_phase_incumbent_bound_and_gap() -> None:
    line = describe(news(400.0, 410.0))
    assert line == "compact MILP: incumbent 400, bound 410, gap 2.5%"
    assert "incumbent -, bound -, gap -" in describe(news(None, math.inf))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second takes a fiftieth of one."""
    for name in ("PATIENCE_SECONDS", "LOG_SECONDS"):
        monkeypatch.setattr(progress, name, getattr(progress, name) / 50)


@pytest.mark.usefixtures("hasty")
def test_elsewhere_a_line_comes_only_when_something_has_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pause = threading.Event()
    with solver_progress(nothing) as show:
        for state in (news(1.0, 9.0), news(1.0, 9.0), news(2.0, 9.0), news(2.0, 9.0, "heuristics")):
            show(state)
            pause.wait(0.15)
    written = capsys.readouterr().err.splitlines()
    assert len(written) == 3
    assert ["incumbent 1," in written[0], "incumbent 2," in written[1]] == [True, True]
    assert "heuristics" in written[2]


def test_quick_work_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    screen = Console(file=terminal, force_terminal=True)
    for console in (Console(stderr=True), screen):
        monkeypatch.setattr(progress, "stderr", partial(lambda shown: shown, console))
        with solver_progress(nothing) as show, counter("cells", total=3) as advance:
            show(news(1.0, 2.0))
            advance()
    assert capsys.readouterr() == ("", "")
    assert "cells" not in terminal.getvalue()
    assert "incumbent" not in terminal.getvalue()


def test_what_check_raises_ends_the_solve() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), solver_progress(stop) as show:
        show(news(1.0, 2.0))


@pytest.mark.usefixtures("hasty")
def test_reader_of_standard_error_that_has_gone_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    with solver_progress(nothing) as show:
        for bound in (3.0, 2.0):
            show(news(1.0, bound))
            threading.Event().wait(0.1)


def on_a_terminal(script: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a script whose standard error is a terminal; the process, and what was shown there."""
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        stderr=theirs,
        stdout=subprocess.PIPE,
        env=environment,
        check=False,
        text=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass  # how Linux says that the other end is closed
    os.close(ours)
    return done, shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX terminals")
def test_on_a_terminal_one_line_lives_and_is_gone_at_the_end() -> None:
    script = (
        "import time\n"
        "from experiments.cli import progress\n"
        "from oasis.solvers import SolveProgress\n"
        "progress.PATIENCE_SECONDS = 0.2\n"
        "with progress.solver_progress(lambda: None) as show:\n"
        "    show(SolveProgress(0.0, 400.0, 410.0, 0.025, 'compact MILP'))\n"
        "    time.sleep(1.2)\n"
        "print('the result')\n"
    )
    done, text = on_a_terminal(script)
    assert done.returncode == 0
    assert done.stdout == "the result\n"
    assert "compact MILP: incumbent 400, bound 410, gap 2.5%" in text
    elapsed = {part.split(" s ")[0].split()[-1] for part in text.split("compact MILP")[:-1]}
    assert len(elapsed) > 1  # the clock runs on without news
    assert text.rstrip().endswith("\x1b[2K")  # erased
    assert "\x1b[?25h" in text  # and the cursor is back


# Ctrl-C once, or twice, while the live line is shown.
STOPPED = """
import os, signal, time
from experiments.cli import progress
from experiments.cli.interrupt import CtrlC
from oasis.solvers import SolveProgress
progress.PATIENCE_SECONDS = 0.1
with CtrlC() as ctrl_c, progress.solver_progress(ctrl_c.check) as show:
    show(SolveProgress(0.0, 400.0, 410.0, 0.025, "compact MILP"))
    for _ in range({times}):
        time.sleep(0.8)
        os.kill(os.getpid(), signal.SIGINT)
print("the result")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX terminals")
def test_on_a_terminal_what_ctrl_c_says_has_a_line_of_its_own() -> None:
    done, text = on_a_terminal(STOPPED.format(times=1))
    assert (done.returncode, done.stdout) == (0, "the result\n")
    before, notice, _ = text.partition("oasis: stopping with what is known so far")
    assert notice
    assert "gap 2.5%" in before
    assert before.endswith("\r\x1b[2K")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX terminals")
def test_on_a_terminal_a_second_ctrl_c_leaves_an_empty_line_and_the_cursor() -> None:
    done, text = on_a_terminal(STOPPED.format(times=2))
    assert (done.returncode, done.stdout) == (130, "")
    assert text.endswith("\r\x1b[2K\x1b[?25h")


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
import logging, time
from experiments.cli import progress
from experiments.cli.console import logging_to_stderr
from oasis.solvers import SolveProgress
progress.PATIENCE_SECONDS = 0.1
log = logging.getLogger("offline.solve")
with logging_to_stderr(), progress.solver_progress(lambda: None) as show:
    for k in range(5):
        show(SolveProgress(0.0, 400.0 + k, 410.0, 0.025, "compact MILP"))
        time.sleep(0.5)
        log.info("schedule %d is the best by now", k)
        log.info("and a line that is longer than the terminal is wide, %s", "x" * 70)
print("the result")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX terminals")
def test_on_a_terminal_what_is_logged_stays_above_the_live_line() -> None:
    done, text = on_a_terminal(VERBOSE)
    assert (done.returncode, done.stdout) == (0, "the result\n")
    assert text.count("compact MILP: incumbent") > 5
    said = [line[11:] for line in screen_of(text) if line]
    long = f"offline.solve: and a line that is longer than the terminal is wide, {'x' * 70}"
    assert said == [
        line for k in range(5) for line in (f"offline.solve: schedule {k} is the best by now", long)
    ]
