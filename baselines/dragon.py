"""DRAGON: packed gangs, shrunk for urgent jobs and grown into idle capacity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush

from baselines.fair_shares import Shares
from baselines.gangs import (
    Allocations,
    Changes,
    GangController,
    Size,
    TaskCounts,
    add_worker,
    allocation_of,
    by_arrival,
    drop_worker,
)
from oasis.model.errors import InputError
from oasis.scheduling import Allocation, OneNode, Placement, Plan, PolicyJob, Room, Site
from oasis.scheduling.policy import View


class FewestNodes:
    """The packing of section 3.3: "pack the tasks onto the least number of compute nodes"."""

    # One machine if all tasks fit there, the fullest of those. Else the machines that hold most
    # workers are filled one after the other, which takes the fewest machines for the workers, and
    # each parameter server goes beside as many of them as it can. Where that needs a machine for
    # parameter servers alone, each machine is tried that has room for all of them, filled up with
    # workers; it is taken if there are fewer machines in all then.
    name = "fewest-nodes"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place all tasks on few machines; None, with `room` unchanged, if they do not fit."""
        allocation = OneNode().place(room, job, workers, ps)
        if allocation is not None:
            return allocation
        most = {
            machine: room.count(machine, job.worker, workers)
            for machine in room.fitting(room.site.machines_for("worker"), job.worker)
        }
        if sum(most.values()) < workers:
            return None
        # Filling the roomiest first takes the fewest machines, as all workers are alike.
        order = sorted(most, key=lambda machine: (-most[machine], machine))
        placed = filled(order, most, workers)
        before = room.free.copy()
        servers = beside(room, job, placed, ps)
        if servers is not None:
            allocation = allocation_of(placed, servers)
        # The workers alone need `placed`: as few machines in all cannot be undercut.
        if ps and (allocation is None or len(allocation.machines) > len(placed)):
            room.free = before
            allocation = self._around_servers(room, job, (workers, ps), (order, most), allocation)
        return allocation

    def _around_servers(
        self,
        room: Room,
        job: PolicyJob,
        counts: tuple[int, int],
        hosts: tuple[Sequence[int], Mapping[int, int]],
        allocation: Allocation | None,
    ) -> Allocation | None:
        """Hold `allocation`, or one with all servers on one machine if that takes fewer ones."""
        (workers, ps), (order, most) = counts, hosts
        before, tries = room.free.copy(), []
        for home in room.site.machines_for("ps"):
            if room.count(home, job.ps, ps) < ps:
                continue
            room.take(home, job.ps, ps)
            fitting = room.count(home, job.worker, workers) if home in most else 0
            room.free = before.copy()
            around = {**most, home: fitting}
            if sum(around.values()) >= workers:
                placed = filled([home, *(m for m in order if m != home)], around, workers)
                # Of equals the one with most workers beside the servers, then the first machine.
                tries.append((len(placed.keys() | {home}), -fitting, home, placed))
        best = min(tries, default=None)
        if best is not None and (allocation is None or best[0] < len(allocation.machines)):
            allocation = allocation_of(best[-1], {best[-2]: ps})
        if allocation is not None:
            room.hold(job, allocation)
        return allocation


def filled(order: Sequence[int], most: Mapping[int, int], workers: int) -> TaskCounts:
    """Distribute `workers` over machines in this order, at most ``most[machine]`` on each."""
    placed: TaskCounts = {}
    for machine in order:
        fitting = min(most[machine], workers)
        if fitting:
            placed[machine] = fitting
            workers -= fitting
    return placed


def beside(room: Room, job: PolicyJob, placed: TaskCounts, ps: int) -> TaskCounts | None:
    """Reserve `placed` workers and servers near them; return servers, or None: `room` unchanged."""
    before = room.free.copy()
    for machine, count in placed.items():
        room.take(machine, job.worker, count)
    servers: TaskCounts = {}
    for machine in sorted(room.site.machines_for("ps"), key=lambda m: (-placed.get(m, 0), m)):
        fitting = room.count(machine, job.ps, ps)
        if fitting:
            room.take(machine, job.ps, fitting)
            servers[machine] = fitting
            ps -= fitting
    if ps:
        room.free = before
        return None
    return servers


