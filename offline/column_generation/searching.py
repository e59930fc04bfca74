"""The search for schedules of the method "colgen", in the main process or in a second one."""

from __future__ import annotations

import numpy as np

from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.solvers import Status
from offline.column_generation.params import ConfigurationParams
from offline.heuristics.alternation import Alternation
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.dual_values import DualValues
from offline.heuristics.fix_and_optimise import Neighbourhoods
from offline.heuristics.insertion import insert_in_orders
from offline.heuristics.recombination import take_up
from offline.heuristics.recourse_run import follow_recourse
from offline.heuristics.ruin_and_recreate import ruin_and_recreate
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.processes.messages import Message, Partner
from offline.state import Phase, SolveState
from offline.warm_start import WarmStart


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
        worker, ps = map(np.array, message["prices"])
        neighbourhoods.duals = heuristics.duals(worker, ps)

    partner.on("prices", take_prices)
    heuristics.improve(neighbourhoods)
    return Status.OPTIMAL if state.is_proven else state.budget.status
