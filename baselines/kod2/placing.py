"""Where KOD2 puts the tasks of a job (section 4.1)."""

from __future__ import annotations

from oasis.scheduling import Allocation, MostIdle, OneNode, PolicyJob, Room


class AffinityPlacement:
    """All tasks on one machine if one has room, else together on those with most idle resources.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "abc"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> for workers in (2, 4):
    ...     AffinityPlacement().place(Room(site, [(1,), (2,), (3,)]), job, workers, 0).workers
    ((1, 2),)
    ((1, 1), (2, 3))
    """

    name = "affinity"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Put all the tasks into `room`; None, and `room` as it was, if they do not fit."""
        found = OneNode().place(room, job, workers, ps)
        if found is not None:
            return found
        hosts = room.fitting(room.site.machines_for("worker"), job.worker)
        if sum(room.count(machine, job.worker, workers) for machine in hosts) < workers:
            return None  # what `MostIdle` would find after more work
        return MostIdle().place(room, job, workers, ps)


def on_node(room: Room, job: PolicyJob, workers: int, ps: int, machine: int) -> Allocation | None:
    """All tasks on `machine`; None, and `room` as it was, if they do not fit there.

    Where it may host no parameter servers, as on an instance of the model, these go on the first
    machine that has room for all of them.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> room = Room(site, [(1,), (2,)])
    >>> on_node(room, job, 2, 0, 0), on_node(room, job, 2, 0, 1)
    (None, Allocation(workers=((1, 2),), ps=()))
    """
    servers = room.site.machines_for("ps")
    hosts = (machine,) if machine in servers or not ps else servers
    for host in hosts:
        found = Allocation(((machine, workers),), ((host, ps),) if ps else ())
        if room.hold(job, found):
            return found
    return None