class IdleClock:
    """Records since when each amount of one resource has been free on each of `machines`."""

    def __init__(self, machines: int) -> None:
        # by machine, amounts with the time since when so much has been free; both increase
        self._levels: list[list[tuple[int, float]]] = [[] for _ in range(machines)]

    def note(self, machine: int, free: int, now: float) -> None:
        """Record that `free` units of `machine` are free at time `now`."""
        levels = self._levels[machine]
        since = now
        # What came free last is taken first, so that the oldest idle amount keeps its age.
        while levels and levels[-1][0] > free:
            since = levels.pop()[1]
        if free > (levels[-1][0] if levels else 0):
            levels.append((free, since))

    def use(self, machine: int, free: int) -> None:
        """Reduce what is free of `machine` to `free`: what has been idle longest is used first."""
        levels = self._levels[machine]
        # The other way round: what alarms gave away was the part that had been idle for longest.
        used = (levels[-1][0] if levels else 0) - free
        self._levels[machine] = [(level - used, since) for level, since in levels if level > used]

    def idle(self, machine: int, limit: float, now: float) -> int:
        """Return how much of `machine` has been free for `limit` or longer."""
        amounts = [amount for amount, since in self._levels[machine] if since + limit <= now]
        return amounts[-1] if amounts else 0

    def next_passing(self, machine: int, limit: float, now: float) -> float:
        """Next time at which more of `machine` has been free for `limit`; infinity if never."""
        return min(
            (since + limit for _, since in self._levels[machine] if since + limit > now),
            default=math.inf,
        )


