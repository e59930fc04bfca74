"""Committed amounts and prices on the servers of one group, and the cheapest servers to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from oasis.model import rounding
from oasis.model.cluster import BoolArray, Server
from oasis.model.rounding import FloatArray, IntArray
from oasis.online.prices import Prices

SPARE_MARGIN = 1e-8  # relative; more than all rounding, of sums and of units on each server
FEW = 2  # up to this number, units are quicker placed one by one


@dataclass(slots=True)
class ServerGroup:
    """Capacity, committed amounts and prices of a server group, column by column.

    A column is one server, or several identical neighbours on which nothing was ever committed.
    Arrays are resource-major because every pass over them goes resource by resource.

    Parameters
    ----------
    capacity : (R, C) float array
        c^r of one server of each column.
    used : (R, T, C) float array
        g^r(t), units of resource r committed on one server of the column.
    price : (R, T, C) float array
        p^r(t), utility per unit of resource r.
    server : (C,) int array
        Index of the column's first server, increasing.
    copies : (C,) int array
        Servers in the column; more than one only while they are idle throughout.
    spare : (R, T) float array or None
        Units of resource r that are free on all servers together, or somewhat more; None where
        it is not counted.
    lost : set of int
        Servers that are lost.
    is_even : bool
        Whether all servers cost the same in each slot, whatever is committed. Servers are then
        filled in the order of their index, and no costs need to be sorted.
    closed : (T, C) bool array or None
        Places where a calendar lets no task run, whatever it asks for; None: nowhere.
    """

    capacity: FloatArray
    used: FloatArray
    price: FloatArray
    server: IntArray
    copies: IntArray
    spare: FloatArray | None = None
    lost: set[int] = field(default_factory=set)
    is_even: bool = False
    closed: BoolArray | None = None

    @classmethod
    def idle(
        cls,
        servers: tuple[Server, ...],
        capacity: FloatArray,
        horizon: int,
        price: Prices,
    ) -> ServerGroup:
        """Make a group with nothing committed: one column for each entry of `servers`."""
        copies = np.array([server.count for server in servers], dtype=np.int64)
        first = np.cumsum(copies) - copies
        columns = np.ascontiguousarray(capacity[first].T)
        used = np.zeros((len(columns), horizon, len(first)))
        # All slots of an idle server cost the same: (22) is evaluated for one slot and repeated.
        idle = price.at(np.zeros_like(columns).T, columns.T).T
        group = cls(columns, used, np.repeat(idle[:, None], horizon, axis=1), first, copies)
        group.count_spare()
        return group

    @classmethod
    def of_arrays(cls, capacity: FloatArray, used: FloatArray, price: FloatArray) -> ServerGroup:
        """Make a group from copies of arrays of shapes (S, R), (T, S, R) and (T, S, R)."""
        servers = np.arange(len(capacity))
        # In the order in which they are read: `take` copies all of an array in another order.
        used, price = (np.ascontiguousarray(np.moveaxis(array, 2, 0)) for array in (used, price))
        return cls(capacity.T, used, price, servers, np.ones_like(servers))

    def count_spare(self) -> None:
        """Compute the spare capacity of each slot, and track it from now on."""
        # A lost server may hold more than its capacity of 0 and must not take away from the others.
        unused = np.maximum(self.capacity[:, None] - self.used, 0.0)
        if self.closed is not None:
            unused[:, self.closed] = 0.0
        free = unused @ self.copies.astype(np.float64)
        self.spare = free + self._margin[:, None]

    @property
    def _margin(self) -> FloatArray:
        """By how much `spare` may exceed the free capacity, for rounding; (R,)."""
        margin: FloatArray = SPARE_MARGIN * (self.capacity @ self.copies)
        return margin

    def units_at_most(self, demand: FloatArray, slots: IntArray, most: int) -> IntArray:
        """Upper bound on units of `demand` in each of `slots`, as if all servers were one; (q,)."""
        if self.spare is None:
            return np.full(len(slots), most)
        if not len(self.copies):  # no machine hosts parameter servers
            return np.zeros(len(slots), dtype=np.int64)
        free = self.spare.take(slots, axis=1)
        needed = demand > 0
        if not needed.all():
            free, demand = free[needed], demand[needed]
        with np.errstate(over="ignore"):  # the quotient by a tiny demand is inf, which `most` caps
            free /= demand[:, None]
        units = free.min(axis=0, initial=float(most))
        # Counts are rounded up by a tolerance on each server;
        # this is more than all of that together.
        units += SPARE_MARGIN * (units + int(self.copies[-1] + self.server[-1]))
        np.minimum(units, most, out=units)
        at_most: IntArray = np.maximum(units, 0.0, out=units).astype(np.int64)
        return at_most

    def expand(self, array: FloatArray) -> FloatArray:
        """Return `array`, `used` or `price` by column, for every server: a new (T, S, R)."""
        return np.moveaxis(np.repeat(array, self.copies, axis=2), 0, 2).copy()

    def price_at(self, slots: IntArray, servers: IntArray) -> FloatArray:
        """Return the prices at these places (slot, server), shape (P, R)."""
        return self.price[:, slots, self._column(servers)].T

    def fits(
        self, demand: FloatArray, slots: IntArray, most: int, admitted: BoolArray | None = None
    ) -> FloatArray:
        """Units of `demand` (R,) that fit on one server of each column, at most `most`; (q, C).

        On a lost or closed server none fits, not even one that asks for nothing; nor on a server
        that is not `admitted` (S,), if that is given.
        """
        units = self._fits(demand, slots, most)
        if self.closed is not None:
            units[self.closed.take(slots, axis=0)] = 0.0
        if admitted is not None:
            units[:, ~self._of_columns(admitted)] = 0.0
        return units

    def _fits(self, demand: FloatArray, slots: IntArray, most: int) -> FloatArray:
        """As `fits`, but without regard to labels and to servers that a calendar closes."""
        # (4) and (5) resource by resource: one pass over the servers each,
        # and nothing for what a task does not ask for.
        least: FloatArray | None = None
        with np.errstate(over="ignore"):  # the quotient by a tiny demand is inf, which `most` caps
            for r in demand.nonzero()[0]:
                free = self.capacity[r] - self.used[r].take(slots, axis=0)
                free /= demand[r]
                least = free if least is None else np.minimum(least, free, out=least)
        if least is None:
            # A task without any demand fits everywhere, except where there is no machine.
            units = np.full((len(slots), len(self.server)), float(most))
            if self.lost:
                units[:, self._column(np.array(sorted(self.lost)))] = 0.0
            return units
        np.minimum(least, float(most), out=least)
        return rounding.floor_counts(least)  # it is monotone: rounding once is enough

    def fits_on(
        self, demand: FloatArray, slots: IntArray, servers: IntArray, most: int
    ) -> IntArray:
        """Units of `demand` that fit on n `servers`, of any labels, at most `most`; (q, n)."""
        units = self.fits(demand, slots, most)[:, self._column(servers)]
        # Less than nothing fits where more is committed than a server holds now.
        counts: IntArray = np.maximum(units, 0.0).astype(np.int64)
        return counts

    def on_columns(self, fits: FloatArray) -> FloatArray:
        """Multiply `fits` of one server by the servers of each column; return (q, C)."""
        return fits if self._is_open else fits * self.copies

    def room_by_resource(
        self, demand: FloatArray, slots: IntArray, most: int, admitted: BoolArray | None = None
    ) -> FloatArray:
        """Units on all `admitted` servers, each up to `most`, by one needed resource; (d, q)."""
        copies = self.copies if admitted is None else self.copies * self._of_columns(admitted)
        needed = demand.nonzero()[0]
        free = self.capacity[needed, None] - self.used[needed[:, None], slots]
        if self.closed is not None:
            free[:, self.closed[slots]] = 0.0
        with np.errstate(over="ignore"):  # the quotient by a tiny demand is inf, which `most` caps
            free /= demand[needed, None, None]
        np.minimum(free, float(most), out=free)
        units: FloatArray = rounding.floor_counts(free) @ copies.astype(np.float64)
        return units

    def unit_cost(
        self, demand: FloatArray, slots: IntArray, columns: int | None = None
    ) -> FloatArray:
        """sum_r p^r w^r of a unit on one server of each of the first `columns`; (q, C)."""
        cost: FloatArray | None = None
        for r in demand.nonzero()[0]:
            part = self.price[r, :, :columns].take(slots, axis=0)
            part *= demand[r]
            cost = part if cost is None else np.add(cost, part, out=cost)
        if cost is None:
            return np.zeros((len(slots), len(self.server[:columns])))
        return cost

    def total_costs(
        self, demand: FloatArray, slots: IntArray, room: FloatArray, most: int
    ) -> FloatArray:
        """Cost of 0..`most` units on the cheapest servers of each slot (Alg. 2, l. 23-30).

        Returns an array of shape (q, most + 1), inf where the units do not fit in `room`.
        """
        if self.is_even:
            return self._even_costs(demand, slots, room, most)
        # Alg. 2, l. 25: the order of the servers is that of sum_r p^r w^r.
        unit = self.unit_cost(demand, slots)
        unit[room == 0.0] = np.inf
        if most <= FEW:
            return _few_costs(unit, room, most)
        row = np.arange(len(slots))[:, None]
        # A small job on a large cluster needs the few cheapest servers:
        # selecting them costs less than sorting all.
        if unit.shape[1] > 4 * most:  # every server with room holds at least one unit
            order = np.argpartition(unit, most - 1, axis=1)[:, :most]
            unit, room = unit[row, order], room[row, order]
        # Any order of ties will do: servers that cost the same leave the sums the same.
        order = unit.argsort(axis=1)
        ends = np.empty((len(slots), unit.shape[1] + 2))
        ends[:, 0], ends[:, -1] = 0.0, most
        # Alg. 2, l. 26-31 for all counts at once: each server is filled before the next one, so
        # the servers cover consecutive intervals of the count.
        np.minimum(room[row, order].cumsum(axis=1), most, out=ends[:, 1:-1])
        counts = (ends[:, 1:] - ends[:, :-1]).astype(np.int64)  # last column: units that do not fit
        values = np.empty_like(ends[:, 1:])
        # Alg. 2, l. 32-34 and 41-43: what does not fit on all servers together is infeasible.
        values[:, :-1], values[:, -1] = unit[row, order], np.inf
        result = np.zeros((len(slots), most + 1))
        unit_costs = values.ravel().repeat(counts.ravel()).reshape(-1, most)
        unit_costs.cumsum(axis=1, out=result[:, 1:])
        return result

    def _even_costs(
        self, demand: FloatArray, slots: IntArray, room: FloatArray, most: int
    ) -> FloatArray:
        """As `total_costs`, where all servers cost the same and only the room counts."""
        unit = self.unit_cost(demand, slots, 1)
        result = np.zeros((len(slots), most + 1))
        # Summed one by one, as where servers differ: a product would round differently.
        unit.repeat(most, axis=1).cumsum(axis=1, out=result[:, 1:])
        result[np.arange(most + 1) > room.sum(axis=1)[:, None]] = np.inf
        return result

    def fill(
        self, demand: FloatArray, slots: IntArray, units: IntArray, room: FloatArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Cheapest servers with room for ``units[k]`` in ``slots[k]``, lower index first if equal.

        `room` is the result of `fits` for these slots, with `most` at least these units.
        Returns k, the server and its count, for every server used; the units must fit.
        """
        if self.is_even:
            fitting, copies, order = room.astype(np.int64), self.copies, None
        else:
            unit = self.unit_cost(demand, slots)
            unit[room == 0.0] = np.inf
            if (units == 1).all():  # one unit needs no order
                return np.arange(len(slots)), self.server[rounding.first_of_least(unit)], units
            # Here the order of ties decides which servers are used.
            order = rounding.ascending(unit)
            fitting = room[np.arange(len(slots))[:, None], order].astype(np.int64)
            copies = self.copies[order]
        placed = np.minimum((fitting * copies).cumsum(axis=1), units[:, None])
        placed[:, 1:] -= placed[:, :-1].copy()
        slot, place = placed.nonzero()
        column = place if order is None else order[slot, place]
        fitting, placed = fitting[slot, place], placed[slot, place]
        server = self.server[column]
        if self._is_open:
            return slot, server, placed
        # A column of several machines is idle: the greedy fills them from the first on.
        machines = -(-placed // fitting)  # all servers of a column are full but perhaps the last
        slot, server, placed, full = (a.repeat(machines) for a in (slot, server, placed, fitting))
        offset = np.arange(len(slot)) - (machines.cumsum() - machines).repeat(machines)
        return slot, server + offset, np.minimum(full, placed - offset * full)

    def commit(
        self,
        slots: IntArray,
        servers: IntArray,
        amounts: FloatArray,
        price: Prices | None,
    ) -> None:
        """Add `amounts` (P, R) at distinct places (slot, server) and reprice (Alg. 1, l. 9-12).

        Amounts below zero take back what was added before. Without `price` prices stay.
        """
        columns = self._open(servers)
        # Places are distinct, so that one indexed assignment is enough.
        used = self.used[:, slots, columns] + amounts.T
        self.used[:, slots, columns] = used
        if price is not None:
            self.price[:, slots, columns] = price.at(used.T, self.capacity[:, columns].T).T
        if self.spare is not None:
            # Several servers of one slot take from the same sum: an
            # indexed subtraction would count one of them.
            np.subtract.at(self.spare.T, slots, amounts)

    def reprice(self, price: Prices) -> None:
        """Recompute every price from the committed amounts by `price`."""
        self.is_even = False
        used = np.moveaxis(self.used, 0, 2)
        self.price = np.ascontiguousarray(np.moveaxis(price.at(used, self.capacity.T), 2, 0))

    def close(self, closed: Mapping[int, BoolArray]) -> None:
        """Close each server in slots that are True (T,), instead of earlier ones; amounts stay."""
        self.closed = None
        if closed:
            columns = self._open(np.array(sorted(closed)))
            self.closed = np.zeros(self.used.shape[1:], dtype=bool)
            for server, column in zip(sorted(closed), columns.tolist(), strict=True):
                self.closed[:, column] = closed[server]
        if self.spare is not None:
            self.count_spare()

    def is_crowded(self, slots: IntArray, servers: IntArray) -> bool:
        """Whether one of these places is closed, or has less capacity than is committed."""
        columns = self._column(servers)
        most = self.capacity[:, columns] * (1 + SPARE_MARGIN)
        on_closed = self.closed is not None and self.closed[slots, columns].any()
        return bool((most < self.used[:, slots, columns]).any() or on_closed)

    def set_capacity(self, server: int, capacity: FloatArray, price: Prices | None = None) -> None:
        """Set the capacity (R,) of a server, also of a lost one; without `price` prices stay."""
        self.lost.discard(server)
        column = self._open(np.array([server]))[0]
        # It may be a view of the cluster's own array.
        self.capacity = self.capacity.copy()
        self.capacity[:, column] = capacity
        if price is not None:
            self.price[:, :, column] = price.at(self.used[:, :, column].T, capacity).T
        if self.spare is not None:
            self.count_spare()

    def lose(self, server: int) -> None:
        """Let no task fit on a server in any slot any more; its prices stay."""
        # Without capacity nothing fits that asks for something;
        # `lost` is for tasks that ask for nothing.
        self.set_capacity(server, np.zeros(len(self.capacity)))
        self.lost.add(server)

    def roll(self, slots: int, price: Prices | None) -> None:
        """Drop the first `slots` rows of every server and append idle ones, at prices of `price`.

        Without `price` prices belong to rows and stay. Closed servers must be closed again.
        """
        remaining = self.used.shape[1] - slots
        self.used[:, :remaining] = self.used[:, slots:]
        self.used[:, remaining:] = 0.0
        if price is not None:
            self.price[:, :remaining] = self.price[:, slots:]
            idle = price.at(np.zeros_like(self.capacity).T, self.capacity.T).T
            self.price[:, remaining:] = idle[:, None]
        if self.spare is not None:
            self.spare[:, :remaining] = self.spare[:, slots:]
            self.spare[:, remaining:] = (self.capacity @ self.copies + self._margin)[:, None]

    @property
    def _is_open(self) -> bool:
        """Whether every server has its own column."""
        columns = len(self.copies)  # none where no machine hosts parameter servers
        return not columns or columns == int(self.copies[-1] + self.server[-1])

    def _of_columns(self, admitted: BoolArray) -> BoolArray:
        """Reduce a mask of admitted servers to one of columns, whose servers have equal labels."""
        return admitted[self.server]

    def _column(self, servers: IntArray) -> IntArray:
        """Return the column of each of these servers."""
        if self._is_open:
            return servers
        return np.searchsorted(self.server, servers, side="right") - 1

    def _open(self, servers: IntArray) -> IntArray:
        """Give every one of `servers` a column of its own, and return these columns.

        Servers leave a shared column in the order of their index, so all servers before the last
        one asked for get columns as well. Each time at least twice as many leave as before, so that
        a column is split only a logarithmic number of times.
        """
        shared = self._column(servers)
        crowded = self.copies[shared] > 1
        if not crowded.any():
            return shared
        # From the back: a split moves all columns behind it, and
        # those in front stay where they are.
        for column in sorted(set(shared[crowded].tolist()), reverse=True):
            opened = int(servers[shared == column].max() - self.server[column]) + 1
            copies = int(self.copies[column])
            neighbours = np.flatnonzero(self.copies[:column] > 1)
            distance = column - (int(neighbours[-1]) + 1 if len(neighbours) else 0)
            # The rest of a column stays a column, which needs one server at least.
            self._split(column, min(copies - 1, max(opened, 2 * distance)))
        return self._column(servers)

    def _split(self, column: int, count: int) -> None:
        """Turn the first `count` servers of an idle column into columns of one server."""
        repeats = np.ones(len(self.server), dtype=np.int64)
        repeats[column] = count + 1
        self.capacity = np.repeat(self.capacity, repeats, axis=1)
        self.used = np.repeat(self.used, repeats, axis=2)
        self.price = np.repeat(self.price, repeats, axis=2)
        if self.closed is not None:
            self.closed = np.repeat(self.closed, repeats, axis=1)
        self.server = np.repeat(self.server, repeats)
        self.server[column : column + count + 1] += np.arange(count + 1)
        copies = np.repeat(self.copies, repeats)
        copies[column : column + count] = 1
        copies[column + count] = self.copies[column] - count
        self.copies = copies


def _few_costs(unit: FloatArray, room: FloatArray, most: int) -> FloatArray:
    """`total_costs` of at most `FEW` units, placed one by one; overwrites `unit` (q, C)."""
    result = np.zeros((len(unit), most + 1))
    if most == 0:
        return result
    # The second unit goes beside the first where there is room,
    # otherwise on the next cheapest server.
    row, cheapest = np.arange(len(unit)), unit.argmin(axis=1)
    result[:, 1] = unit[row, cheapest]
    if most == FEW:
        full = (room[row, cheapest] < FEW).nonzero()[0]
        unit[full, cheapest[full]] = np.inf
        np.add(result[:, 1], unit.min(axis=1), out=result[:, 2])
    return result
