"""One slot with both groups of servers: as many workers as fit, where units differ in weight.

The patterns that cover what is asked for (`offline.patterns`) make a MILP, as they do for
given counts (`offline.benders.subproblem`). Here the counts are open, and workers bring their
parameter servers (6)(7).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers.arrays import ArrayModel, blocks
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.subproblem import Filling, at_most, solved
from offline.model.arrays import GROUPS
from offline.model.constraints import ps_ratio
from offline.patterns import CutGenerator, PatternPool, classes

# For filling one slot, seconds or units of work: there are many slots, and many rounds.
SLOT_LIMIT = 0.5

Units = Mapping[str, IntArray]  # by group, units (I, S) of each job of the master on each server


class SlotModel:
    """Model of any single slot: servers of both groups, and units of the master's jobs on them."""

    def __init__(self, model: CountModel) -> None:
        self.model = model
        self._classes = {group: classes(model.capacity(group), None) for group in GROUPS}
        ratios = [ps_ratio(c.job, c.parallel) or (0, 0, 0) for c in model.jobs]
        self._ratios = np.array(ratios, np.float64).reshape(-1, 3).T
        self._least = np.array([c.job.worker_counts[0] for c in model.jobs], dtype=np.int64)

    def at_least(self, workers: IntArray) -> IntArray:
        """Raise positive `workers` (I,) to the minimum of the job; 0 stays 0."""
        least: IntArray = np.where(workers > 0, np.maximum(workers, self._least), 0)
        return least

    def ps_of(self, workers: IntArray) -> IntArray:
        """Return the parameter servers (I,) that these workers (I,) of each job need."""
        pairs = zip(self.model.jobs, workers.tolist(), strict=True)
        return np.array([int(c.job.ps_needed(n)) if n else 0 for c, n in pairs], dtype=np.int64)

    def empty(self) -> Units:
        """Return zero units of every job on every server, by group."""
        jobs = len(self.model.jobs)
        return {
            group: np.zeros((jobs, len(self.model.capacity(group))), np.int64) for group in GROUPS
        }

    def best(
        self, most: IntArray, weights: FloatArray, known: Units, budget: Budget, gap: float
    ) -> Units | None:
        """Return units of most weight with `most` workers a job or fewer; None: not found."""
        if not most.any():
            return self.empty()
        # What runs there now is feasible, so HiGHS only improves on it.
        start = self._within(known, most)
        worker = self._filling("worker", most, start["worker"], budget)
        ps = self._filling("ps", self.ps_of(most), start["ps"], budget)
        model = self._joint(worker, ps, most, weights)
        workers = start["worker"].sum(axis=1)
        values = [workers, worker.chosen(start["worker"]), ps.chosen(start["ps"]), workers > 0]
        solution = solved(
            model,
            budget,
            gap=gap * float(weights[most > 0].min()),
            warm_start=dict(zip(model.names, np.concatenate(values).tolist(), strict=True)),
        )
        if solution is None:
            return None
        workers, of_workers, of_ps, _ = np.split(
            solution, np.cumsum([len(part) for part in values[:3]])
        )
        units = worker.units(of_workers, workers), ps.units(of_ps, self.ps_of(workers))
        return self.consistent(dict(zip(GROUPS, units, strict=True)))

    def _joint(
        self, worker: Filling, ps: Filling, most: IntArray, weights: FloatArray
    ) -> ArrayModel:
        """Build a slot's MILP: workers by job, servers by pattern and group, gangs that run."""
        jobs, (p, q, free) = len(weights), self._ratios
        gangs = np.diag((self._least > 1).astype(float))
        table = blocks(
            [
                [np.eye(jobs), -worker.patterns.T, None, None],
                [None, worker.of_class, None, None],
                [None, None, ps.of_class, None],
                [np.diag(p), None, -q[:, None] * ps.patterns.T, None],  # (6)
                # none, or so many: HiGHS has no semi-continuous integers
                [-gangs, None, None, gangs * self._least],
                [gangs, None, None, -gangs * most],
            ]
        )
        none = np.zeros(jobs)
        room = np.concatenate([none, worker.number, ps.number, p * free, none, none])
        patterns = worker.number[worker.kind], ps.number[ps.kind]
        worth = np.append(weights, np.zeros(table.shape[1] - jobs))
        return ArrayModel.packing(
            worth, np.concatenate([most, *patterns, gangs.diagonal()]), table, room
        )

    def _within(self, known: Units, most: IntArray) -> Units:
        """Cut units down to `most` (I,) workers and the parameter servers that these need."""
        workers = at_most(known["worker"], most)
        return {"worker": workers, "ps": at_most(known["ps"], self.ps_of(workers.sum(axis=1)))}

    def _filling(self, group: str, wanted: IntArray, known: IntArray, budget: Budget) -> Filling:
        """Return servers with patterns that cover `wanted` (I,), and those used in `known`."""
        capacity = self.model.capacity(group)
        pool = PatternPool(*self._classes[group], self.model.demand(group), wanted)
        for k, patterns in enumerate(pool.patterns):
            same = (capacity == pool.capacity[k]).all(axis=1)
            # With the patterns in use, the start is a solution of this MILP.
            patterns |= {row.tobytes(): row for row in known[:, same].T.copy() if row.any()}
        return Filling.of(capacity, pool, CutGenerator(pool).covering(wanted, budget))

    def consistent(self, units: Units) -> Units:
        """Drop workers that lack parameter servers, and parameter servers without workers."""
        served = units["ps"].sum(axis=1)
        workers = units["worker"].sum(axis=1)
        for i in np.flatnonzero(self.ps_of(workers) > served).tolist():
            needed = self.model.jobs[i].job.ps_needed(np.arange(workers[i] + 1))
            workers[i] = int(np.flatnonzero(needed <= served[i])[-1])
        workers[workers < self._least] = 0
        return self._within(units, workers)


