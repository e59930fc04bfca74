"""What a solve may still spend: seconds, or units of work that are the same on every machine."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar, Protocol

from oasis.solvers import Status


class Meter(Protocol):
    """Tells how much has been spent."""

    @property
    def is_repeatable(self) -> bool:
        """Whether every machine spends the same on the same steps."""
        ...

    def read(self) -> float:
        """Amount spent so far."""
        ...

    def charge(self, work: float) -> None:
        """Take note of `work` units that were done."""
        ...


class Stopwatch:
    """Reads the clock; the only place in the toolkit's solvers that does."""

    is_repeatable: ClassVar[bool] = False

    def read(self) -> float:
        return time.perf_counter()

    def charge(self, work: float) -> None:
        """Do nothing: time passes by itself."""


class WorkCounter:
    """Adds up the work that is charged to it, so that a limit falls at the same point every time.

    A unit is roughly a second of one core of an ordinary machine. What is counted are steps that
    every machine takes alike: simplex iterations, checks inside branch and bound, schedules priced.
    """

    is_repeatable: ClassVar[bool] = True

    def __init__(self) -> None:
        self._done = 0.0

    def read(self) -> float:
        return self._done

    def charge(self, work: float) -> None:
        self._done += work


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit that began to count when this was made.

    Parameters
    ----------
    limit : float or None
        Seconds, or units of work if `meter` counts those; None is no limit.
    meter : Meter
        Tells how much has been spent; by default, seconds of wall-clock time.

    Examples
    --------
    >>> budget = Budget(10.0, WorkCounter())
    >>> budget.charge(4.0)
    >>> budget.left, budget.share(0.5).left, budget.within(1.0).left
    (6.0, 3.0, 1.0)
    """

    limit: float | None = None
    meter: Meter = field(default_factory=Stopwatch)
    started: float = field(init=False)
    began: float = field(init=False, default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        object.__setattr__(self, "started", self.meter.read())

    @classmethod
    def of(cls, time_limit: float | None, work_limit: float | None) -> Budget:
        """The budget of a solve that is limited in work if `work_limit` is given, else in seconds.

        Raises
        ------
        ValueError
            If a limit is negative or NaN.
        """
        limit = checked(work_limit, "work_limit", "units of work")
        if work_limit is not None:
            return cls(limit, WorkCounter())
        return cls(checked(time_limit))

    @property
    def is_repeatable(self) -> bool:
        """Whether it is spent at the same point of the same solve on every machine."""
        return self.meter.is_repeatable

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the start, whatever is limited; a measured time."""
        return time.perf_counter() - self.began

    @property
    def elapsed(self) -> float:
        """What has been spent since the start."""
        return self.meter.read() - self.started

    @property
    def left(self) -> float:
        """What remains, at least 0; inf without a limit."""
        return math.inf if self.limit is None else max(0.0, self.limit - self.elapsed)

    @property
    def passed(self) -> bool:
        """Whether nothing remains."""
        return self.left <= 0

    @property
    def status(self) -> Status:
        """Why a solve ends that has spent it."""
        return Status.WORK_LIMIT if self.is_repeatable else Status.TIME_LIMIT

    def charge(self, work: float) -> None:
        """Take note of `work` units that were done."""
        self.meter.charge(work)

    def share(self, fraction: float) -> Budget:
        """A budget of `fraction` of what remains."""
        return Budget(None if self.limit is None else self.left * fraction, self.meter)

    def within(self, amount: float) -> Budget:
        """A budget of `amount`, or of what remains if that is less."""
        return Budget(min(self.left, amount), self.meter)


def checked(limit: float | None, name: str = "time_limit", unit: str = "seconds") -> float | None:
    """A limit as users give it: None for infinity, which results in JSON cannot say."""
    is_number = isinstance(limit, Real) and not isinstance(limit, bool)
    if limit is not None and not (is_number and limit >= 0):  # NaN is not
        raise ValueError(f"{name}: expected {unit} >= 0, or None for no limit, got {limit!r}")
    return None if limit == math.inf else limit


def limits(time_limit: float | None, work_limit: float | None) -> dict[str, float | None]:
    """The limit that counts, as a parameter of a result."""
    if work_limit is None:
        return {"time_limit": time_limit}
    return {"work_limit": checked(work_limit, "work_limit", "units of work")}
