"""Exchangeable models of the speed of a job with its allocation, composed of parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import ClassVar, Protocol

from oasis.model.summary import Summarised
from oasis.scheduling.job import Allocation, PolicyJob
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
        """Add the `allocation` of a job to the load."""
        self._count(job, allocation, 1)

    def remove(self, job: PolicyJob, allocation: Allocation) -> None:
        """Remove the `allocation` of a job from the load."""
        self._count(job, allocation, -1)

    def take_affected(self) -> list[int]:
        """Return the indices of jobs on machines whose load changed since the last call."""
        affected = {index for machine in self._touched for index in self._cores[machine]}
        self._touched.clear()
        # Sorted, so that completions are planned in the same order in every run.
        return sorted(affected)

    def _count(self, job: PolicyJob, allocation: Allocation, sign: int) -> None:
        workers, ps = dict(allocation.workers), dict(allocation.ps)
        for machine in allocation.machines:
            here, servers, cores = workers.get(machine, 0), ps.get(machine, 0), self._cores[machine]
            if sign > 0:
                cores[job.index] = here * job.worker_cpu + servers * job.ps_cpu
            else:
                del cores[job.index]
            self.cpu[machine] = fsum(cores.values())
            self.tenants[machine] += sign
            self.tasks[machine] += sign * (here + servers)
            self._touched.add(machine)


class Speed(Protocol):
    """A model of how fast a job works with an allocation.

    `coupled` means that the speed of a job depends on other jobs on its machines. The engine then
    keeps the `Load`, and recomputes the speeds of all jobs on a machine whenever it changes;
    otherwise it recomputes only those of changed jobs. The engine asks for complete gangs
    only: with less, a job does no work at all.

    Examples
    --------
    Workers that are half as fast:

    >>> class Slow(Linear):
    ...     def rate(self, job, allocation, load):
    ...         return 0.5 * allocation.worker_count
    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> work = rigid_workload([PlainJob("a", 0.0, 60.0, 8)], servers=1, gpus_per_server=8)
    >>> replay(work, FIFO(), speed=Slow()).completions
    [120.0]
    """

    @property
    def coupled(self) -> bool:
        """Whether the speed of a job depends on other jobs."""
        ...

    def rate(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        """Return the work of `job` done in a unit of time; `load` includes the tasks of `job`."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """Constraint (2): a worker does one worker-slot of work in a slot, wherever it is.

    Examples
    --------
    >>> from oasis.simulator import Machine, Site
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> load = Load(Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,)))))
    >>> Linear().rate(job, Allocation(((0, 2), (1, 1))), load)
    3.0
    """

    coupled: ClassVar[bool] = False

    def rate(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        workers = allocation.workers
        # Called at every change of every job: most jobs of a trace are on one machine.
        return float(workers[0][1] if len(workers) == 1 else sum(n for _, n in workers))


@dataclass(frozen=True, slots=True, repr=False)
class ScalingTable(Summarised):
    """Measured throughput by number of workers, and what spreading over machines costs.

    Parameters
    ----------
    speedup : mapping of str to tuple of float
        By job id: speed with 1, 2, .. workers in units of one worker; the last holds beyond.
        Jobs that are not named scale linearly.
    spread : float
        Factor on the speed of a job whose tasks are on more than one machine.
    sharing : float
        A job that shares a machine with k others runs at ``1 / (1 + sharing k)`` of its speed,
        for the machine with most tenants; 0 means that jobs do not disturb each other.

    Examples
    --------
    >>> from oasis.simulator import Machine, Site
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> load = Load(Site(("gpu",), (Machine("n0", (4.0,)),)))
    >>> ScalingTable({"a": (1.0, 1.7, 2.1)}).rate(job, Allocation(((0, 2),)), load)
    1.7
    """

    speedup: Mapping[str, tuple[float, ...]]
    spread: float = 1.0
    sharing: float = 0.0

    @property
    def coupled(self) -> bool:
        return self.sharing > 0

    def rate(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        workers = allocation.worker_count
        table = self.speedup.get(job.id)
        speed = float(workers) if not table else table[min(workers, len(table)) - 1]
        machines = allocation.machines
        if len(machines) > 1:
            speed *= self.spread
        if self.sharing:
            speed /= 1 + self.sharing * (max(load.tenants[machine] for machine in machines) - 1)
        return speed


MB_PER_GBIT = 125.0  # 1000 MB in 8 Gbit


@dataclass(frozen=True, slots=True)
class CpuSharing:
    """Tasks of a machine share its cores: too many of them, and all of them slow down alike.

    A machine whose tasks would keep D cores busy and that has C of them gives each task
    min(1, C / D) of what it needs. A job waits for its slowest task.

    Examples
    --------
    Two workers that would keep five cores busy each, on a machine with eight:

    >>> from oasis.simulator import Machine, Site
    >>> load = Load(Site(("gpu",), (Machine("n0", (4.0,), cpu_cores=8.0),)))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4, worker_cpu=5.0)
    >>> load.add(job, Allocation(((0, 2),)))
    >>> CpuSharing().factor(job, Allocation(((0, 2),)), load)
    0.8
    """

    def factor(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        """Return the factor, above 0 and at most 1, by which sharing slows `job` down."""
        least = 1.0
        for each, tasks in ((job.worker_cpu, allocation.workers), (job.ps_cpu, allocation.ps)):
            if not each:
                continue
            for machine, _ in tasks:
                demand, capacity = load.cpu[machine], load.site.machines[machine].cpu_cores
                if demand > capacity:
                    # A job waits for its slowest task, wherever that is.
                    least = min(least, capacity / demand)
        return least


@dataclass(frozen=True, slots=True)
class Communication:
    """Time that a job spends in each step on sending gradients over the links of its machines.

    Every worker sends its gradients to the parameter servers, which hold equal parts of them, and
    then fetches the parameters. Traffic within a machine takes no time. With n workers and p
    parameter servers, n_m and p_m of them on machine m, the link of m carries in each of the two
    phases, in one direction or the other, at most

        g * max(n_m (p - p_m) / p, (n - n_m) p_m / p)

    for gradients of size g; a phase ends when the slowest link is done. Workers without parameter
    servers that are on more than one machine form a ring, in which each sends 2 (n - 1) / n of its
    gradients over the slowest of their links.

    Parameters
    ----------
    share_links : bool
        Whether the jobs on a machine share its link in equal parts; else each has all of it.

    Examples
    --------
    A worker and its parameter server on two machines with links of 1 Gb/s: 100 MB take 0.8 s, and
    0.8 s back.

    >>> from oasis.simulator import Machine, Site
    >>> load = Load(Site(("gpu",), tuple(Machine(n, (4.0,), link_gbps=1.0) for n in "ab")))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), gradient_mb=100.0, step_time=0.4)
    >>> Communication().step_delay(job, Allocation(((0, 1),), ((1, 1),)), load)
    1.6
    >>> Communication().step_delay(job, Allocation(((0, 1),), ((0, 1),)), load)
    0.0
    """

    share_links: bool = False

    @property
    def coupled(self) -> bool:
        return self.share_links

    def step_delay(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        """Return the time on the network in each step of `job`, in the workload's unit of time."""
        machines = sorted(allocation.machines)
        if not job.gradient_mb or len(machines) == 1:
            return 0.0
        workers, ps = dict(allocation.workers), dict(allocation.ps)
        n, p = allocation.worker_count, allocation.ps_count
        slowest = 0.0
        for machine in machines:
            here, servers = workers.get(machine, 0), ps.get(machine, 0)
            # Out go the gradients of the workers here to servers elsewhere, in come
            # those of workers elsewhere; links are full duplex, so the larger of
            # the two counts. Without servers it is a ring.
            sent = max(here * (p - servers), (n - here) * servers) / p if p else (n - 1) / n
            link = load.site.machines[machine].link_gbps * MB_PER_GBIT  # MB/s in each direction
            if self.share_links:
                link /= max(1, load.tenants[machine])
            slowest = max(slowest, sent * job.gradient_mb / link)
        # Gradients there and parameters back: the 2 of kappa = tau + 2 e / b.
        return 2.0 * slowest / load.site.unit_seconds


