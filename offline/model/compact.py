"""The compact model (1)-(13) as a mixed-integer program, solved with HiGHS.

x_i is split over completion slots: u_i(t) = 1 says that job i completes in slot t and is worth
f_i(t - a_i), so that (1) is linear. Only variables that can be positive exist: slots from arrival
(9)(10) to the last completion worth something, servers that can hold at least one unit.

Every row is written so that the solver accepts exactly the schedules that `oasis.model.rounding`
accepts: (6) has integer coefficients, capacities are scaled to 1 and widened by the common
tolerance, and what comes back is verified with exact arithmetic before it is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pulp

from oasis.certify.verify import verify
from oasis.model.errors import SolverError, VerificationError
from oasis.model.instance import Instance
from oasis.model.schedule import COUNT, Schedule, placements
from oasis.solvers import TRUST, Progress, Solution, Status, highs
from oasis.solvers.budget import Budget, limits
from offline.model import constraints
from offline.model.variables import Candidate, candidate_of
from offline.result import OfflineResult
from offline.state import TRIVIAL, Standing, concluded
from offline.warm_start import begin

Placement = tuple[int, int, int]

NO_LIMIT = Budget()
PHASE = "compact MILP"

# Slots times servers, over all jobs, up to which this is as fast as the decomposition.
COMPACT = 500

ROW_WORK = 3e-5  # of adding a row to the model, in units of about a second


def solve_milp(
    instance: Instance,
    time_limit: float | None = 60.0,
    warm_start: Mapping[str, Schedule] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    *,
    presolve: bool = True,
    work_limit: float | None = None,
    seed: int = 0,
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
    work_limit : float, optional
        Units of work instead of seconds.
    seed : int
        Of HiGHS.

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
    budget = Budget.of(time_limit, work_limit)
    standing = Standing(budget, on_progress)

    def work() -> Status:
        if warm_start is not None:
            begin(instance, standing, warm_start)
        return prove(instance, standing, budget, presolve=presolve, seed=seed)

    parameters = {
        **limits(time_limit, work_limit),
        "seed": seed,
        "warm_start": warm_start is not None,
        "presolve": presolve,
        "solver": highs.version(),
    }
    return concluded(instance, standing, work, "milp", parameters)


def compact_size(instance: Instance) -> int:
    """Number of integer variables of the compact model, about."""
    servers = len(instance.cluster.worker_ids) + len(instance.cluster.ps_ids)
    return servers * sum(instance.horizon - job.arrival for job in instance.jobs)


def prove(
    instance: Instance,
    standing: Standing,
    budget: Budget,
    *,
    presolve: bool = True,
    seed: int = 0,
) -> Status:
    """Solve the compact model from the best schedules of `standing`, and tell it what is learnt.

    Returns
    -------
    Status
        Why it ended: ``optimal``, ``time_limit`` or ``interrupted``.
    """
    standing.enter(PHASE)
    model = _model_in_time(instance, budget)
    if model is None:
        return budget.status
    standing.proved(model.trivial_bound, TRIVIAL)
    known = standing.schedules
    solution = highs.solve(
        model.problem,
        budget=budget,
        warm_start=model.values_of(known) if known else None,
        on_progress=standing.saw,
        presolve=presolve,
        seed=seed,
    )
    found, value = _verified(instance, model, solution)
    standing.found(value, found)
    standing.proved(solution.bound)
    best = standing.incumbent or 0.0
    if solution.status is Status.OPTIMAL and value < best - TRUST * abs(best):
        raise SolverError(f"HiGHS calls {value:.9g} optimal; a schedule is worth {best:.9g}")
    return solution.status


def _model_in_time(instance: Instance, budget: Budget) -> CompactModel | None:
    """Build the model; None if the time limit passes first."""
    try:
        return CompactModel(instance, budget)
    except TimeoutError:
        return None


def _verified(
    instance: Instance, model: CompactModel, solution: Solution
) -> tuple[dict[str, Schedule], float]:
    """Return the solver's schedules and their total utility, once they pass the exact check."""
    if solution.status not in (
        Status.OPTIMAL,
        Status.TIME_LIMIT,
        Status.WORK_LIMIT,
        Status.INTERRUPTED,
    ):
        raise SolverError(f"HiGHS calls the model {solution.status}; admitting no job solves it")
    schedules = model.schedules_of(solution.values)
    try:
        return schedules, verify(instance, schedules)
    except VerificationError as error:
        raise SolverError(f"HiGHS returned an infeasible solution: {error}") from error


class CompactModel:
    """The mixed-integer program of an instance, and the way between its variables and schedules.

    Attributes
    ----------
    problem : pulp.LpProblem
        Raises TimeoutError if `budget` passes before it is built.
    trivial_bound : float
        Every candidate at its best utility.
    """

    def __init__(self, instance: Instance, budget: Budget = NO_LIMIT) -> None:
        self.instance = instance
        self.problem = pulp.LpProblem("oasis_offline", pulp.LpMaximize)
        made = (candidate_of(instance, index, self.problem) for index in range(len(instance.jobs)))
        self.candidates = [candidate for candidate in made if candidate is not None]
        self.trivial_bound = math.fsum(max(c.utility.values()) for c in self.candidates)
        self.problem.setObjective(constraints.total_utility(self.candidates))
        for row in constraints.of_all(instance, self.candidates):
            self.problem.addConstraint(row)
            budget.charge(ROW_WORK)
            if budget.passed:
                raise TimeoutError("the time limit passed while the model was built")

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
