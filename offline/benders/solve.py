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

import numpy as np

from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.benders.decomposition import Decomposition, Parts
from offline.column_generation.bound import solve_configuration_lp
from offline.heuristics.best_solution import BestSolution, DualValues
from offline.heuristics.window_search import WindowSearch
from offline.params import BendersParams, ColumnGenerationParams
from offline.problem import Method, OfflineProblem, seed_of
from offline.processes import Helper, Partner, ProcessTask, has_second_core
from offline.state import Phase

# Shares of what is left for the configuration LP, whose prices guide the searches, and for the
# search in windows before it.
PRICES_SHARE = 0.05
SEARCH_SHARE = 0.03
PRICING = ColumnGenerationParams(tolerance=1e-3)


class Benders(Method[BendersParams]):
    """Method "benders": the decomposition, exact without a limit."""

    name, kind, needs_prices = "benders", BendersParams, True

    def solve(self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator) -> Status:
        """Solve by masters and subproblems, beside a search for schedules where that pays."""
        params, state = self.params, problem.state
        decomposition = self.prepare(problem, stop, rng)
        parts, remaining = decomposition.parts, stop.left
        is_large = parts.replanning is not None and remaining > params.process_limit
        may_start = params.second_process and not stop.is_repeatable
        if not (is_large and may_start and has_second_core()):
            return decomposition.run()
        duals = parts.primal.duals
        prices = duals.worker_prices, duals.ps_prices
        task = ProcessTask("schedule search", Phase.REPLANNING, params, seed_of(rng), prices)
        with Helper(state, task) as helper:
            return decomposition.run(helper)

    def prepare(
        self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator
    ) -> Decomposition:
        """Return the decomposition, after solving the LP and running heuristics to guide it."""
        params, state, arrays = self.params, problem.state, problem.arrays
        assert problem.start.prices is not None
        best = BestSolution(arrays, state)
        windows = WindowSearch(arrays, best, rng)
        windows.start(stop.share(SEARCH_SHARE).within(params.search_limit))
        state.enter(Phase.CONFIGURATION_LP)
        part, prices = stop.share(PRICES_SHARE), problem.start.prices
        bound = solve_configuration_lp(arrays, prices, state, part, PRICING)
        if bound.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        duals = DualValues.of(arrays, bound.worker_prices, bound.ps_prices, state.budget)
        parts = Parts.of(arrays, duals, best, windows, rng, params)
        state.record_bound(parts.model.trivial_bound, Phase.TRIVIAL)
        return Decomposition(parts, params, stop)

    def assist(
        self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator, partner: Partner
    ) -> Status:
        """Look for schedules, from the prices that guide the searches, until `stop` is spent."""
        prices, arrays = problem.start.prices, problem.arrays
        assert prices is not None
        with problem.state.in_time():
            best = BestSolution(arrays, problem.state)
            duals = DualValues.of(arrays, prices.worker, prices.ps, problem.state.budget)
            windows = WindowSearch(arrays, best, rng)
            parts = Parts.of(arrays, duals, best, windows, rng, self.params)
            parts.separation.share(partner)
            while not (stop.passed or best.is_proven):
                best.catch_up()
                parts.searches.search(stop.within(self.params.patch_limit))
        return Status.OPTIMAL if problem.state.is_proven else stop.status
