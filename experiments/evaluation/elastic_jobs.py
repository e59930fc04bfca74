"""Policies on elastic jobs: OASiS and recourse, which know only the model, and the comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import oasis
from experiments.evaluation.comparison import SLOT_SECONDS, Comparison, measured, replay_each
from experiments.evaluation.live import planning_policy
from experiments.evaluation.policies import OASIS, POLICIES, RECOURSE, entry_of
from oasis.model.errors import InputError, InstanceError
from oasis.model.forms import ANY_MACHINE, Form
from oasis.model.groups import TaskGroup
from oasis.model.job import Job
from oasis.model.rounding import FloatArray, ceil_number
from oasis.model.utility import Utility
from oasis.online.prices import PriceBounds
from oasis.online.rolling import source_of
from oasis.scheduling.book import NEVER_FITS, EmptyCluster
from oasis.scheduling.job import (
    NOTHING,
    Allocation,
    LimitedDemand,
    PolicyJob,
    Tasks,
    admits,
)
from oasis.scheduling.placement import BestFit, Room, fill
from oasis.scheduling.policy import Plan, Policy, View
from oasis.scheduling.site import FINE, Site, cluster_of, policy_job
from oasis.simulator import Outcome, Workload
from oasis.simulator.elastic import FORMAT
from oasis.simulator.state import JobProgress, State
from offline.elastic_bound import ElasticBound, best_rates, elastic_bound, slots_needed

NOT_HERE = ("granularity", "bounds", "prices", "trust")  # options of OASiS
# How many times as far as a plan reaches nothing may run before no more is expected: by then every
# job that waits has been given up, or was tried once more with what it is still worth.
WAITED = 3


@dataclass(frozen=True, slots=True)
class BySlots:
    """Utility as a function of the delay in slots; a job completes at the end of its last slot."""

    seconds: Utility
    length: float  # of a slot, seconds
    first: float  # seconds from the true arrival to the end of the slot in which the job arrives

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        return self.seconds(np.asarray(delay, dtype=float) * self.length + self.first)

    def log_value(self, delay: npt.ArrayLike) -> FloatArray:
        """Natural logarithm of the utility, -inf where it is 0."""
        return self.seconds.log_value(np.asarray(delay, dtype=float) * self.length + self.first)


class Translated(JobProgress):
    """Progress of an elastic job as a job of the slotted model; `source` is the model's job."""

    def __init__(
        self, real: PolicyJob, seen: PolicyJob, ways: tuple[int, ...], speeds: tuple[float, ...]
    ) -> None:
        super().__init__(seen)
        self.real = real
        self.ways = ways  # forms of the elastic job that those of the model's stand for, in order
        self.speeds = speeds  # worker-seconds that count as one of its worker-slots, by form

    @property
    def shown(self) -> PolicyJob:
        """The elastic job in the form in which it runs, or is to run."""
        return self.real.in_form(self.ways[self.form])

    def look(self, view: View) -> None:
        """Update remaining work, in worker-slots, and running time from the elastic job."""
        self.remaining = view.remaining(self.shown) / self.speeds[self.form]
        self.running = view.attained(self.real)


