"""Which jobs DRAGON shrinks and grows: by its paper, and by its two public versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from baselines.gangs import Changes, Held, add_worker, drop_worker, shrink
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
        Size of the request of a job, as a number.

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
    # Within a size all jobs are as large, and the first to arrive waited longest.
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
        Allocation of each job, by index.

    Examples
    --------
    >>> a, b = (PolicyJob("ab"[k], 0.0, 1.0, ((0, 1),), max_workers=4, index=k) for k in (0, 1))
    >>> held = {0: Allocation(((0, 2),)), 1: Allocation(((0, 4),))}
    >>> [job.id for job in victims_by_surplus([a, b], held)]
    ['b', 'a']
    """
    # The sort is stable: among equals the order of launch stays.
    return sorted(able, key=lambda job: -surplus(job, held[job.index]))


def make_room(
    room: Room, victims: Sequence[PolicyJob], held: Held, place: Place
) -> tuple[Changes, Allocation] | None:
    """Step (2) of Fig. 5, the scale-down policy: cut victims to their minimum until a job fits.

    Who turns out not to have helped gets back what it held.

    Parameters
    ----------
    room : Room
        What is free; if the job fits, what is given back and taken is entered.
    victims : sequence of PolicyJob
        Those that may be cut, in this order.
    held : mapping of int to Allocation
        Allocation of each job, by index.
    place : callable
        Gives the urgent job room, or says None.

    Returns
    -------
    (dict of int to Allocation, Allocation) or None
        What the victims then hold, and what the job holds; None, and `room` as it was, if all
        victims together do not make enough room.
    """
    before = room.free.copy()  # if all victims together are not enough, none of them gives anything
    changes: Changes = {}
    found = place(room)  # without a victim, where it fits as it is
    for victim in victims:
        if found is not None:
            break
        least = victim.min_workers
        changes[victim.index] = shrink(room, victim, held[victim.index], least)
        found = place(room)
    if found is None:
        room.free = before
        return None
    for victim in victims:
        now = changes.get(victim.index)
        # The last victim may have made enough room by itself.
        if now is not None and take_back(room, victim, now, held[victim.index]):
            del changes[victim.index]
    return changes, found


def take_back(room: Room, job: PolicyJob, now: Allocation, before: Allocation) -> bool:
    """Restore the earlier allocation of `job`, which now holds `now`; return whether it fits.

    Examples
    --------
    One of the two GPUs that it gave has been taken since:

    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(1,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> take_back(room, job, Allocation(((0, 1),)), Allocation(((0, 3),)))
    False
    """
    room.release(job, now)
    if room.hold(job, before):
        return True
    room.hold(job, now)
    return False


def give_by_count(able: Iterable[PolicyJob], held: Held, need: int) -> Counter[int] | None:
    """The public code's scale-down: one worker at a time, until `need` of them are taken.

    Parameters
    ----------
    able : iterable of PolicyJob
        Running jobs with a surplus, in order of launch: each gives all of it before the next.
    held : mapping of int to Allocation
        Allocation of each job, by index.
    need : int
        How many workers are enough. It is looked at after a worker is taken: at least one is.

    Returns
    -------
    Counter or None
        How many workers each gives, by index; None if they do not have enough.

    Examples
    --------
    >>> jobs = [PolicyJob("ab"[k], 0.0, 1.0, ((0, 1),), max_workers=4, index=k) for k in (0, 1)]
    >>> held = {0: Allocation(((0, 3),)), 1: Allocation(((0, 4),))}
    >>> [give_by_count(jobs, held, need) for need in (-1, 4, 6)]
    [Counter({0: 1}), Counter({0: 2, 1: 2}), None]
    """
    # Counted, not placed: the public code does not look whether the urgent job then fits.
    line = [job.index for job in able for _ in range(surplus(job, held[job.index]))]
    taken = max(need, 1)
    return Counter(line[:taken]) if taken <= len(line) else None