class LocalityAware(GangController):
    """Whole gangs start on the fewest machines; a job that fits may pass (DRAGON without scaling).

    The rival of the DRAGON paper (section 4.1).

    A job is launched with all its tasks at once, or waits (gang scheduling, section 3.1), on the
    fewest machines that hold it. The queue is served by `launch_first_that_fits`.

    What a job asks for, the "Num. Workers" of the paper's Table 1, and what was chosen is as in
    `GangController`; the queue is in order of arrival.

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
    rule: Callable[[], Placement] = FewestNodes

    def __init__(self) -> None:
        super().__init__(self.rule)

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._hopeless: set[Size] = set()

    def decide(self, view: View) -> Plan:
        self._begin(view)
        self.launch_first_that_fits()
        return self._plan

    def launch_first_that_fits(self) -> None:
        """Step (3) of Fig. 5, AFCFS (section 3.3): launch all waiting jobs that fit, by arrival."""
        # "It simply selects the first arrival job in the queue whose required resource capacity is
        # less than the residual capacity"; then the next, until none fits. Read: less or equal, as
        # a whole cluster could else never be used; and a job fits if its tasks can be placed, not
        # if their sum is free somewhere.
        self._queue.launch_all(by_arrival, self._launch, self._hopeless)

    def _begin(self, view: View) -> None:
        """Process arrivals and ends (OnAdd and OnDelete of Fig. 5); set the free capacity."""
        super()._begin(view)
        self._hopeless.clear()


class Dragon(LocalityAware):
    """As locality-aware; jobs shrink for urgent ones and grow into idle GPUs.

    DRAGON (Lin, Yeh and Chou, CLOSER 2019), Fig. 5 and section 3.3 of the paper.

    In this order: `scale_down_for_urgent`, `launch_first_that_fits`, `scale_up_idle`. Queue, gangs
    and packing are those of `LocalityAware`. Where the authors' two public versions do something
    else than the text, this is the text; `experiments.figures.dragon_readings` has the others.

    The paper prints neither theta nor lambda; the defaults are those of the public code. The paper
    calls its procedures "whenever jobs arrive or depart", but speaks of alarms, and the public code
    looks again every few seconds: here an alarm rings when its time has come. A wait of exactly
    theta counts as longer, so that the alarm finds the job. A victim that turns out not to have
    helped gets back what it gave.

    Nothing bounds how long a large job waits while smaller ones arrive: DRAGON promises only that
    the smallest urgent job is launched as soon as the surplus of the others makes room for it.

    Parameters
    ----------
    urgent_after : float
        Theta, seconds: a job that has waited this long is urgent. Not printed; 2 minutes in the
        public code.
    idle_after : float
        Lambda, seconds: what has been idle this long goes to running jobs. Not printed; 1 minute
        in the public code.

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

    def __init__(self, urgent_after: float = 120.0, idle_after: float = 60.0) -> None:
        super().__init__()
        for option, value in (("urgent_after", urgent_after), ("idle_after", idle_after)):
            if not 0 <= value < math.inf:
                raise InputError(option, "expected seconds >= 0", value)
        self.urgent_after, self.idle_after = float(urgent_after), float(idle_after)

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._theta = self.urgent_after / site.unit_seconds
        self._lambda = self.idle_after / site.unit_seconds
        self._shares = Shares(site)
        self._gpu = site.resources.index("gpu") if "gpu" in site.resources else 0
        self._clock = IdleClock(len(site.machines))
        self._since: dict[int, float] = {}  # when a waiting job began to wait
        self._becoming_urgent: list[tuple[float, int]] = []

    def decide(self, view: View) -> Plan:
        self._begin(view)
        # The order of Fig. 5: urgent jobs, then the queue, and only then what stays idle.
        self._note_waiting(view)
        self.serve_queue(view.now)
        self.scale_up_idle(view.now)
        self._plan.wake_at = self._next_alarm(view.now)
        return self._plan

    def serve_queue(self, now: float) -> None:
        """Steps (1) to (3) of Fig. 5: launch urgent jobs, then all other waiting jobs that fit."""
        self.scale_down_for_urgent(now)
        self.launch_first_that_fits()

    def scale_down_for_urgent(self, now: float) -> None:
        """Steps (1) and (2) of Fig. 5: launch urgent jobs, shrinking running ones if that helps."""
        counts = self._book.counts
        # The smallest urgent job comes first: "if we cannot release enough resources for the
        # smallest job, then the larger urgent jobs certainly cannot be launched as well", so that
        # the first failure ends the procedure.
        while self._queue:
            job = self._smallest_urgent(
                now, lambda job: self._shares.dominant(job, *counts[job.index])
            )
            if job is None:
                return
            workers, ps = counts[job.index]
            place = partial(self._rule.place, job=job, workers=workers, ps=ps)
            allocations = self._running.allocations
            # "The ones with the most surplus resources" first (section 3.3); the sort is stable:
            # among equals the order of launch stays.
            victims = sorted(
                self._running.shrinking(), key=lambda job: -surplus(job, allocations[job.index])
            )
            room = make_room(self._room, victims, allocations, place)
            if room is None:
                return
            self._resize(room[0])
            if room[0]:  # victims gave back more than the job took: others may fit now
                self._hopeless.clear()
            self._queue.remove(job)
            self._set(job, room[1])

    def scale_up_idle(self, now: float) -> None:
        """Steps (4) and (5) of Fig. 5: capacity that was idle for lambda goes to running jobs."""
        # It "can only be allocated to a job that already ran on the same node to maintain job
        # locality". Nothing is done while a job that fits could still be launched: this comes last.
        running, room = self._running, self._room
        # What was launched just now is no longer idle; only then is what remains given away.
        for machine, row in enumerate(room.free):
            self._clock.note(machine, row[self._gpu], now)
        idle = {m: self._clock.idle(m, self._lambda, now) for m in self._machines()}
        idle = {machine: amount for machine, amount in idle.items() if amount}
        able = {machine: running.growing_on(machine) for machine in idle}
        self._resize(grow_where_they_run(room, able, running.allocations, idle, self._gpu))
        for machine, row in enumerate(room.free):
            self._clock.use(machine, row[self._gpu])

    def _smallest_urgent(self, now: float, size: Callable[[PolicyJob], float]) -> PolicyJob | None:
        """Return the urgent job of least `size`, the earliest of equals; None if none is urgent."""
        # Within a size all jobs are as large, and the first to arrive waited longest.
        first = [
            next((job for job in same if self._is_late(job, now)), None)
            for same in self._queue.sizes()
        ]
        urgent = [job for job in first if job is not None]
        return min(urgent, key=lambda job: (size(job), job.index), default=None)

    def _is_late(self, job: PolicyJob, now: float) -> bool:
        """Whether `job` has waited for theta or longer."""
        return self._since[job.index] + self._theta <= now

    def _machines(self) -> list[int]:
        """Machines with free capacity on which some job runs that may grow."""
        free, gpu = self._room.free, self._gpu
        return [m for m, row in enumerate(free) if row[gpu] and self._running.growing_on(m)]

    def _note_waiting(self, view: View) -> None:
        """Record when jobs that arrived or lost a machine began to wait and become urgent."""
        for job in (*view.arrived, *view.evicted):
            if job.index in self._queue:
                self._since[job.index] = view.now
                heappush(self._becoming_urgent, (view.now + self._theta, job.index))

    def _next_alarm(self, now: float) -> float | None:
        """Next time at which theta or lambda passes; None if nothing could change then."""
        times = self._idle_alarms(now)
        soon = self._becoming_urgent
        # An alarm of the past has been answered, and one of a job that was launched has no object.
        while soon and (soon[0][0] <= now or soon[0][1] not in self._queue):
            heappop(soon)
        if soon and self._running.shrinking():  # with no job to shrink, an alarm changes nothing
            times.append(soon[0][0])
        return min((time for time in times if math.isfinite(time)), default=None)

    def _idle_alarms(self, now: float) -> list[float]:
        """For each machine where a job may grow, the time at which lambda passes next."""
        return [self._clock.next_passing(m, self._lambda, now) for m in self._machines()]


