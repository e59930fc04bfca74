"""The autoscaler's procedure "scale up"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from baselines.resizing import Changes, Held, add_worker
from oasis.scheduling import PolicyJob, Room

Rank = Callable[[PolicyJob], Any]


def scale_up(room: Room, able: Iterable[PolicyJob], held: Held, rank: Rank) -> Changes:
    """Scale up: machine after machine, running jobs take workers up to the most they can use.

    Read: on each machine the jobs, in the order of the queue, take as many workers as fit there.
    The printed loop counts such workers without taking what they ask for (lines 8-14), then adds
    one, whether it fits or not (lines 15-17), and ends on the first machine (lines 20 and 21).

    Parameters
    ----------
    room : Room
        What is free; what is taken is entered.
    able : iterable of PolicyJob
        Running jobs that can use more workers.
    held : mapping of int to Allocation
        What each holds.
    rank : callable
        The place of a job in the order of the queue.

    Returns
    -------
    dict of int to Allocation
        What the jobs that grow then hold.

    Examples
    --------
    >>> from oasis.scheduling import Allocation, Machine, Site
    >>> room = Room(Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab")), [(1,), (3,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4, index=0)
    >>> scale_up(room, [job], {0: Allocation(((0, 1),))}, lambda job: job.index)
    {0: Allocation(workers=((0, 2), (1, 2)), ps=())}
    """
    growing = list(able)
    machines = room.site.machines_for("worker")
    fitting = {demand: room.fitting(machines, demand) for demand in {job.worker for job in growing}}
    growing = sorted((job for job in growing if fitting[job.worker]), key=rank)
    changes: Changes = {}

    def can_grow(job: PolicyJob) -> bool:
        return job.index not in changes or changes[job.index].worker_count < job.max_workers

    for machine in sorted({machine for hosts in fitting.values() for machine in hosts}):
        there = [job for job in growing if room.fits(machine, job.worker)]
        for job in there:
            more = add_worker(room, job, changes.get(job.index, held[job.index]), machine)
            while more is not None:
                changes[job.index] = more
                more = add_worker(room, job, more, machine)
        growing = [job for job in growing if can_grow(job)]
    return changes
