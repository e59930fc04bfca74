"""Progress of a sweep in a log, and its answer to SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import progress as shown
from experiments.cli.commands.sweep import describe, sweep_progress
from experiments.cli.interrupt import sigterm_as_ctrl_c
from experiments.cli.main import main
from experiments.cli.sweep_report import interrupted
from experiments.sweep.executors import Dask, Here
from experiments.sweep.run import SweepProgress, run_sweep
from experiments.sweep.store import ResultStore
from oasis.model.errors import OasisError
from tests.sweeping import small

ROOT = Path(__file__).parents[3]


def test_off_a_terminal_lines_come_late_and_seldom(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(shown, "monotonic", lambda: now)
    with sweep_progress() as show:
        for done in range(41):  # a cell a second
            show(SweepProgress(total=40, done=done))
            now += 1.0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("s  ")[1] for line in lines] == [
        f"{done} of 40 cells" for done in (10, 20, 30)
    ]


def test_sigterm_is_taken_for_ctrl_c_inside_only() -> None:
    former = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), sigterm_as_ctrl_c():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == former


def test_an_address_that_is_none_is_told_in_a_notebook_too() -> None:
    def connect() -> None:
        expected = r"^scheduler: expected a Dask scheduler at foo://x:1: unknown address scheme"
        with pytest.raises(OasisError, match=expected):
            list(Dask("foo://x:1", 1.0).run([]))

    async def cell() -> None:
        connect()

    connect()
    asyncio.run(cell())


def test_an_interrupted_sweep_counts_the_record_that_it_had_just_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_importing_dask_does_not_make_it_talk_again() -> None:
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


def test_ctrl_c_never_reaches_processes_that_start(tmp_path: Path) -> None:
    """They would print a traceback of their imports beside the one line of the command."""
    script = tmp_path / "started.py"
    script.write_text(STARTED)
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert found.stdout == "[True, True] False\n"


@pytest.mark.parametrize("words", ["sweep grid.toml", "figure fig3"])
def test_ctrl_c_while_a_sweep_starts_says_once_what_is_kept(
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    for name in ("experiments.sweep.read_config", "experiments.figures.figure.run_sweep"):
        monkeypatch.setattr(name, stop)
    with pytest.raises(SystemExit, match=r"^130$"):
        main(words.split())
    kept = "what was recorded before is kept, the same command goes on from there"
    assert capsys.readouterr() == ("", f"oasis: interrupted; {kept}\n")


def test_an_interruption_counts_shared_solves_as_the_bar_does() -> None:
    reached = SweepProgress(total=12, done=1, failed=1, shared_total=4, shared_done=3)
    line = "   12.3 s  3 of 4 shared solves, 1 of 12 cells, 1 failed"
    assert describe(reached, 12.34) == line
    said = "interrupted; 3 of 4 shared solves, 1 of 12 cells are recorded, the same command"
    assert str(interrupted(reached)).startswith(said)
