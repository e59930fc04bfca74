"""The site that a policy is reset with: machines, resources and the time grid.

Also the way between a site and the model of the paper: its machines as a cluster, its jobs as
policies see them, and a schedule of the model as what a job holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError
from oasis.model.forms import NO_LABELS, Labels, Requirement
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.job import Job
from oasis.model.rounding import TOLERANCE, IntArray
from oasis.model.schedule import SLOT, Schedule, placements
from oasis.model.summary import Facts, Summarised, Unchanging
from oasis.scheduling.job import NOTHING, Allocation, Demand, LimitedDemand, PolicyJob, Tasks

# Integers add up exactly and in any order, which floats do not.
FINE = 1 << 40  # grid for amounts that are no whole numbers: 9e-13 of a unit


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of a site.

    Amounts are planned in integers: exact where every amount is whole, else multiples of 2^-40, so
    that what a job gives back is exactly what it took, in any order.

    Parameters
    ----------
    id : str
        Its name in messages.
    amounts : tuple of float
        Capacity of each resource, in its unit.
    hosts : frozenset of TaskGroup
        Which tasks it may run: one kind in the paper's model, both in a Kubernetes cluster.
    grid : int
        Grid units in one unit.
    cpu_cores : float
        Cores that its tasks share (`PolicyJob.worker_cpu`); infinity: CPU is never short.
    link_gbps : float
        Bandwidth of its network link in each direction; infinity: traffic takes no time.
    labels : mapping of str to str
        What kind it is, and where it stands; jobs may require some.

    Attributes
    ----------
    capacity : tuple of int
        `amounts` in grid units; the tolerance of `oasis.model.rounding` is part of it.

    Examples
    --------
    >>> Machine("n0", (4.0, 64.0)).capacity
    (4, 64)
    """

    id: str
    amounts: tuple[float, ...]
    hosts: frozenset[str] = frozenset(GROUPS)
    grid: int = 1
    cpu_cores: float = math.inf
    link_gbps: float = math.inf
    labels: Mapping[str, str] = NO_LABELS
    capacity: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # The tolerance is in the capacity once, so that no comparison needs one; a machine without
        # the resource gets none, or a tiny demand would fit it. Whole amounts need none.
        slack = 0.0 if self.grid == 1 else TOLERANCE
        grown = (a + slack * max(1.0, a) if a else 0.0 for a in self.amounts)
        capacity = tuple(math.floor(amount * self.grid) for amount in grown)
        object.__setattr__(self, "capacity", capacity)
        if not isinstance(self.labels, Labels):
            object.__setattr__(self, "labels", Labels(self.labels))


