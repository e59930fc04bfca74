"""KOD2: jobs by weight; running ones shrink for heavier ones and grow into idle capacity."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from heapq import heappop, heappush

from baselines.counts import on_node
from baselines.fair_shares import MachineShares
from baselines.gangs import Allocations, Changes, GangController, add_worker, drop_worker
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.scheduling import (
    Allocation,
    MostIdle,
    OneNode,
    Plan,
    PolicyJob,
    Room,
    Site,
    View,
)
from oasis.scheduling.book import Counts
from oasis.scheduling.job import Demand


class JobState(StrEnum):
    """The four states of a job (Fig. 5 of the paper)."""

    RUNNING = "running"
    WAITING = "waiting"
    STARVING = "starving"
    COMPLETED = "completed"


def weight_of(shares: MachineShares, job: PolicyJob) -> float:
    """Weight w' of `job`: fewest workers over one's demand, in `shares`; infinity: no demand."""
    # The paper prints the weight as the sigmoid (1) of w', and of w' only that it is "in proportion
    # to the minimum number of worker tasks and in inverse proportion to the sum of required CPU and
    # memory". Read: w' = n / d, with n the fewest workers and d the sum, over the resources, of the
    # share of the largest machine that one worker takes. CPU and memory are all that the paper's
    # tasks name, GPUs count here where tasks name them, and cores that a worker keeps busy
    # (`PolicyJob.worker_cpu`) count as CPU. The demand of one worker and not of all is meant, or w'
    # would not depend on n. Weights are compared by w': the sigmoid orders them alike, but rounds
    # every w' above 37 to 1.
    requested = math.fsum(shares.of(job.worker, job.worker_cpu))
    return rounding.key(job.worker_counts[0] / requested) if requested else math.inf


class AffinityPlacement:
    """Places all tasks on one machine if possible, otherwise on the idlest machines."""

    name = "affinity"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place all tasks; None, with `room` unchanged, if they do not fit."""
        allocation = OneNode().place(room, job, workers, ps)
        if allocation is not None:
            return allocation
        hosts = room.fitting(room.site.machines_for("worker"), job.worker)
        if sum(room.count(machine, job.worker, workers) for machine in hosts) < workers:
            return None  # what `MostIdle` would find after more work
        return MostIdle().place(room, job, workers, ps)


OnNode = Callable[[int], Allocation | None]
Weight = Callable[[PolicyJob], float]


def scale_in_order(new: PolicyJob, running: Iterable[PolicyJob], weight: Weight) -> list[PolicyJob]:
    """Running jobs that may shrink for `new`, lightest first (lines 3-8 of Algorithm 2)."""
    mine, entered = weight(new), _entry_key(new)
    # Among equals the earlier one keeps its workers, or equal jobs
    # could take them from one another in turn.
    victims = [job for job in running if weight(job) != mine or not _entry_key(job) < entered]
    return sorted(victims, key=lambda job: (weight(job), _entry_key(job)))


def scale_in(
    room: Room, victims: Iterable[PolicyJob], allocations: Allocations, on_node: OnNode
) -> tuple[Changes, Allocation] | None:
    """Take workers away until `on_node` succeeds; return changes, allocation, or None (Alg. 2)."""
    # As printed, whether it fits is looked at before each worker is taken, so that what the last
    # worker of a job on a machine gave is not seen until another job's worker there is reached
    # (lines 14-18). The text says "as one worker task is decreased, the idle resources of the node
    # increase", so that it is read: look after each worker.
    before = room.free.copy()
    changes: Changes = {}
    for job in victims:
        homes = dict(allocations[job.index].ps)
        # Workers away from their parameter server send over the network, so they go first.
        order = sorted(allocations[job.index].workers, key=lambda task: (task[0] in homes, task[0]))
        now = allocations[job.index]
        spare = job.spare_workers(now.worker_count)
        # Lines 9-32, one worker at a time, as the text has it.
        for machine in (machine for machine, count in order for _ in range(count)):
            if not spare:
                break
            now = changes[job.index] = drop_worker(room, job, now, machine)
            spare -= 1
            if (allocation := on_node(machine)) is not None:
                return changes, allocation
    room.free = before
    return None


