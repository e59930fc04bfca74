"""Where a plan does not quite fit: its jobs make up in other slots for the work that they lack.

The counts of a plan hold on all servers together, and a few units may find no server. Jobs lack
work then: they have a shortfall. One slot after the other is filled anew with what its jobs still
need, the jobs that have lacked work for long weighing more and more; so a unit that does not fit
in one slot moves to another one, and pushes others out that fit elsewhere. Jobs for which that
does not help may complete later, or leave.

References
----------
Morris, The breakout method for escaping from local minima, AAAI 1993: the growing weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import ShortfallParams
from offline.benders.slot_model import SlotModel, Units
from offline.model.arrays import GROUPS

LIGHTEST = 1e-3  # of the heaviest worker: the weight of one that takes next to nothing
HEAVIEST = 1e3  # factor on the first weight of a worker, at most: HiGHS sees no larger differences


@dataclass(slots=True)
class Fill:
    """What the slots hold, and when each job is due.

    Parameters
    ----------
    units : list of mapping of str to (I, S) int array
        By slot and group.
    due : (I,) int array
        The slot by which a job is to complete, -1 for jobs that do not run.
    workers : (T, I) int array
        Workers of each job in each slot.
    """

    units: list[Units]
    due: IntArray
    workers: IntArray

    @classmethod
    def of(cls, units: Iterable[Units], due: IntArray) -> Fill:
        """Of units alone."""
        slots = list(units)
        workers = [here["worker"].sum(axis=1) for here in slots]
        return cls(slots, due, np.array(workers, dtype=np.int64))

    def copy(self) -> Fill:
        """An independent copy."""
        return Fill(list(self.units), self.due.copy(), self.workers.copy())

    def shortfall(self, work: IntArray) -> IntArray:
        """Worker-slots (I,) that each job lacks."""
        lacking: IntArray = np.where(self.due >= 0, work - self.workers.sum(axis=0), 0)
        return np.maximum(lacking, 0)


class Shortfall:
    """A search for places of the work that jobs lack.

    Parameters
    ----------
    model : CountModel
        The master.
    slots : SlotModel
        Fills a slot.
    rng : numpy.random.Generator
        Of the order of slots, and of small differences between weights.
    params : ShortfallParams
        How long, and how weights grow.
    """

    def __init__(
        self, model: CountModel, slots: SlotModel, rng: np.random.Generator, params: ShortfallParams
    ) -> None:
        self.model, self.slots, self.rng, self.params = model, slots, rng, params
        self.work = np.array([c.work for c in model.jobs], dtype=np.int64)
        self._parallel = np.array([c.parallel for c in model.jobs], dtype=np.int64)
        self._arrival = np.array([c.job.arrival for c in model.jobs], dtype=np.int64)

    def value(self, fill: Fill, *, finished: bool = False) -> float:
        """Utility of the jobs if all complete when due; of the `finished` ones alone."""
        due = np.where(fill.shortfall(self.work) > 0, -1, fill.due) if finished else fill.due
        pairs = zip(self.model.jobs, due.tolist(), strict=True)
        return math.fsum(c.utility[slot] for c, slot in pairs if slot >= 0)

    def search(self, start: Fill, least: float, budget: Budget) -> Fill:
        """Fill slots anew until no job lacks work, or there is no hope of a gain.

        Parameters
        ----------
        start : Fill
            What was placed of a plan; it is not changed.
        least : float
            What the jobs that are due must be worth more than together.
        budget : Budget
            When to stop; no search takes longer than ``params.limit``.

        Returns
        -------
        Fill
            The one whose finished jobs are worth most.
        """
        params, fill, best = self.params, start.copy(), start
        weights = sizes = self.weights
        value = self.value(start, finished=True)
        budget = budget.within(params.limit)
        fewest, idle = math.inf, 0
        for number in range(params.rounds + 1):
            lacking = fill.shortfall(self.work)
            reached = self.value(fill, finished=True)
            if reached > value:
                best, value = fill.copy(), reached
            idle = 0 if lacking.sum() < fewest else idle + 1
            fewest = min(fewest, lacking.sum())
            if not lacking.any() or budget.passed or params.rounds == number:
                break
            if idle >= params.hopeless:
                break
            if number and number % params.patience == 0:
                self._relent(fill, lacking, least)
            if self.value(fill) <= least:
                break
            weights = np.where(lacking > 0, weights * params.growth, weights)
            weights = np.minimum(weights, HEAVIEST * sizes)
            self._round(fill, weights, budget)
        return best

    def _round(self, fill: Fill, weights: FloatArray, budget: Budget) -> None:
        """Fill once every slot in which a job that lacks work may run."""
        params, rng = self.params, self.rng
        for slot in rng.permutation(len(fill.units)).tolist():
            lacking = fill.shortfall(self.work)
            may_run = (self._arrival <= slot) & (slot <= fill.due)
            if budget.passed:
                return
            here = fill.workers[slot]
            needed = self.work - fill.workers.sum(axis=0) + here
            most = np.where(may_run, np.clip(needed, 0, self._parallel), 0)
            if not ((lacking > 0) & (most > here)).any():
                continue
            noisy = weights * rng.uniform(1.0 - params.noise, 1.0 + params.noise, len(weights))
            part = budget.within(params.slot_limit)
            found = self.slots.best(most, noisy, fill.units[slot], part, params.gap)
            if found is None:
                continue
            workers = found["worker"].sum(axis=1)
            if noisy @ workers >= noisy @ np.minimum(here, most):
                fill.units[slot], fill.workers[slot] = found, workers

    def _relent(self, fill: Fill, lacking: IntArray, least: float) -> None:
        """Let jobs that lack work complete a slot later, where all this together costs little.

        One for which the next slot would be worth nothing leaves.
        """
        room = self.params.concession * (self.value(fill) - least)
        losses: list[tuple[float, int, int]] = []
        for i in np.flatnonzero(lacking).tolist():
            utility, due = self.model.jobs[i].utility, int(fill.due[i])
            later = due + 1 if due + 1 in utility else -1
            losses.append((utility[due] - utility.get(later, 0.0), i, later))
        for loss, i, later in sorted(losses):
            if loss > room:
                break
            room -= loss
            fill.due[i] = later
            if later < 0:
                self._remove(fill, i)

    def _remove(self, fill: Fill, job: int) -> None:
        """Take a job out of all slots."""
        for slot in np.flatnonzero(fill.workers[:, job]).tolist():
            fill.units[slot] = {group: units.copy() for group, units in fill.units[slot].items()}
            for group in GROUPS:
                fill.units[slot][group][job] = 0
        fill.workers[:, job] = 0

    @cached_property
    def weights(self) -> FloatArray:
        """The largest share of all servers that a worker and its parameter servers take, (I,)."""
        ps_of_one = np.array([c.job.ps_per_worker for c in self.model.jobs])
        share = np.maximum(self.model.sizes("worker"), self.model.sizes("ps") * ps_of_one)
        weights: FloatArray = np.maximum(share, LIGHTEST * share.max(initial=1e-300))
        return weights
