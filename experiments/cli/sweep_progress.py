"""A sweep on standard error: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from experiments.cli.console import BAR_WIDTH, note, stderr, text_column
from experiments.cli.progress import LOG_SHARE

if TYPE_CHECKING:
    from experiments.sweep import SweepProgress

LOG_SECONDS = 10.0  # before the first line off a terminal, and between two at least

Show = Callable[["SweepProgress"], None]


@contextmanager
def sweep_progress() -> Iterator[Show]:
    """Callback that shows how many cells are done."""
    console = stderr()
    if console.is_terminal:
        with _bar(console) as show:
            yield show
    else:
        yield _log()


def describe(progress: SweepProgress, elapsed: float) -> str:
    """One line: elapsed time, cells done, failed, and shared ones such as offline solves.

    Examples
    --------
    >>> from experiments.sweep import SweepProgress
    >>> describe(SweepProgress(total=24, done=6, failed=1), 12.34)
    '   12.3 s  6 of 24 cells, 1 failed'
    """
    shared = ""
    if progress.shared_done < progress.shared_total:
        shared = f"{progress.shared_done} of {progress.shared_total} shared solves, "
    failed = f", {progress.failed} failed" if progress.failed else ""
    return f"{elapsed:7.1f} s  {shared}{progress.done} of {progress.total} cells{failed}"


@contextmanager
def _bar(console: Console) -> Iterator[Show]:
    columns = (
        text_column("cells"),
        BarColumn(BAR_WIDTH),
        MofNCompleteColumn(),
        text_column("{task.fields[failed]} failed"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = None

        def show(progress: SweepProgress) -> None:
            nonlocal task
            total = progress.total + progress.shared_total
            done = progress.done + progress.shared_done
            if task is None:  # what was kept says nothing about the speed
                task = bar.add_task("", total=total, completed=done, failed=0)
            bar.update(task, completed=done, failed=progress.failed)

        yield show


def _log() -> Show:
    """Write a line as cells are done, the rarer the longer it takes."""
    begin = monotonic()
    due = LOG_SECONDS

    def show(progress: SweepProgress) -> None:
        nonlocal due
        elapsed = monotonic() - begin
        if elapsed >= due and progress.done < progress.total:
            note(describe(progress, elapsed))
            due = elapsed + max(LOG_SECONDS, LOG_SHARE * elapsed)

    return show