def scale_out(
    room: Room, able: Sequence[PolicyJob], allocations: Allocations, weight: Weight
) -> Changes:
    """Grow running jobs up to their most workers, heaviest first; return changes (Algorithm 3)."""
    # Machines are gone through by index; the paper gives no order. As printed, one is used while
    # its idle resources are strictly more than a worker asks for (line 8), so that the last of them
    # is never used. The text says that the next machine is searched if they "cannot satisfy" the
    # worker, so that it is read: at least as much.
    changes: Changes = {}
    hosts: dict[Demand, Sequence[int]] = {}  # machines that may have room; room only shrinks

    everywhere = room.site.machines_for("worker")
    for demand in {job.worker for job in able}:
        # Jobs of one demand share the list, which only shrinks while they take.
        hosts[demand] = room.fitting(everywhere, demand)
    able = [job for job in able if hosts[job.worker]]
    # The weightiest first, and of equals the earlier one, as in the order of launches.
    for job in sorted(able, key=lambda job: (-weight(job), _entry_key(job))):
        now = allocations[job.index]
        for machine in hosts[job.worker]:
            while (more := add_worker(room, job, now, machine)) is not None:
                now = changes[job.index] = more
        hosts[job.worker] = room.fitting(hosts[job.worker], job.worker)
    return changes


