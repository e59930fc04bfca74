"""The two scaling policies of DRAGON: whom to shrink for an urgent job, and whom to let grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from baselines.resizing import Changes, Held, add_worker, shrink
from oasis.scheduling import Allocation, PolicyJob, Room

Place = Callable[[Room], Allocation | None]


def surplus(job: PolicyJob, held: Allocation) -> int:
    """Workers that `job` could do without."""
    return held.worker_count - job.min_workers


def smallest_urgent(
    sizes: Iterable[Iterable[PolicyJob]],
    is_urgent: Callable[[PolicyJob], bool],
    size: Callable[[PolicyJob], float],
) -> PolicyJob | None:
    """Step (1) of Fig. 5, the alarm: "the smallest job with the least amount of requirements".

    Parameters
    ----------
    sizes : iterable of iterable of PolicyJob
        Waiting jobs, those that ask for the same together and in order of arrival.
    is_urgent : callable
        Whether a job has waited for longer than theta.
    size : callable
        What a job asks for, as a number.

    Returns
    -------
    PolicyJob or None
        The urgent job of the smallest size, the first to arrive among equals; None if none is
        urgent.

    Examples
    --------
    >>> jobs = [PolicyJob("abc"[k], 0.0, 1.0, ((0, 1),), max_workers=4, index=k) for k in range(3)]
    >>> sizes = {"a": 2, "b": 3, "c": 1}
    >>> waiting = [[job] for job in jobs]
    >>> smallest_urgent(waiting, lambda job: job.id != "c", lambda job: sizes[job.id]).id
    'a'
    """
    first = [next((job for job in same if is_urgent(job)), None) for same in sizes]
    urgent = [job for job in first if job is not None]
    return min(urgent, key=lambda job: (size(job), job.index), default=None)


def victims_by_surplus(able: Iterable[PolicyJob], held: Held) -> list[PolicyJob]:
    """The text's victims (section 3.3): "the ones with the most surplus resources" first.

    Parameters
    ----------
    able : iterable of PolicyJob
        Running jobs with a surplus, in order of launch, which decides between equals.
    held : mapping of int to Allocation
        What each holds.

    Examples
    --------
    >>> a, b = (PolicyJob("ab"[k], 0.0, 1.0, ((0, 1),), max_workers=4, index=k) for k in (0, 1))
    >>> held = {0: Allocation(((0, 2),)), 1: Allocation(((0, 4),))}
    >>> [job.id for job in victims_by_surplus([a, b], held)]
    ['b', 'a']
    """
    return sorted(able, key=lambda job: -surplus(job, held[job.index]))


def victims_in_order(able: Sequence[PolicyJob], held: Held, request: int) -> Sequence[PolicyJob]:
    """The public code's victims: in the order of the running queue.

    There are none unless all of them together have strictly more workers to spare than the
    `request` of the urgent job has, whatever is free beside.

    Parameters
    ----------
    able : sequence of PolicyJob
        Running jobs with a surplus, in order of launch.
    held : mapping of int to Allocation
        What each holds.
    request : int
        The fewest workers of the urgent job.

    Examples
    --------
    Two workers to spare are not enough for a job of two:

    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4, index=0)
    >>> held = {0: Allocation(((0, 3),))}
    >>> [len(victims_in_order([job], held, request)) for request in (1, 2)]
    [1, 0]
    """
    spare = sum(surplus(job, held[job.index]) for job in able)
    return able if spare > request else []


def make_room(
    room: Room, victims: Sequence[PolicyJob], held: Held, place: Place
) -> tuple[Changes, Allocation] | None:
    """Step (2) of Fig. 5, the scale-down policy: cut victims to their minimum until a job fits.

    Parameters
    ----------
    room : Room
        What is free; if the job fits, what is given back and taken is entered.
    victims : sequence of PolicyJob
        Those that may be cut, in this order.
    held : mapping of int to Allocation
        What each holds.
    place : callable
        Gives the urgent job room, or says None.

    Returns
    -------
    (dict of int to Allocation, Allocation) or None
        What the victims then hold, and what the job holds; None, and `room` as it was, if all
        victims together do not make enough room.
    """
    before = room.free.copy()
    changes: Changes = {}
    found = place(room)
    for victim in victims:
        if found is not None:
            break
        least = victim.min_workers
        changes[victim.index] = shrink(room, victim, held[victim.index], least)
        found = place(room)
    if found is None:
        room.free = before
        return None
    return changes, found


def grow_where_they_run(
    room: Room,
    able: Mapping[int, Iterable[PolicyJob]],
    held: Held,
    idle: Mapping[int, int],
    gpu: int,
) -> Changes:
    """Step (5) of Fig. 5 as the text has it: idle resources go to jobs already on their machine.

    On each machine the jobs that run there take one worker each by turns, in order of launch, as
    long as what has been idle there for lambda lasts. (The text does not say which of them.)

    Parameters
    ----------
    room : Room
        What is free; what is taken is entered.
    able : mapping of int to iterable of PolicyJob
        By machine, the jobs there that can use more workers, in order of launch.
    held : mapping of int to Allocation
        What each holds.
    idle : mapping of int to int
        By machine, how much of resource `gpu` has been idle for long enough, in grid units.
    gpu : int
        Index of the resource that must not be idle; only jobs whose workers need it can use it.

    Returns
    -------
    dict of int to Allocation
        What the jobs that grow then hold.

    Examples
    --------
    Three GPUs are free, but only two of them have been idle for long enough:

    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(3,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4, index=0)
    >>> grow_where_they_run(room, {0: [job]}, {0: Allocation(((0, 1),))}, {0: 2}, 0)
    {0: Allocation(workers=((0, 3),), ps=())}
    """
    changes: Changes = {}
    for machine in sorted(idle):
        growing = [job for job in able[machine] if dict(job.worker).get(gpu)]
        left = idle[machine]
        while growing:
            still = []
            for job in growing:
                need = dict(job.worker)[gpu]
                now = changes.get(job.index, held[job.index])
                more = add_worker(room, job, now, machine) if need <= left else None
                if more is not None:
                    left -= need
                    changes[job.index] = more
                    still.append(job)
            growing = still
    return changes


def grow_beside_servers(room: Room, able: Iterable[PolicyJob], held: Held) -> Changes:
    """Step (5) as the public code has it: one worker each by turns, on the server's machine only.

    A job without parameter servers grows on the machine with most of its workers.

    Parameters
    ----------
    room : Room
        What is free; what is taken is entered.
    able : iterable of PolicyJob
        Running jobs that can use more workers, in order of launch.
    held : mapping of int to Allocation
        What each holds.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(3,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=3, index=0)
    >>> grow_beside_servers(room, [job], {0: Allocation(((0, 1),))})
    {0: Allocation(workers=((0, 3),), ps=())}
    """
    changes: Changes = {}
    jobs = list(able)
    while jobs:
        still = []
        for job in jobs:
            now = changes.get(job.index, held[job.index])
            home = max(now.ps or now.workers, key=lambda task: (task[1], -task[0]))[0]
            more = add_worker(room, job, now, home)
            if more is not None:
                changes[job.index] = more
                still.append(job)
        jobs = still
    return changes