@dataclass(frozen=True, slots=True)
class TrainingSpeed:
    """Scaling, CPU sharing and communication together.

    With s the speed of `scaling` in units of one worker, f the factor of `sharing`, x the delay of
    `communication` and c the time in which a worker computes a step, the n workers of a job take
    c n / (s f) + x for a step each, which is a speed of

        s f / (1 + s f x / (n c)).

    An incomplete gang does no work.

    Parameters
    ----------
    scaling : Speed
        What the workers do on one machine that they have for themselves.
    communication : Communication or None
        Time on the network; None: it costs nothing.
    sharing : CpuSharing or None
        Slowdown through shared cores; None: it costs nothing.

    Examples
    --------
    >>> from oasis.simulator import Machine, Site
    >>> load = Load(Site(("gpu",), tuple(Machine(n, (4.0,), link_gbps=1.0) for n in "ab")))
    >>> traffic = {"gradient_mb": 100.0, "step_time": 0.4}
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), ps_per_worker=1.0, **traffic)
    >>> for machine in (0, 1):
    ...     print(TrainingSpeed().rate(job, Allocation(((0, 1),), ((machine, 1),)), load))
    1.0
    0.2
    """

    scaling: Speed = field(default_factory=Linear)
    communication: Communication | None = field(default_factory=Communication)
    sharing: CpuSharing | None = field(default_factory=CpuSharing)

    @property
    def coupled(self) -> bool:
        together = self.communication is not None and self.communication.coupled
        return self.scaling.coupled or self.sharing is not None or together

    def rate(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        if not job.works_with(allocation):
            return 0.0
        speed = self.scaling.rate(job, allocation, load)
        if self.sharing is not None:
            speed *= self.sharing.factor(job, allocation, load)
        if self.communication is not None:
            delay = self.communication.step_delay(job, allocation, load)
            if delay:
                # Computing and sending take turns: their times add up, not their speeds.
                speed /= 1.0 + speed * delay / (allocation.worker_count * job.step_time)
        return speed
