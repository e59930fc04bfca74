"""The parts of the decomposition, put together: master, cuts, and the searches for schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.primal import PrimalHeuristic
from offline.benders.replanning import Replanning
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.dual_values import DualValues
from offline.heuristics.recombination import Alternation
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.params import BendersParams
from offline.state import Phase

FIRST_TURN = 3.0  # of a search, in seconds or units of work


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
        separation = Separation(model)
        given = model, separation, best, duals, rng
        primal = PrimalHeuristic(*given)
        searches: list[tuple[Phase, Callable[[Budget], bool]]]
        searches = [(Phase.WINDOWS, windows.search)]
        replanning = None
        if model.size > params.whole_size:
            replanning = Replanning(model, separation, primal, best, duals, rng, params.span)
            searches.insert(0, (Phase.REPLANNING, replanning.search))
        turns = Alternation(searches, best, FIRST_TURN)
        return cls(model, separation, primal, replanning, turns, best)
