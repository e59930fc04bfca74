"""The state of a run: what every job holds and has done, and what is free."""

from __future__ import annotations

from oasis.scheduling.allocation import NOTHING, Allocation, Tasks
from oasis.scheduling.job import Demand, PolicyJob
from oasis.scheduling.site import GROUPS, Site


class Progress:
    """One job in the run.

    Attributes
    ----------
    allocation : Allocation
        What it holds; `rate` is the work it then does in a unit of time.
    remaining, running, overhead : float
        Work left, time worked and time lost to changes, as of `since`.
    ready : float
        Until then it is being set up and does no work.
    finish : float
        When the work will end if nothing changes; `version` tells an outdated completion.
    started, end : float or None
        First time it held anything, and when its work ended.
    refusal : str or None
        Why the policy rejected it.
    history : list of (float, Allocation)
        Every change.
    """

    __slots__ = (
        "allocation",
        "end",
        "finish",
        "history",
        "job",
        "overhead",
        "rate",
        "ready",
        "refusal",
        "remaining",
        "running",
        "since",
        "started",
        "version",
    )

    def __init__(self, job: PolicyJob) -> None:
        self.job = job
        self.allocation = NOTHING
        self.remaining = job.work
        self.rate = self.running = self.overhead = 0.0
        self.since = self.ready = job.arrival
        self.finish = float("inf")
        self.version = 0
        self.started: float | None = None
        self.end: float | None = None
        self.refusal: str | None = None
        self.history: list[tuple[float, Allocation]] = []

    def advance(self, now: float) -> None:
        """Account for the time from `since` to `now`."""
        if self.allocation.workers:
            begin = min(max(self.ready, self.since), now)
            self.overhead += begin - self.since
            self.running += now - begin
            self.remaining = max(0.0, self.remaining - (now - begin) * self.rate)
        self.since = now

    def remaining_at(self, now: float) -> float:
        """Work left at `now`."""
        begin = max(self.ready, self.since)
        return max(0.0, self.remaining - max(0.0, now - begin) * self.rate)

    def held_at(self, now: float) -> float:
        """Time with an allocation up to `now`."""
        extra = now - self.since if self.allocation.workers else 0.0
        return self.running + self.overhead + extra


class State:
    """Everything up to now; knows nothing of what is to come.

    Attributes
    ----------
    jobs : dict of int to Progress
        Unfinished jobs by index, in order of arrival.
    free : list of tuple of int
        Free amounts of each machine, by resource, in grid units; nothing while it is down.
    used : list of int
        Amounts in use by worker tasks, resource by resource, then by parameter servers.
    tenants : list of int
        Jobs on each machine, kept if the speed model asks for it.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.now = 0.0
        self.jobs: dict[int, Progress] = {}
        self.free = [machine.capacity for machine in site.machines]
        self.down: set[int] = set()
        self.used = [0] * (len(GROUPS) * len(site.resources))
        self.tenants = [0] * len(site.machines)

    def hold(self, progress: Progress, allocation: Allocation, coupled: bool) -> None:
        """Exchange what a job holds."""
        job, before = progress.job, progress.allocation
        self._shift(before.workers, job.worker, -1, 0)
        self._shift(allocation.workers, job.worker, 1, 0)
        if before.ps or allocation.ps:
            offset = len(self.site.resources)
            self._shift(before.ps, job.ps, -1, offset)
            self._shift(allocation.ps, job.ps, 1, offset)
        if coupled:
            for machine in before.machines:
                self.tenants[machine] -= 1
            for machine in allocation.machines:
                self.tenants[machine] += 1
        progress.allocation = allocation

    def _shift(self, tasks: Tasks, demand: Demand, sign: int, offset: int) -> None:
        free, used = self.free, self.used
        for machine, count in tasks:
            row = list(free[machine])
            for resource, amount in demand:
                taken = sign * count * amount
                row[resource] -= taken
                used[offset + resource] += taken
            free[machine] = tuple(row)

    def lose(self, machine: int) -> None:
        """Take an idle machine out of service."""
        self.down.add(machine)
        self.free[machine] = (0,) * len(self.site.resources)

    def restore(self, machine: int) -> None:
        """Put a machine back into service."""
        self.down.discard(machine)
        self.free[machine] = self.site.machines[machine].capacity
