"""The compact model for constraints of one's own: a PuLP model to add rows to, and its solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Any

import pulp

from oasis.model.errors import InputError
from oasis.model.instance import Instance, expect_instance
from oasis.model.schedule import Schedule, placements
from oasis.model.validation import LARGEST_SEED, integer
from oasis.solvers import SolveProgress, Status, highs
from oasis.solvers.budget import Budget, Stop, stop_of
from offline.model.arrays import OfflineArrays
from offline.model.capacities import solve_within
from offline.model.milp import CompactModel
from offline.model.variables import JobVariables
from offline.result import OfflineResult
from offline.state import Phase, SolveState, conclude


class OfflineModel:
    """The offline problem (1)-(13) as a mixed-integer program that takes further constraints.

    A constraint removes schedules, so each bound of `solve` also bounds the optimum of this model.

    Parameters
    ----------
    instance : Instance
        The problem. Integer variables are about as many as servers times the slots from the
        arrival of each job on, summed; up to some ten thousand can be solved.

    Attributes
    ----------
    problem : pulp.LpProblem
        The model, a maximisation. Add constraints by ``model.problem += expression <= 1``, and
        variables of your own by ``model.problem.add_variable``. Its objective (1) must stay.
    variables : mapping of str to tuple of JobVariables
        By job id, for each form that can be worth something: ``workers`` and ``ps`` have a
        variable per (slot, server), ``done`` one per slot in which the job may complete.

    Examples
    --------
    At most one job in each slot:

    >>> import oasis, pulp
    >>> from offline import OfflineModel, solve
    >>> instance = oasis.generate("testbed", jobs=3, worker_servers=1, ps_servers=1, seed=1)
    >>> model = OfflineModel(instance)
    >>> for slot in range(instance.horizon):
    ...     runs = []
    ...     for name in model.variables:
    ...         runs.append(model.problem.add_variable(f"{name}_{slot}", cat="Binary"))
    ...         model.problem += model.workers_in(name, slot) <= 1000 * runs[-1]
    ...     model.problem += pulp.lpSum(runs) <= 1
    >>> alone = model.solve()
    >>> alone.status, alone.objective <= solve(instance).upper_bound
    (<Status.OPTIMAL: 'optimal'>, True)
    """

    def __init__(self, instance: Instance) -> None:
        expect_instance(instance)
        self.instance = instance
        self._model = CompactModel(OfflineArrays.of(instance))
        self.problem: pulp.LpProblem = self._model.problem
        self._objective = dict(self.problem.objective.items()), self.problem.objective.constant
        self.variables: Mapping[str, tuple[JobVariables, ...]] = {
            job.id: tuple(c for c in self._model.jobs if c.job.id == job.id)
            for job in instance.jobs
        }

    @property
    def constraints(self) -> list[pulp.LpConstraint]:
        """The rows of the model, yours included."""
        return list(self.problem.constraints())

    @property
    def objective(self) -> pulp.LpAffineExpression:
        """(1), the total utility."""
        return self.problem.objective

    def workers_in(self, job_id: str, slot: int) -> pulp.LpAffineExpression:
        """Workers of a job in a slot, over all servers and forms.

        Raises
        ------
        InputError
            If the instance has no such job or slot.
        """
        forms = self._forms(job_id)
        integer(slot, "slot", maximum=self.instance.horizon - 1)
        return pulp.lpSum(var for c in forms for (t, _), var in c.workers.items() if t == slot)

    def admitted(self, job_id: str) -> pulp.LpAffineExpression:
        """Whether a job completes, x_i: 0 or 1."""
        return pulp.lpSum(var for c in self._forms(job_id) for var in c.done.values())

    def _forms(self, job_id: str) -> tuple[JobVariables, ...]:
        if job_id not in self.variables:
            raise InputError("job_id", "expected the id of a job of the instance", job_id)
        return self.variables[job_id]

    def solve(
        self,
        *,
        stop: Stop | None = None,
        seed: int = 0,
        on_progress: Callable[[SolveProgress], None] | None = None,
        time_limit: float | EllipsisType | None = ...,
        work_limit: float | None = None,
        gap: float | None = None,
        no_improvement: float | None = None,
    ) -> OfflineResult:
        """Solve the model with HiGHS, and verify what comes back against (1)-(13).

        Arguments are those of `offline.solve`; the default limit is a minute. It starts from no
        schedule, because OASiS's may break your constraints.

        Raises
        ------
        InputError
            If no schedule satisfies all constraints.
        SolverError
            If HiGHS fails, or returns schedules that break (1)-(13).
        """
        self._check()
        stop = stop_of(stop, time_limit, work_limit, gap, no_improvement)
        budget = stop.start()
        state = SolveState(self.instance, budget, on_progress)
        parameters: dict[str, Any] = {
            **stop.to_dict(),
            "seed": integer(seed, "seed", maximum=LARGEST_SEED),
        }
        parameters |= {"solver": highs.version(), "rows": len(self.constraints)}

        def work() -> Status:
            state.enter(Phase.COMPACT)
            return self._solved(state, budget, seed)

        return conclude(state, work, "milp", parameters)

    def _check(self) -> None:
        """Raise `InputError` for a changed objective, or variables that share a name."""
        objective, names = self.problem.objective, [var.name for var in self.problem.variables()]
        is_kept = (dict(objective.items()), objective.constant) == self._objective
        if not is_kept or self.problem.sense != pulp.LpMaximize:
            raise InputError("objective", "expected (1), the total utility, as it was made")
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            expected = "expected variables of this model alone, each with a name of its own"
            raise InputError("variables", f"{expected}, got two called {twice[0]}")

    def _solved(self, state: SolveState, budget: Budget, seed: int) -> Status:
        solution = solve_within(
            self.problem,
            self._model.limits,
            state.withdraw,
            budget=budget,
            is_whole_problem=True,
            on_progress=state.record_progress,
            seed=seed,
        )
        if solution.status in (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED):
            raise InputError("constraints", "expected some schedule to satisfy all of them")
        schedules = {
            c.job.id: _as_solved(c, solution.values)
            for c in self._model.jobs
            if any(solution.values.get(var.name, 0.0) > 0.5 for var in c.done.values())
        }
        if solution.objective is not None:
            state.record_solution(schedules)
        state.record_bound(solution.bound)
        return solution.status


def _as_solved(c: JobVariables, values: Mapping[str, float]) -> Schedule:
    """Return the schedule with all tasks of the solution: to drop one may break a constraint."""
    workers, ps = (
        placements([(*place, n) for place, var in variables.items() if (n := _count(values, var))])
        for variables in (c.workers, c.ps)
    )
    return Schedule(c.job.id, workers, ps, c.form)


def _count(values: Mapping[str, float], variable: pulp.LpVariable) -> int:
    return round(values.get(variable.name, 0.0))
