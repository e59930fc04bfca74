"""DRAGON as its authors programmed it, where the code differs from the paper.

The code that the paper names is branch ``auto-scale`` of github.com/ChanYiLin/tf-operator-Dragon,
at commit ``a825ee42``; the later release is version 0.9.1 of github.com/NTHU-LSALAB/DRAGON.

================  ======================  ========================  ==========================
what              text (`Dragon`)         code (`Coded`)            release (`Released`)
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

A victim that turns out not to have helped gets back what it gave; the public versions leave it
shrunk.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from baselines.dragon import Dragon, beside, filled, shrink, surplus, take_back
from baselines.gangs import Changes, TaskCounts, add_worker, allocation_of, by_arrival, drop_worker
from oasis.scheduling import Allocation, Placement, PolicyJob, Room, Site


class Ladder:
    """Placement of the public code: on one machine, else on several; then with fewest workers."""

    # All workers on the first machine that has room for them; machine by machine, as many as fit;
    # the same for the fewest. The code visits machines in no defined order, here in theirs, and
    # puts the parameter server on the machine with most workers whether it fits there or not: here
    # on the first of those that has room, and a try is given up if none has.
    name = "ladder"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place `workers` workers, or the fewest allowed; return None if not even these fit."""
        least = job.worker_counts[0]
        hosts = room.site.machines_for("worker")
        for count, of_them in ((workers, ps), (least, job.ps_needed(least))):
            most = {machine: room.count(machine, job.worker, count) for machine in hosts}
            whole = next((machine for machine in hosts if most[machine] == count), None)
            tries = [] if whole is None else [{whole: count}]
            if sum(most.values()) >= count:
                tries.append(filled(hosts, most, count))
            for placed in tries:
                servers = beside(room, job, placed, of_them)
                if servers is not None:
                    return allocation_of(placed, servers)
        return None


class FullestStart:
    """Placement in the release: one machine, else starting from the machine that fits most."""

    name = "fullest-start"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place all tasks, or fewer workers; None, and `room` unchanged, if too few fit."""
        before = room.free.copy()
        machines = range(len(room.free))
        most: list[int] = []
        for machine in machines:
            servers, count_here = _take(room, job, machine, (workers, ps))
            if (count_here, servers) == (workers, ps):
                return _on({machine: count_here}, {machine: servers})
            room.free = before.copy()
            most.append(max(servers, count_here))
        start = max(machines, key=lambda machine: (most[machine], -machine))
        placed: TaskCounts = {}
        homes: TaskCounts = {}
        for machine in chain((start,), (other for other in machines if other != start)):
            missing = (workers - sum(placed.values()), ps - sum(homes.values()))
            homes[machine], placed[machine] = _take(room, job, machine, missing)
        count, of_them = sum(placed.values()), sum(homes.values())
        enough = of_them == ps and count in job.worker_counts
        if enough and (count == workers or job.ps_needed(count) == ps):
            return _on(placed, homes)
        room.free = before
        # Fewer workers may need fewer parameter servers, and then find room.
        return self.place(room, job, count, job.ps_needed(count)) if enough else None


def _take(room: Room, job: PolicyJob, machine: int, missing: tuple[int, int]) -> tuple[int, int]:
    """Take room on `machine` for `missing` (workers, servers); return taken (servers, workers)."""
    workers, ps = missing
    site = room.site
    servers = room.count(machine, job.ps, ps) if machine in site.machines_for("ps") else 0
    room.take(machine, job.ps, servers)
    if servers < ps or machine not in site.machines_for("worker"):
        return servers, 0
    placed = room.count(machine, job.worker, workers)
    room.take(machine, job.worker, placed)
    return servers, placed


def _on(*tasks: TaskCounts) -> Allocation:
    return allocation_of(*({k: count for k, count in counts.items() if count} for counts in tasks))


class Coded(Dragon):
    """DRAGON as in the public code that its paper names."""

    rule: Callable[[], Placement] = Ladder

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._last_change = 0.0
        self._cut_for: int | None = None  # the job that the last cut was for

    def serve_queue(self, now: float) -> None:
        """Repeat rounds until one changes nothing, then give back workers nobody took."""
        before: Changes = {}
        while self._round(now, before):
            pass
        # A job that was cut takes back what no other job took.
        for index, allocation in before.items():
            job, least = self._running[index], self._running.allocations[index]
            if least != allocation and take_back(self._room, job, least, allocation):
                self._set(job, allocation)

    def scale_up_idle(self, now: float) -> None:
        """Add workers to running jobs if nothing has changed for a while; reset the clock."""
        if self._last_change + self._lambda <= now:
            self._resize(self._grow())
            self._last_change = now

    def _round(self, now: float, before: Changes) -> bool:
        """Launch one job, or cut running jobs for an urgent one; return if either was done."""
        urgent = self._smallest_urgent(now, lambda job: job.worker_counts[0])
        # 100 is what the code takes for the fewest workers if no job is urgent.
        least = 100 if urgent is None else urgent.worker_counts[0]
        able, allocations = self._running.shrinking(), self._running.allocations
        line = [job.index for job in able for _ in range(surplus(job, allocations[job.index]))]
        # Workers that could be cut keep the queue from being served, free GPUs aside.
        if len(line) <= least and self._launch_one(now):
            return True
        idle = sum(row[self._gpu] for row in self._room.free) // self._site.grid
        # Counted, not placed, and at least one: the code does not look whether the job then fits.
        needed = max(least - idle, 1)
        if not self._queue or needed > len(line):
            return False
        changes = {}
        for job in able:
            count = allocations[job.index].worker_count - line[:needed].count(job.index)
            if count < allocations[job.index].worker_count:
                changes[job.index] = shrink(self._room, job, allocations[job.index], count)
        self._cut(changes, before, now)
        self._cut_for = None if urgent is None else urgent.index
        return True

    def _launch_one(self, now: float) -> bool:
        """Launch the first waiting job that fits; return whether any job did."""
        if not self._queue.launch_all(by_arrival, self._launch, self._hopeless, most=1):
            return False
        self._last_change = now
        return True

    def _cut(self, changes: Changes, before: Changes, now: float) -> None:
        """Apply the smaller allocations `changes`; keep the jobs' first ones in `before`."""
        for index in changes:
            before.setdefault(index, self._running.allocations[index])
        self._resize(changes)
        self._hopeless.clear()
        self._last_change = now

    def _grow(self) -> Changes:
        """Add workers to running jobs by turns beside their parameter servers; return changes."""
        changes: Changes = {}
        allocations, jobs = self._running.allocations, self._running.growing()
        while jobs:
            still = []
            for job in jobs:
                now = changes.get(job.index, allocations[job.index])
                more = add_worker(self._room, job, now, _home_of(now))
                if more is not None:
                    changes[job.index] = more
                    still.append(job)
            jobs = still
        return changes

    def _is_late(self, job: PolicyJob, now: float) -> bool:
        return super()._is_late(job, now) and job.index != self._cut_for

    def _idle_alarms(self, now: float) -> list[float]:
        passing = self._last_change + self._lambda
        return [passing] if passing > now and self._can_grow() else []

    def _can_grow(self) -> bool:
        """Whether some running job can get one more worker."""
        allocations = self._running.allocations
        growing = self._running.growing()
        return any(self._room.fits(_home_of(allocations[job.index]), job.worker) for job in growing)