LIMIT = 5.0  # of the repair of one plan; seconds or units of work
ROUNDS = 40  # through the slots, at most
PATIENCE = 3  # rounds after which jobs that still lack work may complete later, or leave
HOPELESS = 8  # rounds in a row without a new least total shortfall that end the search
# Share of what the plan is worth more than the best schedules that may be given up for that at
# once, by all jobs together.
CONCESSION = 0.3
GROWTH = 1.5  # of the weight of a job in each round in which it lacks work
NOISE = 0.02  # by which weights differ at random, so that a slot is not filled the same way again
GAP = 0.5  # of the lightest worker's weight, by which heavier workers of a slot may be missed
LIGHTEST = 1e-3  # of the heaviest worker: the weight of one that takes next to nothing
HEAVIEST = 1e3  # factor on the first weight of a worker, at most: HiGHS sees no larger differences


@dataclass(slots=True)
class Fill:
    """Units and workers (T, I) in every slot, and the completion (I,) due for each job, or -1."""

    units: list[Units]
    due: IntArray
    workers: IntArray

    @classmethod
    def of(cls, units: Iterable[Units], due: IntArray) -> Fill:
        """Make a fill of the units in each slot and the due completions (I,)."""
        slots = list(units)
        workers = [units["worker"].sum(axis=1) for units in slots]
        return cls(slots, due, np.array(workers, dtype=np.int64))

    def copy(self) -> Fill:
        """Return a copy whose slots can be replaced without changing this fill."""
        return Fill(list(self.units), self.due.copy(), self.workers.copy())

    def shortfall(self, work: IntArray) -> IntArray:
        """Return how many of the worker-slots `work` (I,) each due job still lacks."""
        lacking: IntArray = np.where(self.due >= 0, work - self.workers.sum(axis=0), 0)
        return np.maximum(lacking, 0)