class Slotted:
    """OASiS or recourse, which plan by the slotted model, as a policy for elastic jobs."""

    # A worker-slot is what one of the workers that a job asks for does in a slot, at the best
    # speed. Workers reserve their part of the parameter servers too, so that what the model plans
    # finds room in whole machines; where it does not, the job takes what the others leave.

    slotted = False
    told_remaining = True
    knows_forms = True

    def __init__(
        self, name: str, options: Mapping[str, Any], workload: Workload, slot_seconds: float
    ) -> None:
        if not slot_seconds > 0:
            raise InputError("slot_seconds", "expected a time > 0", slot_seconds)
        expected = "expected a utility: oasis and recourse weigh jobs by what they are worth"
        for k in (k for k, job in enumerate(workload.jobs) if not job.has_utility):
            raise InstanceError(f"jobs[{k}].utility", expected)
        self.name, self.workload, self.length = name, workload, float(slot_seconds)
        self._options = options
        # On the real machines: the model splits parameter servers, which machines cannot.
        self._empty = EmptyCluster(workload.site, BestFit)
        workers = frozenset({TaskGroup.WORKER})
        # On a fine grid: a worker reserves a part of a parameter server.
        machines = tuple(replace(one, hosts=workers, grid=FINE) for one in workload.site.machines)
        self.site = Site(workload.site.resources, machines, self.length, slotted=True)
        jobs = [self.translate(job, math.ceil(job.arrival / self.length)) for job in workload.jobs]
        # Enough for all the work, and for each job alone, which would else be never planned.
        self.lookahead = slots_needed(workload, self.length)
        empty = EmptyCluster(self.site)
        for forms in (known.seen.in_forms for known in jobs if known.ways):
            slots = (math.ceil(ceil_number(one.work) / empty.most_workers(one)) for one in forms)
            self.lookahead = max(self.lookahead, min(slots))
        bounds = None
        if name == OASIS:
            whole = POLICIES[OASIS].resolve(options)
            for option in filter(options.__contains__, NOT_HERE):
                raise InputError(f"oasis.{option}", "expected none on elastic jobs")
            steering = {key: whole[key] for key in ("min_utility_fraction", "normalize")}
            sources = [source_of(job.seen, name) for job in jobs]
            cluster = cluster_of(self.site)
            # Of all jobs, as the paper assumes U and L known.
            bounds = PriceBounds.from_jobs(sources, cluster, self.lookahead, **steering)
        self._policy = planning_policy(name, options, self.lookahead, bounds=bounds)

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {**self._options, **self._policy.parameters, "slot_seconds": self.length}

    # -- the jobs in the model's terms -------------------------------------------------------------

    def translate(self, job: PolicyJob, slot: int) -> Translated:
        """Translate `job`, arriving in `slot`; `ways` is empty if the job can never fit."""
        each = enumerate(job.in_forms)
        ways = tuple(k for k, form in each if self._empty.fewest(form) is not None)
        shown = [job.in_forms[k] for k in ways or (0,)]
        speeds = tuple(map(self._speed, shown))
        forms = [self._form(form, speed) for form, speed in zip(shown, speeds, strict=True)]
        source = Job(
            id=job.id,
            arrival=slot,
            epochs=1,
            minibatches=1,
            gradient_mb=0.0,
            ps={},
            utility=BySlots(job.utility, self.length, (slot + 1) * self.length - job.arrival),
            forms=tuple(Form(**form) for form in forms) if len(forms) > 1 else (),
            **forms[0],
        )
        return Translated(job, policy_job(source, self.site, job.index), ways, speeds)

    def _speed(self, job: PolicyJob) -> float:
        """Worker-seconds that a worker does in a slot when the job has its requested workers."""
        requested = job.max_workers if job.initial_workers is None else job.initial_workers
        return best_rates(self.workload, job)[requested] / requested * self.length

    def _form(self, job: PolicyJob, speed: float) -> dict[str, Any]:
        """Return the arguments of a `Form` of the model for a job of one form."""
        # The largest number per worker: then parameter servers fit beside any number of workers.
        servers = max(job.ps_needed(workers) / workers for workers in job.worker_counts)
        alone, both = np.zeros((2, len(self.site.resources)))
        for resource, amount in job.worker:
            alone[resource] = both[resource] = amount / self.workload.site.grid
        for resource, amount in job.ps:
            both[resource] += servers * amount / self.workload.site.grid
        fit_together = any(
            admits(job.worker, k) and admits(job.ps, k) and (both * FINE <= one.capacity).all()
            for k, one in enumerate(self.site.machines)
        )
        amounts = both if fit_together else alone
        required = job.worker.requires if isinstance(job.worker, LimitedDemand) else ANY_MACHINE
        return {
            "chunks": job.max_workers,
            "minibatch_time": job.work / speed / job.max_workers,
            "worker": {n: float(a) for n, a in zip(self.site.resources, amounts, strict=True) if a},
            "requires": required,
        }

    # -- its slots in real time --------------------------------------------------------------------

    def reset(self, site: Site) -> None:
        self._policy.reset(self.site)
        self._books, self._jobs = State(self.site), dict[int, Translated]()
        self._books.jobs = cast(dict[int, JobProgress], self._jobs)
        self._told = View(self._books, self.name, told_remaining=True)  # of the next slot
        self._new: list[PolicyJob] = []
        self._slot = self._idle = 0  # the next one, and how many in a row nothing ran in

    def decide(self, view: View) -> Plan:
        plan, news = Plan(), self._told
        # Events are collected for the beginning of the next slot.
        if view.happened:
            self._idle = 0
        for job in view.finished:
            self._jobs.pop(job.index, None)
        news.finished += view.finished
        news.lost += view.lost
        news.returned += view.returned
        self._new += view.arrived
        # A wake-up at a boundary may come a rounding error late, and still means that boundary.
        self._slot = max(self._slot, math.ceil(view.now / self.length - 1e-9))
        if view.now >= self._slot * self.length:
            self._plan_slot(view, plan)
            self._slot += 1
            self._told = View(self._books, self.name, told_remaining=True)
        # Without a job there is nothing to plan, and where nothing has run for longer than a plan
        # reaches only an event helps: slots would be counted for ever.
        if (self._jobs or self._new) and self._idle <= WAITED * self.lookahead:
            plan.wake_at = self._slot * self.length
        return plan

    def _plan_slot(self, view: View, plan: Plan) -> None:
        """Let the policy plan this slot from the events since the last one; extend `plan`."""
        news, jobs = self._told, self._jobs
        for job in self._new:
            translated = self.translate(job, self._slot)
            if translated.ways:
                jobs[job.index] = translated
                news.arrived.append(translated.seen)
            else:  # the model, which splits servers, might not see it
                plan.rejected[job.index] = job.unmet or NEVER_FITS
        self._new = []
        for translated in jobs.values():
            translated.look(view)
        news.now, self._books.down = float(self._slot), set(view.down())
        answer = self._policy.decide(news)
        plan.rejected |= answer.rejected
        for index in answer.rejected:
            del jobs[index]
        for index, planned in answer.changes.items():
            jobs[index].hold(news.now, planned)
            if planned.workers:
                jobs[index].form = planned.form
        holds = self._allocate(view)
        plan.changes |= {k: g for k, g in holds.items() if g != view.allocation(jobs[k].real)}
        self._idle = 0 if any(gang.workers for gang in holds.values()) else self._idle + 1

    def _allocate(self, view: View) -> dict[int, Allocation]:
        """Return each job's allocation as planned; jobs that keep theirs are placed first."""
        jobs, allocations = self._jobs, dict[int, Allocation]()
        room = Room(self.workload.site, view.capacity(), view.down())
        before = {index: view.allocation(known.real) for index, known in jobs.items()}
        staying = {
            index
            for index, known in jobs.items()
            if known.allocation.workers and before[index].workers == known.allocation.workers
        }
        for index in sorted(jobs, key=lambda index: (index not in staying, index)):
            job, workers = jobs[index].shown, jobs[index].allocation.workers
            stays = index in staying and room.hold(job, before[index])
            allocations[index] = before[index] if stays else _with_servers(room, job, workers)
        # These come last: what the scheduler has planned for the others must not be in their way.
        for index, gang in allocations.items():
            if (planned := jobs[index].allocation).workers and not gang.workers:
                allocations[index] = _place_gang(room, jobs[index].shown, planned.worker_count)
        return {
            index: gang._replace(form=jobs[index].ways[jobs[index].form]) if gang.workers else gang
            for index, gang in allocations.items()
        }


