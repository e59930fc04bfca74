"""Utility functions f_i(d): what finishing d slots after arrival is worth.

Every utility is non-negative and non-increasing in the delay. `log_value` exists beside the plain
value because a time-critical sigmoid falls to e^-1700: as a float that is 0, but the bounds of the
prices are computed from its logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from oasis.model.errors import InstanceError
from oasis.model.records import ListOf, Number, Record, Variant, check, entry
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.validation import LARGEST_AMOUNT


@runtime_checkable
class Utility(Protocol):
    """Value of finishing a job some slots after its arrival.

    Examples
    --------
    >>> import numpy as np
    >>> import oasis
    >>> class Halving:  # halves with every slot of delay
    ...     def __call__(self, delay):
    ...         return 8.0 * 0.5 ** np.asarray(delay)
    ...     def log_value(self, delay):
    ...         return np.log(8.0) + np.log(0.5) * np.asarray(delay)
    >>> utility = Halving()
    >>> isinstance(utility, oasis.Utility)
    True
    >>> utility([0, 1, 2])
    array([8., 4., 2.])
    """

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        """Return the utility at each delay (slots, >= 0); shape of `delay`."""

    def log_value(self, delay: npt.ArrayLike) -> FloatArray:
        """Return the natural logarithm of the utility, -inf where it is 0; shape of `delay`."""


class _Plain(Record):
    """A utility whose logarithm is that of its value."""

    __slots__ = ()

    def log_value(self: Utility, delay: npt.ArrayLike) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self(delay)), dtype=np.float64)


WORTH = Number(maximum=LARGEST_AMOUNT)


@dataclass(frozen=True, slots=True)
class Sigmoid(Record):
    """Worth falls around a target: gamma1 / (1 + exp(gamma2 (delay - gamma3))), as in the paper.

    Parameters
    ----------
    priority : float
        Value of an immediate completion when the target is far (gamma1).
    decay : float
        How steeply the value falls, per slot; 0: time does not matter (gamma2).
    target : float
        Slots after arrival at which half of `priority` is left (gamma3).

    Examples
    --------
    >>> import oasis
    >>> utility = oasis.Sigmoid(priority=10.0, decay=1.0, target=4.0)
    >>> utility([0, 4, 8]).round(2)
    array([9.82, 5.  , 0.18])
    """

    priority: float = entry(
        WORTH, "gamma1: what finishing at once is worth when the target is far."
    )
    decay: float = entry(Number(), "gamma2, per slot; 0: completion time does not matter.")
    target: float = entry(Number(), "gamma3: target completion, slots after arrival.")
    kind: ClassVar[str] = "sigmoid"
    meaning: ClassVar[str] = "priority / (1 + exp(decay (d - target))) at delay d."

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        with np.errstate(over="ignore"):
            exponent = self.decay * (np.asarray(delay, dtype=np.float64) - self.target)
            # An exponential that overflows is infinite, and the utility 0, as it should be.
            result: FloatArray = self.priority / (1.0 + np.exp(exponent))
        return result

    def log_value(self, delay: npt.ArrayLike) -> FloatArray:
        with np.errstate(over="ignore", divide="ignore"):
            exponent = self.decay * (np.asarray(delay, dtype=np.float64) - self.target)
            # From the exponent, not from the value: that is 0 where its logarithm is still finite.
            result: FloatArray = np.log(self.priority) - np.logaddexp(0.0, exponent)
        return result


@dataclass(frozen=True, slots=True)
class Constant(_Plain):
    """The same `value` whenever the job completes.

    Examples
    --------
    >>> import oasis
    >>> oasis.Constant(value=5.0)([0, 100])
    array([5., 5.])
    """

    value: float = entry(WORTH, "Worth of the job whenever it completes.")
    kind: ClassVar[str] = "constant"
    meaning: ClassVar[str] = "The same value whenever the job completes."

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        return np.full(np.shape(delay), self.value)


@dataclass(frozen=True, slots=True)
class Deadline(_Plain):
    """`value` up to and including delay `deadline` (slots), nothing afterwards.

    Examples
    --------
    >>> import oasis
    >>> oasis.Deadline(value=5.0, deadline=3.0)([0, 3, 4])
    array([5., 5., 0.])
    """

    value: float = entry(WORTH, "Worth of the job up to and including the deadline.")
    deadline: float = entry(Number(), "Slots after arrival.")
    kind: ClassVar[str] = "deadline"
    meaning: ClassVar[str] = "The value up to and including the deadline, then 0."

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        return np.where(np.asarray(delay) <= self.deadline, self.value, 0.0)


MOST_SHOWN = 4  # points in a `repr`


@dataclass(frozen=True, slots=True)
class Piecewise(_Plain):
    """Linear between the points (delays, values), constant outside them.

    Parameters
    ----------
    delays : tuple of float
        Strictly increasing delays in slots.
    values : tuple of float
        Non-increasing utilities, one for each delay.

    Examples
    --------
    >>> import oasis
    >>> oasis.Piecewise(delays=(0.0, 4.0), values=(10.0, 2.0))([0, 1, 4, 9])
    array([10.,  8.,  2.,  2.])
    """

    delays: tuple[float, ...] = entry(
        ListOf(Number(), "expected at least one number"),
        "Slots after arrival, strictly increasing.",
    )
    values: tuple[float, ...] = entry(
        ListOf(WORTH, "expected at least one number"),
        "One value for each delay, non-increasing.",
    )
    kind: ClassVar[str] = "piecewise"
    meaning: ClassVar[str] = "Linear between the points, constant outside them."

    def __post_init__(self) -> None:
        check(self)
        if len(self.delays) != len(self.values):
            raise InstanceError("values", f"expected {len(self.delays)} values, one for each delay")
        for k in range(1, len(self.delays)):
            if self.delays[k] <= self.delays[k - 1]:
                raise InstanceError(f"delays[{k}]", "expected strictly increasing delays")
            if self.values[k] > self.values[k - 1]:
                raise InstanceError(f"values[{k}]", "expected non-increasing values")

    def __repr__(self) -> str:
        if len(self.delays) <= MOST_SHOWN:
            return f"Piecewise(delays={self.delays}, values={self.values})"
        ends = [f"{values[0]:g} to {values[-1]:g}" for values in (self.delays, self.values)]
        return f"<Piecewise: {len(self.delays)} points, delays {ends[0]}, values {ends[1]}>"

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        result: FloatArray = np.interp(np.asarray(delay, np.float64), self.delays, self.values)
        return np.asarray(result, dtype=np.float64)


def later(utility: Utility, elapsed: int, slots: int, end: int | None = None) -> Utility:
    """Return `utility` by delay from `elapsed` on, exact to delay `slots`; 0 from delay `end`."""
    if end is None and (elapsed == 0 or isinstance(utility, Constant)):
        return utility
    # Equal at whole slots up to `slots`: a schedule never completes between them. Two points at
    # least, as a piecewise utility needs them.
    delays = np.arange(max(2, slots + 1))
    values = np.asarray(utility(delays + elapsed), dtype=np.float64)
    if end is not None:
        values = np.where(delays < end, values, 0.0)
    return Piecewise(tuple(delays.astype(float).tolist()), tuple(values.tolist()))


ON_TIME = 1e-6  # seconds after a deadline that are taken for rounding


@dataclass(frozen=True, slots=True, eq=False)
class UtilityColumns:
    """Utilities of many jobs as arrays; infinite `decay`: `target` is a deadline in seconds."""

    priority: FloatArray
    decay: FloatArray
    target: FloatArray

    @classmethod
    def of(cls, utilities: Sequence[Sigmoid | Constant | Deadline]) -> UtilityColumns:
        """Make the arrays from utility objects, one row each."""
        rows: list[tuple[float, float, float]] = []
        for one in utilities:
            match one:
                case Sigmoid():
                    rows.append((one.priority, one.decay, one.target))
                case Deadline():
                    rows.append((one.value, np.inf, one.deadline))
                case Constant():
                    rows.append((one.value, np.inf, np.inf))
        return cls(*np.array(rows, dtype=float).reshape(len(rows), 3).T)

    def __call__(self, delays: FloatArray) -> FloatArray:
        """Return the utility of each job at its delay, (jobs,), or at k delays, (jobs, k)."""
        shape = (-1,) + (1,) * (delays.ndim - 1)
        priority, decay, target = (
            column.reshape(shape) for column in (self.priority, self.decay, self.target)
        )
        sharp = np.isinf(decay)
        past = delays - np.where(sharp, 0.0, target)
        with np.errstate(over="ignore"):
            smooth = priority / (1.0 + np.exp(np.where(sharp, 0.0, decay) * past))
        on_time = np.where(delays <= target + ON_TIME, priority, 0.0)
        return np.where(sharp, on_time, smooth)

    def part(self, places: IntArray | slice) -> UtilityColumns:
        """Return the utilities of the jobs at these indices."""
        return UtilityColumns(self.priority[places], self.decay[places], self.target[places])

    def rows(self) -> list[Sigmoid | Constant | Deadline]:
        """Return the utility object of each job."""
        columns = (self.priority.tolist(), self.decay.tolist(), self.target.tolist())
        return [
            Sigmoid(worth, decay, target)
            if decay < np.inf
            else (Deadline(worth, target) if target < np.inf else Constant(worth))
            for worth, decay, target in zip(*columns, strict=True)
        ]


UTILITIES: dict[str, type[Any]] = {
    cls.kind: cls for cls in (Sigmoid, Constant, Deadline, Piecewise)
}
UTILITY = Variant(
    UTILITIES,
    "What completing the job some time after its arrival is worth.",
    lambda value: isinstance(value, Utility),
    named="utility",
)
