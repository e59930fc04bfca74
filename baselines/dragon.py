"""DRAGON: gangs that are packed, shrunk for urgent jobs and grown into what stays idle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any

from baselines.fair_shares import Shares
from baselines.gangs import Changes, GangController, Held, Size, add_worker, shrink
from oasis.model.errors import InputError
from oasis.scheduling import (
    Allocation,
    FirstFit,
    OneNode,
    Placement,
    Plan,
    PolicyJob,
    Room,
    Site,
    Spread,
)
from oasis.scheduling.policy import View


class IdleClock:
    """Since when how much of one resource has been free on each machine, without a break.

    What was idle last is taken into use first, so that the rest keeps its age; `use` takes what has
    been idle for longest.

    Parameters
    ----------
    machines : int
        Number of machines.

    Examples
    --------
    Two GPUs are free from time 0 on, two more from time 50; then one of these is taken:

    >>> clock = IdleClock(1)
    >>> for now, free in ((0.0, 2), (50.0, 4)):
    ...     clock.note(0, free, now)
    >>> clock.idle(0, 60.0, now=60.0), clock.idle(0, 10.0, now=60.0)
    (2, 4)
    >>> clock.note(0, 3, 70.0)
    >>> clock.idle(0, 60.0, now=70.0)
    2
    >>> clock.use(0, 2)  # two are left: one of the first and one of the others
    >>> clock.idle(0, 60.0, now=70.0), clock.idle(0, 20.0, now=70.0)
    (1, 2)
    """

    def __init__(self, machines: int) -> None:
        # by machine, amounts with the time since when so much has been free; both increase
        self._levels: list[list[tuple[int, float]]] = [[] for _ in range(machines)]

    def note(self, machine: int, free: int, now: float) -> None:
        """So much of `machine` is free from `now` on."""
        levels = self._levels[machine]
        since = now
        # What came free last is taken first, so that the oldest idle amount keeps its age.
        while levels and levels[-1][0] > free:
            since = levels.pop()[1]
        if free > (levels[-1][0] if levels else 0):
            levels.append((free, since))

    def use(self, machine: int, free: int) -> None:
        """What has been idle for longest on `machine` is used, until `free` is left."""
        levels = self._levels[machine]
        # The other way round: what alarms gave away was the part that had been idle for longest.
        used = (levels[-1][0] if levels else 0) - free
        self._levels[machine] = [(level - used, since) for level, since in levels if level > used]

    def idle(self, machine: int, limit: float, now: float) -> int:
        """The amount of `machine` that has been free for `limit` or longer."""
        amounts = [amount for amount, since in self._levels[machine] if since + limit <= now]
        return amounts[-1] if amounts else 0

    def next_passing(self, machine: int, limit: float, now: float) -> float:
        """When some of `machine` will next have been free for `limit`; infinity: never."""
        return min(
            (since + limit for _, since in self._levels[machine] if since + limit > now),
            default=math.inf,
        )


class FewestNodes:
    """The text's packing (section 3.3): "pack the tasks onto the least number of compute nodes".

    One machine if all tasks fit there, the fullest of those. Else the machines that hold most
    workers are filled one after the other, which takes the fewest machines for the workers, and
    each parameter server goes beside as many of them as it can.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "abc"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> FewestNodes().place(Room(site, [(1,), (2,), (3,)]), job, 4, 0).workers
    ((1, 1), (2, 3))
    """

    name = "fewest-nodes"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Put all tasks into `room`; return None and change nothing if they do not fit."""
        found = OneNode().place(room, job, workers, ps)
        if found is not None:
            return found
        hosts = room.fitting(room.site.machines_for("worker"), job.worker)
        most = {machine: room.count(machine, job.worker, workers) for machine in hosts}
        if sum(most.values()) < workers:
            return None
        before = room.free.copy()
        placed: dict[int, int] = {}
        # Filling the roomiest first takes the fewest machines, as all workers are alike.
        for machine in sorted(hosts, key=lambda m: (-most[m], m)):
            here = min(most[machine], workers - sum(placed.values()))
            if here:
                room.take(machine, job.worker, here)
                placed[machine] = here
        servers: dict[int, int] = {}
        beside = sorted(room.site.machines_for("ps"), key=lambda m: (-placed.get(m, 0), m))
        for machine in beside:
            here = room.count(machine, job.ps, ps - sum(servers.values()))
            if here:
                room.take(machine, job.ps, here)
                servers[machine] = here
        if sum(servers.values()) < ps:
            room.free = before
            return None
        return Allocation(tuple(sorted(placed.items())), tuple(sorted(servers.items())))


