"""Offline solve at the paper's scale: the configuration LP, and heuristics that follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oasis.model.instance import Instance
from oasis.solvers import SolveProgress, Status
from offline.column_generation.bound import solve_configuration_lp
from offline.column_generation.cutting import cut_configuration_lp
from offline.column_generation.params import ConfigurationParams
from offline.column_generation.searching import Heuristics
from offline.method import Method
from offline.processes.helper import Helper, Task, has_second_core
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

    Without a limit it ends only with a proof, which it may never find. ``result.parameters`` has
    ``processes`` where a second one looked for schedules, and ``heuristics_failed`` with the reason
    if that failed and this process went on alone.

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
    budget = state.budget
    may_start = params.second_process and not budget.is_repeatable
    heuristics = Heuristics(instance, state, seed, params)
    if not (may_start and budget.left > params.process_limit and has_second_core()):
        heuristics.start()
        return _bound_and_improve(heuristics, start)
    assert start.prices is not None
    prices = start.prices.worker, start.prices.ps
    task = Task("heuristics", Phase.WINDOWS, params, seed, prices)
    with Helper(instance, state, task, head_start=0.0) as helper:
        return _bound_and_improve(heuristics, start, helper)


def _bound_and_improve(
    heuristics: Heuristics, start: WarmStart, helper: Helper | None = None
) -> Status:
    """The configuration LP and its cuts, then heuristics; `helper` hears of the prices.

    Where the second process has ended by then, this one begins as it would have begun alone.
    """
    assert start.prices is not None
    instance, arrays = heuristics.instance, heuristics.arrays
    state, params = heuristics.state, heuristics.params
    state.enter(Phase.CONFIGURATION_LP)
    part = state.budget.share(params.bound_share)
    if helper is not None:
        longer = state.budget.share(params.helped_share).within(params.helped_limit)
        part = max(part, longer, key=lambda budget: budget.left)
    bound = solve_configuration_lp(instance, arrays, start.prices, state, part, params.pricing)
    state.notes.update(configuration_lp=str(bound.status), rounds=len(bound.rounds))
    if bound.status is Status.INTERRUPTED:
        return bound.status
    prices = bound.worker_prices, bound.ps_prices
    if helper is not None:
        helper.partner.tell({"prices": [table.tolist() for table in prices]})
    state.enter(Phase.CUTS_IN_SLOTS)
    part = state.budget.share(params.cutting_share)
    state.notes["cuts"] = len(cut_configuration_lp(arrays, bound, state, part, params.cutting))
    if helper is not None and not helper.is_working:
        heuristics.start()
    duals = heuristics.duals(*prices)
    heuristics.build(duals)
    heuristics.improve(heuristics.neighbourhoods(duals))
    return state.budget.status


COLGEN = Method("colgen", ConfigurationParams, _run, needs_prices=True)
