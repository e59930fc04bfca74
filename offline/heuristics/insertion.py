"""Sequential insertion: job after job where the dual values say that it costs others least."""

from __future__ import annotations

import numpy as np

from oasis.solvers.budget import Budget
from offline.column_generation.pricing import pricing_work
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.dual_values import DualValues
from offline.heuristics.params import InsertionParams
from offline.heuristics.partial_solution import PartialSolution
from offline.model.arrays import OfflineArrays


def insert_in_orders(
    arrays: OfflineArrays,
    duals: DualValues,
    best: BestSolution,
    rng: np.random.Generator,
    budget: Budget,
    params: InsertionParams,
) -> None:
    """Insert all jobs into the empty cluster in several orders, at the prices of the bound.

    Parameters
    ----------
    arrays : OfflineArrays
        The problem.
    duals : DualValues
        The prices, and what they make of each job.
    best : BestSolution
        Where better solutions go; insertion ends when it is proven optimal.
    rng : numpy.random.Generator
        Of the orders.
    budget : Budget
        When to stop.
    params : InsertionParams
        How many orders.
    """
    for _ in range(params.orders):
        if budget.passed or best.is_proven:
            return
        solution = PartialSolution(arrays)
        order = duals.order(range(len(arrays.jobs)), rng)
        solution.fill(order, duals.worker_prices, duals.ps_prices)
        budget.charge(len(order) * pricing_work(arrays))
        best.offer(solution)
