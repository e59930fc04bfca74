"""The result of an offline solve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oasis.model.document import entry, list_of, mapping, optional, real, text
from oasis.model.errors import InstanceError
from oasis.model.files import frame
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.model.summary import Facts, Summarised, short
from oasis.solvers import Status, relative_gap
from oasis.version import __version__


@dataclass(frozen=True, slots=True)
class Milestone:
    """State of a solve at one moment.

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
        """Relative gap of objective and upper bound; infinite without an objective."""
        return relative_gap(self.objective, self.upper_bound)

    def to_dict(self) -> dict[str, float | None]:
        """Plain data for JSON; an infinite bound becomes null."""
        bound = self.upper_bound
        return {
            "seconds": round(self.seconds, 3),
            "objective": self.objective,
            "upper_bound": bound if math.isfinite(bound) else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Milestone:
        """Rebuild from `to_dict`; `InstanceError` with the path of what is missing or wrong."""
        bound = entry(data, "upper_bound", optional(real))
        return cls(
            entry(data, "seconds", real),
            entry(data, "objective", optional(real)),
            math.inf if bound is None else bound,
        )


@dataclass(frozen=True, slots=True, repr=False)
class OfflineResult(Summarised):
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
        Method that was used.
    seconds : float
        Wall-clock time taken.
    parameters : mapping of str to plain data
        Options of the solve, the parameters of the method under "params", and the solver's version.
    version : str
        Version of this package.
    objective_by, bound_by : str
        Which part of the method found `schedules`, and which proved `upper_bound`.
    history : tuple of Milestone
        Objective and bound over time, oldest first; measured, so not part of equality.

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
    history: tuple[Milestone, ...] = field(default=(), compare=False)

    @property
    def gap(self) -> float:
        """``(upper_bound - objective) / max(objective, 1e-9)``."""
        return relative_gap(self.objective, self.upper_bound)

    def gap_at(self, seconds: float) -> float:
        """Return the gap after `seconds`, exact to 1% of that time; inf before any milestone."""
        passed = [milestone.gap for milestone in self.history if milestone.seconds <= seconds]
        return passed[-1] if passed else math.inf

    def summary(self) -> tuple[str, Facts]:
        """Status, objective, bound, gap, number of admitted jobs, method and seconds."""
        return "OfflineResult", [
            ("status", str(self.status)),
            ("objective", short(self.objective)),
            ("upper bound", short(self.upper_bound)),
            ("gap", f"{100 * self.gap:.3g}%"),
            ("admitted", f"{len(self.schedules)} jobs"),
            ("method", self.method),
            ("seconds", short(self.seconds)),
        ]

    def to_frame(self) -> Any:
        """Schedules as a pandas DataFrame: a row for each job that is admitted.

        Returns
        -------
        pandas.DataFrame
            With the columns job_id, start, completion and worker_slots.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed, naming the extra that brings it.

        Examples
        --------
        >>> import oasis
        >>> from offline import solve
        >>> instance = oasis.generate("testbed", jobs=3, seed=1)
        >>> list(solve(instance, method="milp").to_frame()["job_id"])
        ['j0', 'j2']
        """
        plans = self.schedules.values()
        return frame([{name: getattr(plan, name) for name in FRAME} for plan in plans], FRAME)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``seconds`` and ``history`` are measured. See `from_dict`."""
        return {
            "kind": KIND,
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

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OfflineResult:
        """Rebuild from `to_dict`, also after a trip through JSON; further keys do not matter.

        Raises
        ------
        InstanceError
            With the path of what is missing or wrong.

        Examples
        --------
        >>> from offline import OfflineResult, Status
        >>> result = OfflineResult(Status.TIME_LIMIT, 8.0, 10.0, {}, method="milp", seconds=60.0)
        >>> OfflineResult.from_dict(result.to_dict()) == result
        True
        """
        return cls(
            status=entry(data, "status", _status),
            objective=entry(data, "objective", real),
            upper_bound=entry(data, "upper_bound", real),
            schedules=entry(data, "schedules", schedules_by_job),
            method=entry(data, "method", text),
            seconds=entry(data, "seconds", real),
            parameters=entry(data, "parameters", mapping),
            version=entry(data, "version", text),
            objective_by=entry(data, "objective_by", text),
            bound_by=entry(data, "bound_by", text),
            history=entry(data, "history", list_of(Milestone.from_dict)),
        )


def _status(value: Any) -> Status:
    try:
        return Status(value)
    except ValueError:
        known = ", ".join(Status)
        raise InstanceError("", f"expected one of {known}", value) from None


KIND = "solve"
FRAME = {"job_id": "string", "start": "Int64", "completion": "Int64", "worker_slots": "Int64"}
