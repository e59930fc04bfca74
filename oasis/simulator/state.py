"""The state of a run: what every job holds and has done, and what is free."""

from __future__ import annotations

from oasis.scheduling.allocation import Allocation, Tasks
from oasis.scheduling.job import Demand
from oasis.scheduling.site import GROUPS, Site
from oasis.simulator.load import Load
from oasis.simulator.progress import Progress
from oasis.simulator.saving import Saving

__all__ = ["Progress", "State"]


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
    load : Load
        What is on each machine, kept if the speed model asks for it.
    saving : Saving
        What jobs that have left still keep busy.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.now = 0.0
        self.jobs: dict[int, Progress] = {}
        self.free = [machine.capacity for machine in site.machines]
        self.down: set[int] = set()
        self.used = [0] * (len(GROUPS) * len(site.resources))
        self.load = Load(site)
        self.saving = Saving(site)

    def hold(self, progress: Progress, allocation: Allocation, coupled: bool) -> None:
        """Exchange what a job holds."""
        job, before = progress.job, progress.allocation
        if before.workers:
            self._shift(before.workers, job.worker, -1, 0)
        if allocation.workers:
            self._shift(allocation.workers, job.worker, 1, 0)
        if before.ps or allocation.ps:
            offset = len(self.site.resources)
            self._shift(before.ps, job.ps, -1, offset)
            self._shift(allocation.ps, job.ps, 1, offset)
        if coupled and progress.complete:
            self.load.remove(job, before)
        progress.hold(self.now, allocation)
        progress.complete = (
            job.works_with(allocation) if self.site.partial_gangs else bool(allocation.workers)
        )
        if progress.complete:
            progress.waiting_since = None
            if coupled:
                self.load.add(job, allocation)
        elif progress.waiting_since is None:
            progress.waiting_since = self.now

    def _shift(self, tasks: Tasks, demand: Demand, sign: int, offset: int) -> None:
        free, used = self.free, self.used
        for machine, count in tasks:
            row = list(free[machine])
            for resource, amount in demand:
                taken = sign * count * amount
                row[resource] -= taken
                used[offset + resource] += taken
            free[machine] = tuple(row)

    def busy(self, machine: int) -> tuple[int, ...]:
        """Amounts in use on `machine`, or kept busy by saving; nothing while it is down."""
        if machine in self.down:
            return (0,) * len(self.site.resources)
        capacity = self.site.machines[machine].capacity
        amounts = self.saving.amounts(machine)
        return tuple(
            min(most, most - left + more)
            for most, left, more in zip(capacity, self.free[machine], amounts, strict=True)
        )

    def lose(self, machine: int) -> None:
        """Take an idle machine out of service."""
        self.down.add(machine)
        self.saving.drop(machine)
        self.free[machine] = (0,) * len(self.site.resources)

    def restore(self, machine: int) -> None:
        """Put a machine back into service."""
        self.down.discard(machine)
        self.free[machine] = self.site.machines[machine].capacity
