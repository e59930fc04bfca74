"""Progress of a long solve on standard error: a live line on a terminal, log lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from rich.live import Live
from rich.text import Text

from experiments.cli.console import PATIENCE_SECONDS, note, number, percent, stderr
from oasis.solvers import SolveProgress

REFRESH = 4  # times a second, on a terminal
LOG_SECONDS = 1.0  # between two lines elsewhere, at least,
# In a solve of an hour that is a line every 72 seconds.
LOG_SHARE = 0.02  # and this much of the time passed


class Pace:
    """When a log of many steps gets its next line: the later, the longer it has taken."""

    # Many steps take longer than one solve, whose log has up to a line a second.
    STEP_SECONDS = 10.0

    def __init__(self, first: float = STEP_SECONDS, least: float = STEP_SECONDS) -> None:
        self._began, self._due, self._least = monotonic(), first, least

    @property
    def elapsed(self) -> float:
        return monotonic() - self._began

    def is_due(self) -> bool:
        """Whether a line is due now; the next one is then some time away."""
        elapsed = self.elapsed
        if elapsed < self._due:
            return False
        self._due = elapsed + max(self._least, LOG_SHARE * elapsed)
        return True


@contextmanager
def solver_progress(check: Callable[[], None]) -> Iterator[Callable[[SolveProgress], None]]:
    """Callback that shows on standard error how a solve goes, after two seconds of it.

    It calls `check` first, which may raise to end the solve.
    """
    shown, console = _Shown(check), stderr()
    if not console.is_terminal:
        yield shown.log
        return
    with Live(
        console=console,
        get_renderable=shown.line,
        refresh_per_second=REFRESH,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield shown.take


class _Shown:
    """The latest progress of a solve, and the clock since the solve began."""

    def __init__(self, check: Callable[[], None]) -> None:
        self.check = check
        self.pace = Pace(PATIENCE_SECONDS, LOG_SECONDS)
        self.news: SolveProgress | None = None
        self.logged: tuple[str, ...] = ()

    def take(self, progress: SolveProgress) -> None:
        self.check()
        self.news = progress

    def line(self) -> Text:
        """The line to show now; empty during the first two seconds and before the first news."""
        if self.news is None or self.pace.elapsed < PATIENCE_SECONDS:
            return Text("", end="")
        return Text(describe(self.news, self.pace.elapsed))

    def log(self, progress: SolveProgress) -> None:
        """Write a line when something has changed since the last one."""
        self.take(progress)
        state = (progress.phase, number(progress.incumbent), number(progress.bound))
        if state != self.logged and self.pace.is_due():
            self.logged = state
            with suppress(OSError):  # the reader has ended; the result may still be wanted
                note(describe(progress, self.pace.elapsed))


def describe(news: SolveProgress, elapsed: float) -> str:
    """One line: elapsed time, phase, incumbent, bound and gap."""
    return (
        f"{elapsed:7.1f} s  {news.phase or 'solving'}: incumbent {number(news.incumbent)}, "
        f"bound {number(news.bound)}, gap {percent(news.gap)}"
    )
