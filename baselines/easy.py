"""EASY backfilling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from baselines.line import Misfits
from baselines.queued import Queued
from oasis.model import rounding
from oasis.scheduling import Allocation, Plan, PolicyJob, Room, Site, View


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

    def decide(self, view: View) -> Plan:
        for job in (*view.finished, *view.evicted):
            self._running.pop(job.index, None)
        plan = super().decide(view)
        for index in plan.changes:
            self._running[index] = self._book.jobs[index]
        return plan

    def _serve(self, view: View, plan: Plan) -> None:
        super()._serve(view, plan)  # from the head on, until one does not fit
        if self._line:
            self._pass_the_head(view, plan)

    def _pass_the_head(self, view: View, plan: Plan) -> None:
        jobs, counts = self._book.jobs, self._book.counts
        now = Room(self._site, view.free(), view.down())
        for index, allocation in plan.changes.items():
            now.occupy(jobs[index], allocation)
        promised, later = self._promise(now, view, plan)
        quick, slow = Misfits(), Misfits()
        stay = self._line[:1]
        for key in self._line[1:]:
            job, tasks = jobs[key[1]], counts[key[1]]
            in_time = self._end(job, view) <= promised
            misfits = quick if in_time else slow
            found = None
            if not misfits.has(job, *tasks):
                found = self._start(job, now, None if in_time else later)
            if found is None:
                misfits.add(job, *tasks)
                stay.append(key)
            else:
                plan.changes[job.index] = found
        self._line = stay

    def _promise(self, now: Room, view: View, plan: Plan) -> tuple[float, Room]:
        """By when the head fits, and what is free then beside it; infinity if it cannot be told."""
        jobs, (_, head) = self._book.jobs, self._line[0]
        started = {index: jobs[index] for index in plan.changes}
        leaving = [(self._end(job, view), job) for job in (self._running | started).values()]
        leaving.sort(key=lambda entry: entry[0])
        later = Room(self._site, now.free.copy(), now.down)
        rule = self._placing.on(self._site)
        for time, together in groupby(leaving, key=lambda entry: entry[0]):
            for _, job in together:
                later.release(job, plan.changes.get(job.index) or view.allocation(job))
            if rule.place(later, jobs[head], *self._book.counts[head]):
                return time, later
        return math.inf, later

    def _end(self, job: PolicyJob, view: View) -> float:
        """When `job` ends if it runs from now on."""
        workers, _ = self._book.counts[job.index]
        end = view.now + view.remaining(job) / workers
        return float(rounding.ceil(end)) if self._site.slotted else end

    def _start(self, job: PolicyJob, now: Room, later: Room | None) -> Allocation | None:
        """Place `job` in what is free now and, if it will be there `later`, free then too."""
        tasks = self._book.counts[job.index]
        if later is None:
            return self._placement.place(now, job, *tasks)
        both = [
            tuple(map(min, row, other)) for row, other in zip(now.free, later.free, strict=True)
        ]
        found = self._placement.place(Room(self._site, both, now.down), job, *tasks)
        if found is not None:
            now.occupy(job, found)
            later.occupy(job, found)
        return found
