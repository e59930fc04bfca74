"""Time that is left, and where a solve stands: the only places that read the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from oasis.solvers import Progress, relative_gap


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time limit that started when this was made.

    Parameters
    ----------
    limit : float or None
        Seconds; None is no limit.
    """

    limit: float | None = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def left(self) -> float:
        """Seconds that remain, at least 0; inf without a limit."""
        return math.inf if self.limit is None else max(0.0, self.limit - self.elapsed)

    @property
    def passed(self) -> bool:
        """Whether nothing remains."""
        return self.left <= 0

    def share(self, fraction: float) -> Deadline:
        """A deadline after `fraction` of what remains."""
        return Deadline(None if self.limit is None else self.left * fraction)

    def within(self, seconds: float) -> Deadline:
        """A deadline after `seconds`, or this one if it is earlier."""
        return Deadline(min(self.left, seconds))


class Standing:
    """Best incumbent and bound so far, reported whenever one of them improves.

    Parameters
    ----------
    deadline : Deadline
        Whose clock the reports show.
    on_progress : callable, optional
        Receives a `Progress` at every improvement.
    """

    def __init__(
        self, deadline: Deadline, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        self.incumbent: float | None = None
        self.bound = math.inf
        self._deadline = deadline
        self._on_progress = on_progress

    def found(self, incumbent: float) -> None:
        """Take note of a feasible solution's value."""
        if self.incumbent is None or incumbent > self.incumbent:
            self.incumbent = incumbent
            self._report()

    def proved(self, bound: float) -> None:
        """Take note of a bound."""
        if bound < self.bound:
            self.bound = bound
            self._report()

    @property
    def gap(self) -> float:
        """Relative gap of the two; infinite without an incumbent."""
        return relative_gap(self.incumbent, self.bound)

    def _report(self) -> None:
        if self._on_progress is not None:
            now = self._deadline.elapsed
            self._on_progress(Progress(now, self.incumbent, self.bound, self.gap))
