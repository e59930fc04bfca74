"""Where the tasks of a job go: the rules that place them one by one.

Every rule places a whole job, or nothing; those that look at whole machines are in
`oasis.scheduling.node_placement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from oasis.scheduling.allocation import Allocation, Tasks
from oasis.scheduling.job import Demand, PolicyJob
from oasis.scheduling.room import Room
from oasis.scheduling.site import GROUPS


class Placement(Protocol):
    """A rule by which the tasks of a job are put on machines.

    Examples
    --------
    All rules are used alike; what is placed is taken from the room.

    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> room = Room(site, [(4,), (2,)])
    >>> BestFit().place(room, job, 2, 0), room.free
    (Allocation(workers=((1, 2),), ps=()), [(4,), (0,)])
    """

    name: str

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Put all tasks into `room`; return None and change nothing if they do not fit."""
        ...


class TaskByTask:
    """Rules that look for a machine for one task after the other, workers first."""

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        """The machine for one more task, None if none has room."""
        raise NotImplementedError

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        before = room.free.copy()
        placed: list[Tasks] = []
        for group, demand, count in (("worker", job.worker, workers), ("ps", job.ps, ps)):
            if not count:
                placed.append(())
                continue
            tasks: dict[int, int] = {}
            machines = room.site.machines_for(group)
            for _ in range(count):
                machine = self.next_machine(room, machines, demand, group)
                if machine is None:
                    room.free = before
                    return None
                room.take(machine, demand, 1)
                tasks[machine] = tasks.get(machine, 0) + 1
            placed.append(tuple(sorted(tasks.items())))
        return Allocation(*placed)


class BestFit(TaskByTask):
    """The machine with least left of what the task needs; the lowest index among equals.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> BestFit().place(Room(site, [(4,), (3,)]), job, 3, 0).workers
    ((1, 3),)
    """

    name = "best-fit"

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        best, least = None, None
        free, down = room.free, room.down
        for machine in machines:
            if down and machine in down:
                continue
            row = free[machine]
            left = []
            for resource, amount in demand:
                if row[resource] < amount:
                    break
                left.append(row[resource])
            else:
                if least is None or left < least:
                    best, least = machine, left
        return best


class RoundRobin(TaskByTask):
    """One task a machine, machine after machine, from where the last task was put.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> RoundRobin().place(Room(site, [(4,), (3,)]), job, 3, 0).workers
    ((0, 2), (1, 1))
    """

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


class FirstFit(TaskByTask):
    """The machine with the lowest index that has room.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> FirstFit().place(Room(site, [(4,), (3,)]), job, 3, 0).workers
    ((0, 3),)
    """

    name = "first-fit"

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        return next((machine for machine in machines if room.fits(machine, demand)), None)


class Spread(TaskByTask):
    """The machine with the largest free share, as the default Kubernetes scheduler scores nodes.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> Spread().place(Room(site, [(2,), (4,)]), job, 3, 0).workers
    ((0, 1), (1, 2))
    """

    name = "spread"

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        fitting = [machine for machine in machines if room.fits(machine, demand)]
        return min(fitting, key=lambda m: (-room.idle_share(m), m), default=None)


def place(room: Room, job: PolicyJob, workers: int, ps: int, how: Placement) -> Allocation | None:
    """Put `workers` and `ps` tasks of `job` into `room`, all of them or, if None, nothing."""
    return how.place(room, job, workers, ps)
