"""Exact offline solve by logic-based Benders decomposition: how many, then where.

The master (`offline.benders.master`) chooses completions and the workers and parameter servers of
each job in each slot; the subproblem places the counts of one slot on the servers. Counts that
cannot be placed give a cut from the patterns of single servers, which holds in every slot
(`offline.patterns`), or, where patterns fit fractionally, are forbidden in theirs. The
master's bound holds throughout; a plan whose slots can all be placed is worth what the master says.

References
----------
Hooker and Ottosson, Logic-based Benders decomposition, Mathematical Programming 96, 2003.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oasis.model.instance import Instance
from oasis.solvers import SolveProgress, Status
from oasis.solvers.budget import Budget
from offline.benders.decomposition import Decomposition
from offline.benders.params import BendersParams
from offline.benders.parts import Parts
from offline.column_generation.bound import solve_configuration_lp
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.ruin_and_recreate import DualValues, insert_in_orders, ruin_and_recreate
from offline.heuristics.window_search import WindowSearch
from offline.method import Method
from offline.model.arrays import OfflineArrays
from offline.processes import Helper, Message, Partner, ProcessTask, has_second_core
from offline.result import OfflineResult
from offline.state import OnlinePrices, Phase, SolveState, Start, WarmStart


def solve_benders(
    instance: Instance,
    time_limit: float | None = 60.0,
    *,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
    seed: int = 0,
    params: BendersParams | Mapping[str, Any] | None = None,
    warm_start: Start = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
) -> OfflineResult:
    """Solve the offline problem by logic-based Benders decomposition; see `offline.solve`.

    Without a limit it ends only with a proof. ``result.parameters`` has ``processes`` where a
    second one looked for schedules, and ``schedule_search_failed`` with the reason if that failed
    and this process went on alone.

    Examples
    --------
    >>> import oasis
    >>> from offline import solve_benders
    >>> instance = oasis.generate("testbed", jobs=4, worker_servers=2, ps_servers=2, seed=1)
    >>> solve_benders(instance).status
    <Status.OPTIMAL: 'optimal'>
    """
    return BENDERS.solve(
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
    instance: Instance, start: WarmStart, state: SolveState, params: BendersParams, seed: int
) -> Status:
    assert start.prices is not None
    decomposition = prepared(instance, start.prices, state, params, np.random.default_rng(seed))
    parts, left = decomposition.parts, state.budget.left
    is_large = parts.replanning is not None and left > params.process_limit
    may_start = params.second_process and not state.budget.is_repeatable
    if not (is_large and may_start and has_second_core()):
        return decomposition.run()
    duals = parts.neighbourhoods.duals
    prices = duals.worker_prices, duals.ps_prices
    task = ProcessTask("schedule search", Phase.REPLANNING, params, seed, prices)
    with Helper(instance, state, task, head_start=0.0) as helper:
        return decomposition.run(helper)


def prepared(
    instance: Instance,
    prices: OnlinePrices,
    state: SolveState,
    params: BendersParams,
    rng: np.random.Generator,
) -> Decomposition:
    """The decomposition with all its parts, after the bound and the heuristics that guide it.

    Parameters
    ----------
    instance : Instance
        The problem.
    prices : OnlinePrices
        Where the configuration LP starts.
    state : SolveState
        With an incumbent; is told of all that is learnt.
    params : BendersParams
        How the time is spent.
    rng : numpy.random.Generator
        Of all random choices.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    arrays, budget = OfflineArrays.of(instance), state.budget
    best = BestSolution.of(instance, arrays, state)
    windows = WindowSearch(arrays, best, rng, params.windows)
    windows.start(budget.share(params.search_share).within(params.search_limit))
    state.enter(Phase.CONFIGURATION_LP)
    part = budget.share(params.prices_share)
    bound = solve_configuration_lp(instance, arrays, prices, state, part, params.pricing)
    if bound.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    duals = DualValues.of(arrays, bound.worker_prices, bound.ps_prices, params.priority)
    part = budget.share(params.search_share).within(params.search_limit)
    state.enter(Phase.INSERTION)
    insert_in_orders(arrays, duals, best, rng, part, params.insertion)
    state.enter(Phase.RUIN_AND_RECREATE)
    ruin_and_recreate(duals, best, rng, part, params.ruin)
    parts = Parts.of(arrays, duals, best, windows, rng, params)
    state.proved(parts.model.trivial_bound, Phase.TRIVIAL)
    return Decomposition(parts, params)


