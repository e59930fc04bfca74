"""Progress of long work on standard error: a live line on a terminal, log lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from experiments.cli.console import note, number, percent, stderr
from oasis.solvers import SolveProgress

# A display that only flashes up is in the way, so quick work shows none.
PATIENCE_SECONDS = 2.0
LOG_SECONDS = 1.0  # between two lines of a log about a solve, at least,
# In a solve of an hour that is a line every 72 seconds.
LOG_SHARE = 0.02  # and this much of the time passed
STEP_SECONDS = 10.0  # the same of many steps, which take longer than one solve
STEPS = 200  # of a bar, at most about
CLOCK = "{task.elapsed:7.1f} s  "
Show = Callable[..., None]  # of a text, and of how many steps are done of how many


class _Patient(Progress):
    """A progress display that shows nothing in the first two seconds."""

    def __init__(self, *columns: ProgressColumn, **options: Any) -> None:
        self.began = monotonic()
        super().__init__(*columns, **options)

    def get_renderables(self) -> Iterable[RenderableType]:
        is_slow = monotonic() - self.began >= PATIENCE_SECONDS
        return super().get_renderables() if is_slow else (Text(""),)


@contextmanager
def progress(
    first: float = STEP_SECONDS, least: float = STEP_SECONDS, *, is_counted: bool = True
) -> Iterator[Show]:
    """Yield a function that shows a text, with a bar if steps are counted, else with a clock."""
    console, began, due, shown, task = stderr(), monotonic(), first, "", None
    # On a narrow terminal the text is wrapped, not cut.
    text = "{task.description}" if is_counted else f"{CLOCK}{{task.description}}"
    columns: list[ProgressColumn] = [
        TextColumn(text, markup=False, table_column=Column(overflow="fold"))
    ]
    if is_counted:
        columns += [BarColumn(20), TaskProgressColumn(), TimeRemainingColumn()]
    # Transient, so that what stays on the terminal is what a log would have.
    with _Patient(
        *columns,
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not console.is_terminal,
    ) as bar:

        def show(text: str, done: int = 0, total: int | None = None) -> None:
            nonlocal due, shown, task
            elapsed = monotonic() - began
            if not bar.disable:
                if task is None:  # what was done before says nothing about the speed
                    task = bar.add_task(text, total=total, completed=done)
                bar.update(task, completed=done, description=text)
            elif text != shown and elapsed >= due:  # the rarer the longer the work takes
                shown, due = text, elapsed + max(least, LOG_SHARE * elapsed)
                with suppress(OSError):  # the reader has ended; the result may still be wanted
                    note(f"{elapsed:7.1f} s  {text}")

        yield show


@contextmanager
def counter(what: str, total: int) -> Iterator[Callable[..., None]]:
    """Yield a function that counts a step on a bar, and may show what is being done."""
    done, step = 0, max(1, total // STEPS)  # moving the bar must not cost what it shows

    def advance(doing: str = "") -> None:
        nonlocal done
        done += 1
        if done % step == 0 and stderr().is_terminal:
            show(f"{what} {doing}".rstrip(), done, total)

    with progress() as show:
        yield advance


@contextmanager
def solver_progress(check: Callable[[], None]) -> Iterator[Callable[[SolveProgress], None]]:
    """Yield a function that shows how a solve goes; it calls `check`, which may raise to end it."""
    with progress(PATIENCE_SECONDS, LOG_SECONDS, is_counted=False) as show:

        def take(news: SolveProgress) -> None:
            check()
            show(describe(news))

        yield take


def describe(news: SolveProgress) -> str:
    """Return phase, incumbent, bound and gap of a solve in one line."""
    return (
        f"{news.phase or 'solving'}: incumbent {number(news.incumbent)}, "
        f"bound {number(news.bound)}, gap {percent(news.gap)}"
    )
