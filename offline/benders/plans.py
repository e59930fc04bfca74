"""Plans: solutions of the master close to one before, in fractions or in whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.solvers import Solution, Status, highs
from oasis.solvers.arrays import ArrayModel, Limits, RowArrays, narrowed
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel

# For the closest plan: share of the known counts, weighed by what a unit takes, by which a closer
# one may be missed.
DISTANCE_GAP = 0.02


class PlanLimits(NamedTuple):
    """How plans are looked for."""

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
    radius: float | None = None,
) -> Solution:
    """Find a good plan in whole numbers by relax-and-fix, from the first slots to the last."""
    for first in slots[:: limits.slots_at_once]:
        last = min(first + limits.slots_at_once, slots.stop)
        # Earlier slots stay whole, too: they may still give way, but not into fractions.
        model.require_whole(range(last), range(last))
        solution = close_plan(model, near, budget.within(limits.limit), rows, gap, known, radius)
        if not solution.values:
            break
        near = narrowed(near, model.held(solution.values, range(first, last)))
    return solution


def close_plan(
    model: CountModel,
    near: Limits,
    budget: Budget,
    rows: Sequence[RowArrays] = (),
    gap: float = 0.0,
    known: Mapping[str, float] | None = None,
    radius: float | None = None,
) -> Solution:
    """Find the best plan of the master within limits and rows, or the closest to a known one."""
    within = model.read(rows).limited(near)
    if known is not None:
        compared = PlanComparison.of(within, known, model.size_of)
        if radius is None:
            within, gap = compared.closest(), DISTANCE_GAP * compared.scale
        else:
            within = compared.within(radius)
    solution = highs.solve(
        within.without_fixed(),
        budget=budget,
        gap=gap,
        proof=False,
        warm_start=None if radius is None else known,
        is_relaxation=True,
    )
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if solution.objective is None:
        return solution
    return replace(solution, values={**within.fixed, **solution.values})


class PlanComparison(NamedTuple):
    """A model that knows how much a plan changes of known counts."""

    model: ArrayModel
    sizes: FloatArray
    moved: float
    scale: float

    @classmethod
    def of(
        cls, model: ArrayModel, known: Mapping[str, float], size_of: Mapping[str, float]
    ) -> PlanComparison:
        """Compare the plans of a model with a known one."""
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
        """Model that minimises the number of changes to a plan."""
        return replace(self.model, costs=-self.sizes, constant=-self.moved)

    def within(self, radius: float) -> ArrayModel:
        """The model with its own objective, and changes of this share of the scale at most."""
        columns = np.flatnonzero(self.sizes)
        row = RowArrays(
            starts=np.array([0, len(columns)]),
            columns=columns,
            values=self.sizes[columns],
            lower=np.array([-np.inf]),
            upper=np.array([radius * self.scale - self.moved]),
        )
        return self.model.with_rows(row)
