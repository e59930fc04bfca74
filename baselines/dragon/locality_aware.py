"""DRAGON without scaling: whole gangs, packed, first come first served with passing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baselines.dragon.packing import FewestNodes, Ladder
from baselines.gang_queue import GangQueue, Size
from baselines.running_jobs import RunningJobs
from oasis.scheduling import Allocation, EmptyCluster, JobBook, Placement, Plan, PolicyJob, Site
from oasis.scheduling.book import Counts
from oasis.scheduling.policy import View
from oasis.scheduling.room import Room

TEXT, CODE = "text", "code"


class LocalityAware:
    """The rival of the DRAGON paper: its scheduling and its packing, but no scaling (section 4.1).

    A job is launched with all its tasks at once, or waits (gang scheduling, section 3.1). The queue
    is served by `launch_first_that_fits`.

    Chosen: a job asks for `initial_workers`, the "Num. Workers" of the paper's Table 1, and for the
    fewest that it works with if its owner names no number; a request that the empty cluster cannot
    hold shrinks until it can; a job that lost a machine waits again at its old place in the order
    of arrival.

    Parameters
    ----------
    reading : {"text", "code"}
        Whether jobs are placed as the paper says (`FewestNodes`) or as the public code does
        (`Ladder`, which may launch a job with fewer workers than it asks for).

    Examples
    --------
    The second job of six waits, and a smaller one that came later passes it; each is packed on one
    machine:

    >>> from oasis.simulator import Machine, Workload, replay
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> jobs = [
    ...     PolicyJob(name, 0.0, 12.0, ((0, 1),), min_workers=n, max_workers=n)
    ...     for name, n in (("a", 6), ("b", 6), ("c", 2))
    ... ]
    >>> [job.start for job in replay(Workload.of(site, jobs), LocalityAware()).jobs]
    [0.0, 2.0, 0.0]
    """

    name = "locality-aware"
    slotted = False
    told_remaining = False

    def __init__(self, *, reading: str = TEXT) -> None:
        if reading not in (TEXT, CODE):
            raise ValueError(f"reading: expected {TEXT} or {CODE}, got {reading!r}")
        self.reading = reading
        self._rule: Placement = FewestNodes() if reading == TEXT else Ladder()

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"reading": self.reading}

    def reset(self, site: Site) -> None:
        self._site = site
        self._empty = EmptyCluster(site, lambda: self._rule)
        self._book = JobBook(self.request)
        self._queue = GangQueue(lambda job: self._book.counts[job.index])
        self._running = RunningJobs()
        self._hopeless: set[Size] = set()
        self._room = Room(site, [])
        self._plan = Plan()

    def decide(self, view: View) -> Plan:
        self._begin(view)
        self.launch_first_that_fits()
        return self._plan

    def request(self, job: PolicyJob) -> Counts | None:
        """What `job` asks for; None if not even the fewest tasks fit the empty cluster."""
        asked = job.min_workers if job.initial_workers is None else job.initial_workers
        for workers in range(asked, job.min_workers - 1, -1):
            ps = job.ps_needed(workers)
            if self._empty.holds(job, workers, ps):
                return workers, ps
        return None

    def launch_first_that_fits(self) -> None:
        """Step (3) of Fig. 5, AFCFS (section 3.3): launch the first waiting job that fits.

        "It simply selects the first arrival job in the queue whose required resource capacity is
        less than the residual capacity"; then the next, until none fits. Read: less or equal, as a
        whole cluster could else never be used; and a job fits if its tasks can be placed, not if
        their sum is free somewhere.
        """
        self._queue.launch_all(lambda job: (job.index,), self._launch, self._hopeless)

    def _begin(self, view: View) -> None:
        """Enter what happened (OnAdd and OnDelete of Fig. 5) and look at the residual capacity."""
        self._plan = Plan()
        for job in (*view.finished, *view.evicted):
            self._queue.remove(job)
            self._running.remove(job)
        for job in (*self._book.update(view, self._plan), *view.evicted):
            self._queue.add(job)
        self._hopeless.clear()
        self._room = Room(self._site, view.free())

    def _launch(self, job: PolicyJob) -> Allocation | None:
        """Give `job` room for its request; None if there is none."""
        found = self._rule.place(self._room, job, *self._book.counts[job.index])
        if found is not None:
            self._set(job, found)
        return found

    def _set(self, job: PolicyJob, allocation: Allocation) -> None:
        """Let `job` hold `allocation` from now on."""
        self._running.set(job, allocation)
        self._plan.changes[job.index] = allocation
