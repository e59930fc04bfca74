"""Policies side by side on elastic jobs, OASiS and recourse among them, beside a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

import oasis
from experiments.evaluation.comparison import (
    SLOT_SECONDS,
    Comparison,
    measured,
    until_interrupted,
)
from experiments.evaluation.live import planning_policy
from experiments.evaluation.policies import OASIS, POLICIES, RECOURSE, entry_of
from oasis.model import rounding
from oasis.model.errors import InputError, InstanceError
from oasis.model.forms import ANY_MACHINE, Form
from oasis.model.groups import TaskGroup
from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray
from oasis.model.utility import Utility
from oasis.online.prices import PriceBounds
from oasis.scheduling.book import NEVER_FITS, EmptyCluster
from oasis.scheduling.job import NOTHING, Allocation, Demand, LimitedDemand, PolicyJob, admits
from oasis.scheduling.placement import BestFit, Room
from oasis.scheduling.policy import Plan, Policy, View
from oasis.scheduling.policy_check import parameters_of, report_of
from oasis.scheduling.site import Machine, Site, cluster_of, policy_job
from oasis.scheduling.view import Books
from oasis.simulator import Outcome, Workload, replay
from oasis.simulator.elastic import FORMAT
from offline.elastic_bound import ElasticBound, best_rates, elastic_bound, slots_needed

# How many times as far as a plan reaches nothing may run before no more is expected: by then every
# job that waits has been given up, or was tried once more with what it is still worth.
WAITED = 3


@dataclass(frozen=True, slots=True)
class BySlots:
    """A utility by the delay in seconds, as one by the delay in slots.

    A job that ends in slot d after that of its arrival is counted at the end of that slot.
    """

    seconds: Utility
    length: float  # of a slot, seconds
    first: float  # seconds from the true arrival to the end of the slot in which the job arrives

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        return self.seconds(self._delays(delay))

    def log_value(self, delay: npt.ArrayLike) -> FloatArray:
        """Natural logarithm of the utility, -inf where it is 0."""
        return self.seconds.log_value(self._delays(delay))

    def _delays(self, delay: npt.ArrayLike) -> FloatArray:
        found: FloatArray = np.asarray(delay, dtype=float) * self.length + self.first
        return found


@dataclass(slots=True, eq=False)
class Translated:
    """A job in the model's terms, on the books of a scheduler in slots."""

    admitted: ClassVar = False  # no job arrives twice
    kept_until: ClassVar = 0.0
    real: PolicyJob
    job: PolicyJob  # on the site of the model, times in slots; its `source` is the model's job
    ways: tuple[int, ...]  # forms of the elastic job that those of the model's stand for, in order
    speeds: tuple[float, ...]  # worker-seconds that count as one of its worker-slots, by form
    allocation: Allocation = NOTHING  # as planned for the slot that ended
    form: int = 0  # in which it was to run last,
    has_form: bool = False  # if it ever was
    left: float = 0.0  # worker-slots, at the beginning of the slot
    held: float = 0.0  # for so long it held machines

    @property
    def seen(self) -> PolicyJob:
        """The job as the scheduler sees it."""
        return self.job

    @property
    def forms(self) -> tuple[PolicyJob, ...]:
        """The forms that it may be in."""
        return self.job.forms

    @property
    def running(self) -> PolicyJob:
        """The elastic job in the form in which it runs, or is to."""
        return self.real.in_form(self.ways[self.form])

    def look(self, view: View) -> None:
        """Note how far the elastic job is."""
        self.left = view.remaining(self.running) / self.speeds[self.form]
        self.held = view.attained(self.real)

    def remaining_at(self, now: float) -> float:
        """Worker-slots left."""
        return self.left

    def held_at(self, now: float) -> float:
        """Time for which it held machines."""
        return self.held


