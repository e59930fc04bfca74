"""Offline solve at the paper's scale: the configuration LP, and heuristics that follow it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import oasis
from oasis.errors import SolverError
from oasis.problem import Instance
from oasis.schedule import Schedule
from oasis.solvers import Progress, Status, highs
from oasis.verify import verify
from offline.column_generation import ConfigurationBound, columns_of, configuration_bound
from offline.deadline import Deadline, Standing
from offline.heuristics import Incumbent, improve
from offline.occupancy import Occupancy
from offline.result import OfflineResult

BOUND_SHARE = 0.15  # of the time limit, for the bound
PROVEN = 1e-6


def solve_configuration(
    instance: Instance,
    time_limit: float | None = 60.0,
    warm_start: Mapping[str, Schedule] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    seed: int = 0,
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
    started = time.perf_counter()
    if warm_start is None:
        warm_start = oasis.simulate(instance, oasis.OASiS.from_instance(instance)).schedules
    verify(instance, warm_start)
    deadline = Deadline(time_limit, started)
    standing = Standing(deadline, on_progress)
    incumbent = Incumbent(Occupancy(instance, warm_start), standing)
    bound, is_interrupted = _run(instance, incumbent, deadline, seed)
    objective = verify(instance, incumbent.best.by_id)
    if bound.bound < objective * (1 - PROVEN):
        raise SolverError(f"the bound is {bound.bound:.9g}; a schedule is worth {objective:.9g}")
    is_proven = bound.bound - objective <= PROVEN * abs(objective)
    status = Status.INTERRUPTED if is_interrupted else Status.TIME_LIMIT
    return OfflineResult(
        status=Status.OPTIMAL if is_proven else status,
        objective=objective,
        upper_bound=max(bound.bound, objective),
        schedules=incumbent.best.by_id,
        method="colgen",
        seconds=time.perf_counter() - started,
        parameters={
            "time_limit": time_limit,
            "seed": seed,
            "configuration_lp": str(bound.status),
            "rounds": len(bound.rounds),
            "solver": highs.version(),
        },
    )


def _run(
    instance: Instance, incumbent: Incumbent, deadline: Deadline, seed: int
) -> tuple[ConfigurationBound, bool]:
    """The bound, then the heuristics; and whether Ctrl-C ended either."""
    columns = columns_of(instance, incumbent.best.by_id)
    part = deadline.share(BOUND_SHARE)
    bound = configuration_bound(instance, part, columns, incumbent.standing)
    if bound.status is Status.INTERRUPTED:
        return bound, True
    try:
        improve(instance, bound, incumbent, deadline, seed)
    except KeyboardInterrupt:
        return bound, True
    return bound, False
