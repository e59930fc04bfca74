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
        """Put all tasks into `room`; return None and change nothing if they do not fit."""
        found = OneNode().place(room, job, workers, ps)
        if found is not None:
            return found
        hosts = room.fitting(room.site.machines_for("worker"), job.worker)
        if sum(room.count(machine, job.worker, workers) for machine in hosts) < workers:
            return None  # what `MostIdle` would find after more work
        return MostIdle().place(room, job, workers, ps)
