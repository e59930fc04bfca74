"""The compact model (1)-(13) as a mixed-integer program, solved with HiGHS.

x_i is split over completion slots: u_i(t) = 1 says that job i completes in slot t and is worth
f_i(t - a_i), so that (1) is linear. Only variables that can be positive exist: slots from arrival
(9)(10) to the last completion worth something, servers that can hold at least one unit.

Every row is written so that the solver accepts exactly the schedules that `oasis.rounding`
accepts: (6) has integer coefficients, capacities are scaled to 1 and widened by the common
tolerance, and what comes back is verified with exact arithmetic before it is returned.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import pulp

from oasis import rounding
from oasis.errors import SolverError, VerificationError
from oasis.problem import Instance, Job
from oasis.resources import as_array
from oasis.rounding import TOLERANCE, FloatArray, IntArray
from oasis.schedule import COUNT, Schedule, placements
from oasis.solvers import Progress, Solution, Status, highs
from oasis.verify import verify
from offline.result import OfflineResult

Rows = Iterator[pulp.LpConstraint]
Placement = tuple[int, int, int]

# A bound this much (relative) below a verified schedule refutes the solver.
REFUTED = 1e-6


def solve_milp(
    instance: Instance,
    time_limit: float | None = 60.0,
    warm_start: Mapping[str, Schedule] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    presolve: bool = True,
) -> OfflineResult:
    """Solve the offline problem (1)-(13) with HiGHS.

    Parameters
    ----------
    instance : Instance
        The problem; its original utilities count, without any floor.
    time_limit : float, optional
        Seconds for building and solving the model; None is no limit.
    warm_start : mapping of str to Schedule, optional
        A feasible solution by job id; the result is never worse.
    on_progress : callable, optional
        Called about ten times a second while the solver runs.
    presolve : bool
        Whether HiGHS may simplify the model first. False is for cross-checks.

    Returns
    -------
    OfflineResult
        Proven optimal only if its status says so; else its bound still holds.

    Raises
    ------
    VerificationError
        If `warm_start` breaks a constraint.
    SolverError
        If the solver fails, returns an infeasible schedule, or claims a bound that the warm start
        or its own schedule refutes.
    """
    started = time.perf_counter()
    known = {} if warm_start is None else dict(warm_start)
    known_value = verify(instance, known)
    model = CompactModel(instance)
    solution = highs.solve(
        model.problem,
        time_limit=None if time_limit is None else time_limit - (time.perf_counter() - started),
        warm_start=model.values_of(known) if known else None,
        on_progress=on_progress,
        presolve=presolve,
    )
    schedules, objective = _verified(instance, model, solution)
    bound = min(solution.bound, model.trivial_bound)
    _refute(solution.status, bound, objective, known_value)
    if known_value > objective:
        schedules, objective = known, known_value
    return OfflineResult(
        status=solution.status,
        objective=objective,
        upper_bound=max(bound, objective),
        schedules=schedules,
        method="milp",
        seconds=time.perf_counter() - started,
        parameters={
            "time_limit": time_limit,
            "warm_start": warm_start is not None,
            "presolve": presolve,
            "solver": highs.version(),
        },
    )


def _verified(
    instance: Instance, model: CompactModel, solution: Solution
) -> tuple[dict[str, Schedule], float]:
    """Return the solver's schedules and their total utility, once they pass the exact check."""
    if solution.status not in (Status.OPTIMAL, Status.TIME_LIMIT, Status.INTERRUPTED):
        raise SolverError(f"HiGHS calls the model {solution.status}; admitting no job solves it")
    schedules = model.schedules_of(solution.values)
    try:
        return schedules, verify(instance, schedules)
    except VerificationError as error:
        raise SolverError(f"HiGHS returned an infeasible solution: {error}") from error