class ElasticModel:
    """The translation of one elastic workload; `InstanceError` if a job has no utility.

    Machines: all of them host workers, none parameter servers. A worker reserves its own demand and
    as much of the parameter servers' as falls to each worker where that is most, so that whatever
    the model plans, they find room beside the workers. Parameter servers are left out where no
    machine admits both and has room for a worker with its part of them.

    Jobs: a slot of one worker is one worker-slot, whatever the other workers are, so that speed is
    linear in them. It is counted as what one of the workers that the job asks for does (of the most
    where it asks for none), at the best speed: fewer do more, more do less than the model thinks.
    The fewest workers, locality and the costs of changes are unknown to the model. Forms are those
    that fit the empty cluster; a job keeps the form in which it begins even if it may switch.

    Utility: by the delay to the end of the slot of completion.
    """

    def __init__(self, made: Workload, slot_seconds: float) -> None:
        if not slot_seconds > 0:
            raise InputError("slot_seconds", "expected a time > 0", slot_seconds)
        for k, job in enumerate(made.jobs):
            if not job.has_utility:
                expected = (
                    "expected a utility: oasis and recourse weigh jobs by what they are worth"
                )
                raise InstanceError(f"jobs[{k}].utility", expected)
        self.made, self.length = made, float(slot_seconds)
        real = made.site
        # On the real machines: the model splits parameter servers, which machines cannot.
        self._empty = EmptyCluster(real, BestFit)
        machines = tuple(
            Machine(
                machine.id,
                machine.amounts,
                frozenset({TaskGroup.WORKER}),
                machine.grid,
                labels=machine.labels,
            )
            for machine in real.machines
        )
        self.site = Site(real.resources, machines, self.length, slotted=True)

    def jobs(self) -> list[Job]:
        """The model's jobs, each arriving in the first slot that begins after it came."""
        return [
            self._source(job, math.ceil(job.arrival / self.length), self.fitting(job) or (0,))
            for job in self.made.jobs
        ]

    @cached_property
    def lookahead(self) -> int:
        """Slots that a plan must reach ahead: enough for all the work, and for each job alone.

        A job that needs more, on all machines, would never be planned and would wait for ever.
        """
        longest = slots_needed(self.made, self.length)
        for job in self.made.jobs:
            if ways := self.fitting(job):
                alone = []
                for way, form in zip(ways, self._source(job, 0, ways).in_forms, strict=True):
                    amounts = as_array(form.worker, self.site.resources)
                    held = self._held(amounts, form.chunks, job.in_forms[way].worker)
                    alone.append(-(-form.work(self.length) // held))
                longest = max(longest, min(alone))
        return longest

    def translate(self, job: PolicyJob, slot: int) -> Translated:
        """`job` as it arrives in `slot`."""
        ways = self.fitting(job) or (0,)
        seen = policy_job(self._source(job, slot, ways), self.site, job.index)
        speeds = tuple(self._speed(job.in_forms[way]) for way in ways)
        return Translated(job, seen, ways, speeds)

    def _source(self, job: PolicyJob, slot: int, ways: tuple[int, ...]) -> Job:
        """The model's job, in these forms."""
        forms = [self._form(job.in_forms[way]) for way in ways]
        return Job(
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

    def fitting(self, job: PolicyJob) -> tuple[int, ...]:
        """The forms of `job` in which its fewest tasks fit the empty cluster."""
        each = enumerate(job.in_forms)
        return tuple(k for k, form in each if self._empty.fewest(form) is not None)

    def _speed(self, job: PolicyJob) -> float:
        """Worker-seconds of a job of one form in a worker-slot."""
        asked = job.max_workers if job.initial_workers is None else job.initial_workers
        return best_rates(self.made, job)[asked] / asked * self.length

    def _form(self, job: PolicyJob) -> dict[str, Any]:
        """The model of one form."""
        asked = job.worker.requires if isinstance(job.worker, LimitedDemand) else ANY_MACHINE
        return {
            "chunks": job.max_workers,
            "minibatch_time": job.work / self._speed(job) / job.max_workers,
            "worker": self._demand(job),
            "requires": asked,
        }

    def _demand(self, job: PolicyJob) -> Mapping[str, float]:
        counts = range(job.min_workers, job.max_workers + 1)
        # The largest number per worker: then parameter servers fit beside any number of workers.
        servers = max(job.ps_needed(workers) / workers for workers in counts)
        alone, both = np.zeros((2, len(self.site.resources)))
        for resource, amount in job.worker:
            alone[resource] = both[resource] = amount / self.site.grid
        for resource, amount in job.ps:
            both[resource] += servers * amount / self.site.grid
        amounts = both if self._held(both, 1, job.worker, job.ps) else alone
        return {n: float(a) for n, a in zip(self.site.resources, amounts, strict=True) if a}

    def _held(self, amounts: FloatArray, most: int, *demands: Demand) -> int:
        """Units of `amounts`, at most `most`, that the machines hold which admit all `demands`."""
        there = [
            machine.amounts
            for k, machine in enumerate(self.site.machines)
            if all(admits(demand, k) for demand in demands)
        ]
        rows = np.array(there).reshape(len(there), len(amounts))
        return min(most, int(rounding.units(rows, amounts, most).sum()))


class Slotted:
    """A scheduler in slots as a policy of elastic jobs in continuous time.

    It is asked at the beginning of each slot alone: jobs that came since the last one wait for it,
    and what a job leaves that ends within a slot stays idle to the end of the slot. Parameter
    servers go to the machine with most of the job's workers that has room for them. A job whose
    parameter servers find no room, or that is planned with fewer workers than it works with, takes
    what the others leave, by best fit, its fewest workers at least; if it finds no room it holds
    nothing in that slot. The scheduler plans anew what was not done.
    """

    slotted = False
    told_remaining = True
    knows_forms = True

    def __init__(self, policy: Policy, model: ElasticModel) -> None:
        self.name, self.model, self._policy = policy.name, model, policy
        self.site, self.closing = model.site, frozenset[int]()  # with its jobs, books for a `View`

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {**self._policy.parameters, "slot_seconds": self.model.length}

    def reset(self, site: Site) -> None:
        self._real = site
        self._policy.reset(self.site)
        self.jobs: dict[int, Translated] = {}
        self.down: Set[int] = frozenset()
        self._new: list[PolicyJob] = []
        self._slot = self._idle = 0  # the next one, and how many in a row nothing ran in
        self._told = self._view()

    def _view(self) -> View:
        """A view of the next slot, in which nothing has happened yet."""
        self.now = float(self._slot)
        return View(cast(Books, self), self.name, told_remaining=True)

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._note(view)
        # A wake-up at a boundary may come a rounding error late, and still means that boundary.
        self._slot = max(self._slot, math.ceil(view.now / self.model.length - 1e-9))
        if view.now >= self._slot * self.model.length:
            self._enter(plan)
            for known in self.jobs.values():
                known.look(view)
            self._told.now, self.down = float(self._slot), view.down()
            answer = self._policy.decide(self._told)
            for index, reason in answer.rejected.items():
                plan.rejected[index] = reason
                del self.jobs[index]
            for index, wanted in answer.changes.items():
                known = self.jobs[index]
                known.allocation = wanted
                if wanted.workers:
                    known.form, known.has_form = wanted.form, True
            self._carry_out(view, plan)
            held = (plan.changes.get(k, view.allocation(job.real)) for k, job in self.jobs.items())
            self._idle = 0 if any(found.workers for found in held) else self._idle + 1
            self._slot += 1
            self._told = self._view()
        # Without a job there is nothing to plan, and where nothing has run for longer than a plan
        # reaches only an event helps: slots would be counted for ever.
        if (self.jobs or self._new) and self._idle <= WAITED * self.model.lookahead:
            plan.wake_at = self._slot * self.model.length
        return plan

    def _note(self, view: View) -> None:
        """Collect events for the beginning of the next slot."""
        if view.happened:
            self._idle = 0
        left = [self.jobs.pop(job.index, None) for job in view.finished]
        self._told.finished += [known.job for known in left if known is not None]
        self._new += view.arrived
        self._told.lost += view.lost
        self._told.returned += view.returned

    def _enter(self, plan: Plan) -> None:
        for job in self._new:
            if not self.model.fitting(job):  # the model, which splits servers, might not see it
                plan.rejected[job.index] = job.unmet or NEVER_FITS
                continue
            self.jobs[job.index] = self.model.translate(job, self._slot)
            self._told.arrived.append(self.jobs[job.index].job)
        self._new = []

    def _carry_out(self, view: View, plan: Plan) -> None:
        """Let each job hold what is planned; those that keep their places come first."""
        room = Room(self._real, view.capacity(), view.down())
        before = {index: view.allocation(known.real) for index, known in self.jobs.items()}
        kept = {
            index
            for index, known in self.jobs.items()
            if known.allocation.workers and before[index].workers == known.allocation.workers
        }
        found, rest = dict[int, Allocation](), []
        for index in sorted(self.jobs, key=lambda index: (index not in kept, index)):
            known = self.jobs[index]
            if index in kept and room.hold(known.running, before[index]):
                continue
            found[index] = _with_servers(room, known.running, known.allocation.workers)
            if known.allocation.workers and not found[index].workers:
                rest.append(index)
        # These come last: what the scheduler has planned for the others must not be in their way.
        for index in rest:
            known = self.jobs[index]
            found[index] = _somewhere(room, known.running, known.allocation.worker_count)
        for index, placed in found.items():
            known = self.jobs[index]
            holds = placed._replace(form=known.ways[known.form]) if placed.workers else placed
            if holds != before[index]:
                plan.changes[index] = holds


def _somewhere(room: Room, job: PolicyJob, workers: int) -> Allocation:
    """Place `workers`, or the fewest, by best fit; nothing if they do not fit."""
    # A smaller gang now is better than the planned one in a later slot.
    for count in dict.fromkeys((max(workers, job.min_workers), job.min_workers)):
        found = BestFit().place(room, job, count, job.ps_needed(count))
        if found is not None:
            return found
    return NOTHING


def _with_servers(room: Room, job: PolicyJob, workers: tuple[tuple[int, int], ...]) -> Allocation:
    """Add the parameter servers that the planned workers need; nothing if they do not fit."""
    count = sum(tasks for _, tasks in workers)
    if not job.min_workers <= count <= job.max_workers:
        return NOTHING
    if not room.hold(job, Allocation(workers)):
        return NOTHING
    servers: dict[int, int] = {}
    # Of machines with equally many workers the first one is taken, so that runs repeat.
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


def elastic_policy(
    name: str, options: Mapping[str, Any], made: Workload, slot_seconds: float = SLOT_SECONDS
) -> Policy:
    """A fresh policy for `made`, with the options that differ from their defaults.

    OASiS gets the U and L of all jobs of the workload, as the paper assumes them known; it and
    recourse plan in slots (`Slotted`), and see the jobs as `ElasticModel` translates them.
    `InputError` for an option that has no meaning here.
    """
    if name not in (OASIS, RECOURSE):
        return entry_of(name).make(None, options)
    model = ElasticModel(made, slot_seconds)
    slots, bounds = model.lookahead, None
    if name == OASIS:
        whole = POLICIES[OASIS].resolve(options)
        for option in ("granularity", "bounds"):
            if option in options:
                raise InputError(f"oasis.{option}", "expected none on elastic jobs")
        steering = {key: whole[key] for key in ("min_utility_fraction", "normalize")}
        bounds = PriceBounds.from_jobs(model.jobs(), cluster_of(model.site), slots, **steering)
    return Slotted(planning_policy(name, options, slots, bounds=bounds), model)


def utility_of(made: Workload, outcome: Outcome) -> float | None:
    """Total utility of the finished jobs; None if some job has no utility."""
    if not all(job.has_utility for job in made.jobs):
        return None
    worth = {job.id: job.utility for job in made.jobs}
    ended = ((worth[job.job_id], job.completion) for job in outcome.jobs)
    return math.fsum(float(of(delay)) for of, delay in ended if delay is not None)


def elastic_figures(made: Workload, outcome: Outcome, bound: ElasticBound | None) -> dict[str, Any]:
    """The figures of one run by which policies are compared; measured times come last.

    Restarts are all changes of a running or paused job: resumed, resized, moved.
    """
    jobs, utility = outcome.jobs, utility_of(made, outcome)
    most = 0.0 if bound is None else bound.value  # 0: nothing can be earned
    changed = measured(outcome, "restarts", "resizes", "migrations")
    return {
        "total_utility": utility,
        "of_bound": None if utility is None or not most else utility / most,
        "admitted": sum(job.refusal is None or job.start is not None for job in jobs),
        **measured(outcome, "finished", "unfinished", "mean_completion", "p95_completion"),
        **measured(outcome, "mean_waiting", "mean_running", "mean_overhead"),
        "restarts": sum(changed.values()),
        **measured(outcome, "makespan", "wasted_share", "use"),
        **measured(outcome, "policy_calls", "policy_seconds", "simulator_seconds"),
    }


def compare_elastic(
    made: Workload,
    policies: Mapping[str, Mapping[str, Any]],
    *,
    slot_seconds: float = SLOT_SECONDS,
    on_settled: Callable[[], None] | None = None,
    keep_interrupted: bool = False,
) -> Comparison:
    """Run each policy on the same elastic jobs; its options by its name.

    `slot_seconds` is the length of the slots of OASiS and recourse, and of the bound. `on_settled`
    is called for each job that finished or was rejected. Ctrl-C keeps the policies that are done if
    `keep_interrupted`, as `until_interrupted` does.
    """
    makers = {
        name: elastic_policy(name, given, made, slot_seconds) for name, given in policies.items()
    }
    valued = all(job.has_utility for job in made.jobs)
    bound = elastic_bound(made, slot_seconds) if valued else None
    told = None if on_settled is None else lambda _: on_settled()

    def run(name: str) -> dict[str, Any]:
        policy = makers[name]
        outcome = replay(made, policy, on_settled=told)
        parameters = {**policies[name], **parameters_of(policy)}
        said = entry_of(name).recorded(policies[name], parameters) | {"report": report_of(policy)}
        return elastic_figures(made, outcome, bound) | said

    rows, missing = until_interrupted(makers, run, keep=keep_interrupted)
    about = {
        "jobs": len(made.jobs),
        "format": FORMAT,
        "machines": len(made.site.machines),
        "slot_seconds": slot_seconds,
        "bound": None if bound is None else bound.value,
        "version": oasis.__version__,
        **missing,
    }
    return Comparison("compare", rows, about)
