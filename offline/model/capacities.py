"""Capacities (4)(5) as rows of a model, and solves that keep them as the verification does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pulp

from oasis.model import rounding
from oasis.model.errors import SolverError
from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers import Solution, Status, highs
from oasis.solvers.arrays import ArrayModel
from offline.model.arrays import GROUPS, OfflineArrays
from offline.model.variables import JobVariables

SURE = 1e-14  # relative: more than rounding moves a product, or a sum that `math.fsum` has made


@dataclass(frozen=True, slots=True)
class CapacityLevel:
    """Items, and a sum of their units (`count`) that counts reach or stay below."""

    items: IntArray
    count: int

    def is_reached(self, counts: IntArray) -> bool:
        """Return whether counts (I,) reach this number of units."""
        return bool(counts[self.items].sum() >= self.count)


def used(amounts: Sequence[float], counts: Sequence[int]) -> float:
    """Amount that counts (I,) of items use, summed as `oasis.certify.verify` does."""
    pairs = zip(amounts, counts, strict=True)
    return math.fsum(count * amount for amount, count in pairs if count)


def fits(amounts: Sequence[float], counts: Sequence[int], capacity: float) -> bool:
    """Return whether counts (I,) of items with amounts (I,) fit a capacity."""
    return rounding.fits(used(amounts, counts), capacity)


@dataclass(frozen=True, slots=True)
class Cover:
    """Counts that exceed a capacity; with one unit less of any item, they fit."""

    amounts: Sequence[float]
    counts: Sequence[int]
    capacity: float

    @classmethod
    def within(cls, amounts: Sequence[float], counts: Sequence[int], capacity: float) -> Cover:
        """Reduce counts (I,) that do not fit to a cover: the smallest items leave first."""
        least = list(counts)
        for i in np.argsort(amounts, kind="stable").tolist():
            while least[i] > 0:
                least[i] -= 1
                if fits(amounts, least, capacity):
                    least[i] += 1
                    break
        return cls(amounts, least, capacity)

    @property
    def is_sure(self) -> bool:
        """Whether the counts exceed the capacity by more than any rounding."""
        highest = self.capacity * (1.0 + CAPACITY_TOLERANCE)
        return used(self.amounts, self.counts) > highest * (1.0 + SURE)

    def levels(self, amounts: Sequence[float] | None = None) -> list[CapacityLevel]:
        """Return levels: fitting counts miss one. For other `amounts`, [] unless `is_sure`."""
        # What has as many units at least as large as the j-th of the cover, for every j, uses no
        # less than the cover; so what fits has fewer units of some size or larger. Where rounding
        # decides whether the cover fits, a level is one item, and only the same sums are compared.
        own, counts = np.array(self.amounts, np.float64), np.array(self.counts, np.int64)
        if self.is_sure:
            others: FloatArray = own if amounts is None else np.array(amounts, np.float64)
            sizes = np.unique(own[counts > 0])[::-1].tolist()
            return [
                CapacityLevel(np.flatnonzero(others >= size), int(counts[own >= size].sum()))
                for size in sizes
            ]
        if amounts is not None:
            return []
        return [
            CapacityLevel(np.array([i]), int(counts[i])) for i in np.flatnonzero(counts).tolist()
        ]


Variables = Sequence[pulp.LpVariable]
Covered = tuple[float, tuple[tuple[float | str, int], ...]]  # a capacity and units that exceed it


@dataclass(frozen=True, slots=True)
class Limit:
    """A capacity constraint on integer variables."""

    capacity: float
    amounts: tuple[float, ...]
    variables: Variables

    def row(self) -> pulp.LpConstraint:
        """Return the row for a solver: in shares of the capacity, with the tolerance of `fits`."""
        pairs = zip(self.amounts, self.variables, strict=True)
        shares = pulp.lpSum(amount / self.capacity * variable for amount, variable in pairs)
        return shares <= 1.0 + CAPACITY_TOLERANCE

    def counts(self, values: Mapping[str, float]) -> list[int]:
        """Return the values of the variables, rounded to integers."""
        return [round(values.get(variable.name, 0.0)) for variable in self.variables]

    def holds(self, values: Mapping[str, float]) -> bool:
        """Return whether `oasis.certify.verify` accepts the variables, rounded to integers."""
        return fits(self.amounts, self.counts(values), self.capacity)

    def cover(self, values: Mapping[str, float]) -> Cover:
        """Return the cover in values that break this limit."""
        return Cover.within(self.amounts, self.counts(values), self.capacity)


def limits_of_server(
    capacity: FloatArray, users: Iterable[tuple[FloatArray, pulp.LpVariable]]
) -> Iterator[Limit]:
    """Yield the limit of each resource (R,) that the variables, by their demands, could exceed."""
    demands = list(users)
    for r, capacity_r in enumerate(capacity.tolist()):
        terms = [(float(demand[r]), var) for demand, var in demands if demand[r] > 0]
        if not rounding.fits(sum(amount * var.upBound for amount, var in terms), capacity_r):
            amounts, variables = zip(*terms, strict=True)
            yield Limit(capacity_r, amounts, variables)


def limits_of_empty_servers(arrays: OfflineArrays, jobs: Iterable[JobVariables]) -> Iterator[Limit]:
    """Yield (4): sum_i w_i^r y_ih(t) <= c_h^r, and (5): sum_i s_i^r z_ik(t) <= c_k^r."""
    all_jobs = list(jobs)
    for name in GROUPS:
        group = arrays.group(name)
        users: dict[tuple[int, int], list[tuple[FloatArray, pulp.LpVariable]]] = {}
        for c in all_jobs:
            for place, variable in c.units(name).items():
                users.setdefault(place, []).append((group.demand[c.index], variable))
        for (_, server), demands in users.items():
            yield from limits_of_server(group.capacity[server], demands)


def solve_within(
    problem: pulp.LpProblem,
    limits: Callable[[], Iterable[Limit]],
    on_refused: Callable[[], None] | None = None,
    **options: Any,
) -> Solution:
    """Solve until the solution keeps all limits exactly; `on_refused` is called if one does not."""
    # HiGHS lets a capacity be exceeded by a little more than is forgiven, even if its row is
    # multiplied by `highs.ROW_SCALE`. Such a solution is cut off by rows of whole numbers that
    # everything keeps that fits, and the model is solved again.
    bound, known = math.inf, set[Covered]()
    model = ArrayModel.of(problem)
    column = {name: k for k, name in enumerate(model.names)}
    while True:
        solution = highs.solve(model, row_scale=highs.ROW_SCALE, **options)
        # Rows added later cut off only what does not fit, so every earlier bound still holds.
        bound = min(bound, solution.bound)
        solution = replace(solution, bound=bound)
        broken = [limit for limit in limits() if not limit.holds(solution.values)]
        if not broken:
            return solution
        if on_refused is not None:
            on_refused()
        if solution.status not in (Status.OPTIMAL, Status.GAP_LIMIT):
            return replace(solution, objective=None, gap=math.inf, values={})
        new = _covers(broken, solution.values)
        # A cover can come back only if HiGHS ignores its row: solving again would never end.
        if not new.keys().isdisjoint(known):
            raise SolverError("HiGHS breaks a row of whole numbers")
        number = len(known)
        known |= new.keys()
        for variables, levels in _cut_off(new.values(), limits()):
            columns = np.array([column[variable.name] for variable in variables])
            pairs = [(columns[level.items], level.count) for level in levels]
            model = model.below(pairs, f"cover_{number}")
            number += 1


def _covers(
    broken: Iterable[Limit], values: Mapping[str, float]
) -> dict[Covered, tuple[Limit, Cover]]:
    """Return the first broken limit and its cover for each capacity and units that exceed it."""
    covers: dict[Covered, tuple[Limit, Cover]] = {}
    for limit in broken:
        cover = limit.cover(values)
        units = [
            (a, v, n)
            for a, v, n in zip(limit.amounts, limit.variables, cover.counts, strict=True)
            if n
        ]
        # Equal capacities and unit sizes give equal levels on any server. Within rounding of the
        # capacity only the same variables do, because only their sums are rounded alike.
        if cover.is_sure:
            key = limit.capacity, tuple(sorted((a, n) for a, _, n in units))
        else:
            key = limit.capacity, tuple(sorted((v.name, n) for _, v, n in units))
        covers.setdefault(key, (limit, cover))
    return covers


def _cut_off(
    covers: Iterable[tuple[Limit, Cover]], limits: Iterable[Limit]
) -> Iterator[tuple[Variables, list[CapacityLevel]]]:
    """Yield for each cover the variables and levels of every limit that it must be forbidden in."""
    # An equal server, or a later slot, could be overfilled in the same way: all get the row at
    # once.
    everywhere = list(limits)
    for limit, cover in covers:
        if not cover.is_sure:
            yield limit.variables, cover.levels()
            continue
        for other in everywhere:
            if other.capacity == limit.capacity:
                yield other.variables, cover.levels(other.amounts)
