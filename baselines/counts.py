"""How many workers and parameter servers a job runs with under the policies that fix them."""

from __future__ import annotations

import numpy as np

from oasis.scheduling import EmptyCluster, PolicyJob

LEAST, MOST = 1, 30


class FixedCounts:
    """Fixed counts of workers and parameter servers for each job, drawn at its arrival.

    The paper fixes: counts drawn from 1-30 (section V-A). Chosen: uniform; n workers become
    min(n, N_i) and the parameter servers are clipped to [ceil(n b_i / B_i), n], so that (3),
    (6) and (7) hold, and a job that needs none has none; counts that the empty cluster cannot
    hold shrink, workers first, until it can, since nobody may wait forever behind a request
    that can never be met. The draws follow the order of arrival: the same seed gives a job the
    same counts under every policy. Jobs that say with how many workers they are to run (rigid
    jobs, and elastic ones with `initial_workers`) draw nothing.

    Parameters
    ----------
    seed : int
        Seed of the draws.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def reset(self, empty: EmptyCluster) -> None:
        """Begin a new run on a cluster that is `empty` now."""
        self._rng = np.random.default_rng(self._seed)
        self._empty = empty

    def draw(self, job: PolicyJob) -> tuple[int, int] | None:
        """Workers and parameter servers of `job`; None if not even the smallest ever fit."""
        workers = job.fixed_workers
        if workers is not None:
            ps = job.ps_needed(workers)
            return (workers, ps) if self._empty.holds(job, workers, ps) else None
        drawn = self._rng.integers(LEAST, MOST + 1, size=2).tolist()
        for workers in range(min(drawn[0], job.max_workers), job.min_workers - 1, -1):
            least = job.ps_needed(workers)
            most = job.ps_most(workers) if least else 0  # nothing to collect: no parameter server
            for ps in dict.fromkeys((min(max(drawn[1], least), most), least)):
                if self._empty.holds(job, workers, ps):
                    return workers, ps
        return None
