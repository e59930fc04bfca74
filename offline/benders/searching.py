"""The search for schedules in a process of its own, beside the masters of another one.

It tells the other process of better schedules and of cuts that it needed on the way, and hears of
schedules, bounds, cuts, the completions of the relaxation, and the plans of the masters.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oasis.model.instance import Instance
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.benders.params import BendersParams
from offline.benders.parts import Parts
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.dual_values import DualValues
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.processes.messages import Message, Partner
from offline.state import Phase, SolveState
from offline.warm_start import WarmStart


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
