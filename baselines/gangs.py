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
        # Kept in order, so that the first of each size is found without looking at the others.
        insort(self._sizes.setdefault(self.size(job), []), job.index, key=self._rank_of)

    def remove(self, job: PolicyJob) -> None:
        """Take `job` out of the queue, if it is there."""
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
        """Key of jobs that fit or do not fit together."""
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
            Number after which to stop; None: all.

        Returns
        -------
        int
            How many were launched.
        """
        launched = 0
        # Only the first of each size can be next, and sizes are few where jobs are many.
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
    """Running jobs in order of launch, with indices of those that may be resized.

    Attributes
    ----------
    held : dict of int to Allocation
        Allocation of each job, by index.

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
        # The sets are kept up to date at each change, so that no question goes through all jobs.
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


Held = Mapping[int, Allocation]  # what each running job holds, by its index
Changes = dict[int, Allocation]  # what some of them hold afterwards
WorkerCounts = dict[int, int]


def add_worker(room: Room, job: PolicyJob, held: Allocation, machine: int) -> Allocation | None:
    """Add one worker on `machine`, and the parameter servers that the rule then needs.

    They go to machines of the job, those with most of its workers first, and then to any other.

    Parameters
    ----------
    room : Room
        What is free beside what all jobs hold; what is added is taken from it.
    job : PolicyJob
        The job.
    held : Allocation
        Its allocation.
    machine : int
        Machine of the worker.

    Returns
    -------
    Allocation or None
        What it then holds; None, and `room` as it was, if there is no room or the job would have
        more workers than it can use.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(1,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> add_worker(room, job, Allocation(((0, 3),)), 0), room.free
    (Allocation(workers=((0, 4),), ps=()), [(0,)])
    """
    count = held.worker_count + 1
    hosts = room.site.machines_for("worker")
    if count > job.max_workers or machine not in hosts or not room.fits(machine, job.worker):
        return None
    before = room.free.copy()  # to go back to, if a parameter server finds no room
    workers, servers = dict(held.workers), dict(held.ps)
    room.take(machine, job.worker, 1)
    workers[machine] = workers.get(machine, 0) + 1
    for _ in range(job.ps_needed(count) - held.ps_count):
        # Beside most of its workers: what goes between them does not cross the network.
        host = next((m for m in _by_workers(room, workers) if room.fits(m, job.ps)), None)
        if host is None:
            room.free = before
            return None
        room.take(host, job.ps, 1)
        servers[host] = servers.get(host, 0) + 1
    return _allocation(workers, servers)


def drop_worker(room: Room, job: PolicyJob, held: Allocation, machine: int) -> Allocation:
    """Drop one worker on `machine`, and the parameter servers that the rule no longer needs.

    Parameters
    ----------
    room : Room
        What is free beside what all jobs hold; it gets what is given back.
    job : PolicyJob
        The job.
    held : Allocation
        What it holds: a worker on `machine`, and more than the fewest with which it works.
    machine : int
        Machine of the worker.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(0,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> drop_worker(room, job, Allocation(((0, 4),)), 0), room.free
    (Allocation(workers=((0, 3),), ps=()), [(1,)])
    """
    workers, servers = dict(held.workers), dict(held.ps)
    _remove(room, workers, machine, job.worker)
    for _ in range(held.ps_count - job.ps_needed(held.worker_count - 1)):
        # the server that has fewest workers beside it goes first
        host = min(servers, key=lambda m: (workers.get(m, 0), -m))
        _remove(room, servers, host, job.ps)
    return _allocation(workers, servers)


