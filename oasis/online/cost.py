"""What a schedule costs at the prices of a ledger: the sums that (20) subtracts."""

from __future__ import annotations

from dataclasses import dataclass

from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule
from oasis.online.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a schedule at given prices, split by slot, server and resource.

    Parameters
    ----------
    workers : (P, R) float array
        Cost of each row of ``Schedule.workers`` and resource, in units of utility.
    ps : (Q, R) float array
        The same for ``Schedule.ps``.
    """

    workers: FloatArray
    ps: FloatArray

    @property
    def total(self) -> float:
        """Cost of the whole schedule."""
        return float(self.workers.sum() + self.ps.sum())


def schedule_cost(schedule: Schedule, job: Job, ledger: Ledger) -> Cost:
    """Cost of the `schedule` of `job` at the prices of `ledger`."""
    parts = []
    for group, rows, demand in (
        (ledger.worker, schedule.workers, job.worker),
        (ledger.ps, schedule.ps, job.ps),
    ):
        units = rows[:, COUNT, None] * as_array(demand, ledger.cluster.resources)
        parts.append(units * group.price_at(rows[:, SLOT] - ledger.origin, rows[:, SERVER]))
    return Cost(*parts)
