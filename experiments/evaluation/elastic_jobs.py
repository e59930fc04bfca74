"""All policies on elastic jobs: OASiS and recourse in slots of the model; and the comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import oasis
from experiments.evaluation.comparison import SLOT_SECONDS, Comparison, measured, replay_each
from experiments.evaluation.live import planning_policy
from experiments.evaluation.policies import OASIS, POLICIES, RECOURSE, entry_of
from oasis.model.errors import InputError, InstanceError
from oasis.model.forms import Form
from oasis.model.groups import TaskGroup
from oasis.model.job import Job
from oasis.model.rounding import FloatArray, ceil_number
from oasis.model.utility import Utility
from oasis.online.prices import PriceBounds
from oasis.online.rolling import source_of
from oasis.scheduling.book import NEVER_FITS, EmptyCluster
from oasis.scheduling.job import Allocation, LimitedDemand, PolicyJob, admits
from oasis.scheduling.placement import BestFit
from oasis.scheduling.policy import Policy
from oasis.scheduling.site import FINE, Site, cluster_of, policy_job
from oasis.simulator import ChangeCosts, JobTimes, Load, Outcome, Speed, Workload, replay
from oasis.simulator.elastic import FORMAT
from oasis.simulator.engine import Settled
from offline.elastic_bound import ElasticBound, best_rates, elastic_bound, slots_needed

NOT_HERE = ("granularity", "bounds", "prices", "trust")  # options of OASiS


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


@dataclass(frozen=True, slots=True)
class ModelSpeed:
    """The true speed of elastic jobs, in worker-slots of the model per slot."""

    speed: Speed
    # By form of a job in slots: the form of the elastic job, and the speed of a worker that counts
    # as one.
    forms: Mapping[PolicyJob, tuple[PolicyJob, float]]

    @property
    def coupled(self) -> bool:
        return self.speed.coupled

    def rate(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        form, pace = self.forms[job]
        # Of machines with equally many workers the first one is taken, so that runs repeat.
        machine, _ = max(allocation.workers, key=lambda one: one[1])
        needed = form.ps_needed(allocation.worker_count)
        placed = allocation._replace(ps=((machine, needed),) if needed else ())
        return self.speed.rate(form, placed, load) / pace


class InSlots:
    """Elastic jobs and their machines in the slotted model, in which OASiS and recourse plan.

    A worker-slot is what one of the workers that a job asks for does in a slot, at the best speed.
    Workers reserve their part of the parameter servers too, which run beside them.
    """

    def __init__(self, elastic: Workload, slot_seconds: float) -> None:
        if not slot_seconds > 0:
            raise InputError("slot_seconds", "expected a time > 0", slot_seconds)
        expected = "expected a utility: oasis and recourse weigh jobs by what they are worth"
        for k in (k for k, job in enumerate(elastic.jobs) if not job.has_utility):
            raise InstanceError(f"jobs[{k}].utility", expected)
        self.elastic, self.length = elastic, float(slot_seconds)
        workers = frozenset({TaskGroup.WORKER})
        # On a fine grid: a worker reserves a part of a parameter server.
        machines = tuple(replace(one, hosts=workers, grid=FINE) for one in elastic.site.machines)
        self.site = Site(elastic.site.resources, machines, self.length, slotted=True)
        # On the real machines: the model splits parameter servers, which machines cannot.
        self._empty = EmptyCluster(elastic.site, BestFit)
        self._true: dict[PolicyJob, tuple[PolicyJob, float]] = {}
        jobs = tuple(filter(None, map(self._translated, elastic.jobs)))
        costs: Iterable[Any] = (cost and cost / self.length for cost in astuple(elastic.costs))
        speed = ModelSpeed(elastic.speed, self._true)
        self.workload = Workload(self.site, jobs, speed=speed, costs=ChangeCosts(*costs))

    def _translated(self, job: PolicyJob) -> PolicyJob | None:
        """Return `job` in the model, in those of its forms that fit; None if none does."""
        shown = list(filter(self._fits, job.in_forms))
        paces = list(map(self._pace, shown))
        forms = [self._form(form, pace) for form, pace in zip(shown, paces, strict=True)]
        if not forms:
            return None
        slot = math.ceil(job.arrival / self.length)
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
        seen = []
        for form, real, pace in zip(source.in_forms, shown, paces, strict=True):
            cores = real.worker_cpu + _servers_each(real) * real.ps_cpu
            seen.append(replace(policy_job(form, self.site, job.index), worker_cpu=cores))
            timed = replace(real, step_time=real.step_time / self.length)
            self._true[seen[-1]] = timed, pace
        if len(seen) == 1:
            return seen[0]
        return replace(seen[0], source=source, forms=tuple(seen))

    def _fits(self, job: PolicyJob) -> bool:
        """Return whether a job of one form can run, with its parameter servers beside workers."""
        needs = job.ps_needed(job.max_workers) > 0
        return self._empty.fewest(job) is not None and any(
            admits(job.worker, k) and (not needs or admits(job.ps, k))
            for k in range(len(self.site.machines))
        )

    def _pace(self, job: PolicyJob) -> float:
        """Speed of a worker when the job has its requested workers."""
        requested = job.max_workers if job.initial_workers is None else job.initial_workers
        return best_rates(self.elastic, job)[requested] / requested

    def _form(self, job: PolicyJob, pace: float) -> dict[str, Any]:
        """Return the arguments of a `Form` of the model for a job of one form."""
        worker, servers = np.zeros(len(self.site.resources)), _servers_each(job)
        requires: dict[str, tuple[str, ...]] = {}
        for demand, count in ((job.worker, 1.0), (job.ps, servers)):
            for resource, amount in demand if count else ():
                worker[resource] += count * amount / self.elastic.site.grid
            if count and isinstance(demand, LimitedDemand):
                for label, values in demand.requires.items():
                    known = requires.get(label, values)
                    requires[label] = tuple(value for value in values if value in known)
        return {
            "chunks": job.max_workers,
            "min_workers": job.min_workers,
            "minibatch_time": job.work / (pace * self.length) / job.max_workers,
            "worker": {n: float(a) for n, a in zip(self.site.resources, worker, strict=True) if a},
            "requires": requires,
        }

    @property
    def lookahead(self) -> int:
        """Slots that are enough for all the work, and for each job alone."""
        slots, empty = slots_needed(self.elastic, self.length), EmptyCluster(self.site)
        for job in self.workload.jobs:
            counts = [(ceil_number(one.work), empty.most_workers(one)) for one in job.in_forms]
            slots = max(slots, min((math.ceil(w / n) for w, n in counts if n), default=0))
        return slots

    def policy(self, name: str, options: Mapping[str, Any]) -> Policy:
        """Make OASiS, with U and L of all jobs as the paper assumes them known, or recourse."""
        bounds = None
        if name == OASIS:
            whole = POLICIES[OASIS].resolve(options)
            for option in filter(options.__contains__, NOT_HERE):
                raise InputError(f"oasis.{option}", "expected none on elastic jobs")
            steering = {key: whole[key] for key in ("min_utility_fraction", "normalize")}
            jobs = [source_of(job, name) for job in self.workload.jobs]
            bounds = PriceBounds.from_jobs(jobs, cluster_of(self.site), self.lookahead, **steering)
        return planning_policy(name, options, self.lookahead, bounds=bounds)

    def in_seconds(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a run of `workload` in seconds from the true arrivals."""
        known = {times.job_id: times for times in outcome.jobs}
        jobs = [self._times(job, known.get(job.id)) for job in self.elastic.jobs]
        return replace(
            outcome,
            jobs=tuple(jobs),
            timeline=tuple((time * self.length, used) for time, used in outcome.timeline),
            until=outcome.until * self.length,
            saving=tuple(busy * self.length for busy in outcome.saving),
        )

    def _times(self, job: PolicyJob, times: JobTimes | None) -> JobTimes:
        """Return the times of a job in seconds; those of one that never fits if it was left out."""
        if times is None:
            refusal = job.unmet or NEVER_FITS
            return JobTimes(job.id, job.arrival, None, None, 0.0, 0.0, 0.0, refusal)
        known: dict[str, Any] = {name: getattr(times, name) for name in SCALED}
        scaled = {name: time and time * self.length for name, time in known.items()}
        # It waited for the slot in which it was decided on, too.
        scaled["waiting"] += times.arrival * self.length - job.arrival
        return replace(times, arrival=job.arrival, **scaled)


