"""Linear programs that share time on machines of several kinds out among jobs, as Gavel does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast

import numpy as np

from oasis.model import rounding
from oasis.model.errors import SolverError
from oasis.model.groups import GROUPS
from oasis.scheduling import PolicyJob, Site
from oasis.scheduling.job import LimitedDemand, admits

MARGIN = 1e-9  # of a level: what a solver may miss it by
DIGITS = 7  # of a share, beyond which there is only rounding


@dataclass(frozen=True, slots=True)
class Way:
    """A form of a job with its numbers of tasks and its throughput."""

    job: int
    form: int
    seen: PolicyJob  # the job in that form
    workers: int
    ps: int
    rate: float  # its throughput while it runs


class Kinds:
    """The machines of a site in groups that no requirement of any job tells apart."""

    def __init__(self, site: Site, jobs: Iterable[PolicyJob]) -> None:
        self._site = site
        demands = (group.of(job) for job in jobs for group in GROUPS)
        limits = {demand.machines for demand in demands if isinstance(demand, LimitedDemand)}
        machines: dict[tuple[object, ...], list[int]] = {}
        for k, machine in enumerate(site.machines):
            # Machines that no job tells apart are one type: the program stays small on large
            # clusters.
            admitted = frozenset(limit for limit in limits if k in limit)
            machines.setdefault((admitted, machine.hosts), []).append(k)
        self.machines = list(machines.values())

    def admitting(self, job: PolicyJob, group: str) -> list[int]:
        """Return indices of the kinds that may run tasks of `group` of a job with one form."""
        demand = job.worker if group == "worker" else job.ps
        first = [(kind, machines[0]) for kind, machines in enumerate(self.machines)]
        hosts = set(self._site.machines_for(group))
        return [kind for kind, k in first if k in hosts and admits(demand, k)]

    def totals(self, capacity: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the capacity of each kind by resource; `capacity` is by machine."""
        return [
            [sum(column) for column in zip(*(capacity[k] for k in machines), strict=True)]
            for machines in self.machines
        ]


class Program:
    """The linear program for X: the share of time that each job has in each of its forms.

    The shares of a job are at most 1, and the tasks of all ways, each counted for its share of the
    time, take no more of any resource of a kind than all machines of that kind have.
    """

    def __init__(self, ways: Sequence[Way], kinds: Kinds, totals: Sequence[Sequence[int]]) -> None:
        self._ways, self._kinds, self._totals = ways, kinds, totals
        # A column for each pair of kinds: workers and parameter servers may be on different ones.
        self._columns = [
            (number, load) for number, way in enumerate(ways) for load in self._loads(way)
        ]
        self._able = {ways[number].job for number, _ in self._columns}
        places = (
            (kind, r)
            for kind, amounts in enumerate(totals)
            for r, amount in enumerate(amounts)
            if amount
        )
        shared: list[int | tuple[int, int]] = [*dict.fromkeys(way.job for way in ways), *places]
        self._rows = {key: row for row, key in enumerate(shared)}

    def shares(self, needs: Mapping[int, float] | None = None) -> list[float]:
        """Return X for the largest sum of the throughputs.

        With `needs` by job, the least throughput of a job over its need is as large as can be, and
        the sum goes by what is then left.
        """
        shares = [0.0] * len(self._ways)
        if not self._columns:
            return shares
        values = self._solve({}) if not needs else self._at_level(needs)
        for (number, _), share in zip(self._columns, values, strict=True):
            # The solver may miss 0 and 1 by its tolerance.
            shares[number] = min(1.0, shares[number] + max(0.0, share))
        # Equal shares are equal to more than the solver's tolerance: ties go by the order of jobs.
        return [round(share, DIGITS) for share in shares] if needs else shares

    def _at_level(self, needs: Mapping[int, float]) -> list[float]:
        """Return the solution of the largest sum, given the largest level for `needs`."""
        level = self.level(needs) * (1.0 - MARGIN)
        if not math.isfinite(level):
            return self._solve({})
        try:
            return self._solve({job: need * level for job, need in needs.items()})
        except SolverError:
            # Needs that differ by many orders of magnitude leave no room within the tolerance of
            # the solver. The shares of the level itself are a solution, only without what is left.
            return self._solve(needs, is_level=True)[:-1]

    def level(self, needs: Mapping[int, float]) -> float:
        """Return the largest least ratio of throughput to need; infinity if no job has machines."""
        able = any(need > 0.0 for job, need in needs.items() if job in self._able)
        return self._solve(needs, is_level=True)[-1] if able else math.inf

    def gangs(self, way: Way) -> float:
        """Return how many gangs of this form fit on all machines together, as a fraction."""
        room = [
            sum(self._totals[kind][resource] for kind in self._kinds.admitting(way.seen, group))
            / (count * amount)
            for group, count in zip(GROUPS, (way.workers, way.ps), strict=True)
            for resource, amount in group.of(way.seen)
            if count * amount
        ]
        return min(room, default=0.0)

    def _solve(self, needs: Mapping[int, float], *, is_level: bool = False) -> list[float]:
        """Return shares by column, of largest sum above `needs`, or (`is_level`) largest level."""
        from oasis.solvers.lp import ColumnLp, LpColumn  # noqa: PLC0415 (needs an extra)

        least = {job: need for job, need in needs.items() if job in self._able and need > 0.0}
        rows = {job: len(self._rows) + row for row, job in enumerate(least)}
        # Throughputs stand over their needs, so that all rows are of one size.
        limit = 0.0 if is_level else -1.0
        program = ColumnLp([1.0] * len(self._rows) + [limit] * len(rows))
        for number, load in self._columns:
            way = self._ways[number]
            entries = {self._rows[way.job]: 1.0} | {self._rows[p]: use for p, use in load.items()}
            if way.job in rows:
                entries[rows[way.job]] = -way.rate / least[way.job]
            rate = 0.0 if is_level else way.rate
            values = np.array(list(entries.values()))
            program.add_columns([LpColumn(rate, np.array(list(entries)), values)])
        if is_level:
            program.add_columns([LpColumn(1.0, np.array(list(rows.values())), np.ones(len(rows)))])
        solution = program.solve()
        assert solution is not None, "a budget without a limit is never spent"
        return cast(list[float], solution.values.tolist())

    def _loads(self, way: Way) -> Iterator[dict[tuple[int, int], float]]:
        """Yield shares of capacity used, for each pair of kinds for workers and servers."""
        hosts = [
            self._kinds.admitting(way.seen, group) if count else [None]
            for group, count in zip(GROUPS, (way.workers, way.ps), strict=True)
        ]
        for on in product(*hosts):
            load = _load(way, on, self._totals)
            if load is not None:
                yield load


def _load(
    way: Way, on: Sequence[int | None], totals: Sequence[Sequence[int]]
) -> dict[tuple[int, int], float] | None:
    """Return the share of each (kind, resource) that the tasks use; None if a kind has none."""
    load: dict[tuple[int, int], float] = {}
    for group, kind, count in zip(GROUPS, on, (way.workers, way.ps), strict=True):
        if kind is None:
            continue
        for resource, amount in group.of(way.seen):
            total, place = totals[kind][resource], (kind, resource)
            if not total:
                return None
            load[place] = load.get(place, 0.0) + rounding.key(count * amount / total)
    return load
