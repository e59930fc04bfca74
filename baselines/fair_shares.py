"""Fair shares of the cluster: dominant resource fairness and finish-time fairness."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from baselines.counts import Placing
from baselines.preemptive import Ordered, Rank
from baselines.queues import STRICT
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.rounding import FloatArray
from oasis.scheduling import (
    NOTHING,
    BasePolicy,
    JobBook,
    Placement,
    Plan,
    PolicyJob,
    Room,
    Site,
    View,
)
from oasis.scheduling.job import Allocation, Demand


class Pools:
    """Capacity by resource, for workers and for servers apart unless some machine hosts both."""

    # Where no machine hosts both workers and parameter servers, a resource of the ones' hosts and
    # the same of the others' are two. Where any machine hosts both, there is one of each, over all
    # machines: a machine that hosts both counts once.

    def __init__(self, site: Site) -> None:
        self._site, size = site, len(site.resources)
        shared = any(len(machine.hosts) == len(GROUPS) for machine in site.machines)
        self._offsets: dict[str, int] = {
            group: 0 if shared else k * size for k, group in enumerate(GROUPS)
        }
        self._size = size if shared else size * len(GROUPS)
        self.totals = self.sums([machine.amounts for machine in site.machines])

    def place(self, group: str, resource: int) -> int:
        """Return the index of the pool with `resource` of the machines that host `group`."""
        return self._offsets[group] + resource

    def sums(self, rows: Sequence[Sequence[float]]) -> FloatArray:
        """Capacity of each pool, shape (K,), from the capacities (R,) of machines."""
        amounts: list[list[float]] = [[] for _ in range(self._size)]
        for machine, row in zip(self._site.machines, rows, strict=True):
            # A set, so that a machine that hosts both groups is
            # counted once where they share a pool.
            for offset in {self._offsets[group] for group in machine.hosts}:
                for resource, amount in enumerate(row):
                    amounts[offset + resource].append(amount)
        return np.array([math.fsum(values) for values in amounts])

    def amounts(self, rows: Sequence[Sequence[int]]) -> dict[int, int]:
        """Return the exact capacity of each pool by index, from capacities in grid units."""
        totals = dict.fromkeys(range(self._size), 0)
        for machine, row in zip(self._site.machines, rows, strict=True):
            for offset in {self._offsets[group] for group in machine.hosts}:
                for resource, amount in enumerate(row):
                    totals[offset + resource] += amount
        return totals


class Shares:
    """Dominant shares of tasks: the largest of their shares of any pool."""

    def __init__(self, site: Site) -> None:
        self._pools = Pools(site)
        self._totals = (self._pools.totals * site.grid).tolist()

    def dominant(self, job: PolicyJob, workers: int, ps: int) -> float:
        """Return the dominant share of this many workers and parameter servers of `job`."""
        usage: dict[int, int] = {}
        self.add(usage, job, workers, ps)
        return self.largest(usage)

    def add(self, usage: dict[int, int], job: PolicyJob, workers: int, ps: int) -> None:
        """Add the demand of these tasks of `job` to `usage`: pool -> grid units."""
        for group, count in zip(GROUPS, (workers, ps), strict=True):
            for resource, amount in group.of(job) if count else ():
                place = self._pools.place(group, resource)
                usage[place] = usage.get(place, 0) + count * amount

    def largest(self, usage: Mapping[int, int]) -> float:
        """Return the largest share of any pool; `usage` maps pools to grid units."""
        return rounding.key(
            max((amount / self._totals[place] for place, amount in usage.items()), default=0.0)
        )


class MachineShares:
    """Demands of tasks as shares of the largest machine's capacity, for each resource."""

    def __init__(self, site: Site, group: str) -> None:
        machines = [site.machines[k] for k in site.machines_for(group)]
        rows = [machine.capacity for machine in machines]
        self._largest = [max(column, default=0) for column in zip(*rows, strict=True)]
        self._cores = max((machine.cpu_cores for machine in machines), default=math.inf)

    def of(self, demand: Demand, cores: float, tasks: int = 1) -> list[float]:
        """Shares of each resource that `tasks` take; the last one is that of CPU, `cores` each."""
        # `cores` is what each of them keeps busy without reserving it.
        shares = [tasks * amount / self._largest[resource] for resource, amount in demand]
        return [*shares, tasks * cores / self._cores]


NEGLIGIBLE = 1e-12  # relative: what rounding leaves of a share that is used up


