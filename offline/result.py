"""What an offline solve returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oasis.schedule import Schedule
from oasis.solvers import Status, relative_gap
from oasis.version import __version__


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
        What the method was told, and the solver it used.
    version : str
        Version of this package.
    """

    status: Status
    objective: float
    upper_bound: float
    schedules: Mapping[str, Schedule]
    method: str
    seconds: float
    parameters: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__

    @property
    def gap(self) -> float:
        """``(upper_bound - objective) / max(objective, 1e-9)``."""
        return relative_gap(self.objective, self.upper_bound)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "status": str(self.status),
            "objective": self.objective,
            "upper_bound": self.upper_bound,
            "gap": self.gap,
            "schedules": [schedule.to_dict() for schedule in self.schedules.values()],
            "method": self.method,
            "seconds": self.seconds,
            "parameters": dict(self.parameters),
            "version": self.version,
        }
