"""Placement rules of DRAGON: that of its paper and those of its two public versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from oasis.scheduling import Allocation, OneNode, PolicyJob, Room
from oasis.scheduling.job import Tasks

Counts = dict[int, int]  # tasks by machine


class FewestNodes:
    """The text's packing (section 3.3): "pack the tasks onto the least number of compute nodes".

    One machine if all tasks fit there, the fullest of those. Else the machines that hold most
    workers are filled one after the other, which takes the fewest machines for the workers, and
    each parameter server goes beside as many of them as it can. Where that needs a machine for
    parameter servers alone, each machine is tried that has room for all of them, filled up with
    workers; it is taken if there are fewer machines in all then.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu", "cpu"), tuple(Machine(name, (4.0, 4.0)) for name in "abc"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), ((1, 1),), max_workers=6, fixed_ps=1)
    >>> FewestNodes().place(Room(site, [(4, 0), (2, 0), (2, 4)]), job, 6, 1)
    Allocation(workers=((0, 4), (2, 2)), ps=((2, 1),))
    """

    name = "fewest-nodes"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place all tasks; None, with `room` unchanged, if they do not fit."""
        found = OneNode().place(room, job, workers, ps)
        if found is not None:
            return found
        most = {
            machine: room.count(machine, job.worker, workers)
            for machine in room.fitting(room.site.machines_for("worker"), job.worker)
        }
        if sum(most.values()) < workers:
            return None
        # Filling the roomiest first takes the fewest machines, as all workers are alike.
        order = sorted(most, key=lambda machine: (-most[machine], machine))
        placed = _filled(order, most, workers)
        before = room.free.copy()
        servers = _beside(room, job, placed, ps)
        if servers is not None:
            found = _allocation(placed, servers)
        # The workers alone need `placed`: as few machines in all cannot be undercut.
        if ps and (found is None or len(found.machines) > len(placed)):
            room.free = before
            found = self._around_servers(room, job, (workers, ps), (order, most), found)
        return found

    def _around_servers(
        self,
        room: Room,
        job: PolicyJob,
        counts: tuple[int, int],
        hosts: tuple[Sequence[int], Mapping[int, int]],
        found: Allocation | None,
    ) -> Allocation | None:
        """All parameter servers on one machine, and workers from there on, if that takes fewer."""
        (workers, ps), (order, most) = counts, hosts
        before, tries = room.free.copy(), []
        for home in room.site.machines_for("ps"):
            if room.count(home, job.ps, ps) < ps:
                continue
            room.take(home, job.ps, ps)
            here = room.count(home, job.worker, workers) if home in most else 0
            room.free = before.copy()
            around = {**most, home: here}
            if sum(around.values()) >= workers:
                placed = _filled([home, *(m for m in order if m != home)], around, workers)
                # Of equals the one with most workers beside the servers, then the first machine.
                tries.append((len(placed.keys() | {home}), -here, home, placed))
        best = min(tries, default=None)
        if best is not None and (found is None or best[0] < len(found.machines)):
            found = _allocation(best[-1], {best[-2]: ps})
        if found is not None:
            room.hold(job, found)
        return found


