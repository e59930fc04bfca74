"""Policies that serve jobs in one order and let them run to their end: FIFO, SJF, EASY."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import groupby

from baselines.counts import FixedCountPolicy
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.scheduling import Allocation, Plan, PolicyJob, Room, Site, View
from oasis.scheduling.job import Demand

STRICT, FIT = "strict", "fit"


def check_line(line: str) -> str:
    """Return `line`; raise an error if it is no kind of line."""
    if line not in (STRICT, FIT):
        raise InputError("line", f"expected {STRICT} or {FIT}", line)
    return line


class Misfits:
    """Sizes of jobs that did not fit at this instant, so that none of them is tried again."""

    # What is free only shrinks while a policy serves its line, so the answer would be the same.

    def __init__(self) -> None:
        self._sizes: set[tuple[object, ...]] = set()

    def has(self, job: PolicyJob, workers: int, ps: int) -> bool:
        """Return whether a job with this demand and these counts has failed to fit."""
        # An empty set is the usual case; it is told apart before a key is built.
        return bool(self._sizes) and (job.worker, job.ps, workers, ps) in self._sizes

    def add(self, job: PolicyJob, workers: int, ps: int) -> None:
        """Record that `job` with these counts did not fit."""
        self._sizes.add((job.worker, job.ps, workers, ps))


class OneLine(FixedCountPolicy):
    """Base of policies that serve jobs with fixed counts in one order."""

    keeps_run_times = True

    def __init__(
        self, seed: int | None = 0, *, line: str = STRICT, placement: str | None = None
    ) -> None:
        super().__init__(seed, placement=placement)
        self.line = check_line(line)


Key = tuple[float, int]
Size = tuple[Demand, Demand, int, int]  # what a worker and a parameter server need; their counts


class Queued(OneLine):
    """At every event, start the jobs that wait in order until one does not fit."""

    def reset(self, site: Site) -> None:
        super().reset(site)
        # A strict line is a heap, from which only its head is taken: a job that left it in another
        # way is passed over when it comes up. The other line is sorted.
        self._line: list[Key] = []
        self._waits: set[int] = set()

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        """Return the sort key of `job`: smaller ones go first; equals in order of arrival."""
        raise NotImplementedError

    def decide(self, view: View) -> Plan:
        plan = Plan()
        # A finished job that waits was taken back by its owner; any
        # other left the line when it started.
        if view.finished and self._waits:
            self._take_out(view.finished)
        for job in (*self._book.update(view, plan), *view.evicted):
            self._enter(job, view)
        if self._waits:
            self._serve(view, plan)
            self._waits.difference_update(plan.changes)
        return plan

    def _take_out(self, departed: Sequence[PolicyJob]) -> None:
        """Remove from the line those `departed` jobs that waited: their owners took them back."""
        gone = self._waits.intersection(job.index for job in departed)
        if gone:
            # A sorted list is a heap.
            self._line = sorted(key for key in self._line if key[1] not in gone)
            self._waits -= gone

    def _enter(self, job: PolicyJob, view: View) -> None:
        workers, _ = self._book.counts[job.index]
        # The index breaks ties: by arrival, and a job that lost a
        # server comes back to its old place.
        enter = insort if self.line == FIT else heappush
        enter(self._line, (self.key(job, workers, view), job.index))
        self._waits.add(job.index)

    def _serve(self, view: View, plan: Plan) -> None:
        room = Room(self._site, view.free(), view.down())
        if self.line == FIT:
            self._line = self._fit(room, plan)
            return
        self._from_the_head(room, plan)

    def _from_the_head(self, room: Room, plan: Plan) -> None:
        """Start the jobs of a strict line until one does not fit."""
        jobs, counts, place = self._book.jobs, self._book.counts, self._placement.place
        line, waits = self._line, self._waits
        while line:
            index = line[0][1]
            if index in waits:
                workers, ps = counts[index]
                allocation = place(room, jobs[index], workers, ps)
                if allocation is None:
                    return
                plan.changes[index] = allocation
                waits.remove(index)
            heappop(line)

    def _fit(self, room: Room, plan: Plan) -> list[Key]:
        """Start all jobs of the line that fit; return the keys of the others."""
        misfits, passed = Misfits(), []
        for key in self._line:
            job, tasks = self._book.jobs[key[1]], self._book.counts[key[1]]
            allocation = None
            if not misfits.has(job, *tasks):
                allocation = self._placement.place(room, job, *tasks)
            if allocation is None:
                misfits.add(job, *tasks)
                passed.append(key)
            else:
                plan.changes[job.index] = allocation
        return passed


class FIFO(Queued):
    """Jobs start in order of arrival and run to their end.

    The OASiS paper fixes (section V-A): order of arrival, fixed counts of workers and parameter
    servers, placement round-robin on servers with room; the head of the line blocks. Chosen: the
    counts (`FixedCounts`); a job that lost a server returns to its place in the line; plain jobs go
    best fit, lowest index first. With ``line="fit"`` a job that does not fit is passed: first fit
    in order of arrival (Feitelson, "A survey of scheduling in multiprogrammed parallel systems",
    IBM RC 19790, 1994), under which wide jobs may never start.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    The last job would fit beside the first, but waits behind the second:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> sizes = {"a": 4, "b": 8, "c": 4}
    >>> jobs = [PlainJob(name, 0.0, 60.0, gpus) for name, gpus in sizes.items()]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO())
    >>> [(job.start, job.end) for job in outcome.jobs]
    [(0.0, 60.0), (60.0, 120.0), (120.0, 180.0)]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO(line="fit"))
    >>> [(job.start, job.end) for job in outcome.jobs]
    [(0.0, 60.0), (60.0, 120.0), (0.0, 60.0)]
    """

    name = "fifo"

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return 0.0


class SJF(Queued):
    """The shortest waiting job starts first; running jobs continue to their end.

    The rule is textbook (Conway, Maxwell and Miller, "Theory of Scheduling", 1967, chapter 8: of
    the rules for one machine that never preempt it has the least mean). Chosen: the length of a job
    is its remaining work over its fixed number of workers, known at arrival; equal ones in order of
    arrival; a job that lost a server returns with what is left of it.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    The long job runs to its end, but the last one passes the second:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> rows = [(0.0, 60.0), (5.0, 40.0), (10.0, 20.0)]
    >>> jobs = [PlainJob(f"j{k}", *row, 8) for k, row in enumerate(rows)]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), SJF())
    >>> [job.end for job in outcome.jobs]
    [60.0, 120.0, 80.0]
    """

    name = "sjf"
    told_remaining = True

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return rounding.key(view.remaining(job) / workers)


ROUNDING = 1e-9  # relative, of times


def _waits(work: float) -> bool:
    return work < math.inf


class Waiting:
    """Jobs of one size that wait: their indices, and the work of each."""

    # A tree of the least work of each half finds the next job that has no more than so much,
    # without a look at those before it: on an overloaded cluster, hundreds of thousands wait.

    def __init__(self) -> None:
        self._indices: list[int] = []  # of those that wait or waited, in order
        self._leaves = 1  # of the tree
        self._least = [math.inf, math.inf]  # by node: the root is 1, below k are 2 k and 2 k + 1
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def enter(self, index: int, work: float) -> None:
        """Add the waiting job with this index and remaining `work`."""
        self._count += 1
        place = bisect_left(self._indices, index)
        is_there = self._indices[place : place + 1] == [index]
        if not is_there and (place < len(self._indices) or place == self._leaves):
            # One that came before others comes back, or the tree is full.
            self._rebuild(index)
            place = bisect_left(self._indices, index)
        elif not is_there:
            self._indices.append(index)
        self._set(place, work)

    def leave(self, index: int) -> None:
        """Remove the job with this index."""
        self._count -= 1
        self._set(bisect_left(self._indices, index), math.inf)

    def has_after(self, index: int) -> bool:
        """Return whether a job with a larger index waits."""
        return self._find(index, _waits) is not None

    def next(
        self, after: int, failed: Collection[bool], is_quick: Callable[[float], bool]
    ) -> int | None:
        """Return the next index behind `after` of a kind (quick: True) that is not in `failed`."""
        if True not in failed:
            fits = is_quick if False in failed else _waits
            return self._find(after, lambda work: _waits(work) and fits(work))
        position = None if False in failed else self._find(after, _waits)
        while position is not None and is_quick(self._work(position)):
            position = self._find(position, _waits)
        return position

    def _work(self, index: int) -> float:
        """Return the work of the job with this index."""
        return self._least[self._leaves + bisect_left(self._indices, index)]

    def _rebuild(self, index: int) -> None:
        """Rebuild the tree with a leaf for `index`, and without jobs that no longer wait."""
        works = self._least[self._leaves : self._leaves + len(self._indices)]
        works_of = {i: work for i, work in zip(self._indices, works, strict=True) if _waits(work)}
        self._indices = sorted((*works_of, index))
        # Twice as many leaves as jobs at least, so that a rebuild pays for as many arrivals.
        self._leaves = 1 << (2 * len(self._indices)).bit_length()
        row = [works_of.get(i, math.inf) for i in self._indices]
        row += [math.inf] * (self._leaves - len(row))
        levels = [row]
        while len(levels[-1]) > 1:
            below = levels[-1]
            levels.append(list(map(min, below[::2], below[1::2])))
        self._least = [math.inf, *(work for level in reversed(levels) for work in level)]

    def _set(self, place: int, work: float) -> None:
        """Set the work of the leaf at `place`, and the least work of the nodes above."""
        least, node = self._least, self._leaves + place
        least[node] = work
        node //= 2
        while node:
            least[node] = min(least[2 * node], least[2 * node + 1])
            node //= 2

    def _find(self, after: int, fits: Callable[[float], bool]) -> int | None:
        """Return the first index behind `after` whose work `fits` (monotone); None without one."""
        # A node has the least work below it: if that does not fit, nothing below it does.
        place = bisect_right(self._indices, after)
        if place == len(self._indices):
            return None
        least, node = self._least, self._leaves + place
        while not fits(least[node]):
            # Up as long as there is nothing on the right, and then to the right.
            while node % 2:
                node //= 2
            if not node:
                return None
            node += 1
        while node < self._leaves:
            node = 2 * node if fits(least[2 * node]) else 2 * node + 1
        return self._indices[node - self._leaves]


class Ends:
    """Lower bounds on the ends of running jobs; exact ends are computed only when needed."""

    def __init__(self) -> None:
        self._bounds: list[tuple[float, int]] = []
        self._of: dict[int, float] = {}

    def add(self, index: int, bound: float) -> None:
        """Record that the job with this index ends at `bound` or later."""
        self._of[index] = bound
        insort(self._bounds, (bound, index))

    def remove(self, index: int) -> None:
        """Forget the job with this index; nothing happens if it is unknown."""
        bound = self._of.pop(index, None)
        if bound is not None:
            del self._bounds[bisect_left(self._bounds, (bound, index))]

    def in_order(
        self, more: Sequence[tuple[float, int]], end: Callable[[int], float]
    ) -> Iterator[tuple[float, int]]:
        """Yield (end, index) of all jobs and of `more` by end; `end` gives exact ends, lazily."""
        ends, bounds = list(more), iter(self._bounds)
        heapify(ends)
        following = next(bounds, None)
        while ends or following:
            # Rounding may move an end a little: those that end together are found together.
            while following and (
                not ends or following[0] <= ends[0][0] + ROUNDING * (1 + abs(ends[0][0]))
            ):
                heappush(ends, (end(following[1]), following[1]))
                following = next(bounds, None)
            yield heappop(ends)


class EASY(Queued):
    """EASY backfilling: jobs start in order of arrival; others may pass if the head is not delayed.

    Lifka (JSSPP 1995, "The ANL/IBM SP scheduling system") fixes: first come, first served; when
    the head of the line does not fit, it is promised the earliest time at which the ends of running
    jobs make room for it; a job behind it starts now if it fits now and either ends by that time
    or takes nothing that the head will need then. Only the head is promised anything (Mu'alem and
    Feitelson, IEEE TPDS 12(6), 2001). Chosen: run times are known exactly, the remaining work over
    the fixed number of workers, and end with the slot on instances; what the head will need are the
    places that it would be given at that time; those behind are tried in order of arrival.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    The third job passes the second and is gone when that can start; the fourth would delay it:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> rows = [(60.0, 4), (60.0, 8), (60.0, 4), (90.0, 4)]
    >>> jobs = [PlainJob(f"j{k}", float(k), *row) for k, row in enumerate(rows)]
    >>> jobs[2] = PlainJob("j2", 2.0, 58.0, 4)
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), EASY())
    >>> [job.start for job in outcome.jobs]
    [0.0, 60.0, 2.0, 120.0]
    """

    name = "easy"
    told_remaining = True

    def __init__(self, seed: int | None = 0, *, placement: str | None = None) -> None:
        super().__init__(seed, placement=placement)

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return 0.0

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._ends = Ends()
        self._sizes: dict[Size, Waiting] = {}

    def decide(self, view: View) -> Plan:
        for job in (*view.finished, *view.evicted):
            self._ends.remove(job.index)
        plan = super().decide(view)
        for index in plan.changes:
            job, (workers, _) = self._book.jobs[index], self._book.counts[index]
            # One worker is never faster than one worker: such a job ends no sooner than this.
            self._ends.add(index, self._end(job, view) if workers == 1 else -math.inf)
        return plan

    def _take_out(self, departed: Sequence[PolicyJob]) -> None:
        for job in departed:
            if job.index in self._waits:
                self._leave(job.index)
        super()._take_out(departed)

    def _enter(self, job: PolicyJob, view: View) -> None:
        super()._enter(job, view)
        waiting = self._sizes.setdefault(self._size(job.index), Waiting())
        waiting.enter(job.index, view.remaining(job))

    def _size(self, index: int) -> Size:
        """Return the size of the job with this index."""
        job = self._book.jobs[index]
        return (job.worker, job.ps, *self._book.counts[index])

    def _leave(self, index: int) -> None:
        """Remove a job that no longer waits from the jobs of its size."""
        size = self._size(index)
        self._sizes[size].leave(index)
        if not self._sizes[size]:
            del self._sizes[size]

    def _serve(self, view: View, plan: Plan) -> None:
        now = Room(self._site, view.free(), view.down())
        self._from_the_head(now, plan)
        for index in plan.changes:
            self._leave(index)
        if self._waits:
            self._pass_the_head(now, view, plan)

    def _pass_the_head(self, now: Room, view: View, plan: Plan) -> None:
        """Start waiting jobs that do not delay the first in line, in order of arrival."""
        # Jobs of one size fit alike. Each size is tried until one of its jobs does not fit: once
        # for those that end in time and need room now, and once for the others, which need room
        # beside the head as well. So a long line costs one look at each size.
        jobs, head = self._book.jobs, self._line[0][1]
        sizes = [
            size
            for size, waiting in self._sizes.items()
            if self._may_fit(size, now) and waiting.has_after(head)
        ]
        if not sizes:
            return
        # Once per event: a job that starts below either is gone by
        # then or leaves the head's places free.
        promised, later = self._promise(now, view, plan)
        failed: dict[Size, set[bool]] = {size: set() for size in sizes}
        line: list[tuple[int, int]] = []  # the next job of each size, and the size by its number

        def in_time(work: float, workers: int) -> bool:
            return rounding.within(self._end_after(work, workers, view), promised)

        def offer(number: int, after: int) -> None:
            size = sizes[number]
            if size in self._sizes:
                is_quick = partial(in_time, workers=size[2])
                position = self._sizes[size].next(after, failed[size], is_quick)
                if position is not None:
                    heappush(line, (position, number))

        for number in range(len(sizes)):
            offer(number, head)
        while line:
            index, number = heappop(line)
            is_quick = in_time(view.remaining(jobs[index]), sizes[number][2])
            placed = self._start(jobs[index], now, None if is_quick else later)
            if placed is None:
                failed[sizes[number]].add(is_quick)
            else:
                plan.changes[index] = placed
                self._leave(index)
            offer(number, index)

    def _may_fit(self, size: Size, now: Room) -> bool:
        """Return whether a job of this size may fit now; exact only for a single worker."""
        worker, _, workers, ps = size
        if workers != 1 or ps:
            return True
        return bool(now.fitting(self._site.machines_for("worker"), worker))

    def _promise(self, now: Room, view: View, plan: Plan) -> tuple[float, Room]:
        """Return when the head of the line will fit (infinity: unknown), and capacity left then."""
        jobs, (_, head) = self._book.jobs, self._line[0]
        later = Room(self._site, now.free.copy(), now.down)
        rule = self._placing.on(self._site)
        started = [(self._end(jobs[index], view), index) for index in plan.changes]
        # Release in order of the ends; jobs that end together leave together, before the head is
        # tried, so that the promise does not depend on their order.
        leaving = self._ends.in_order(started, lambda index: self._end(jobs[index], view))
        for time, together in groupby(leaving, key=lambda entry: rounding.key(entry[0])):
            for _, index in together:
                allocation = plan.changes.get(index) or view.allocation(jobs[index])
                later.release(jobs[index], allocation)
            if rule.place(later, jobs[head], *self._book.counts[head]):
                return time, later
        return math.inf, later

    def _end(self, job: PolicyJob, view: View) -> float:
        """Return when `job` ends if it runs from now on."""
        workers, _ = self._book.counts[job.index]
        return self._end_after(view.remaining(job), workers, view)

    def _end_after(self, work: float, workers: int, view: View) -> float:
        """Return when `work` is done by this many workers, from now on."""
        end = view.now + work / workers
        # A slot is held to its end, so that its machines come free with the slot.
        return float(rounding.ceil(end)) if self._site.slotted else end

    def _start(self, job: PolicyJob, now: Room, later: Room | None) -> Allocation | None:
        """Place `job` in `now`, and also in `later` if that is given; None if it does not fit."""
        tasks = self._book.counts[job.index]
        if later is None:
            return self._placement.place(now, job, *tasks)
        # It runs past the promised time, so each of its places must be free at both.
        both = [
            tuple(map(min, row, other)) for row, other in zip(now.free, later.free, strict=True)
        ]
        allocation = self._placement.place(Room(self._site, both, now.down), job, *tasks)
        if allocation is not None:
            now.occupy(job, allocation)
            later.occupy(job, allocation)
        return allocation