class Shortfall:
    """A search that repairs a fill: it finds room for the work that due jobs lack."""

    def __init__(self, model: CountModel, slots: SlotModel, rng: np.random.Generator) -> None:
        self.model, self.slots, self.rng = model, slots, rng
        self.work = np.array([c.work for c in model.jobs], dtype=np.int64)
        self._parallel = np.array([c.parallel for c in model.jobs], dtype=np.int64)
        self._arrival = np.array([c.job.arrival for c in model.jobs], dtype=np.int64)

    def value(self, fill: Fill, *, finished: bool = False) -> float:
        """Return the utility of the due jobs; if `finished`, of those with all their work only."""
        due = np.where(fill.shortfall(self.work) > 0, -1, fill.due) if finished else fill.due
        pairs = zip(self.model.jobs, due.tolist(), strict=True)
        return math.fsum(c.utility[slot] for c, slot in pairs if slot >= 0)

    def search(self, start: Fill, least: float, budget: Budget) -> Fill:
        """Refill slots until no job lacks work or the value is <= `least`; return the best."""
        fill, best = start.copy(), start
        weights = sizes = self.weights
        value = self.value(start, finished=True)
        budget = budget.within(LIMIT)
        fewest, idle = math.inf, 0
        for number in range(ROUNDS + 1):
            lacking = fill.shortfall(self.work)
            reached = self.value(fill, finished=True)
            if reached > value:
                best, value = fill.copy(), reached
            idle = 0 if lacking.sum() < fewest else idle + 1
            fewest = min(fewest, lacking.sum())
            if not lacking.any() or budget.passed or number == ROUNDS:
                break
            if idle >= HOPELESS:
                break
            if number and number % PATIENCE == 0:
                self._relent(fill, lacking, least)
            if self.value(fill) <= least:
                break
            # A job that stays short becomes more important in every round, until it is served or
            # leaves: weights play the part of multipliers.
            weights = np.where(lacking > 0, weights * GROWTH, weights)
            weights = np.minimum(weights, HEAVIEST * sizes)
            self._round(fill, weights, budget)
        return best

    def _round(self, fill: Fill, weights: FloatArray, budget: Budget) -> None:
        """Refill once every slot in which a job that lacks work may run."""
        rng = self.rng
        # In a fixed order, the first slots would take all the work that is missing.
        for slot in rng.permutation(len(fill.units)).tolist():
            lacking = fill.shortfall(self.work)
            may_run = (self._arrival <= slot) & (slot <= fill.due)
            if budget.passed:
                return
            present = fill.workers[slot]
            needed = self.work - fill.workers.sum(axis=0) + present
            most = np.where(may_run, np.clip(needed, 0, self._parallel), 0)
            most = self.slots.at_least(most)
            if not ((lacking > 0) & (most > present)).any():
                continue
            noisy = weights * rng.uniform(1.0 - NOISE, 1.0 + NOISE, len(weights))
            part = budget.within(SLOT_LIMIT)
            units = self.slots.best(most, noisy, fill.units[slot], part, GAP)
            if units is None:
                continue
            workers = units["worker"].sum(axis=1)
            # Equal weight is accepted, too: a fill may have to change before a worker fits.
            if noisy @ workers >= noisy @ np.minimum(present, most):
                fill.units[slot], fill.workers[slot] = units, workers

    def _relent(self, fill: Fill, lacking: IntArray, least: float) -> None:
        """Postpone jobs that lack work, or drop them, if the value stays well above `least`."""
        room = CONCESSION * (self.value(fill) - least)
        losses: list[tuple[float, int, int]] = []
        for i in np.flatnonzero(lacking).tolist():
            utility, due = self.model.jobs[i].utility, int(fill.due[i])
            later = due + 1 if due + 1 in utility else -1
            losses.append((utility[due] - utility.get(later, 0.0), i, later))
        # The cheapest delays first, within what the plan may lose and still beat the best
        # schedules.
        for loss, i, later in sorted(losses):
            if loss > room:
                break
            room -= loss
            fill.due[i] = later
            if later < 0:
                self._remove(fill, i)

    def _remove(self, fill: Fill, job: int) -> None:
        """Remove all units of a job from a fill."""
        for slot in np.flatnonzero(fill.workers[:, job]).tolist():
            # Copies share the units of a slot: these must not change in them.
            fill.units[slot] = {group: units.copy() for group, units in fill.units[slot].items()}
            for group in GROUPS:
                fill.units[slot][group][job] = 0
        fill.workers[:, job] = 0

    @cached_property
    def weights(self) -> FloatArray:
        """Weight (I,) of a worker: the largest capacity share of it and its parameter servers."""
        ps_of_one = np.array([c.job.ps_per_worker for c in self.model.jobs])
        share = np.maximum(self.model.sizes("worker"), self.model.sizes("ps") * ps_of_one)
        weights: FloatArray = np.maximum(share, LIGHTEST * share.max(initial=1e-300))
        return weights