def surplus(job: PolicyJob, allocation: Allocation) -> int:
    """Number of workers in `allocation` beyond the minimum of `job`."""
    return job.spare_workers(allocation.worker_count)


def make_room(
    room: Room,
    victims: Sequence[PolicyJob],
    allocations: Allocations,
    place: Callable[[Room], Allocation | None],
) -> tuple[Changes, Allocation] | None:
    """Step (2): shrink victims until `place` succeeds; return changes, allocation, else None."""
    before = room.free.copy()  # if all victims together are not enough, none of them gives anything
    changes: Changes = {}
    allocation = place(room)  # without a victim, where it fits as it is
    for victim in victims:
        if allocation is not None:
            break
        least = victim.worker_counts[0]
        changes[victim.index] = shrink(room, victim, allocations[victim.index], least)
        allocation = place(room)
    if allocation is None:
        room.free = before
        return None
    for victim in victims:
        now = changes.get(victim.index)
        # The last victim may have made enough room by itself.
        if now is not None and take_back(room, victim, now, allocations[victim.index]):
            del changes[victim.index]
    return changes, allocation


def shrink(room: Room, job: PolicyJob, allocation: Allocation, workers: int) -> Allocation:
    """Drop workers until `workers` remain, last those beside parameter servers; return the rest."""
    while allocation.worker_count > workers:
        homes = dict(allocation.ps)
        # The machines that are nearly empty of this job come free first; the last index
        # among equals, so that those in front stay packed.
        machine, _ = min(allocation.workers, key=lambda task: (task[0] in homes, task[1], -task[0]))
        allocation = drop_worker(room, job, allocation, machine)
    return allocation


def take_back(room: Room, job: PolicyJob, now: Allocation, before: Allocation) -> bool:
    """Replace the allocation `now` of `job` by `before` if that fits; return whether it did."""
    room.release(job, now)
    if room.hold(job, before):
        return True
    room.hold(job, now)
    return False


def grow_where_they_run(
    room: Room,
    able: Mapping[int, Iterable[PolicyJob]],
    allocations: Allocations,
    idle: Mapping[int, int],
    gpu: int,
) -> Changes:
    """Add workers in turn to the `able` jobs of each machine, within `idle` amounts (step 5)."""
    # The text does not say which of them. What has been idle there for lambda, `idle` units of
    # resource `gpu`, goes to jobs whose workers need it, in order of launch.
    changes: Changes = {}
    for machine in sorted(idle):
        growing = [job for job in able[machine] if dict(job.worker).get(gpu)]
        unused = idle[machine]
        while growing:  # round by round, so that no job takes all before the next had its turn
            still = []
            for job in growing:
                need = dict(job.worker)[gpu]
                now = changes.get(job.index, allocations[job.index])
                more = add_worker(room, job, now, machine) if need <= unused else None
                if more is not None:
                    unused -= need
                    changes[job.index] = more
                    still.append(job)
            growing = still
    return changes