class Portions:
    """Shares of the cluster that single tasks of a job take, for each pool."""

    def __init__(self, site: Site) -> None:
        self._pools, self._grid = Pools(site), site.grid
        self.totals = self._pools.totals

    def of_task(self, job: PolicyJob, group: TaskGroup) -> FloatArray:
        """Return the share of each pool that one task of `group` takes, shape (K,)."""
        portion = np.zeros(len(self.totals))
        for resource, amount in group.of(job):
            place = self._pools.place(group, resource)
            total = self.totals[place] * self._grid
            portion[place] = rounding.key(amount / total) if total else 0.0  # it fits nowhere
        return portion

    def of_worker(self, job: PolicyJob) -> FloatArray:
        """Share of each pool of one worker and its part of the parameter servers, shape (K,)."""
        # That is b_i / B_i of one; a fixed number of them is divided among the fewest workers.
        portion = self.of_task(job, TaskGroup.WORKER)
        per_worker, fixed = job.ps_line
        # Each worker carries its part of the parameter servers, so
        # that shares stay linear in workers.
        part = per_worker + fixed / job.worker_counts[0]
        if part:
            portion += part * self.of_task(job, TaskGroup.PS)
        return portion

    def supply(self, capacity: Sequence[tuple[int, ...]]) -> FloatArray:
        """Return the share of each pool in `capacity` (grid units), 1 if no machine is down."""
        present = self._pools.sums(capacity)
        full = self.totals * self._grid
        shares: FloatArray = np.minimum(1.0, np.divide(present, full, out=full * 0, where=full > 0))
        return shares


@dataclass(frozen=True, slots=True)
class Fairness:
    """Fair dominant shares of jobs at one moment, and how far allocations are from them."""

    per_worker: Mapping[int, float]
    fair: Mapping[int, float]
    kinds: int  # of resources that some job demands

    @classmethod
    def among(
        cls, jobs: Mapping[int, PolicyJob], portions: Portions, capacity: Sequence[tuple[int, ...]]
    ) -> Fairness:
        """Compute the fair shares of `jobs` on machines with `capacity` (grid units)."""
        workers = {index: portions.of_worker(job) for index, job in jobs.items()}
        most = {index: job.max_workers for index, job in jobs.items()}
        fair = fair_shares(workers, most, portions.supply(capacity))
        per_worker = {index: float(portion.max()) for index, portion in workers.items()}
        return cls(per_worker, fair, int(np.count_nonzero(sum(workers.values()))))

    def loss(self, index: int, workers: int) -> float:
        """Distance between the job's dominant share with this many workers and its fair share."""
        share = self.per_worker[index] * workers
        return rounding.key(abs(rounding.difference(share, self.fair[index])))

    def total(self, allocations: Mapping[int, Allocation]) -> float:
        """Return the sum of the losses of the jobs in `allocations`."""
        return math.fsum(
            self.loss(index, allocation.worker_count) for index, allocation in allocations.items()
        )


def fair_shares(
    portions: Mapping[int, FloatArray], most: Mapping[int, int], supply: FloatArray
) -> dict[int, float]:
    """Return the fair dominant share of each job, by progressive filling, workers divisible."""
    # All jobs grow at one pace, measured by their dominant shares, until a resource that they need
    # is used up or they have all the workers they can use (Ghodsi et al., NSDI 2011, section 4).
    shares = dict.fromkeys(portions, 0.0)
    # All dominant shares grow at the pace of 1: one number is the level of all that still grow.
    pace = {index: portion / portion.max() for index, portion in portions.items() if portion.max()}
    caps = {index: float(portions[index].max()) * most[index] for index in pace}
    free, level, growing = supply.copy(), 0.0, list(pace)
    while growing:
        drain = np.sum([pace[index] for index in growing], axis=0)
        used = drain > 0
        # To the next event: a resource runs out, or a job has all it can use. One of them ends in
        # each step, so there are as many steps as jobs and resources at most. A resource of which
        # there is nothing ends in the first, of length 0.
        step = min(
            float((free[used] / drain[used]).min()),
            min(caps[index] for index in growing) - level,
        )
        level += step
        free = np.maximum(0.0, free - step * drain)
        for index in growing:
            shares[index] = min(level, caps[index])
        # Exhausted but for rounding: otherwise steps of 1e-17 would never end.
        empty = free <= NEGLIGIBLE
        growing = [
            index
            for index in growing
            if level < caps[index] * (1 - NEGLIGIBLE) and not empty[pace[index] > 0].any()
        ]
    return shares


