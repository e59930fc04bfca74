"""DRAGON: gangs that are packed, shrunk for urgent jobs and grown into what stays idle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any

from baselines.dragon.idle import IdleClock
from baselines.dragon.locality_aware import TEXT, LocalityAware
from baselines.dragon.scaling import (
    grow_beside_servers,
    grow_where_they_run,
    make_room,
    smallest_urgent,
    victims_by_surplus,
    victims_in_order,
)
from baselines.resizing import Changes
from baselines.shares import Shares
from oasis.scheduling import Plan, PolicyJob, Site
from oasis.scheduling.policy import View


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
                raise ValueError(f"{option}: expected seconds >= 0, got {value}")
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
            self._enter(made[0])
            if made[0]:
                self._hopeless.clear()
            self._queue.remove(job)
            self._set(job, made[1])

    def scale_up_idle(self, now: float) -> None:
        """Steps (4) and (5) of Fig. 5: what has been idle for lambda goes to running jobs.

        It "can only be allocated to a job that already ran on the same node to maintain job
        locality". Nothing is done while a job that fits could still be launched: this comes last.
        """
        for machine, row in enumerate(self._room.free):
            self._clock.note(machine, row[self._gpu], now)
        running = self._running
        if self.reading == TEXT:
            idle = {m: self._clock.idle(m, self._lambda, now) for m in self._machines()}
            idle = {machine: amount for machine, amount in idle.items() if amount}
            able = {machine: running.growing_on(machine) for machine in idle}
            self._enter(grow_where_they_run(self._room, able, running.held, idle, self._gpu))
        elif not self._plan.changes and self._last_change + self._lambda <= now:
            self._enter(grow_beside_servers(self._room, running.growing(), running.held))
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

    def _enter(self, changes: Changes) -> None:
        for index, allocation in changes.items():
            self._set(self._running[index], allocation)

    def _note_waiting(self, view: View) -> None:
        for job in (*view.arrived, *view.evicted):
            if job.index in self._queue:
                self._since[job.index] = view.now
                heappush(self._becoming_urgent, (view.now + self._theta, job.index))

    def _next_alarm(self, now: float) -> float | None:
        """When theta or lambda passes next, if anything could be done then."""
        times = []
        soon = self._becoming_urgent
        while soon and (soon[0][0] <= now or soon[0][1] not in self._queue):
            heappop(soon)
        if soon and self._running.shrinking():
            times.append(soon[0][0])
        if self.reading == TEXT:
            machines = self._machines()
            times += [self._clock.next_passing(m, self._lambda, now) for m in machines]
        elif self._last_change + self._lambda > now and self._running.growing():
            times.append(self._last_change + self._lambda)
        return min((time for time in times if math.isfinite(time)), default=None)
