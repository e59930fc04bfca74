"""Policies that start jobs in some order and let them run to their end."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from baselines.line import FIT, Misfits, OneLine
from oasis.scheduling import Plan, PolicyJob, Room, Site, View

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
