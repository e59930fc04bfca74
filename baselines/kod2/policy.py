"""KOD2: jobs by weight, running ones shrunk for weightier ones and grown into what is idle."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

from baselines.gang_queue import GangQueue
from baselines.kod2.placing import AffinityPlacement
from baselines.kod2.scaling import scale_in, scale_in_order, scale_out
from baselines.kod2.weights import RATIO, JobState, Weights
from baselines.node import on_node
from baselines.resizing import Changes
from baselines.running_jobs import RunningJobs
from oasis.scheduling import (
    Allocation,
    BasePolicy,
    EmptyCluster,
    JobBook,
    Plan,
    PolicyJob,
    Room,
    Site,
    View,
)


class Kod2(BasePolicy):
    """KOD2 (Jeong and Yu, KTCCS 2022): Algorithms 1 to 3 and the placement of section 4.1.

    Each call goes through `raise_starving`, `launch_by_weight` again and again while it launches a
    job, as the operator's sync loop does, and `grow`.

    Read, where the printed algorithms leave it open or disagree with the text; ``printed=True``
    keeps what is printed in the cases marked (p):

    - w', which is not printed: see `Weights`.
    - "Idle resources of the cluster more than the job requires" (lines 6 and 21, once with > and
      once with >=): the job's minimum can be placed.
    - Weights are updated for jobs that starve (p): lines 27-29 do so only while no waiting job
      weighs as much as the weightiest running one, so that a job never starves visibly while
      weightier ones keep arriving; the text has no such condition.
    - To which weight: not printed. A starving job weighs more than any other, and among starving
      jobs the first to come goes first; once it runs it has its own weight again.
    - Scale-in looks whether the job fits after each worker (p), and scale-out uses a resource to
      the last (p): see `scale_in` and `scale_out`.

    STARVELIMIT bounds what the policy does, not the time: once a job starves, no job is launched
    that entered the queue after it, until it is launched.

    Parameters
    ----------
    starve_limit : float
        STARVELIMIT, seconds. Not printed; 600 is ours.
    form : {"ratio", "difference"}
        How w' is read.
    printed : bool
        Whether to keep what is printed where the text says something else.

    Examples
    --------
    A job that grew to four workers gives two of them to one of the same weight that comes later,
    at its minimum:

    >>> from oasis.simulator import Machine, Workload, replay
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)),))
    >>> jobs = [
    ...     PolicyJob("a", 0.0, 400.0, ((0, 1),), max_workers=4),
    ...     PolicyJob("b", 10.0, 40.0, ((0, 1),), min_workers=2, max_workers=2),
    ... ]
    >>> run = replay(Workload.of(site, jobs), Kod2())
    >>> run.completions, [job.resizes for job in run.jobs]
    ([110.0, 20.0], [2, 0])
    """

    name = "kod2"

    def __init__(
        self, starve_limit: float = 600.0, *, form: str = RATIO, printed: bool = False
    ) -> None:
        if not 0 <= starve_limit < math.inf:
            raise ValueError(f"starve_limit: expected seconds >= 0, got {starve_limit}")
        Weights(Site((), ()), form)  # refuses a form that there is not
        self.starve_limit, self.form, self.printed = float(starve_limit), form, printed

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "starve_limit": self.starve_limit,
            "form": self.form,
            "printed": self.printed,
        }

    def reset(self, site: Site) -> None:
        self._site, self._weights = site, Weights(site, self.form)
        self._limit = self.starve_limit / site.unit_seconds
        self._rule = AffinityPlacement()
        self._book = JobBook(EmptyCluster(site, AffinityPlacement).fewest)
        self._queue = GangQueue(lambda job: self._book.counts[job.index])
        self._running = RunningJobs()
        self._running_weights: list[float] = []  # w' of those that run, ascending
        self._raw: dict[int, float] = {}
        self._since: dict[int, float] = {}
        self._starving: set[int] = set()
        self._starving_heap: list[int] = []  # the first to come on top
        self._limits: list[tuple[float, int]] = []  # when waiting jobs begin to starve
        self._finished: set[int] = set()

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._enter(view, plan)
        self._room, self._changes = Room(self._site, view.free(), view.down()), plan.changes
        if not self.printed:
            self.raise_starving(view.now)
        while self._queue and self.launch_by_weight(view.now):
            pass
        self.grow()
        plan.wake_at = self._next_starving(view.now)
        return plan

    def weight(self, job: PolicyJob) -> float:
        """The weight (1) of `job`, 1 while it starves."""
        return Weights.sigmoid(self.raw_weight(job))

    def raw_weight(self, job: PolicyJob) -> float:
        """The w' of `job`, by which weights are compared; infinity while it starves."""
        return math.inf if job.index in self._starving else self._raw[job.index]

    def state_of(self, job: PolicyJob) -> JobState:
        """Which of the four states of Fig. 5 `job` is in since the last call of the policy."""
        if job.index in self._finished:
            return JobState.COMPLETED
        if job.index in self._running:
            return JobState.RUNNING
        return JobState.STARVING if job.index in self._starving else JobState.WAITING

    def raise_starving(self, now: float) -> None:
        """Lines 27-29 of Algorithm 1: jobs that wait longer than STARVELIMIT get more weight."""
        while self._limits and self._limits[0][0] <= now:
            limit, index = heappop(self._limits)
            if index in self._queue and self._since[index] + self._limit == limit:
                self._starving.add(index)
                heappush(self._starving_heap, index)

    def launch_by_weight(self, now: float) -> bool:
        """Lines 5-30 of Algorithm 1; whether a job was launched."""
        head = min(self._heads(), key=self._order)
        top = self._running_weights[-1] if self._running_weights else -math.inf
        if self.raw_weight(head) >= top:
            return self.launch_or_scale_in(head)
        before = len(self._queue)
        self.launch_what_fits()
        if self.printed:
            self.raise_starving(now)
        return len(self._queue) < before

    def launch_or_scale_in(self, head: PolicyJob) -> bool:
        """Lines 5-17: launch the weightiest waiting job at its minimum, by scale-in if need be."""
        if self._launch(head) is None:
            victims = self._running if self.printed else self._running.shrinking()
            made = scale_in(
                self._room,
                scale_in_order(head, victims, self.raw_weight, _entered),
                self._running.held,
                lambda machine: on_node(self._room, head, *self._book.counts[head.index], machine),
                printed=self.printed,
            )
            if made is None:
                return False
            self._apply(made[0])
            self._start(head, made[1])
        self._queue.remove(head)
        return True

    def launch_what_fits(self) -> None:
        """Lines 19-26: go through the queue by descending weight and launch what fits."""
        self._queue.launch_all(self._order, self._launch, set())

    def grow(self) -> None:
        """Lines 31-36 of Algorithm 1: scale-out of the running jobs."""
        changes = scale_out(
            self._room,
            self._running.growing(),
            self._running.held,
            self.raw_weight,
            _entered,
            printed=self.printed,
        )
        self._apply(changes)

    def _enter(self, view: View, plan: Plan) -> None:
        """Lines 1-4 and 37-40 of Algorithm 1: new jobs wait, finished ones leave."""
        for job in (*view.finished, *view.evicted):
            self._queue.remove(job)
            if job.index in self._running:
                self._running.remove(job)
                del self._running_weights[bisect_left(self._running_weights, self._raw[job.index])]
            self._starving.discard(job.index)
        self._finished.update(job.index for job in view.finished)
        for job in (*self._book.update(view, plan), *view.evicted):
            self._raw[job.index] = self._weights.raw(job)
            self._since[job.index] = view.now
            heappush(self._limits, (view.now + self._limit, job.index))
            self._queue.add(job)

    def _next_starving(self, now: float) -> float | None:
        """When a job next begins to starve."""
        while self._limits and self._limits[0][1] not in self._queue:
            heappop(self._limits)
        # with `printed`, those whose limit has passed may still be there
        return self._limits[0][0] if self._limits and self._limits[0][0] > now else None

    def _heads(self) -> list[PolicyJob]:
        """Among these is the weightiest waiting job: the first of each size and the first starving.

        Within a size weights are alike, unless a job starves while one that came before it lost a
        machine and has waited for less long.
        """
        heap = self._starving_heap
        while heap and heap[0] not in self._starving:
            heappop(heap)
        starving = [self._book.jobs[heap[0]]] if heap else []
        return [*(next(same) for same in self._queue.sizes()), *starving]

    def _order(self, job: PolicyJob) -> tuple[float, float, int]:
        return -self.raw_weight(job), *_entered(job)

    def _launch(self, job: PolicyJob) -> Allocation | None:
        found = self._rule.place(self._room, job, *self._book.counts[job.index])
        if found is not None:
            self._start(job, found)
        return found

    def _start(self, job: PolicyJob, allocation: Allocation) -> None:
        self._starving.discard(job.index)
        insort(self._running_weights, self._raw[job.index])
        self._set(job, allocation)

    def _apply(self, changes: Changes) -> None:
        for index, allocation in changes.items():
            self._set(self._running[index], allocation)

    def _set(self, job: PolicyJob, allocation: Allocation) -> None:
        """Let `job` hold `allocation` from now on."""
        self._running.set(job, allocation)
        self._changes[job.index] = allocation


def _entered(job: PolicyJob) -> tuple[float, int]:
    """When a job first entered the waiting queue, and its place among those that came with it."""
    return job.arrival, job.index
