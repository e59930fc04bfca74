"""Where the autoscaler puts the tasks of a job: its procedure "Gang Scheduling"."""

from __future__ import annotations

from baselines.node import on_node
from oasis.scheduling import Allocation, FirstFit, PolicyJob, Room


class FirstNode:
    """All tasks on the first machine that has room for all, else each on the first that has.

    Read: the printed loop ends at the first machine on which a pod does not fit (line 12), takes
    what a pod asks for from a machine only if it does not fit there (lines 9 and 10), and so never
    adds up the pods that do fit. The text asks for "all workers to a single node", so that it is
    read as a search for the first node that has room for all of them together. What is printed
    where there is none, "schedule all r in the first available node", is read pod by pod.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "abc"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> for workers in (2, 4):
    ...     FirstNode().place(Room(site, [(1,), (2,), (3,)]), job, workers, 0).workers
    ((1, 2),)
    ((0, 1), (1, 2), (2, 1))
    """

    name = "first-node"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Put all tasks into `room`; return None and change nothing if they do not fit."""
        hosts = room.fitting(room.site.machines_for("worker"), job.worker)
        if sum(room.count(machine, job.worker, workers) for machine in hosts) < workers:
            return None
        for machine in hosts:
            found = on_node(room, job, workers, ps, machine)
            if found is not None:
                return found
        return FirstFit().place(room, job, workers, ps)