JOB, OWNER = "job", "owner"
Entry = tuple[float, int, int, int]  # dominant share, index, workers and parameter servers so far


class DRF(BasePolicy):
    """Jobs share the cluster so that their dominant shares are as equal as they can be.

    Dominant Resource Fairness (Ghodsi et al., NSDI 2011, Algorithm 1) fixes: the dominant share of
    a job is its largest share of any resource; progressive filling gives the next task to the job
    with the smallest one, as long as it fits. The OASiS paper fixes (section V-A): counts are
    computed anew at each arrival and completion, placement round-robin on servers with room.
    Chosen: a resource of the worker servers and the same one of the parameter-server hosts are two
    resources, unless some machine hosts both (`Pools`): then it counts once; a task is a worker
    together with the parameter servers that (6) then asks for (the first task of a rigid job is the
    whole job); a job whose next task fits nowhere is full and the filling goes on with the others;
    equal shares in order of arrival; all jobs are placed anew, from the first server on, so that
    the same jobs always get the same places.

    Who shares are the jobs, as in the OASiS paper. A rigid job is one task, so all that wait have
    the share 0 and there is nothing to be equalised: on a plain trace that is the order of arrival,
    in which those that fit may pass, and an earlier job takes back its GPUs. With ``by="owner"``
    users or virtual clusters share instead, as in the source: the next task goes to the owner with
    the smallest dominant share over all its jobs, and among those to the job with the smallest one.

    Parameters
    ----------
    by : {"job", "owner"}
        Entities with equal dominant shares: jobs, or their owners.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    Two jobs that could each use the four GPUs get two each:

    >>> from oasis.simulator import Machine, Workload, replay
    >>> jobs = [PolicyJob(name, 0.0, 8.0, ((0, 1),), max_workers=4) for name in "ab"]
    >>> work = Workload.of(Site(("gpu",), (Machine("n0", (4.0,)),)), jobs)
    >>> replay(work, DRF()).completions
    [4.0, 4.0]
    """

    name = "drf"
    is_slow = True

    def __init__(self, *, by: str = JOB, placement: str | None = None) -> None:
        if by not in (JOB, OWNER):
            raise InputError("by", f"expected {JOB} or {OWNER}", by)
        self.by, self._placing = by, Placing(placement)

    def reset(self, site: Site) -> None:
        self._site = site
        self._shares = Shares(site)
        self._book = JobBook(self._placing.empty(site).fewest)

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._book.update(view, plan)
        # From the empty cluster, whatever jobs hold: the shares depend
        # on nothing but the jobs that are there.
        for index, allocation in self._fill(Room(self._site, view.capacity(), view.down())).items():
            if allocation != view.allocation(self._book.jobs[index]):
                plan.changes[index] = allocation
        return plan

    def _fill(self, room: Room) -> dict[int, Allocation]:
        """Give tasks to the job or owner of least share until none fits; return allocations."""
        how, jobs = self._placing.on(self._site), self._book.jobs
        counts_of: dict[int, tuple[dict[int, int], dict[int, int]]] = {i: ({}, {}) for i in jobs}
        lines: dict[object, list[Entry]] = {}
        for index, job in jobs.items():
            lines.setdefault(index if self.by == JOB else job.owner, []).append((0.0, index, 0, 0))
        usage: dict[object, dict[int, int]] = {owner: {} for owner in lines}
        # owners by their share, then by the job that is next; each job is in the line of its owner
        owners = [(0.0, line[0][1], owner) for owner, line in lines.items()]
        heapify(owners)
        while owners:
            share, _, owner = heappop(owners)
            line = lines[owner]
            _, index, workers, ps = heappop(line)
            job = jobs[index]
            added = self._grow(job, workers, ps, room, how)
            # A job whose task did not fit is not entered again: what is free only shrinks.
            if added is not None:
                for mine, tasks in zip(counts_of[index], added.by_group, strict=True):
                    for machine, count in tasks:
                        mine[machine] = mine.get(machine, 0) + count
                workers, ps = workers + added.worker_count, ps + added.ps_count
                self._shares.add(usage[owner], job, added.worker_count, added.ps_count)
                share = self._shares.largest(usage[owner])
                if workers < job.max_workers:
                    heappush(line, (self._shares.dominant(job, workers, ps), index, workers, ps))
            if line:
                heappush(owners, (share, line[0][1], owner))
        return {
            index: Allocation(tuple(sorted(workers.items())), tuple(sorted(ps.items())))
            if workers
            else NOTHING
            for index, (workers, ps) in counts_of.items()
        }

    def _grow(
        self, job: PolicyJob, workers: int, ps: int, room: Room, how: Placement
    ) -> Allocation | None:
        """Place the next task of `job`, which has these counts; None if it fits nowhere."""
        # A gang works with its minimum or not at all: its first task is the whole of it.
        more = 1 if workers else job.worker_counts[0]
        ps_more = max(0, job.ps_needed(workers + more) - ps)
        return how.place(room, job, more, ps_more)


