"""Pricing problem of the configuration LP: the best schedule of one job (21), (27)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from oasis.model import rounding
from oasis.model.cluster import BoolArray
from oasis.model.job import Job
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import Schedule
from oasis.online.dp import Split
from oasis.online.ledger import Ledger
from oasis.online.search import Search
from oasis.online.server_group import ServerGroup
from oasis.solvers.budget import Budget
from offline.column_generation.restricted_master import Grouping, GroupRows
from offline.model.arrays import OfflineArrays

# Weight of the stability centre in the next prices: at first, at most, and its change in a round.
FIRST_SMOOTHING = 0.5
MOST_SMOOTHING = 0.95
SMOOTHING_STEP = 0.1


@dataclass(slots=True, kw_only=True)
class MergedServers(ServerGroup):
    """Empty servers of a group, with a column for each class of them, at the class's prices."""

    capacities: FloatArray
    member: IntArray

    @classmethod
    def of(cls, rows: GroupRows, duals: FloatArray) -> MergedServers:
        """Make the servers of `rows`, priced by the rows' dual values (T, C, R), flattened."""
        total = rows.total
        classes, resources = total.shape
        shaped = duals.reshape(rows.horizon, classes, resources)
        price = np.divide(shaped, total, out=np.zeros_like(shaped), where=total > 0)
        columns = np.arange(classes)
        return cls(
            capacity=np.ascontiguousarray(total.T),
            used=np.zeros((resources, rows.horizon, 0)),
            price=np.ascontiguousarray(np.moveaxis(price, 2, 0)),
            server=columns,
            copies=np.ones_like(columns),
            spare=None,
            capacities=rows.capacity,
            member=rows.member,
        )

    def fits(
        self, demand: FloatArray, slots: IntArray, most: int, admitted: BoolArray | None = None
    ) -> FloatArray:
        """Return the units of `demand` (R,) that each class holds, the same in all slots."""
        units = self._units(demand, most, admitted)
        # Counted server by server: a class as a whole would hold a task that no server of it holds.
        room = np.bincount(self.member, units, len(self.server))
        return np.repeat(room[None], len(slots), axis=0)

    def fill(
        self,
        demand: FloatArray,
        slots: IntArray,
        units: IntArray,
        room: FloatArray | None = None,
        admitted: BoolArray | None = None,
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return k, server, count: the cheapest places for ``units[k]`` in ``slots[k]``."""
        fitting = self._units(demand, int(units.max(initial=0)), admitted)
        unit = self.unit_cost(demand, slots)[:, self.member]
        unit[:, fitting == 0] = np.inf
        order = unit.argsort(axis=1, kind="stable")
        placed = np.minimum(fitting[order].cumsum(axis=1), units[:, None])
        placed[:, 1:] -= placed[:, :-1].copy()
        slot, place = placed.nonzero()
        return slot, order[slot, place], placed[slot, place]

    def _units(self, demand: FloatArray, most: int, admitted: BoolArray | None) -> IntArray:
        """Return the units (S,) that fit on each server: 0 on those that are not admitted."""
        units = rounding.units(self.capacities, demand, most)
        return units if admitted is None else units * admitted


def merged(grouping: Grouping, duals: FloatArray) -> Ledger:
    """Return the empty cluster as a ledger, priced by the dual values of the grouping's rows."""
    split = grouping.worker.size
    worker = MergedServers.of(grouping.worker, duals[:split])
    ps = MergedServers.of(grouping.ps, duals[split:])
    # The search prices a run of slots with equal prices once.
    changes = np.zeros(grouping.arrays.horizon, dtype=bool)
    for group in (worker, ps):
        changes[1:] |= (group.price[:, 1:] != group.price[:, :-1]).any(axis=(0, 2))
    return Ledger(grouping.arrays.cluster, worker, ps, changes)


# Work of one call of `price`, in units of about a second, measured.
PRICE_WORK, PRICE_WORK_PER_PRICE = 5e-4, 2e-8


def pricing_work(arrays: OfflineArrays) -> float:
    """Return the work of one call of `price` on this cluster and horizon, in about seconds."""
    return PRICE_WORK + PRICE_WORK_PER_PRICE * arrays.prices


# Of one call of `price`, for each slot whose prices differ from those before: its dynamic program.
SECONDS_PER_RUN = 8e-6


def in_time(jobs: Sequence[Job], ledger: Ledger, budget: Budget) -> Iterator[Job]:
    """Yield jobs to `price`; raise `OutOfTimeError` before one that takes longer than is left."""
    runs = np.cumsum(ledger.changes[::-1])[::-1]
    for job in jobs:
        after = int(runs[job.arrival]) if job.arrival < len(runs) else 0
        budget.need(SECONDS_PER_RUN * len(job.in_forms) * after, f"the best schedule of {job.id}")
        yield job


def price(
    job: Job, ledger: Ledger, surcharges: Sequence[FloatArray | None] | None = None
) -> tuple[float, Schedule | None]:
    """Return the best positive payoff of `job` and its schedule; 0.0 and None if there is none."""
    candidates: list[tuple[float, int, int, _Surcharged, Split]] = []
    for k, form in enumerate(job.in_forms):
        search = _Surcharged(form, k, ledger, None if surcharges is None else surcharges[k])
        split = search.best()
        if split is not None:
            candidates.append((-split.payoff, split.completion, k, search, split))
    if not candidates:
        return 0.0, None
    *_, search, split = min(candidates, key=lambda one: one[:3])
    return split.payoff, search.schedule(split)


class _Surcharged(Search):
    """The search of Algorithm 2 where each count of workers costs something on top."""

    def __init__(self, job: Job, form: int, ledger: Ledger, surcharge: FloatArray | None) -> None:
        super().__init__(job, ledger, form=form)
        self._surcharge = surcharge

    def _costs(
        self, starts: IntArray, fit: IntArray, room: FloatArray, ps_room: FloatArray
    ) -> FloatArray:
        rows = super()._costs(starts, fit, room, ps_room)
        if self._surcharge is not None:
            rows += self._surcharge[starts, : rows.shape[1]]
        return rows


def empty(arrays: OfflineArrays, worker_prices: FloatArray, ps_prices: FloatArray) -> Ledger:
    """Return the empty cluster as a ledger with prices (T, H, R) and (T, K, R)."""
    unused = np.zeros_like(worker_prices), np.zeros_like(ps_prices)
    return Ledger.of_arrays(arrays.cluster, worker_prices, ps_prices, *unused)


NO_CUTS: FloatArray = np.zeros(0)


@dataclass(slots=True)
class StabilityCentre:
    """The best prices so far, their bound, and their weight in the next prices (`smoothing`)."""

    worker_prices: FloatArray
    ps_prices: FloatArray
    bound: float = math.inf
    cut_duals: FloatArray = field(default_factory=lambda: NO_CUTS)
    smoothing: float = 0.0

    def move(
        self,
        prices: tuple[FloatArray, FloatArray],
        bound: float,
        cut_duals: FloatArray = NO_CUTS,
    ) -> None:
        """Set the prices of the resources and the dual values of the cuts that prove `bound`."""
        self.worker_prices, self.ps_prices = prices
        self.bound, self.cut_duals = bound, cut_duals

    def restart(self) -> None:
        """Set the smoothing to its first value."""
        self.smoothing = FIRST_SMOOTHING

    def adapt(self, *, is_idle: bool, is_beyond: bool) -> None:
        """Smooth less after an `is_idle` round, more if prices are beyond the minimum."""
        # The rule of Pessoa et al. (docs/theory): raise the weight of the centre by a share of what
        # is missing to 1, lower it by a constant.
        if is_idle:
            # Twice as far from the centre: a few idle rounds reach the master's own prices, at
            # which a round that finds nothing is a proof.
            self.smoothing = max(0.0, 2 * self.smoothing - 1)
        elif is_beyond:
            more = self.smoothing + SMOOTHING_STEP * (1 - self.smoothing)
            self.smoothing = min(MOST_SMOOTHING, more)
        else:
            self.smoothing = max(0.0, self.smoothing - SMOOTHING_STEP)
