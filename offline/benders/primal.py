"""From a plan of the master to schedules: place its counts, or plan again close to it.

Plans are solutions of the master close to one before, in fractions or in whole numbers. Slots share
nothing but the work that is still to do, so each is placed by itself. What finds no place in its
slot moves to another one (`offline.benders.slot_model`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import Schedule
from oasis.solvers import Solution, highs
from oasis.solvers.arrays import ArrayModel, Limits, RowArrays, narrowed
from oasis.solvers.budget import Budget, OutOfTimeError
from offline.benders.master import CountModel
from offline.benders.slot_model import Fill, Shortfall, SlotModel, Units
from offline.benders.subproblem import Separation, adjust, place, place_by_patterns
from offline.heuristics.best_solution import BestSolution, DualValues, PartialSolution
from offline.model.arrays import GROUPS
from offline.model.schedule_model import without_surplus

# For the closest plan: share of the known counts, weighed by what a unit takes, by which a closer
# one may be missed.
DISTANCE_GAP = 0.02


class PlanLimits(NamedTuple):
    """Limits of the search for plans."""

    limit: float = 3.0  # for one plan, or one step towards a whole one; seconds or units of work
    patience: int = 2  # plans in a row without a better schedule
    slots_at_once: int = 5  # whose counts become whole together
    gap: float = 0.1  # of the difference of bound and incumbent, at which a plan is good enough


def whole_plan(
    model: CountModel,
    near: Limits,
    budget: Budget,
    limits: PlanLimits,
    rows: Sequence[RowArrays],
    gap: float,
    slots: range,
    known: Mapping[str, float] | None = None,
) -> Solution:
    """Find a plan in whole numbers by relax-and-fix over `slots`; arguments as in `close_plan`."""
    for first in slots[:: limits.slots_at_once]:
        last = min(first + limits.slots_at_once, slots.stop)
        # Earlier slots stay whole, too: they may still give way, but not into fractions.
        model.require_whole(range(last), range(last))
        solution = close_plan(model, near, budget.within(limits.limit), rows, gap, known)
        if not solution.values:
            break
        near = narrowed(near, model.capped(solution.values, range(first, last)))
    return solution


def close_plan(
    model: CountModel,
    near: Limits,
    budget: Budget,
    rows: Sequence[RowArrays] = (),
    gap: float = 0.0,
    known: Mapping[str, float] | None = None,
) -> Solution:
    """Return the best plan within bounds `near` and `rows`, or if given, the closest to `known`."""
    within = model.read(rows).limited(near)
    if known is not None:
        compared = PlanComparison.of(within, known, model.size_of)
        within, gap = compared.closest(), DISTANCE_GAP * compared.scale
    solution = highs.solve(
        within.without_fixed(),
        budget=budget,
        gap=gap,
        proof=False,
        is_relaxation=True,
    ).uninterrupted()
    if solution.objective is None:
        return solution
    return replace(solution, values={**within.fixed, **solution.values})


class PlanComparison(NamedTuple):
    """A model with variables for how far a plan's counts are from known counts, and their sizes."""

    model: ArrayModel
    sizes: FloatArray
    moved: float
    scale: float

    @classmethod
    def of(
        cls, model: ArrayModel, known: Mapping[str, float], size_of: Mapping[str, float]
    ) -> PlanComparison:
        """Add difference variables to `model`; `size_of` weighs each count, by its name."""
        sizes = np.array([size_of.get(name, 0.0) for name in model.names])
        now = np.array([round(known.get(name, 0.0)) for name in model.names], float)
        scale, is_fixed = float(sizes @ now), model.is_fixed
        moved = float(sizes[is_fixed] @ np.abs(model.lower - now)[is_fixed])
        sizes[is_fixed] = 0.0
        # a count of 0 now is its own change, any other one needs a variable for it
        columns = np.flatnonzero((sizes > 0) & (now > 0))
        number, before = len(columns), now[columns]
        apart = len(model.names) + np.arange(number)
        rows = RowArrays(  # apart >= count - now and apart >= now - count
            starts=2 * np.arange(2 * number + 1),
            columns=np.column_stack([apart, columns, apart, columns]).ravel(),
            values=np.tile([1.0, -1.0, 1.0, 1.0], number),
            lower=np.column_stack([-before, before]).ravel(),
            upper=np.full(2 * number, np.inf),
        )
        names = [f"apart_{model.names[k]}" for k in columns.tolist()]
        larger = model.wider(names, np.full(number, np.inf), is_whole=False).with_rows(rows)
        counted = np.append(np.where(now > 0, 0.0, sizes), sizes[columns])
        return cls(larger, counted, moved, scale)

    def closest(self) -> ArrayModel:
        """Return the model with the objective to minimise the changes, weighed by size."""
        return replace(self.model, costs=-self.sizes, constant=-self.moved)


