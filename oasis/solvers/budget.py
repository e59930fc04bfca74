"""Budgets of solves: seconds, or units of work, which do not depend on how busy a machine is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from numbers import Real
from types import EllipsisType
from typing import ClassVar, Protocol, TypeVar

from oasis.model.errors import InputError
from oasis.solvers import Status, relative_gap

# The interval between solution and bound must become shorter by this share of itself to count as
# better: a branch and bound lowers its bound in the last digits for as long as it runs.
LEAST_PROGRESS = 1e-3

Item = TypeVar("Item")


class OutOfTimeError(Exception):
    """Raised if no time is left, or less than the next step needs, which the message names."""


class Stopping:
    """Criteria of one solve; it ends as soon as one of them is met.

    The caller says how much has been spent, in seconds or in units of work; it reads the clock
    for a deadline alone.
    """

    def __init__(
        self, gap: float | None = None, no_improvement: float | None = None, now: float = 0.0
    ) -> None:
        self.gap = _checked(gap, "gap", "a share") or 0.0
        patience = _checked(no_improvement, "no_improvement", "an amount")
        self.patience = math.inf if patience is None else patience
        self.met: Status | None = None
        self.listen: Callable[[], None] | None = None
        self.deadline = math.inf  # of the clock, where work is limited and time, too
        self._width = math.inf  # of the interval when it last became much shorter
        self._since = now

    def note(
        self, solution: float | None, bound: float, now: float, verified: float | None = None
    ) -> None:
        """Record the best solution and bound at `now`; the gap is that of `verified` to `bound`."""
        width = math.inf if solution is None else bound - solution
        # Measured from the last real improvement, so that many tiny ones add up to one.
        if width < self._width * (1 - LEAST_PROGRESS):
            self._width, self._since = width, now
        # Only a solution that is at hand and verified can be what the caller gets.
        if self.gap > 0 and relative_gap(verified, bound) <= self.gap:
            self.met = self.met or Status.GAP_LIMIT

    @property
    def patient_until(self) -> float:
        """Time or work at which the solve ends unless it improves; inf without `no_improvement`."""
        return self._since + self.patience

    def check(self, now: float) -> Status | None:
        """Return the criterion that is met after this much time or work; None if there is none."""
        # First, so that what another process has found can still keep this one going.
        if self.listen is not None:
            self.listen()
        if self.met is None and self.is_late:
            self.met = Status.TIME_LIMIT
        if self.met is None and self.left(now) <= 0:
            self.met = Status.NO_IMPROVEMENT
        return self.met

    @property
    def is_late(self) -> bool:
        """Whether a deadline of the clock has passed, in a solve that is limited in work."""
        return self.deadline < math.inf and time.perf_counter() >= self.deadline

    def end(self, status: Status) -> None:
        """End the solve with `status`, unless it has ended before."""
        # The first reason stays: what comes after is a consequence of it.
        self.met = self.met or status

    def left(self, now: float) -> float:
        """Return the time or work until the solve ends if nothing improves; 0 once it has ended."""
        return 0.0 if self.met is not None else max(0.0, self.patience - (now - self._since))


def _checked(value: float | None, name: str, what: str) -> float | None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if value is not None and not (is_number and value >= 0):  # NaN is not
        raise InputError(name, f"expected {what} >= 0, or None for no criterion", value)
    return value


class BudgetMeter(Protocol):
    """Measures the time or work that was spent so far."""

    @property
    def is_repeatable(self) -> bool:
        """Whether equal steps always measure the same: true of work, not of time."""
        ...

    def read(self) -> float:
        """Return the time or work spent so far."""
        ...

    def charge(self, work: float) -> None:
        """Add `work` units to what was spent; a clock ignores them."""
        ...


class Stopwatch:
    """A meter of seconds, read from the clock."""

    is_repeatable: ClassVar[bool] = False

    def read(self) -> float:
        return time.perf_counter()

    def charge(self, work: float) -> None:
        """Do nothing: time passes by itself."""


class WorkCounter:
    """Adds up the work that is charged to it, so that a limit falls at the same point every time.

    A unit is roughly a second of one core of an ordinary machine. What is counted are steps,
    however long they take: simplex iterations, checks inside branch and bound, schedules priced.
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
    """A limit in seconds or work, with further criteria; it counts from the object's creation."""

    limit: float | None = None
    meter: BudgetMeter = field(default_factory=Stopwatch)
    stopping: Stopping = field(default_factory=Stopping)
    started: float = field(init=False)
    began: float = field(init=False, default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        object.__setattr__(self, "started", self.meter.read())

    @property
    def is_repeatable(self) -> bool:
        """Whether the same solve ends at the same point, however busy the machine is."""
        return self.meter.is_repeatable

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the start, whatever is limited; a measured time."""
        return time.perf_counter() - self.began

    @property
    def elapsed(self) -> float:
        """Time or work spent since the start."""
        return self.meter.read() - self.started

    @property
    def left(self) -> float:
        """Remaining time or work, >= 0; inf without a limit, 0 once a criterion is met."""
        # Asked in this order, because a check far behind the limit
        # would meet criteria that came later.
        if self._limit_came_first or self.stopping.check(self.meter.read()) is not None:
            return 0.0
        return math.inf if self.limit is None else max(0.0, self.limit - self.elapsed)

    @property
    def left_without_report(self) -> float:
        """Time or work for a step without interim results: up to a limit or `no_improvement`."""
        return min(self.left, self.stopping.left(self.meter.read()))

    @property
    def passed(self) -> bool:
        """Whether the budget is used up or a criterion is met."""
        return self.left <= 0

    @property
    def status(self) -> Status:
        """The reason why a used-up budget ends a solve: the limit, or a criterion met before."""
        limit = Status.WORK_LIMIT if self.is_repeatable else Status.TIME_LIMIT
        if self._limit_came_first:
            return limit
        return self.stopping.check(self.meter.read()) or limit

    @property
    def _limit_came_first(self) -> bool:
        """Whether the limit was reached before any criterion was met."""
        if self.limit is None or self.elapsed < self.limit or self.stopping.met is not None:
            return False
        # Both are passed: the one that was passed first is the reason.
        return self.started + self.limit <= self.stopping.patient_until

    @property
    def seconds_left(self) -> float:
        """Remaining seconds, >= 0; inf where work alone is limited."""
        if self.is_repeatable:
            return max(0.0, self.stopping.deadline - time.perf_counter())
        return self.left

    def need(self, seconds: float = 0.0, what: str = "") -> None:
        """Raise `OutOfTimeError` unless time, and `seconds` for the step `what`, is left.

        Work does not count: a limit of work ends the solve where work is charged.
        """
        seconds_left = self.seconds_left
        if seconds_left > 0 and seconds <= seconds_left:
            return
        if self.is_repeatable:  # its own status is that of work
            self.stopping.end(Status.TIME_LIMIT)
        if seconds_left <= 0:
            raise OutOfTimeError
        raise OutOfTimeError(f"{what}: takes about {seconds:.3g} s, {seconds_left:.3g} s were left")

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield `items`; before each, `OutOfTimeError` if no time is left."""
        for item in items:
            self.need()
            yield item

    def charge(self, work: float) -> None:
        """Add `work` units to what was spent, unless the budget is one of seconds."""
        self.meter.charge(work)

    def share(self, fraction: float) -> Budget:
        """Return a budget of this fraction of what is left, with the same criteria."""
        limit = None if self.limit is None else self.left * fraction
        return Budget(limit, self.meter, self.stopping)

    def within(self, amount: float) -> Budget:
        """Return a budget of `amount`, or of what is left if that is less; same criteria."""
        return Budget(min(self.left, amount), self.meter, self.stopping)


NO_LIMIT = Budget()


def checked(limit: float | None, name: str = "time_limit", unit: str = "seconds") -> float | None:
    """Return a user's limit, None for infinity; `InputError` unless it is a number >= 0 or None."""
    is_number = isinstance(limit, Real) and not isinstance(limit, bool)
    if limit is not None and not (is_number and limit >= 0):  # NaN is not
        raise InputError(name, f"expected {unit} >= 0, or None for no limit", limit)
    return None if limit == math.inf else limit


@dataclass(frozen=True, slots=True, repr=False)
class Stop:
    """Criteria that end a solve; the first one met ends it. Combine them with ``|``.

    Users write `TimeLimit`, `WorkLimit`, `Gap` and `NoImprovement`, and combine them. Of two limits
    of one kind, the one that is met first counts.

    Parameters
    ----------
    time_limit : float, optional
        Seconds; None or inf is no limit.
    work_limit : float, optional
        Units of work, each about a second of an ordinary machine, counted in steps: the same solve
        ends at the same point, however busy the machine is, unless a time limit beside it is met
        first. Another kind of processor may round otherwise, and take other steps. None or inf is
        no limit; inf still counts work, and not seconds.
    gap : float, optional
        Relative gap, ``(upper_bound - objective) / objective``, that is small enough. None or 0
        asks for a proof.
    no_improvement : float, optional
        Seconds, or units of work with a work limit, in which the interval between the best
        schedules and the bound has not become shorter by a thousandth of itself.

    Raises
    ------
    ValueError
        If one of them is negative or NaN.

    References
    ----------
    Wouda, Lan, Kool, PyVRP: a high-performance VRP solver package, INFORMS J. Computing 36(4),
    2024, whose stopping criteria are objects like these.

    Examples
    --------
    >>> from oasis.solvers.budget import Gap, TimeLimit
    >>> TimeLimit(60) | Gap(0.01) | TimeLimit(30)
    TimeLimit(30) | Gap(0.01)
    """

    time_limit: float | None = None
    work_limit: float | None = None
    gap: float | None = None
    no_improvement: float | None = None

    def __post_init__(self) -> None:
        checked(self.time_limit)
        checked(self.work_limit, "work_limit", "units of work")
        Stopping(self.gap, self.no_improvement)

    def __or__(self, other: Stop) -> Stop:
        if not isinstance(other, Stop):
            return NotImplemented
        pairs = [(getattr(self, name), getattr(other, name)) for name in STOP_NAMES]
        limits = [[value for value in pair if value is not None] for pair in pairs]
        # the larger of two gaps is met first, and the smaller of all else
        first = (max if name == "gap" else min for name in STOP_NAMES)
        return Stop(*(least(some, default=None) for least, some in zip(first, limits, strict=True)))

    def __repr__(self) -> str:
        names = zip(STOP_NAMES, (TimeLimit, WorkLimit, Gap, NoImprovement), strict=True)
        values = [(kind.__name__, getattr(self, name)) for name, kind in names]
        parts = [f"{kind}({value:g})" for kind, value in values if value is not None]
        return " | ".join(parts) or "Stop()"

    def start(self) -> Budget:
        """Return a budget of these limits and criteria that counts from now."""
        meter: BudgetMeter = Stopwatch() if self.work_limit is None else WorkCounter()
        stopping = Stopping(self.gap, self.no_improvement, meter.read())
        limit = self.time_limit
        if self.work_limit is not None:
            limit = self.work_limit
            if self.time_limit is not None:
                stopping.deadline = time.perf_counter() + self.time_limit
        return Budget(checked(limit), meter, stopping)

    def to_dict(self) -> dict[str, float | None]:
        """Return the limits and criteria as results record them.

        Infinity becomes None, because JSON has no infinity.
        """
        limits = {name: getattr(self, name) for name in STOP_NAMES}
        counts = "time_limit" if self.work_limit is None else "work_limit"
        return {
            name: checked(value, name)
            for name, value in limits.items()
            if value is not None or name == counts
        }


STOP_NAMES = tuple(field.name for field in fields(Stop))


class TimeLimit(Stop):
    """End a solve after a number of seconds.

    Examples
    --------
    >>> from offline import TimeLimit
    >>> TimeLimit(60).time_limit
    60
    """

    __slots__ = ()

    def __init__(self, seconds: float) -> None:
        super().__init__(time_limit=seconds)


class WorkLimit(Stop):
    """End a solve after a number of work units, at the same point however busy the machine is.

    Examples
    --------
    >>> from offline import TimeLimit, WorkLimit
    >>> WorkLimit(20) | TimeLimit(300)
    TimeLimit(300) | WorkLimit(20)
    """

    __slots__ = ()

    def __init__(self, units: float) -> None:
        super().__init__(work_limit=units)


class Gap(Stop):
    """End a solve when its relative gap is at most this.

    Examples
    --------
    >>> from offline import Gap
    >>> Gap(0.01).gap
    0.01
    """

    __slots__ = ()

    def __init__(self, gap: float) -> None:
        super().__init__(gap=gap)


class NoImprovement(Stop):
    """End a solve after this many seconds without improvement (work units with a `WorkLimit`).

    Examples
    --------
    >>> from offline import NoImprovement
    >>> NoImprovement(20).no_improvement
    20
    """

    __slots__ = ()

    def __init__(self, amount: float) -> None:
        super().__init__(no_improvement=amount)


DEFAULT_STOP = TimeLimit(60.0)


def stop_of(
    stop: Stop | None,
    time_limit: float | EllipsisType | None,
    work_limit: float | None,
    gap: float | None,
    no_improvement: float | None,
) -> Stop:
    """Return `stop` combined with the shorthands for its criteria.

    Where nothing else is a limit, neither `stop` nor a shorthand, the time limit is the default of
    60 seconds; a `stop` that was given, and a `time_limit` of None, mean what they say.
    """
    if stop is not None and not isinstance(stop, Stop):
        raise TypeError(f"stop: expected criteria such as TimeLimit(60), got {stop!r}")
    seconds = None if isinstance(time_limit, EllipsisType) else time_limit
    shorthands = Stop(seconds, work_limit, gap, no_improvement)
    if stop is not None:
        return stop | shorthands
    if isinstance(time_limit, EllipsisType) and work_limit is None:
        return shorthands | DEFAULT_STOP
    return shorthands
