"""A scheduler with a rolling horizon as a policy: OASiS and recourse as services run them.

The scheduler plans on a rolling horizon. The policy carries its plan out, slot by slot, and tells
it what became of it.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from oasis.model import rounding
from oasis.model.cluster import Cluster
from oasis.model.decision import Decision
from oasis.model.job import Job
from oasis.model.rest import later, rest_of
from oasis.model.schedule import COUNT, Schedule
from oasis.online.live.answers import Quote
from oasis.online.live.scheduler import LiveScheduler
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.placement import BestFit, Room
from oasis.scheduling.policy import Plan
from oasis.scheduling.site import Site, allocation_in, allocations, cluster_of


class BoundaryView(Protocol):
    """The part of a `View` that a live policy needs at the beginning of a slot."""

    @property
    def now(self) -> float: ...
    @property
    def arrived(self) -> Sequence[PolicyJob]: ...
    @property
    def finished(self) -> Sequence[PolicyJob]: ...
    @property
    def lost(self) -> Sequence[int]: ...
    @property
    def returned(self) -> Sequence[int]: ...
    def jobs(self) -> Iterable[PolicyJob]: ...
    def capacity(self) -> list[tuple[int, ...]]: ...
    def down(self) -> Set[int]: ...
    def allocation(self, job: PolicyJob) -> Allocation: ...
    def remaining(self, job: PolicyJob) -> float: ...
    def was_admitted(self, job: PolicyJob) -> bool: ...


class LivePolicy:
    """A policy that carries out the plan of a live scheduler and tells it what became of it.

    Parameters
    ----------
    name : str
        What users call the policy.
    make : callable
        Makes the scheduler for a cluster.
    reach : int
        Slots that a completion may lie ahead.
    horizon : int, optional
        Completions from this slot on are worth nothing, as in an instance.
    keeps_promises : bool
        Whether a job that the scheduler drops after it was admitted is still brought to its end,
        with what the plan leaves free (OASiS, whose decisions are irrevocable).

    Attributes
    ----------
    decisions : dict of int to Decision
        What was decided on the jobs that arrived at the last boundary.
    late : set of int
        Jobs whose promise was broken at the last boundary.
    """

    slotted = True
    told_remaining = True
    plans_in_model = True

    def __init__(
        self,
        name: str,
        make: Callable[[Cluster], LiveScheduler],
        *,
        reach: int,
        horizon: int | None = None,
        keeps_promises: bool = False,
    ) -> None:
        self.name = name
        self._make = make
        self._reach, self._horizon = reach, horizon
        self._keeps_promises = keeps_promises
        self.decisions: dict[int, Decision] = {}
        self.late: set[int] = set()
        self.withdrawn: list[str] = []  # jobs that left since the last decision

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"reach": self._reach, "horizon": self._horizon}

    def reset(self, site: Site) -> None:
        self.scheduler = self._make(cluster_of(site))
        self._site = site
        self._left: dict[str, int] = {}  # worker-slots left, as the scheduler believes
        self._index: dict[str, int] = {}
        self._overdue: list[int] = []
        self.decisions, self.late, self.withdrawn = {}, set(), []

    def withdraw(self, job: PolicyJob) -> None:
        """The owner of `job` does not want it any more."""
        self.withdrawn.append(job.id)
        self._index.pop(job.id, None)
        self._overdue = [index for index in self._overdue if index != job.index]

    def quote(self, job: Job, now: int) -> Quote:
        """What would happen to `job` if it arrived in slot `now`; nothing changes."""
        return self.scheduler.quote(self._arriving(job, now))

    def ahead(self, slots: int) -> dict[int, list[tuple[int, Allocation]]]:
        """What each job is planned to hold in the next `slots` slots, by index of the job."""
        return {
            self._index[job_id]: list(allocations(schedule, self._site).items())
            for job_id, schedule in self.scheduler.plan(slots).items()
        }

    def promised(self, job: PolicyJob) -> int | None:
        """The slot by which `job` is to be complete; None if nothing was promised."""
        return self.scheduler.promised(job.id) if job.id in self._left else None

    # -- deciding ----------------------------------------------------------------------------------

    def decide(self, view: BoundaryView) -> Plan:
        """Tell the scheduler what happened, and carry out what it plans for this slot."""
        plan = Plan()
        self.decisions, self.late = {}, set()
        now = int(view.now)
        jobs = {job.id: job for job in view.jobs()}
        arrived = {job.id for job in view.arrived}
        self._forget(view, now)
        for k in view.lost:
            self.scheduler.lose(self._site.machines[k].id)
            self._note_broken()
        for k in view.returned:
            self.scheduler.restore(self._site.machines[k].id)
            self._note_broken()
        self._follow([job for job_id, job in jobs.items() if job_id not in arrived], view, now)
        for job in view.arrived:
            self._submit(job, view, plan, now)
        self._drop(jobs, plan)
        self._carry_out(view, plan, now)
        return plan

    def _forget(self, view: BoundaryView, now: int) -> None:
        """Let time pass, and let jobs go that ended or were deleted."""
        held = {job.id: view.allocation(job).worker_count for job in view.jobs()}
        self.scheduler.advance(now)
        for job_id, left in self._left.items():
            self._left[job_id] = left - held.get(job_id, 0)
        live = set(self.scheduler.jobs)
        for job_id in self.withdrawn:
            if job_id in live:
                self.scheduler.cancel(job_id)
                self._note_broken()
            self._left.pop(job_id, None)
        self.withdrawn = []
        for job in view.finished:
            if job.id in live:
                self.scheduler.finish(job.id)
                self._note_broken()
            self._left.pop(job.id, None)
            self._index.pop(job.id, None)
            self._overdue = [index for index in self._overdue if index != job.index]

    def _follow(self, jobs: Sequence[PolicyJob], view: BoundaryView, now: int) -> None:
        """Plan again where less was done than the scheduler believes, once for all such jobs."""
        followed = [job for job in jobs if job.index not in self._overdue]
        left = {job.id: max(1, int(rounding.ceil(view.remaining(job)))) for job in followed}
        planned = set(self.scheduler.jobs)
        plan = self.scheduler.plan()
        behind = {
            job.id: left[job.id]
            for job in followed
            if job.id in planned
            and left[job.id] > max(self._left[job.id], _spare(job, plan.get(job.id)))
        }
        if behind:
            self.scheduler.revise_all(behind)
            self._note_broken()
            self._left |= behind
        for job in followed:
            if job.id not in planned:  # by its plan it is complete, but it is not
                self._come_back(job, left[job.id], now)

    def _come_back(self, job: PolicyJob, remaining: int, now: int) -> None:
        """Submit once more what is left of a job that the scheduler believes to be complete."""
        assert job.source is not None
        rest = rest_of(job.source, remaining, now, self._reach, self._horizon)
        self.late.add(job.index)
        if self.scheduler.submit(rest).admitted:
            self._left[job.id] = remaining
        else:
            self._left.pop(job.id, None)

    def _submit(self, job: PolicyJob, view: BoundaryView, plan: Plan, now: int) -> None:
        assert job.source is not None
        decision = self.scheduler.submit(self._arriving(job.source, now))
        self.decisions[job.index] = decision
        self._index[job.id] = job.index
        if decision.admitted:
            self._left[job.id] = int(rounding.ceil(job.work))
            self._note_broken()
        elif not (self._keeps_promises and view.was_admitted(job)):
            plan.rejected[job.index] = decision.reason or "rejected"
            del self._index[job.id]

    def _arriving(self, job: Job, now: int) -> Job:
        """`job` as it arrives now; what completes too late is worth nothing."""
        if job.arrival < now:
            return rest_of(job, job.work(self._site.unit_seconds), now, self._reach, self._horizon)
        if self._horizon is None:
            return job
        end = max(0, self._horizon - now)
        return replace(job, utility=later(job.utility, 0, self._reach, end))

    def _drop(self, jobs: Mapping[str, PolicyJob], plan: Plan) -> None:
        """Jobs that the scheduler gave up: they end, or are served with what is left."""
        live = set(self.scheduler.jobs)
        for job_id, job in jobs.items():
            if job_id in live or job.index in plan.rejected or job.index in self._overdue:
                continue
            self._left.pop(job_id, None)
            if self._keeps_promises:
                self._overdue.append(job.index)
                self.late.add(job.index)
            else:
                plan.rejected[job.index] = "given up: it can earn nothing any more"
                self._index.pop(job_id, None)

    def _carry_out(self, view: BoundaryView, plan: Plan, now: int) -> None:
        planned = self.scheduler.plan(1)
        room = Room(self._site, view.capacity(), view.down())
        rest = []
        for job in view.jobs():
            if job.index in plan.rejected:
                continue
            if job.index in self._overdue:
                rest.append(job)
                continue
            wanted = Allocation()
            if job.id in planned:
                wanted = allocation_in(planned[job.id], now, self._site)
            room.hold(job, wanted)
            if wanted != view.allocation(job):
                plan.changes[job.index] = wanted
        for job in rest:
            wanted = self._leftover(job, view, room)
            if wanted != view.allocation(job):
                plan.changes[job.index] = wanted

    def _leftover(self, job: PolicyJob, view: BoundaryView, room: Room) -> Allocation:
        """The largest gang that fits beside the plan of this slot."""
        held = view.allocation(job)
        if held.workers and room.hold(job, held):
            return held
        most = min(job.max_workers, max(job.min_workers, int(rounding.ceil(view.remaining(job)))))
        for workers in range(most, job.min_workers - 1, -1):
            found = BestFit().place(room, job, workers, job.ps_needed(workers))
            if found is not None:
                return found
        return Allocation()

    def _note_broken(self) -> None:
        """Note the jobs whose promise the last call of the scheduler broke."""
        for job_id in self.scheduler.last_change.broken:
            if job_id in self._index:
                self.late.add(self._index[job_id])

    # -- what lasts --------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain data from which `restore` goes on."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "scheduler")
            self.scheduler.save(path)
            saved = base64.b64encode(path.read_bytes()).decode("ascii")
        return {
            "scheduler": saved,
            "left": self._left,
            "index": self._index,
            "overdue": self._overdue,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave, on the same machines."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "scheduler")
            path.write_bytes(base64.b64decode(state["scheduler"]))
            self.scheduler = LiveScheduler.load(path)
        self._left, self._index = dict(state["left"]), dict(state["index"])
        self._overdue = list(state["overdue"])


def _spare(job: PolicyJob, schedule: Schedule | None) -> int:
    """Worker-slots that the plan of a gang still has: it may do more than its work."""
    if schedule is None or job.min_workers == 1:
        return 0
    return int(schedule.workers[:, COUNT].sum())