BENDERS = Method("benders", BendersParams, _run, needs_prices=True)


class ScheduleSearch:
    """Searches in turn, and mixes of the best schedules with the plans of the other process.

    Parameters
    ----------
    parts : Parts
        The searches, and what they work with.
    params : BendersParams
        How the time is spent.
    partner : Partner
        The other process.
    """

    def __init__(self, parts: Parts, params: BendersParams, partner: Partner) -> None:
        self.parts, self.params = parts, params
        parts.separation.share(partner)
        self._plan: Mapping[str, int] | None = None
        self._relaxation: Mapping[str, range] | None = None
        self._unsettled: Mapping[str, int] | None = None  # the last plan, while dives may differ
        if parts.replanning is not None:
            parts.replanning.gives_way = lambda: self._plan is not None
        partner.on("plan", self._take_plan)
        partner.on("relaxation", self._take_relaxation)

    def run(self) -> Status:
        """Search until there is no time left, or nothing left to gain."""
        best = self.parts.best
        budget = best.state.budget
        while not (budget.passed or best.is_proven):
            best.catch_up()
            self._approach(budget)
            self.parts.searches.search(budget.within(self.params.patch_limit))
        return Status.OPTIMAL if best.is_proven else budget.status

    def _approach(self, budget: Budget) -> None:
        """Dive from what the other process has told of since the last time, if there is anything.

        Where that is both a plan and a relaxation, only the plan counts, and it is mixed with the
        best schedules, too. If there is nothing new, another dive from the last plan has another
        reserve, and knows from the start the cuts that were found; over long horizons that takes
        too long.
        """
        plan, relaxation = self._plan, self._relaxation
        is_further = plan is None and relaxation is None
        if is_further:
            plan = self._unsettled
        self._plan = self._relaxation = self._unsettled = None
        model, primal, replanning = self.parts.model, self.parts.primal, self.parts.replanning
        if plan is not None:
            self.parts.best.state.enter(Phase.PLANS)
            near = model.near(plan, self.params.master.window)
            primal.dive(near, budget, plan=plan, is_further=is_further)
            if replanning is not None:
                may_differ = replanning.is_whole and not primal.is_settled
                self._unsettled = plan if may_differ else None
                replanning.mix(plan, budget)
        elif relaxation is not None:
            self.parts.best.state.enter(Phase.PLANS)
            primal.dive(model.completing(relaxation), budget, is_wide=True)

    def _take_plan(self, message: Message) -> None:
        """Keep a plan until its turn comes; only the last one counts."""
        self._plan = plan = dict(message["plan"])
        self.parts.neighbourhoods.wanted = [self.parts.model.index[name] for name in plan]

    def _take_relaxation(self, message: Message) -> None:
        """Keep when jobs complete in a relaxation until its turn comes."""
        ends = message["relaxation"].items()
        self._relaxation = {name: range(first, last + 1) for name, (first, last) in ends}


def search_for_schedules(
    instance: Instance,
    start: WarmStart,
    state: SolveState,
    params: BendersParams,
    seed: int,
    partner: Partner,
) -> Status:
    """Look for schedules until the budget is spent; a task of a second process.

    Parameters
    ----------
    instance : Instance
        The problem.
    start : WarmStart
        With the prices that guide the searches.
    state : SolveState
        With an incumbent; is told of better ones.
    params : BendersParams
        How the time is spent.
    seed : int
        Of all random choices.
    partner : Partner
        The other process.
    """
    assert start.prices is not None
    arrays, rng = OfflineArrays.of(instance), np.random.default_rng(seed)
    best = BestSolution.of(instance, arrays, state)
    duals = DualValues.of(arrays, start.prices.worker, start.prices.ps, params.priority)
    windows = WindowSearch(arrays, best, rng, params.windows)
    parts = Parts.of(arrays, duals, best, windows, rng, params)
    return ScheduleSearch(parts, params, partner).run()
