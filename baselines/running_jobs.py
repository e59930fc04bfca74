"""The running jobs of a controller: what each holds, and which of them can grow or shrink."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oasis.scheduling import NOTHING, Allocation, PolicyJob


class RunningJobs:
    """Jobs that run, in order of launch; whom a controller may resize is known without a search.

    Attributes
    ----------
    held : dict of int to Allocation
        What each job holds, by its index.

    Examples
    --------
    >>> running = RunningJobs()
    >>> for k, workers in enumerate((1, 2, 3)):
    ...     job = PolicyJob("abc"[k], 0.0, 1.0, ((0, 1),), max_workers=3, index=k)
    ...     running.set(job, Allocation(((0, workers),)))
    >>> [[job.id for job in some] for some in (running, running.growing(), running.shrinking())]
    [['a', 'b', 'c'], ['a', 'b'], ['b', 'c']]
    """

    def __init__(self) -> None:
        self.held: dict[int, Allocation] = {}
        self._jobs: dict[int, PolicyJob] = {}
        self._order: dict[int, int] = {}
        self._launched = 0
        self._growing: dict[int, set[int]] = {}  # by machine
        self._can_grow: set[int] = set()
        self._can_shrink: set[int] = set()

    def __iter__(self) -> Iterator[PolicyJob]:
        return iter(self._jobs.values())

    def __contains__(self, index: int) -> bool:
        return index in self._jobs

    def __getitem__(self, index: int) -> PolicyJob:
        return self._jobs[index]

    def set(self, job: PolicyJob, allocation: Allocation) -> None:
        """Let `job`, which may be new here, hold `allocation`."""
        index = job.index
        before = self.held.get(index, NOTHING)
        if index not in self._jobs:
            self._jobs[index], self._order[index] = job, self._launched
            self._launched += 1
        self.held[index] = allocation
        workers = allocation.worker_count
        for machine in before.machines:
            self._growing.get(machine, set()).discard(index)
        self._can_grow.discard(index)
        if workers < job.max_workers:
            self._can_grow.add(index)
            for machine in allocation.machines:
                self._growing.setdefault(machine, set()).add(index)
        (self._can_shrink.add if workers > job.min_workers else self._can_shrink.discard)(index)

    def remove(self, job: PolicyJob) -> None:
        """Forget `job`, if it is here."""
        index = job.index
        if index not in self._jobs:
            return
        del self._jobs[index], self._order[index]
        for machine in self.held.pop(index).machines:
            self._growing.get(machine, set()).discard(index)
        self._can_grow.discard(index)
        self._can_shrink.discard(index)

    def growing(self) -> list[PolicyJob]:
        """Jobs with fewer workers than they can use."""
        return self._in_order(self._can_grow)

    def growing_on(self, machine: int) -> list[PolicyJob]:
        """Those of them that have a task on `machine`."""
        return self._in_order(self._growing.get(machine, ()))

    def shrinking(self) -> list[PolicyJob]:
        """Jobs with more workers than they need."""
        return self._in_order(self._can_shrink)

    def _in_order(self, indices: Iterable[int]) -> list[PolicyJob]:
        return [self._jobs[index] for index in sorted(indices, key=self._order.__getitem__)]
