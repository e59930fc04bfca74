"""What an offline solve returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oasis.model.schedule import Schedule
from oasis.solvers import Status, relative_gap
from oasis.version import __version__


@dataclass(frozen=True, slots=True)
class Milestone:
    """Where a solve stood at one moment.

    Parameters
    ----------
    seconds : float
        Time since the solve began.
    objective : float or None
        Best total utility by then, None before the first solution.
    upper_bound : float
        Best bound by then.

    Examples
    --------
    >>> from offline import Milestone
    >>> Milestone(seconds=1.5, objective=8.0, upper_bound=10.0).gap
    0.25
    """

    seconds: float
    objective: float | None
    upper_bound: float

    @property
    def gap(self) -> float:
        """Relative gap of the two; infinite without a solution."""
        return relative_gap(self.objective, self.upper_bound)

    def to_dict(self) -> dict[str, float | None]:
        """Plain data for JSON; an infinite bound becomes null."""
        bound = self.upper_bound
        return {
            "seconds": round(self.seconds, 3),
            "objective": self.objective,
            "upper_bound": bound if math.isfinite(bound) else None,
        }


@dataclass(frozen=True, slots=True)
class OfflineResult:
    """An offline solution of (1)-(13) with its certificate.

    Parameters
    ----------
    status : Status
        Why the solve ended; only ``optimal`` claims a proof.
    objective : float
        Total utility (1), computed anew from `schedules` with the original utilities.
    upper_bound : float
        No solution of the instance has a higher total utility.
    schedules : mapping of str to Schedule
        Schedule of each admitted job, by job id.
    method : str
        How it was found.
    seconds : float
        Wall-clock time taken.
    parameters : mapping of str to plain data
        What the method was told, with all that steers it under "params", and the solver it used.
    version : str
        Version of this package.
    objective_by, bound_by : str
        Which part of the method found `schedules`, and which proved `upper_bound`.
    history : tuple of Milestone
        How the two came closer, oldest first; measured, so not part of equality.

    Examples
    --------
    >>> from offline import OfflineResult, Status
    >>> result = OfflineResult(Status.TIME_LIMIT, 8.0, 10.0, {}, method="milp", seconds=60.0)
    >>> result.gap
    0.25
    """

    status: Status
    objective: float
    upper_bound: float
    schedules: Mapping[str, Schedule]
    method: str
    seconds: float
    parameters: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__
    objective_by: str = ""
    bound_by: str = ""
    history: tuple[Milestone, ...] = field(default=(), compare=False, repr=False)

    @property
    def gap(self) -> float:
        """``(upper_bound - objective) / max(objective, 1e-9)``."""
        return relative_gap(self.objective, self.upper_bound)

    def gap_at(self, seconds: float) -> float:
        """The gap that was left after `seconds`, to a hundredth of that; inf before the first."""
        passed = [milestone.gap for milestone in self.history if milestone.seconds <= seconds]
        return passed[-1] if passed else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``seconds`` and ``history`` are measured."""
        return {
            "status": str(self.status),
            "objective": self.objective,
            "upper_bound": self.upper_bound,
            "gap": self.gap,
            "objective_by": self.objective_by,
            "bound_by": self.bound_by,
            "schedules": [schedule.to_dict() for schedule in self.schedules.values()],
            "method": self.method,
            "seconds": self.seconds,
            "history": [milestone.to_dict() for milestone in self.history],
            "parameters": dict(self.parameters),
            "version": self.version,
        }
