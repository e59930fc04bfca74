"""How many workers and parameter servers a job runs with under the policies that fix them."""

from __future__ import annotations

import numpy as np

from oasis.scheduling.placement import place
from oasis.simulator import Placement, PolicyJob, Room, Site

LEAST, MOST = 1, 30
NEVER_FITS = "does not fit the empty cluster"


class FixedCounts:
    """Fixed counts of workers and parameter servers for each job, drawn at its arrival.

    The paper fixes: counts drawn from 1-30 (section V-A). Chosen: uniform; n workers become
    min(n, N_i) and the parameter servers are clipped to [ceil(n b_i / B_i), n], so that (3), (6)
    and (7) hold; counts that the empty cluster cannot hold shrink, workers first, until it can,
    since nobody may wait forever behind a request that can never be met. The draws follow the order
    of arrival: the same seed gives a job the same counts under every policy. Rigid jobs run with
    what they ask for, and draw nothing.

    Parameters
    ----------
    seed : int
        Of the draws.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def reset(self, site: Site, placement: Placement) -> None:
        """Begin a new run."""
        self._rng = np.random.default_rng(self._seed)
        self._site, self._placement = site, placement
        self._empty = [machine.capacity for machine in site.machines]
        self._largest: dict[tuple[object, ...], bool] = {}

    def draw(self, job: PolicyJob) -> tuple[int, int] | None:
        """Workers and parameter servers of `job`; None if not even the smallest ever fit."""
        if job.min_workers == job.max_workers:
            workers = job.max_workers
            ps = job.ps_needed(workers)
            return (workers, ps) if self._fits(job, workers, ps) else None
        drawn = self._rng.integers(LEAST, MOST + 1, size=2).tolist()
        for workers in range(min(drawn[0], job.max_workers), job.min_workers - 1, -1):
            least = job.ps_needed(workers)
            for ps in dict.fromkeys((min(max(drawn[1], least), workers), least)):
                if self._fits(job, workers, ps):
                    return workers, ps
        return None

    def _fits(self, job: PolicyJob, workers: int, ps: int) -> bool:
        """Whether the empty cluster holds so much; plain jobs of one size are asked once."""
        key = (job.worker, job.ps, workers, ps)
        if key not in self._largest:
            room = Room(self._site, self._empty.copy())
            self._largest[key] = place(room, job, workers, ps, self._placement) is not None
        return self._largest[key]