def _place_gang(room: Room, job: PolicyJob, workers: int) -> Allocation:
    """Place `workers` workers by best fit, or else the fewest allowed; or return `NOTHING`."""
    # A smaller gang now is better than the planned one in a later slot.
    for count in (job.workers_near(workers), job.worker_counts[0]):
        allocation = BestFit().place(room, job, count, job.ps_needed(count))
        if allocation is not None:
            return allocation
    return NOTHING


def _with_servers(room: Room, job: PolicyJob, workers: Tasks) -> Allocation:
    """Add parameter servers to the planned workers; `NOTHING` if workers or servers do not fit."""
    counts, before = dict(workers), room.free.copy()
    count = sum(counts.values())
    if not (count in job.worker_counts and room.hold(job, Allocation(workers))):
        return NOTHING
    # Of machines with equally many workers the first one is taken, so that runs repeat.
    machines = sorted(counts, key=lambda machine: (-counts[machine], machine))
    hosts = [*machines, *(m for m in room.site.machines_for("ps") if m not in counts)]
    servers = fill(room, hosts, job.ps, job.ps_needed(count))
    if servers is None:
        room.free = before
        return NOTHING
    return Allocation(workers, servers)


def elastic_policy(
    name: str, options: Mapping[str, Any], workload: Workload, slot_seconds: float = SLOT_SECONDS
) -> Policy:
    """Make a fresh policy for `workload`; `options` are those that differ from their defaults."""
    if name in (OASIS, RECOURSE):
        return Slotted(name, options, workload, slot_seconds)
    return entry_of(name).make(None, options)


def utility_of(workload: Workload, outcome: Outcome) -> float | None:
    """Total utility of the finished jobs; None if some job has no utility."""
    if not all(job.has_utility for job in workload.jobs):
        return None
    worth = {job.id: job.utility for job in workload.jobs}
    ended = ((worth[job.job_id], job.completion) for job in outcome.jobs)
    return math.fsum(float(of(delay)) for of, delay in ended if delay is not None)


def elastic_figures(
    workload: Workload, outcome: Outcome, bound: ElasticBound | None
) -> dict[str, Any]:
    """Figures of a run: utility, share of the bound (None if unknown), admitted jobs, restarts."""
    utility, most = utility_of(workload, outcome), bound and bound.value
    return {
        "total_utility": utility,
        # Where nothing can be earned, nothing is no share of it.
        "of_bound": None if utility is None or not most else utility / most,
        "admitted": sum(job.refusal is None or job.start is not None for job in outcome.jobs),
        "wasted_share": outcome.wasted_share,
        # All changes of a running or paused job: resumed, resized, moved.
        "restarts": sum(measured(outcome, "restarts", "resizes", "migrations").values()),
    }


def compare_elastic(
    workload: Workload,
    policies: Mapping[str, Mapping[str, Any]],
    *,
    slot_seconds: float = SLOT_SECONDS,
    on_settled: Callable[[], None] | None = None,
) -> Comparison:
    """Run policies as `replay_each` does, with OASiS and recourse; add utilities and a bound."""
    valued = all(job.has_utility for job in workload.jobs)
    bound = elastic_bound(workload, slot_seconds) if valued else None
    about = {
        "format": FORMAT,
        "machines": len(workload.site.machines),
        "slot_seconds": slot_seconds,
        "bound": bound and bound.value,
        "version": oasis.__version__,
    }
    return replay_each(
        workload,
        policies,
        about,
        kind="compare",
        make=lambda name, options: elastic_policy(name, options, workload, slot_seconds),
        more=lambda outcome: elastic_figures(workload, outcome, bound),
        on_settled=on_settled,
    )
