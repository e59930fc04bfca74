"""Time that is left: the only place that reads the clock."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field


def checked(time_limit: float | None) -> float | None:
    """A time limit as users give it: None for infinity, which results in JSON cannot say."""
    if time_limit is not None and not time_limit >= 0:  # nor is NaN
        expected = "expected seconds >= 0, or None for no limit"
        raise ValueError(f"time_limit: {expected}, got {time_limit}")
    return None if time_limit == math.inf else time_limit


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