def shrink(room: Room, job: PolicyJob, held: Allocation, workers: int) -> Allocation:
    """Drop workers until `workers` are left.

    Those go first that are on a machine without a parameter server of the job; among these, and
    then among the others, those on the machine with fewest of its workers, the last by index.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), max_workers=4, fixed_ps=1)
    >>> shrink(Room(site, [(3,), (1,)]), job, Allocation(((0, 1), (1, 3)), ((0, 1),)), 2)
    Allocation(workers=((0, 1), (1, 1)), ps=((0, 1),))
    """
    while held.worker_count > workers:
        homes = dict(held.ps)
        # The machines that are nearly empty of this job come free first; the last index
        # among equals, so that those in front stay packed.
        machine, _ = min(held.workers, key=lambda task: (task[0] in homes, task[1], -task[0]))
        held = drop_worker(room, job, held, machine)
    return held


def _by_workers(room: Room, workers: WorkerCounts) -> list[int]:
    """Hosts of parameter servers: those with most of the job's workers first, then by index."""
    return sorted(room.site.machines_for("ps"), key=lambda m: (-workers.get(m, 0), m))


def _remove(room: Room, tasks: WorkerCounts, machine: int, demand: Demand) -> None:
    room.take(machine, demand, -1)
    tasks[machine] -= 1
    if not tasks[machine]:
        del tasks[machine]


def _allocation(workers: WorkerCounts, servers: WorkerCounts) -> Allocation:
    return Allocation(tuple(sorted(workers.items())), tuple(sorted(servers.items())))


class GangController(BasePolicy):
    """Base of gang controllers: waiting jobs, running jobs and free capacity.

    Chosen: a job asks for `initial_workers`, and for the fewest that it works with if its owner
    names no number; a request that the empty cluster cannot hold shrinks until it can; a job that
    lost a machine waits again at its old place in the queue.

    Parameters
    ----------
    rule : callable
        Makes a new rule for where the tasks of a job go.

    Examples
    --------
    A controller that launches whoever fits, in order of arrival:

    >>> from oasis.scheduling import OneNode
    >>> from oasis.simulator import Machine, Workload, replay
    >>> class Whoever(GangController):
    ...     def decide(self, view):
    ...         self._begin(view)
    ...         self._queue.launch_all(lambda job: (job.index,), self._launch, set())
    ...         return self._plan
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)),))
    >>> jobs = [
    ...     PolicyJob(name, 0.0, 6.0, ((0, 1),), min_workers=n, max_workers=n)
    ...     for name, n in (("a", 3), ("b", 2), ("c", 1))
    ... ]
    >>> replay(Workload.of(site, jobs), Whoever(OneNode)).completions
    [2.0, 5.0, 6.0]
    """

    def __init__(self, rule: Callable[[], Placement]) -> None:
        self._make_rule = rule

    def reset(self, site: Site) -> None:
        self._site, self._rule = site, self._make_rule()
        self._empty = EmptyCluster(site, self._make_rule)
        self._book = JobBook(self.request)
        self._queue = GangQueue(lambda job: self._book.counts[job.index])
        self._running = RunningJobs()
        self._down: Set[int] = set()
        self._room = Room(site, [])
        self._plan = Plan()

    def request(self, job: PolicyJob) -> Counts | None:
        """Number of tasks that `job` asks for; None if the empty cluster cannot hold its fewest."""
        asked = job.min_workers if job.initial_workers is None else job.initial_workers
        # A request that never fits would block a queue for ever.
        for workers in range(asked, job.min_workers - 1, -1):
            ps = job.ps_needed(workers)
            if self._empty.holds(job, workers, ps):
                return workers, ps
        return None

    def _begin(self, view: View) -> None:
        """Enter the events and the free capacity."""
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
        """Place the request of `job`; None if it does not fit."""
        found = self._rule.place(self._room, job, *self._book.counts[job.index])
        if found is not None:
            self._set(job, found)
        return found

    def _set(self, job: PolicyJob, allocation: Allocation) -> None:
        """Let `job` hold `allocation` from now on."""
        self._running.set(job, allocation)
        self._plan.changes[job.index] = allocation

    def _resize(self, changes: Changes) -> None:
        """Let running jobs hold what `changes` says."""
        for index, allocation in changes.items():
            self._set(self._running[index], allocation)
