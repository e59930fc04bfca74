"""The compact model (1)-(13) as a mixed-integer program.

x_i is split over completion slots: u_i(t) = 1 says that job i completes in slot t and is worth
f_i(t - a_i), so that (1) is linear. Only variables that can be positive exist: slots from arrival
(9)(10) to the last completion worth something, servers that can hold at least one unit.
"""

from __future__ import annotations

from collections.abc import Iterator

from oasis.solvers.budget import Budget
from offline.model import constraints
from offline.model.arrays import OfflineArrays
from offline.model.capacities import Limit, limits_of_empty_servers
from offline.model.schedule_model import ScheduleModel

NO_LIMIT = Budget()

ROW_WORK = 3e-5  # of adding a row to the model, in units of about a second


class CompactModel(ScheduleModel):
    """The whole problem (1)-(13).

    Parameters
    ----------
    arrays : OfflineArrays
        The problem.
    budget : Budget
        For building the model.

    Raises
    ------
    TimeoutError
        If `budget` passes first.
    """

    def __init__(self, arrays: OfflineArrays, budget: Budget = NO_LIMIT) -> None:
        super().__init__(arrays, "oasis_offline")
        for row in constraints.of_all(arrays, self.jobs):
            self.problem.addConstraint(row)
            budget.charge(ROW_WORK)
            if budget.passed:
                raise TimeoutError("the time limit passed while the model was built")

    def limits(self) -> Iterator[Limit]:
        """(4) and (5) in every slot, as the rows of the model have them."""
        return limits_of_empty_servers(self.arrays, self.jobs)


def compact_size(arrays: OfflineArrays) -> int:
    """Number of integer variables of the compact model, about."""
    servers = len(arrays.worker.capacity) + len(arrays.ps.capacity)
    return servers * sum(arrays.horizon - job.arrival for job in arrays.jobs)
