"""The priority-queue autoscaler for Kubeflow: the most valuable gang first, the others resized."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from typing import Any

from baselines.counts import on_node
from baselines.fair_shares import MachineShares
from baselines.gangs import Allocations, Changes, GangController, GangQueue, add_worker, drop_worker
from oasis.model import rounding
from oasis.scheduling import Allocation, FirstFit, Plan, PolicyJob, Room, Site
from oasis.scheduling.policy import View


class FirstNode:
    """Places all tasks on the first machine with room, otherwise each where it first fits."""

    # The printed loop ends at the first machine on which a pod does not fit (line 12), takes what a
    # pod asks for from a machine only if it does not fit there (lines 9 and 10), and so never adds
    # up the pods that do fit. The text asks for "all workers to a single node". What is printed
    # where there is none, "schedule all r in the first available node", is read pod by pod.
    name = "first-node"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place all tasks; None, with `room` unchanged, if they do not fit."""
        # If even all machines together have too little room, no node needs to be tried.
        hosts = room.fitting(room.site.machines_for("worker"), job.worker)
        if sum(room.count(machine, job.worker, workers) for machine in hosts) < workers:
            return None
        for machine in hosts:
            allocation = on_node(room, job, workers, ps, machine)
            if allocation is not None:
                return allocation
        return FirstFit().place(room, job, workers, ps)


OnNode = Callable[[int], Allocation | None]
Place = Callable[[], Allocation | None]


def scale_down(
    room: Room,
    victims: Iterable[PolicyJob],
    allocations: Allocations,
    on_node: OnNode,
    place: Place,
) -> tuple[Changes, Allocation] | None:
    """Drop workers of victims until the new job fits; return changes, its allocation, or None."""
    # Read: the victims give workers one at a time, machine after machine where they have any, and
    # after each the machine that gained is looked at; when "the number of worker of every job with
    # lower priority has been reduced to its minimum value", a place anywhere is looked for.
    before = room.free.copy()
    changes: Changes = {}
    for job in victims:
        now = allocations[job.index]
        spare = job.spare_workers(now.worker_count)
        # One worker at a time: no victim gives more than the new job needs.
        for machine in (m for m, count in allocations[job.index].workers for _ in range(count)):
            if not spare:
                break
            now = changes[job.index] = drop_worker(room, job, now, machine)
            spare -= 1
            allocation = on_node(machine)
            if allocation is not None:
                return changes, allocation
    allocation = place()
    if allocation is not None:
        return changes, allocation
    # Scaling down has failed: no job gives a worker for nothing.
    room.free = before
    return None


Weighting = Callable[[PolicyJob], Any]


def scale_up(
    room: Room, able: Iterable[PolicyJob], allocations: Allocations, rank: Weighting
) -> Changes:
    """On each machine, running jobs take workers up to their maximum; return the changes."""
    # Read: on each machine the jobs, in the order of the queue, take as many workers as fit there.
    # The printed loop counts such workers without taking what they ask for (lines 8-14), then adds
    # one, whether it fits or not (lines 15-17), and ends on the first machine (lines 20 and 21).
    growing = list(able)
    machines = room.site.machines_for("worker")
    # Jobs with the same demand fit on the same machines: one pass for each demand.
    fitting = {demand: room.fitting(machines, demand) for demand in {job.worker for job in growing}}
    growing = sorted((job for job in growing if fitting[job.worker]), key=rank)
    changes: Changes = {}

    def can_grow(job: PolicyJob) -> bool:
        return job.index not in changes or changes[job.index].worker_count < job.max_workers

    for machine in sorted({machine for hosts in fitting.values() for machine in hosts}):
        local = [job for job in growing if room.fits(machine, job.worker)]
        for job in local:
            more = add_worker(room, job, changes.get(job.index, allocations[job.index]), machine)
            while more is not None:
                changes[job.index] = more
                more = add_worker(room, job, more, machine)
        growing = [job for job in growing if can_grow(job)]
    return changes


Rank = tuple[float, float, int]


