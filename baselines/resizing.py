"""One worker more or one less: what a job that runs then holds.

The number of parameter servers follows the job's own rule (`PolicyJob.ps_needed`), so that what is
held stays a complete gang.
"""

from __future__ import annotations

from collections.abc import Mapping

from oasis.scheduling import Allocation, PolicyJob, Room

Held = Mapping[int, Allocation]  # what each running job holds, by its index
Changes = dict[int, Allocation]  # what some of them hold afterwards
Counts = dict[int, int]


def add_worker(room: Room, job: PolicyJob, held: Allocation, machine: int) -> Allocation | None:
    """One worker more on `machine`, and the parameter servers that the rule adds for it.

    They go to machines of the job, those with most of its workers first, and then to any other.

    Parameters
    ----------
    room : Room
        What is free beside what all jobs hold; what is added is taken from it.
    job : PolicyJob
        The job.
    held : Allocation
        What it holds.
    machine : int
        Where the worker goes.

    Returns
    -------
    Allocation or None
        What it then holds; None, and `room` as it was, if there is no room or the job would have
        more workers than it can use.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(1,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> add_worker(room, job, Allocation(((0, 3),)), 0), room.free
    (Allocation(workers=((0, 4),), ps=()), [(0,)])
    """
    count = held.worker_count + 1
    hosts = room.site.machines_for("worker")
    if count > job.max_workers or machine not in hosts or not room.fits(machine, job.worker):
        return None
    before = room.free.copy()
    workers, servers = dict(held.workers), dict(held.ps)
    room.take(machine, job.worker, 1)
    workers[machine] = workers.get(machine, 0) + 1
    for _ in range(job.ps_needed(count) - held.ps_count):
        host = next((m for m in _by_workers(room, workers) if room.fits(m, job.ps)), None)
        if host is None:
            room.free = before
            return None
        room.take(host, job.ps, 1)
        servers[host] = servers.get(host, 0) + 1
    return _allocation(workers, servers)


def drop_worker(room: Room, job: PolicyJob, held: Allocation, machine: int) -> Allocation:
    """One worker less on `machine`, without the parameter servers that the rule no longer needs.

    Parameters
    ----------
    room : Room
        What is free beside what all jobs hold; it gets what is given back.
    job : PolicyJob
        The job.
    held : Allocation
        What it holds: a worker on `machine`, and more than the fewest with which it works.
    machine : int
        Where the worker goes.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(0,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> drop_worker(room, job, Allocation(((0, 4),)), 0), room.free
    (Allocation(workers=((0, 3),), ps=()), [(1,)])
    """
    workers, servers = dict(held.workers), dict(held.ps)
    _remove(room, workers, machine, job.worker)
    for _ in range(held.ps_count - job.ps_needed(held.worker_count - 1)):
        # the server that has fewest workers beside it goes first
        host = min(servers, key=lambda m: (workers.get(m, 0), -m))
        _remove(room, servers, host, job.ps)
    return _allocation(workers, servers)


def shrink(room: Room, job: PolicyJob, held: Allocation, workers: int) -> Allocation:
    """Drop workers until `workers` are left.

    Those go first that are on a machine without a parameter server of the job; among these, and
    then among the others, those on the machine with fewest of its workers, the last by index.

    Examples
    --------
    >>> from oasis.scheduling import FixedPs, Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), max_workers=4, ps_rule=FixedPs(1))
    >>> shrink(Room(site, [(3,), (1,)]), job, Allocation(((0, 1), (1, 3)), ((0, 1),)), 2)
    Allocation(workers=((0, 1), (1, 1)), ps=((0, 1),))
    """
    while held.worker_count > workers:
        homes = dict(held.ps)
        machine, _ = min(held.workers, key=lambda task: (task[0] in homes, task[1], -task[0]))
        held = drop_worker(room, job, held, machine)
    return held


def _by_workers(room: Room, workers: Counts) -> list[int]:
    """Hosts of parameter servers: those with most of the job's workers first, then by index."""
    return sorted(room.site.machines_for("ps"), key=lambda m: (-workers.get(m, 0), m))


def _remove(room: Room, tasks: Counts, machine: int, demand: tuple[tuple[int, int], ...]) -> None:
    room.take(machine, demand, -1)
    tasks[machine] -= 1
    if not tasks[machine]:
        del tasks[machine]


def _allocation(workers: Counts, servers: Counts) -> Allocation:
    return Allocation(tuple(sorted(workers.items())), tuple(sorted(servers.items())))
