"""Rows of the configuration LP, with servers that may share a row.

Adding up the rows (15) or (16) of several servers relaxes the problem; in the dual it forces these
servers to have the same price. For identical servers nothing is lost: D is convex and symmetric in
them, so equal prices are optimal. For servers of similar shape little is lost, and the master is
many times smaller: the column generation goes from coarse to fine.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule
from offline.model.arrays import OfflineArrays


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Rows of one server group: (slot, class of servers, resource), all with right-hand side 1.

    Parameters
    ----------
    horizon : int
        T.
    capacity : (S, R) float array
        Capacities of the servers.
    member : (S,) int array
        Class of each server, 0 .. C - 1.
    """

    horizon: int
    capacity: FloatArray
    member: IntArray
    total: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        total = np.zeros((int(self.member.max()) + 1, self.capacity.shape[1]))
        np.add.at(total, self.member, self.capacity)
        object.__setattr__(self, "total", total)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.horizon * self.total.size

    def prices(self, duals: FloatArray) -> FloatArray:
        """Prices (T, S, R) per unit of resource from the dual values of the rows."""
        shaped = duals.reshape(self.horizon, *self.total.shape)
        by_class = np.divide(shaped, self.total, out=np.zeros_like(shaped), where=self.total > 0)
        return by_class[:, self.member]

    def duals(self, prices: FloatArray) -> FloatArray:
        """Dual values of the rows from prices (T, S, R): what all of a class's capacity costs."""
        classes, resources = self.total.shape
        duals = np.zeros((classes, self.horizon, resources))
        np.add.at(duals, self.member, np.moveaxis(prices * self.capacity, 1, 0))
        return np.moveaxis(duals, 0, 1).ravel()

    def usage(self, rows: IntArray, demand: FloatArray) -> tuple[IntArray, FloatArray]:
        """Rows that placements of `demand` use, and the share of the capacity they take."""
        classes, resources = self.total.shape
        place = rows[:, SLOT] * classes + self.member[rows[:, SERVER]]
        used, inverse = np.unique(place, return_inverse=True)
        counts = np.bincount(inverse.ravel(), rows[:, COUNT], minlength=len(used))
        wanted = np.flatnonzero(demand > 0)
        amounts = counts[:, None] * demand[wanted]
        shares = amounts / self.total[used % classes][:, wanted]
        return (used[:, None] * resources + wanted).ravel(), shares.ravel()


@dataclass(frozen=True, slots=True)
class Grouping:
    """Rows (15) of the worker servers, then (16) of the hosts of parameter servers.

    Parameters
    ----------
    arrays : OfflineArrays
        The problem.
    worker, ps : GroupRows
        The rows of each group.
    """

    arrays: OfflineArrays
    worker: GroupRows
    ps: GroupRows

    @classmethod
    def of(cls, arrays: OfflineArrays, classes: int | None = None) -> Grouping:
        """Classes of similar servers, at most `classes` a group; None: of identical ones."""
        groups = [
            GroupRows(arrays.horizon, capacity, similar(capacity, classes))
            for capacity in (arrays.worker.capacity, arrays.ps.capacity)
        ]
        return cls(arrays, *groups)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.worker.size + self.ps.size

    def prices(self, duals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prices (T, H, R) and (T, K, R) from the dual values of the rows."""
        split = self.worker.size
        return self.worker.prices(duals[:split]), self.ps.prices(duals[split:])

    def duals(self, worker_prices: FloatArray, ps_prices: FloatArray) -> FloatArray:
        """Dual values of the rows from prices; undoes `prices` where a class has one price."""
        return np.concatenate([self.worker.duals(worker_prices), self.ps.duals(ps_prices)])

    def usage(self, job: int, schedule: Schedule) -> tuple[IntArray, FloatArray]:
        """Entries of a schedule's column: row numbers and shares of their capacity."""
        rows, shares = self.worker.usage(schedule.workers, self.arrays.worker.demand[job])
        ps_rows, ps_shares = self.ps.usage(schedule.ps, self.arrays.ps.demand[job])
        return np.concatenate([rows, ps_rows + self.worker.size]), np.concatenate(
            [shares, ps_shares]
        )


def levels(arrays: OfflineArrays, classes: tuple[int, ...]) -> list[Grouping]:
    """Groupings with at most so many `classes`, then of identical servers; each finer than before.

    Where two have as many rows, only the finer one is kept.
    """
    groupings = [Grouping.of(arrays, most) for most in (*classes, None)]
    finer = [*(grouping.size for grouping in groupings[1:]), None]
    return [g for g, size in zip(groupings, finer, strict=True) if g.size != size]


def similar(capacity: FloatArray, classes: int | None) -> IntArray:
    """Class of each server, shape (S,): at most `classes`, of servers with a similar mix.

    Only the proportions between resources matter: servers with the same proportions are worth
    as much together as one. Classes are split in two, the widest first, along the resource in
    whose share they differ most, so that finer groupings refine coarser ones.
    """
    kinds, kind = np.unique(capacity, axis=0, return_inverse=True)
    kind = kind.ravel()
    if classes is None:
        return np.asarray(kind, dtype=np.int64)
    total = capacity.sum(axis=0)
    mix = np.divide(kinds, total, out=np.zeros_like(kinds), where=total > 0)
    mix /= np.maximum(mix.sum(axis=1, keepdims=True), 1e-300)
    member = np.zeros(len(kinds), dtype=np.int64)
    for new in range(1, min(classes, len(kinds))):
        spreads = [np.ptp(mix[member == k], axis=0) for k in range(new)]
        widest = int(np.argmax([spread.max() for spread in spreads]))
        axis = int(np.argmax(spreads[widest]))
        if spreads[widest][axis] <= 1e-12:
            break
        inside = np.flatnonzero(member == widest)
        middle = (mix[inside, axis].min() + mix[inside, axis].max()) / 2
        member[inside[mix[inside, axis] > middle]] = new
    return member[kind]
