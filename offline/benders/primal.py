"""From a plan of the master to schedules: place its counts, or plan again close to it.

Slots share nothing but the work that is still to do, so each is placed by itself. Jobs that find
all their places keep them; HiGHS puts the others back where there is room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pulp

from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import Schedule, placements
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import PrimalParams
from offline.benders.plans import whole_plan
from offline.benders.separation import Separation
from offline.benders.subproblem import place
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.dual_values import DualValues
from offline.heuristics.neighbourhood import reinsert
from offline.heuristics.partial_solution import PartialSolution
from offline.model.arrays import GROUPS


@dataclass(frozen=True, slots=True)
class Misfit:
    """Counts (I,) of a group that were not placed, and the slots that ask for them."""

    group: str
    counts: IntArray
    slots: list[int]


class PrimalHeuristic:
    """From plans of the master to schedules.

    Parameters
    ----------
    model : CountModel
        The master.
    separation : Separation
        Of its cuts.
    best : BestSolution
        Where schedules go.
    duals : DualValues
        For jobs that no plan wants, or that found no place.
    rng : numpy.random.Generator
        Of the order of those.
    params : PrimalParams
        How long, and how often.
    """

    def __init__(
        self,
        model: CountModel,
        separation: Separation,
        best: BestSolution,
        duals: DualValues,
        rng: np.random.Generator,
        params: PrimalParams,
    ) -> None:
        self.model, self.separation, self.best = model, separation, best
        self.duals, self.rng, self.params = duals, rng, params
        self._worth = self._ranks()
        self._placements: dict[tuple[str, bytes], tuple[IntArray, bool]] = {}

    def search(
        self,
        near: Sequence[pulp.LpConstraint],
        budget: Budget,
        gain: float | None = None,
        params: PrimalParams | None = None,
    ) -> int:
        """Plan within the rows `near` and place the plan, again and again, until all of it fits.

        Where counts of a slot do not fit, the next plan has cuts, or less room in that slot.

        Parameters
        ----------
        near : sequence of pulp.LpConstraint
            Which plans are close enough.
        budget : Budget
            When to stop.
        gain : float, optional
            How much more than the best schedules a plan must be worth; by default, it may be
            worth less.
        params : PrimalParams, optional
            How often to plan, and how; by default, those of the heuristic.

        Returns
        -------
        int
            Number of new cuts.
        """
        params = self.params if params is None else params
        room: dict[tuple[str, int], float] = {}
        added = idle = 0
        replanned = False
        for _ in range(params.plans):
            if budget.passed or self.best.is_proven or idle >= params.patience:
                break
            known = self.best.value
            rows = near if gain is None else [*near, *self.model.worth(known + gain)]
            gap = params.plan_gap * max(0.0, self.best.state.bound - known)
            solution = whole_plan(self.model, rows, budget, params, room, gap)
            if not solution.values:
                break
            plan = self.model.schedules_of(solution.values)
            cut = self._cut_off(plan, budget)
            added += len(cut)
            if len(cut) > params.few_cuts and not replanned:
                replanned = True
                continue
            replanned = False
            misfits = self.place(plan, budget)
            idle = 0 if self.best.value > known else idle + 1
            are_many = len(misfits) > params.many_misfits
            for misfit in misfits:
                if are_many or (misfit.group, misfit.counts.tobytes()) not in cut:
                    self._squeeze(room, misfit)
            if not misfits:
                break
        return added

    def _cut_off(self, plan: Mapping[str, Schedule], budget: Budget) -> set[tuple[str, bytes]]:
        """Cut off the counts of a plan that patterns do not cover, in every slot; which ones."""
        slots = range(self.model.arrays.horizon)
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
        for group, slot in product(GROUPS, range(self.model.arrays.horizon)):
            yield group, slot, np.rint(self.model.counts(values, group, slot)).astype(np.int64)

    def place(
        self, plan: Mapping[str, Schedule], budget: Budget, seconds: float | None = None
    ) -> list[Misfit]:
        """Place every slot of a plan and offer what comes of it; what did not fit.

        With `seconds` for a slot, those are tried again for which that was not proven before.
        """
        rows: dict[str, list[list[tuple[int, int, int]]]] = {
            group: [[] for _ in self.model.jobs] for group in GROUPS
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
        solution = PartialSolution(self.model.arrays)
        for i, c in enumerate(self.model.jobs):
            if rows["worker"][i] and i not in unfinished:
                tables = (placements(rows[group][i]) for group in GROUPS)
                solution.put(self.model.index[c.job.id], Schedule(c.job.id, *tables))
        self._complete(solution, unfinished, budget)
        return list(misfits.values())

    def _complete(self, solution: PartialSolution, unfinished: set[int], budget: Budget) -> None:
        """Put the unfinished jobs back, a few at a time, then any others that fit; offer it."""
        params = self.params
        due = sorted(self.model.index[self.model.jobs[i].job.id] for i in unfinished)
        budget = budget.within(max(params.repair_limit, params.repair_share * budget.left))
        most = params.repair_jobs
        groups = deque(due[k : k + most] for k in range(0, len(due), most))
        while groups and not budget.passed:
            group = groups.popleft()
            part = budget.within(params.repair_model_limit)
            solution, is_solved = reinsert(solution, group, part)
            left = [k for k in group if k not in solution.schedules]
            if not is_solved and left and len(group) > 1:
                half = -(-len(left) // 2)
                groups += [part for part in (left[:half], left[half:]) if part]
        jobs = range(len(self.model.arrays.jobs))
        rest = self.duals.order([k for k in jobs if k not in solution.schedules], self.rng)
        solution.fill(rest, self.duals.worker_prices, self.duals.ps_prices)
        self.best.offer(solution)

    def _squeeze(self, room: dict[tuple[str, int], float], misfit: Misfit) -> None:
        """Leave the share of a slot free that its counts asked for in vain."""
        placed = self._placements[misfit.group, misfit.counts.tobytes()][0].sum(axis=1)
        total = np.maximum(self.model.capacity(misfit.group).sum(axis=0), 1e-300)
        missing = (misfit.counts - placed) @ self.model.demand(misfit.group) / total
        less = max(self.params.least_squeeze, float(missing.max()))
        for slot in misfit.slots:
            room[misfit.group, slot] = room.get((misfit.group, slot), 1.0) - less

    def _units(
        self, group: str, counts: IntArray, budget: Budget, seconds: float | None
    ) -> IntArray:
        key = (group, counts.tobytes())
        if key not in self._placements or not (seconds is None or self._placements[key][1]):
            part = budget.within(self.params.placement_limit if seconds is None else seconds)
            capacity, demand = self.model.capacity(group), self.model.demand(group)
            cuts = self.separation.params
            self._placements[key] = place(capacity, demand, counts, part, cuts, self._worth)
        return self._placements[key][0]

    def _ranks(self) -> FloatArray:
        """Worth of a unit by job, 1 to 10: where not all fit, the same few jobs go without."""
        total = np.maximum(self.model.capacity("worker").sum(axis=0), 1e-300)
        size = (self.model.demand("worker") / total).max(axis=1)
        density = [
            max(c.utility.values()) / max(c.work * take, 1e-300)
            for c, take in zip(self.model.jobs, size.tolist(), strict=True)
        ]
        ranks = np.argsort(np.argsort(density, kind="stable"), kind="stable")
        return 1.0 + 9.0 * ranks / max(1, len(ranks) - 1)
