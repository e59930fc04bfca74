"""Given counts on the servers of one slot, or the proof that they do not fit.

Most counts fit at once. For the others, the patterns that cover them by fractions
(`offline.patterns`) make a MILP that HiGHS solves in a tenth of a second; only what is left is
for the MILP with a variable for each item on each server, which also proves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pulp

from oasis.model import rounding
from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers import Status, highs
from oasis.solvers.arrays import ArrayModel, blocks
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel, Row
from offline.model.arrays import GROUPS, units_that_fit
from offline.model.capacities import Limit, limits_of_server, solve_within
from offline.patterns import Cut, CutGenerator, PatternPool, classes
from offline.processes import Partner

# For placing counts by the patterns that cover them, seconds or units of work.
PLACING_LIMIT = 1.0


class Filling(NamedTuple):
    """Servers of one group by class, and the patterns (P, I), one of which each server may hold."""

    hosts: list[IntArray]
    kind: IntArray
    patterns: IntArray

    @classmethod
    def of(cls, capacity: FloatArray, pool: PatternPool, patterns: Sequence[IntArray]) -> Filling:
        """Sort servers `capacity` (S, R) into the classes of `pool`, with `patterns` by class."""
        hosts = [np.flatnonzero((capacity == row).all(axis=1)) for row in pool.capacity]
        pairs = [(k, row) for k, rows in enumerate(patterns) for row in rows]
        kind = np.array([k for k, _ in pairs], np.int64)
        table = np.array([row for _, row in pairs], np.int64)
        return cls(hosts, kind, table.reshape(len(kind), len(pool.most)))

    @property
    def number(self) -> IntArray:
        """Number of servers in each class, shape (C,)."""
        return np.array([len(servers) for servers in self.hosts], np.int64)

    @property
    def of_class(self) -> FloatArray:
        """Matrix (C, P) that is 1 where a pattern belongs to a class, else 0."""
        rows = [self.kind == k for k in range(len(self.hosts))]
        return np.array(rows, float).reshape(len(self.hosts), len(self.kind))

    def units(self, chosen: IntArray, counts: IntArray) -> IntArray:
        """Return the units (I, S) of `chosen` (P,) servers per pattern, cut to `counts` (I,)."""
        units = np.zeros((len(counts), sum(map(len, self.hosts))), dtype=np.int64)
        for k, servers in enumerate(self.hosts):
            of_class = self.kind == k
            used = np.repeat(self.patterns[of_class], chosen[of_class], axis=0)
            units[:, servers[: len(used)]] = used.T
        return at_most(units, counts)

    def chosen(self, units: IntArray) -> IntArray:
        """Count servers per pattern (P,): each takes the first that covers its `units` (I, S)."""
        chosen = np.zeros(len(self.kind), dtype=np.int64)
        for k, servers in enumerate(self.hosts):
            for wanted in units[:, servers].T:
                holds = (self.kind == k) & (self.patterns >= wanted).all(axis=1)
                chosen[np.flatnonzero(holds)[:1]] += 1
        return chosen


def solved(model: ArrayModel, budget: Budget, **options: Any) -> IntArray | None:
    """Solve with HiGHS; return the variables, rounded to integers, or None without a solution."""
    solution = highs.solve(model, budget=budget, proof=False, **options).uninterrupted()
    values = np.fromiter(solution.values.values(), float)
    return np.rint(values).astype(np.int64) if values.size else None


def place(
    capacity: FloatArray,
    demand: FloatArray,
    counts: IntArray,
    budget: Budget,
    worth: FloatArray | None = None,
) -> tuple[IntArray, bool]:
    """Place the part of `counts` (I,) of most `worth`; return units (I, S), and if proven best."""
    worth = np.ones(len(counts)) if worth is None else worth
    part = budget.within(PLACING_LIMIT)
    units, is_proven = place_by_patterns(capacity, demand, counts, part, worth)
    if is_proven:
        return units, True
    by_server, status = _by_servers(capacity, demand, counts, budget, worth)
    units = max(units, by_server, key=lambda table: float(worth @ table.sum(axis=1)))
    return units, status is Status.OPTIMAL or bool((units.sum(axis=1) == counts).all())


def place_by_patterns(
    capacity: FloatArray,
    demand: FloatArray,
    counts: IntArray,
    budget: Budget,
    worth: FloatArray,
) -> tuple[IntArray, bool]:
    """As `place`, by patterns alone; the second result is True only if all counts fit."""
    # Greed is quick and places most counts; only the others are worth a MILP.
    units = _greedy(capacity, demand, counts)
    if (units.sum(axis=1) == counts).all():
        return units, True
    pool = PatternPool(*classes(capacity, None), demand, counts)
    filling = Filling.of(capacity, pool, CutGenerator(pool).covering(counts, budget))
    # the units of each item, then the servers with each pattern
    table = blocks([[np.eye(len(counts)), -filling.patterns.T], [None, filling.of_class]])
    room = np.append(np.zeros(len(counts)), filling.number)
    worths = np.append(worth, np.zeros(len(filling.kind)))
    most = np.append(counts, filling.number[filling.kind])
    solution = solved(ArrayModel.packing(worths, most, table, room), budget)
    if solution is not None:
        placed = filling.units(solution[len(counts) :], counts)
        units = max(units, placed, key=lambda table: float(worth @ table.sum(axis=1)))
    return units, bool((units.sum(axis=1) == counts).all())


def _by_servers(
    capacity: FloatArray,
    demand: FloatArray,
    counts: IntArray,
    budget: Budget,
    worth: FloatArray,
) -> tuple[IntArray, Status]:
    """Place by a MILP with a variable for each item on each server; return units and status."""
    most = units_that_fit(capacity, demand, counts)
    items = np.flatnonzero(counts).tolist()
    problem = pulp.LpProblem("place", pulp.LpMaximize)
    on: list[dict[int, pulp.LpVariable]] = [
        {
            i: problem.add_variable(f"a_{i}_{s}", 0, int(most[i, s]), pulp.LpInteger)
            for i in items
            if most[i, s]
        }
        for s in range(len(capacity))
    ]
    for i in items:
        placed = [variables[i] for variables in on if i in variables]
        problem.addConstraint(pulp.lpSum(placed) <= int(counts[i]))
    limits: list[Limit] = []
    for room, variables in zip(capacity, on, strict=True):
        limits += limits_of_server(room, [(demand[i], v) for i, v in variables.items()])
    for limit in limits:
        problem.addConstraint(limit.row())
    problem.setObjective(
        pulp.lpSum(float(worth[i]) * v for variables in on for i, v in variables.items())
    )
    solution = solve_within(problem, lambda: limits, budget=budget, proof=False).uninterrupted()
    units = np.zeros((len(counts), len(capacity)), dtype=np.int64)
    for s, variables in enumerate(on):
        for i, variable in variables.items():
            units[i, s] = round(solution.values.get(variable.name, 0.0))
    return units, solution.status


def _greedy(capacity: FloatArray, demand: FloatArray, counts: IntArray) -> IntArray:
    """Place large items first, each where least is free; return units (I, S), maybe not all."""
    units = np.zeros((len(counts), len(capacity)), dtype=np.int64)
    total = capacity.sum(axis=0)
    shares = np.divide(demand, total, out=np.zeros_like(demand), where=total > 0)
    size = shares.max(axis=1, initial=0.0)
    # Resources count by how much of them all counts take together: a task should not end up where
    # it wastes the scarce ones.
    scarce = counts @ shares
    total = np.where(total > 0, total, 1.0)
    free = capacity.astype(float)
    for i in np.argsort(-size, kind="stable").tolist():
        order = np.argsort((free / total) @ scarce, kind="stable")
        room = rounding.units(np.maximum(free[order], 0.0), demand[i], int(counts[i]))
        before = np.concatenate([[0], np.cumsum(room)[:-1]])
        units[i, order] = np.clip(counts[i] - before, 0, room)
        free -= units[i][:, None] * demand[i]
    return units


def adjust(
    capacity: FloatArray, demand: FloatArray, known: IntArray, counts: IntArray
) -> IntArray | None:
    """Place `counts` (I,) with few changes to units `known` (I, S); return None if greed fails."""
    staying = at_most(known, counts)
    # Tasks that stay cost no search, and the schedules of other slots agree with them.
    free = np.maximum(capacity - staying.T @ demand, 0.0)
    units: IntArray = staying + _greedy(free, demand, counts - staying.sum(axis=1))
    return units if (units.sum(axis=1) == counts).all() else None


def at_most(units: IntArray, most: IntArray) -> IntArray:
    """Cut units (I, S) down to `most` (I,) of each item; units on the first servers stay."""
    before = np.cumsum(units, axis=1) - units
    reduced: IntArray = np.clip(most[:, None] - before, 0, units)
    return reduced


class Separation:
    """Finds cuts that counts of the master violate, from the patterns of single servers."""

    def __init__(self, model: CountModel) -> None:
        self.model = model
        most = np.array([c.parallel for c in model.jobs], dtype=np.int64)
        self._generators = {
            group: CutGenerator.of(model.capacity(group), model.demand(group), most)
            for group in GROUPS
        }
        self._partner: Partner | None = None
        self._received: list[tuple[str, Cut]] = []

    def share(self, partner: Partner) -> None:
        """Exchange new cuts with the solve of another process from now on."""
        self._partner = partner
        partner.on("cuts", self._received.append)

    def cut(
        self,
        values: Mapping[str, float],
        budget: Budget,
        slots: range | None = None,
        new: range | None = None,
    ) -> list[Row]:
        """Add and return rows that `values` violate in `slots`; new cuts only for slots `new`."""
        self._take_up()
        slots = range(self.model.arrays.horizon) if slots is None else slots
        new = slots if new is None else new
        rows: list[Row] = []
        open_slots: list[tuple[str, int, FloatArray]] = []
        for group, slot in product(GROUPS, slots):
            counts = self.model.counts(values, group, slot)
            broken = self._broken(group, slot, counts)
            rows += broken
            if not broken and slot in new:
                open_slots.append((group, slot, counts))
        if not rows:
            for group, slot, counts in open_slots:
                broken = self._broken(group, slot, counts)  # by a cut of a slot before
                if not broken:
                    cut = self._generators[group].separate(counts, budget)
                    broken = [] if cut is None else self._learnt(group, cut, [slot])
                rows += broken
        return rows

    def _learnt(self, group: str, cut: Cut, slots: Iterable[int]) -> list[Row]:
        """Add a new cut, also to the other process; return its rows for these slots."""
        if self._partner is not None:
            self._partner.tell("cuts", (group, cut))
        return self.model.add(group, cut, slots)

    def _take_up(self) -> None:
        """Store the cuts that the other process sent; `cut` adds their rows where violated."""
        received = self._received.copy()
        self._received.clear()
        for group, cut in received:
            self.model.add(group, cut, [])

    def _broken(self, group: str, slot: int, counts: FloatArray) -> list[Row]:
        """Add and return the rows of stored cuts that the counts (I,) of a slot violate."""
        known = enumerate(self.model.cuts[group])
        broken = [number for number, cut in known if cut.is_violated(counts)]
        return [row for number in broken for row in self.model.place(group, number, [slot])]

    def cut_off(
        self, group: str, counts: IntArray | FloatArray, slots: Iterable[int], budget: Budget
    ) -> bool:
        """Add a cut that `counts` (I,) violate, for `slots`; return whether one was found."""
        self._take_up()
        cut = self._generators[group].separate(counts.astype(float), budget)
        if cut is not None:
            self._learnt(group, cut, slots)
        return cut is not None

    def forbid(self, group: str, counts: IntArray, slots: Iterable[int], budget: Budget) -> None:
        """Forbid counts (I,) in these slots, if they are proven not to fit: the last resort."""
        if self._is_misfit(group, counts, budget):
            self.model.forbid(group, self._shrunk(group, counts, budget), slots)

    def _shrunk(self, group: str, counts: IntArray, budget: Budget) -> IntArray:
        """Return a reduced copy of `counts` (I,) that still does not fit, for a stronger cut."""
        # The less the others leave of a misfit, the more counts lie above it and are forbidden too.
        least = counts.copy()
        for i in np.flatnonzero(counts).tolist():
            fits, misfits = -1, int(least[i])
            while misfits - fits > 1:
                trial = least.copy()
                # most jobs can go altogether, or give up nothing
                trial[i] = 0 if fits < 0 else (fits + misfits) // 2
                if self._is_misfit(group, trial, budget):
                    misfits = int(trial[i])
                else:
                    fits = int(trial[i])
            least[i] = misfits
        return least

    def _is_misfit(self, group: str, counts: IntArray, budget: Budget) -> bool:
        """Return whether `counts` (I,) are proven not to fit on the servers."""
        capacity, demand = self.model.capacity(group), self.model.demand(group)
        units, is_proven = place(capacity, demand, counts, budget)
        return is_proven and bool(units.sum() < counts.sum())
