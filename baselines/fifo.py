"""First come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from baselines.counts import FixedCounts
from baselines.placing import Placing
from oasis.scheduling import JobBook, Plan, PolicyJob, Room, Site, View


class FIFO:
    """Jobs start in order of arrival and run to their end; the head of the line blocks.

    The OASiS paper fixes (section V-A): order of arrival, fixed counts of workers and parameter
    servers, placement round-robin on servers with room. Chosen: the counts (`FixedCounts`); a job
    that lost a server returns to its place in the line; plain jobs go best fit, lowest index first.

    Parameters
    ----------
    seed : int
        Of the counts.
    placement : str or None
        As for `Placing`.

    Examples
    --------
    The last job would fit beside the first, but waits behind the second:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> sizes = {"a": 4, "b": 8, "c": 4}
    >>> jobs = [PlainJob(name, 0.0, 60.0, gpus) for name, gpus in sizes.items()]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO())
    >>> [(job.start, job.end) for job in outcome.jobs]
    [(0.0, 60.0), (60.0, 120.0), (120.0, 180.0)]
    """

    name = "fifo"
    slotted = False
    told_remaining = False

    def __init__(self, seed: int = 0, *, placement: str | None = None) -> None:
        self._seed = seed
        self._counts, self._placing = FixedCounts(seed), Placing(placement)

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"seed": self._seed, **self._placing.parameters}

    def reset(self, site: Site) -> None:
        self._site = site
        self._placement = self._placing.on(site)
        self._counts.reset(self._placing.empty(site))
        self._book = JobBook(self._counts.draw)
        self._line: deque[PolicyJob] = deque()

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._enqueue(view, plan)
        if not self._line:
            return plan
        room = Room(self._site, view.free())
        while self._line:
            job = self._line[0]
            allocation = self._placement.place(room, job, *self._book.counts[job.index])
            if allocation is None:
                break
            plan.changes[job.index] = allocation
            self._line.popleft()
        return plan

    def _enqueue(self, view: View, plan: Plan) -> None:
        self._line += self._book.update(view, plan)
        if view.evicted:
            self._line = deque(sorted([*self._line, *view.evicted], key=lambda job: job.index))
