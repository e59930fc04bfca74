"""Integer knapsacks with several resources, solved with HiGHS: small, and thousands of them.

Built without PuLP and solved without a thread of its own, in a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import highspy
import numpy as np

from oasis.model.errors import SolverError
from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers import highs
from oasis.solvers.answers import bound_correction, translate
from oasis.solvers.arrays import ArrayModel
from oasis.solvers.budget import Budget
from oasis.solvers.highs import ROW_SCALE

NODES = 20_000
# The largest value of an item for HiGHS, whose presolve takes two items for the same if their
# values differ by less than 1e-9: a bound can be too low by 1e-12 of the largest value a unit.
SCALE = 1024.0
KNAPSACK_WORK, NODE_WORK = 2e-3, 2e-4  # of one knapsack and of one node, in units of about a second
_ENDS = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kSolutionLimit)

# What HiGHS does for large models takes six times as long as these take to solve. Without a gap
# it enumerates all equal selections where its bound is 1e-9 above the best of them.
_PLAIN: dict[str, float | bool] = {
    "mip_allow_cut_separation_at_nodes": False,
    "mip_lp_age_limit": 1,
    "mip_pool_age_limit": 1,
    "mip_pool_soft_limit": 1,
    "mip_pscost_minreliable": 1,
    "mip_rel_gap": 1e-6,
    "mip_detect_symmetry": False,
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
}


def knapsack(
    values: FloatArray,
    shares: FloatArray,
    upper: IntArray,
    limit: float,
    budget: Budget,
    covers: Sequence[Sequence[tuple[IntArray, int]]] = (),
) -> tuple[float, IntArray]:
    """Find the most valuable items that fit together.

    Parameters
    ----------
    values : (I,) float array
        Value of one unit of each item, positive.
    shares : (I, R) float array
        Share of each resource that one unit takes.
    upper : (I,) int array
        Most units of each item.
    limit : float
        Most of each resource.
    budget : Budget
        What the work is charged to; a knapsack is never cut short by it.
    covers : sequence of sequences of ((n,) int array, int)
        Items and a number of units. Of one pair of each sequence, a selection has fewer units.

    Returns
    -------
    bound : float
        No selection is worth more, but for 1e-12 of the largest value for each unit: HiGHS's dual
        bound. Within 1e-6 of the selection, relative, unless that takes more than `NODES` nodes.
    units : (I,) int array
        The selection.
    """
    solver = highs.new_solver(None, NODES, presolve=True, seed=0)
    highs.configure(solver, _PLAIN)
    rows = np.flatnonzero(upper @ shares > limit)
    table, limits = shares[:, rows].T, np.full(len(rows), limit)
    items, scale = len(values), float(values.max()) / SCALE
    model = ArrayModel.packing(values / scale, upper, table, limits)
    for number, levels in enumerate(covers):
        model = model.below(levels, f"cover_{number}")
    solver.passModel(translate(model, 1.0, ROW_SCALE))
    solver.run()
    budget.charge(KNAPSACK_WORK + NODE_WORK * max(0, solver.getInfo().mip_node_count))
    if solver.getModelStatus() not in _ENDS:
        text = solver.modelStatusToString(solver.getModelStatus())
        raise SolverError(f"HiGHS ended a knapsack with the status {text!r}")
    solution = solver.getSolution()
    units = np.zeros(items, dtype=np.int64)
    if solution.value_valid:
        units = np.rint(np.array(solution.col_value)[:items]).astype(np.int64)
    bound = float(values @ upper)
    if len(model.rows):
        bound = (solver.getInfo().mip_dual_bound + bound_correction(solver)) * scale
    return max(bound, float(values @ units)), units
