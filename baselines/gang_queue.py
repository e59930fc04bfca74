"""Waiting jobs by the size of their gang, so that whole sizes are passed over at once."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from oasis.scheduling import Allocation, PolicyJob

Size = tuple[Any, ...]  # the demands of one task of each kind, and how many tasks there are
Key = tuple[Any, ...]


def by_arrival(job: PolicyJob) -> Key:
    """The rank of a job in order of arrival."""
    return (job.index,)


class GangQueue:
    """Waiting jobs, those of one size together; each size in order of rank, that of arrival.

    Jobs of one size need the same room, so whether any of them fits is tried with one. While jobs
    are only launched, room shrinks, so that a size that did not fit is not tried again.

    Parameters
    ----------
    counts : callable
        The workers and parameter servers that a job waits for.
    rank : callable
        The place of a job in the queue, another for each job; smaller ones stand in front.

    Examples
    --------
    >>> queue = GangQueue(lambda job: (job.min_workers, 0))
    >>> for k, least in enumerate((3, 3, 1)):
    ...     some = {"min_workers": least, "max_workers": 4, "index": k}
    ...     queue.add(PolicyJob("abc"[k], 0.0, 1.0, ((0, 1),), **some))
    >>> [job.id for job in queue], [[job.id for job in some] for some in queue.sizes()]
    (['a', 'b', 'c'], [['a', 'b'], ['c']])
    """

    def __init__(
        self,
        counts: Callable[[PolicyJob], tuple[int, int]],
        rank: Callable[[PolicyJob], Key] = by_arrival,
    ) -> None:
        self._counts, self._rank = counts, rank
        self._jobs: dict[int, PolicyJob] = {}
        self._sizes: dict[Size, list[int]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, index: int) -> bool:
        return index in self._jobs

    def __iter__(self) -> Iterator[PolicyJob]:
        return (self._jobs[index] for index in sorted(self._jobs))

    def add(self, job: PolicyJob) -> None:
        """Put `job` into the queue, at its place."""
        self._jobs[job.index] = job
        insort(self._sizes.setdefault(self.size(job), []), job.index, key=self._rank_of)

    def remove(self, job: PolicyJob) -> None:
        """Take `job` out of the queue, if it is there."""
        if job.index not in self._jobs:
            return
        size = self.size(job)
        same = self._sizes[size]
        del same[bisect_left(same, self._rank(job), key=self._rank_of)]
        if not same:
            del self._sizes[size]
        del self._jobs[job.index]

    def size(self, job: PolicyJob) -> Size:
        """What jobs have in common that fit or do not fit together."""
        return job.worker, job.ps, job.min_workers, *self._counts(job)

    def sizes(self) -> Iterator[Iterator[PolicyJob]]:
        """The jobs of each size, in order."""
        for same in self._sizes.values():
            yield (self._jobs[index] for index in same)

    def launch_all(
        self,
        key: Callable[[PolicyJob], Key],
        launch: Callable[[PolicyJob], Allocation | None],
        hopeless: set[Size],
        most: int | None = None,
    ) -> int:
        """Go through the queue in order of `key` and take out every job that `launch` launches.

        Parameters
        ----------
        key : callable
            Smaller keys go first; within a size, keys must grow with the rank.
        launch : callable
            Gives a job room and says what it holds; None if there is no room.
        hopeless : set
            Sizes known not to fit, which are passed over; those found not to fit are added.
        most : int or None
            Stop after so many; None: go through all.

        Returns
        -------
        int
            How many were launched.
        """
        launched = 0
        heads = [
            (key(self._jobs[same[0]]), same[0])
            for size, same in self._sizes.items()
            if size not in hopeless
        ]
        heapify(heads)
        while heads and launched != most:
            job = self._jobs[heappop(heads)[1]]
            size = self.size(job)
            if launch(job) is None:
                hopeless.add(size)
                continue
            self.remove(job)
            launched += 1
            if size in self._sizes:
                following = self._sizes[size][0]
                heappush(heads, (key(self._jobs[following]), following))
        return launched

    def _rank_of(self, index: int) -> Key:
        return self._rank(self._jobs[index])