class Kod2(GangController):
    """Heavier jobs take workers from lighter ones, all grow into idle GPUs; starving jobs go first.

    KOD2 (Jeong and Yu, KTCCS 2022), Algorithms 1 to 3 and the placement of section 4.1.

    Each call goes through `raise_starving`, `launch_by_weight` again and again while it launches a
    job, as the operator's sync loop does, and `grow`.

    Read, where the printed algorithms leave it open or disagree with the text:

    - w', which is not printed: the fewest workers over what one of them asks for, as shares of the
      largest machine.
    - "Idle resources of the cluster more than the job requires" (lines 6 and 21, once with > and
      once with >=): the job's minimum can be placed.
    - Weights are updated for jobs that starve: lines 27-29 do so only while no waiting job
      weighs as much as the weightiest running one, so that a job never starves visibly while
      weightier ones keep arriving; the text has no such condition.
    - To which weight: not printed. A starving job weighs more than any other, and among starving
      jobs the first to come goes first; once it runs it has its own weight again.
    - Scale-in looks whether the job fits after each worker, and scale-out uses a resource to the
      last.

    STARVELIMIT bounds what the policy does, not the time: once a job starves, no job is launched
    that entered the queue after it, until it is launched.

    Parameters
    ----------
    starve_limit : float
        STARVELIMIT, seconds. Not printed; 600 is ours.

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
    needs = "weights of jobs"

    def __init__(self, starve_limit: float = 600.0) -> None:
        if not 0 <= starve_limit < math.inf:
            raise InputError("starve_limit", "expected seconds >= 0", starve_limit)
        super().__init__(AffinityPlacement)
        self.starve_limit = float(starve_limit)

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._shares = MachineShares(site, "worker")
        self._limit = self.starve_limit / site.unit_seconds
        self._running_weights: list[float] = []  # w' of those that run, ascending
        self._raw: dict[int, float] = {}
        self._since: dict[int, float] = {}
        self._starving: set[int] = set()
        self._starving_heap: list[int] = []  # the first to come on top
        self._limits: list[tuple[float, int]] = []  # when waiting jobs begin to starve
        self._finished: set[int] = set()

    def decide(self, view: View) -> Plan:
        self._begin(view)
        self.raise_starving(view.now)
        # Each launch changes which job weighs most, so the algorithm begins again.
        while self._queue and self.launch_by_weight():
            pass
        # Last: what is free goes to running jobs only if no waiting job could use it.
        self.grow()
        self._plan.wake_at = self._next_starving()
        return self._plan

    def request(self, job: PolicyJob) -> Counts | None:
        """Return the fewest tasks of `job`, with which it starts; None if they never fit."""
        return self._empty.fewest(job)

    def raw_weight(self, job: PolicyJob) -> float:
        """Return w' of `job`, which compares like its weight; infinity while it starves."""
        return math.inf if job.index in self._starving else self._raw[job.index]

    def state_of(self, job: PolicyJob) -> JobState:
        """Return the state of `job` (Fig. 5) as of the policy's last decision."""
        if job.index in self._finished:
            return JobState.COMPLETED
        if job.index in self._running:
            return JobState.RUNNING
        return JobState.STARVING if job.index in self._starving else JobState.WAITING

    def raise_starving(self, now: float) -> None:
        """Lines 27-29 of Algorithm 1: jobs that wait longer than STARVELIMIT weigh most."""
        while self._limits and self._limits[0][0] <= now:
            limit, index = heappop(self._limits)
            # An entry of an earlier wait, before the job ran and lost
            # a machine, says nothing of this one.
            if index in self._queue and self._since[index] + self._limit == limit:
                self._starving.add(index)
                heappush(self._starving_heap, index)

    def launch_by_weight(self) -> bool:
        """Lines 5-30 of Algorithm 1: launch waiting jobs by weight; return whether any was."""
        head = min(self._heads(), key=self._order)
        # Only a job that weighs as much as all that run may take workers from them.
        top = self._running_weights[-1] if self._running_weights else -math.inf
        if self.raw_weight(head) >= top:
            return self.launch_or_scale_in(head)
        # Lines 19-26: go through the queue by descending weight and launch what fits.
        return self._queue.launch_all(self._order, self._launch, set()) > 0

    def launch_or_scale_in(self, head: PolicyJob) -> bool:
        """Lines 5-17: launch `head` at its minimum, by scale-in if need be; return if it was."""
        if self._launch(head) is None:
            # Jobs at their minimum give nothing.
            scaled = scale_in(
                self._room,
                scale_in_order(head, self._running.shrinking(), self.raw_weight),
                self._running.allocations,
                lambda machine: on_node(self._room, head, *self._book.counts[head.index], machine),
            )
            if scaled is None:
                return False
            self._resize(scaled[0])
            self._set(head, scaled[1])
        self._queue.remove(head)
        return True

    def grow(self) -> None:
        """Lines 31-36 of Algorithm 1: running jobs take free capacity (`scale_out`)."""
        running = self._running
        self._resize(scale_out(self._room, running.growing(), running.allocations, self.raw_weight))

    def _begin(self, view: View) -> None:
        """Lines 1-4 and 37-40 of Algorithm 1: new jobs wait, finished ones leave."""
        for job in (*view.finished, *view.evicted):
            if job.index in self._running:  # equal weights are alike: any of them may go
                del self._running_weights[bisect_left(self._running_weights, self._raw[job.index])]
            self._starving.discard(job.index)
        self._finished.update(job.index for job in view.finished)
        super()._begin(view)
        for job in (*view.arrived, *view.evicted):
            if job.index in self._queue:
                self._raw[job.index] = weight_of(self._shares, job)
                self._since[job.index] = view.now
                heappush(self._limits, (view.now + self._limit, job.index))

    def _next_starving(self) -> float | None:
        """Return the next time at which a job begins to starve; None if no job will."""
        while self._limits and self._limits[0][1] not in self._queue:
            heappop(self._limits)
        return self._limits[0][0] if self._limits else None

    def _heads(self) -> list[PolicyJob]:
        """Return jobs that may weigh most: the first of each size, and one that starves."""
        # Within a size weights are alike, unless a job starves while one that came before it lost
        # a machine and has waited for less long.
        heap = self._starving_heap
        while heap and heap[0] not in self._starving:
            heappop(heap)
        starving = [self._book.jobs[heap[0]]] if heap else []
        return [*(next(same) for same in self._queue.sizes()), *starving]

    def _order(self, job: PolicyJob) -> tuple[float, float, int]:
        return -self.raw_weight(job), *_entry_key(job)

    def _set(self, job: PolicyJob, allocation: Allocation) -> None:
        """Record that `job` holds `allocation`; if it is just launched, it starves no more."""
        if job.index not in self._running:
            self._starving.discard(job.index)
            insort(self._running_weights, self._raw[job.index])
        super()._set(job, allocation)


def _entry_key(job: PolicyJob) -> tuple[float, int]:
    """Return the sort key of a job by its arrival, then by its order in the file."""
    return job.arrival, job.index
