"""Placement rules that look at whole machines: which of them host a job together.

The order of machines of the same kind is by index wherever nothing else decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from oasis.scheduling.allocation import Allocation, Tasks
from oasis.scheduling.job import Demand, PolicyJob
from oasis.scheduling.room import Room


class OneNode:
    """All tasks on one machine: that with the smallest free share on which they fit.

    Where no machine hosts both workers and parameter servers, as on an instance of the model, all
    workers go on one machine and all parameter servers on one other.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu", "cpu"), (Machine("n0", (2.0, 4.0)), Machine("n1", (4.0, 4.0))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), ((1, 1),), min_workers=2, max_workers=4)
    >>> OneNode().place(Room(site, [(2, 4), (2, 2)]), job, 2, 1)
    Allocation(workers=((1, 2),), ps=((1, 1),))
    """

    name = "one-node"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        site, asked, beside = room.site, _times(job.worker, workers), _times(job.ps, ps)
        home: int | None = None
        server: int | None = None
        if workers and ps and site.machines_for_both:
            home = server = _fullest(room, site.machines_for_both, asked + beside)
        else:
            if workers:
                home = _fullest(room, site.machines_for("worker"), asked)
            if ps:
                server = _fullest(room, site.machines_for("ps"), beside)
        if (workers and home is None) or (ps and server is None):
            return None
        found = Allocation(
            ((home, workers),) if home is not None else (),
            ((server, ps),) if server is not None else (),
        )
        room.hold(job, found)
        return found


class MostIdle:
    """Together on the machines with most idle resources, each filled before the next is begun.

    Parameter servers are placed first, and the workers begin on the machines beside them.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu", "cpu"), (Machine("n0", (2.0, 4.0)), Machine("n1", (4.0, 4.0))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), ((1, 1),), min_workers=2, max_workers=4)
    >>> MostIdle().place(Room(site, [(2, 4), (4, 3)]), job, 3, 1)
    Allocation(workers=((0, 2), (1, 1)), ps=((0, 1),))
    """

    name = "most-idle"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        before = room.free.copy()
        servers = _fill(room, room.most_idle(room.site.machines_for("ps")), job.ps, ps)
        hosts = room.site.machines_for("worker")
        used = [machine for machine, _ in servers or () if machine in set(hosts)]
        order = [*used, *(m for m in room.most_idle(hosts) if m not in set(used))]
        placed = _fill(room, order, job.worker, workers) if servers is not None else None
        if servers is None or placed is None:
            room.free = before
            return None
        return Allocation(placed, servers)


class MinimumOnOneNode:
    """The parameter servers and the fewest workers on one machine, the other workers elsewhere.

    The other workers take what is left on that machine, and then the most idle ones.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu", "cpu"), (Machine("n0", (2.0, 4.0)), Machine("n1", (4.0, 4.0))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), ((1, 1),), min_workers=2, max_workers=4)
    >>> MinimumOnOneNode().place(Room(site, [(2, 4), (4, 4)]), job, 3, 1)
    Allocation(workers=((0, 2), (1, 1)), ps=((0, 1),))
    """

    name = "minimum-on-one-node"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        before = room.free.copy()
        core = OneNode().place(room, job, min(workers, job.min_workers), ps)
        if core is None:
            return None
        home = [machine for machine, _ in core.workers]
        hosts = room.site.machines_for("worker")
        order = [*home, *(m for m in room.most_idle(hosts) if m not in home)]
        more = _fill(room, order, job.worker, workers - core.worker_count)
        if more is None:
            room.free = before
            return None
        return Allocation(_sum(core.workers, more), core.ps)


def _times(demand: Demand, count: int) -> Demand:
    """What `count` tasks of `demand` reserve together."""
    return tuple((resource, count * amount) for resource, amount in demand)


def _fullest(room: Room, machines: Sequence[int], demand: Demand) -> int | None:
    """The machine with the smallest free share that has room for `demand`; None if none has."""
    total: dict[int, int] = {}
    for resource, amount in demand:
        total[resource] = total.get(resource, 0) + amount
    fitting = room.fitting(machines, tuple(total.items()))
    return min(fitting, key=lambda machine: (room.idle_share(machine), machine), default=None)


def _fill(room: Room, machines: Sequence[int], demand: Demand, count: int) -> Tasks | None:
    """Put `count` tasks on `machines` in their order; None if they do not fit there."""
    tasks = []
    for machine in machines:
        if not count:
            break
        here = room.count(machine, demand, count)
        if here:
            room.take(machine, demand, here)
            tasks.append((machine, here))
            count -= here
    return None if count else tuple(sorted(tasks))


def _sum(one: Tasks, other: Tasks) -> Tasks:
    counts = dict(one)
    for machine, count in other:
        counts[machine] = counts.get(machine, 0) + count
    return tuple(sorted(counts.items()))