class PriorityQueue(GangController):
    """The job of highest utility takes workers from those worth less; all grow into idle GPUs.

    The autoscaler of "Dynamic Resource Scheduler for Distributed ... Training on Kubeflow" has five
    procedures: `weighting` sorts the queue ("Weighting Algorithm"); `FirstNode` places gangs
    ("Gang Scheduling"); `scale_down_for` and `scale_up` resize jobs; `schedule` is the main step
    ("Scheduling Algorithm").

    Read, where the printed procedures leave it open or cannot be meant:

    - The utility of a job, which is not explained: what its utility function is worth at its
      arrival, without delay; 0 for a job without one.
    - The main step launches the best waiting job, by scale-down if need be, and only if that job is
      not worth more than the best running one does it launch others.
    - The main step is called again while it launches a job, as an operator's sync loop is whenever
      a job has changed.
    - Who gives in scale-down, one worker at a time: those at the end of the queue's order first.
    - Gangs and scale-up, whose printed loops cannot be meant: see `FirstNode` and `scale_up`.

    `experiments.figures.priority_queue.AsPrinted` keeps what is printed.

    A job is launched as in `GangController`. Nothing bounds how long a job waits while more
    valuable ones arrive. But once the best waiting job is worth more than all that run, nobody
    else is launched before it, so that it waits for no longer than these run; unless a still
    better one arrives.

    Examples
    --------
    The job that came last is worth most, and the running one gives it two of its four workers:

    >>> from oasis import Constant
    >>> from oasis.simulator import Machine, Workload, replay
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)),))
    >>> jobs = [
    ...     PolicyJob("a", 0.0, 400.0, ((0, 1),), max_workers=4),
    ...     PolicyJob("b", 10.0, 40.0, ((0, 1),), (), 2, 2, utility=Constant(5.0)),
    ... ]
    >>> run = replay(Workload.of(site, jobs), PriorityQueue())
    >>> run.completions, [job.resizes for job in run.jobs]
    ([110.0, 20.0], [2, 0])
    """

    name = "priority-queue"
    needs = "what jobs are worth"

    def __init__(self) -> None:
        super().__init__(FirstNode)

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._queue = GangQueue(self._requested_counts, self.weighting)
        self._worker_shares = MachineShares(site, "worker")
        self._ps_shares = MachineShares(site, "ps")
        self._ranks: dict[int, Rank] = {}
        self._by_worth: list[tuple[float, int]] = []  # jobs launched so far, the best on top

    def decide(self, view: View) -> Plan:
        self._begin(view)
        self.schedule()
        return self._plan

    def weighting(self, job: PolicyJob) -> Rank:
        """Weighting Algorithm: return the rank of `job` in the queue; smaller ones are in front."""
        # It goes before the first job that is worth less, or that is worth as much and asks for
        # less CPU and memory (line 10); else to the end (line 19). Line 11 prints "queue of job so
        # that U > u" for the part that goes in front of it, which would turn the queue around: read
        # as the jobs before the one that line 10 found. CPU and memory cannot be added as they are,
        # so that shares of the largest machine are, for all tasks that are to be launched; GPUs
        # count where they are named.
        if job.index not in self._ranks:
            worth = float(job.utility(0)) if job.has_utility else 0.0
            requested = self._request_share(job)
            self._ranks[job.index] = (-rounding.key(worth), -rounding.key(requested), job.index)
        return self._ranks[job.index]

    def schedule(self) -> None:
        """Scheduling Algorithm: lines 2-25 while jobs are launched, then scale-up."""
        # Lines 2-6: only a job worth more than all that run may take workers from them.
        while (best := self._best_if_worth_most()) is not None:
            if self._launch(best) is None and not self.scale_down_for(best):
                break
            self._queue.remove(best)
        else:
            # Lines 17-21: otherwise every job that fits is launched, in order of the queue. That
            # changes nothing for the best waiting job, so that the queue is walked once.
            self._queue.launch_all(self.weighting, self._launch, set())
        self.scale_up()

    def scale_down_for(self, best: PolicyJob) -> bool:
        """Scale down for `best` and launch it; return whether that succeeded."""
        counts = self._book.counts[best.index]
        # Those at the end of the order are worth least, so they give first.
        victims = sorted(self._running.shrinking(), key=self.weighting, reverse=True)
        scaled = scale_down(
            self._room,
            victims,
            self._running.allocations,
            partial(on_node, self._room, best, *counts),
            partial(self._rule.place, self._room, best, *counts),
        )
        if scaled is None:
            return False
        self._resize(scaled[0])
        self._set(best, scaled[1])
        return True

    def scale_up(self) -> None:
        """Scale-up: running jobs take workers in the remaining capacity."""
        running = self._running
        self._resize(scale_up(self._room, running.growing(), running.allocations, self.weighting))

    def _best_if_worth_most(self) -> PolicyJob | None:
        """Return the best waiting job if it is worth more than all running ones, else None."""
        heads = [next(same) for same in self._queue.sizes()]
        best = min(heads, key=self.weighting, default=None)
        if best is None:
            return None
        heap = self._by_worth
        while heap and heap[0][1] not in self._running:  # left the heap late, when it is on top
            heappop(heap)
        return best if not heap or self._worth(best) > -heap[0][0] else None

    def _worth(self, job: PolicyJob) -> float:
        return -self.weighting(job)[0]

    def _request_share(self, job: PolicyJob) -> float:
        """Return the sum of the shares of a largest machine that all tasks of `job` ask for."""
        workers, ps = self._book.counts[job.index]
        shares = self._worker_shares.of(job.worker, job.worker_cpu, workers)
        if ps:
            shares += self._ps_shares.of(job.ps, job.ps_cpu, ps)
        return math.fsum(shares)

    def _set(self, job: PolicyJob, allocation: Allocation) -> None:
        if job.index not in self._running:
            heappush(self._by_worth, (-self._worth(job), job.index))
        super()._set(job, allocation)
