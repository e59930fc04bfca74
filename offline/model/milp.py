"""The compact model solved with HiGHS; a solution is verified before it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from oasis.model.errors import SolverError, VerificationError
from oasis.model.schedule import Schedule
from oasis.solvers import TRUST, Solution, Status
from oasis.solvers.budget import NO_LIMIT, Budget, OutOfTimeError
from offline.model import constraints
from offline.model.arrays import OfflineArrays
from offline.model.capacities import Limit, limits_of_empty_servers, solve_within
from offline.model.schedule_model import ScheduleModel
from offline.params import CompactParams
from offline.problem import Method, OfflineProblem, seed_of
from offline.state import Phase, SolveState

ROW_WORK = 3e-5  # of adding a row to the model, in units of about a second


class CompactModel(ScheduleModel):
    """The whole problem (1)-(13) as a mixed-integer program."""

    def __init__(self, arrays: OfflineArrays, budget: Budget = NO_LIMIT) -> None:
        super().__init__(arrays, "oasis_offline", budget=budget)
        for row in constraints.of_all(arrays, self.jobs):
            self.problem.addConstraint(row)
            # PuLP takes long for large models, so building one must be able to run out of time.
            budget.charge(ROW_WORK)
            if budget.passed:
                raise OutOfTimeError

    def limits(self) -> Iterator[Limit]:
        """(4) and (5) in every slot, as the rows of the model have them."""
        return limits_of_empty_servers(self.arrays, self.jobs)


def compact_size(arrays: OfflineArrays) -> int:
    """Number of integer variables of the compact model, about."""
    servers = len(arrays.worker.capacity) + len(arrays.ps.capacity)
    return servers * sum(arrays.horizon - form.arrival for form in arrays.forms)


WITHOUT_SOLUTION = (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)


class ScheduleExchange:
    """Exchange of incumbents between the solve state and a running HiGHS, in both directions."""

    def __init__(self, model: CompactModel, state: SolveState) -> None:
        self.model, self.state = model, state
        self._known = state.schedules

    def better(self, objective: float) -> Mapping[str, float] | None:
        """Return variables of new schedules worth more than `objective`; None without any."""
        known, schedules = self.state.incumbent, self.state.schedules
        # HiGHS loses time with each solution that it is given.
        if known is None or schedules is self._known or known <= objective + TRUST * abs(objective):
            return None
        self._known = schedules
        return self.model.values_of(schedules)

    def record(self, values: Mapping[str, float]) -> None:
        """Report schedules to the state, unless they exceed a capacity within HiGHS's tolerance."""
        if all(limit.holds(values) for limit in self.model.limits()):
            schedules = self.model.schedules_of(values)
            _record(self.state, schedules)
            if self.state.schedules is schedules:
                self._known = schedules


class CompactMethod(Method[CompactParams]):
    """Method "milp": the compact model (1)-(13) as one mixed-integer program, with HiGHS."""

    name, kind = "milp", CompactParams

    def solve(self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator) -> Status:
        """Solve the compact model from the incumbent; `stop` counts building it, too."""
        state = problem.state
        state.enter(Phase.COMPACT)
        model = CompactModel(problem.arrays, stop)
        state.record_bound(model.trivial_bound, Phase.TRIVIAL)
        known = state.schedules
        solution = solve_within(
            model.problem,
            model.limits,
            state.withdraw,
            budget=stop,
            is_whole_problem=True,
            warm_start=model.values_of(known) if known else None,
            on_progress=state.record_progress,
            presolve=self.params.presolve,
            seed=seed_of(rng),
            exchange=ScheduleExchange(model, state),
        )
        schedules = _schedules_of(model, solution)
        known = state.schedules  # HiGHS often ends with what it was given, or has told of before
        value = (state.incumbent or 0.0) if schedules == known else _record(state, schedules)
        state.record_bound(solution.bound)
        best = state.incumbent or 0.0
        # Others may have found schedules meanwhile that HiGHS claims cannot exist.
        if solution.status is Status.OPTIMAL and value < best - TRUST * abs(best):
            raise SolverError(f"HiGHS calls {value:.9g} optimal; a schedule is worth {best:.9g}")
        return solution.status


def _record(state: SolveState, schedules: Mapping[str, Schedule]) -> float:
    """Record HiGHS's schedules, return their value; `SolverError` if they break a constraint."""
    try:
        return state.record_solution(schedules)
    except VerificationError as error:
        raise SolverError(f"HiGHS returned an infeasible solution: {error}") from error


def _schedules_of(model: CompactModel, solution: Solution) -> dict[str, Schedule]:
    if solution.status in WITHOUT_SOLUTION:
        raise SolverError(f"HiGHS calls the model {solution.status}; admitting no job solves it")
    return model.schedules_of(solution.values)
