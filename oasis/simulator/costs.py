"""What changing an allocation costs in time; exchangeable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from oasis.scheduling.allocation import Allocation
from oasis.scheduling.job import PolicyJob


class Costs(Protocol):
    """Time without work after a change, in units of the workload's time."""

    def overhead(
        self, job: PolicyJob, before: Allocation, after: Allocation, started: bool
    ) -> float:
        """Time that `job` loses when it goes from `before` to `after`, which is not empty."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeCosts:
    """Fixed times, the same for every job.

    Parameters
    ----------
    start : float
        Of a job that never ran before.
    resume : float
        Of a job that was paused or lost a server: checkpoint and restart.
    resize : float
        When the number of workers or parameter servers changes.
    migrate : float
        When the numbers stay and tasks move.
    """

    start: float = 0.0
    resume: float = 0.0
    resize: float = 0.0
    migrate: float = 0.0

    def overhead(
        self, job: PolicyJob, before: Allocation, after: Allocation, started: bool
    ) -> float:
        if not before.workers:
            return self.resume if started else self.start
        same = before.worker_count == after.worker_count and before.ps_count == after.ps_count
        return self.migrate if same else self.resize
