"""First come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from baselines.counts import NEVER_FITS, FixedCounts
from baselines.placing import placement_for
from oasis.scheduling.placement import place
from oasis.simulator import Plan, PolicyJob, Room, Site, View


class FIFO:
    """Jobs start in order of arrival and run to their end; the head of the line blocks.

    The OASiS paper fixes (section V-A): order of arrival, fixed counts of workers and parameter
    servers, placement round-robin on servers with room. Chosen: the counts (`FixedCounts`); a job
    that lost a server returns to its place in the line; plain jobs go best fit, lowest index first.

    Parameters
    ----------
    seed : int
        Of the counts.
    """

    name = "fifo"
    slotted = False

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._counts = FixedCounts(seed)

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"seed": self._seed}

    def reset(self, site: Site) -> None:
        self._site = site
        self._line: deque[tuple[PolicyJob, int, int]] = deque()
        self._needs: dict[int, tuple[int, int]] = {}
        self._placement = placement_for(site)
        self._counts.reset(site, placement_for(site))

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._enqueue(view, plan)
        if not self._line:
            return plan
        room = Room(self._site, view.free())
        while self._line:
            job, workers, ps = self._line[0]
            allocation = place(room, job, workers, ps, self._placement)
            if allocation is None:
                break
            plan.changes[job.index] = allocation
            self._line.popleft()
        return plan

    def _enqueue(self, view: View, plan: Plan) -> None:
        for job in view.finished:
            self._needs.pop(job.index, None)
        for job in view.arrived:
            counts = self._counts.draw(job)
            if counts is None:
                plan.rejected[job.index] = NEVER_FITS
            else:
                self._needs[job.index] = counts
                self._line.append((job, *counts))
        if view.evicted:
            back = [(job, *self._needs[job.index]) for job in view.evicted]
            self._line = deque(sorted([*self._line, *back], key=lambda entry: entry[0].index))
