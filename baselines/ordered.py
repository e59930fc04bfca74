"""Preemptive policies that differ only in the order in which they serve the jobs."""

from __future__ import annotations

from bisect import bisect_left, insort

from baselines.line import STRICT, OneLine
from baselines.turns import Turns
from oasis.scheduling import NOTHING, Plan, PolicyJob, Site, View

Rank = float | tuple[float, ...]
Key = tuple[Rank, int]


def significant(value: float) -> float:
    """`value` to 12 digits, so that equal ranks are equal however they were computed.

    Examples
    --------
    >>> significant(0.1 + 0.2) == significant(0.3)
    True
    """
    return float(f"{value:.12g}")


class Ordered(OneLine):
    """At every event, give the machines to the jobs in order until one does not fit.

    Counts of workers and parameter servers are fixed as for FIFO, so that only the order differs.
    The jobs get their turns one after the other. One that runs stays where it is, unless a job
    before it took its place; one that waits goes where there is free room and, only if it does not
    fit there, displaces jobs whose turn comes later. A displaced job is placed anew at its turn. If
    the line is strict, the first that does not fit blocks those behind it, which are paused; with
    ``fit`` it alone waits, and the others take what there is. A job's place in the order may change
    while it runs; where it changes for those who wait, `rank_anew` must be called.

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
        self._waiting: list[Key] = []
        self._running: dict[int, PolicyJob] = {}

    def key(self, job: PolicyJob, workers: int, view: View) -> Rank:
        """Jobs with smaller keys go first; among equals, those that arrived earlier."""
        raise NotImplementedError

    def before_serving(self, view: View) -> None:
        """Called at each event, when `running` is up to date, before keys are asked for."""

    def rank_anew(self, view: View) -> None:
        """Put those who wait in order: what they are ordered by has changed while they waited."""
        jobs = self._book.jobs
        self._waiting = sorted(self._key(jobs[index], view) for _, index in self._waiting)

    def after_serving(self) -> None:
        """Called when it is known who runs and who waits."""

    def wake_at(self, view: View) -> float | None:
        """When the order will change though nothing happens."""
        return None

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._update(view, plan)
        if self._waiting:
            self._serve(view, plan)
            self.after_serving()
        plan.wake_at = self.wake_at(view)
        return plan

    def running(self) -> list[tuple[PolicyJob, int]]:
        """Jobs that run, with their workers."""
        counts = self._book.counts
        return [(job, counts[index][0]) for index, job in self._running.items()]

    def _update(self, view: View, plan: Plan) -> None:
        for job in (*view.finished, *view.evicted):
            if self._running.pop(job.index, None) is None:  # its owner took it back: it waited
                self._waiting = [key for key in self._waiting if key[1] != job.index]
        self.before_serving(view)
        for job in self._book.update(view, plan):
            insort(self._waiting, self._key(job, view))
        for job in view.evicted:
            insort(self._waiting, self._key(job, view))

    def _key(self, job: PolicyJob, view: View) -> Key:
        return self.key(job, self._book.counts[job.index][0], view), job.index

    def _serve(self, view: View, plan: Plan) -> None:
        running = sorted(self._key(job, view) for job in self._running.values())
        # so many of the waiting and of the running jobs have had their turn: those that run and go
        # before everybody who waits stay where they are
        served, first = 0, bisect_left(running, self._waiting[0])
        jobs = self._book.jobs
        now_running = {index: jobs[index] for _, index in running[:first]}
        turns = Turns(self._site, self._placement, view, [jobs[i] for _, i in running[first:]])
        passed: list[Key] = []  # jobs that did not fit and let others go before them
        while served < len(self._waiting) or first < len(running):
            waits = first == len(running) or (
                served < len(self._waiting) and self._waiting[served] < running[first]
            )
            key = self._waiting[served] if waits else running[first]
            job = jobs[key[1]]
            if not waits and turns.keep(job):
                now_running[job.index] = job
            elif allocation := turns.start(job, *self._book.counts[job.index]):
                plan.changes[job.index] = allocation
                now_running[job.index] = job
            elif self.line == STRICT:
                break
            else:
                passed.append(key)
                if not waits:
                    plan.changes[job.index] = NOTHING
            served, first = served + waits, first + (not waits)
        self._waiting[:served] = passed
        for key in running[first:]:
            plan.changes[key[1]] = NOTHING
            insort(self._waiting, key)
        self._running = now_running
