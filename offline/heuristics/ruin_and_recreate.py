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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers.budget import Budget
from offline.column_generation.pricing import empty, price, pricing_work
from offline.heuristics.best_solution import BestSolution, PartialSolution, is_better
from offline.heuristics.params import InsertionParams, RuinParams
from offline.model.arrays import OfflineArrays

# Standard deviation of the normal variable whose exponential multiplies a job's priority:
# orders differ enough that twenty of them are worth trying, and the best jobs still come first.
PRIORITY_NOISE = 0.3
# Of a job's best utility: what counts as payoff where it has none, so that it is tried now and
# then.
HOPE = 0.05
# The temperature falls with the square root of 1 plus the steps divided by this.
COOLING_STEPS = 100
# Jobs from outside that are tried in a step, at most: about as many as leave.
MOST_INVITED = 6
# Standard deviation of the normal variable whose exponential multiplies all prices: they are those
# of fractions, and whole jobs fit better at prices somewhat higher or lower.
PRICE_NOISE = 0.5

LEAST = 1e-3  # of a job's best utility: its priority without payoff
TINY = 1e-12  # so that every job has some chance


@dataclass(frozen=True, slots=True, eq=False)
class DualValues:
    """Prices of a bound, and what jobs are worth at these.

    Parameters
    ----------
    worker_prices, ps_prices : (T, H, R) and (T, K, R) float arrays
        Prices of the bound.
    payoffs : (I,) float array
        Best payoff of each job at these prices on the empty cluster, mu_i; 0 if none is positive.
    best : (I,) float array
        Utility of each job at its earliest possible completion.
    """

    worker_prices: FloatArray
    ps_prices: FloatArray
    payoffs: FloatArray
    best: FloatArray

    @classmethod
    def of(
        cls, arrays: OfflineArrays, worker_prices: FloatArray, ps_prices: FloatArray
    ) -> DualValues:
        """Price every job at these prices, and at none, on the empty cluster."""
        dear = empty(arrays, worker_prices, ps_prices)
        free = empty(arrays, worker_prices * 0.0, ps_prices * 0.0)
        payoffs, best = (
            np.array([price(job, ledger)[0] for job in arrays.jobs]) for ledger in (dear, free)
        )
        return cls(worker_prices, ps_prices, payoffs, best)

    @property
    def chances(self) -> FloatArray:
        """How likely each job is tried again, up to a factor; shape (I,)."""
        chances: FloatArray = self.payoffs + HOPE * self.best + TINY
        return chances

    def order(self, jobs: Sequence[int], rng: np.random.Generator) -> list[int]:
        """Jobs by payoff, by payoff per utility or at random, with some noise."""
        noise = np.exp(rng.normal(0.0, PRIORITY_NOISE, len(jobs)))
        ids = np.array(jobs, dtype=np.int64)
        keys = (self.payoffs[ids], self.payoffs[ids] / np.maximum(self.best[ids], 1e-300))
        choice = int(rng.integers(3))
        key = (keys[choice] + LEAST * self.best[ids]) * noise if choice < 2 else noise
        return [jobs[k] for k in np.argsort(-key, kind="stable").tolist()]


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
        budget.charge(len(arrays.forms) * pricing_work(arrays))
        best.offer(solution)


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
    arrays = current.arrays
    patience = params.patience * len(arrays.jobs)
    step_work = STEP_JOBS * len(arrays.forms) / max(1, len(arrays.jobs)) * pricing_work(arrays)
    while not budget.passed and not best.is_proven and steps - improved < patience:
        steps += 1
        trial = _step(current, duals, rng, params)
        budget.charge(step_work)
        loss = current.value - trial.value
        heat = params.temperature * highest / math.sqrt(1 + steps / COOLING_STEPS)
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
    count = min(len(outside), 1 + int(rng.integers(MOST_INVITED)))
    invited: list[int] = []
    if count:
        chances = duals.chances[outside]
        picks = rng.choice(len(outside), size=count, replace=False, p=chances / chances.sum())
        invited = [outside[k] for k in picks.tolist()]
    scale = float(np.exp(rng.normal(0.0, PRICE_NOISE)))
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
