"""Schedules from a plan in fractions: one slot after the other in whole numbers, placed at once.

The next slot gets whole counts. Workers of later slots stay fractions, parameter servers of the
next slots are whole, and the MILP says which jobs still complete in time. Then the counts find
their servers, before the slot after it is planned. So what finds no server in one slot moves to
later ones, and what comes out in the end has a place. Most slots cost no utility, because later
ones can make up for what a job gets less. So all completions stay at first, and only where that is
impossible may they change.

References
----------
Pochet and Wolsey, Production Planning by Mixed Integer Programming, Springer 2006: relax-and-fix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product

import numpy as np
import pulp

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers import Solution, Status
from oasis.solvers.arrays import Limits, narrowed
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import DiveParams, PrimalParams
from offline.benders.plans import close_plan
from offline.benders.separation import Separation
from offline.benders.slot_model import SlotModel, Units
from offline.model.arrays import GROUPS

WHOLE = 1e-4  # by which HiGHS may miss a whole number


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
        self._ahead = params.look_ahead  # slots in which a dive has whole parameter servers

    def search(
        self, near: Limits, least: Callable[[], float], gap: float, budget: Budget
    ) -> tuple[list[Units], Mapping[str, int]] | None:
        """Place slot by slot what is worth most within limits.

        Parameters
        ----------
        near : mapping of str to (float, float)
            Limits of variables of the master.
        least : callable
            Returns the utility that the schedules must exceed, asked for anew several times in a
            slot. The dive ends once its plan is not worth more.
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
        self._ahead = self.params.look_ahead
        self.model.require_whole(slots[:0], slots[: self._ahead])
        first = PrimalParams(plan_limit=self.params.first_limit)
        plan = close_plan(self.model, near, budget, first, (), gap).values or None
        values = self._cut(plan, slots, slots[:0], near, least, budget)
        for slot in slots:
            if values is None or self.model.value_of(values) <= least():
                return None
            rest, here = slots[slot:], slots[slot : slot + 1]
            plan = self._again(values, here, rest, here, near, least, budget)
            values = self._cut(plan, rest, here, near, least, budget)
            if values is None or self.model.value_of(values) <= least():
                return None
            found = self._placed(slot, near, values, lacking, least, budget)
            if found is None:
                return None
            values, placed = found
            units.append(placed)
            lacking -= placed["worker"].sum(axis=1)
            near = narrowed(near, self._at_most(slot, placed))
        return None if values is None else (units, self.model.completions(values))

    def wide(self, near: Limits, gap: float, budget: Budget) -> Limits | None:
        """Limits around the best plan in fractions within wider ones; None if none is found."""
        self.model.require(pulp.LpContinuous, pulp.LpContinuous)
        first = PrimalParams(plan_limit=self.params.first_limit)
        values = close_plan(self.model, near, budget, first, (), gap).values
        if not values:
            return None
        plan = self.model.completions(values)
        return narrowed(near, self.model.near(plan, self.params.window))

    def _cut(
        self,
        values: Mapping[str, float] | None,
        slots: range,
        whole: range,
        near: Limits,
        least: Callable[[], float],
        budget: Budget,
    ) -> Mapping[str, float] | None:
        """Cut off what breaks a cut in these slots, and plan again; a few times.

        New cuts are looked for in the slots whose workers are `whole`, or in all if there are none.
        None if there are no values, or no plan.
        """
        for _ in range(self.params.rounds):
            if values is None or budget.passed:
                break
            broken = self.separation.cut(values, budget, slots, whole or slots)
            self.cuts += len(broken)
            if not broken:
                break
            slot_of = self.model.slot_of
            changed = {slot_of[variable.name] for row in broken for variable in row}
            values = self._again(values, changed, slots, whole, near, least, budget)
        return values

    def _again(
        self,
        before: Mapping[str, float],
        changed: Collection[int],
        slots: range,
        whole: range,
        near: Limits,
        least: Callable[[], float],
        budget: Budget,
    ) -> Mapping[str, float] | None:
        """Values of a plan that loses as little as possible of the one `before`, if any is found.

        All completions stay, if that is possible. Else they may change where that costs next to
        nothing, and in each further attempt where it costs twice as much, up to all that the plan
        is worth more than the least. Where little may be lost, few completions are open, so that an
        attempt takes little time. Workers of the slots `whole` are whole numbers.
        """
        params, value = self.params, self.model.value_of(before)
        room = value - least()
        if room <= 0.0:
            return None
        values = self._unchanged(before, changed, slots, whole, near, budget)
        limits = narrowed(near, self._far(before, changed, slots))
        for halvings in reversed(range(params.attempts)):
            if values or budget.passed:
                break
            loss = room / 2**halvings
            rows = self.model.worth(value - loss)
            values = self._solved(limits, params.loss_gap * loss, budget, rows).values
            limits = near
        return values or None

    def _unchanged(
        self,
        before: Mapping[str, float],
        changed: Collection[int],
        slots: range,
        whole: range,
        near: Limits,
        budget: Budget,
    ) -> Mapping[str, float]:
        """Values of a plan with the completions of another one, none if none is found.

        At first, the counts of far slots stay, and the whole parameter servers of slots that are
        not `changed`; then these may change by one, then at will, then far slots, too. Where that
        can neither be found nor refuted, fewer slots have whole parameter servers from then on.
        """
        self.model.require_whole(whole, slots[: self._ahead])
        same = narrowed(near, self._completing_as(before))
        far = self._far(before, changed, slots)
        close = narrowed(same, far)
        others = [slot for slot in slots if slot not in changed]
        ps = [limits for by in (0, 1) if (limits := self._kept_ps(others, before, by))]
        attempts = [*(narrowed(close, limits) for limits in ps), close, *([same] if far else [])]
        while not budget.passed:
            for limits in attempts:
                solution = self._solved(limits, 0.0, budget)
                if solution.values:
                    return solution.values
            if solution.status is Status.INFEASIBLE or self._ahead == 1:
                break
            self._ahead = -(-min(self._ahead, len(slots)) // 2)
            self.model.require_whole(whole, slots[: self._ahead])
            attempts = [same]
        return {}

    def _far(self, values: Mapping[str, float], changed: Collection[int], slots: range) -> Limits:
        """Limits by which the counts of far slots stay, but for those that are `changed`."""
        far = slots[self.params.span :]
        return self._kept([slot for slot in far if slot not in changed], values)

    def _solved(
        self, near: Limits, gap: float, budget: Budget, rows: Sequence[pulp.LpConstraint] = ()
    ) -> Solution:
        params = PrimalParams(plan_limit=self.params.plan_limit)
        return close_plan(self.model, near, budget, params, rows, gap)

    def _kept(self, slots: Collection[int], values: Mapping[str, float]) -> Limits:
        """Limits by which the counts of these slots stay what they are, fractions or not."""
        return {
            variable.name: (now, now)
            for c, group in product(self.model.jobs, GROUPS)
            for (slot, _), variable in c.units(group).items()
            if slot in slots
            for now in [min(max(0.0, values[variable.name]), variable.upBound)]
        }

    def _kept_ps(self, slots: Collection[int], values: Mapping[str, float], by: int) -> Limits:
        """Limits by which whole parameter servers of these slots change by so many at most."""
        return {
            variable.name: (max(0.0, now - by), min(float(variable.upBound), now + by))
            for c in self.model.jobs
            for (slot, _), variable in c.ps.items()
            if slot in slots
            for now in [float(round(values[variable.name]))]
            if abs(now - values[variable.name]) <= WHOLE
        }

    def _completing_as(self, values: Mapping[str, float]) -> Limits:
        """Limits by which the same jobs complete, in the same slots."""
        slots = self.model.completions(values)
        limits = self.model.completing({name: [slot] for name, slot in slots.items()})
        done = (c.done[slots[c.job.id]].name for c in self.model.jobs if c.job.id in slots)
        return {**limits, **dict.fromkeys(done, (1.0, 1.0))}

    def _placed(
        self,
        slot: int,
        near: Limits,
        plan: Mapping[str, float],
        lacking: IntArray,
        least: Callable[[], float],
        budget: Budget,
    ) -> tuple[Mapping[str, float], Units] | None:
        """A plan and what has found servers of its workers of a slot, with parameter servers.

        Where some have found none, the slot is planned again with a little of its room left free;
        that may cost what the first attempt of a slot may lose. The plan of which the fewest are
        missing counts.
        """
        params = self.params
        best, fewest = None, math.inf
        same = narrowed(near, self._completing_as(plan))
        value = self.model.value_of(plan)
        loss = (value - least()) / 2 ** (params.attempts - 1)
        values, tried = plan, set[bytes]()
        for number in range(1, params.placements + 1):
            wanted = self._wanted(slot, values, lacking)
            if wanted.tobytes() in tried:
                break
            tried.add(wanted.tobytes())
            here = self.slots.all_of(wanted, budget.within(params.slot_limit))
            if here is None:
                part = budget.within(params.slot_limit)
                weights = self.weights * self._urgency(slot, values)
                here = self.slots.best(wanted, weights, self.slots.empty(), part, params.slot_gap)
            if here is None:
                break
            missing = int((wanted - here["worker"].sum(axis=1)).sum())
            if missing < fewest:
                best, fewest = (values, here), missing
            if missing == 0 or number == params.placements:
                break
            room = dict.fromkeys(product(GROUPS, [slot]), 1.0 - number * params.squeeze)
            rows = list(self.model.within(room))
            values = self._solved(same, 0.0, budget, rows).values
            if not values:
                rows += self.model.worth(value - loss)
                values = self._solved(near, params.loss_gap * loss, budget, rows).values
            if not values:
                break
        return best

    def _wanted(self, slot: int, values: Mapping[str, float], lacking: IntArray) -> IntArray:
        """Workers (I,) of a slot in a plan, for each job at most as many as it is `lacking`."""
        planned = np.rint(self.model.counts(values, "worker", slot)).astype(np.int64)
        wanted: IntArray = np.minimum(planned, np.maximum(lacking, 0))
        return wanted

    def _urgency(self, slot: int, values: Mapping[str, float]) -> FloatArray:
        """Factors (I,) on weights: the sooner a job completes, the less it can make up for."""
        done = self.model.completions(values)
        due = [done.get(c.job.id, self.model.arrays.horizon) for c in self.model.jobs]
        waits = np.maximum(np.array(due) - slot, 0)
        factors: FloatArray = 1.0 + self.params.urgency / (1.0 + waits) ** 2
        return factors

    def _at_most(self, slot: int, units: Units) -> Limits:
        """Limits by which a slot has no more workers than were placed there."""
        placed = units["worker"].sum(axis=1).tolist()
        return {
            c.workers[slot, 0].name: (0.0, float(number))
            for c, number in zip(self.model.jobs, placed, strict=True)
            if (slot, 0) in c.workers
        }
