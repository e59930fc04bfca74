"""Policies that start jobs in one line and let them run to their end: FIFO, SJF, EASY."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from baselines.counts import FixedCounts, Placing
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.scheduling import Allocation, BasePolicy, JobBook, Plan, PolicyJob, Room, Site, View

STRICT, FIT = "strict", "fit"


def check_line(line: str) -> str:
    """`line`, if it is one.

    Parameters
    ----------
    line : str
        ``strict``: the first job that does not fit blocks all behind it; ``fit``: it alone waits,
        and those behind it take what there is.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> check_line("backfill")
    Traceback (most recent call last):
    oasis.model.errors.InputError: line: expected strict or fit, got 'backfill'
    """
    if line not in (STRICT, FIT):
        raise InputError("line", f"expected {STRICT} or {FIT}", line)
    return line


class Misfits:
    """Sizes of jobs that did not fit at one instant: one more job of such a size is not tried.

    What is free only shrinks while a policy serves its line, so the answer would be the same. On a
    full cluster this makes a long line cheap.

    Examples
    --------
    >>> misfits = Misfits()
    >>> first, second = (PolicyJob(name, 0.0, 1.0, ((0, 1),), max_workers=4) for name in "ab")
    >>> misfits.add(first, 4, 0)
    >>> misfits.has(second, 4, 0), misfits.has(second, 3, 0)
    (True, False)
    """

    def __init__(self) -> None:
        self._sizes: set[tuple[object, ...]] = set()

    def has(self, job: PolicyJob, workers: int, ps: int) -> bool:
        """Whether a job of the size of `job`, with so many tasks, did not fit."""
        # An empty set is the usual case; it is told apart before a key is built.
        return bool(self._sizes) and (job.worker, job.ps, workers, ps) in self._sizes

    def add(self, job: PolicyJob, workers: int, ps: int) -> None:
        """Note that `job` did not fit with so many tasks."""
        self._sizes.add((job.worker, job.ps, workers, ps))


class OneLine(BasePolicy):
    """What the policies share that serve jobs of fixed counts in one order.

    Parameters
    ----------
    seed : int or None
        Of the counts (`FixedCounts`); None: nothing is drawn.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        As for `Placing`.
    """

    def __init__(
        self, seed: int | None = 0, *, line: str = STRICT, placement: str | None = None
    ) -> None:
        self._seed, self.line = seed, check_line(line)
        self._counts, self._placing = FixedCounts(seed), Placing(placement)

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"seed": self._seed, "line": self.line, **self._placing.parameters}

    def reset(self, site: Site) -> None:
        self._site = site
        self._placement = self._placing.on(site)
        self._counts.reset(self._placing.empty(site))
        self._book = JobBook(self._counts.draw)


Key = tuple[float, int]


class Queued(OneLine):
    """At every event, start the jobs that wait in order until one does not fit.

    Nobody who runs is paused or moved. A job that lost a server returns to the line.

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
    """

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._line: list[Key] = []
        self._waits: set[int] = set()

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        """Jobs with smaller keys go first; among equals, those that arrived earlier."""
        raise NotImplementedError

    def decide(self, view: View) -> Plan:
        plan = Plan()
        # A finished job that waits was taken back by its owner; any
        # other left the line when it started.
        if view.finished and self._waits:
            self._take_out(view.finished)
        for job in (*self._book.update(view, plan), *view.evicted):
            self._enter(job, view)
        if self._line:
            self._serve(view, plan)
            self._waits.difference_update(plan.changes)
        return plan

    def _take_out(self, left: Sequence[PolicyJob]) -> None:
        """Jobs that waited when their owners took them back."""
        gone = self._waits.intersection(job.index for job in left)
        if gone:
            self._line = [key for key in self._line if key[1] not in gone]
            self._waits -= gone

    def _enter(self, job: PolicyJob, view: View) -> None:
        workers, _ = self._book.counts[job.index]
        # The index breaks ties: by arrival, and a job that lost a
        # server comes back to its old place.
        insort(self._line, (self.key(job, workers, view), job.index))
        self._waits.add(job.index)

    def _serve(self, view: View, plan: Plan) -> None:
        room = Room(self._site, view.free(), view.down())
        if self.line == FIT:
            self._line = self._fit(room, plan)
            return
        jobs, counts, place = self._book.jobs, self._book.counts, self._placement.place
        for _, index in self._line:
            workers, ps = counts[index]
            found = place(room, jobs[index], workers, ps)
            if found is None:
                break
            plan.changes[index] = found
        # A strict line starts from its head without gaps, so that the started ones are a prefix.
        del self._line[: len(plan.changes)]

    def _fit(self, room: Room, plan: Plan) -> list[Key]:
        """Start whoever fits into `room`; those who do not."""
        misfits, passed = Misfits(), []
        for key in self._line:
            job, tasks = self._book.jobs[key[1]], self._book.counts[key[1]]
            found = None
            if not misfits.has(job, *tasks):
                found = self._placement.place(room, job, *tasks)
            if found is None:
                misfits.add(job, *tasks)
                passed.append(key)
            else:
                plan.changes[job.index] = found
        return passed


class FIFO(Queued):
    """Jobs start in order of arrival and run to their end.

    The OASiS paper fixes (section V-A): order of arrival, fixed counts of workers and parameter
    servers, placement round-robin on servers with room; the head of the line blocks. Chosen: the
    counts (`FixedCounts`); a job that lost a server returns to its place in the line; plain jobs go
    best fit, lowest index first. With ``line="fit"`` a job that does not fit is passed: first fit
    in order of arrival (Feitelson, "A survey of scheduling in multiprogrammed parallel systems",
    IBM RC 19790, 1994), which may keep wide jobs waiting for ever.

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
    """Of the jobs that wait, the shortest starts first; those that run go on to their end.

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
        return view.remaining(job) / workers


class EASY(Queued):
    """Jobs start in order of arrival; those behind the head may pass if they do not delay it.

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

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"seed": self._seed, **self._placing.parameters}

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return 0.0

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._running: dict[int, PolicyJob] = {}
        # Of jobs that wait, what does not change meanwhile: the line may be thousands long.
        self._lasts: dict[int, float] = {}
        self._size: dict[int, int] = {}
        self._sizes: dict[tuple[object, ...], int] = {}

    def decide(self, view: View) -> Plan:
        for job in (*view.finished, *view.evicted):
            self._running.pop(job.index, None)
        plan = super().decide(view)
        for index in plan.changes:
            self._running[index] = self._book.jobs[index]
            del self._lasts[index], self._size[index]
        return plan

    def _enter(self, job: PolicyJob, view: View) -> None:
        super()._enter(job, view)
        tasks = self._book.counts[job.index]
        self._lasts[job.index] = view.remaining(job) / tasks[0]
        size = (job.worker, job.ps, *tasks)
        self._size[job.index] = self._sizes.setdefault(size, len(self._sizes))

    def _take_out(self, left: Sequence[PolicyJob]) -> None:
        super()._take_out(left)
        for job in left:
            self._lasts.pop(job.index, None)
            self._size.pop(job.index, None)

    def _serve(self, view: View, plan: Plan) -> None:
        super()._serve(view, plan)  # from the head on, until one does not fit
        if len(self._line) > 1:
            self._pass_the_head(view, plan)

    def _pass_the_head(self, view: View, plan: Plan) -> None:
        jobs, sizes = self._book.jobs, self._size
        now = Room(self._site, view.free(), view.down())
        for index, allocation in plan.changes.items():
            now.occupy(jobs[index], allocation)
        # Once per event: a job that starts below either is gone by
        # then or leaves the head's places free.
        promise: tuple[float, Room] | None = None
        # Two sets of sizes that did not fit: a job that ends in time needs room now, one that does
        # not needs room beside the head as well, and may fail where an equal one succeeds.
        quick, slow = set[int](), set[int]()
        # The head itself was tried already and waits for its promise.
        stay = self._line[:1]
        for key in self._line[1:]:
            index = key[1]
            size = sizes[index]
            if size in quick:  # nor beside the head
                stay.append(key)
                continue
            job, found = jobs[index], None
            if promise is None and not _holds_one(now, job):
                quick.add(size)
                stay.append(key)
                continue
            promised, later = promise = promise or self._promise(now, view, plan)
            in_time = self._end(view.now, self._lasts[index]) <= promised
            if in_time or size not in slow:
                found = self._start(job, now, None if in_time else later)
                if found is None:
                    (quick if in_time else slow).add(size)
            if found is None:
                stay.append(key)
            else:
                plan.changes[job.index] = found
        self._line = stay

    def _promise(self, now: Room, view: View, plan: Plan) -> tuple[float, Room]:
        """By when the head fits, and what is free then beside it; infinity if it cannot be told."""
        jobs, (_, head) = self._book.jobs, self._line[0]
        started = {index: jobs[index] for index in plan.changes}
        leaving = [
            (self._end(view.now, view.remaining(job) / self._book.counts[job.index][0]), job)
            for job in (self._running | started).values()
        ]
        # Release in order of the ends; jobs that end together leave together, before the head is
        # tried, so that the promise does not depend on their order.
        leaving.sort(key=lambda entry: entry[0])
        later = Room(self._site, now.free.copy(), now.down)
        rule = self._placing.on(self._site)
        for time, together in groupby(leaving, key=lambda entry: entry[0]):
            for _, job in together:
                later.release(job, plan.changes.get(job.index) or view.allocation(job))
            if rule.place(later, jobs[head], *self._book.counts[head]):
                return time, later
        return math.inf, later

    def _end(self, now: float, lasts: float) -> float:
        """When a job ends that runs from `now` on."""
        end = now + lasts
        # A slot is held to its end, so that its machines come free with the slot.
        return float(rounding.ceil(end)) if self._site.slotted else end

    def _start(self, job: PolicyJob, now: Room, later: Room | None) -> Allocation | None:
        """Place `job` in what is free now and, if it will be there `later`, free then too."""
        tasks = self._book.counts[job.index]
        if later is None:
            return self._placement.place(now, job, *tasks)
        # It runs past the promised time, so each of its places must be free at both.
        both = [
            tuple(map(min, row, other)) for row, other in zip(now.free, later.free, strict=True)
        ]
        found = self._placement.place(Room(self._site, both, now.down), job, *tasks)
        if found is not None:
            now.occupy(job, found)
            later.occupy(job, found)
        return found


def _holds_one(room: Room, job: PolicyJob) -> bool:
    """Whether a machine has what one worker of `job` needs; without that, none of it fits."""
    return any(all(free[r] >= amount for r, amount in job.worker) for free in room.free)
