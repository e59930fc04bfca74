"""DRAGON: gangs that are packed, shrunk for urgent jobs and grown into what stays idle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from heapq import heappop, heappush
from typing import Any

from baselines.dragon_placing import FewestNodes, FullestStart, Ladder
from baselines.dragon_scaling import (
    give_by_count,
    give_until,
    grow_anywhere,
    grow_beside_servers,
    grow_where_they_run,
    home_of,
    make_room,
    smallest_urgent,
    surplus,
    take_back,
    victims_by_surplus,
)
from baselines.fair_shares import Shares
from baselines.gangs import Changes, GangController, Size, by_arrival, shrink
from oasis.model.errors import InputError
from oasis.scheduling import Placement, Plan, PolicyJob, Site
from oasis.scheduling.policy import View


class IdleClock:
    """Time since which each amount of one resource has been free on each machine.

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
        """Use the capacity of `machine` that has been idle longest, until only `free` is left."""
        levels = self._levels[machine]
        # The other way round: what alarms gave away was the part that had been idle for longest.
        used = (levels[-1][0] if levels else 0) - free
        self._levels[machine] = [(level - used, since) for level, since in levels if level > used]

    def idle(self, machine: int, limit: float, now: float) -> int:
        """The amount of `machine` that has been free for `limit` or longer."""
        amounts = [amount for amount, since in self._levels[machine] if since + limit <= now]
        return amounts[-1] if amounts else 0

    def next_passing(self, machine: int, limit: float, now: float) -> float:
        """Next time at which some of `machine` has been free for `limit`; infinity: never."""
        return min(
            (since + limit for _, since in self._levels[machine] if since + limit > now),
            default=math.inf,
        )


TEXT, CODE, RELEASE = "text", "code", "release"
RULES: Mapping[str, Callable[[], Placement]] = {
    TEXT: FewestNodes,
    CODE: Ladder,
    RELEASE: FullestStart,
}
THETA = {TEXT: 120.0, CODE: 120.0, RELEASE: 30.0}  # seconds
NO_REQUEST = 100  # what the public code takes for the fewest workers if no job is urgent


