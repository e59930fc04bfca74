"""The parts of the decomposition, put together: master, cuts, and the searches for schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import BendersParams
from offline.benders.primal import PrimalHeuristic
from offline.benders.replanning import Replanning
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.dual_values import DualValues
from offline.heuristics.recombination import Alternation
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.state import Phase


class Parts(NamedTuple):
    """Objects shared by the masters and the search for schedules."""

    model: CountModel
    separation: Separation
    primal: PrimalHeuristic
    replanning: Replanning | None
    searches: Alternation
    best: BestSolution

    @classmethod
    def of(
        cls,
        arrays: OfflineArrays,
        duals: DualValues,
        best: BestSolution,
        windows: WindowSearch,
        rng: np.random.Generator,
        params: BendersParams,
    ) -> Parts:
        """Make them for a problem, with these prices and schedules to start from."""
        model = CountModel(arrays, best.state.budget)
        separation = Separation(model, params.cuts)
        given = model, separation, best, duals, rng
        primal = PrimalHeuristic(*given, params.primal, params.shortfall)
        searches: list[tuple[Phase, Callable[[Budget], bool]]]
        searches = [(Phase.WINDOWS, windows.search)]
        replanning = None
        if model.size > params.master.whole_size:
            steering = params.replanning
            replanning = Replanning(model, separation, primal, best, duals, rng, steering)
            searches.insert(0, (Phase.REPLANNING, replanning.search))
        turns = Alternation(searches, best, params.alternation)
        return cls(model, separation, primal, replanning, turns, best)
