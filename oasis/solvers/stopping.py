"""Criteria that end a solve before its limit: a gap that is small enough, no improvement."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

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
    >>> from oasis.solvers.stopping import Stopping
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
        if self.listen is not None:
            self.listen()
        if self.met is None and self.left(now) <= 0:
            self.met = Status.NO_IMPROVEMENT
        return self.met

    def end(self, status: Status) -> None:
        """End the solve with `status`, unless it has ended before."""
        self.met = self.met or status

    def left(self, now: float) -> float:
        """What may still be spent until one is met, unless something better comes; inf, or >= 0."""
        return 0.0 if self.met is not None else max(0.0, self.patience - (now - self._since))


def _checked(value: float | None, name: str, what: str) -> float | None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if value is not None and not (is_number and value >= 0):  # NaN is not
        raise ValueError(f"{name}: expected {what} >= 0, or None for no criterion, got {value!r}")
    return value