LEASED, OFFERED = 0.0, 1.0  # first part of a rank: jobs with a lease come first


class FinishTimeFairness(Ordered):
    """At the end of each lease, GPUs go to the jobs with the worst finish-time fairness.

    Themis (Mahajan et al., NSDI 2020) fixes: the finish-time fairness of a job is rho = T_sh /
    T_id, the time from its arrival to its end in the shared cluster over that in a cluster of its
    own with 1/N of the machines, for N the mean number of jobs it shared with; GPUs are leased, and
    at the end of a lease offered to the jobs with the largest rho. (Recalled, not checked against
    the printed text.)

    Chosen: rigid jobs bid for all or nothing, so there is no auction among those that are offered
    GPUs, but the largest rho goes first (equal to 9 digits: in order of arrival); T_sh is the age
    of a job and what it has left to run; T_id is its whole run time, multiplied by N s where its
    dominant share s is more than 1/N; N is the mean since its arrival of the jobs that were there;
    a job that holds a lease keeps its machines; a lease that ends while no job waits continues
    until one does; new jobs are offered at once what is free; the rest as in `Ordered`.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    lease : float
        How long a job holds its GPUs before it may lose them, in hours.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    After an hour the short job has waited 1.5 times as long as half a cluster would have taken it:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("long", 0.0, 36000.0, 8), PlainJob("short", 0.0, 1800.0, 8)]
    >>> policy = FinishTimeFairness(lease=1.0)
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), policy).completions
    [37800.0, 5400.0]
    """

    name = "finish-time-fairness"
    is_slow = True
    told_remaining = True

    def __init__(
        self,
        seed: int | None = 0,
        lease: float = 1 / 3,
        *,
        line: str = STRICT,
        placement: str | None = None,
    ) -> None:
        super().__init__(seed, line=line, placement=placement)
        if not 0 < lease < math.inf:
            raise InputError("lease", "expected a finite number > 0", lease)
        self.lease = lease

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._shares, self._length = Shares(site), self.lease * 3600.0 / site.unit_seconds
        self._now, self._job_time = 0.0, 0.0  # the integral over time of the jobs that are there
        self._job_time_before: dict[int, float] = {}  # at the arrival of each job
        self._leases: dict[int, float] = {}  # end of the lease of each job that runs

    def before_serving(self, view: View) -> None:
        """Add up the time of all jobs present, and sort the line anew: fairness changes in time."""
        # The book still has the jobs of the time that passed: it is updated after this.
        self._job_time += len(self._book.jobs) * (view.now - self._now)
        self._now = view.now
        for job in view.finished:
            self._job_time_before.pop(job.index, None)
        self.rank_anew(view)

    def after_serving(self) -> None:
        """Give a lease to each job that starts, or that goes on after its lease has ended."""
        end = self._now + self._length
        self._leases = {
            index: old if (old := self._leases.get(index, end)) > self._now else end
            for index in self._running
        }

    def key(self, job: PolicyJob, workers: int, view: View) -> Rank:
        if job.index in self._running and self._leases[job.index] > view.now:
            # A job with a lease goes before all jobs that are offered GPUs, so it keeps its own.
            return LEASED, 0.0
        return OFFERED, -rounding.key(self.rho(job, workers, view))

    def rho(self, job: PolicyJob, workers: int, view: View) -> float:
        """Return the finish-time fairness rho of `job` if it runs from now on to its end."""
        before = self._job_time_before.setdefault(job.index, self._job_time)
        age = view.now - job.arrival
        sharing = (self._job_time - before) / age if age else sum(1 for _ in view.jobs())
        _, ps = self._book.counts[job.index]
        isolated = job.work / workers
        # A job that needs more than 1/N of the machines would run slower on its part alone.
        isolated *= max(1.0, sharing * self._shares.dominant(job, workers, ps))
        return (age + view.remaining(job) / workers) / isolated if isolated else math.inf

    def wake_at(self, view: View) -> float | None:
        """Return the end of the next lease; None if no job waits."""
        return min(self._leases.values(), default=None) if self._waiting else None