class Ladder:
    """The placement of the public code: four tries, the last two with the fewest workers.

    All workers on the first machine that has room for them; machine by machine, as many as fit; the
    fewest workers on one machine; these machine by machine. The code visits machines in no
    defined order, here in theirs, and puts the parameter server on the machine with most workers
    whether it fits there or not: here on the first of those that has room, and a try is given up
    if none has.

    Examples
    --------
    Four workers where two machines have room for three each:

    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), min_workers=2, max_workers=4)
    >>> Ladder().place(Room(site, [(3,), (3,)]), job, 4, 0).workers
    ((0, 3), (1, 1))
    """

    name = "ladder"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place `workers`, or the fewest that the job works with; None if not even these fit.

        Parameters
        ----------
        room : Room
            What is free; what is placed is taken from it.
        job : PolicyJob
            The job.
        workers, ps : int
            Requested numbers of tasks.
        """
        least = job.min_workers
        hosts = room.site.machines_for("worker")
        for count, of_them in ((workers, ps), (least, job.ps_needed(least))):
            most = {machine: room.count(machine, job.worker, count) for machine in hosts}
            whole = next((machine for machine in hosts if most[machine] == count), None)
            tries = [] if whole is None else [{whole: count}]
            if sum(most.values()) >= count:
                tries.append(_filled(hosts, most, count))
            for placed in tries:
                servers = _beside(room, job, placed, of_them)
                if servers is not None:
                    return _allocation(placed, servers)
        return None


class FullestStart:
    """The placement of the authors' later release: on one machine, otherwise from one machine on.

    The first machine that has room for all tasks. Else filling begins with the machine that takes
    most tasks of one kind, goes on with the others in their order, parameter servers first on each,
    and ends with as many workers as fit, if they are as many as the job works with.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), min_workers=2, max_workers=4)
    >>> FullestStart().place(Room(site, [(1,), (2,)]), job, 4, 0).workers
    ((0, 1), (1, 2))
    """

    name = "fullest-start"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place all tasks, or as many workers as fit; None, unchanged, if these are too few.

        Parameters
        ----------
        room : Room
            What is free; what is placed is taken from it.
        job : PolicyJob
            The job.
        workers, ps : int
            Requested numbers of tasks.
        """
        before = room.free.copy()
        machines = range(len(room.free))
        most: list[int] = []
        for machine in machines:
            servers, here = self._take(room, job, machine, (workers, ps))
            if (here, servers) == (workers, ps):
                return _allocation({machine: here}, {machine: servers})
            room.free = before.copy()
            most.append(max(servers, here))
        start = max(machines, key=lambda machine: (most[machine], -machine))
        placed: Counts = {}
        homes: Counts = {}
        for machine in chain((start,), (other for other in machines if other != start)):
            left = (workers - sum(placed.values()), ps - sum(homes.values()))
            homes[machine], placed[machine] = self._take(room, job, machine, left)
        count, of_them = sum(placed.values()), sum(homes.values())
        enough = of_them == ps and count >= job.min_workers
        if enough and (count == workers or job.ps_needed(count) == ps):
            return _allocation(placed, homes)
        room.free = before
        # Fewer workers may need fewer parameter servers, and then find room.
        return self.place(room, job, count, job.ps_needed(count)) if enough else None

    @staticmethod
    def _take(room: Room, job: PolicyJob, machine: int, left: tuple[int, int]) -> tuple[int, int]:
        """Tasks that go on `machine`: no worker before the last parameter server."""
        workers, ps = left
        site = room.site
        servers = room.count(machine, job.ps, ps) if machine in site.machines_for("ps") else 0
        room.take(machine, job.ps, servers)
        if servers < ps or machine not in site.machines_for("worker"):
            return servers, 0
        here = room.count(machine, job.worker, workers)
        room.take(machine, job.worker, here)
        return servers, here


def _filled(order: Sequence[int], most: Mapping[int, int], workers: int) -> Counts:
    """Distribute `workers` over machines in this order, on each as many as it takes."""
    placed: Counts = {}
    for machine in order:
        here = min(most[machine], workers)
        if here:
            placed[machine] = here
            workers -= here
    return placed


def _beside(room: Room, job: PolicyJob, placed: Counts, ps: int) -> Counts | None:
    """Place these workers, and parameter servers beside as many of them as possible.

    Returns where those are; None, and `room` as it was, if there is no room for all of them.
    """
    before = room.free.copy()
    for machine, count in placed.items():
        room.take(machine, job.worker, count)
    servers: Counts = {}
    for machine in sorted(room.site.machines_for("ps"), key=lambda m: (-placed.get(m, 0), m)):
        here = room.count(machine, job.ps, ps)
        if here:
            room.take(machine, job.ps, here)
            servers[machine] = here
            ps -= here
    if ps:
        room.free = before
        return None
    return servers


def _allocation(workers: Counts, servers: Counts) -> Allocation:
    def tasks(counts: Counts) -> Tasks:
        return tuple(sorted((machine, count) for machine, count in counts.items() if count))

    return Allocation(tasks(workers), tasks(servers))
