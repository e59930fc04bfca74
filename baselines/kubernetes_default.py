"""The default Kubernetes scheduler: pod by pod, first in first out, spread, no gangs."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace
from itertools import chain, zip_longest
from typing import NamedTuple

from baselines.counts import FixedCounts
from oasis.model.groups import GROUPS, TaskGroup
from oasis.scheduling import (
    NOTHING,
    Allocation,
    BasePolicy,
    EmptyCluster,
    JobBook,
    Plan,
    PolicyJob,
    Room,
    Site,
    Spread,
    View,
)
from oasis.scheduling.job import Demand


class Pod(NamedTuple):
    """A task that waits for a machine; `group` is the name of a `TaskGroup`, as in saved states."""

    job: PolicyJob
    group: str

    @property
    def size(self) -> Size:
        """Key of the pods that fit on the same machines as this one."""
        return self.group, TaskGroup(self.group).of(self.job)


Size = tuple[str, Demand]  # of a group
Bound = dict[str, dict[int, int]]  # group -> machine -> pods


class KubernetesDefault(BasePolicy):
    """Each pod is bound on its own as soon as it fits; there are no gangs, so jobs can deadlock.

    kube-scheduler fixes: pods wait in one queue, first in, first out; a pod that fits nowhere steps
    aside and is tried again, in its old order, when something has changed; among the nodes on which
    a pod fits, that with the largest free share of its resources is taken (LeastAllocated), so that
    pods spread. Nothing knows that the pods of a job need each other: two jobs whose pods enter the
    queue by turns can each hold a part of the cluster and wait for ever for the rest.

    Chosen: a job has the counts of `FixedCounts`; its parameter servers enter the queue before its
    workers; the pods of jobs that arrive at one instant enter it by turns, one of each job, as
    their controllers create them side by side (``interleave=False``: job after job); a job that has
    lost a server is created anew, with all its pods at the end of the queue. Where a site allows no
    incomplete gangs, as on an instance of the model, the machines of bound pods are set aside by
    the policy itself until the last pod of the job is bound.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    interleave : bool
        Whether pods of jobs that come at one instant enter the queue by turns.

    Examples
    --------
    Two jobs of three workers arrive together at a machine with room for four, and neither ever gets
    its third:

    >>> from oasis.simulator import Machine, Workload, replay
    >>> jobs = [PolicyJob(n, 0.0, 9.0, ((0, 1),), min_workers=3, max_workers=3) for n in "ab"]
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)),), partial_gangs=True)
    >>> replay(Workload.of(site, jobs), KubernetesDefault()).completions
    []
    >>> replay(Workload.of(site, jobs), KubernetesDefault(interleave=False)).completions
    [3.0, 6.0]
    """

    name = "kubernetes-default"
    needs = "elastic jobs"
    may_deadlock = True

    def __init__(self, seed: int | None = 0, *, interleave: bool = True) -> None:
        self.interleave, self._counts = interleave, FixedCounts(seed)

    def reset(self, site: Site) -> None:
        self._site, self._rule = site, Spread()
        self._counts.reset(EmptyCluster(site, Spread))
        self._book = JobBook(self._counts.draw)
        self._turn = 0  # of the next pod that enters the queue
        self._lines: dict[Size, list[tuple[int, Pod]]] = {}  # the queue by size: turns and pods
        self._waiting: dict[int, int] = {}  # pods in the queue by job
        self._bound: dict[int, Bound] = {}

    def decide(self, view: View) -> Plan:
        plan = Plan()
        for job in view.finished:
            self._bound.pop(job.index, None)
        # an elastic job may end while pods of it wait; those of an evicted one are created anew
        self._leave(job.index for job in (*view.finished, *view.evicted))
        self._create(self._book.update(view, plan))
        self._create(view.evicted)
        if not self._site.partial_gangs:
            self._recreate(set(view.lost))
        for index in sorted(self._bind(self._room(view))):
            allocation = self._allocation(index)
            # In the model an incomplete gang may hold nothing, so it
            # holds nothing until its last pod is bound.
            if self._site.partial_gangs or self._is_whole(index):
                plan.changes[index] = allocation
        return plan

    def _create(self, jobs: Iterable[PolicyJob]) -> None:
        """Create the pods of `jobs` and put them at the end of the queue."""
        pods = []
        for job in jobs:
            workers, ps = self._book.counts[job.index]
            servers = [Pod(job, TaskGroup.PS)] * ps
            pods.append(servers + [Pod(job, TaskGroup.WORKER)] * workers)
            self._bound[job.index] = {group: {} for group in GROUPS}
        # By turns is how two gangs each come to hold half of a
        # cluster, which is what this rival shows.
        turns = chain.from_iterable(zip_longest(*pods)) if self.interleave else chain(*pods)
        self._enter(pod for pod in turns if pod is not None)

    def _enter(self, pods: Iterable[Pod]) -> None:
        """Put `pods` at the end of the queue."""
        for pod in pods:
            self._lines.setdefault(pod.size, []).append((self._turn, pod))
            self._waiting[pod.job.index] = self._waiting.get(pod.job.index, 0) + 1
            self._turn += 1

    def _leave(self, jobs: Iterable[int]) -> None:
        """Remove all pods of the jobs with these indices from the queue."""
        gone = {index for index in jobs if self._waiting.pop(index, 0)}
        for size, line in list(self._lines.items()) if gone else ():
            remaining = [entry for entry in line if entry[1].job.index not in gone]
            if remaining:
                self._lines[size] = remaining
            else:
                del self._lines[size]

    def _recreate(self, lost: set[int]) -> None:
        """Queue new pods for those bound on `lost` machines while their job did not run."""
        for index, bound in self._bound.items():
            for group in reversed(GROUPS):  # parameter servers first, as when a job arrives
                for machine in lost & bound[group].keys():
                    pods = bound[group].pop(machine)
                    self._enter([Pod(self._book.jobs[index], group)] * pods)

    def _room(self, view: View) -> Room:
        """Return free capacity, less the requests of bound pods whose job does not run yet."""
        room = Room(self._site, view.free(), view.down())
        if not self._site.partial_gangs:
            for index in self._bound:
                job = self._book.jobs[index]
                if view.allocation(job) == NOTHING:
                    # Also where nothing is to begin any more: a bound pod stays where it is.
                    room.occupy(job, self._allocation(index))
        return room

    def _bind(self, room: Room) -> set[int]:
        """Bind queued pods that fit, in order; return indices of jobs with new bound pods."""
        changed = set()
        # One entry per size, by the turn of its first pod: the heap walks the queue in its order.
        first = [(line[0][0], size) for size, line in self._lines.items()]
        heapify(first)
        while first:
            group, demand = size = first[0][1]
            hosts = self._site.machines_for(group)
            machine = self._rule.next_machine(room, hosts, demand, group)
            if machine is None:  # room only shrinks: the others of this size fit nowhere either
                heappop(first)
                continue
            line = self._lines[size]
            job = line.pop(0)[1].job
            if line:
                heapreplace(first, (line[0][0], size))
            else:
                heappop(first)
                del self._lines[size]
            self._waiting[job.index] -= 1
            room.take(machine, demand, 1)
            tasks = self._bound[job.index][group]
            tasks[machine] = tasks.get(machine, 0) + 1
            changed.add(job.index)
        return changed

    def _allocation(self, index: int) -> Allocation:
        """Return the bound pods of the job with this index as an allocation."""
        bound = self._bound[index]
        workers, ps = (tuple(sorted(bound[group].items())) for group in GROUPS)
        return Allocation(workers, ps)

    def _is_whole(self, index: int) -> bool:
        """Whether all pods of the job with this index are bound."""
        allocation = self._allocation(index)
        return (allocation.worker_count, allocation.ps_count) == self._book.counts[index]
