"""What jobs will earn if they run now, and what others lose meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from oasis.model import rounding
from oasis.model.rounding import TOLERANCE, FloatArray, IntArray
from oasis.scheduling import PolicyJob

SHORTEST = 1e-9  # a job that is done but for rounding still has a reward


def worth_by_slot(job: PolicyJob, horizon: float | None) -> FloatArray:
    """Utility of completing `job` in each slot, and 0 after the horizon: shape (T + 1,).

    Without a horizon or a utility (plain traces), the job is worth 1 whenever it ends.
    """
    if horizon is None or not job.has_utility:
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
        self.left, self._shares, self._discount = left, shares, discount
        self._ends = now + left
        self._worth = np.array(tables).reshape(len(left), -1)
        self._rows = np.arange(len(left))
        self._now_worth = self._at(self._ends)
        self.present = self._now_worth / (1 + discount * left)

    def cost(self, k: int) -> float:
        """What the other jobs lose if they wait until job `k` is done, times the share it takes."""
        lost = self._lost(k)
        return float(lost.sum() - lost[k]) * self._shares[k]

    def rewards(self, weight: float) -> FloatArray:
        """(weight present - (1 - weight) cost) / left of each job, shape (n,)."""
        costs = np.array([self.cost(k) for k in range(len(self.left))])
        gains: FloatArray = weight * self.present - (1 - weight) * costs
        return gains / np.maximum(self.left, SHORTEST)

    def candidate(self, k: int, order: Sequence[int]) -> tuple[float, float]:
        """Discounted yield of job `k`, and what it costs, if the jobs run in this `order`.

        The cluster is one resource of which each job takes its share, in strict order: `k` waits
        until those before it leave room, and only those behind it wait for `k`.
        """
        place = list(order).index(k)
        ends = self._ends + self._delay(order[: place + 1])
        value = self._at(ends)[k] / (1 + self._discount * self.left[k])
        lost = self._lost(k)
        return float(value), float(sum(lost[j] for j in order[place + 1 :])) * self._shares[k]

    def _delay(self, order: Sequence[int]) -> float:
        """When the last job of `order` starts, counted from now."""
        running: list[tuple[float, float]] = []
        now, free = 0.0, 1.0
        for j in order:
            while running and self._shares[j] > free + TOLERANCE:
                now, share = heappop(running)
                free += share
            heappush(running, (now + float(self.left[j]), self._shares[j]))
            free -= self._shares[j]
        return now

    def _lost(self, k: int) -> FloatArray:
        """What each job loses if it is done `left` of job `k` later."""
        return self._now_worth - self._at(self._ends + self.left[k])

    def _at(self, ends: FloatArray) -> FloatArray:
        slots: IntArray = (rounding.ceil(ends) - 1).astype(np.int64)
        found: npt.NDArray[np.float64] = self._worth[
            self._rows, np.clip(slots, 0, self._worth.shape[1] - 1)
        ]
        return found