@dataclass(frozen=True, slots=True, repr=False)
class Site(Summarised, Unchanging):
    """The machines and the clock.

    Parameters
    ----------
    resources : tuple of str
        Resource names.
    machines : tuple of Machine
        An allocation names a machine by its index here; all have one grid.
    unit_seconds : float
        Length of the unit of time: a slot of an instance, a second of a plain trace.
    slotted : bool
        Whether allocations may change only at whole times.
    horizon : float or None
        The run ends here; None: when nothing is left to happen.
    partial_gangs : bool
        Whether a job may hold fewer tasks than it needs to work, as pods that are bound one by one
        do. An instance of the model does not allow it.

    Attributes
    ----------
    grains : tuple of int
        Grid units of each resource below which free amounts count as equal; empty where amounts
        are whole.

    Examples
    --------
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (8.0,))))
    >>> site.machines_for("worker"), site.totals("worker")
    ((0, 1), (12.0,))
    """

    resources: tuple[str, ...]
    machines: tuple[Machine, ...]
    unit_seconds: float = 1.0
    slotted: bool = False
    horizon: float | None = None
    partial_gangs: bool = False
    grains: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _hosts: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)
    _admitting: dict[tuple[str, Requirement], frozenset[int] | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        hosts: dict[str, tuple[int, ...]] = {
            group: tuple(k for k, machine in enumerate(self.machines) if group in machine.hosts)
            for group in GROUPS
        }
        hosts["both"] = tuple(k for k in hosts[TaskGroup.PS] if k in set(hosts[TaskGroup.WORKER]))
        object.__setattr__(self, "_hosts", hosts)  # placements ask for it for each job
        fine = [machine.capacity for machine in self.machines if machine.grid > 1]
        # About the tolerance that is part of every capacity, so that none lies on an edge.
        grains = tuple(max(1, max(column) >> 28) for column in zip(*fine, strict=True))
        object.__setattr__(self, "grains", grains)

    def summary(self) -> tuple[str, Facts]:
        """Machines, resources, and the clock."""
        clock = f"{'slots' if self.slotted else 'units'} of {self.unit_seconds:g} s"
        end = "none" if self.horizon is None else f"{self.horizon:g}"
        facts: Facts = [("machines", str(len(self.machines)))]
        facts += [("resources", ", ".join(self.resources)), ("time in", clock), ("horizon", end)]
        return "Site", facts

    @property
    def grid(self) -> int:
        """Grid units in one unit of a resource."""
        return self.machines[0].grid

    def machines_for(self, group: str) -> tuple[int, ...]:
        """Return the indices of the machines that may host tasks of `group`."""
        return self._hosts[group]

    @property
    def machines_for_both(self) -> tuple[int, ...]:
        """Indices of the machines that may host workers and parameter servers alike."""
        return self._hosts["both"]

    def limited(
        self, amounts: tuple[tuple[int, int], ...], group: TaskGroup, requires: Requirement
    ) -> Demand:
        """Return `amounts` limited to machines of `group` with the labels; as is if all fit.

        Examples
        --------
        >>> kinds = [Machine(kind, (4.0,), labels={"gpu": kind}) for kind in ("a100", "h100")]
        >>> site = Site(("gpu",), tuple(kinds))
        >>> site.limited(((0, 1),), TaskGroup.WORKER, Requirement({"gpu": ["h100"]})).machines
        frozenset({1})
        """
        if not requires:
            return amounts
        # A cluster asks again for every job in every slot, and there are few requirements.
        key = (group, requires)
        if key not in self._admitting:
            hosts = self.machines_for(group)
            admitting = frozenset(k for k in hosts if requires.admits(self.machines[k].labels))
            self._admitting[key] = None if len(admitting) == len(hosts) else admitting
        machines = self._admitting[key]
        if machines is None:
            return amounts
        labels = [self.machines[k].labels for k in self.machines_for(group)]
        unmet = None if machines else requires.unmet_by(labels)
        return LimitedDemand(amounts, machines, requires, unmet)

    def demand(self, job: Any, group: TaskGroup) -> Demand:
        """Return what a task of `group` of a job as its file has it demands on these machines."""
        asked = (group.of(job) or {}).items()
        indexed = sorted((self.resources.index(name), amount) for name, amount in asked)
        # A demand below the grid still takes something, or endless tasks would fit.
        units = tuple((k, max(1, round(amount * self.grid))) for k, amount in indexed if amount)
        return self.limited(units, group, group.required(job))

    def totals(self, group: str) -> tuple[float, ...]:
        """Return the total capacity of the machines for `group`, one amount per resource."""
        rows = [self.machines[k].amounts for k in self.machines_for(group)]
        return tuple(map(math.fsum, zip(*rows, strict=True))) or (0.0,) * len(self.resources)


def grid_for(amounts: Iterable[float]) -> int:
    """Return the grid units in one unit of a resource: 1 if every amount is whole, else 2^40."""
    # Whole amounts need no finer grid, and those of GPUs and cores mostly are whole.
    return 1 if all(float(amount).is_integer() for amount in amounts) else FINE


def policy_job(job: Job, site: Site, index: int = -1) -> PolicyJob:
    """A job of the model on the machines and the grid of `site`; times are slots.

    Parameters
    ----------
    job : Job
        The job.
    site : Site
        Machines, resources and the length of a slot.
    index : int
        Its place in the order of arrival; -1 where that is settled later.

    Raises
    ------
    ValueError
        If the job demands a resource that the site does not have.

    Examples
    --------
    >>> import oasis
    >>> from oasis.simulator import Workload
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> site = Workload.from_instance(instance).site
    >>> seen = policy_job(instance.jobs[0], site)
    >>> seen.id, seen.arrival, seen.max_workers == instance.jobs[0].chunks
    ('j0', 4.0, True)
    """
    if len(job.in_forms) > 1:
        forms = tuple(policy_job(form, site, index) for form in job.in_forms)
        return replace(forms[0], source=job, forms=forms)
    (job,) = job.in_forms
    steps = job.epochs * job.chunks * job.minibatches
    exact = steps * job.minibatch_slots(site.unit_seconds)
    worker, ps = (site.demand(job, group) for group in GROUPS)
    return PolicyJob(
        id=job.id,
        arrival=float(job.arrival),
        # an excess that rounding forgives (5.9) is forgiven here too
        work=min(exact, float(job.work(site.unit_seconds))),
        worker=worker,
        ps=ps,
        min_workers=job.min_workers,
        max_workers=job.chunks,
        ps_per_worker=job.ps_per_worker,
        utility=job.utility,
        source=job,
        index=index,
        owner=job.owner or "",
    )


def cluster_of(site: Site) -> Cluster:
    """Return the machines as a cluster; `InstanceError` if one hosts workers and PSs alike."""
    servers: dict[str, list[Server]] = {group: [] for group in GROUPS}
    for machine in site.machines:
        # Algorithm 2 adds the costs of workers and parameter servers up as if no machine had both.
        if len(machine.hosts) > 1:
            expected = "expected worker or ps, got both: the model's two groups are disjoint"
            raise InstanceError(f"machine {machine.id}", expected)
        (group,) = machine.hosts
        capacity = dict(zip(site.resources, machine.amounts, strict=True))
        servers[group].append(Server(machine.id, capacity, labels=machine.labels))
    worker, ps = (tuple(servers[group]) for group in GROUPS)
    return Cluster(site.resources, worker, ps, site.unit_seconds)


def site_of(cluster: Cluster, horizon: int | None = None, grid: int = FINE) -> Site:
    """Return the cluster as a site in slots: machines for workers first, then those for PSs."""
    # `grid` is that of `grid_for` where all jobs are known; else the fine one is safe.
    machines = tuple(
        Machine(name, tuple(row), frozenset({group}), grid, labels=server.labels)
        for group in GROUPS
        for (name, server), row in zip(
            ((name, server) for server in group.servers(cluster) for name in server.ids),
            group.capacity(cluster).tolist(),
            strict=True,
        )
    )
    return Site(cluster.resources, machines, cluster.slot_seconds, slotted=True, horizon=horizon)


def allocations(schedule: Schedule, site: Site) -> dict[int, Allocation]:
    """Return the allocations of a schedule by slot, with machines as indices of `site`."""
    slots = np.unique(schedule.workers[:, SLOT]).tolist()
    return {slot: allocation_in(schedule, slot, site) for slot in slots}


def allocation_in(schedule: Schedule, slot: int, site: Site) -> Allocation:
    """Return the allocation of a job in one slot; `NOTHING` if it does not run there."""
    first_ps = len(site.machines_for(TaskGroup.WORKER))
    workers = _tasks_in(schedule.workers, slot, 0)
    if not workers:
        return NOTHING
    return Allocation(workers, _tasks_in(schedule.ps, slot, first_ps), schedule.form)


def schedule_of(
    job_id: str, held: Iterable[tuple[int, Allocation]], site: Site, form: int
) -> Schedule:
    """Return the schedule made of (slot, allocation) pairs; inverse of `allocations`."""
    first_ps, workers, ps = len(site.machines_for(TaskGroup.WORKER)), [], []
    for slot, allocation in held:
        workers += [(slot, machine, count) for machine, count in allocation.workers]
        ps += [(slot, machine - first_ps, count) for machine, count in allocation.ps]
    return Schedule(job_id, placements(workers), placements(ps), form)


def _tasks_in(rows: IntArray, slot: int, offset: int) -> Tasks:
    low, high = np.searchsorted(rows[:, SLOT], (slot, slot + 1))
    return tuple((server + offset, count) for _, server, count in rows[low:high].tolist())
