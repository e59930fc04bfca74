"""Dominant resource fairness."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from baselines.counts import NEVER_FITS
from baselines.placing import placement_for
from baselines.shares import Shares
from oasis.scheduling.placement import place
from oasis.simulator import NOTHING, Allocation, Placement, Plan, PolicyJob, Room, Site, View


class DRF:
    """All jobs share the cluster so that their dominant shares are as equal as they can be.

    Dominant Resource Fairness (Ghodsi et al., NSDI 2011, Algorithm 1) fixes: the dominant share of
    a job is its largest share of any resource; progressive filling gives the next task to the job
    with the smallest one, as long as it fits. The OASiS paper fixes (section V-A): counts are
    computed anew at each arrival and completion, placement round-robin on servers with room.
    Chosen: a resource of the worker servers and the same one of the parameter-server hosts are two
    resources; a task is a worker together with the parameter servers that (6) then asks for (the
    first task of a rigid job is the whole job); a job whose next task fits nowhere is full and the
    filling goes on with the others; equal shares in order of arrival; all jobs are placed anew,
    from the first server on, so that the same jobs always get the same places.
    """

    name = "drf"
    slotted = False

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {}

    def reset(self, site: Site) -> None:
        self._site = site
        self._shares = Shares(site)
        self._jobs: dict[int, PolicyJob] = {}

    def decide(self, view: View) -> Plan:
        plan = Plan()
        for job in view.finished:
            del self._jobs[job.index]
        empty = [machine.capacity for machine in self._site.machines]
        for job in view.arrived:
            if (
                self._grow(job, 0, 0, Room(self._site, empty.copy()), placement_for(self._site))
                is None
            ):
                plan.rejected[job.index] = NEVER_FITS
            else:
                self._jobs[job.index] = job
        for index, allocation in self._fill(Room(self._site, view.capacity())).items():
            if allocation != view.allocation(self._jobs[index]):
                plan.changes[index] = allocation
        return plan

    def _fill(self, room: Room) -> dict[int, Allocation]:
        """Progressive filling of `room`."""
        how = placement_for(self._site)
        held: dict[int, tuple[dict[int, int], dict[int, int]]] = {i: ({}, {}) for i in self._jobs}
        line = [(0.0, index, 0, 0) for index in self._jobs]
        heapify(line)
        while line:
            _, index, workers, ps = heappop(line)
            job = self._jobs[index]
            added = self._grow(job, workers, ps, room, how)
            if added is None:
                continue
            for mine, tasks in zip(held[index], added, strict=True):
                for machine, count in tasks:
                    mine[machine] = mine.get(machine, 0) + count
            workers, ps = workers + added.worker_count, ps + added.ps_count
            if workers < job.max_workers:
                heappush(line, (self._shares.dominant(job, workers, ps), index, workers, ps))
        return {
            index: Allocation(*(tuple(sorted(tasks.items())) for tasks in both))
            if both[0]
            else NOTHING
            for index, both in held.items()
        }

    def _grow(
        self, job: PolicyJob, workers: int, ps: int, room: Room, how: Placement
    ) -> Allocation | None:
        """Put the next task of `job` into `room`; None if it fits nowhere."""
        more = 1 if workers else job.min_workers
        ps_more = max(0, job.ps_needed(workers + more) - ps)
        return place(room, job, more, ps_more, how)
