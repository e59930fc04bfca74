"""Shared parts of gang controllers: the queue, running jobs, changes by one task."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from heapq import heapify, heappop, heappush
from typing import Any

from oasis.scheduling import (
    NOTHING,
    Allocation,
    BasePolicy,
    EmptyCluster,
    JobBook,
    Placement,
    Plan,
    PolicyJob,
    Room,
    Site,
)
from oasis.scheduling.book import Counts
from oasis.scheduling.job import Demand
from oasis.scheduling.policy import View

Size = tuple[Any, ...]  # the demands of one task of each kind, and how many tasks there are
Key = tuple[Any, ...]


def by_arrival(job: PolicyJob) -> Key:
    """Return the rank of a job in a queue in order of arrival."""
    return (job.index,)


class GangQueue:
    """Waiting jobs grouped by size; each group is in order of rank (of arrival, by default)."""

    # Jobs of one size need the same room, so whether any of them fits is tried with one. While jobs
    # are only launched, room shrinks, so that a size that did not fit is not tried again.

    REMADE = ("_counts", "_rank")  # a saved state has no function in it

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
        """Insert `job` into the queue, by its rank."""
        self._jobs[job.index] = job
        # Kept in order, so that the first of each size is found without looking at the others.
        insort(self._sizes.setdefault(self.size(job), []), job.index, key=self._rank_of)

    def remove(self, job: PolicyJob) -> None:
        """Take `job` out of the queue; nothing happens if it does not wait."""
        if job.index not in self._jobs:
            return
        size = self.size(job)
        same = self._sizes[size]
        # Ranks are distinct, so bisection finds the job itself.
        del same[bisect_left(same, self._rank(job), key=self._rank_of)]
        if not same:
            del self._sizes[size]
        del self._jobs[job.index]

    def size(self, job: PolicyJob) -> Size:
        """Return the size of `job`: jobs of equal size fit, or do not fit, together."""
        return job.worker, job.ps, job.worker_counts[0], *self._counts(job)

    def sizes(self) -> Iterator[Iterator[PolicyJob]]:
        """Yield the waiting jobs of each size, in order of rank."""
        for same in self._sizes.values():
            yield (self._jobs[index] for index in same)

    def launch_all(
        self,
        key: Callable[[PolicyJob], Key],
        launch: Callable[[PolicyJob], Allocation | None],
        hopeless: set[Size],
        most: int | None = None,
    ) -> int:
        """Launch jobs by `key`, at most `most`; return how many; sizes that fail are `hopeless`."""
        launched = 0
        # Only the first of each size can be next, as keys must grow with the rank within a size;
        # and sizes are few where jobs are many.
        heads = [
            (key(self._jobs[same[0]]), same[0])
            for size, same in self._sizes.items()
            if size not in hopeless
        ]
        heapify(heads)
        # One head a size: where one job of a size does not fit, the others of that size do not.
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


class RunningJobs:
    """Running jobs in order of launch, with indices of those that may be resized."""

    def __init__(self) -> None:
        self.allocations: dict[int, Allocation] = {}
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
        """Record that `job`, new or already running, holds `allocation`."""
        index = job.index
        before = self.allocations.get(index, NOTHING)
        if index not in self._jobs:
            self._jobs[index], self._order[index] = job, self._launched
            self._launched += 1
        self.allocations[index] = allocation
        workers = allocation.worker_count
        # The sets are kept up to date at each change, so that no question goes through all jobs.
        for machine in before.machines:
            self._growing.get(machine, set()).discard(index)
        self._can_grow.discard(index)
        if workers < job.max_workers:
            self._can_grow.add(index)
            for machine in allocation.machines:
                self._growing.setdefault(machine, set()).add(index)
        (self._can_shrink.add if job.spare_workers(workers) else self._can_shrink.discard)(index)

    def remove(self, job: PolicyJob) -> None:
        """Forget `job`; nothing happens if it does not run."""
        index = job.index
        if index not in self._jobs:
            return
        del self._jobs[index], self._order[index]
        for machine in self.allocations.pop(index).machines:
            self._growing.get(machine, set()).discard(index)
        self._can_grow.discard(index)
        self._can_shrink.discard(index)

    def growing(self) -> list[PolicyJob]:
        """Running jobs with fewer workers than they can use, in order of launch."""
        return self._in_order(self._can_grow)

    def growing_on(self, machine: int) -> list[PolicyJob]:
        """Running jobs that may grow and have a task on `machine`, in order of launch."""
        return self._in_order(self._growing.get(machine, ()))

    def shrinking(self) -> list[PolicyJob]:
        """Running jobs with more workers than their minimum, in order of launch."""
        return self._in_order(self._can_shrink)

    def _in_order(self, indices: Iterable[int]) -> list[PolicyJob]:
        return [self._jobs[index] for index in sorted(indices, key=self._order.__getitem__)]


Allocations = Mapping[int, Allocation]  # what each running job holds, by its index
Changes = dict[int, Allocation]  # what some of them hold afterwards
TaskCounts = dict[int, int]  # tasks by machine


def add_worker(
    room: Room, job: PolicyJob, allocation: Allocation, machine: int
) -> Allocation | None:
    """Add a worker on `machine`, and servers it needs; None if impossible: `room` is unchanged."""
    count = allocation.worker_count + 1
    hosts = room.site.machines_for("worker")
    if count > job.max_workers or machine not in hosts or not room.fits(machine, job.worker):
        return None
    before = room.free.copy()  # to go back to, if a parameter server finds no room
    workers, servers = dict(allocation.workers), dict(allocation.ps)
    room.take(machine, job.worker, 1)
    workers[machine] = workers.get(machine, 0) + 1
    for _ in range(job.ps_needed(count) - allocation.ps_count):
        # Beside most of its workers: what goes between them does not cross the network.
        host = next((m for m in _by_workers(room, workers) if room.fits(m, job.ps)), None)
        if host is None:
            room.free = before
            return None
        room.take(host, job.ps, 1)
        servers[host] = servers.get(host, 0) + 1
    return allocation_of(workers, servers)


def drop_worker(room: Room, job: PolicyJob, allocation: Allocation, machine: int) -> Allocation:
    """Remove a worker on `machine`, and servers not needed now; return the new allocation."""
    workers, servers = dict(allocation.workers), dict(allocation.ps)
    _remove(room, workers, machine, job.worker)
    for _ in range(allocation.ps_count - job.ps_needed(allocation.worker_count - 1)):
        # the server that has fewest workers beside it goes first
        host = min(servers, key=lambda m: (workers.get(m, 0), -m))
        _remove(room, servers, host, job.ps)
    return allocation_of(workers, servers)


def _by_workers(room: Room, workers: TaskCounts) -> list[int]:
    """Machines for parameter servers, those with most of `workers` first, then by index."""
    return sorted(room.site.machines_for("ps"), key=lambda m: (-workers.get(m, 0), m))


def _remove(room: Room, tasks: TaskCounts, machine: int, demand: Demand) -> None:
    room.take(machine, demand, -1)
    tasks[machine] -= 1
    if not tasks[machine]:
        del tasks[machine]


def allocation_of(workers: TaskCounts, servers: TaskCounts) -> Allocation:
    """Make an allocation of tasks by machine."""
    return Allocation(tuple(sorted(workers.items())), tuple(sorted(servers.items())))


class GangController(BasePolicy):
    """Base of gang controllers: waiting jobs, running jobs and free capacity.

    Chosen: a job asks for `initial_workers`, and for the fewest that it works with if its owner
    names no number; a request that the empty cluster cannot hold shrinks until it can; a job that
    lost a machine waits again at its old place in the queue.
    """

    REMADE = ("_make_rule",)

    def __init__(self, rule: Callable[[], Placement]) -> None:
        self._make_rule = rule

    def reset(self, site: Site) -> None:
        self._site, self._rule = site, self._make_rule()
        self._empty = EmptyCluster(site, self._make_rule)
        self._book = JobBook(self.request)
        self._queue = GangQueue(self._requested_counts)
        self._running = RunningJobs()
        self._down: Set[int] = set()
        self._room = Room(site, [])
        self._plan = Plan()

    def request(self, job: PolicyJob) -> Counts | None:
        """Return the tasks that `job` asks for; None if not even its fewest ever fit."""
        fewest, initial = job.worker_counts[0], job.initial_workers
        # A request that never fits would block a queue for ever.
        for workers in job.workers_down_from(fewest if initial is None else initial):
            ps = job.ps_needed(workers)
            if self._empty.holds(job, workers, ps):
                return workers, ps
        return None

    def _requested_counts(self, job: PolicyJob) -> Counts:
        # A method and no lambda: in a copy of the policy it belongs to the copy.
        return self._book.counts[job.index]

    def _begin(self, view: View) -> None:
        """Process arrived, ended and evicted jobs of `view`; set the free capacity."""
        self._plan = Plan()
        for job in (*view.finished, *view.evicted):
            # A job that its owner took back may be in either;
            # removing it from both needs no question.
            self._queue.remove(job)
            self._running.remove(job)
        for job in (*self._book.update(view, self._plan), *view.evicted):
            self._queue.add(job)
        self._down = view.down()
        self._room = Room(self._site, view.free(), self._down)

    def _launch(self, job: PolicyJob) -> Allocation | None:
        """Place the tasks that `job` asks for and let it run; None if they do not fit."""
        allocation = self._rule.place(self._room, job, *self._book.counts[job.index])
        if allocation is not None:
            self._set(job, allocation)
        return allocation

    def _set(self, job: PolicyJob, allocation: Allocation) -> None:
        """Record that `job` holds `allocation` from now on, also in the plan."""
        self._running.set(job, allocation)
        self._plan.changes[job.index] = allocation

    def _resize(self, changes: Changes) -> None:
        """Set the allocations in `changes`, by index of running job."""
        for index, allocation in changes.items():
            self._set(self._running[index], allocation)
