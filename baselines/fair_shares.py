"""The shares that jobs would have if the cluster were one machine that could be cut anywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from baselines.pools import Pools
from oasis.model.rounding import FloatArray
from oasis.scheduling.allocation import Allocation
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.site import Site

NEGLIGIBLE = 1e-12


class Portions:
    """What one worker takes of the cluster, with the part of a parameter server that it needs.

    Parameters
    ----------
    site : Site
        The machines, whose resources are those of `Pools`.
    """

    def __init__(self, site: Site) -> None:
        self._pools, self._grid = Pools(site), site.grid
        self.totals = self._pools.totals
        self.kinds = int(np.count_nonzero(self.totals))

    def of_task(self, job: PolicyJob, group: str) -> FloatArray:
        """Share of each resource that one task of `group` takes, shape (K,)."""
        portion = np.zeros(len(self.totals))
        for resource, amount in job.worker if group == "worker" else job.ps:
            place = self._pools.place(group, resource)
            total = self.totals[place] * self._grid
            portion[place] = amount / total if total else 0.0  # it fits nowhere
        return portion

    def of_worker(self, job: PolicyJob) -> FloatArray:
        """The same of a worker with its part of the parameter servers.

        That is b_i / B_i of one; a fixed number of them is divided among the fewest workers.
        """
        portion = self.of_task(job, "worker")
        per_worker, fixed = job.ps_line
        part = per_worker + fixed / job.min_workers
        if part:
            portion += part * self.of_task(job, "ps")
        return portion

    def supply(self, capacity: Sequence[tuple[int, ...]]) -> FloatArray:
        """Share of each resource on machines of `capacity` (grid units), 1 unless some are down."""
        there = self._pools.sums(capacity)
        full = self.totals * self._grid
        found: FloatArray = np.minimum(1.0, np.divide(there, full, out=full * 0, where=full > 0))
        return found


@dataclass(frozen=True, slots=True)
class Fairness:
    """How far jobs are from the dominant shares that are fair at one moment.

    Parameters
    ----------
    per_worker : mapping of int to float
        Dominant share of one worker of each job.
    fair : mapping of int to float
        Dominant share that is fair.
    """

    per_worker: Mapping[int, float]
    fair: Mapping[int, float]

    @classmethod
    def among(
        cls, jobs: Mapping[int, PolicyJob], portions: Portions, capacity: Sequence[tuple[int, ...]]
    ) -> Fairness:
        """Of `jobs` on machines of `capacity`."""
        workers = {index: portions.of_worker(job) for index, job in jobs.items()}
        most = {index: job.max_workers for index, job in jobs.items()}
        fair = fair_shares(workers, most, portions.supply(capacity))
        return cls({index: float(portion.max()) for index, portion in workers.items()}, fair)

    def loss(self, index: int, workers: int) -> float:
        """Distance of a job with so many workers from its fair share."""
        return abs(self.per_worker[index] * workers - self.fair[index])

    def total(self, held: Mapping[int, Allocation]) -> float:
        """Sum over the jobs of `held`."""
        return math.fsum(self.loss(index, given.worker_count) for index, given in held.items())


def fair_shares(
    portions: Mapping[int, FloatArray], most: Mapping[int, int], supply: FloatArray
) -> dict[int, float]:
    """Dominant shares by progressive filling, workers taken as divisible.

    All jobs grow at one pace, measured by their dominant shares, until a resource that they need is
    used up or they have all the workers they can use (Ghodsi et al., NSDI 2011, section 4).

    Parameters
    ----------
    portions : mapping of int to (K,) float array
        `Portions.of_worker` of each job.
    most : mapping of int to int
        Most workers of each job.
    supply : (K,) float array
        Share of each resource that is there, 1 unless servers are down.

    Returns
    -------
    dict of int to float
        Dominant share of each job; 0 for one that takes nothing.
    """
    shares = dict.fromkeys(portions, 0.0)
    pace = {index: portion / portion.max() for index, portion in portions.items() if portion.max()}
    caps = {index: float(portions[index].max()) * most[index] for index in pace}
    left = supply.copy()
    growing = [index for index in pace if not (left[pace[index] > 0] <= NEGLIGIBLE).any()]
    level = 0.0
    while growing:
        drain = np.sum([pace[index] for index in growing], axis=0)
        used = drain > 0
        step = min(
            float((left[used] / drain[used]).min()),
            min(caps[index] for index in growing) - level,
        )
        level += step
        left = np.maximum(0.0, left - step * drain)
        for index in growing:
            shares[index] = min(level, caps[index])
        empty = left <= NEGLIGIBLE
        growing = [
            index
            for index in growing
            if level < caps[index] * (1 - NEGLIGIBLE) and not empty[pace[index] > 0].any()
        ]
    return shares
