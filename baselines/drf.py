"""Dominant resource fairness."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from baselines.placing import Placing
from baselines.shares import Shares
from oasis.scheduling import (
    NOTHING,
    Allocation,
    BasePolicy,
    JobBook,
    Placement,
    Plan,
    PolicyJob,
    Room,
    Site,
    View,
)

JOB, OWNER = "job", "owner"
Entry = tuple[float, int, int, int]  # dominant share, index, workers and parameter servers so far


class DRF(BasePolicy):
    """Jobs share the cluster so that their dominant shares are as equal as they can be.

    Dominant Resource Fairness (Ghodsi et al., NSDI 2011, Algorithm 1) fixes: the dominant share of
    a job is its largest share of any resource; progressive filling gives the next task to the job
    with the smallest one, as long as it fits. The OASiS paper fixes (section V-A): counts are
    computed anew at each arrival and completion, placement round-robin on servers with room.
    Chosen: a resource of the worker servers and the same one of the parameter-server hosts are two
    resources, unless some machine hosts both (`Pools`): then it counts once; a task is a worker
    together with the parameter servers that (6) then asks for (the first task of a rigid job is the
    whole job); a job whose next task fits nowhere is full and the filling goes on with the others;
    equal shares in order of arrival; all jobs are placed anew, from the first server on, so that
    the same jobs always get the same places.

    Who shares are the jobs, as in the OASiS paper. A rigid job is one task, so all that wait have
    the share 0 and there is nothing to be equalised: on a plain trace that is the order of arrival,
    in which those that fit may pass, and an earlier job takes back its GPUs. With ``by="owner"``
    users or virtual clusters share instead, as in the source: the next task goes to the owner with
    the smallest dominant share over all its jobs, and among those to the job with the smallest one.

    Parameters
    ----------
    by : {"job", "owner"}
        Whose dominant shares are made equal: of jobs, or of those who submitted them.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    Two jobs that could each use the four GPUs get two each:

    >>> from oasis.simulator import Machine, Workload, replay
    >>> jobs = [PolicyJob(name, 0.0, 8.0, ((0, 1),), max_workers=4) for name in "ab"]
    >>> work = Workload.of(Site(("gpu",), (Machine("n0", (4.0,)),)), jobs)
    >>> replay(work, DRF()).completions
    [4.0, 4.0]
    """

    name = "drf"

    def __init__(self, *, by: str = JOB, placement: str | None = None) -> None:
        if by not in (JOB, OWNER):
            raise ValueError(f"by: expected {JOB} or {OWNER}, got {by!r}")
        self.by, self._placing = by, Placing(placement)

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"by": self.by, **self._placing.parameters}

    def reset(self, site: Site) -> None:
        self._site = site
        self._shares = Shares(site)
        self._book = JobBook(self._placing.empty(site).fewest)

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._book.update(view, plan)
        for index, allocation in self._fill(Room(self._site, view.capacity(), view.down())).items():
            if allocation != view.allocation(self._book.jobs[index]):
                plan.changes[index] = allocation
        return plan

    def _fill(self, room: Room) -> dict[int, Allocation]:
        """Progressive filling of `room`."""
        how, jobs = self._placing.on(self._site), self._book.jobs
        held: dict[int, tuple[dict[int, int], dict[int, int]]] = {i: ({}, {}) for i in jobs}
        lines: dict[object, list[Entry]] = {}
        for index, job in jobs.items():
            lines.setdefault(index if self.by == JOB else job.owner, []).append((0.0, index, 0, 0))
        taken: dict[object, dict[int, int]] = {owner: {} for owner in lines}
        # owners by their share, then by the job that is next; each job is in the line of its owner
        owners = [(0.0, line[0][1], owner) for owner, line in lines.items()]
        heapify(owners)
        while owners:
            share, _, owner = heappop(owners)
            line = lines[owner]
            _, index, workers, ps = heappop(line)
            job = jobs[index]
            added = self._grow(job, workers, ps, room, how)
            if added is not None:
                for mine, tasks in zip(held[index], added, strict=True):
                    for machine, count in tasks:
                        mine[machine] = mine.get(machine, 0) + count
                workers, ps = workers + added.worker_count, ps + added.ps_count
                self._shares.add(taken[owner], job, added.worker_count, added.ps_count)
                share = self._shares.largest(taken[owner])
                if workers < job.max_workers:
                    heappush(line, (self._shares.dominant(job, workers, ps), index, workers, ps))
            if line:
                heappush(owners, (share, line[0][1], owner))
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
        return how.place(room, job, more, ps_more)
