"""Helpers of policies: room to plan on, and where to put the tasks of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from oasis.scheduling.allocation import Allocation, Tasks
from oasis.scheduling.job import Demand, PolicyJob
from oasis.scheduling.site import GROUPS, Site

Row = tuple[int, ...]


class Room:
    """What is free on each machine while a policy plans; nothing here touches the run.

    Parameters
    ----------
    site : Site
        The machines.
    free : list of tuple of int
        Free amounts of each machine; taken over and changed.
    """

    __slots__ = ("free", "site")

    def __init__(self, site: Site, free: list[Row]) -> None:
        self.free = free
        self.site = site

    def fits(self, machine: int, demand: Demand) -> bool:
        """Whether one task of `demand` fits there."""
        row = self.free[machine]
        return all(row[resource] >= amount for resource, amount in demand)

    def take(self, machine: int, demand: Demand, count: int) -> None:
        """Take `count` tasks of `demand` there; a negative count gives them back."""
        row = list(self.free[machine])
        for resource, amount in demand:
            row[resource] -= count * amount
        self.free[machine] = tuple(row)

    def hold(self, job: PolicyJob, allocation: Allocation) -> bool:
        """Take all of `allocation` if it fits; whether it did."""
        before = self.free.copy()
        for tasks, demand in ((allocation.workers, job.worker), (allocation.ps, job.ps)):
            for machine, count in tasks:
                self.take(machine, demand, count)
                if min(self.free[machine]) < 0:
                    self.free = before
                    return False
        return True

    def release(self, job: PolicyJob, allocation: Allocation) -> None:
        """Give back all of `allocation`."""
        for tasks, demand in ((allocation.workers, job.worker), (allocation.ps, job.ps)):
            for machine, count in tasks:
                self.take(machine, demand, -count)


class Placement(Protocol):
    """Where the tasks of a job go."""

    name: str

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        """The machine for one more task, None if none has room."""
        ...


class BestFit:
    """The machine with least left of what the task needs; the lowest index among equals."""

    name = "best-fit"

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        best, least = None, None
        for machine in machines:
            row = room.free[machine]
            left = []
            for resource, amount in demand:
                if row[resource] < amount:
                    break
                left.append(row[resource])
            else:
                if least is None or left < least:
                    best, least = machine, left
        return best


class RoundRobin:
    """One task a machine, machine after machine, from where the last task was put."""

    name = "round-robin"

    def __init__(self) -> None:
        self._after = dict.fromkeys(GROUPS, 0)

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        size, begin = len(machines), self._after[group]
        for step in range(size):
            place = (begin + step) % size
            if room.fits(machines[place], demand):
                self._after[group] = place + 1
                return machines[place]
        return None


def place(room: Room, job: PolicyJob, workers: int, ps: int, how: Placement) -> Allocation | None:
    """Put `workers` and `ps` tasks of `job` into `room`, all of them or, if None, nothing."""
    before = room.free.copy()
    placed: list[Tasks] = []
    for group, demand, count in (("worker", job.worker, workers), ("ps", job.ps, ps)):
        tasks: dict[int, int] = {}
        for _ in range(count):
            machine = how.next_machine(room, room.site.machines_for(group), demand, group)
            if machine is None:
                room.free = before
                return None
            room.take(machine, demand, 1)
            tasks[machine] = tasks.get(machine, 0) + 1
        placed.append(tuple(sorted(tasks.items())))
    return Allocation(*placed)
