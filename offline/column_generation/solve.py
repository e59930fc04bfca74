"""Offline solve at the paper's scale: the configuration LP, and heuristics that follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oasis.model.instance import Instance
from oasis.model.schedule import Schedule
from oasis.solvers import Progress, Status, highs
from oasis.solvers.budget import Budget, limits
from offline.column_generation.bound import columns_of, configuration_bound
from offline.heuristics.insertion import Incumbent, improve
from offline.heuristics.partial_solution import Occupancy
from offline.result import OfflineResult
from offline.state import Standing, concluded
from offline.warm_start import begin

BOUND_SHARE = 0.15  # of the time limit, for the bound


def solve_configuration(
    instance: Instance,
    time_limit: float | None = 60.0,
    warm_start: Mapping[str, Schedule] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    seed: int = 0,
    work_limit: float | None = None,
) -> OfflineResult:
    """Enclose the offline optimum by column generation and heuristics; see `offline.solve`.

    The result is never worse than `warm_start`, or than OASiS's own schedule without one.
    Without a time limit it ends only with a proof.

    Raises
    ------
    VerificationError
        If `warm_start` breaks a constraint.
    SolverError
        If a bound is below a verified schedule.
    """
    budget = Budget.of(time_limit, work_limit)
    standing = Standing(budget, on_progress)
    parameters: dict[str, Any] = {
        **limits(time_limit, work_limit),
        "seed": seed,
        "solver": highs.version(),
    }

    def work() -> Status:
        begin(instance, standing, warm_start)
        incumbent = Incumbent(Occupancy(instance, standing.schedules), standing)
        standing.enter("configuration LP")
        columns = columns_of(instance, incumbent.best.by_id)
        bound = configuration_bound(instance, budget.share(BOUND_SHARE), columns, standing)
        parameters.update(configuration_lp=str(bound.status), rounds=len(bound.rounds))
        if bound.status is Status.INTERRUPTED:
            return bound.status
        improve(instance, bound, incumbent, budget, seed)
        return budget.status

    return concluded(instance, standing, work, "colgen", parameters)
