"""One entry for every offline method."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Any

import numpy as np

from oasis.model.choices import choice
from oasis.model.instance import Instance, expect_instance
from oasis.model.validation import LARGEST_SEED, integer
from oasis.solvers import SolveProgress, Status, highs
from oasis.solvers.budget import Budget, Stop, stop_of
from offline.benders.solve import Benders
from offline.column_generation.solve import Configuration
from offline.enumeration import Enumeration
from offline.model.arrays import OfflineArrays
from offline.model.milp import CompactMethod, compact_size
from offline.params import AutoParams, Params
from offline.problem import Method, OfflineProblem, checked_params
from offline.result import OfflineResult
from offline.state import SolveState, Start, conclude, warm_start_of

LOGGER = logging.getLogger(__name__)

# A new method is registered here, and documented in `solve` and in docs/cli.md.
METHOD_BY_NAME: Mapping[str, type[Method[Any]]] = {
    kind.name: kind for kind in (CompactMethod, Enumeration, Configuration, Benders)
}
AUTO = "auto"
METHODS = (AUTO, *METHOD_BY_NAME)

# On a long horizon column generation needs minutes to solve the configuration LP. A solve of at
# most SHORT seconds (or units of work) gets a better bound from the decomposition.
SHORT = 180.0
# Beyond this size, in the unit of `AutoParams.counts_size`, the relaxation of the decomposition is
# not solved in that time either.
LONG_COUNTS = 5_000_000


def chosen_by_size(params: AutoParams, instance: Instance, stop: Stop) -> Method[Any]:
    """Return the method for an instance of this size and a solve with these limits."""
    arrays = OfflineArrays.of(instance)
    size = compact_size(arrays)
    counts = sum((instance.horizon - form.arrival) ** 2 for form in arrays.forms)
    LOGGER.info("size %d, counts %d: limits %s", size, counts, params)
    if size <= params.compact_size:
        return CompactMethod(params.milp)
    limits = [limit for limit in (stop.time_limit, stop.work_limit) if limit is not None]
    is_short = min(limits, default=math.inf) <= SHORT
    if counts > (LONG_COUNTS if is_short else params.counts_size):
        return Configuration(params.colgen)
    return Benders(params.benders)


def solve(
    instance: Instance,
    method: str = AUTO,
    *,
    stop: Stop | None = None,
    seed: int = 0,
    params: Params | Mapping[str, Any] | None = None,
    warm_start: Start = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
    time_limit: float | EllipsisType | None = ...,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
) -> OfflineResult:
    """Solve the offline problem (1)-(13), or enclose its optimum.

    Parameters
    ----------
    instance : Instance
        The problem; its original utilities count, without any floor.
    method : {"auto", "milp", "benders", "colgen", "bruteforce"}
        "milp" is the compact model with HiGHS; "benders" a logic-based Benders decomposition, exact
        as well; "colgen" the configuration LP with heuristics; "bruteforce" an enumeration of tiny
        instances, which ignores all limits. "auto" chooses by the size of the instance and the time
        limit; docs/cli.md has its rules as a table.
    stop : Stop, optional
        When to end: `TimeLimit`, `WorkLimit`, `Gap` and `NoImprovement`, combined by ``|``. What is
        met first ends the solve and is its status. The time is that of the method, after the run
        of OASiS. Default ``TimeLimit(60)``.
    seed : int
        Seed of every random choice, those of HiGHS included.
    params : Params or mapping, optional
        Parameters of the method: `CompactParams`, `BendersParams`, `ConfigurationParams`,
        `EnumerationParams` or `AutoParams`, or the same as plain data, as in
        ``result.parameters["params"]``.
    warm_start : WarmStart or mapping of str to Schedule, optional
        A feasible solution by job id, such as ``run.schedules``, default OASiS's own. The result
        is never worse.
    on_progress : callable, optional
        Called at every improvement and every new phase.
    time_limit, work_limit, gap, no_improvement : float, optional
        Shorthands for the four criteria, which join those of `stop`. ``time_limit=None`` asks for
        a solve without a time limit.

    Returns
    -------
    OfflineResult
        With ``status``, ``objective``, ``upper_bound``, ``gap`` and ``schedules``. Ctrl-C ends
        the solve at any moment with what is known then and the status ``interrupted``.

    Raises
    ------
    ValueError
        For an unknown method, a negative limit or NaN, parameters that are not allowed, or an
        instance too large to enumerate.
    VerificationError
        If `warm_start` breaks a constraint.
    SolverError
        If the solver fails or a verified schedule refutes what it claims.

    Examples
    --------
    >>> import oasis
    >>> from offline import Gap, TimeLimit, solve
    >>> instance = oasis.generate("testbed", jobs=4, worker_servers=2, ps_servers=2, seed=1)
    >>> result = solve(instance)
    >>> result.status, result.gap < 1e-6
    (<Status.OPTIMAL: 'optimal'>, True)
    >>> solve(instance, stop=TimeLimit(30) | Gap(0.05)).gap <= 0.05
    True
    """
    expect_instance(instance)
    stop = stop_of(stop, time_limit, work_limit, gap, no_improvement)
    seed = integer(seed, "seed", maximum=LARGEST_SEED)
    chosen = _method(method, params, instance, stop)
    LOGGER.info("%s on %d jobs until %s, seed %d", chosen.name, len(instance.jobs), stop, seed)

    # 1. Where to start: a run of OASiS gives schedules, and prices for the methods that need them.
    online = SolveState(instance, Budget(), on_progress)
    try:
        start = warm_start_of(warm_start, online, needs_prices=chosen.needs_prices)
    except KeyboardInterrupt:
        return online.result(Status.INTERRUPTED, chosen.name, {})

    # 2. What the method works on, and what it may spend, from now on.
    budget = stop.start() if chosen.heeds_limits else Budget()
    problem = OfflineProblem(start, SolveState(instance, budget, on_progress))
    parameters = {"params": chosen.params.to_dict()}
    if chosen.heeds_limits:
        parameters |= {**stop.to_dict(), "seed": seed, "warm_start": str(start.source)}
        parameters |= {"solver": highs.version()}

    # 3. The method, from a verified incumbent on; whatever ends it, what is known is the result.
    def work() -> Status:
        problem.state.enter(start.source)
        problem.state.record_solution(start.schedules, worth=start.value)
        return chosen.solve(problem, budget, np.random.default_rng(seed))

    return conclude(problem.state, work, chosen.name, parameters)


def params_of(method: str) -> type[Params]:
    """Return the class of the parameters of a method, by the method's name."""
    return AutoParams if method == AUTO else METHOD_BY_NAME[method].kind


def _method(
    name: str, params: Params | Mapping[str, Any] | None, instance: Instance, stop: Stop
) -> Method[Any]:
    """Return the method of this name with its parameters; "auto" is resolved by the instance."""
    name = choice(name, METHODS, "method")
    if name == AUTO:
        auto = checked_params(AUTO, AutoParams, params)
        assert isinstance(auto, AutoParams)
        return chosen_by_size(auto, instance, stop)
    return METHOD_BY_NAME[name](params)
