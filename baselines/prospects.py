"""What jobs will earn if they run now, and what others lose meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from oasis import rounding
from oasis.rounding import FloatArray, IntArray
from oasis.simulator import SimJob


def worth_by_slot(job: SimJob, horizon: float | None) -> FloatArray:
    """Utility of completing `job` in each slot, and 0 after the horizon: shape (T + 1,).

    Without a horizon or a utility (plain traces), the job is worth 1 whenever it ends.
    """
    if horizon is None or job.utility is None:
        return np.ones(1)
    worth = np.zeros(int(horizon) + 1)
    first = int(job.arrival)
    worth[first:-1] = job.utility(np.arange(int(horizon) - first))
    return worth


class Prospects:
    """Prospects of n jobs at one moment.

    Parameters
    ----------
    now : float
        The time.
    left : (n,) float array
        Remaining processing time of each job.
    tables : sequence of (T + 1,) float array
        `worth_by_slot` of each job.
    shares : sequence of float
        Part of the cluster that each job takes.
    discount : float
        Per unit of time.

    Attributes
    ----------
    present : (n,) float array
        yield / (1 + discount left): what each job earns if it runs now to its end, discounted.
    """

    def __init__(
        self,
        now: float,
        left: FloatArray,
        tables: Sequence[FloatArray],
        shares: Sequence[float],
        discount: float,
    ) -> None:
        self.left, self._shares = left, shares
        self._ends = now + left
        self._worth = np.array(tables).reshape(len(left), -1)
        self._rows = np.arange(len(left))
        self._now_worth = self._at(self._ends)
        self.present = self._now_worth / (1 + discount * left)

    def cost(self, k: int) -> float:
        """What the other jobs lose if they wait until job `k` is done, times the share it takes."""
        lost = self._now_worth - self._at(self._ends + self.left[k])
        return float(lost.sum() - lost[k]) * self._shares[k]

    def _at(self, ends: FloatArray) -> FloatArray:
        slots: IntArray = (rounding.ceil(ends) - 1).astype(np.int64)
        found: npt.NDArray[np.float64] = self._worth[
            self._rows, np.clip(slots, 0, self._worth.shape[1] - 1)
        ]
        return found
