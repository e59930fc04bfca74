"""One entry for every offline method."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oasis.model.choices import choice
from oasis.model.errors import InputError
from oasis.model.instance import Instance, expect_instance
from oasis.solvers import SolveProgress
from offline.benders.params import BendersParams
from offline.benders.solve import BENDERS
from offline.both import BOTH, BothParams
from offline.column_generation.params import ConfigurationParams
from offline.column_generation.solve import COLGEN
from offline.enumeration import ENUMERATION
from offline.method import Method
from offline.model.arrays import OfflineArrays
from offline.model.milp import MILP, CompactParams, compact_size
from offline.params import Count, Params
from offline.result import OfflineResult
from offline.state import Start

LOGGER = logging.getLogger(__name__)

# A new method is registered by a line here, and documented in `solve` and in docs/cli.md.
METHOD_BY_NAME: Mapping[str, Method[Any]] = {
    method.name: method for method in (MILP, ENUMERATION, COLGEN, BENDERS, BOTH)
}
AUTO = "auto"
METHODS = (AUTO, *METHOD_BY_NAME)


@dataclass(frozen=True, slots=True)
class AutoParams(Params):
    """How "auto" chooses.

    Parameters
    ----------
    compact_size : int
        Servers times the slots that each job has from its arrival on, summed over jobs, up to
        which the compact model is as fast as the decomposition.
    counts_size : int
        Squares of the slots that each job has from its arrival on, summed over jobs, up to which
        the master of the decomposition pays; beyond it, schedules and a bound are all that can be
        had, and the configuration LP with heuristics finds better ones.
    both_size : int
        What `compact_size` counts, up to which the compact model proves as much in minutes as the
        decomposition now and then, so that the two run together; beyond it, the decomposition
        alone.
    milp : CompactParams
        What steers the compact model, if that is chosen.
    benders : BendersParams
        What steers the decomposition, if that is chosen.
    colgen : ConfigurationParams
        What steers the configuration LP with heuristics, if that is chosen.
    both : BothParams
        What steers the two that run together, if they are chosen.

    Examples
    --------
    Let the decomposition solve everything, however small:

    >>> import oasis
    >>> from offline import AutoParams, solve
    >>> instance = oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=2, seed=1)
    >>> solve(instance, params=AutoParams(compact_size=0, both_size=0)).method
    'benders'
    """

    compact_size: Count = 500
    counts_size: Count = 1_000_000
    both_size: Count = 6_000
    milp: CompactParams = field(default_factory=CompactParams)
    benders: BendersParams = field(default_factory=BendersParams)
    colgen: ConfigurationParams = field(default_factory=ConfigurationParams)
    both: BothParams = field(default_factory=BothParams)


def solve(
    instance: Instance,
    method: str = AUTO,
    time_limit: float | None = 60.0,
    *,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
    seed: int = 0,
    params: Params | Mapping[str, Any] | None = None,
    warm_start: Start = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
) -> OfflineResult:
    """Solve the offline problem (1)-(13), or enclose its optimum.

    Parameters
    ----------
    instance : Instance
        The problem; its original utilities count, without any floor.
    method : {"auto", "milp", "benders", "both", "colgen", "bruteforce"}
        "milp" is the compact model with HiGHS, "benders" a logic-based Benders decomposition,
        exact like it, "both" these two together, in two processes that share what they learn where
        there is a second core (one after the other with `work_limit`), "colgen" the configuration
        LP with heuristics, "bruteforce" an enumeration for tiny instances, which ignores the
        limits; "auto" is "milp" as long as the number of servers times the slots that each job has
        from its arrival on, summed over jobs, is at most 500 (ten jobs, six servers, eight slots
        each), "colgen" where the squares of these slots, summed over jobs, are more than a million
        (a hundred jobs, a hundred slots each), and between the two "both" up to the number 6000,
        then "benders"; if a job has `min_workers` above 1, it is "milp", which with "bruteforce"
        alone heeds it.
    time_limit : float, optional
        Seconds for the method, after OASiS's run; None or inf is no limit.
    work_limit : float, optional
        Units of work, each about a second of an ordinary machine, in place of the time limit:
        the same instance, limit and seed then give the same result on every machine, measured
        times aside. inf is no limit.
    gap : float, optional
        Relative gap, ``(upper_bound - objective) / objective``, that is small enough: the solve
        ends as soon as it has it, with the status ``gap_limit``. Schedules that are worth less
        than 1e-9 count as 1e-9, so that with nothing but them only a bound of about 0 is close.
        None or 0 asks for a proof; inf ends at once, with a bound that is hardly any.
    no_improvement : float, optional
        Seconds, or units of work with `work_limit`, without improvement after which the solve ends
        with the status ``no_improvement``. An improvement makes the interval between the best
        schedules and the bound shorter by a thousandth of itself. None or inf is no such end.
    seed : int
        Seed of every random choice, those of HiGHS included.
    params : Params or mapping, optional
        What steers the method: `CompactParams`, `BendersParams`, `BothParams`,
        `ConfigurationParams`, `EnumerationParams` or `AutoParams`, or the same as plain data, as
        in ``result.parameters["params"]``.
    warm_start : WarmStart or mapping of str to Schedule, optional
        A feasible solution by job id, such as ``run.schedules``, default OASiS's own. The result
        is never worse.
    on_progress : callable, optional
        Called at every improvement and every new phase.

    Returns
    -------
    OfflineResult
        With ``status``, ``objective``, ``upper_bound``, ``gap`` and ``schedules``. Of the limits
        and criteria, the one that is met first ends the solve, and is its status. Ctrl-C ends
        the solve at any moment with what is known then and the status ``interrupted``.

    Raises
    ------
    ValueError
        For an unknown method, a negative limit or NaN, parameters that are not allowed, or an
        instance too large to enumerate.
    InstanceError
        If a job has `min_workers` above 1, and the method does not heed it.
    VerificationError
        If `warm_start` breaks a constraint.
    SolverError
        If the solver fails or a verified schedule refutes what it claims.

    Examples
    --------
    >>> import oasis
    >>> from offline import solve
    >>> instance = oasis.generate("testbed", jobs=4, worker_servers=2, ps_servers=2, seed=1)
    >>> result = solve(instance)
    >>> result.status, result.gap < 1e-6
    (<Status.OPTIMAL: 'optimal'>, True)
    """
    expect_instance(instance)
    method = choice(method, METHODS, "method")
    if method == AUTO:
        method, params = _chosen(instance, params)
    limit = f"{time_limit} s" if work_limit is None else f"{work_limit} units of work"
    LOGGER.info("%s on %d jobs, limit %s, seed %d", method, len(instance.jobs), limit, seed)
    return METHOD_BY_NAME[method].solve(
        instance,
        time_limit,
        work_limit=work_limit,
        gap=gap,
        no_improvement=no_improvement,
        seed=seed,
        params=params,
        warm_start=warm_start,
        on_progress=on_progress,
    )


def _chosen(instance: Instance, params: Params | Mapping[str, Any] | None) -> tuple[str, Params]:
    """The method that "auto" is for this instance, and its parameters."""
    if isinstance(params, Mapping):
        params = AutoParams.from_dict(params)
    params = AutoParams() if params is None else params
    if not isinstance(params, AutoParams):
        raise InputError("params", f"expected AutoParams for method {AUTO!r}", params)
    if any(job.min_workers > 1 for job in instance.jobs):
        return MILP.name, params.milp
    size = compact_size(OfflineArrays.of(instance))
    LOGGER.info("size %d, the compact model takes up to %d", size, params.compact_size)
    if size <= params.compact_size:
        return MILP.name, params.milp
    counts = sum((instance.horizon - job.arrival) ** 2 for job in instance.jobs)
    LOGGER.info("counts %d, the decomposition takes up to %d", counts, params.counts_size)
    if counts > params.counts_size:
        return COLGEN.name, params.colgen
    if size <= params.both_size:
        return BOTH.name, params.both
    return BENDERS.name, params.benders
