"""Schedules from a plan in fractions: one slot after the other in whole numbers, placed at once.

The next slot gets whole counts. Workers of later slots stay fractions, parameter servers of the
next slots are whole, and the MILP says which jobs still complete in time. Then the counts find
their servers, before the slot after it is planned. So what finds no server in one slot moves to
later ones, and what comes out in the end has a place. Most slots cost no utility, because later
ones can make up for what a job gets less (`offline.benders.repair`): plans leave a part of them
free for that, the reserve.

References
----------
Pochet and Wolsey, Production Planning by Mixed Integer Programming, Springer 2006: relax-and-fix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import pulp

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers.arrays import Limits, narrowed
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import DiveParams, PrimalParams
from offline.benders.plans import close_plan
from offline.benders.repair import FIRST_LIMIT, PlanRepair, Stage, Values
from offline.benders.slot_model import SlotModel, Units
from offline.benders.subproblem import Separation
from offline.model.arrays import GROUPS

# For placing the counts of a slot, seconds or units of work.
SLOT_LIMIT = 3.0
# Share of the lightest worker's weight by which heavier workers of a slot may be missed.
SLOT_GAP = 0.1
# Where not all workers of a slot find a server, those of jobs that complete soon weigh more: 1 +
# this / (1 + w)² times as much if the job completes w slots later, as there are fewer slots to
# catch up.
URGENCY = 50.0


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
    """

    def __init__(
        self,
        model: CountModel,
        separation: Separation,
        slots: SlotModel,
        weights: FloatArray,
        params: DiveParams,
    ) -> None:
        self.model, self.slots, self.weights, self.params = model, slots, weights, params
        self.repair = PlanRepair(model, separation, params)
        self.begin()

    @property
    def cuts(self) -> int:
        """How many rows all dives have added to the master."""
        return self.repair.cuts

    @property
    def is_settled(self) -> bool:
        """Whether every reserve had its turn since `begin`, or since a dive has found cuts."""
        return self._tried >= self.params.reserves

    def begin(self, plan: Mapping[int, int] | None = None) -> None:
        """Let the next dive have the first reserve: it is from another plan than the last one.

        `plan` says when each job completes, by its form, if that is known.
        """
        self._turn = self._tried = 0
        self._plan = plan or {}

    def search(
        self, near: Limits, least: Callable[[], float], gap: float, budget: Budget
    ) -> tuple[list[Units], Mapping[int, int]] | None:
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
        completions : mapping of int to int
            When each job completes that does, in the last plan. One may lack what the last slot
            had no place for.
        None if the dive ended before the last slot.
        """
        before = self.cuts
        found = self._slot_by_slot(near, least, gap, budget)
        if self.cuts > before:
            self._tried = 0  # with these cuts, the plans of all reserves are others
        return found

    def _slot_by_slot(
        self, near: Limits, least: Callable[[], float], gap: float, budget: Budget
    ) -> tuple[list[Units], Mapping[int, int]] | None:
        """The same as `search`."""
        slots, repair = range(self.model.arrays.horizon), self.repair
        units: list[Units] = []
        lacking = np.array([c.work for c in self.model.jobs], dtype=np.int64)
        stage = Stage(slots, slots[:0], near)
        values = repair.cut(self._first(stage, least, gap, budget), stage, least, budget)
        for slot in slots:
            if values is None:
                return None
            stage = Stage(slots[slot:], slots[slot : slot + 1], near)
            plan = repair.again(values, {slot}, stage, least, budget)
            values = repair.cut(plan, stage, least, budget)
            if values is None or self.model.value_of(values) <= least():
                return None
            here = self._placed(slot, near, values, lacking, least, budget)
            if here is None:
                return None
            values, placed = here
            units.append(placed)
            lacking -= placed["worker"].sum(axis=1)
            near = narrowed(near, self._at_most(slot, placed))
        return None if values is None else (units, self.model.completions(values))

    def _first(
        self, stage: Stage, least: Callable[[], float], gap: float, budget: Budget
    ) -> Values | None:
        """A plan worth more than the least, with the next reserve that leaves one."""
        params, repair = self.params, self.repair
        part = budget.within(FIRST_LIMIT)
        while not (self.is_settled or part.passed):
            factor = 2 ** (self._turn % params.reserves)
            self._turn += 1
            self._tried += 1
            repair.reserve, repair.ahead = params.reserve / factor, params.look_ahead * factor
            values = repair.as_planned(self._plan, stage, least, part) if self._plan else None
            values = values or repair.first(stage, least, gap, part)
            if values is not None:
                return values
        return None

    def wide(self, near: Limits, gap: float, budget: Budget) -> Limits | None:
        """Limits around the best plan in fractions within wider ones; None if none is found."""
        self.model.require(pulp.LpContinuous, pulp.LpContinuous)
        first = PrimalParams(plan_limit=FIRST_LIMIT)
        values = close_plan(self.model, near, budget, first, (), gap).values
        if not values:
            return None
        plan = self.model.completions(values)
        return narrowed(near, self.model.near(plan, self.params.window))

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
        params, value = self.params, self.model.value_of(plan)
        best, fewest = None, math.inf
        values, tried = plan, set[bytes]()
        for number in range(1, params.placements + 1):
            wanted = self._wanted(slot, values, lacking)
            if wanted.tobytes() not in tried:
                tried.add(wanted.tobytes())
                here = self._on_servers(slot, values, wanted, budget)
                if here is None:
                    break
                missing = int((wanted - here["worker"].sum(axis=1)).sum())
                if missing < fewest:
                    best, fewest = (values, here), missing
            if fewest == 0 or number == params.placements:
                break
            room = dict.fromkeys(product(GROUPS, [slot]), 1.0 - number * params.squeeze)
            rows = self.model.within(room)
            if not rows:
                break
            values = self.repair.keeping(plan, near, [rows], budget)
            loss = (value - least()) / 2 ** (params.attempts - 1)
            if not values and loss > 0:
                values = self.repair.losing(near, value, loss, budget, [rows])
            if not values:
                break
        return best

    def _on_servers(
        self, slot: int, values: Mapping[str, float], wanted: IntArray, budget: Budget
    ) -> Units | None:
        """The wanted workers of a slot on servers, or as many as fit; None if there is no time."""
        here = self.slots.all_of(wanted, budget.within(SLOT_LIMIT))
        if here is not None:
            return here
        part = budget.within(SLOT_LIMIT)
        weights = self.weights * self._urgency(slot, values)
        return self.slots.best(wanted, weights, self.slots.empty(), part, SLOT_GAP)

    def _wanted(self, slot: int, values: Mapping[str, float], lacking: IntArray) -> IntArray:
        """Workers (I,) of a slot in a plan, for each job at most as many as it is `lacking`.

        A gang that lacks less than its minimum has that.
        """
        planned = np.rint(self.model.counts(values, "worker", slot)).astype(np.int64)
        wanted: IntArray = np.minimum(planned, self.slots.at_least(lacking))
        return wanted

    def _urgency(self, slot: int, values: Mapping[str, float]) -> FloatArray:
        """Factors (I,) on weights: the sooner a job completes, the less it can make up for."""
        done = self.model.completions(values)
        due = [done.get(c.index, self.model.arrays.horizon) for c in self.model.jobs]
        waits = np.maximum(np.array(due) - slot, 0)
        factors: FloatArray = 1.0 + URGENCY / (1.0 + waits) ** 2
        return factors

    def _at_most(self, slot: int, units: Units) -> Limits:
        """Limits by which a slot has no more workers than were placed there."""
        placed = units["worker"].sum(axis=1).tolist()
        return {
            c.workers[slot, 0].name: (0.0, float(number))
            for c, number in zip(self.model.jobs, placed, strict=True)
            if (slot, 0) in c.workers
        }
