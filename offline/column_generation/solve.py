"""Offline solve at the paper's scale: the configuration LP, and heuristics that follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.solvers import SolveProgress, Status
from offline.column_generation.bound import solve_configuration_lp
from offline.column_generation.cutting import cut_configuration_lp
from offline.column_generation.params import ConfigurationParams
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.neighbourhood import Neighbourhoods
from offline.heuristics.recombination import Alternation, take_up
from offline.heuristics.recourse_run import follow_recourse
from offline.heuristics.ruin_and_recreate import DualValues, insert_in_orders, ruin_and_recreate
from offline.heuristics.window_search import WindowSearch
from offline.method import Method
from offline.model.arrays import OfflineArrays
from offline.processes import Helper, Message, Partner, ProcessTask, has_second_core
from offline.result import OfflineResult
from offline.state import Phase, SolveState, Start, WarmStart, read_prices


class Heuristics:
    """All heuristics of the method, around one best solution.

    Parameters
    ----------
    instance : Instance
        The problem.
    state : SolveState
        With an incumbent; is told of better ones, and has those of another process.
    seed : int
        Of all random choices.
    params : ConfigurationParams
        How the time is spent.
    """

    def __init__(
        self, instance: Instance, state: SolveState, seed: int, params: ConfigurationParams
    ) -> None:
        self.instance, self.state, self.seed, self.params = instance, state, seed, params
        self.arrays, self.rng = OfflineArrays.of(instance), np.random.default_rng(seed)
        self.best = BestSolution.of(instance, self.arrays, state)
        self.windows = WindowSearch(self.arrays, self.best, self.rng, params.windows)

    def start(self) -> None:
        """Search without prices: ruin and recreate in windows of time, then a run of recourse."""
        budget, params = self.state.budget, self.params
        self.windows.start(budget.share(params.start_share).within(params.start_limit))
        part = budget.share(params.recourse_share)
        follow_recourse(self.instance, self.arrays, self.best, self.seed, part, params.recourse)

    def build(self, duals: DualValues) -> None:
        """Plan all jobs anew by their payoffs, then ruin and recreate at the prices."""
        params, state = self.params, self.state
        self._take_up_others()
        part = state.budget.share(params.search_share)
        state.enter(Phase.INSERTION)
        insert_in_orders(self.arrays, duals, self.best, self.rng, part, params.insertion)
        state.enter(Phase.RUIN_AND_RECREATE)
        ruin_and_recreate(duals, self.best, self.rng, part, params.ruin)

    def improve(self, neighbourhoods: Neighbourhoods) -> None:
        """Search in windows and in neighbourhoods until the budget or the bound is reached."""
        budget = self.state.budget
        searches = [
            (Phase.WINDOWS, self.windows.search),
            (Phase.NEIGHBOURHOODS, neighbourhoods.search),
        ]
        steering = self.params.alternation
        Alternation(searches, self.best, steering, self._take_up_others).search(budget)

    def _take_up_others(self) -> None:
        """Mix in what another process has found, if there is any."""
        take_up(self.best, self.state.budget.within(self.params.mix_limit))

    def duals(self, worker_prices: FloatArray, ps_prices: FloatArray) -> DualValues:
        """What prices say about the jobs."""
        return DualValues.of(self.arrays, worker_prices, ps_prices, self.params.priority)

    def neighbourhoods(self, duals: DualValues) -> Neighbourhoods:
        """The search in neighbourhoods, from the best solution on."""
        return Neighbourhoods(duals, self.best, self.rng, self.params.neighbourhood)


def search_beside_bound(
    instance: Instance,
    start: WarmStart,
    state: SolveState,
    params: ConfigurationParams,
    seed: int,
    partner: Partner,
) -> Status:
    """Look for schedules until the budget is spent; a task of a second process.

    It begins while the other process solves the configuration LP, whose prices come later.

    Parameters
    ----------
    instance : Instance
        The problem.
    start : WarmStart
        With prices for the time before.
    state : SolveState
        With an incumbent; is told of better ones.
    params : ConfigurationParams
        How the time is spent.
    seed : int
        Of all random choices.
    partner : Partner
        The other process.
    """
    assert start.prices is not None
    heuristics = Heuristics(instance, state, seed, params)
    heuristics.start()
    neighbourhoods = heuristics.neighbourhoods(
        heuristics.duals(start.prices.worker, start.prices.ps)
    )

    def take_prices(message: Message) -> None:
        neighbourhoods.duals = heuristics.duals(*read_prices(message["prices"], instance))

    partner.on("prices", take_prices)
    heuristics.improve(neighbourhoods)
    return Status.OPTIMAL if state.is_proven else state.budget.status


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
    task = ProcessTask("heuristics", Phase.WINDOWS, params, seed, prices)
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
