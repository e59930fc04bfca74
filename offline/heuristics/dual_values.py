"""Order of jobs from the dual values of a bound: which to try first, which to insert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers.budget import NO_LIMIT, Budget
from offline.column_generation.pricing import empty, in_time, price
from offline.model.arrays import OfflineArrays

# Standard deviation of the normal variable whose exponential multiplies a job's priority:
# orders differ, and the best jobs still come first.
PRIORITY_NOISE = 0.3
# Of a job's best utility: what counts as payoff where it has none, so that it is tried now and
# then.
HOPE = 0.05
LEAST = 1e-3  # of a job's best utility: its priority without payoff
TINY = 1e-12  # so that every job has some chance


@dataclass(frozen=True, slots=True, eq=False)
class DualValues:
    """Prices of a bound, and what jobs are worth at these."""

    worker_prices: FloatArray
    ps_prices: FloatArray
    payoffs: FloatArray
    best: FloatArray

    @classmethod
    def of(
        cls,
        arrays: OfflineArrays,
        worker_prices: FloatArray,
        ps_prices: FloatArray,
        budget: Budget = NO_LIMIT,
    ) -> DualValues:
        """Price every job at these prices, and at none, on the empty cluster."""
        dear = empty(arrays, worker_prices, ps_prices)
        free = empty(arrays, worker_prices * 0.0, ps_prices * 0.0)
        payoffs, best = (
            np.array([price(job, ledger)[0] for job in in_time(arrays.jobs, ledger, budget)])
            for ledger in (dear, free)
        )
        return cls(worker_prices, ps_prices, payoffs, best)

    @property
    def chances(self) -> FloatArray:
        """Relative probability that each job is tried again, shape (I,)."""
        chances: FloatArray = self.payoffs + HOPE * self.best + TINY
        return chances

    def order(self, jobs: Sequence[int], rng: np.random.Generator) -> list[int]:
        """Jobs by payoff, by payoff per utility or at random, with some noise."""
        noise = np.exp(rng.normal(0.0, PRIORITY_NOISE, len(jobs)))
        ids = np.array(jobs, dtype=np.int64)
        keys = (self.payoffs[ids], self.payoffs[ids] / np.maximum(self.best[ids], 1e-300))
        # No one order is best on all instances, so each of three has its turn.
        choice = int(rng.integers(3))
        key = (keys[choice] + LEAST * self.best[ids]) * noise if choice < 2 else noise
        return [jobs[k] for k in np.argsort(-key, kind="stable").tolist()]