class Ladder:
    """The public code's placement: five tries, the later ones with the fewest workers.

    All workers on one machine; all of them spread; the fewest workers on one machine; these spread;
    these on the first machines that have room.

    Examples
    --------
    A job that asks for three workers and works with two, where one machine has room for two:

    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), min_workers=2, max_workers=4)
    >>> Ladder().place(Room(site, [(2,), (0,)]), job, 3, 0).workers
    ((0, 2),)
    """

    name = "ladder"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Put `workers`, or as few as the job works with, into `room`; None if not even they fit.

        Parameters
        ----------
        room : Room
            What is free; what is placed is taken from it.
        job : PolicyJob
            The job.
        workers, ps : int
            What it asks for.
        """
        least = job.min_workers
        few = (least, job.ps_needed(least))
        # The order of the public code: all workers near, all
        # anywhere, then the fewest in the same way.
        tries: tuple[tuple[Placement, tuple[int, int]], ...] = (
            (OneNode(), (workers, ps)),
            (Spread(), (workers, ps)),
            (OneNode(), few),
            (Spread(), few),
            (FirstFit(), few),
        )
        for rule, counts in tries:
            found = rule.place(room, job, *counts)
            if found is not None:
                return found
        return None


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
        What each holds.

    Examples
    --------
    >>> a, b = (PolicyJob("ab"[k], 0.0, 1.0, ((0, 1),), max_workers=4, index=k) for k in (0, 1))
    >>> held = {0: Allocation(((0, 2),)), 1: Allocation(((0, 4),))}
    >>> [job.id for job in victims_by_surplus([a, b], held)]
    ['b', 'a']
    """
    # The sort is stable: among equals the order of launch stays.
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
    # Strictly more, as in the public code, whatever the text says.
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
    # Round by round, one worker each, as the public code goes through its queue.
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


TEXT, CODE = "text", "code"


class LocalityAware(GangController):
    """The rival of the DRAGON paper: its scheduling and its packing, but no scaling (section 4.1).

    A job is launched with all its tasks at once, or waits (gang scheduling, section 3.1). The queue
    is served by `launch_first_that_fits`.

    What a job asks for, the "Num. Workers" of the paper's Table 1, and what was chosen is as in
    `GangController`; the queue is in order of arrival.

    Parameters
    ----------
    reading : {"text", "code"}
        Whether jobs are placed as the paper says (`FewestNodes`) or as the public code does
        (`Ladder`, which may launch a job with fewer workers than it asks for).

    Examples
    --------
    The second job of six waits, and a smaller one that came later passes it; each is packed on one
    machine:

    >>> from oasis.simulator import Machine, PolicyJob, Workload, replay
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> jobs = [
    ...     PolicyJob(name, 0.0, 12.0, ((0, 1),), min_workers=n, max_workers=n)
    ...     for name, n in (("a", 6), ("b", 6), ("c", 2))
    ... ]
    >>> [job.start for job in replay(Workload.of(site, jobs), LocalityAware()).jobs]
    [0.0, 2.0, 0.0]
    """

    name = "locality-aware"

    def __init__(self, *, reading: str = TEXT) -> None:
        if reading not in (TEXT, CODE):
            raise InputError("reading", f"expected {TEXT} or {CODE}", reading)
        super().__init__(FewestNodes if reading == TEXT else Ladder)
        self.reading = reading

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"reading": self.reading}

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._hopeless: set[Size] = set()

    def decide(self, view: View) -> Plan:
        self._begin(view)
        self.launch_first_that_fits()
        return self._plan

    def launch_first_that_fits(self) -> None:
        """Step (3) of Fig. 5, AFCFS (section 3.3): launch the first waiting job that fits.

        "It simply selects the first arrival job in the queue whose required resource capacity is
        less than the residual capacity"; then the next, until none fits. Read: less or equal, as a
        whole cluster could else never be used; and a job fits if its tasks can be placed, not if
        their sum is free somewhere.
        """
        self._queue.launch_all(lambda job: (job.index,), self._launch, self._hopeless)

    def _begin(self, view: View) -> None:
        """Enter what happened (OnAdd and OnDelete of Fig. 5) and look at the residual capacity."""
        super()._begin(view)
        self._hopeless.clear()


