"""Jobs as the simulator sees them, made from an instance of the model or from a plain trace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from oasis.model.errors import InputError, InstanceError, describe
from oasis.model.groups import GROUPS
from oasis.model.instance import Instance, expect_instance
from oasis.model.summary import Facts, Summarised
from oasis.model.validation import LARGEST_COUNT, integer
from oasis.scheduling.job import PolicyJob, Unvalued
from oasis.scheduling.site import Machine, Site, grid_for, policy_job, site_of
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.observation import Observation
from oasis.simulator.speed import Linear, Speed
from oasis.traces.plain_job import PlainJob

Held = tuple[tuple[float, float, int], ...]  # begin, end and GPUs of jobs that are not in the run


@dataclass(frozen=True, slots=True, repr=False)
class Workload(Summarised):
    """Machines and the jobs that arrive at them; jobs of one instant in the order given.

    Parameters
    ----------
    site : Site
        The machines.
    jobs : tuple of PolicyJob
        In order of arrival, numbered by their ``index``.
    recorded : tuple of PlainJob
        What the trace says of each of `jobs`, such as when it really started; empty if the
        workload was not made of a trace. No policy sees it.
    speed : Speed
        How fast the jobs train, unless a run is given another model; linear in workers.
    costs : ChangeCosts
        Costs of changes of allocations, likewise; none.
    observation : Observation or None
        Sampling of the training curves, likewise.
    held : tuple of (float, float, int)
        From when to when other jobs hold how many GPUs, as soon as these are free. No policy sees
        more of them than that there are fewer GPUs.

    Examples
    --------
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)),))
    >>> jobs = [PolicyJob("late", 9.0, 1.0, ((0, 1),)), PolicyJob("early", 2.0, 1.0, ((0, 1),))]
    >>> [(job.id, job.index) for job in Workload.of(site, jobs).jobs]
    [('early', 0), ('late', 1)]
    """

    site: Site
    jobs: tuple[PolicyJob, ...]
    recorded: tuple[PlainJob, ...] = ()
    speed: Speed = field(default_factory=Linear)
    costs: ChangeCosts = field(default_factory=ChangeCosts)
    observation: Observation | None = None
    held: Held = ()

    def summary(self) -> tuple[str, Facts]:
        """Jobs, machines and resources, and a model of speed that is not linear."""
        names = ", ".join(self.site.resources)
        facts = [("jobs", str(len(self.jobs))), ("machines", str(len(self.site.machines)))]
        speed = [] if isinstance(self.speed, Linear) else [("speed", type(self.speed).__name__)]
        return "Workload", [*facts, ("resources", names), *speed]

    @classmethod
    def of(cls, site: Site, jobs: Iterable[PolicyJob]) -> Workload:
        """Return a workload of `jobs` in order of arrival, with indices in that order."""
        # A stable sort: jobs of one instant keep the order of the file.
        ordered = sorted(jobs, key=lambda job: job.arrival)
        return cls(site, tuple(replace(job, index=k) for k, job in enumerate(ordered)))

    @classmethod
    def from_instance(cls, instance: Instance) -> Workload:
        """Return the workload of an instance, in slots; allocations change only between slots."""
        expect_instance(instance)
        cluster = instance.cluster
        amounts = [group.capacity(cluster).ravel() for group in GROUPS]
        forms = [form for job in instance.jobs for form in job.in_forms]
        demands = [group.of(form).values() for form in forms for group in GROUPS]
        # One grid for all, or amounts of jobs and machines could not be compared.
        grid = grid_for(amount for row in (*amounts, *demands) for amount in row)
        site = site_of(cluster, instance.horizon, grid)
        ordered = enumerate(instance.jobs_by_arrival())
        return cls(site, tuple(policy_job(job, site, index) for index, job in ordered))


SECONDS = f"0..{LARGEST_COUNT:.0e} seconds"  # times add up to what a clock can still tell apart


def rigid_workload(
    jobs: Iterable[PlainJob], servers: int, gpus_per_server: int, placement: str = "pooled"
) -> Workload:
    """Return a workload of plain jobs, each of which runs with exactly its GPUs or waits.

    Parameters
    ----------
    jobs : iterable of PlainJob
        The jobs; those submitted at one instant keep this order.
    servers, gpus_per_server : int
        How many servers the cluster has, and how many GPUs each of them has.
    placement : {"pooled", "whole"}
        ``pooled``: a job takes GPUs wherever they are; ``whole``: all of them on one server.

    Raises
    ------
    InstanceError
        If a job is larger than the cluster or, with ``whole``, than a server, or a time is none.

    Examples
    --------
    >>> jobs = [PlainJob("a", 0.0, 60.0, 8)]
    >>> rigid_workload(jobs, servers=2, gpus_per_server=4).site.machines[0].amounts
    (8.0,)
    >>> rigid_workload(jobs, servers=2, gpus_per_server=4, placement="whole")
    Traceback (most recent call last):
    oasis.model.errors.InstanceError: jobs[0].gpus: expected 1..4, got 8 (job 'a')
    """
    servers = integer(servers, "servers", minimum=1)
    gpus_per_server = integer(gpus_per_server, "gpus_per_server", minimum=1)
    if placement == "pooled":
        servers, gpus_per_server = 1, servers * gpus_per_server
    return rigid_workload_on(jobs, [gpus_per_server] * servers, placement)


def rigid_workload_on(
    jobs: Iterable[PlainJob],
    gpus: Sequence[int],
    placement: str = "pooled",
    held: Held = (),
) -> Workload:
    """As `rigid_workload`, on machines that may differ; `gpus` are those of each machine."""
    if isinstance(jobs, (str, os.PathLike)):
        how = f"oasis.traces.read_plain({os.fspath(jobs)!r}).jobs reads them from that file"
        raise TypeError(f"jobs: expected plain jobs, got {describe(jobs)}; {how}")
    if not isinstance(jobs, Iterable):
        hint = "; its jobs are" if hasattr(jobs, "jobs") else ""
        raise TypeError(f"jobs: expected plain jobs, got {describe(jobs)}{hint}")
    if placement not in ("pooled", "whole"):
        raise InputError("placement", "expected pooled or whole", placement)
    sizes = [sum(gpus)] if placement == "pooled" else gpus
    machines = tuple(Machine(f"s{k}", (float(size),)) for k, size in enumerate(sizes))
    plain_jobs, most = tuple(jobs), max(sizes)
    for k, job in enumerate(plain_jobs):
        if not isinstance(job, PlainJob):
            raise TypeError(f"jobs[{k}]: expected a PlainJob, got {describe(job)}")
        if not 1 <= job.gpus <= most:
            expected = f"expected 1..{most}, got {job.gpus} (job {job.id!r})"
            raise InstanceError(f"jobs[{k}].gpus", expected)
        for name, time in (("duration", job.duration), ("submitted", job.submitted)):
            if not 0 <= time <= LARGEST_COUNT:  # a simulation could not add it up
                raise InstanceError(f"jobs[{k}].{name}", f"expected {SECONDS}, got {time:g}")
    # A stable sort: jobs of one instant keep the order of the file.
    recorded = tuple(sorted(plain_jobs, key=lambda job: job.submitted))
    demands = {size: ((0, size),) for size in {job.gpus for job in recorded}}  # few, of a million
    policy_jobs = (
        PolicyJob(
            *(j.id, j.submitted, j.duration, demands[j.gpus]),
            owner=j.owner,
            utility=j.utility or Unvalued(),
            index=k,
        )
        for k, j in enumerate(recorded)
    )
    return Workload(Site(("gpu",), machines), tuple(policy_jobs), recorded, held=held)
