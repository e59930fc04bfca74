"""Large-neighbourhood search: take some jobs out, put them and others back in a better way.

Ruin and recreate with the best-schedule search as the repair: a few jobs that run at the same
time leave, then they and some rejected jobs are inserted one by one where the prices of the
configuration LP say that it costs others least.

References
----------
Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, Record breaking optimization results using the ruin
and recreate principle, J. Computational Physics 159(2), 2000.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers.budget import Budget
from offline.column_generation.pricing import pricing_work
from offline.heuristics.partial_solution import Occupancy

TEMPERATURE = 0.003  # of the total utility: what a step may lose at first
NOISE = 0.3
STEP_JOBS = 7  # jobs inserted in one step, on average


class Keeper(Protocol):
    """Where better solutions go."""

    def offer(self, solution: Occupancy) -> bool:
        """Take note of a solution; whether it is the best so far."""
        ...

    @property
    def is_proven(self) -> bool:
        """Whether nothing can be better than the best so far."""
        ...


@dataclass(slots=True)
class Guide:
    """What the configuration LP knows about prices and jobs.

    Parameters
    ----------
    worker_prices, ps_prices : (T, H, R) and (T, K, R) float arrays
        Prices of the bound.
    payoffs : (I,) float array
        Best payoff of each job at these prices on the empty cluster; 0 if none is positive.
    best : (I,) float array
        Utility of each job at its earliest possible completion.
    """

    worker_prices: FloatArray
    ps_prices: FloatArray
    payoffs: FloatArray
    best: FloatArray

    def order(self, jobs: list[int], rng: np.random.Generator) -> list[int]:
        """Jobs by payoff, by payoff per utility or at random, with some noise."""
        noise = np.exp(rng.normal(0.0, NOISE, len(jobs)))
        ids = np.array(jobs, dtype=np.int64)
        keys = (self.payoffs[ids], self.payoffs[ids] / np.maximum(self.best[ids], 1e-300))
        choice = int(rng.integers(3))
        key = (keys[choice] + 1e-3 * self.best[ids]) * noise if choice < 2 else noise
        return [jobs[k] for k in np.argsort(-key, kind="stable").tolist()]


def search(
    start: Occupancy,
    guide: Guide,
    rng: np.random.Generator,
    budget: Budget,
    keep: Keeper,
) -> None:
    """Offer better solutions than `start` to `keep` until the budget or the bound is reached."""
    current = best = start
    steps = 0
    while not budget.passed and not keep.is_proven:
        steps += 1
        trial = _step(current, guide, rng)
        budget.charge(STEP_JOBS * pricing_work(current.instance))
        loss = current.value - trial.value
        heat = TEMPERATURE * best.value / math.sqrt(1 + steps / 100)
        if loss <= 0 or rng.random() < math.exp(-loss / max(heat, 1e-300)):
            current = trial
        if trial.value > best.value * (1 + 1e-12):
            best = trial
            keep.offer(best)


def _step(current: Occupancy, guide: Guide, rng: np.random.Generator) -> Occupancy:
    trial = current.copy()
    leaving = _leaving(current, rng)
    for index in leaving:
        trial.remove(index)
    jobs = range(len(current.instance.jobs))
    outside = [k for k in jobs if k not in current.schedules and guide.best[k] > 0]
    count = min(len(outside), 1 + int(rng.integers(6)))
    chances = guide.payoffs[outside] + 0.05 * guide.best[outside] + 1e-12
    invited: list[int] = []
    if count:
        picks = rng.choice(len(outside), size=count, replace=False, p=chances / chances.sum())
        invited = [outside[k] for k in picks.tolist()]
    scale = float(np.exp(rng.normal(0.0, 0.5)))
    trial.fill(
        guide.order(leaving + invited, rng),
        guide.worker_prices * scale,
        guide.ps_prices * scale,
    )
    return trial


def _leaving(current: Occupancy, rng: np.random.Generator) -> list[int]:
    """Jobs to take out: at random, or those that run in a random window of slots."""
    inside = sorted(current.schedules)
    if not inside:
        return []
    count = min(len(inside), 1 + int(rng.integers(6)))
    if rng.random() < 0.5:
        return [inside[k] for k in rng.permutation(len(inside))[:count].tolist()]
    slot = int(rng.integers(current.instance.horizon))
    distance = [
        max(0, current.schedules[k].start - slot, slot - current.schedules[k].completion)
        for k in inside
    ]
    order = np.lexsort((rng.random(len(inside)), np.array(distance)))
    return [inside[k] for k in order[:count].tolist()]