def _home_of(allocation: Allocation) -> int:
    """Return the machine with most parameter servers, or with most workers without servers."""
    return max(allocation.ps or allocation.workers, key=lambda task: (task[1], -task[0]))[0]


class Released(Coded):
    """DRAGON as in its authors' later release of the code."""

    rule = FullestStart

    def __init__(self, urgent_after: float = 30.0, idle_after: float = 60.0) -> None:
        super().__init__(urgent_after, idle_after)

    def _round(self, now: float, before: Changes) -> bool:
        """Cut for the first waiting job if urgent, launch one job; return if either was done."""
        first = min((next(same) for same in self._queue.sizes()), key=by_arrival, default=None)
        changes: Changes = {}
        if first is not None and self._is_late(first, now):
            self._last_change = now
            cut = self._enough_for(first)
            if cut is None:
                return False  # no job is launched while cuts do not help
            changes = cut
        launched = self._launch_one(now)
        # What is cut is free from the next round on.
        for index, allocation in changes.items():
            job = self._running[index]
            self._room.release(job, self._running.allocations[index])
            self._room.hold(job, allocation)
        if changes:
            self._cut(changes, before, now)
        return launched or bool(changes)

    def _enough_for(self, urgent: PolicyJob) -> Changes | None:
        """Return the cuts, worker by worker, by which the fewest of `urgent` fit; else None."""
        trial = Room(self._site, self._room.free.copy(), self._room.down)
        changes: Changes = {}
        allocations = self._running.allocations
        able = self._running.shrinking()
        line = [job for job in able for _ in range(surplus(job, allocations[job.index]))]
        # Asked once more after the last worker: None stands for "no further worker".
        for job in (*line, None):
            if self._rule.place(trial, urgent, urgent.worker_counts[0], 0) is not None:
                return changes
            if job is not None:
                now = changes.get(job.index, allocations[job.index])
                homes = dict(now.ps)
                # Workers beside their parameter servers leave last.
                machine = min((task[0] for task in now.workers), key=lambda m: (m in homes, m))
                changes[job.index] = drop_worker(trial, job, now, machine)
        return None

    def _grow(self) -> Changes:
        """Fill each machine in turn with workers of the first running job, then the next."""
        changes: Changes = {}
        line = self._running.growing()
        for machine in self._site.machines_for("worker"):
            while line:
                job = line[0]
                now = changes.get(job.index, self._running.allocations[job.index])
                more = add_worker(self._room, job, now, machine)
                if more is not None:
                    changes[job.index] = more
                elif now.worker_count < job.max_workers:
                    break  # it goes on with the next machine
                else:
                    line.pop(0)
        return changes

    def _can_grow(self) -> bool:
        hosts = self._site.machines_for("worker")
        demands = {job.worker for job in self._running.growing()}
        return any(self._room.fitting(hosts, demand) for demand in demands)