class Dragon(LocalityAware):
    """DRAGON (Lin, Yeh and Chou, CLOSER 2019): Fig. 5 and section 3.3 of the paper.

    In this order: `scale_down_for_urgent`, `launch_first_that_fits`, `scale_up_idle`. Queue, gangs
    and packing are those of `LocalityAware`.

    The paper prints neither theta nor lambda; the defaults are those of the public code. The paper
    calls its procedures "whenever jobs arrive or depart", but speaks of alarms, and the public code
    looks again every few seconds: here an alarm rings when its time has come, unless
    ``alarms=False``. A wait of exactly theta counts as longer, so that the alarm finds the job.

    ======================  =================================  =================================
    what                    ``reading="text"``                 ``reading="code"``
    ======================  =================================  =================================
    request of urgent jobs  the workers that they ask for      the fewest that they work with
    victims                 those with most surplus first      in order of launch
    enough room             when the job can be placed         and the surplus of all is strictly
                                                               more than the request
    idle for lambda         each GPU for itself                since anything was launched or
                                                               resized anywhere
    who grows               any job on the machine, each       any job, on the machine of its
                            where it already runs              parameter server
    placement               fewest machines                    `Ladder`
    ======================  =================================  =================================

    Nothing bounds how long a large job waits while smaller ones arrive: DRAGON promises only that
    the smallest urgent job is launched as soon as the surplus of the others makes room for it.

    Parameters
    ----------
    urgent_after : float
        Theta, seconds: a job that has waited so long is urgent. Not printed; 2 minutes in the code.
    idle_after : float
        Lambda, seconds: what has been idle so long is given to running jobs. Not printed; 1 minute
        in the code.
    alarms : bool
        Whether theta and lambda call the policy when they have passed; else it acts only when
        something happens.
    reading : {"text", "code"}
        See the table.

    Examples
    --------
    A job that may have four workers grows from two, a minute after it was launched:

    >>> from oasis.simulator import Machine, Workload, replay
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)),))
    >>> job = PolicyJob("a", 0.0, 600.0, ((0, 1),), max_workers=4, initial_workers=2)
    >>> run = replay(Workload.of(site, [job]), Dragon())
    >>> run.completions, run.jobs[0].resizes
    ([180.0], 1)
    """

    name = "dragon"

    def __init__(
        self,
        urgent_after: float = 120.0,
        idle_after: float = 60.0,
        *,
        alarms: bool = True,
        reading: str = TEXT,
    ) -> None:
        super().__init__(reading=reading)
        for option, value in (("urgent_after", urgent_after), ("idle_after", idle_after)):
            if not 0 <= value < math.inf:
                raise InputError(option, "expected seconds >= 0", value)
        self.urgent_after, self.idle_after = float(urgent_after), float(idle_after)
        self.alarms = alarms

    @property
    def parameters(self) -> Mapping[str, Any]:
        own = {
            "urgent_after": self.urgent_after,
            "idle_after": self.idle_after,
            "alarms": self.alarms,
        }
        return {**own, **super().parameters}

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._theta = self.urgent_after / site.unit_seconds
        self._lambda = self.idle_after / site.unit_seconds
        self._shares = Shares(site)
        self._gpu = site.resources.index("gpu") if "gpu" in site.resources else 0
        self._clock = IdleClock(len(site.machines))
        self._last_change = 0.0
        self._since: dict[int, float] = {}  # when a waiting job began to wait
        self._becoming_urgent: list[tuple[float, int]] = []

    def decide(self, view: View) -> Plan:
        self._begin(view)
        # The order of Fig. 5: urgent jobs, then the queue, and only then what stays idle.
        self._note_waiting(view)
        self.scale_down_for_urgent(view.now)
        self.launch_first_that_fits()
        self.scale_up_idle(view.now)
        if self._plan.changes:
            self._last_change = view.now
        if self.alarms:
            self._plan.wake_at = self._next_alarm(view.now)
        return self._plan

    def scale_down_for_urgent(self, now: float) -> None:
        """Steps (1) and (2) of Fig. 5: launch urgent jobs, shrinking running ones if that helps.

        The smallest urgent job comes first: "if we cannot release enough resources for the smallest
        job, then the larger urgent jobs certainly cannot be launched as well", so that the first
        failure ends the procedure.
        """
        while self._queue:
            job = smallest_urgent(
                self._queue.sizes(),
                lambda job: self._since[job.index] + self._theta <= now,
                lambda job: self._shares.dominant(job, *self._urgent_request(job)),
            )
            if job is None:
                return
            workers, ps = self._urgent_request(job)
            place = partial(self._rule.place, job=job, workers=workers, ps=ps)
            made = make_room(self._room, self._victims(workers), self._running.held, place)
            if made is None:
                return
            self._resize(made[0])
            if made[0]:  # victims gave back more than the job took: others may fit now
                self._hopeless.clear()
            self._queue.remove(job)
            self._set(job, made[1])

    def scale_up_idle(self, now: float) -> None:
        """Steps (4) and (5) of Fig. 5: what has been idle for lambda goes to running jobs.

        It "can only be allocated to a job that already ran on the same node to maintain job
        locality". Nothing is done while a job that fits could still be launched: this comes last.
        """
        # What was launched just now is no longer idle; only then is what remains given away.
        for machine, row in enumerate(self._room.free):
            self._clock.note(machine, row[self._gpu], now)
        running = self._running
        if self.reading == TEXT:
            idle = {m: self._clock.idle(m, self._lambda, now) for m in self._machines()}
            idle = {machine: amount for machine, amount in idle.items() if amount}
            able = {machine: running.growing_on(machine) for machine in idle}
            self._resize(grow_where_they_run(self._room, able, running.held, idle, self._gpu))
        # The public code has one clock for all GPUs: any launch or resize sets it back.
        elif not self._plan.changes and self._last_change + self._lambda <= now:
            self._resize(grow_beside_servers(self._room, running.growing(), running.held))
        for machine, row in enumerate(self._room.free):
            self._clock.use(machine, row[self._gpu])

    def _urgent_request(self, job: PolicyJob) -> tuple[int, int]:
        if self.reading == TEXT:
            return self._book.counts[job.index]
        return job.min_workers, job.ps_needed(job.min_workers)

    def _victims(self, request: int) -> Sequence[PolicyJob]:
        able, held = self._running.shrinking(), self._running.held
        if self.reading == TEXT:
            return victims_by_surplus(able, held)
        return victims_in_order(able, held, request)

    def _machines(self) -> list[int]:
        """Machines where something is free and where a job runs that could use it."""
        free, gpu = self._room.free, self._gpu
        return [m for m, row in enumerate(free) if row[gpu] and self._running.growing_on(m)]

    def _note_waiting(self, view: View) -> None:
        for job in (*view.arrived, *view.evicted):
            if job.index in self._queue:
                self._since[job.index] = view.now
                heappush(self._becoming_urgent, (view.now + self._theta, job.index))

    def _next_alarm(self, now: float) -> float | None:
        """When theta or lambda passes next, if anything could be done then."""
        times = []
        soon = self._becoming_urgent
        # An alarm of the past has been answered, and one of a job that was launched has no object.
        while soon and (soon[0][0] <= now or soon[0][1] not in self._queue):
            heappop(soon)
        if soon and self._running.shrinking():  # with nobody to shrink, an alarm changes nothing
            times.append(soon[0][0])
        if self.reading == TEXT:
            machines = self._machines()
            times += [self._clock.next_passing(m, self._lambda, now) for m in machines]
        elif self._last_change + self._lambda > now and self._running.growing():
            times.append(self._last_change + self._lambda)
        return min((time for time in times if math.isfinite(time)), default=None)
