"""Jobs as the simulator sees them, made from an instance of the model or from a plain trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from oasis import rounding
from oasis.errors import InstanceError
from oasis.job import Job
from oasis.problem import Instance
from oasis.simulator.site import GROUPS, Machine, Site, demand_on, grid_for
from oasis.utility import Utility
from oasis.validation import LARGEST_COUNT

Demand = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class SimJob:
    """A job, all of which a policy may know once it has arrived.

    Parameters
    ----------
    id : str
        Its name.
    arrival : float
        Time of arrival.
    work : float
        Work, in units of one worker for one unit of time.
    worker, ps : tuple of (resource index, amount)
        Demand of one worker and of one parameter server, in grid units.
    min_workers, max_workers : int
        It runs with so many workers, or not at all.
    ps_per_worker : float
        b_i / B_i: n workers need ceil(n b_i / B_i) parameter servers (6), and at most n (7).
    utility : Utility or None
        Value by delay in slots; None in a plain trace.
    source : Job or None
        The job of the instance.
    index : int
        Its place in the order of arrival, which says nothing about later jobs.
    """

    id: str
    arrival: float
    work: float
    worker: Demand
    ps: Demand = ()
    min_workers: int = 1
    max_workers: int = 1
    ps_per_worker: float = 0.0
    utility: Utility | None = None
    source: Job | None = None
    index: int = -1

    def ps_needed(self, workers: int) -> int:
        """Fewest parameter servers for `workers` (6)."""
        return int(rounding.ceil(workers * self.ps_per_worker)) if self.ps_per_worker else 0


@dataclass(frozen=True, slots=True)
class Workload:
    """Machines and the jobs that arrive at them; jobs of one instant in the order given."""

    site: Site
    jobs: tuple[SimJob, ...]

    @classmethod
    def of(cls, site: Site, jobs: Iterable[SimJob]) -> Workload:
        """Put `jobs` in order of arrival and number them."""
        ordered = sorted(jobs, key=lambda job: job.arrival)
        return cls(site, tuple(replace(job, index=k) for k, job in enumerate(ordered)))

    @classmethod
    def from_instance(cls, instance: Instance) -> Workload:
        """The instance in units of slots; allocations change only between slots."""
        cluster = instance.cluster
        capacities = (cluster.worker_capacity.tolist(), cluster.ps_capacity.tolist())
        rows = [row for group in capacities for row in group]
        rows += [list(d.values()) for job in instance.jobs for d in (job.worker, job.ps)]
        grid = grid_for(amount for row in rows for amount in row)
        machines = tuple(
            Machine(name, tuple(row), frozenset({group}), grid)
            for group, ids, table in zip(
                GROUPS, (cluster.worker_ids, cluster.ps_ids), capacities, strict=True
            )
            for name, row in zip(ids, table, strict=True)
        )
        site = Site(cluster.resources, machines, cluster.slot_seconds, True, instance.horizon)
        return cls.of(site, (_model_job(job, site, grid) for job in instance.jobs))


def _model_job(job: Job, site: Site, grid: int) -> SimJob:
    steps = job.epochs * job.chunks * job.minibatches
    exact = steps * job.minibatch_slots(site.unit_seconds)
    return SimJob(
        id=job.id,
        arrival=float(job.arrival),
        # an excess that rounding forgives (5.9) is forgiven here too
        work=min(exact, float(job.work(site.unit_seconds))),
        worker=demand_on(grid, job.worker, site.resources),
        ps=demand_on(grid, job.ps, site.resources),
        max_workers=job.chunks,
        ps_per_worker=job.bandwidth / job.ps_bandwidth if job.needs_ps else 0.0,
        utility=job.utility,
        source=job,
    )


@dataclass(frozen=True, slots=True)
class PlainJob:
    """A job of a plain trace: how many GPUs it held and for how long, nothing else.

    Parameters
    ----------
    id : str
        Its name.
    submitted : float
        Time of submission, seconds.
    duration : float
        Seconds it runs once started.
    gpus : int
        GPUs it holds all that time.
    """

    id: str
    submitted: float
    duration: float
    gpus: int


SECONDS = f"0..{LARGEST_COUNT:.0e} seconds"  # times add up to what a clock can still tell apart


def rigid_workload(
    jobs: Iterable[PlainJob], servers: int, gpus_per_server: int, placement: str = "pooled"
) -> Workload:
    """Plain jobs that run with exactly their GPUs, or wait.

    Parameters
    ----------
    jobs : iterable of PlainJob
        Those of one instant keep this order.
    servers, gpus_per_server : int
        The cluster.
    placement : {"pooled", "whole"}
        ``pooled``: a job takes GPUs wherever they are; ``whole``: all of them on one server.

    Raises
    ------
    InstanceError
        If a job is larger than the cluster or, with ``whole``, than a server, or a time is none.
    """
    if placement not in ("pooled", "whole"):
        raise ValueError(f"placement: expected pooled or whole, got {placement!r}")
    if placement == "pooled":
        servers, gpus_per_server = 1, servers * gpus_per_server
    machines = tuple(Machine(f"s{k}", (float(gpus_per_server),)) for k in range(servers))
    return Workload.of(
        Site(("gpu",), machines), (_rigid(k, job, gpus_per_server) for k, job in enumerate(jobs))
    )


def _rigid(k: int, job: PlainJob, most: int) -> SimJob:
    if not 1 <= job.gpus <= most:
        expected = f"expected 1..{most}, got {job.gpus} (job {job.id!r})"
        raise InstanceError(f"jobs[{k}].gpus", expected)
    if not 0 <= job.duration <= LARGEST_COUNT:
        raise InstanceError(f"jobs[{k}].duration", f"expected {SECONDS}, got {job.duration:g}")
    if not 0 <= job.submitted <= LARGEST_COUNT:
        raise InstanceError(f"jobs[{k}].submitted", f"expected {SECONDS}, got {job.submitted:g}")
    return SimJob(job.id, job.submitted, job.duration, ((0, job.gpus),))
