"""Prices of classes of servers on the empty cluster: the pricing problem, server by class.

While the rows of the configuration LP hold several servers together (`aggregation`), those have
the same prices, and on the empty cluster the same room in every slot. The search then looks at
classes where it would look at servers; only the schedules that it returns say which server runs
what.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oasis.model import rounding
from oasis.model.rounding import FloatArray, IntArray
from oasis.online.ledger import Ledger
from oasis.online.server_group import ServerGroup
from offline.column_generation.aggregation import Grouping, GroupRows


@dataclass(slots=True, kw_only=True)
class MergedServers(ServerGroup):
    """The empty servers of a group in columns of one class each, at the prices of the class.

    Parameters
    ----------
    capacity : (R, C) float array
        Of all servers of each class together.
    used, price, server, copies, spare
        As in `ServerGroup`; nothing is used, and a column stands for the whole class.
    each : (S, R) float array
        Capacity of every server.
    member : (S,) int array
        Class of every server.
    """

    each: FloatArray
    member: IntArray

    @classmethod
    def of(cls, rows: GroupRows, duals: FloatArray) -> MergedServers:
        """The servers of `rows` at the prices that the dual values (T, C, R), flat, stand for."""
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
            each=rows.capacity,
            member=rows.member,
        )

    def fits(self, demand: FloatArray, slots: IntArray, most: int) -> FloatArray:
        """Units of `demand` (R,) that fit on all servers of each class, the same in all slots."""
        units = rounding.units(self.each, demand, most)
        room = np.bincount(self.member, units, len(self.server))
        return np.repeat(room[None], len(slots), axis=0)

    def fill(
        self,
        demand: FloatArray,
        slots: IntArray,
        units: IntArray,
        room: FloatArray | None = None,
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Cheapest servers for ``units[k]`` in ``slots[k]``, lower index first if equal.

        What `fits` says does not help: it counts classes, and servers are filled here.
        """
        held = rounding.units(self.each, demand, int(units.max(initial=0)))
        unit = self.unit_cost(demand, slots)[:, self.member]
        unit[:, held == 0] = np.inf
        order = unit.argsort(axis=1, kind="stable")
        taken = np.minimum(held[order].cumsum(axis=1), units[:, None])
        taken[:, 1:] -= taken[:, :-1].copy()
        slot, place = taken.nonzero()
        return slot, order[slot, place], taken[slot, place]


def merged(grouping: Grouping, duals: FloatArray) -> Ledger:
    """The empty cluster at the prices of the rows' dual values, as the search reads it."""
    split = grouping.worker.size
    worker = MergedServers.of(grouping.worker, duals[:split])
    ps = MergedServers.of(grouping.ps, duals[split:])
    changes = np.zeros(grouping.arrays.horizon, dtype=bool)
    for group in (worker, ps):
        changes[1:] |= (group.price[:, 1:] != group.price[:, :-1]).any(axis=(0, 2))
    return Ledger(grouping.arrays.cluster, worker, ps, changes)
