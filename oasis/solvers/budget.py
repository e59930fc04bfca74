"""What a solve may still spend: seconds, or units of work that are the same on every machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar, Protocol

from oasis.model.errors import InputError
from oasis.solvers import Status, relative_gap

# The interval between solution and bound must become shorter by this share of itself to count as
# better: a branch and bound lowers its bound in the last digits for as long as it runs.
LEAST_PROGRESS = 1e-3


class Stopping:
    """Criteria of one solve; it ends as soon as one of them is met.

    It reads no clock: whoever asks says how much has been spent, in seconds or in units of work.

    Parameters
    ----------
    gap : float or None
        Relative gap of solution and bound at which to end; None or 0 asks for a proof.
    no_improvement : float or None
        Amount after which to end, if until then the interval between solution and bound has not
        become shorter by a thousandth of itself; None or inf is no such criterion.
    now : float
        What has been spent when the solve begins.

    Raises
    ------
    ValueError
        If one of the two is negative or NaN.

    Attributes
    ----------
    met : Status or None
        The criterion that was met first; once it is set, it stays.
    listen : callable or None
        Called before every `check`: takes up what another process has learnt about the solve.

    Examples
    --------
    >>> from oasis.solvers.budget import Stopping
    >>> stopping = Stopping(gap=0.1, no_improvement=5.0)
    >>> stopping.note(8.0, 10.0, now=3.0)
    >>> stopping.check(7.9), stopping.check(8.0)
    (None, <Status.NO_IMPROVEMENT: 'no_improvement'>)
    """

    def __init__(
        self, gap: float | None = None, no_improvement: float | None = None, now: float = 0.0
    ) -> None:
        self.gap = _checked(gap, "gap", "a share") or 0.0
        patience = _checked(no_improvement, "no_improvement", "an amount")
        self.patience = math.inf if patience is None else patience
        self.met: Status | None = None
        self.listen: Callable[[], None] | None = None
        self._width = math.inf  # of the interval when it last became much shorter
        self._since = now

    def note(
        self, solution: float | None, bound: float, now: float, verified: float | None = None
    ) -> None:
        """Take note of the best solution and the best bound.

        Parameters
        ----------
        solution : float or None
            Value of the best solution that anybody tells of, None before the first.
        bound : float
            The best bound.
        now : float
            What has been spent.
        verified : float or None
            Value of the best solution that is at hand and verified: the gap is that of it alone.
        """
        width = math.inf if solution is None else bound - solution
        # Measured from the last real improvement, so that many tiny ones add up to one.
        if width < self._width * (1 - LEAST_PROGRESS):
            self._width, self._since = width, now
        if self.gap > 0 and relative_gap(verified, bound) <= self.gap:
            self.met = self.met or Status.GAP_LIMIT

    @property
    def patient_until(self) -> float:
        """What will have been spent when there is no improvement, unless one comes; or inf."""
        return self._since + self.patience

    def check(self, now: float) -> Status | None:
        """The criterion that is met when so much has been spent; None if there is none yet."""
        # First, so that what another process has found can still keep this one going.
        if self.listen is not None:
            self.listen()
        if self.met is None and self.left(now) <= 0:
            self.met = Status.NO_IMPROVEMENT
        return self.met

    def end(self, status: Status) -> None:
        """End the solve with `status`, unless it has ended before."""
        # The first reason stays: what comes after is a consequence of it.
        self.met = self.met or status

    def left(self, now: float) -> float:
        """What may still be spent until one is met, unless something better comes; inf, or >= 0."""
        return 0.0 if self.met is not None else max(0.0, self.patience - (now - self._since))


def _checked(value: float | None, name: str, what: str) -> float | None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if value is not None and not (is_number and value >= 0):  # NaN is not
        raise InputError(name, f"expected {what} >= 0, or None for no criterion", value)
    return value


class BudgetMeter(Protocol):
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
    meter : BudgetMeter
        Tells how much has been spent; by default, seconds of wall-clock time.
    stopping : Stopping
        Criteria that end the solve before the limit; every part of a budget heeds those of the
        whole.

    Examples
    --------
    >>> budget = Budget(10.0, WorkCounter())
    >>> budget.charge(4.0)
    >>> budget.left, budget.share(0.5).left, budget.within(1.0).left
    (6.0, 3.0, 1.0)
    """

    limit: float | None = None
    meter: BudgetMeter = field(default_factory=Stopwatch)
    stopping: Stopping = field(default_factory=Stopping)
    started: float = field(init=False)
    began: float = field(init=False, default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        object.__setattr__(self, "started", self.meter.read())

    @classmethod
    def of(
        cls,
        time_limit: float | None,
        work_limit: float | None,
        gap: float | None = None,
        no_improvement: float | None = None,
    ) -> Budget:
        """The budget of a solve that is limited in work if `work_limit` is given, else in seconds.

        `gap` and `no_improvement` are those of `oasis.solvers.budget.Stopping`, the latter in the
        unit of the limit.

        Raises
        ------
        ValueError
            If a limit or criterion is negative or NaN.
        """
        limit = checked(work_limit, "work_limit", "units of work")
        meter: BudgetMeter = Stopwatch() if work_limit is None else WorkCounter()
        stopping = Stopping(gap, no_improvement, meter.read())
        return cls(checked(time_limit) if work_limit is None else limit, meter, stopping)

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
        """What remains, at least 0; inf without a limit, and 0 once a criterion is met."""
        # Asked in this order, because a check far behind the limit
        # would meet criteria that came later.
        if self._limit_came_first or self.stopping.check(self.meter.read()) is not None:
            return 0.0
        return math.inf if self.limit is None else max(0.0, self.limit - self.elapsed)

    @property
    def left_without_news(self) -> float:
        """What remains for a step that reports nothing before its end; at most `left`."""
        return min(self.left, self.stopping.left(self.meter.read()))

    @property
    def passed(self) -> bool:
        """Whether nothing remains."""
        return self.left <= 0

    @property
    def status(self) -> Status:
        """Why a solve ends that has spent it: its limit, or the criterion that was met before."""
        limit = Status.WORK_LIMIT if self.is_repeatable else Status.TIME_LIMIT
        if self._limit_came_first:
            return limit
        return self.stopping.check(self.meter.read()) or limit

    @property
    def _limit_came_first(self) -> bool:
        """Whether the limit is spent, and no criterion was met before it was."""
        if self.limit is None or self.elapsed < self.limit or self.stopping.met is not None:
            return False
        # Both are passed: the one that was passed first is the reason.
        return self.started + self.limit <= self.stopping.patient_until

    def charge(self, work: float) -> None:
        """Take note of `work` units that were done."""
        self.meter.charge(work)

    def share(self, fraction: float) -> Budget:
        """A budget of `fraction` of what remains."""
        limit = None if self.limit is None else self.left * fraction
        return Budget(limit, self.meter, self.stopping)

    def within(self, amount: float) -> Budget:
        """A budget of `amount`, or of what remains if that is less."""
        return Budget(min(self.left, amount), self.meter, self.stopping)


def checked(limit: float | None, name: str = "time_limit", unit: str = "seconds") -> float | None:
    """A limit as users give it: None for infinity, which results in JSON cannot say."""
    is_number = isinstance(limit, Real) and not isinstance(limit, bool)
    if limit is not None and not (is_number and limit >= 0):  # NaN is not
        raise InputError(name, f"expected {unit} >= 0, or None for no limit", limit)
    return None if limit == math.inf else limit


def limits(
    time_limit: float | None,
    work_limit: float | None,
    gap: float | None = None,
    no_improvement: float | None = None,
) -> dict[str, float | None]:
    """The limit that counts and the criteria that were given, as parameters of a result."""
    told = {"time_limit": time_limit}
    if work_limit is not None:
        told = {"work_limit": checked(work_limit, "work_limit", "units of work")}
    criteria = {"gap": gap, "no_improvement": no_improvement}
    return told | {
        name: checked(value, name) for name, value in criteria.items() if value is not None
    }