def _servers_each(job: PolicyJob) -> float:
    """Return the parameter servers per worker that fit beside any number of workers."""
    return max(job.ps_needed(workers) / workers for workers in job.worker_counts)


SCALED = ("start", "end", "waiting", "running", "overhead", "stalled", "lost_work", "work_done")


def elastic_run(
    name: str, options: Mapping[str, Any], workload: Workload, slot_seconds: float = SLOT_SECONDS
) -> tuple[Policy, Callable[..., Outcome]]:
    """Make a fresh policy; return it and what runs it on `workload`: with `on_settled` or not."""
    if name not in (OASIS, RECOURSE):
        policy = entry_of(name).make(None, options)
        return policy, partial(replay, workload, policy)
    slots = InSlots(workload, slot_seconds)
    planner = slots.policy(name, options)

    def run(on_settled: Settled | None = None) -> Outcome:
        outcome = slots.in_seconds(replay(slots.workload, planner, on_settled=on_settled))
        parameters = {**options, **outcome.parameters, "slot_seconds": slots.length}
        return replace(outcome, parameters=parameters)

    return planner, run


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
        make=lambda name, options: elastic_run(name, options, workload, slot_seconds),
        more=lambda outcome: elastic_figures(workload, outcome, bound),
        on_settled=on_settled,
    )
