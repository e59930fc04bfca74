"""A speed model of distributed training, put together from parts that can be left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from oasis.scheduling.allocation import Allocation
from oasis.scheduling.job import PolicyJob
from oasis.simulator.load import Load
from oasis.simulator.speed import Linear, Speed

MB_PER_GBIT = 125.0


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
        """Part of its speed that `job` keeps, above 0 and at most 1."""
        least = 1.0
        for each, tasks in ((job.worker_cpu, allocation.workers), (job.ps_cpu, allocation.ps)):
            if not each:
                continue
            for machine, _ in tasks:
                wanted, there = load.cpu[machine], load.site.machines[machine].cpu_cores
                if wanted > there:
                    least = min(least, there / wanted)
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
        """Time on the network in each step of `job`, in units of the workload's time."""
        machines = sorted(allocation.machines)
        if not job.gradient_mb or len(machines) == 1:
            return 0.0
        workers, ps = dict(allocation.workers), dict(allocation.ps)
        n, p = allocation.worker_count, allocation.ps_count
        slowest = 0.0
        for machine in machines:
            here, servers = workers.get(machine, 0), ps.get(machine, 0)
            sent = max(here * (p - servers), (n - here) * servers) / p if p else (n - 1) / n
            slowest = max(slowest, sent * job.gradient_mb / self._link(machine, load))
        return 2.0 * slowest / load.site.unit_seconds

    def _link(self, machine: int, load: Load) -> float:
        """What `machine` can send, and at once receive, MB/s."""
        link = load.site.machines[machine].link_gbps * MB_PER_GBIT
        return link / max(1, load.tenants[machine]) if self.share_links else link


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
        What the network costs; None: nothing.
    sharing : CpuSharing or None
        What sharing cores costs; None: nothing.

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
                speed /= 1.0 + speed * delay / (allocation.worker_count * job.step_time)
        return speed
