"""Which numbers of workers a job may have in a slot: what models, searches and policies ask it."""

from __future__ import annotations


class WorkerCounts:
    """Base of jobs with allowed `worker_counts`; a slot without any worker is always allowed."""

    __slots__ = ()

    @property
    def worker_counts(self) -> range:
        """Numbers of workers with which the job works, the fewest first."""
        raise NotImplementedError

    @property
    def is_gang(self) -> bool:
        """Whether the job needs two workers or more at once."""
        return self.worker_counts[0] > 1

    def workers_near(self, wanted: int) -> int:
        """Return the allowed number of workers that is nearest to `wanted`."""
        counts = self.worker_counts
        return max(counts[0], min(wanted, counts[-1]))

    def workers_down_from(self, most: int) -> range:
        """Return the allowed numbers of workers up to `most`, the largest first."""
        counts = self.worker_counts
        return range(min(most, counts[-1]), counts[0] - 1, -1)

    def spare_workers(self, workers: int) -> int:
        """Return how many of its `workers` the job can give up and still have the fewest."""
        return max(0, workers - self.worker_counts[0])
