"""Bound by the configuration LP, the relaxation of (14)-(18), by column generation.

The pricing problem is Algorithm 2 on the empty cluster. Every price vector that is tried gives a
valid bound by weak duality,

    OPT <= D(p, q) = sum_i max(0, best payoff of i) + sum p c + sum q c       (19)(20)

so the solve can stop at any time. Prices are smoothed towards the best ones so far (Wentges), by
an amount that follows the subgradient (Pessoa et al.), and the rows go from one class of servers
a group to identical servers (`offline.column_generation.restricted_master`).

References
----------
arXiv 1801.00936, (14)-(21).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oasis.certify.duality import dual_bound
from oasis.model.errors import SolverError
from oasis.model.instance import Instance, expect_instance
from oasis.model.rounding import FloatArray
from oasis.model.summary import Facts, Summarised, short
from oasis.solvers import TRUST, SolveProgress, Status
from oasis.solvers.budget import Budget, Stop, stop_of
from offline.column_generation.generation import ColumnGeneration, Iterate
from offline.column_generation.restricted_master import Column, columns_of
from offline.model.arrays import OfflineArrays
from offline.params import ColumnGenerationParams
from offline.state import OnlinePrices, SolveState, Start, warm_start_of

# Steps of the independent computation of the dual bound, up to which it is made: about a second.
CERTIFY_STEPS = 100_000

AGREE = 1e-6  # how far two computations of the same bound may differ


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConfigurationBound(Summarised):
    """Result of column generation: the bound, and schedules found on the way.

    Parameters
    ----------
    status : Status
        ``optimal`` if the configuration LP is solved; the bound holds in any case.
    bound : float
        The smallest D(p, q) met: no schedule of the instance is worth more. inf if the time
        limit let no price vector be tried.
    value : float
        Value of the last master at the finest grouping, at most the LP's; 0 if none was solved.
    worker_prices, ps_prices : (T, H, R) and (T, K, R) float arrays
        The p and q of `bound`, utility per unit of resource.
    columns : tuple of Column
        Schedules of the last master.
    weights : (columns,) float array
        x_il of each of them, at most 1 a job.
    rounds : tuple of Iterate
        Every price vector tried.

    Examples
    --------
    The prices prove the bound without the search that has found them:

    >>> import math, oasis
    >>> from offline import configuration_bound
    >>> instance = oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=2, seed=1)
    >>> found = configuration_bound(instance)
    >>> dual = oasis.dual_bound(instance, found.worker_prices, found.ps_prices)
    >>> math.isclose(dual, found.bound, rel_tol=1e-9)
    True
    """

    status: Status
    bound: float
    value: float
    worker_prices: FloatArray
    ps_prices: FloatArray
    columns: tuple[Column, ...]
    weights: FloatArray
    rounds: tuple[Iterate, ...]

    def summary(self) -> tuple[str, Facts]:
        """Status, bound, value of the last master, and size of the search."""
        sizes = [("columns", str(len(self.columns))), ("rounds", str(len(self.rounds)))]
        values = [("bound", short(self.bound)), ("value", short(self.value))]
        return "ConfigurationBound", [("status", str(self.status)), *values, *sizes]


def configuration_bound(
    instance: Instance,
    *,
    stop: Stop | None = None,
    params: ColumnGenerationParams | Mapping[str, Any] | None = None,
    warm_start: Start = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
    time_limit: float | None = None,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
) -> ConfigurationBound:
    """Bound the optimum by the configuration LP.

    Starts from OASiS's final prices and its schedules. Ctrl-C and the limit end it with the best
    bound so far (docs/theory, "The configuration LP"). Nothing in it is random.

    Parameters
    ----------
    instance : Instance
        The problem; its original utilities count, without any floor.
    stop : Stop, optional
        When to end after OASiS's run, as in `offline.solve`; by default, when the LP is solved.
        The gap is that to the warm start.
    params : ColumnGenerationParams or mapping, optional
        Parameters of the column generation.
    warm_start : WarmStart or mapping of str to Schedule, optional
        A feasible solution, default OASiS's own; the LP ends as soon as the bound proves it
        optimal.
    on_progress : callable, optional
        Called at every better bound.
    time_limit, work_limit, gap, no_improvement : float, optional
        Shorthands for criteria of `stop`.

    Returns
    -------
    ConfigurationBound
        With ``bound``, and the prices that prove it.

    Raises
    ------
    ValueError
        For a negative limit or NaN, or parameters that are not allowed.
    VerificationError
        If `warm_start` breaks a constraint.
    SolverError
        If the independent dual bound or the warm start refutes the result.

    Examples
    --------
    >>> import oasis
    >>> from offline import configuration_bound, solve
    >>> instance = oasis.generate("testbed", jobs=4, worker_servers=2, ps_servers=2, seed=1)
    >>> configuration_bound(instance).bound >= solve(instance).objective
    True
    """
    expect_instance(instance)
    stop = stop_of(stop, time_limit, work_limit, gap, no_improvement)
    if not isinstance(params, ColumnGenerationParams):
        params = ColumnGenerationParams.from_dict(params or {})
    start = warm_start_of(warm_start, SolveState(instance, Budget()), needs_prices=True)
    budget = stop.start()
    state = SolveState(instance, budget)
    state.record_solution(start.schedules, worth=start.value)
    state.on_progress = on_progress
    assert start.prices is not None
    arrays = OfflineArrays.of(instance)
    return solve_configuration_lp(arrays, start.prices, state, budget, params)


def solve_configuration_lp(
    arrays: OfflineArrays,
    prices: OnlinePrices,
    state: SolveState,
    budget: Budget,
    params: ColumnGenerationParams,
) -> ConfigurationBound:
    """Return the `configuration_bound` as a part of a solve, whose schedules are columns too."""
    generation = ColumnGeneration(arrays, budget, state, params)
    generation.run(prices, columns_of(arrays, state.schedules))
    result = _result(generation)
    incumbent = state.incumbent
    # A verified schedule above the bound refutes the bound: a fault that must not become a result.
    if incumbent is not None and result.bound < incumbent - TRUST * abs(incumbent):
        raise SolverError(f"the bound is {result.bound:.9g}; a schedule is worth {incumbent:.9g}")
    if math.isfinite(result.bound) and _certificate_steps(arrays) <= CERTIFY_STEPS:
        _certify(result, dual_bound(state.instance, result.worker_prices, result.ps_prices))
    return result


def _result(generation: ColumnGeneration) -> ConfigurationBound:
    centre = generation.centre
    weights = np.zeros(len(generation.columns))
    weights[: len(generation.weights)] = generation.weights
    return ConfigurationBound(
        generation.status,
        centre.bound,
        generation.value,
        centre.worker_prices,
        centre.ps_prices,
        tuple(generation.columns),
        weights,
        tuple(generation.rounds),
    )


def _certificate_steps(arrays: OfflineArrays) -> int:
    """Return about how many steps `oasis.dual_bound` needs for this instance."""
    entries = arrays.worker.priced.size + arrays.ps.priced.size
    return sum((arrays.horizon - form.arrival) * (entries + form.chunks) for form in arrays.forms)


def _certify(result: ConfigurationBound, independent: float) -> None:
    """Raise `SolverError` if the bound differs from `independent`, by `oasis.dual_bound`."""
    if not math.isclose(independent, result.bound, rel_tol=AGREE, abs_tol=AGREE):
        text = f"the search bounds the optimum by {result.bound:.9g}"
        raise SolverError(f"{text}, an independent computation by {independent:.9g}")
