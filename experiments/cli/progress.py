"""Progress of a long solve on standard error: a live line on a terminal, log lines elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.live import Live
from rich.text import Text

from experiments.cli.console import PATIENCE_SECONDS, number, percent, stderr
from oasis.solvers import SolveProgress

REFRESH = 4  # times a second, on a terminal
LOG_SECONDS = 1.0  # between two lines elsewhere, at least,
# In a solve of an hour that is a line every 72 seconds.
LOG_SHARE = 0.02  # and this much of the time passed


class Pace:
    """When a log of many steps gets its next line: the later, the longer it has taken."""

    # Many steps take longer than one solve, whose log has up to a line a second.
    STEP_SECONDS = 10.0

    def __init__(self) -> None:
        self._began, self._due = monotonic(), self.STEP_SECONDS

    @property
    def elapsed(self) -> float:
        return monotonic() - self._began

    def is_due(self) -> bool:
        """Whether a line is due now; the next one is then some time away."""
        elapsed = self.elapsed
        if elapsed < self._due:
            return False
        self._due = elapsed + max(self.STEP_SECONDS, LOG_SHARE * elapsed)
        return True


@contextmanager
def solver_progress(check: Callable[[], None]) -> Iterator[Callable[[SolveProgress], None]]:
    """Callback that shows on standard error how a solve goes, after two seconds of it.

    It calls `check` first, which may raise to end the solve.
    """
    console = stderr()
    shown = _Shown(check)
    with _live(console, shown) if console.is_terminal else _log(shown):
        yield shown.take


class _Shown:
    """The latest progress of a solve, and the clock since the solve began."""

    def __init__(self, check: Callable[[], None]) -> None:
        self.check = check
        self.began = monotonic()
        self.news: SolveProgress | None = None

    def take(self, progress: SolveProgress) -> None:
        self.check()
        self.news = progress

    @property
    def elapsed(self) -> float:
        return monotonic() - self.began

    def line(self) -> Text:
        """The line to show now; empty during the first two seconds and before the first news."""
        if self.news is None or self.elapsed < PATIENCE_SECONDS:
            return Text("", end="")
        return Text(describe(self.news, self.elapsed))


@contextmanager
def _live(console: Console, shown: _Shown) -> Iterator[None]:
    with Live(
        console=console,
        get_renderable=shown.line,
        refresh_per_second=REFRESH,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield


@contextmanager
def _log(shown: _Shown) -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=_write_news, args=(shown, over), name="log", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _write_news(shown: _Shown, over: threading.Event) -> None:
    """Write a line when something has changed since the last one, the rarer the longer it takes."""
    written: tuple[object, ...] = ()
    wait = PATIENCE_SECONDS
    while not over.wait(wait):
        news = shown.news
        # A log in which nothing changes gets no lines.
        if news is not None and _state(news) != written:
            written = _state(news)
            try:
                sys.stderr.write(describe(news, shown.elapsed) + "\n")
                sys.stderr.flush()
            except OSError:
                return  # the reader has ended; the result may still be wanted
        wait = max(LOG_SECONDS, LOG_SHARE * shown.elapsed)


def _state(news: SolveProgress) -> tuple[object, ...]:
    return news.phase, number(news.incumbent), number(news.bound)


def describe(news: SolveProgress, elapsed: float) -> str:
    """One line: elapsed time, phase, incumbent, bound and gap."""
    return (
        f"{elapsed:7.1f} s  {news.phase or 'solving'}: incumbent {number(news.incumbent)}, "
        f"bound {number(news.bound)}, gap {percent(news.gap)}"
    )
