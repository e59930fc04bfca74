"""The autoscaler's procedure "scale down", as it is read and as it is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from baselines.resizing import Changes, Held, drop_worker
from oasis.scheduling import Allocation, PolicyJob, Room

OnNode = Callable[[int], Allocation | None]
Place = Callable[[], Allocation | None]


def scale_down(
    room: Room, victims: Iterable[PolicyJob], held: Held, on_node: OnNode, place: Place
) -> tuple[Changes, Allocation] | None:
    """Scale down: free workers above the minimum of running jobs until a job can be scheduled.

    Read: the victims give workers one at a time, machine after machine where they have any, and
    after each the machine that gained is looked at; when "the number of worker of every job with
    lower priority has been reduced to its minimum value", a place anywhere is looked for; if there
    is none either, scaling down has failed and nobody gives anything. See `scale_down_as_printed`
    for what the printed loop does.

    Parameters
    ----------
    room : Room
        What is free; on success, what is given back and taken is entered.
    victims : iterable of PolicyJob
        Running jobs, in the order in which they give.
    held : mapping of int to Allocation
        What each holds.
    on_node : callable
        Gives the new job room on one machine, or says None.
    place : callable
        Gives it room anywhere, or says None.

    Returns
    -------
    (dict of int to Allocation, Allocation) or None
        What the victims then hold, and what the new job holds; None, and `room` as it was, if
        scaling down failed.

    Examples
    --------
    >>> from baselines.node import on_node
    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(0,)])
    >>> a, b = (PolicyJob("ab"[k], 0.0, 1.0, ((0, 1),), max_workers=4, index=k) for k in (0, 1))
    >>> scale_down(
    ...     room,
    ...     [a],
    ...     {0: Allocation(((0, 4),))},
    ...     lambda machine: on_node(room, b, 2, 0, machine),
    ...     lambda: None,
    ... )
    ({0: Allocation(workers=((0, 2),), ps=())}, Allocation(workers=((0, 2),), ps=()))
    """
    before = room.free.copy()
    changes: Changes = {}
    for job in victims:
        now, spare = held[job.index], held[job.index].worker_count - job.min_workers
        for machine in (m for m, count in held[job.index].workers for _ in range(count)):
            if not spare:
                break
            now = changes[job.index] = drop_worker(room, job, now, machine)
            spare -= 1
            found = on_node(machine)
            if found is not None:
                return changes, found
    found = place()
    if found is not None:
        return changes, found
    room.free = before
    return None


def scale_down_as_printed(
    room: Room, running: Sequence[PolicyJob], held: Held, fits: Callable[[int], bool]
) -> Changes | None:
    """Scale down, with the loops as they are printed.

    Each running job, in order of launch, gives at most one worker a machine (line 18), and whether
    the job fits on a machine is looked at before a worker is taken there (line 7), and once more on
    the last machine of all (line 22). Nothing is launched: success is all that is returned. The
    printed loop also takes workers from machines where the job has none; only those where it has
    some can be meant.

    Parameters
    ----------
    room : Room
        What is free; on success, what is given back is entered.
    running : sequence of PolicyJob
        All running jobs, in order of launch.
    held : mapping of int to Allocation
        What each holds.
    fits : callable
        Whether the job for which room is made fits on a machine.

    Returns
    -------
    dict of int to Allocation or None
        What the running jobs that gave something then hold; None, and `room` as it was, if scaling
        down failed.

    Examples
    --------
    One worker is given, though two were asked for and the job has three to spare:

    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(0,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4, index=0)
    >>> held = {0: Allocation(((0, 4),))}
    >>> for wanted in (2, 1):
    ...     print(scale_down_as_printed(room, [job], held, lambda m: room.fits(m, ((0, wanted),))))
    None
    {0: Allocation(workers=((0, 3),), ps=())}
    """
    before = room.free.copy()
    changes: Changes = {}
    last: int | None = None
    for job in running:
        now, spare = held[job.index], held[job.index].worker_count - job.min_workers
        for last, _ in held[job.index].workers:
            if fits(last):
                return changes
            if not spare:
                break
            now = changes[job.index] = drop_worker(room, job, now, last)
            spare -= 1
    if last is not None and fits(last):
        return changes
    room.free = before
    return None