MOST_PLANS = 12  # in a row
PLACEMENT_LIMIT = 0.5  # for placing the counts of one slot by patterns
# Least share of a slot's room that the next plan leaves free where counts did not fit.
LEAST_SQUEEZE = 0.01
# Where no more counts than this were cut off, the next plan has less room for them, too: cuts alone
# would give almost the same plan.
FEW_CUTS = 3

ROUNDING = 1e-6  # relative: by which HiGHS may miss what a plan must be worth


@dataclass(frozen=True, slots=True)
class Misfit:
    """Counts (I,) of a group that do not all fit, the part `placed` of them, and their slots."""

    group: str
    counts: IntArray
    placed: IntArray
    slots: list[int]

    @property
    def key(self) -> tuple[str, bytes]:
        """Key of the misfit in mappings: its group and its counts as bytes."""
        return self.group, self.counts.tobytes()


class PrimalHeuristic:
    """A heuristic that makes schedules of plans of the master."""

    def __init__(
        self,
        model: CountModel,
        separation: Separation,
        best: BestSolution,
        duals: DualValues,
        rng: np.random.Generator,
    ) -> None:
        self.model, self.separation, self.best = model, separation, best
        self.duals, self.rng = duals, rng
        self.shortfall = Shortfall(model, SlotModel(model), rng)
        self._worth = self._ranks()
        self._placements: dict[tuple[str, bytes], tuple[IntArray, bool]] = {}

    def search(
        self,
        near: Limits,
        budget: Budget,
        gain: float | None = None,
        limits: PlanLimits = PlanLimits(),  # noqa: B008 (a tuple)
        slots: range | None = None,
    ) -> int:
        """Place plans within `near`, worth `gain` more, until one fits; return how many cuts."""
        slots = range(self.model.arrays.horizon) if slots is None else slots
        room: dict[tuple[str, int], float] = {}
        added = idle = 0
        for _ in range(MOST_PLANS):
            if budget.passed or self.best.is_proven or idle >= limits.patience:
                break
            known = self.best.value
            rows, start = [self.model.within(room)], None
            if gain is not None:
                start = self.model.values_of(self.best.solution.by_id)
                rows.append(self.model.worth(known + gain))
            gap = limits.gap * max(0.0, self.best.state.bound - known)
            values = whole_plan(self.model, near, budget, limits, rows, gap, slots, start).values
            if not values:
                break
            if gain is not None and self.model.value_of(values) < (known + gain) * (1 - ROUNDING):
                break
            plan = self.model.schedules_of(values)
            misfits = self.place(plan, budget)
            idle = 0 if self.best.value > known else idle + 1
            is_window = len(slots) < self.model.arrays.horizon
            if not misfits or (is_window and self.best.value > known):
                break  # `near` leaves counts outside of the slots as they were
            cut = self._cut_off(misfits, budget)
            added += len(cut)
            for misfit in misfits:
                if len(cut) <= FEW_CUTS or misfit.key not in cut:
                    self._squeeze(room, misfit)
        return added

    def _cut_off(self, misfits: Sequence[Misfit], budget: Budget) -> set[tuple[str, bytes]]:
        """Cut off, in every slot, misfits that patterns do not cover; return their keys."""
        slots = range(self.model.arrays.horizon)
        return {
            misfit.key
            for misfit in misfits
            if self.separation.cut_off(misfit.group, misfit.counts, slots, budget)
        }

    def _counts(self, plan: Mapping[str, Schedule]) -> Iterator[tuple[str, int, IntArray]]:
        """Yield group, slot and the plan's counts (I,) there, for all groups and slots."""
        values = self.model.values_of(plan)
        for group, slot in product(GROUPS, range(self.model.arrays.horizon)):
            yield group, slot, np.rint(self.model.counts(values, group, slot)).astype(np.int64)

    def place(
        self, plan: Mapping[str, Schedule], budget: Budget, seconds: float | None = None
    ) -> list[Misfit]:
        """Place a plan, offer it, return misfits; `seconds`: for exact placing, None: quick."""
        known = self._known_units()
        units = [dict(units_of_slot) for units_of_slot in known]
        misfits: dict[tuple[str, bytes], Misfit] = {}
        for group, slot, counts in self._counts(plan):
            if (known[slot][group].sum(axis=1) == counts).all():
                continue
            placed = None
            if seconds is None:
                resources = self.model.capacity(group), self.model.demand(group)
                # Most counts are those of the best schedules, whose places are known to fit.
                placed = adjust(*resources, known[slot][group], counts)
            if placed is None:
                placed = self._units(group, counts, budget, seconds)
            units[slot][group] = placed
            if (placed.sum(axis=1) < counts).any():
                misfit = Misfit(group, counts, placed.sum(axis=1), [])
                misfits.setdefault(misfit.key, misfit).slots.append(slot)
        runs = [plan.get(c.job.id) for c in self.model.jobs]
        due = [
            run.completion if run is not None and run.form == c.form else -1
            for c, run in zip(self.model.jobs, runs, strict=True)
        ]
        fill = Fill.of(map(self.shortfall.slots.consistent, units), np.array(due))
        repaired = fill
        if misfits and seconds is None:
            # Slots are placed one by one, so work that one lacks may fit in another.
            repaired = self.shortfall.search(fill, self.best.value, budget)
        self._offer(repaired)
        if self.shortfall.value(repaired, finished=True) >= self.shortfall.value(fill):
            return []
        return list(misfits.values())

    def _known_units(self) -> list[Units]:
        """Return the units of the best schedules in each slot, as `Units`."""
        units = [self.shortfall.slots.empty() for _ in range(self.model.arrays.horizon)]
        schedules = self.best.solution.schedules
        for i, c in enumerate(self.model.jobs):
            known = schedules.get(c.owner)
            if known is not None and known.form == c.form:
                for group, rows in zip(GROUPS, (known.workers, known.ps), strict=True):
                    for slot, server, count in rows.tolist():
                        units[slot][group][i, server] = count
        return units

    def _offer(self, fill: Fill) -> None:
        """Offer schedules of the jobs with all their work, and of others that fit beside them."""
        solution = PartialSolution(self.model.arrays)
        lacking = fill.shortfall(self.shortfall.work)
        for i in np.flatnonzero((fill.due >= 0) & (lacking == 0)).tolist():
            c = self.model.jobs[i]
            rows = (
                [
                    (slot, server, count)
                    for slot in range(self.model.arrays.horizon)
                    for server, count in enumerate(fill.units[slot][group][i].tolist())
                    if count
                ]
                for group in GROUPS
            )
            solution.put(c.owner, without_surplus(c, *rows))
        jobs = range(len(self.model.arrays.jobs))
        # Capacity that is left costs nothing, so that any job that fits is a gain.
        order = self.duals.order([k for k in jobs if k not in solution.schedules], self.rng)
        prices = self.duals.worker_prices, self.duals.ps_prices
        with suppress(OutOfTimeError):
            solution.fill(self.best.state.budget.over(order), *prices)
        self.best.offer(solution)

    def _squeeze(self, room: dict[tuple[str, int], float], misfit: Misfit) -> None:
        """Lower `room` in the slots of a misfit by the share that its unplaced counts need."""
        total = np.maximum(self.model.capacity(misfit.group).sum(axis=0), 1e-300)
        missing = (misfit.counts - misfit.placed) @ self.model.demand(misfit.group) / total
        less = max(LEAST_SQUEEZE, float(missing.max()))
        for slot in misfit.slots:
            room[misfit.group, slot] = room.get((misfit.group, slot), 1.0) - less

    def _units(
        self, group: str, counts: IntArray, budget: Budget, seconds: float | None
    ) -> IntArray:
        """Return units (I, S) that place `counts` (I,) as far as they fit; remember them."""
        key = (group, counts.tobytes())
        capacity, demand = self.model.capacity(group), self.model.demand(group)
        if key not in self._placements or not (seconds is None or self._placements[key][1]):
            search = place_by_patterns if seconds is None else place
            part = budget.within(PLACEMENT_LIMIT if seconds is None else seconds)
            self._placements[key] = search(capacity, demand, counts, part, self._worth)
        return self._placements[key][0]

    def _ranks(self) -> FloatArray:
        """Return a weight of 1 to 10 by job, so that always the same jobs are not placed."""
        sizes = self.model.sizes("worker").tolist()
        density = [
            max(c.utility.values()) / max(c.work * size, 1e-300)
            for c, size in zip(self.model.jobs, sizes, strict=True)
        ]
        ranks = np.argsort(np.argsort(density, kind="stable"), kind="stable")
        return 1.0 + 9.0 * ranks / max(1, len(ranks) - 1)
