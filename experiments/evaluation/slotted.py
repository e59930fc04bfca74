"""OASiS and recourse on elastic jobs in continuous time: they plan in slots, as services do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any, cast

from experiments.evaluation.elastic_model import ElasticModel, Translated
from oasis.kubernetes.planning.live_policy import LivePolicy
from oasis.kubernetes.planning.view import ClusterView
from oasis.scheduling.allocation import NOTHING, Allocation
from oasis.scheduling.book import NEVER_FITS, EmptyCluster
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.placement import BestFit
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.room import Room
from oasis.scheduling.site import Site


class SlotView:
    """What the scheduler in slots sees at the beginning of a slot.

    The attributes and methods are those of `oasis.kubernetes.planning.view.ClusterView` that
    `oasis.kubernetes.planning.live_policy.LivePolicy` uses.
    """

    def __init__(self, policy: Slotted, view: View, now: int) -> None:
        self._policy, self._view = policy, view
        self.now = float(now)
        self.arrived = policy.entered
        self.finished = policy.left
        self.lost, self.returned = policy.lost, policy.returned

    def jobs(self) -> list[PolicyJob]:
        """Unfinished jobs, in order of arrival."""
        return [seen.job for seen in self._policy.seen.values()]

    def capacity(self) -> list[tuple[int, ...]]:
        """Of each machine that is there."""
        *machines, servers = self._policy.model.site.machines
        down = self._view.down()
        rows = [(0,) * len(m.capacity) if k in down else m.capacity for k, m in enumerate(machines)]
        return [*rows, servers.capacity]

    def down(self) -> Set[int]:
        """Machines that are not there."""
        return self._view.down()

    def allocation(self, job: PolicyJob) -> Allocation:
        """What `job` was to hold in the slot that ended."""
        return self._policy.wanted.get(job.index, NOTHING)

    def remaining(self, job: PolicyJob) -> float:
        """Worker-slots left."""
        left = self._view.remaining(self._policy.real[job.index])
        return left / self._policy.seen[job.index].speed

    def was_admitted(self, job: PolicyJob) -> bool:
        """Whether `job` was accepted before: no job comes twice here."""
        return False


class Slotted:
    """A scheduler in slots as a policy of elastic jobs in continuous time.

    It is asked at the beginning of each slot alone: jobs that came since the last one wait for it,
    and what a job leaves that ends within a slot stays idle to the end of the slot. Parameter
    servers go to the machine with most of the job's workers that has room for them. A job whose
    parameter servers find no room, or that is planned with fewer workers than it works with, takes
    what the others leave, by best fit, its fewest workers at least; if it finds no room it holds
    nothing in that slot. The scheduler plans anew what was not done.

    Parameters
    ----------
    policy : LivePolicy
        What plans.
    model : ElasticModel
        How it sees the machines and the jobs.
    """

    slotted = False
    told_remaining = True

    def __init__(self, policy: LivePolicy, model: ElasticModel) -> None:
        self.name, self.model, self._policy = policy.name, model, policy

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {**self._policy.parameters, "slot_seconds": self.model.length}

    def reset(self, site: Site) -> None:
        self._site = site
        self._policy.reset(self.model.site)
        self.real: dict[int, PolicyJob] = {}
        self.seen: dict[int, Translated] = {}
        self.wanted: dict[int, Allocation] = {}
        self._new: list[PolicyJob] = []
        self._empty = EmptyCluster(site, BestFit)
        self._slot = 0
        self._clear()

    def _clear(self) -> None:
        """Nothing has happened since the last slot began."""
        self.entered: list[PolicyJob] = []
        self.left: list[PolicyJob] = []
        self.lost: list[int] = []
        self.returned: list[int] = []

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._note(view)
        self._slot = max(self._slot, math.ceil(view.now / self.model.length - 1e-9))
        if view.now >= self._slot * self.model.length:
            self._enter(plan)
            answer = self._policy.decide(cast(ClusterView, SlotView(self, view, self._slot)))
            self._clear()
            for index, reason in answer.rejected.items():
                plan.rejected[index] = reason
                self._forget(index)
            self.wanted.update(answer.changes)
            self._carry_out(view, plan)
            self._slot += 1
        if self.seen or self._new:
            plan.wake_at = self._slot * self.model.length
        return plan

    def _note(self, view: View) -> None:
        """Keep what happened for the beginning of the next slot."""
        for job in view.finished:
            if job.index in self.seen:
                self.left.append(self.seen[job.index].job)
            self._forget(job.index)
        self._new += view.arrived
        self.lost += view.lost
        self.returned += view.returned

    def _enter(self, plan: Plan) -> None:
        for job in self._new:
            if self._empty.fewest(job) is None:  # the model, which splits servers, might not see it
                plan.rejected[job.index] = NEVER_FITS
                continue
            seen = self.model.translate(job, self._slot)
            self.real[job.index], self.seen[job.index] = job, seen
            self.entered.append(seen.job)
        self._new = []

    def _forget(self, index: int) -> None:
        for known in (self.seen, self.real, self.wanted):
            known.pop(index, None)

    def _carry_out(self, view: View, plan: Plan) -> None:
        """Let each job hold what is planned; those that keep their places come first."""
        room = Room(self._site, view.capacity(), view.down())
        wanted = {index: self.wanted.get(index, NOTHING).workers for index in self.seen}
        kept = {
            index
            for index, tasks in wanted.items()
            if tasks and view.allocation(self.real[index]).workers == tasks
        }
        rest = []
        for index in sorted(wanted, key=lambda index: (index not in kept, index)):
            job, held = self.real[index], view.allocation(self.real[index])
            if index in kept and room.hold(job, held):
                continue
            found = _with_servers(room, job, wanted[index])
            if wanted[index] and not found.workers:
                rest.append(index)
            elif found != held:
                plan.changes[index] = found
        for index in rest:
            job = self.real[index]
            found = _somewhere(room, job, sum(count for _, count in wanted[index]))
            if found != view.allocation(job):
                plan.changes[index] = found


def _somewhere(room: Room, job: PolicyJob, workers: int) -> Allocation:
    """Room for so many workers or for the fewest, by best fit; nothing if there is none."""
    for count in dict.fromkeys((max(workers, job.min_workers), job.min_workers)):
        found = BestFit().place(room, job, count, job.ps_needed(count))
        if found is not None:
            return found
    return NOTHING


def _with_servers(room: Room, job: PolicyJob, workers: tuple[tuple[int, int], ...]) -> Allocation:
    """The planned workers and the parameter servers that they need; nothing if that cannot be."""
    count = sum(tasks for _, tasks in workers)
    if not job.min_workers <= count <= job.max_workers:
        return NOTHING
    if not room.hold(job, Allocation(workers)):
        return NOTHING
    servers: dict[int, int] = {}
    beside = sorted(dict(workers), key=lambda machine: (-dict(workers)[machine], machine))
    hosts = [*beside, *(m for m in room.site.machines_for("ps") if m not in dict(workers))]
    for _ in range(job.ps_needed(count)):
        host = next((machine for machine in hosts if room.fits(machine, job.ps)), None)
        if host is None:
            room.release(job, Allocation(workers, tuple(sorted(servers.items()))))
            return NOTHING
        room.take(host, job.ps, 1)
        servers[host] = servers.get(host, 0) + 1
    return Allocation(workers, tuple(sorted(servers.items())))
