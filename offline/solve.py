"""One entry for every offline method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oasis.model.instance import Instance
from oasis.model.schedule import Schedule
from oasis.solvers import Progress, Status
from oasis.solvers.budget import Budget, checked
from offline.benders.solve import solve_benders
from offline.column_generation.solve import solve_configuration
from offline.enumeration import solve_brute_force
from offline.model.compact import COMPACT, compact_size, solve_milp
from offline.result import OfflineResult
from offline.state import Standing
from offline.warm_start import ONLINE, begin

METHODS = ("auto", "milp", "bruteforce", "colgen", "benders")


def solve(
    instance: Instance,
    method: str = "auto",
    time_limit: float | None = 60.0,
    warm_start: Mapping[str, Schedule] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    *,
    work_limit: float | None = None,
    seed: int = 0,
) -> OfflineResult:
    """Solve the offline problem (1)-(13), or enclose its optimum.

    Parameters
    ----------
    instance : Instance
        The problem; its original utilities count, without any floor.
    method : {"auto", "milp", "benders", "colgen", "bruteforce"}
        "milp" is the compact model with HiGHS, "benders" a logic-based Benders decomposition,
        exact like it, "colgen" the configuration LP with heuristics, "bruteforce" an enumeration
        for tiny instances, which ignores the time limit; "auto" is "milp" as long as the number
        of servers times the slots that each job has from its arrival on, summed over jobs, is at
        most 500 (ten jobs, six servers, eight slots each), else "benders".
    time_limit : float, optional
        Seconds for the method, after OASiS's run; None or inf is no limit.
    warm_start : mapping of str to Schedule, optional
        A feasible solution by job id, such as ``run.schedules``, default OASiS's own. The result
        is never worse.
    on_progress : callable, optional
        Called at every improvement and every new phase.
    work_limit : float, optional
        Units of work, each about a second of an ordinary machine, in place of the time limit:
        the same instance, limit and seed then give the same result on every machine, measured
        times aside. inf is no limit.
    seed : int
        Of every random choice, and of HiGHS.

    Returns
    -------
    OfflineResult
        With ``status``, ``objective``, ``upper_bound``, ``gap`` and ``schedules``. Ctrl-C ends
        the solve at any moment with what is known then and the status ``interrupted``.

    Raises
    ------
    ValueError
        For an unknown method, a negative limit or NaN, or an instance too large to
        enumerate.
    VerificationError
        If `warm_start` breaks a constraint.
    SolverError
        If the solver fails or a verified schedule refutes what it claims.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}")
    time_limit = checked(time_limit)
    checked(work_limit, "work_limit", "units of work")
    limits: dict[str, Any] = {"work_limit": work_limit, "seed": seed}
    if warm_start is None:
        online = Standing(Budget(), on_progress)
        try:
            begin(instance, online, None)
        except KeyboardInterrupt:
            return online.result(instance, Status.INTERRUPTED, method, {})
        result = solve(instance, method, time_limit, online.schedules, on_progress, **limits)
        return result.from_start(ONLINE)
    if method == "bruteforce":
        return solve_brute_force(instance, warm_start, on_progress)
    if method == "colgen":
        return solve_configuration(instance, time_limit, warm_start, on_progress, **limits)
    if method == "benders" or (method == "auto" and compact_size(instance) > COMPACT):
        return solve_benders(instance, time_limit, warm_start, on_progress, **limits)
    return solve_milp(instance, time_limit, warm_start, on_progress, **limits)
