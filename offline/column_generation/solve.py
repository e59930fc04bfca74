"""Offline solve at the paper's scale: the configuration LP, and heuristics that follow it."""

from __future__ import annotations

import numpy as np

from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.column_generation.bound import solve_configuration_lp
from offline.column_generation.cutting import cut_configuration_lp
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.recombination import Alternation, take_up
from offline.heuristics.window_search import WindowSearch
from offline.params import ColumnGenerationParams, ConfigurationParams
from offline.problem import Method, OfflineProblem, seed_of
from offline.processes import Helper, Partner, ProcessTask, has_second_core
from offline.state import OnlinePrices, Phase

# More classes than in a bound alone, as the prices are what the cuts begin with.
PRICING = ColumnGenerationParams(classes=(3, 6))
MOST_SHARE = 0.2  # of what is left for one turn of the search at the end
MIX_LIMIT = 5.0  # most seconds for each mix of what the two processes have found
# Most seconds or units of work of the search in windows before the bound: it goes on after it.
START_LIMIT = 20.0
# While another process searches for schedules, the bound has this share of the limit, at most the
# second number in seconds, if that is more than its share without a helper.
HELPED_SHARE = 0.6
HELPED_LIMIT = 40.0


class Heuristics:
    """All heuristics of the method, around one best solution."""

    def __init__(
        self,
        problem: OfflineProblem,
        params: ConfigurationParams,
        stop: Budget,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.params, self.stop, self.rng = problem, params, stop, rng
        self.state, self.arrays = problem.state, problem.arrays
        self.best = BestSolution(self.arrays, self.state)
        self.windows = WindowSearch(self.arrays, self.best, rng)

    def start(self) -> None:
        """Search without prices: ruin and recreate in windows of time."""
        self.windows.start(self.stop.share(self.params.start_share).within(START_LIMIT))

    def improve(self) -> None:
        """Search in windows until the budget or the bound is reached."""
        searches = [(Phase.WINDOWS, self.windows.search)]
        turns = self.params.first_turn, MOST_SHARE, self._take_up_others
        Alternation(searches, self.best, *turns).search(self.stop)

    def _take_up_others(self) -> None:
        """Mix in the schedules that another process has found, if any."""
        take_up(self.best, self.stop.within(MIX_LIMIT))


class Configuration(Method[ConfigurationParams]):
    """Method "colgen": the configuration LP with cuts, and heuristics."""

    name, kind, needs_prices = "colgen", ConfigurationParams, True

    def solve(self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator) -> Status:
        """Bound the optimum and find schedules, if a second core is free, in two processes."""
        params, prices = self.params, problem.start.prices
        assert prices is not None
        may_start = params.second_process and not stop.is_repeatable
        heuristics = Heuristics(problem, params, stop, rng)
        if not (may_start and stop.left > params.process_limit and has_second_core()):
            heuristics.start()
            return self._bound_and_improve(heuristics, prices)
        task = ProcessTask("heuristics", Phase.WINDOWS, params, seed_of(rng))
        with Helper(problem.state, task) as helper:
            return self._bound_and_improve(heuristics, prices, helper)

    def assist(
        self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator, partner: Partner
    ) -> Status:
        """Look for schedules while the other process solves the LP."""
        heuristics = Heuristics(problem, self.params, stop, rng)
        heuristics.start()
        heuristics.improve()
        return Status.OPTIMAL if problem.state.is_proven else stop.status

    def _bound_and_improve(
        self, heuristics: Heuristics, start: OnlinePrices, helper: Helper | None = None
    ) -> Status:
        """Solve the configuration LP, add cuts, then run heuristics; return why it ended."""
        params, stop = self.params, heuristics.stop
        state, arrays = heuristics.state, heuristics.arrays
        state.enter(Phase.CONFIGURATION_LP)
        part = stop.share(params.bound_share)
        if helper is not None:
            longer = stop.share(HELPED_SHARE).within(HELPED_LIMIT)
            part = max(part, longer, key=lambda budget: budget.left)
        bound = solve_configuration_lp(arrays, start, state, part, PRICING)
        state.notes.update(configuration_lp=str(bound.status), rounds=len(bound.rounds))
        if bound.status is Status.INTERRUPTED:
            return bound.status
        state.enter(Phase.CUTS_IN_SLOTS)
        part = stop.share(params.cutting_share)
        with state.in_time():
            cuts = cut_configuration_lp(arrays, bound, state, part)
            state.notes["cuts"] = len(cuts)
        if helper is not None and not helper.is_working:
            heuristics.start()
        heuristics.improve()
        return stop.status
