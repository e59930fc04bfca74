"""Jobs of the model as policies see them."""

from __future__ import annotations

from oasis.model.job import Job
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.site import Site, demand_on


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
    steps = job.epochs * job.chunks * job.minibatches
    exact = steps * job.minibatch_slots(site.unit_seconds)
    return PolicyJob(
        id=job.id,
        arrival=float(job.arrival),
        # an excess that rounding forgives (5.9) is forgiven here too
        work=min(exact, float(job.work(site.unit_seconds))),
        worker=demand_on(site.grid, job.worker, site.resources),
        ps=demand_on(site.grid, job.ps, site.resources),
        min_workers=job.min_workers,
        max_workers=job.chunks,
        ps_per_worker=job.ps_per_worker,
        utility=job.utility,
        source=job,
        index=index,
    )
