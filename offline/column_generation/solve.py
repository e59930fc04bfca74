"""Offline solve at the paper's scale: the configuration LP, and heuristics that follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from oasis.certify.verify import verify
from oasis.model.instance import Instance
from oasis.solvers import SolveProgress, Status
from offline.column_generation.bound import ConfigurationBound, solve_configuration_lp
from offline.column_generation.cutting import cut_configuration_lp
from offline.column_generation.params import ConfigurationParams
from offline.heuristics.alternation import Alternation
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.dual_values import DualValues
from offline.heuristics.fix_and_optimise import Neighbourhoods
from offline.heuristics.insertion import insert_in_orders
from offline.heuristics.partial_solution import PartialSolution
from offline.heuristics.recourse_run import follow_recourse
from offline.heuristics.ruin_and_recreate import ruin_and_recreate
from offline.heuristics.window_search import WindowSearch
from offline.method import Method
from offline.model.arrays import OfflineArrays
from offline.result import OfflineResult
from offline.state import Phase, SolveState
from offline.warm_start import Start, WarmStart


def solve_configuration(
    instance: Instance,
    time_limit: float | None = 60.0,
    *,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
    seed: int = 0,
    params: ConfigurationParams | Mapping[str, Any] | None = None,
    warm_start: Start = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
) -> OfflineResult:
    """Enclose the offline optimum by column generation and heuristics; see `offline.solve`.

    Without a limit it ends only with a proof, which it may never find.

    Examples
    --------
    >>> import oasis
    >>> from offline import solve_configuration
    >>> instance = oasis.generate("testbed", jobs=4, worker_servers=2, ps_servers=2, seed=1)
    >>> result = solve_configuration(instance, work_limit=0.2)
    >>> 0 < result.objective <= result.upper_bound
    True
    """
    return COLGEN.solve(
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


def _run(
    instance: Instance,
    start: WarmStart,
    state: SolveState,
    params: ConfigurationParams,
    seed: int,
) -> Status:
    assert start.prices is not None
    arrays, budget = OfflineArrays.of(instance), state.budget
    rng = np.random.default_rng(seed)
    best = BestSolution(PartialSolution(arrays, state.schedules), state, partial(verify, instance))
    windows = WindowSearch(arrays, best, rng, params.windows)
    windows.start(budget.share(params.start_share).within(params.start_limit))
    part = budget.share(params.recourse_share)
    follow_recourse(instance, arrays, best, seed, part, params.recourse)
    state.enter(Phase.CONFIGURATION_LP)
    part = budget.share(params.bound_share)
    bound = solve_configuration_lp(instance, arrays, start.prices, state, part, params.pricing)
    state.notes.update(configuration_lp=str(bound.status), rounds=len(bound.rounds))
    if bound.status is Status.INTERRUPTED:
        return bound.status
    state.enter(Phase.CUTS_IN_SLOTS)
    part = budget.share(params.cutting_share)
    cuts = cut_configuration_lp(arrays, bound, state, part, params.cutting)
    state.notes["cuts"] = len(cuts)
    _improve(arrays, bound, windows, params, rng)
    return budget.status


def _improve(
    arrays: OfflineArrays,
    bound: ConfigurationBound,
    windows: WindowSearch,
    params: ConfigurationParams,
    rng: np.random.Generator,
) -> None:
    """Improve the best solution until the budget or the bound is reached."""
    best = windows.best
    state, budget = best.state, best.state.budget
    duals = DualValues.of(arrays, bound.worker_prices, bound.ps_prices, params.priority)
    part = budget.share(params.search_share)
    state.enter(Phase.INSERTION)
    insert_in_orders(arrays, duals, best, rng, part, params.insertion)
    state.enter(Phase.RUIN_AND_RECREATE)
    ruin_and_recreate(duals, best, rng, part, params.ruin)
    neighbourhoods = Neighbourhoods(duals, best, rng, params.neighbourhood)
    searches = [
        (Phase.WINDOWS, windows.search),
        (Phase.NEIGHBOURHOODS, neighbourhoods.search),
    ]
    Alternation(searches, best, params.alternation).search(budget)


COLGEN = Method("colgen", ConfigurationParams, _run, needs_prices=True)
