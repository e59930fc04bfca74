"""From a plan of the master to schedules: place its counts, or plan again close to it.

Slots share nothing but the work that is still to do, so each is placed by itself. Jobs that find
all their places keep them; HiGHS puts the others back where there is room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import pulp

from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import Schedule, placements
from oasis.solvers import Solution, Status, highs
from oasis.solvers.budget import Budget
from offline.benders.master import GROUPS, CountModel
from offline.benders.separation import Separation
from offline.benders.subproblem import place
from offline.heuristics.fix_and_optimise import reinsert
from offline.heuristics.insertion import Incumbent
from offline.heuristics.partial_solution import Occupancy
from offline.heuristics.ruin_and_recreate import Guide

CLOSE_SECONDS = 3.0  # for one plan, or some slots of a whole one
AT_ONCE = 5  # slots of it whose counts become whole together
CLOSE_GAP = 0.1  # of what is between bound and schedules: where it may stop
PLACE_SECONDS = 0.5  # for one slot of it
REPAIR_SECONDS, REPAIR_SHARE = 10.0, 0.1  # for the unfinished jobs of a plan, the longer of the two
TOGETHER = 8  # of them at a time, fewer where that takes too long
LEAST_SQUEEZE = 0.01  # of the room of a slot whose counts do not fit
FEW = 3  # cuts that are not worth a new plan
MANY = 8  # counts that do not fit: cuts alone would take too many plans
PLANS, PATIENCE = 12, 2  # plans in all, and without a better schedule


@dataclass(frozen=True, slots=True)
class Misfit:
    """Counts (I,) of a group that were not placed, and the slots that ask for them."""

    group: str
    counts: IntArray
    slots: list[int]


class Settling:
    """Plans on their way to the servers.

    Parameters
    ----------
    model : CountModel
        The master.
    separation : Separation
        Of its cuts.
    incumbent : Incumbent
        Where schedules go.
    guide : Guide
        For jobs that no plan wants, or that found no place.
    rng : numpy.random.Generator
        Of the order of those.
    """

    def __init__(
        self,
        model: CountModel,
        separation: Separation,
        incumbent: Incumbent,
        guide: Guide,
        rng: np.random.Generator,
    ) -> None:
        self.model, self.separation, self.incumbent = model, separation, incumbent
        self.guide, self.rng = guide, rng
        self._worth = self._ranks()
        self._placements: dict[tuple[str, bytes], tuple[IntArray, bool]] = {}

    def settle(self, near: list[pulp.LpConstraint], budget: Budget) -> int:
        """Plan within the rows `near`, with less where counts did not fit, until all do.

        Returns
        -------
        int
            Number of new cuts.
        """
        room: dict[tuple[str, int], float] = {}
        added = idle = 0
        replanned = False
        for _ in range(PLANS):
            if budget.passed or self.incumbent.is_proven or idle >= PATIENCE:
                break
            known = self.incumbent.best.value
            gap = CLOSE_GAP * max(0.0, self.incumbent.standing.bound - known)
            solution = whole_plan(self.model, near, budget, room, gap)
            if not solution.values:
                break
            plan = self.model.schedules_of(solution.values)
            cut = self._cut_off(plan, budget)
            added += len(cut)
            if len(cut) > FEW and not replanned:
                replanned = True
                continue
            replanned = False
            misfits = self.place(plan, budget)
            idle = 0 if self.incumbent.best.value > known else idle + 1
            for misfit in misfits:
                if len(misfits) > MANY or (misfit.group, misfit.counts.tobytes()) not in cut:
                    self._squeeze(room, misfit)
            if not misfits:
                break
        return added

    def _cut_off(self, plan: Mapping[str, Schedule], budget: Budget) -> set[tuple[str, bytes]]:
        """Cut off the counts of a plan that patterns do not cover, in every slot; which ones."""
        slots = range(self.model.instance.horizon)
        distinct = {(group, n.tobytes()): n for group, _, n in self._counts(plan)}
        return {
            (group, key)
            for (group, key), counts in distinct.items()
            if (group, key) not in self._placements
            and self.separation.cut_off(group, counts, slots, budget)
        }

    def _counts(self, plan: Mapping[str, Schedule]) -> Iterator[tuple[str, int, IntArray]]:
        """Counts (I,) of a plan by group and slot."""
        values = self.model.values_of(plan)
        for group, slot in product(GROUPS, range(self.model.instance.horizon)):
            yield group, slot, np.rint(self.model.counts(values, group, slot)).astype(np.int64)

    def place(
        self, plan: Mapping[str, Schedule], budget: Budget, seconds: float | None = None
    ) -> list[Misfit]:
        """Place every slot of a plan and offer what comes of it; what did not fit.

        With `seconds` for a slot, those are tried again for which that was not proven before.
        """
        rows: dict[str, list[list[tuple[int, int, int]]]] = {
            group: [[] for _ in self.model.candidates] for group in GROUPS
        }
        misfits: dict[tuple[str, bytes], Misfit] = {}
        unfinished: set[int] = set()
        for group, slot, counts in self._counts(plan):
            units = self._units(group, counts, budget, seconds)
            for i, server in np.argwhere(units).tolist():
                rows[group][i].append((slot, server, int(units[i, server])))
            missing = np.flatnonzero(units.sum(axis=1) < counts).tolist()
            if missing:
                unfinished.update(missing)
                misfit = Misfit(group, counts, [])
                misfits.setdefault((group, counts.tobytes()), misfit).slots.append(slot)
        solution = Occupancy(self.model.instance)
        for i, c in enumerate(self.model.candidates):
            if rows["worker"][i] and i not in unfinished:
                tables = (placements(rows[group][i]) for group in GROUPS)
                solution.put(self.model.index[c.job.id], Schedule(c.job.id, *tables))
        self._complete(solution, unfinished, budget)
        return list(misfits.values())

    def _complete(self, solution: Occupancy, unfinished: set[int], budget: Budget) -> None:
        """Put the unfinished jobs back, a few at a time, then any others that fit; offer it."""
        due = sorted(self.model.index[self.model.candidates[i].job.id] for i in unfinished)
        budget = budget.within(max(REPAIR_SECONDS, REPAIR_SHARE * budget.left))
        groups = deque(due[k : k + TOGETHER] for k in range(0, len(due), TOGETHER))
        while groups and not budget.passed:
            group = groups.popleft()
            solution, is_solved = reinsert(solution, group, budget)
            left = [k for k in group if k not in solution.schedules]
            if not is_solved and left and len(group) > 1:
                half = -(-len(left) // 2)
                groups += [part for part in (left[:half], left[half:]) if part]
        jobs = range(len(self.model.instance.jobs))
        rest = self.guide.order([k for k in jobs if k not in solution.schedules], self.rng)
        solution.fill(rest, self.guide.worker_prices, self.guide.ps_prices)
        self.incumbent.offer(solution)

    def _squeeze(self, room: dict[tuple[str, int], float], misfit: Misfit) -> None:
        """Leave the share of a slot free that its counts asked for in vain."""
        placed = self._placements[misfit.group, misfit.counts.tobytes()][0].sum(axis=1)
        total = np.maximum(self.model.capacity(misfit.group).sum(axis=0), 1e-300)
        missing = (misfit.counts - placed) @ self.model.demand(misfit.group) / total
        less = max(LEAST_SQUEEZE, float(missing.max()))
        for slot in misfit.slots:
            room[misfit.group, slot] = room.get((misfit.group, slot), 1.0) - less

    def _units(
        self, group: str, counts: IntArray, budget: Budget, seconds: float | None
    ) -> IntArray:
        key = (group, counts.tobytes())
        if key not in self._placements or not (seconds is None or self._placements[key][1]):
            part = budget.within(PLACE_SECONDS if seconds is None else seconds)
            capacity, demand = self.model.capacity(group), self.model.demand(group)
            self._placements[key] = place(capacity, demand, counts, part, self._worth)
        return self._placements[key][0]

    def _ranks(self) -> FloatArray:
        """Worth of a unit by job, 1 to 10: where not all fit, the same few jobs go without."""
        total = np.maximum(self.model.capacity("worker").sum(axis=0), 1e-300)
        size = (self.model.demand("worker") / total).max(axis=1)
        density = [
            max(c.utility.values()) / max(c.work * take, 1e-300)
            for c, take in zip(self.model.candidates, size.tolist(), strict=True)
        ]
        ranks = np.argsort(np.argsort(density, kind="stable"), kind="stable")
        return 1.0 + 9.0 * ranks / max(1, len(ranks) - 1)


def whole_plan(
    model: CountModel,
    near: list[pulp.LpConstraint],
    budget: Budget,
    room: Mapping[tuple[str, int], float],
    gap: float,
) -> Solution:
    """As `close_plan` with whole counts: of some slots, then of the next with no more in those."""
    kept = list(near)
    for first in range(0, model.instance.horizon, AT_ONCE):
        model.require(pulp.LpInteger, pulp.LpInteger, first + AT_ONCE)
        solution = close_plan(model, kept, budget, room, gap)
        if not solution.values:
            break
        kept += model.held(solution.values, range(first, first + AT_ONCE))
    return solution


def close_plan(
    model: CountModel,
    near: list[pulp.LpConstraint],
    budget: Budget,
    room: Mapping[tuple[str, int], float] | None = None,
    gap: float = 0.0,
) -> Solution:
    """The best plan within the rows `near` and a share `room` of the room of some slots."""
    problem = model.problem.copy()
    for row in (*near, *model.within(room or {})):
        problem.addConstraint(row)
    part = budget.within(CLOSE_SECONDS)
    solution = highs.solve(problem, budget=part, gap=gap, proof=False)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solution
