"""Numbers of tasks of jobs, and the choice of a placement rule, shared by policies."""

from __future__ import annotations

from functools import partial

import numpy as np

from oasis.model.validation import integer
from oasis.scheduling import (
    Allocation,
    BasePolicy,
    EmptyCluster,
    JobBook,
    Placement,
    PolicyJob,
    Room,
    Site,
    check_placement,
    placement_named,
)

LEAST, MOST = 1, 30  # of workers and of parameter servers: section V-A of the OASiS paper


class FixedCounts:
    """Fixed counts of workers and parameter servers for each job, settled at its arrival.

    The OASiS paper fixes: counts drawn from 1-30 (section V-A). Chosen: uniform; n workers become
    min(n, N_i) and the parameter servers are clipped to [ceil(n b_i / B_i), n], so that (3), (6)
    and (7) hold; counts that the empty cluster cannot hold shrink, workers first, until it can,
    because a request that can never be met would block the queue. The draws follow the order of
    arrival: the same seed gives a job the same counts under every policy. Nothing is drawn for
    jobs that say with how many workers they are to run, for jobs that can have no parameter server,
    and without a seed: the last two run with the most workers that the empty cluster can hold, and
    the fewest parameter servers for them.
    """

    def __init__(self, seed: int | None) -> None:
        self._seed = seed if seed is None else integer(seed, "seed")

    def reset(self, empty: EmptyCluster) -> None:
        """Begin a new run: later draws are for the cluster `empty`, from the same seed."""
        self._rng = None if self._seed is None else np.random.default_rng(self._seed)
        self._empty = empty

    def draw(self, job: PolicyJob) -> tuple[int, int] | None:
        """Return (workers, parameter servers) of `job`; None if no counts fit an empty cluster."""
        # What the owner asked for is not redrawn, not even smaller: it runs so or not at all.
        workers = job.fixed_workers
        if workers is not None:
            ps = job.ps_needed(workers)
            return (workers, ps) if self._empty.holds(job, workers, ps) else None
        if self._rng is None or not job.ps_most(job.max_workers):
            most_workers, wanted_ps = job.max_workers, 0
        else:
            # Both numbers in one draw for every such job, so that the next
            # job's do not depend on this one's size.
            most_workers, wanted_ps = self._rng.integers(LEAST, MOST + 1, size=2).tolist()
            most_workers = min(most_workers, job.max_workers)
        # A draw that never fits would reject a job that could run smaller.
        most_workers = min(most_workers, self._empty.most_workers(job))
        for workers in job.workers_down_from(most_workers):
            least = job.ps_needed(workers)
            most = job.ps_most(workers) if least else 0  # nothing to collect: no parameter server
            # The parameter servers that were drawn, or else the
            # fewest: workers are what does the work.
            for ps in dict.fromkeys((min(max(wanted_ps, least), most), least)):
                if self._empty.holds(job, workers, ps):
                    return workers, ps
        return None


class Placing:
    """Makes the placement rule that the option `placement` of a policy names."""

    def __init__(self, name: str | None = None) -> None:
        self.name = check_placement(name)

    def on(self, site: Site) -> Placement:
        """Make a new placement rule for `site`."""
        return placement_named(self.name, site)

    def empty(self, site: Site) -> EmptyCluster:
        """Make the `EmptyCluster` of `site` on which this rule places jobs."""
        return EmptyCluster(site, partial(self.on, site))


class FixedCountPolicy(BasePolicy):
    """Base of policies that give each job fixed counts of tasks, placed by a placement rule."""

    def __init__(self, seed: int | None = 0, *, placement: str | None = None) -> None:
        self._counts, self._placing = FixedCounts(seed), Placing(placement)

    def reset(self, site: Site) -> None:
        self._site = site
        self._placement = self._placing.on(site)
        self._counts.reset(self._placing.empty(site))
        self._book = JobBook(self._counts.draw)


class Gpus:
    """Counts the GPUs of jobs; where a job needs none, its workers are counted instead."""

    def __init__(self, site: Site) -> None:
        self._resource = site.resources.index("gpu") if "gpu" in site.resources else None
        self._grid = site.grid

    def of(self, job: PolicyJob, workers: int) -> float:
        """Return the GPUs of `job` with this many workers; the workers if it needs no GPU."""
        if self._resource is None:
            return float(workers)
        # Among jobs with GPUs, one without would have no service and stay first for ever.
        return workers * (dict(job.worker).get(self._resource, 0) / self._grid or 1.0)


def on_node(room: Room, job: PolicyJob, workers: int, ps: int, machine: int) -> Allocation | None:
    """Hold workers on `machine`, and servers if it hosts any; None: no room, `room` unchanged."""
    # Where it may host no parameter servers, as on an instance of the model, these go on the first
    # machine that has room for all of them.
    servers = room.site.machines_for("ps")
    hosts = (machine,) if machine in servers or not ps else servers
    for host in hosts:
        allocation = Allocation(((machine, workers),), ((host, ps),) if ps else ())
        if room.hold(job, allocation):
            return allocation
    return None
