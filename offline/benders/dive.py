"""Schedules from a plan in fractions: one slot after the other in whole numbers, placed at once.

The next slot gets whole counts, while those of later slots stay fractions, and the MILP says which
jobs still complete in time. Then the counts find their servers, before the slot after it is
planned. So what finds no server in one slot moves to later ones, and what comes out in the end has
a place. Most slots cost no utility, because later ones can make up for what a job gets less. So all
completions stay at first, and only where that is impossible may they change.

References
----------
Pochet and Wolsey, Production Planning by Mixed Integer Programming, Springer 2006: relax-and-fix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import pulp

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers import Solution
from oasis.solvers.arrays import Limits, narrowed
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import DiveParams, PrimalParams
from offline.benders.plans import close_plan
from offline.benders.separation import Separation
from offline.benders.slot_model import SlotModel, Units
from offline.model.arrays import GROUPS


class Dive:
    """Makes dives from plans of a master; each `search` is one.

    Parameters
    ----------
    model : CountModel
        The master.
    separation : Separation
        Of its cuts.
    slots : SlotModel
        Finds servers for the counts of a slot.
    weights : (I,) float array
        Of a worker of each job, positive: where not all find a server, the heaviest do.
    params : DiveParams
        How long each part may take.

    Attributes
    ----------
    cuts : int
        How many rows all dives have added to the master.
    """

    def __init__(
        self,
        model: CountModel,
        separation: Separation,
        slots: SlotModel,
        weights: FloatArray,
        params: DiveParams,
    ) -> None:
        self.model, self.separation, self.slots = model, separation, slots
        self.weights, self.params, self.cuts = weights, params, 0
        self._plan_params = PrimalParams(plan_limit=params.plan_limit)

    def search(
        self, near: Limits, least: Callable[[], float], gap: float, budget: Budget
    ) -> tuple[list[Units], Mapping[str, int]] | None:
        """Place slot by slot what is worth most within limits.

        Parameters
        ----------
        near : mapping of str to (float, float)
            Limits of variables of the master.
        least : callable
            Returns the utility that the schedules must exceed, asked for anew in every slot. The
            dive ends once its plan is not worth more.
        gap : float
            Difference of bound and first plan at which to stop, in utility.
        budget : Budget
            When to stop.

        Returns
        -------
        units : list of mapping of str to (I, S) int array
            Units on the servers, by slot and group.
        completions : mapping of str to int
            When each job completes that does, in the last plan. One may lack what the last slot
            had no place for.
        None if the dive ended before the last slot.
        """
        slots = range(self.model.arrays.horizon)
        units: list[Units] = []
        lacking = np.array([c.work for c in self.model.jobs], dtype=np.int64)
        self.model.require(pulp.LpContinuous, pulp.LpContinuous)
        first = PrimalParams(plan_limit=self.params.first_limit)
        values = close_plan(self.model, near, budget, first, (), gap).values or None
        if values is not None:
            plan = self.model.completions(values)
            near = narrowed(near, self.model.near(plan, self.params.window))
            values = self._cut(slots, near, gap, budget, slots)
        for slot in slots:
            if values is None:
                return None
            ahead = range(slot, slot + self.params.look_ahead)
            self.model.require_whole(range(slot, slot + 1), ahead)
            left = self.model.value_of(values) - least()
            values = self._planned(slots[slot:], near, values, self.params.gap * left, budget)
            if values is None or self.model.value_of(values) <= least():
                return None
            found = self._placed(slot, values, lacking, budget)
            if found is None:
                return None
            units.append(found)
            lacking -= found["worker"].sum(axis=1)
            near = narrowed(near, self._at_most(slot, found))
        return None if values is None else (units, self.model.completions(values))

    def _planned(
        self,
        slots: range,
        near: Limits,
        before: Mapping[str, float],
        gap: float,
        budget: Budget,
    ) -> Mapping[str, float] | None:
        """Values of a plan that breaks no cut in the first of these slots; None if none is found.

        All completions stay as they were `before`, if that is possible. Else they may change as
        long as that costs at most `gap`, or else at any cost. Far slots stay as they were as long
        as something else helps.
        """
        close, new = slots[: self.params.span], slots[:1]
        same, far = self._completing_as(before), self._kept(slots[self.params.span :], before)
        unchanged = narrowed(near, same)
        values = self._cut(close, narrowed(unchanged, far), 0.0, budget, new)
        if values is None and far:
            values = self._cut(slots, unchanged, 0.0, budget, new)
        if values is None and far:
            rows = self.model.worth(self.model.value_of(before) - gap)
            values = self._cut(close, narrowed(near, far), gap, budget, new, rows)
        if values is None:
            values = self._cut(slots, near, gap, budget, new)
        return values

    def _cut(
        self,
        slots: range,
        near: Limits,
        gap: float,
        budget: Budget,
        new: range,
        rows: Sequence[pulp.LpConstraint] = (),
    ) -> Mapping[str, float] | None:
        """Plan, cut off what breaks a cut in these slots, and plan again; a few times.

        New cuts are looked for in the slots `new` alone.
        """
        values = self._solved(near, gap, budget, rows).values
        for _ in range(self.params.rounds):
            if not values or budget.passed:
                break
            broken = self.separation.cut(values, budget, slots, new)
            self.cuts += len(broken)
            if not broken:
                break
            values = self._solved(near, gap, budget, rows).values
        return values or None

    def _solved(
        self, near: Limits, gap: float, budget: Budget, rows: Sequence[pulp.LpConstraint] = ()
    ) -> Solution:
        return close_plan(self.model, near, budget, self._plan_params, rows, gap)

    def _kept(self, slots: range, values: Mapping[str, float]) -> Limits:
        """Limits by which the counts of these slots stay what they are, fractions or not."""
        return {
            variable.name: (now, now)
            for c, group in product(self.model.jobs, GROUPS)
            for (slot, _), variable in c.units(group).items()
            if slot in slots
            for now in [max(0.0, values[variable.name])]
        }

    def _completing_as(self, values: Mapping[str, float]) -> Limits:
        """Limits by which the same jobs complete, in the same slots."""
        slots = self.model.completions(values)
        limits = self.model.completing({name: [slot] for name, slot in slots.items()})
        done = (c.done[slots[c.job.id]].name for c in self.model.jobs if c.job.id in slots)
        return {**limits, **dict.fromkeys(done, (1.0, 1.0))}

    def _placed(
        self, slot: int, values: Mapping[str, float], lacking: IntArray, budget: Budget
    ) -> Units | None:
        """The workers of a slot on servers, with their parameter servers, as many as fit.

        A plan may have more workers than a job needs; none gets more than it is `lacking` (I,).
        """
        planned = np.rint(self.model.counts(values, "worker", slot)).astype(np.int64)
        wanted = np.minimum(planned, np.maximum(lacking, 0))
        part = budget.within(self.params.slot_limit)
        empty = self.slots.empty()
        return self.slots.best(wanted, self.weights, empty, part, self.params.slot_gap)

    def _at_most(self, slot: int, units: Units) -> Limits:
        """Limits by which a slot has no more workers than were placed there."""
        placed = units["worker"].sum(axis=1).tolist()
        return {
            c.workers[slot, 0].name: (0.0, float(number))
            for c, number in zip(self.model.jobs, placed, strict=True)
            if (slot, 0) in c.workers
        }