def give_until(
    room: Room, able: Iterable[PolicyJob], held: Held, fits: Callable[[Room], bool]
) -> Changes | None:
    """The later release's scale-down: one worker at a time, until the urgent job fits.

    Each gives workers away from its parameter servers first, machine by machine, and all of its
    surplus before the next.

    Parameters
    ----------
    room : Room
        Free capacity; not changed.
    able : iterable of PolicyJob
        Running jobs with a surplus, in order of launch.
    held : mapping of int to Allocation
        Allocation of each job, by index.
    fits : callable
        Whether the urgent job has room, which it may take.

    Returns
    -------
    dict of int to Allocation or None
        What those who give hold then; None if all of them do not make enough room.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(0,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4, index=0)
    >>> give_until(room, [job], {0: Allocation(((0, 4),))}, lambda room: room.fits(0, ((0, 2),)))
    {0: Allocation(workers=((0, 2),), ps=())}
    """
    trial = Room(room.site, room.free.copy(), room.down)
    changes: Changes = {}
    line = [job for job in able for _ in range(surplus(job, held[job.index]))]
    # Asked once more after the last worker: None stands for "no further worker".
    for job in (*line, None):
        if fits(trial):
            return changes
        if job is not None:
            now = changes.get(job.index, held[job.index])
            homes = dict(now.ps)
            # Workers beside their parameter servers leave last.
            machine = min((task[0] for task in now.workers), key=lambda m: (m in homes, m))
            changes[job.index] = drop_worker(trial, job, now, machine)
    return None


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
        Free capacity; placed tasks are subtracted.
    able : mapping of int to iterable of PolicyJob
        By machine, the jobs there that can use more workers, in order of launch.
    held : mapping of int to Allocation
        Allocation of each job, by index.
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
        while growing:  # round by round, so that no job takes all before the next had its turn
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


def home_of(held: Allocation) -> int:
    """The machine with most parameter servers, or most workers of a job without any.

    Examples
    --------
    >>> home_of(Allocation(((0, 3), (1, 1)), ((1, 1),)))
    1
    """
    return max(held.ps or held.workers, key=lambda task: (task[1], -task[0]))[0]


def grow_beside_servers(room: Room, able: Iterable[PolicyJob], held: Held) -> Changes:
    """Step (5) as the public code has it: one worker each by turns, on the server's machine only.

    A job without parameter servers grows on the machine with most of its workers.

    Parameters
    ----------
    room : Room
        Free capacity; placed tasks are subtracted.
    able : iterable of PolicyJob
        Running jobs that can use more workers, in order of launch.
    held : mapping of int to Allocation
        Allocation of each job, by index.

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
    # Round by round, one worker each, as the public code goes through its queue.
    while jobs:
        still = []
        for job in jobs:
            now = changes.get(job.index, held[job.index])
            more = add_worker(room, job, now, home_of(now))
            if more is not None:
                changes[job.index] = more
                still.append(job)
        jobs = still
    return changes


def grow_anywhere(room: Room, able: Iterable[PolicyJob], held: Held) -> Changes:
    """The later release's scale-up: machine by machine, the first job takes all that it can use.

    Parameters
    ----------
    room : Room
        Free capacity; placed tasks are subtracted.
    able : iterable of PolicyJob
        Running jobs that can use more workers, in order of launch.
    held : mapping of int to Allocation
        Allocation of each job, by index.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> room = Room(Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab")), [(1,), (2,)])
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=3, index=0)
    >>> grow_anywhere(room, [job], {0: Allocation(((0, 1),))})
    {0: Allocation(workers=((0, 2), (1, 1)), ps=())}
    """
    changes: Changes = {}
    line = list(able)
    for machine in room.site.machines_for("worker"):
        while line:
            job = line[0]
            now = changes.get(job.index, held[job.index])
            more = add_worker(room, job, now, machine)
            if more is not None:
                changes[job.index] = more
            elif now.worker_count < job.max_workers:
                break  # it goes on with the next machine
            else:
                line.pop(0)
    return changes
