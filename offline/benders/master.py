"""The master of the decomposition: how many workers and parameter servers of each job in a slot.

The compact model (1)-(13) without the question where: x_i, t_i and the sums over servers of
(11)-(13) remain. Capacities (4)(5) become cuts on the counts of a slot (`offline.patterns`),
the first of them the total capacities. Every solution of (1)-(13) satisfies all of it: a relaxation
with a hundredth of the variables.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import chain, product

import numpy as np
import pulp

from oasis.model import rounding
from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule, placements
from oasis.solvers.arrays import ArrayModel, Limits, RowArrays
from oasis.solvers.budget import NO_LIMIT, Budget
from offline.model import constraints
from offline.model.arrays import GROUPS, OfflineArrays
from offline.model.schedule_model import ScheduleModel
from offline.model.variables import by_job
from offline.patterns import Cut

Row = tuple[str, int, int]  # of a cut: its group, its number, and the slot
SOME = 1e-6  # a smaller part of a completion is only HiGHS's rounding


class CountModel(ScheduleModel):
    """The master as a MILP: counts by job and slot, as if each group were a single server 0."""

    def __init__(self, arrays: OfflineArrays, budget: Budget = NO_LIMIT) -> None:
        super().__init__(arrays, "counts", are_merged=True, budget=budget)
        for forms in by_job(self.jobs):
            # (6) slot by slot is weak for counts in fractions; over all slots it takes whole
            # servers.
            further = [constraints.ps_of_work]
            rows = constraints.of_job(forms, constraints.work_by_completion, further)
            for row in budget.over(rows):
                self.problem.addConstraint(row)
        self.cuts: dict[str, list[Cut]] = {group: [] for group in GROUPS}
        self._forbidden: list[tuple[str, str, int]] = []
        self._read, self._variables = ArrayModel.of(self.problem), self.problem.variables()
        self._columns = {group: self._columns_of(group) for group in GROUPS}
        self._placed: set[Row] = set()
        self._rows = self.rows([])
        for group in GROUPS:
            for cut in budget.over(self._totals(group)):
                self.add(group, cut, range(arrays.horizon))

    @property
    def size(self) -> int:
        """Number of pairs of a job (in one form) and a slot in which it can run."""
        return sum(len(c.workers) for c in self.jobs)

    def demand(self, group: str) -> FloatArray:
        """Demand of one unit of each job of the model, shape (I, R)."""
        return self.arrays.group(group).demand[[c.index for c in self.jobs]]

    def capacity(self, group: str) -> FloatArray:
        """Capacities of the servers of a group, shape (S, R)."""
        return self.arrays.group(group).capacity

    def sizes(self, group: str) -> FloatArray:
        """Return by job the largest share of a group's total that a unit takes, shape (I,)."""
        total, demand = self.capacity(group).sum(axis=0), self.demand(group)
        shares = np.divide(demand, total, out=np.zeros_like(demand), where=total > 0)
        largest: FloatArray = shares.max(axis=1, initial=0.0)
        return largest

    def counts(self, values: Mapping[str, float], group: str, slot: int) -> FloatArray:
        """Return the units (I,) of each job in a slot, from `values` by variable name."""
        variables = (c.units(group).get((slot, 0)) for c in self.jobs)
        return np.array([0.0 if v is None else values.get(v.name, 0.0) for v in variables])

    def add(self, group: str, cut: Cut, slots: Iterable[int]) -> list[Row]:
        """Store a cut and add its rows for these slots; return which were added."""
        self.cuts[group].append(cut)
        return self.place(group, len(self.cuts[group]) - 1, slots)

    def place(self, group: str, number: int, slots: Iterable[int]) -> list[Row]:
        """Add a stored cut to the slots that lack it and where it can bind; return new rows."""
        rows = {(group, number, slot) for slot in slots} - self._placed
        new = []
        for row in sorted(rows):
            columns, weights = self._terms(row)
            # A row that even the largest counts keep would only slow HiGHS down.
            if not rounding.fits(float(weights @ self._read.upper[columns]), 1.0):
                new.append(row)
        self._placed.update(new)
        self._rows = self._rows.followed_by(self.rows(new))
        return new

    def rows(self, which: Sequence[Row], limits: FloatArray | None = None) -> RowArrays:
        """Return rows of cuts as arrays; `limits` (M,) are their right-hand sides, default 1."""
        limits = np.full(len(which), 1.0 + CAPACITY_TOLERANCE) if limits is None else limits
        terms = [self._terms(row) for row in which]
        return RowArrays.of_terms(terms, np.full(len(which), -math.inf), limits)

    def forbid(self, group: str, counts: IntArray, slots: Iterable[int]) -> None:
        """Require in each of these slots that some job has fewer units than `counts` (I,)."""
        items = np.flatnonzero(counts)
        for slot in slots:
            name, columns = f"less_{len(self._forbidden)}", self._columns[group][slot, items]
            levels = [(np.array([c]), n) for c, n in zip(columns, counts[items], strict=True)]
            # "Some job has less" is no linear row, and patterns gave none: binaries are the last
            # resort.
            self._read = self._read.below(levels, name)
            self._forbidden += [
                (f"{name}_{k}", self._read.names[columns[0]], int(count))
                for k, (columns, count) in enumerate(levels)
            ]

    def read(self, further: Iterable[RowArrays] = ()) -> ArrayModel:
        """Return the model as arrays, with all rows added so far and those in `further`."""
        is_whole = self._read.is_whole.copy()
        for column, variable in enumerate(self._variables):
            is_whole[column] = variable.cat == pulp.LpInteger
        rows = reduce(RowArrays.followed_by, [self._rows, *further], self._read.rows)
        return replace(self._read, rows=rows, is_whole=is_whole)

    def near(
        self, plan: Mapping[int, int], window: int, known: Mapping[int, int] | None = None
    ) -> Limits:
        """Return bounds: each form completes 0..`window` slots after `plan`, or as `known`."""
        slots = {form: {*range(first, first + window + 1)} for form, first in plan.items()}
        for form, slot in (known or {}).items():
            slots.setdefault(form, set()).add(slot)
        return self.completing(slots)

    def completing(self, slots: Mapping[int, Collection[int]]) -> Limits:
        """Return variable bounds: each form completes in one of its `slots`, or never."""
        limits: dict[str, tuple[float, float]] = {}
        for c in self.jobs:
            allowed = slots.get(c.index, ())
            may = {slot: slot in allowed for slot in c.done}
            limits |= {v.name: (0.0, float(may[slot])) for slot, v in c.done.items()}
            last = max((slot for slot in may if may[slot]), default=-1)
            counts = chain(c.workers.items(), c.ps.items())
            limits |= {v.name: (0.0, 0.0) for (slot, _), v in counts if slot > last}
            limits |= {v.name: (0.0, 0.0) for slot, v in c.runs.items() if slot > last}
        return limits

    def around(self, values: Mapping[str, float], window: int) -> dict[int, range]:
        """Return by form the span of slots with completions in `values`, and `window` more."""
        slots = {}
        for c in self.jobs:
            some = [t for t, variable in c.done.items() if values.get(variable.name, 0.0) > SOME]
            if some:
                slots[c.index] = range(min(some), max(some) + window + 1)
        return slots

    def worth(self, least: float) -> RowArrays:
        """Return the row that requires a total utility of at least `least`."""
        columns = np.flatnonzero(self._read.costs)
        limits = np.array([least]), np.array([math.inf])
        return RowArrays.of_terms([(columns, self._read.costs[columns])], *limits)

    def within(self, room: Mapping[tuple[str, int], float]) -> RowArrays:
        """Return rows of cuts with smaller right-hand sides: `room`, by group and slot."""
        limits = {row: room.get((row[0], row[2]), 1.0) for row in sorted(self._placed)}
        tighter = {row: limit for row, limit in limits.items() if limit < 1.0}
        return self.rows([*tighter], np.array([*tighter.values()], float))

    def require(self, workers: str, ps: str) -> None:
        """Let counts be ``pulp.LpInteger`` or ``pulp.LpContinuous``; completions stay binary."""
        # So does whether a gang runs in a slot: with fractions of that, its minimum says nothing.
        for c in self.jobs:
            kinds = ((workers, c.workers), (ps, c.ps), (pulp.LpInteger, c.runs))
            for category, variables in kinds:
                for variable in variables.values():
                    variable.cat = category

    def require_whole(self, workers: range, ps: range) -> None:
        """Require whole workers and parameter servers in these slots only, fractions elsewhere."""
        for c in self.jobs:
            for slots, variables in ((workers, c.workers), (ps, c.ps)):
                for (slot, _), variable in variables.items():
                    variable.cat = pulp.LpInteger if slot in slots else pulp.LpContinuous
            for slot, variable in c.runs.items():
                variable.cat = pulp.LpInteger if slot in workers else pulp.LpContinuous

    def capped(self, values: Mapping[str, float], slots: range) -> Limits:
        """Return variable bounds: no count in `slots` exceeds its rounded value in `values`."""
        names = (name for slot, name in self._counts() if slot in slots)
        return {name: (0.0, round(values.get(name, 0.0))) for name in names}

    def fixed_outside(self, values: Mapping[str, float], slots: range) -> Limits:
        """Return variable bounds that fix counts outside of `slots` to `values`, rounded."""
        names = (name for slot, name in self._counts() if slot not in slots)
        return {name: (now, now) for name in names for now in [round(values.get(name, 0.0))]}

    def _counts(self) -> Iterator[tuple[int, str]]:
        """Yield the slot and the variable name of every count."""
        for c, group in product(self.jobs, GROUPS):
            for (slot, _), variable in c.units(group).items():
                yield slot, variable.name

    @cached_property
    def size_of(self) -> dict[str, float]:
        """Share of the total capacity (`sizes`) that a unit of each count takes, by name."""
        return {
            variable.name: size
            for group in GROUPS
            for c, size in zip(self.jobs, self.sizes(group).tolist(), strict=True)
            for variable in c.units(group).values()
        }

    def value_of(self, values: Mapping[str, float]) -> float:
        """Return the total utility of the jobs that complete in a solution."""
        done = self.completions(values)
        jobs = ((c, done.get(c.index)) for c in self.jobs)
        return math.fsum(c.utility[slot] for c, slot in jobs if slot is not None)

    def completions(self, values: Mapping[str, float]) -> dict[int, int]:
        """Return the completion slot of each form that completes in a plan, by form."""
        return {
            c.index: slot
            for c in self.jobs
            for slot, variable in c.done.items()
            if values.get(variable.name, 0.0) > 0.5
        }

    def values_of(self, schedules: Mapping[str, Schedule]) -> dict[str, float]:
        counts = {name: merged(schedule) for name, schedule in schedules.items()}
        values = super().values_of(counts)
        for less, name, count in self._forbidden:
            values[less] = float(values.get(name, 0.0) < count)
        return values

    def _columns_of(self, group: str) -> IntArray:
        """Return the model's column of each count of a group, (T, I); -1 where there is none."""
        number = {name: k for k, name in enumerate(self._read.names)}
        # Looked up once: rows of cuts are made by the thousand.
        columns = np.full((self.arrays.horizon, len(self.jobs)), -1)
        for i, c in enumerate(self.jobs):
            for (slot, _), variable in c.units(group).items():
                columns[slot, i] = number[variable.name]
        return columns

    def _terms(self, row: Row) -> tuple[IntArray, FloatArray]:
        """Return the columns of the variables in the row of a cut, and their weights."""
        group, number, slot = row
        columns, weights = self._columns[group][slot], self.cuts[group][number].weights
        is_part = (weights > 0) & (columns >= 0)
        return columns[is_part], weights[is_part]

    def _totals(self, group: str) -> Iterable[Cut]:
        """Yield one cut per resource: the total demand is at most the total capacity."""
        demand, total = self.demand(group), self.capacity(group).sum(axis=0)
        for r in np.flatnonzero(total).tolist():
            if demand[:, r].any():
                yield Cut(demand[:, r] / total[r])


def merged(schedule: Schedule) -> Schedule:
    """Return a copy of a schedule with all tasks of a slot on server 0."""
    workers, ps = (_summed(rows) for rows in (schedule.workers, schedule.ps))
    return Schedule(schedule.job_id, workers, ps, schedule.form)


def _summed(rows: IntArray) -> IntArray:
    slots, inverse = np.unique(rows[:, SLOT], return_inverse=True)
    counts = np.bincount(inverse.ravel(), rows[:, COUNT], len(slots)).astype(np.int64)
    table = np.zeros((len(slots), 3), dtype=np.int64)
    table[:, SLOT], table[:, SERVER], table[:, COUNT] = slots, 0, counts
    return placements(table)
