"""Jobs that are placed in turn and may displace those whose turn has not come yet."""

from __future__ import annotations

from collections.abc import Iterable

from baselines.queues import Misfits
from oasis.scheduling import Allocation, Placement, PolicyJob, Room, Site, View


class Turns:
    """Two rooms: what is free, and what would be if all whose turn has not come had left.

    A job goes where there is free room; only if it does not fit there does it displace others. So
    nobody is moved or paused for the sake of a job that an idle machine could take.

    Parameters
    ----------
    site : Site
        The machines.
    placement : Placement
        Where tasks go.
    view : View
        The present.
    running : iterable of PolicyJob
        Those that run and have no turn yet; each must get one before it counts as placed.

    Examples
    --------
    Machine 0 is held by a job whose turn comes later, and machine 1 is free:

    >>> from oasis.scheduling import BestFit, Machine
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> later, now = (PolicyJob(name, 0.0, 1.0, ((0, 1),), index=k) for k, name in enumerate("ab"))
    >>> class Present:
    ...     def free(self):
    ...         return [(0,), (4,)]
    ...     def down(self):
    ...         return set()
    ...     def allocation(self, job):
    ...         return Allocation(((0, 4),))
    >>> turns = Turns(site, BestFit(), Present(), [later])
    >>> turns.start(now, 4, 0).workers, turns.keep(later)
    (((1, 4),), True)
    """

    def __init__(
        self, site: Site, placement: Placement, view: View, running: Iterable[PolicyJob]
    ) -> None:
        self._placement, self._view = placement, view
        self._free, self._misfits = Room(site, view.free(), view.down()), Misfits()
        self._without_later = Room(site, self._free.free.copy(), self._free.down)
        for job in running:
            self._without_later.release(job, view.allocation(job))

    def keep(self, job: PolicyJob) -> bool:
        """Let `job`, which runs, stay where it is; if others took its place, it leaves it."""
        held = self._view.allocation(job)
        if self._without_later.hold(job, held):
            return True
        self._free.release(job, held)
        return False

    def start(self, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place `job`, which holds nothing (any more); None if it does not fit."""
        if self._misfits.has(job, workers, ps):
            return None
        found = self._placement.place(self._free, job, workers, ps)
        if found is not None:
            other = self._without_later
        else:
            found = self._placement.place(self._without_later, job, workers, ps)
            other = self._free
        if found is None:
            self._misfits.add(job, workers, ps)
        else:
            other.occupy(job, found)
        return found
