"""One slot with both groups of servers: as many workers as fit, where units differ in weight.

The patterns that cover what is asked for (`offline.patterns.cuts`) make a MILP, as they do for
given counts (`offline.benders.subproblem`). Here the counts are open, and workers bring their
parameter servers (6)(7).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pulp

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers import Status, highs
from oasis.solvers.budget import Budget
from offline.benders.filling import Filling
from offline.benders.master import CountModel
from offline.benders.subproblem import at_most, place
from offline.model.arrays import GROUPS
from offline.model.constraints import ps_ratio
from offline.patterns.cuts import CutGenerator
from offline.patterns.params import CutParams
from offline.patterns.patterns import PatternPool
from offline.patterns.server_classes import classes

Units = Mapping[str, IntArray]  # by group, units (I, S) of each job of the master on each server


class SlotModel:
    """The servers of any slot, for the jobs of a master.

    Parameters
    ----------
    model : CountModel
        The master.
    params : CutParams
        How patterns are looked for.
    """

    def __init__(self, model: CountModel, params: CutParams) -> None:
        self.model, self.params = model, params
        self._classes = {group: classes(model.capacity(group), None) for group in GROUPS}
        self._ratios = [ps_ratio(c.job, c.parallel) for c in model.jobs]

    def ps_of(self, workers: IntArray) -> IntArray:
        """Parameter servers (I,) that so many workers (I,) of each job need."""
        pairs = zip(self.model.jobs, workers.tolist(), strict=True)
        return np.array([int(c.job.ps_needed(n)) if n else 0 for c, n in pairs], dtype=np.int64)

    def empty(self) -> Units:
        """Nothing anywhere."""
        jobs = len(self.model.jobs)
        return {
            group: np.zeros((jobs, len(self.model.capacity(group))), np.int64) for group in GROUPS
        }

    def all_of(self, workers: IntArray, budget: Budget) -> Units | None:
        """All of these workers (I,) and their parameter servers; None if no place is found.

        The two groups have servers of their own, so that each is placed by itself, which finds
        more than `best` does.
        """
        units = {}
        for group, counts in (("worker", workers), ("ps", self.ps_of(workers))):
            resources = self.model.capacity(group), self.model.demand(group)
            units[group], _ = place(*resources, counts, budget, self.params)
            if (units[group].sum(axis=1) < counts).any():
                return None
        return units

    def best(
        self, most: IntArray, weights: FloatArray, known: Units, budget: Budget, gap: float
    ) -> Units | None:
        """The heaviest workers of a slot, with their parameter servers.

        Parameters
        ----------
        most : (I,) int array
            Most workers of each job, at most its ``parallel``.
        weights : (I,) float array
            Of one worker of each job, positive.
        known : mapping of str to (I, S) int array
            Units that fit, the start.
        budget : Budget
            When to stop.
        gap : float
            Share of the lightest worker's weight by which heavier workers may be missed.

        Returns
        -------
        Units or None
            None if the budget is spent before any were found.
        """
        if not most.any():
            return self.empty()
        problem = pulp.LpProblem("slot", pulp.LpMaximize)
        wanted = {"worker": most, "ps": self.ps_of(most)}
        counts = {
            group: {
                i: problem.add_variable(f"{group}_{i}", 0, int(wanted[group][i]), pulp.LpInteger)
                for i in np.flatnonzero(wanted[group]).tolist()
            }
            for group in GROUPS
        }
        start = self._within(known, most)
        fillings = {}
        for group in GROUPS:
            patterns = self._patterns(group, wanted[group], start[group], budget)
            fillings[group] = Filling.added(problem, f"x_{group}", *patterns, counts[group])
        for i, workers in counts["worker"].items():
            self._bind(problem, i, workers, counts["ps"].get(i))
        weight = pulp.lpSum(float(weights[i]) * v for i, v in counts["worker"].items())
        problem.setObjective(weight)
        values = {
            variable.name: float(start[group][i].sum())
            for group in GROUPS
            for i, variable in counts[group].items()
        }
        for group in GROUPS:
            values |= fillings[group].values_of(start[group], self.model.capacity(group))
        solution = highs.solve(
            problem,
            budget=budget,
            gap=gap * float(weights[most > 0].min()),
            warm_start=values,
            proof=False,
        )
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if not solution.values:
            return None
        return self._placed(solution.values, counts, fillings)

    def _bind(
        self,
        problem: pulp.LpProblem,
        job: int,
        workers: pulp.LpVariable,
        ps: pulp.LpVariable | None,
    ) -> None:
        """(6) and (7) of one job."""
        ratio = self._ratios[job]
        if ratio is None or ps is None:
            return
        p, q, free = ratio
        problem.addConstraint(q * ps >= p * workers - p * free)
        problem.addConstraint(ps <= workers)

    def _within(self, known: Units, most: IntArray) -> Units:
        """Of units that fit, those of the workers that are still asked for."""
        workers = at_most(known["worker"], most)
        return {"worker": workers, "ps": at_most(known["ps"], self.ps_of(workers.sum(axis=1)))}

    def _patterns(
        self, group: str, wanted: IntArray, known: IntArray, budget: Budget
    ) -> tuple[PatternPool, list[IntArray]]:
        """Patterns that cover what is wanted, and those of the units that are known."""
        capacity = self.model.capacity(group)
        servers = PatternPool(*self._classes[group], self.model.demand(group), wanted)
        if not wanted.any():
            return servers, [np.zeros((0, len(wanted)), np.int64) for _ in servers.number]
        for k, patterns in enumerate(servers.patterns):
            same = (capacity == servers.capacity[k]).all(axis=1)
            patterns |= {row.tobytes(): row for row in known[:, same].T.copy() if row.any()}
        return servers, CutGenerator(servers, self.params).covering(wanted, budget)

    def _placed(
        self,
        values: Mapping[str, float],
        counts: Mapping[str, Mapping[int, pulp.LpVariable]],
        fillings: Mapping[str, Filling],
    ) -> Units:
        found = {}
        for group in GROUPS:
            wanted = np.zeros(len(self.model.jobs), dtype=np.int64)
            for i, variable in counts[group].items():
                wanted[i] = round(values.get(variable.name, 0.0))
            found[group] = fillings[group].units(values, wanted, self.model.capacity(group))
        return self.consistent(found)

    def consistent(self, units: Units) -> Units:
        """Units with as many workers as the parameter servers serve, and no more of these."""
        served = units["ps"].sum(axis=1)
        workers = units["worker"].sum(axis=1)
        for i in np.flatnonzero(self.ps_of(workers) > served).tolist():
            needed = self.model.jobs[i].job.ps_needed(np.arange(workers[i] + 1))
            workers[i] = int(np.flatnonzero(needed <= served[i])[-1])
        return self._within(units, workers)