class LocalityAware(GangController):
    """Whole gangs start on the fewest machines; a job that fits may pass (DRAGON without scaling).

    The rival of the DRAGON paper (section 4.1).

    A job is launched with all its tasks at once, or waits (gang scheduling, section 3.1). The queue
    is served by `launch_first_that_fits`.

    What a job asks for, the "Num. Workers" of the paper's Table 1, and what was chosen is as in
    `GangController`; the queue is in order of arrival.

    Parameters
    ----------
    reading : {"text", "code", "release"}
        Whether jobs are placed as the paper says (`FewestNodes`), as the public code does
        (`Ladder`), or as its later release (`FullestStart`). The last two may launch a job with
        fewer workers than it asks for.

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
        if reading not in RULES:
            raise InputError("reading", f"expected {TEXT}, {CODE} or {RELEASE}", reading)
        super().__init__(RULES[reading])
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
        """Enter the events (OnAdd and OnDelete of Fig. 5) and the residual capacity."""
        super()._begin(view)
        self._hopeless.clear()


class Dragon(LocalityAware):
    """As locality-aware; jobs shrink for urgent ones and grow into idle GPUs.

    DRAGON (Lin, Yeh and Chou, CLOSER 2019), Fig. 5 and section 3.3 of the paper.

    In this order: `scale_down_for_urgent`, `launch_first_that_fits`, `scale_up_idle`. Queue, gangs
    and packing are those of `LocalityAware`.

    The paper prints neither theta nor lambda; the defaults are those of the public code. The paper
    calls its procedures "whenever jobs arrive or depart", but speaks of alarms, and the public code
    looks again every few seconds: here an alarm rings when its time has come, unless
    ``alarms=False``. A wait of exactly theta counts as longer, so that the alarm finds the job.

    The code of the paper is branch ``auto-scale`` of github.com/ChanYiLin/tf-operator-Dragon, at
    commit ``a825ee42``; the authors' later release is version 0.9.1 of
    github.com/NTHU-LSALAB/DRAGON. Both act in rounds (`launch_in_rounds`).

    ================  ======================  ========================  ==========================
    what              ``reading="text"``      ``reading="code"``        ``reading="release"``
    ================  ======================  ========================  ==========================
    urgent            the smallest that       that with the fewest      the first in the queue,
                      waited theta            workers                   theta is 30 s
    its request       the workers asked for   the fewest                the fewest
    victims           most surplus first      in order of launch        in order of launch
    a victim gives    all its surplus         a worker at a time        a worker at a time
    enough            when the job can be     by the number of GPUs     when the fewest workers
                      placed                                            can be placed
    who is launched   the urgent job          the first that fits       the first that fits, and
                                                                        nobody if the urgent job
                                                                        cannot be helped
    idle for lambda   each GPU for itself     since the last launch,    since anything was done,
                                              cut or growth             or a job was urgent
    who grows         any job on the          any, by turns, on the     the first, on all machines
                      machine, each where     machine of its            in turn, then the next
                      it already runs         parameter server
    placement         `FewestNodes`           `Ladder`                  `FullestStart`
    ================  ======================  ========================  ==========================

    In all of them a victim that turns out not to have helped gets back what it gave; nothing is
    published about that, and the public versions leave it shrunk.

    Nothing bounds how long a large job waits while smaller ones arrive: DRAGON promises only that
    the smallest urgent job is launched as soon as the surplus of the others makes room for it.

    Parameters
    ----------
    urgent_after : float or None
        Theta, seconds: a job that has waited this long is urgent. Not printed; None: 2 minutes, as
        in the public code, and 30 seconds as in its release.
    idle_after : float
        Lambda, seconds: what has been idle this long goes to running jobs. Not printed; 1 minute
        in both versions of the code.
    alarms : bool
        Whether theta and lambda call the policy when they have passed; else it acts only when
        something happens.
    reading : {"text", "code", "release"}
        Which version is followed where they differ: the paper, its public code or its release.

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
    needs = "elastic jobs"

    def __init__(
        self,
        urgent_after: float | None = None,
        idle_after: float = 60.0,
        *,
        alarms: bool = True,
        reading: str = TEXT,
    ) -> None:
        super().__init__(reading=reading)
        theta = THETA[reading] if urgent_after is None else urgent_after
        for option, value in (("urgent_after", theta), ("idle_after", idle_after)):
            if not 0 <= value < math.inf:
                raise InputError(option, "expected seconds >= 0", value)
        self.urgent_after, self.idle_after = float(theta), float(idle_after)
        self._given = urgent_after  # as it was said, so that the same call makes it again
        self.alarms = alarms

    @property
    def parameters(self) -> Mapping[str, Any]:
        own = {
            "urgent_after": self._given,
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
        self._cut_for: int | None = None  # the job that the last cut of the public code was for
        self._since: dict[int, float] = {}  # when a waiting job began to wait
        self._becoming_urgent: list[tuple[float, int]] = []

    def decide(self, view: View) -> Plan:
        self._begin(view)
        # The order of Fig. 5: urgent jobs, then the queue, and only then what stays idle.
        self._note_waiting(view)
        if self.reading == TEXT:
            self.scale_down_for_urgent(view.now)
            self.launch_first_that_fits()
        else:
            self.launch_in_rounds(view.now)
        self.scale_up_idle(view.now)
        if self.alarms:
            self._plan.wake_at = self._next_alarm(view.now)
        return self._plan

    def scale_down_for_urgent(self, now: float) -> None:
        """Steps (1) and (2) of Fig. 5: launch urgent jobs, shrinking running ones if that helps.

        The smallest urgent job comes first: "if we cannot release enough resources for the smallest
        job, then the larger urgent jobs certainly cannot be launched as well", so that the first
        failure ends the procedure.
        """
        counts = self._book.counts
        while self._queue:
            job = smallest_urgent(
                self._queue.sizes(),
                lambda job: self._is_late(job, now),
                lambda job: self._shares.dominant(job, *counts[job.index]),
            )
            if job is None:
                return
            workers, ps = counts[job.index]
            place = partial(self._rule.place, job=job, workers=workers, ps=ps)
            held = self._running.held
            victims = victims_by_surplus(self._running.shrinking(), held)
            made = make_room(self._room, victims, held, place)
            if made is None:
                return
            self._resize(made[0])
            if made[0]:  # victims gave back more than the job took: others may fit now
                self._hopeless.clear()
            self._queue.remove(job)
            self._set(job, made[1])

    def launch_in_rounds(self, now: float) -> None:
        """Repeat the rounds of the public code until one of them changes nothing.

        Each cuts running jobs or launches one. In the code they are seconds apart, here they take
        no time. A job that was cut takes back what no other job took.
        """
        one_round = self._round_of_the_code if self.reading == CODE else self._round_of_the_release
        before: Changes = {}
        while one_round(now, before):
            pass
        for index, held in before.items():
            job, least = self._running[index], self._running.held[index]
            if least != held and take_back(self._room, job, least, held):
                self._set(job, held)

    def scale_up_idle(self, now: float) -> None:
        """Steps (4) and (5) of Fig. 5: what has been idle for lambda goes to running jobs.

        It "can only be allocated to a job that already ran on the same node to maintain job
        locality". Nothing is done while a job that fits could still be launched: this comes last.
        """
        running, room = self._running, self._room
        if self.reading != TEXT:
            # The public code has one clock for all GPUs, which an attempt in vain sets back, too.
            if self._last_change + self._lambda <= now:
                grow = grow_beside_servers if self.reading == CODE else grow_anywhere
                self._resize(grow(room, running.growing(), running.held))
                self._last_change = now
            return
        # What was launched just now is no longer idle; only then is what remains given away.
        for machine, row in enumerate(room.free):
            self._clock.note(machine, row[self._gpu], now)
        idle = {m: self._clock.idle(m, self._lambda, now) for m in self._machines()}
        idle = {machine: amount for machine, amount in idle.items() if amount}
        able = {machine: running.growing_on(machine) for machine in idle}
        self._resize(grow_where_they_run(room, able, running.held, idle, self._gpu))
        for machine, row in enumerate(room.free):
            self._clock.use(machine, row[self._gpu])

    def _round_of_the_code(self, now: float, before: Changes) -> bool:
        """Cut for the smallest urgent job, or launch the first that fits; return whether it did.

        No job is urgent for which the last cut was made. If all have more workers to spare than
        the urgent job's fewest, free GPUs aside, no job is launched in this round.
        """
        urgent = smallest_urgent(
            self._queue.sizes(),
            lambda job: self._is_late(job, now) and job.index != self._cut_for,
            lambda job: job.min_workers,
        )
        least = NO_REQUEST if urgent is None else urgent.min_workers
        able, held = self._running.shrinking(), self._running.held
        spare = sum(surplus(job, held[job.index]) for job in able)
        # In the public code, workers that could be cut keep the queue from being served.
        if spare <= least and self._launch_one(now):
            return True
        idle = sum(row[self._gpu] for row in self._room.free) // self._site.grid
        gives = give_by_count(able, held, least - idle) if self._queue else None
        if gives is None:
            return False
        changes = {
            job.index: shrink(
                self._room, job, held[job.index], held[job.index].worker_count - count
            )
            for job in able
            if (count := gives[job.index])
        }
        self._cut(changes, before, now)
        self._cut_for = None if urgent is None else urgent.index
        return True

    def _round_of_the_release(self, now: float, before: Changes) -> bool:
        """Cut for the first job in the queue if it is urgent, and launch the first that fits.

        What is cut is free from the next round on. No job is launched while cuts do not help.
        """
        first = min((next(same) for same in self._queue.sizes()), key=by_arrival, default=None)
        changes: Changes = {}
        if first is not None and self._is_late(first, now):
            self._last_change = now
            least = first.min_workers
            cut = give_until(
                self._room,
                self._running.shrinking(),
                self._running.held,
                lambda room: self._rule.place(room, first, least, 0) is not None,
            )
            if cut is None:
                return False
            changes = cut
        launched = self._launch_one(now)
        for index, allocation in changes.items():
            job = self._running[index]
            self._room.release(job, self._running.held[index])
            self._room.hold(job, allocation)
        if changes:
            self._cut(changes, before, now)
        return launched or bool(changes)

    def _launch_one(self, now: float) -> bool:
        """Launch the first waiting job that fits; return whether there was one."""
        if not self._queue.launch_all(by_arrival, self._launch, self._hopeless, most=1):
            return False
        self._last_change = now
        return True

    def _cut(self, changes: Changes, before: Changes, now: float) -> None:
        """Let victims hold the allocations in `changes`; `before` keeps what each held at first."""
        for index in changes:
            before.setdefault(index, self._running.held[index])
        self._resize(changes)
        self._hopeless.clear()
        self._last_change = now

    def _is_late(self, job: PolicyJob, now: float) -> bool:
        return self._since[job.index] + self._theta <= now

    def _machines(self) -> list[int]:
        """Machines where something is free and where a job runs that could use it."""
        free, gpu = self._room.free, self._gpu
        return [m for m, row in enumerate(free) if row[gpu] and self._running.growing_on(m)]

    def _can_grow(self) -> bool:
        """Return whether the public code would place one more worker of a running job."""
        room, growing = self._room, self._running.growing()
        if self.reading == CODE:
            held = self._running.held
            return any(room.fits(home_of(held[job.index]), job.worker) for job in growing)
        hosts = self._site.machines_for("worker")
        return any(room.fitting(hosts, demand) for demand in {job.worker for job in growing})

    def _note_waiting(self, view: View) -> None:
        for job in (*view.arrived, *view.evicted):
            if job.index in self._queue:
                self._since[job.index] = view.now
                heappush(self._becoming_urgent, (view.now + self._theta, job.index))

    def _next_alarm(self, now: float) -> float | None:
        """Next time at which theta or lambda passes, if that could change anything."""
        times = []
        soon = self._becoming_urgent
        # An alarm of the past has been answered, and one of a job that was launched has no object.
        while soon and (soon[0][0] <= now or soon[0][1] not in self._queue):
            heappop(soon)
        if soon and self._running.shrinking():  # with no job to shrink, an alarm changes nothing
            times.append(soon[0][0])
        if self.reading == TEXT:
            machines = self._machines()
            times += [self._clock.next_passing(m, self._lambda, now) for m in machines]
        elif self._last_change + self._lambda > now and self._can_grow():
            times.append(self._last_change + self._lambda)
        return min((time for time in times if math.isfinite(time)), default=None)