def _refute(status: Status, bound: float, objective: float, known: float) -> None:
    best = max(objective, known)
    if bound < best - REFUTED * abs(best):
        raise SolverError(f"HiGHS claims the bound {bound:.9g}; a schedule is worth {best:.9g}")
    if status is Status.OPTIMAL and objective < best - REFUTED * abs(best):
        raise SolverError(f"HiGHS calls {objective:.9g} optimal; a schedule is worth {best:.9g}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that can be worth something, with its variables by slot (and server).

    Parameters
    ----------
    work : int
        ceil(W_i), worker-slots.
    parallel : int
        Most workers in one slot: N_i, or what the empty cluster holds.
    utility : mapping of int to float
        f_i at each completion slot that is worth something.
    done : mapping of int to binary variable
        u_i(t): whether the job completes in slot t.
    workers, ps : mapping of (slot, server) to integer variable
        y_ih(t) and z_ik(t).
    """

    job: Job
    work: int
    parallel: int
    utility: Mapping[int, float]
    done: Mapping[int, pulp.LpVariable]
    workers: Mapping[tuple[int, int], pulp.LpVariable]
    ps: Mapping[tuple[int, int], pulp.LpVariable]

    @property
    def slots(self) -> range:
        """Slots from arrival to the last completion worth something."""
        return range(self.job.arrival, max(self.utility) + 1)

    def running(self, slot: int) -> pulp.LpAffineExpression:
        """Whether the job completes in `slot` or later."""
        return pulp.lpSum(var for t, var in self.done.items() if t >= slot)

    def workers_in(self, slot: int) -> pulp.LpAffineExpression:
        """sum_h y_ih(t)."""
        return pulp.lpSum(var for (t, _), var in self.workers.items() if t == slot)

    def ps_in(self, slot: int) -> pulp.LpAffineExpression:
        """sum_k z_ik(t)."""
        return pulp.lpSum(var for (t, _), var in self.ps.items() if t == slot)


class CompactModel:
    """The mixed-integer program of an instance, and the way between its variables and schedules.

    Attributes
    ----------
    problem : pulp.LpProblem
    trivial_bound : float
        Every candidate at its best utility.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.problem = pulp.LpProblem("oasis_offline", pulp.LpMaximize)
        made = (_candidate(instance, index, self.problem) for index in range(len(instance.jobs)))
        self.candidates = [candidate for candidate in made if candidate is not None]
        self.trivial_bound = math.fsum(max(c.utility.values()) for c in self.candidates)
        self.problem.setObjective(_total_utility(self.candidates))
        for candidate in self.candidates:
            for add in (_admission, _work, _chunks, _bandwidth, _ps_at_most_workers, _completion):
                for row in add(candidate):
                    self.problem.addConstraint(row)
        for row in (
            *_worker_capacity(instance, self.candidates),
            *_ps_capacity(instance, self.candidates),
        ):
            self.problem.addConstraint(row)

    def values_of(self, schedules: Mapping[str, Schedule]) -> dict[str, float]:
        """Values of the variables, by name, that stand for `schedules`."""
        values: dict[str, float] = {}
        for c in self.candidates:
            schedule = schedules.get(c.job.id)
            if schedule is None or schedule.completion not in c.done:
                continue
            values[c.done[schedule.completion].name] = 1.0
            for rows, variables in ((schedule.workers, c.workers), (schedule.ps, c.ps)):
                for slot, server, count in rows.tolist():
                    if (slot, server) in variables:
                        values[variables[slot, server].name] = float(count)
        return values

    def schedules_of(self, values: Mapping[str, float]) -> dict[str, Schedule]:
        """Schedules of the admitted jobs, by id, with nothing in them that the job can spare."""
        schedules = {}
        for c in self.candidates:
            if any(values.get(var.name, 0.0) > 0.5 for var in c.done.values()):
                workers, ps = (
                    [(*place, round(values[var.name])) for place, var in variables.items()]
                    for variables in (c.workers, c.ps)
                )
                schedules[c.job.id] = _lean(c, workers, ps)
        return schedules


def _candidate(instance: Instance, index: int, problem: pulp.LpProblem) -> Candidate | None:
    """Variables (11)-(13) of a job, None if it can be worth nothing.

    (9)(10) hold because there are none before its arrival.
    """
    job, cluster = instance.jobs[index], instance.cluster
    room = _room(cluster.worker_capacity, as_array(job.worker, cluster.resources), job.chunks)
    ps_room = _room(cluster.ps_capacity, as_array(job.ps, cluster.resources), job.chunks)
    parallel = _parallel(job, room, ps_room)
    if parallel == 0:
        return None
    work = job.work(instance.slot_seconds)
    first = job.arrival + -(-work // parallel) - 1
    slots = range(first, instance.horizon)
    values = job.utility(np.arange(first, instance.horizon) - job.arrival).tolist()
    utility = {slot: value for slot, value in zip(slots, values, strict=True) if value > 0}
    if not utility:
        return None
    done = {t: problem.add_variable(f"u_{index}_{t}", 0, 1, pulp.LpInteger) for t in utility}
    workers, ps = (
        {
            (t, s): problem.add_variable(f"{symbol}_{index}_{s}_{t}", 0, most, pulp.LpInteger)
            for t in range(job.arrival, max(utility) + 1)
            for s, most in enumerate(np.minimum(units, parallel).tolist())
            if most > 0
        }
        for symbol, units in (("y", room), ("z", ps_room if job.needs_ps else ps_room[:0]))
    )
    return Candidate(job, work, parallel, utility, done, workers, ps)


def _room(capacity: FloatArray, demand: FloatArray, chunks: int) -> IntArray:
    """Units that each empty server holds: min_r floor(c^r / w^r), at most N_i."""
    asked = demand > 0
    with np.errstate(over="ignore"):
        units = rounding.floor(capacity[:, asked] / demand[asked])
    room: IntArray = units.min(axis=1, initial=chunks).astype(np.int64)
    return room


def _parallel(job: Job, room: IntArray, ps_room: IntArray) -> int:
    """Most workers of a job that fit the empty cluster together with their parameter servers."""
    counts = range(min(job.chunks, int(room.sum())) + 1)
    return bisect_right(counts, int(ps_room.sum()), key=lambda n: int(job.ps_needed(n))) - 1


def _total_utility(candidates: list[Candidate]) -> pulp.LpAffineExpression:
    """(1): sum_i sum_t f_i(t - a_i) u_i(t)."""
    return pulp.lpSum(c.utility[t] * var for c in candidates for t, var in c.done.items())


def _admission(c: Candidate) -> Rows:
    """(11): x_i = sum_t u_i(t) is at most 1."""
    yield pulp.lpSum(c.done.values()) <= 1


def _work(c: Candidate) -> Rows:
    """(2): sum_t sum_h y_ih(t) >= ceil(W_i) x_i."""
    yield pulp.lpSum(c.workers.values()) >= pulp.lpSum(c.work * var for var in c.done.values())


def _chunks(c: Candidate) -> Rows:
    """(3): at most N_i workers in a slot (or what fits), and none unless the job is running."""
    for slot in c.slots:
        yield c.workers_in(slot) <= c.parallel * c.running(slot)


def _worker_capacity(instance: Instance, candidates: list[Candidate]) -> Rows:
    """(4): sum_i w_i^r y_ih(t) <= c_h^r."""
    return _capacity(
        instance.cluster.worker_capacity,
        [(as_array(c.job.worker, instance.cluster.resources), c.workers) for c in candidates],
    )


def _ps_capacity(instance: Instance, candidates: list[Candidate]) -> Rows:
    """(5): sum_i s_i^r z_ik(t) <= c_k^r."""
    return _capacity(
        instance.cluster.ps_capacity,
        [(as_array(c.job.ps, instance.cluster.resources), c.ps) for c in candidates],
    )


def _capacity(
    capacity: FloatArray,
    groups: list[tuple[FloatArray, Mapping[tuple[int, int], pulp.LpVariable]]],
) -> Rows:
    """Rows (4) or (5), divided by the capacity; those that cannot bind are left out."""
    users: dict[tuple[int, int], list[tuple[FloatArray, pulp.LpVariable]]] = {}
    for demand, variables in groups:
        for place, variable in variables.items():
            users.setdefault(place, []).append((demand, variable))
    for ((_, server), here), r in product(users.items(), range(capacity.shape[1])):
        limit = float(capacity[server, r])
        terms = [(float(demand[r]), var) for demand, var in here if demand[r] > 0]
        if not rounding.within(sum(amount * var.upBound for amount, var in terms), limit):
            # `rounding.within`, divided by the capacity
            widened = 1.0 + TOLERANCE * max(1.0, 1.0 / limit)
            yield pulp.lpSum(amount / limit * var for amount, var in terms) <= widened


def _bandwidth(c: Candidate) -> Rows:
    """(6): at least ceil(n b_i / B_i) parameter servers for n workers, as integers (`ps_ratio`)."""
    ratio = ps_ratio(c.job, c.parallel)
    if ratio is not None:
        p, q, free = ratio
        for slot in c.slots:
            yield q * c.ps_in(slot) >= p * c.workers_in(slot) - p * free


def ps_ratio(job: Job, most: int) -> tuple[int, int, int] | None:
    """Integers p, q and m with ``ps_needed(n) = ceil((n - m) p / q)`` for m <= n <= `most`.

    `Job.ps_needed` rounds b_i / B_i with a tolerance. The smallest ps_needed(n) / n is a fraction
    that gives the same counts without one, so that a row with these integers is either kept or
    broken by a whole unit. m counts the workers that need no parameter server: 0, unless b_i / B_i
    is below the tolerance. None if no worker needs any.
    """
    needed = job.ps_needed(np.arange(most + 1))
    free = int(np.flatnonzero(needed == 0)[-1])
    if free == most:
        return None
    counts = np.arange(1, most - free + 1)
    best = int(np.argmin(needed[free + 1 :] / counts))
    return int(needed[free + 1 + best]), int(counts[best]), free


def _ps_at_most_workers(c: Candidate) -> Rows:
    """(7): no more parameter servers than workers."""
    for slot in c.slots if c.ps else ():
        yield c.ps_in(slot) <= c.workers_in(slot)


def _completion(c: Candidate) -> Rows:
    """(8): no worker after the completion.

    (3) implies these rows for integers; server by server they tighten the relaxation.
    """
    for (slot, _), var in c.workers.items():
        yield var <= var.upBound * c.running(slot)


def _lean(c: Candidate, workers: list[Placement], ps: list[Placement]) -> Schedule:
    """Schedule without surplus: latest workers go first, then idle parameter servers."""
    surplus = sum(count for *_, count in workers) - c.work
    in_slot: dict[int, int] = {}
    kept = []
    for slot, server, count in sorted(workers, reverse=True):
        cut = min(count, max(0, surplus))
        surplus -= cut
        in_slot[slot] = in_slot.get(slot, 0) + count - cut
        kept.append((slot, server, count - cut))
    missing = {slot: int(c.job.ps_needed(count)) for slot, count in in_slot.items()}
    served = []
    for slot, server, count in sorted(ps):
        taken = min(count, missing.get(slot, 0))
        missing[slot] = missing.get(slot, 0) - taken
        served.append((slot, server, taken))
    rows = [placements(table) for table in (kept, served)]
    return Schedule(c.job.id, *(table[table[:, COUNT] > 0] for table in rows))
