"""The room that a policy plans on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import fsum

from oasis.scheduling.allocation import Allocation
from oasis.scheduling.job import Demand, PolicyJob
from oasis.scheduling.site import Site

Row = tuple[int, ...]


class Room:
    """What is free on each machine while a policy plans; nothing here touches the run.

    Parameters
    ----------
    site : Site
        The machines.
    free : list of tuple of int
        Free amounts of each machine; taken over and changed.
    down : collection of int
        Machines that are not there now: they take no task, not even one that reserves nothing.

    Examples
    --------
    >>> from oasis.scheduling import Machine
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(4,)])
    >>> room.take(0, ((0, 1),), 3)
    >>> room.free, room.fits(0, ((0, 2),))
    ([(1,)], False)
    """

    __slots__ = ("down", "free", "site")

    def __init__(self, site: Site, free: list[Row], down: Collection[int] = ()) -> None:
        self.free = free
        self.site = site
        self.down = down

    def fits(self, machine: int, demand: Demand) -> bool:
        """Return whether one task of `demand` fits on `machine`."""
        if machine in self.down:
            return False
        row = self.free[machine]
        return all(row[resource] >= amount for resource, amount in demand)

    def fitting(self, machines: Sequence[int], demand: Demand) -> Sequence[int]:
        """Return those of `machines` on which one task of `demand` fits, in their order."""
        free = self.free
        if self.down:
            machines = [machine for machine in machines if machine not in self.down]
        for resource, amount in demand:
            machines = [machine for machine in machines if free[machine][resource] >= amount]
        return machines

    def count(self, machine: int, demand: Demand, most: int) -> int:
        """Return how many tasks of `demand` fit on `machine`, at most `most`."""
        if machine in self.down:
            return 0
        row = self.free[machine]
        return max(0, min([most, *(row[resource] // amount for resource, amount in demand)]))

    def idle_share(self, machine: int) -> float:
        """Return the mean free share of the resources that `machine` has."""
        capacity = self.site.machines[machine].capacity
        shares = [
            left / most for left, most in zip(self.free[machine], capacity, strict=True) if most
        ]
        return fsum(shares) / len(shares) if shares else 0.0

    def most_idle(self, machines: Sequence[int]) -> list[int]:
        """Sort `machines` by `idle_share`, the largest first; those with equal shares by index."""
        return sorted(machines, key=lambda machine: (-self.idle_share(machine), machine))

    def take(self, machine: int, demand: Demand, count: int) -> None:
        """Take room for `count` tasks of `demand` on `machine`; a negative count gives it back."""
        row = list(self.free[machine])
        for resource, amount in demand:
            row[resource] -= count * amount
        self.free[machine] = tuple(row)

    def hold(self, job: PolicyJob, allocation: Allocation) -> bool:
        """Take room for all of `allocation` if it fits, and return whether it did."""
        before = self.free.copy()
        for tasks, demand in ((allocation.workers, job.worker), (allocation.ps, job.ps)):
            for machine, count in tasks:
                self.take(machine, demand, count)
                if machine in self.down or min(self.free[machine]) < 0:
                    self.free = before
                    return False
        return True

    def occupy(self, job: PolicyJob, allocation: Allocation) -> None:
        """Take room for `allocation` even if it does not fit: free amounts may become negative."""
        for tasks, demand in ((allocation.workers, job.worker), (allocation.ps, job.ps)):
            for machine, count in tasks:
                self.take(machine, demand, count)

    def release(self, job: PolicyJob, allocation: Allocation) -> None:
        """Give back the room that `allocation` takes."""
        for tasks, demand in ((allocation.workers, job.worker), (allocation.ps, job.ps)):
            for machine, count in tasks:
                self.take(machine, demand, -count)
