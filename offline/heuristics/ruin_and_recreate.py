"""Large-neighbourhood search: take some jobs out, put them and others back in a better way.

Ruin and recreate with the best-schedule search as the repair: a few jobs that run at the same
time leave, then they and some rejected jobs are inserted one by one where the prices of the
configuration LP say that it costs others least. Worse solutions are accepted as in simulated
annealing.

References
----------
Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, Record breaking optimization results using the ruin
and recreate principle, J. Computational Physics 159(2), 2000.
"""

from __future__ import annotations

import math

import numpy as np

from oasis.solvers.budget import Budget
from offline.column_generation.pricing import pricing_work
from offline.heuristics.best_solution import BestSolution, is_better
from offline.heuristics.dual_values import DualValues
from offline.heuristics.params import RuinParams
from offline.heuristics.partial_solution import PartialSolution

STEP_JOBS = 7  # jobs inserted in one step, on average, for the work that is charged


def ruin_and_recreate(
    duals: DualValues,
    best: BestSolution,
    rng: np.random.Generator,
    budget: Budget,
    params: RuinParams,
) -> None:
    """Search until the budget or the bound is reached, or nothing better was found for long.

    Parameters
    ----------
    duals : DualValues
        The prices, and what they make of each job.
    best : BestSolution
        Where to start, and where better solutions go.
    rng : numpy.random.Generator
        Of all choices.
    budget : Budget
        When to stop.
    params : RuinParams
        How much leaves, what is accepted and how many steps may find nothing.
    """
    current = best.solution
    highest, steps, improved = current.value, 0, 0
    patience = params.patience * len(current.arrays.jobs)
    while not budget.passed and not best.is_proven and steps - improved < patience:
        steps += 1
        trial = _step(current, duals, rng, params)
        budget.charge(STEP_JOBS * pricing_work(current.arrays))
        loss = current.value - trial.value
        heat = params.temperature * highest / math.sqrt(1 + steps / params.cooling_steps)
        if loss <= 0 or rng.random() < math.exp(-loss / max(heat, 1e-300)):
            current = trial
        if is_better(trial.value, highest):
            highest, improved = trial.value, steps
            best.offer(trial)


def _step(
    current: PartialSolution, duals: DualValues, rng: np.random.Generator, params: RuinParams
) -> PartialSolution:
    trial = current.copy()
    leaving = _leaving(current, rng, params)
    for index in leaving:
        trial.remove(index)
    outside = [
        k
        for k in range(len(current.arrays.jobs))
        if k not in current.schedules and duals.best[k] > 0
    ]
    count = min(len(outside), 1 + int(rng.integers(params.most_invited)))
    invited: list[int] = []
    if count:
        chances = duals.chances[outside]
        picks = rng.choice(len(outside), size=count, replace=False, p=chances / chances.sum())
        invited = [outside[k] for k in picks.tolist()]
    scale = float(np.exp(rng.normal(0.0, params.price_noise)))
    order = duals.order(leaving + invited, rng)
    trial.fill(order, duals.worker_prices * scale, duals.ps_prices * scale)
    return trial


def _leaving(current: PartialSolution, rng: np.random.Generator, params: RuinParams) -> list[int]:
    """Jobs to take out: at random, or those that run next to a random slot."""
    inside = sorted(current.schedules)
    if not inside:
        return []
    count = min(len(inside), 1 + int(rng.integers(params.most_leaving)))
    if rng.random() < params.random_share:
        return [inside[k] for k in rng.permutation(len(inside))[:count].tolist()]
    distance = current.distances(inside, int(rng.integers(current.arrays.horizon)))
    order = np.lexsort((rng.random(len(inside)), distance))
    return [inside[k] for k in order[:count].tolist()]
