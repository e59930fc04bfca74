"""Where DRAGON puts the tasks of a job that it launches."""

from __future__ import annotations

from oasis.scheduling import (
    Allocation,
    FirstFit,
    OneNode,
    Placement,
    PolicyJob,
    Room,
    Spread,
)


class FewestNodes:
    """The text's packing (section 3.3): "pack the tasks onto the least number of compute nodes".

    One machine if all tasks fit there, the fullest of those. Else the machines that hold most
    workers are filled one after the other, which takes the fewest machines for the workers, and
    each parameter server goes beside as many of them as it can.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "abc"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> FewestNodes().place(Room(site, [(1,), (2,), (3,)]), job, 4, 0).workers
    ((1, 1), (2, 3))
    """

    name = "fewest-nodes"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Put all tasks into `room`; return None and change nothing if they do not fit."""
        found = OneNode().place(room, job, workers, ps)
        if found is not None:
            return found
        hosts = room.fitting(room.site.machines_for("worker"), job.worker)
        most = {machine: room.count(machine, job.worker, workers) for machine in hosts}
        if sum(most.values()) < workers:
            return None
        before = room.free.copy()
        placed: dict[int, int] = {}
        for machine in sorted(hosts, key=lambda m: (-most[m], m)):
            here = min(most[machine], workers - sum(placed.values()))
            if here:
                room.take(machine, job.worker, here)
                placed[machine] = here
        servers: dict[int, int] = {}
        beside = sorted(room.site.machines_for("ps"), key=lambda m: (-placed.get(m, 0), m))
        for machine in beside:
            here = room.count(machine, job.ps, ps - sum(servers.values()))
            if here:
                room.take(machine, job.ps, here)
                servers[machine] = here
        if sum(servers.values()) < ps:
            room.free = before
            return None
        return Allocation(tuple(sorted(placed.items())), tuple(sorted(servers.items())))


class Ladder:
    """The public code's placement: five tries, the later ones with the fewest workers.

    All workers on one machine; all of them spread; the fewest workers on one machine; these spread;
    these on the first machines that have room.

    Examples
    --------
    A job that asks for three workers and works with two, where one machine has room for two:

    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), min_workers=2, max_workers=4)
    >>> Ladder().place(Room(site, [(2,), (0,)]), job, 3, 0).workers
    ((0, 2),)
    """

    name = "ladder"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Put `workers`, or as few as the job works with, into `room`; None if not even they fit.

        Parameters
        ----------
        room : Room
            What is free; what is placed is taken from it.
        job : PolicyJob
            The job.
        workers, ps : int
            What it asks for.
        """
        least = job.min_workers
        few = (least, job.ps_needed(least))
        tries: tuple[tuple[Placement, tuple[int, int]], ...] = (
            (OneNode(), (workers, ps)),
            (Spread(), (workers, ps)),
            (OneNode(), few),
            (Spread(), few),
            (FirstFit(), few),
        )
        for rule, counts in tries:
            found = rule.place(room, job, *counts)
            if found is not None:
                return found
        return None
