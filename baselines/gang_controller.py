"""What controllers share that launch a job with all its tasks at once, or let it wait."""

from __future__ import annotations

from collections.abc import Callable, Set

from baselines.gang_queue import GangQueue
from baselines.running_jobs import RunningJobs
from oasis.scheduling import (
    Allocation,
    BasePolicy,
    EmptyCluster,
    JobBook,
    Placement,
    Plan,
    PolicyJob,
    Room,
    Site,
)
from oasis.scheduling.book import Counts
from oasis.scheduling.policy import View


class GangController(BasePolicy):
    """The jobs of such a controller: who waits, who runs where, and what is free meanwhile.

    Chosen: a job asks for `initial_workers`, and for the fewest that it works with if its owner
    names no number; a request that the empty cluster cannot hold shrinks until it can; a job that
    lost a machine waits again at its old place in the queue.

    Parameters
    ----------
    rule : callable
        Makes a new rule for where the tasks of a job go.

    Examples
    --------
    A controller that launches whoever fits, in order of arrival:

    >>> from oasis.scheduling import OneNode
    >>> from oasis.simulator import Machine, Workload, replay
    >>> class Whoever(GangController):
    ...     def decide(self, view):
    ...         self._begin(view)
    ...         self._queue.launch_all(lambda job: (job.index,), self._launch, set())
    ...         return self._plan
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)),))
    >>> jobs = [
    ...     PolicyJob(name, 0.0, 6.0, ((0, 1),), min_workers=n, max_workers=n)
    ...     for name, n in (("a", 3), ("b", 2), ("c", 1))
    ... ]
    >>> replay(Workload.of(site, jobs), Whoever(OneNode)).completions
    [2.0, 5.0, 6.0]
    """

    def __init__(self, rule: Callable[[], Placement]) -> None:
        self._make_rule = rule

    def reset(self, site: Site) -> None:
        self._site, self._rule = site, self._make_rule()
        self._empty = EmptyCluster(site, self._make_rule)
        self._book = JobBook(self.request)
        self._queue = GangQueue(lambda job: self._book.counts[job.index])
        self._running = RunningJobs()
        self._down: Set[int] = set()
        self._room = Room(site, [])
        self._plan = Plan()

    def request(self, job: PolicyJob) -> Counts | None:
        """What `job` asks for; None if not even the fewest tasks fit the empty cluster."""
        asked = job.min_workers if job.initial_workers is None else job.initial_workers
        for workers in range(asked, job.min_workers - 1, -1):
            ps = job.ps_needed(workers)
            if self._empty.holds(job, workers, ps):
                return workers, ps
        return None

    def _begin(self, view: View) -> None:
        """Enter what happened and look at what is free."""
        self._plan = Plan()
        for job in (*view.finished, *view.evicted):
            self._queue.remove(job)
            self._running.remove(job)
        for job in (*self._book.update(view, self._plan), *view.evicted):
            self._queue.add(job)
        self._down = view.down()
        self._room = Room(self._site, view.free(), self._down)

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
