"""What keeps every machine busy beside what is reserved there: jobs, tasks, shared CPU."""

from __future__ import annotations

from math import fsum

from oasis.scheduling.allocation import Allocation
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.site import Site


class Load:
    """Jobs, tasks and shared CPU of each machine, of the jobs that hold a complete gang.

    Tasks of an incomplete gang wait for the others and keep no core busy.

    Parameters
    ----------
    site : Site
        The machines.

    Attributes
    ----------
    tenants, tasks : list of int
        Jobs, and tasks of any kind, on each machine.
    cpu : list of float
        Cores that the tasks on each machine would keep busy if it had enough of them.

    Examples
    --------
    >>> from oasis.simulator import Machine
    >>> load = Load(Site(("gpu",), (Machine("n0", (4.0,), cpu_cores=8.0),)))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4, worker_cpu=5.0)
    >>> load.add(job, Allocation(((0, 2),)))
    >>> load.tenants, load.tasks, load.cpu
    ([1], [2], [10.0])
    """

    __slots__ = ("_cores", "_touched", "cpu", "site", "tasks", "tenants")

    def __init__(self, site: Site) -> None:
        self.site = site
        self.tenants = [0] * len(site.machines)
        self.tasks = [0] * len(site.machines)
        self.cpu = [0.0] * len(site.machines)
        # cores by machine and job: what is there adds up the same, whatever came and went
        self._cores: list[dict[int, float]] = [{} for _ in site.machines]
        self._touched: set[int] = set()

    def add(self, job: PolicyJob, allocation: Allocation) -> None:
        """Count a job that begins to hold `allocation`."""
        machines = self._count(allocation, 1)
        workers, ps = dict(allocation.workers), dict(allocation.ps)
        for machine in machines:
            cores = workers.get(machine, 0) * job.worker_cpu + ps.get(machine, 0) * job.ps_cpu
            self._cores[machine][job.index] = cores
            self.cpu[machine] = fsum(self._cores[machine].values())

    def remove(self, job: PolicyJob, allocation: Allocation) -> None:
        """Count a job no longer that held `allocation`."""
        for machine in self._count(allocation, -1):
            del self._cores[machine][job.index]
            self.cpu[machine] = fsum(self._cores[machine].values())

    def take_affected(self) -> list[int]:
        """Jobs on the machines where anything was counted since the last call, by index."""
        affected = {index for machine in self._touched for index in self._cores[machine]}
        self._touched.clear()
        return sorted(affected)

    def _count(self, allocation: Allocation, sign: int) -> set[int]:
        machines = allocation.machines
        self._touched |= machines
        for machine in machines:
            self.tenants[machine] += sign
        for tasks in allocation:
            for machine, count in tasks:
                self.tasks[machine] += sign * count
        return machines
