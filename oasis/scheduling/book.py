"""Records of a policy: its live jobs, and the number of tasks of each."""

from __future__ import annotations

from collections.abc import Callable

from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.placement import Placement, Room, placement_named
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Site

NEVER_FITS = "does not fit the empty cluster"

Counts = tuple[int, int]  # workers and parameter servers


class EmptyCluster:
    """Test of whether a job fits the empty cluster, that is, could ever run.

    Parameters
    ----------
    site : Site
        All machines, those that are down now among them: they will come back.
    placement : callable, optional
        Makes a new placement rule; that of `placement_named` for no name by default.

    Examples
    --------
    >>> from oasis.scheduling import Machine
    >>> empty = EmptyCluster(Site(("gpu",), (Machine("n0", (4.0,)),)))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=9)
    >>> empty.holds(job, 4, 0), empty.holds(job, 5, 0)
    (True, False)
    """

    REMADE = ("_placement",)  # a saved state has no function in it

    def __init__(self, site: Site, placement: Callable[[], Placement] | None = None) -> None:
        self._site = site
        self._placement = placement or (lambda: placement_named(None, site))
        self._capacity = [machine.capacity for machine in site.machines]
        self._known: dict[tuple[object, ...], bool] = {}

    def holds(self, job: PolicyJob, workers: int, ps: int) -> bool:
        """Return whether these numbers of tasks of `job` fit the empty cluster, from a cache."""
        # Traces have thousands of jobs and few sizes; the placement
        # of one answers for all of its size.
        key = (job.worker, job.ps, workers, ps, job.worker_counts[0])
        known = self._known.get(key)
        if known is None:
            room = Room(self._site, self._capacity.copy())
            known = self._placement().place(room, job, workers, ps) is not None
            self._known[key] = known
        return known

    def most_workers(self, job: PolicyJob) -> int:
        """Return how many workers of `job` alone fit the empty cluster, at most its maximum."""
        room = Room(self._site, self._capacity)
        hosts = self._site.machines_for("worker")
        return min(job.max_workers, sum(room.count(k, job.worker, job.max_workers) for k in hosts))

    def most(self, job: PolicyJob) -> Allocation | None:
        """Return the most workers of `job` that fit, with the fewest parameter servers they need.

        None if not even its fewest workers fit.
        """
        # From above: that each worker fits somewhere does not say that its parameter servers do.
        for workers in job.workers_down_from(self.most_workers(job)):
            room = Room(self._site, self._capacity.copy())
            placed = self._placement().place(room, job, workers, job.ps_needed(workers))
            if placed is not None:
                return placed
        return None

    def fewest(self, job: PolicyJob) -> Counts | None:
        """Return the fewest workers and parameter servers of `job`; None if they do not fit."""
        least = job.worker_counts[0]
        counts = least, job.ps_needed(least)
        return counts if self.holds(job, *counts) else None


class JobBook:
    """The unfinished jobs that a policy has accepted, in order of arrival.

    Parameters
    ----------
    counts : callable
        The workers and parameter servers of a job at its arrival; None if it can never run.

    Attributes
    ----------
    jobs : dict of int to PolicyJob
        By `PolicyJob.index`.
    counts : dict of int to (int, int)
        Workers and parameter servers of each.

    Examples
    --------
    Every job may run with one worker, but those that ask for more than two are turned away:

    >>> book = JobBook(lambda job: (1, 0) if job.max_workers <= 2 else None)
    >>> plan = Plan()
    >>> book.enter(PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=9, index=7), plan), plan.rejected
    (False, {7: 'does not fit the empty cluster'})
    """

    REMADE = ("_draw",)  # a saved state has no function in it

    def __init__(self, counts: Callable[[PolicyJob], Counts | None]) -> None:
        self._draw = counts
        self.jobs: dict[int, PolicyJob] = {}
        self.counts: dict[int, Counts] = {}

    def update(self, view: View, plan: Plan) -> list[PolicyJob]:
        """Remove the jobs that finished, enter those that arrived; return those accepted.

        A job that can never run is rejected in `plan`, because jobs behind it would never start.
        """
        # Before the arrivals, so that those meet the jobs that are really there.
        for job in view.finished:
            self.strike(job)
        return [job for job in view.arrived if self.enter(job, plan)]

    def enter(self, job: PolicyJob, plan: Plan) -> bool:
        """Accept `job`, or reject it in `plan` if it can never run; return whether accepted."""
        counts = self._draw(job)
        if counts is None:
            plan.rejected[job.index] = job.unmet or NEVER_FITS
            return False
        self.jobs[job.index], self.counts[job.index] = job, counts
        return True

    def strike(self, job: PolicyJob) -> None:
        """Remove `job`, which has finished or was rejected; nothing happens if it is absent."""
        self.jobs.pop(job.index, None)
        self.counts.pop(job.index, None)
