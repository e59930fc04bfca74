"""A split of work over slots by Lagrangian relaxation: convex envelopes, then repair of the gap.

An envelope gives the cheapest split at a price of work; `repair` closes the duality gap with the
cheapest changes of workers in single slots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from oasis.model import rounding
from oasis.model.rounding import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Split:
    """Workers of a job in each slot; slots are counted from its arrival.

    Parameters
    ----------
    payoff : float
        Utility minus cost.
    completion : int
        The last slot with a worker.
    counts : (n,) int array
        Workers in each slot; of a job with a minimum, the worker-slots of its work in each slot.

    Examples
    --------
    >>> import numpy as np
    >>> from oasis.online.dp import Split
    >>> split = Split(payoff=3.0, completion=2, counts=np.array([0, 4, 1]))
    >>> int(split.counts.sum())  # worker-slots
    5
    """

    payoff: float
    completion: int
    counts: IntArray


ROUNDING = 1e-15  # relative error of the terms of a bound


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots grouped by run and number of workers: one entry of each array is a group."""

    row: IntArray  # run of equal slots that each group belongs to
    count: IntArray  # workers in each slot of the group
    number: IntArray  # slots in the group

    def per_slot(self, n: int) -> IntArray:
        """Return the workers in slots 0..n-1; among equal slots the earlier ones have more."""
        # Equal slots may swap their counts at no cost; this is the rule of ties between them.
        order = np.lexsort((-self.count, self.row))
        counts = np.repeat(self.count[order], self.number[order])
        return np.concatenate((counts, np.zeros(n - len(counts), np.int64)))


class Envelope:
    """Lower convex envelopes of the costs of each run, and the Lagrangian bounds they give.

    `rows` are the costs of 0..N workers in one slot of each of q runs of equal slots, inf beyond
    the room; `lengths` the slots in each run, in order of time; `demand` the worker-slots to place.
    """

    def __init__(self, rows: FloatArray, lengths: IntArray, demand: int) -> None:
        self.rows, self.lengths, self.demand = rows, lengths, demand
        self.starts = lengths.cumsum() - lengths
        self.run = np.arange(len(rows)).repeat(lengths)
        # With a price on work, slots fall apart and each takes a
        # vertex of its hull (docs/theory-search).
        place, self._cost, slope, error = _lower_hulls(rows)
        row, self._count = np.divmod(place, rows.shape[1] + 1)
        # The slope next to a nan that keeps two rows apart is nan: it is no edge.
        edges = (~np.isnan(slope)).nonzero()[0]
        # Cheapest worker-slots first, and of two that cost the same the earlier run.
        edges = edges[rounding.ascending(slope[edges], error[edges])]
        # Of slopes that are equal up to rounding an earlier one may be the larger by a bit.
        self._slope = np.maximum.accumulate(slope[edges])
        self._row = row[edges]
        self._width = place[edges + 1] - place[edges]
        self._first = (self._count == 0).nonzero()[0]
        room = np.bincount(self._row, self._width, len(rows))
        # Nothing can complete before the slots up to here hold the whole demand.
        self.earliest = int(room[self.run].cumsum().searchsorted(demand))

    def slots_until(self, completion: IntArray | int) -> IntArray:
        """Number of slots of each run up to `completion`; (q,) or, for m completions, (m, q)."""
        slots: IntArray = np.add.outer(completion, 1 - self.starts)
        np.minimum(slots, self.lengths, out=slots)
        return np.maximum(slots, 0, out=slots)

    def multipliers(self, completions: IntArray) -> FloatArray:
        """Optimal multipliers for these rising completions, falling and without duplicates."""
        # The slope of the first edge that the demand does not take
        # whole is the optimal price of work.
        slots_used = (self.slots_until(completions)[:, self._row] * self._width).cumsum(axis=1)
        falling = self._slope[(slots_used < self.demand).sum(axis=1)]
        # A later completion chooses among more edges, so its price is
        # never higher and duplicates are neighbours.
        is_new = np.ones(len(falling), dtype=bool)
        np.less(falling[1:], falling[:-1], out=is_new[1:])
        distinct: FloatArray = falling[is_new]
        return distinct

    def bounds(self, multipliers: FloatArray) -> FloatArray:
        """Return lower bounds on the cost of each completion, best of all multipliers; (n,)."""
        price = multipliers[:, None]
        # min_k [C(k) - price * k] of every run; fmin passes over the nan between rows.
        gain = np.fmin.reduceat(self._cost - price * self._count, self._first, axis=1)
        gains = gain[:, self.run].cumsum(axis=1)  # each <= 0
        bounds = gains + price * self.demand
        # A bound that rounding lifts above the true cost would hide a better completion.
        bounds -= ROUNDING * (price * self.demand - gains)  # the two may cancel
        best: FloatArray = bounds.max(axis=0)
        return best

    def split(self, slots: Slots, utility: FloatArray) -> Split:
        """Make a `Split` of `slots`, with its payoff, in as many slots as `utility` has."""
        counts = slots.per_slot(len(utility))
        completion = int(counts.nonzero()[0][-1])
        run = self.run[: len(counts)]
        costs = np.zeros(len(counts))  # how many terms a sum has decides on its last bit
        costs[: len(run)] = self.rows[run, counts[: len(run)]]
        return Split(float(utility[completion]) - float(costs.sum()), completion, counts)

    def relaxed(self, completion: int) -> tuple[Slots, float, int]:
        """Find the cheapest work up to `completion` at the costs of the convex envelopes.

        Edges of the envelopes are taken by rising slope as long as they fit into the demand.
        Returns the counts that whole edges add up to; the multiplier, that is the slope of the
        first edge that does not fit; and the worker-slots missing, fewer than that edge has.
        """
        slots = self.slots_until(completion)
        slots_used = (self._width * slots[self._row]).cumsum()
        last = int(slots_used.searchsorted(self.demand))
        width, row = int(self._width[last]), self._row[last]
        before = int(slots_used[last - 1]) if last else 0
        # Of the first edge that does not fit everywhere, as many slots of its run take it as fit.
        copies, missing = divmod(self.demand - before, width)
        count = np.bincount(self._row[:last], self._width[:last], len(slots)).astype(np.int64)
        slots[row] -= copies
        groups = np.array((np.arange(len(slots)), count, slots))
        if copies:
            # They come before the other slots of their run: groups are in order of time.
            groups = with_column(groups, (row, count[row] + width, copies), row)
        used = groups[2].nonzero()[0]
        return Slots(*groups[:, used]), float(self._slope[last]), missing


def with_column(array: IntArray, column: tuple[int, ...], at: int) -> IntArray:
    """Return `array` with `column` inserted before column `at`; `np.insert` takes far longer."""
    wider = np.empty((len(array), array.shape[1] + 1), dtype=np.int64)
    wider[:, :at], wider[:, at], wider[:, at + 1 :] = array[:, :at], column, array[:, at:]
    return wider


def _lower_hulls(rows: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Vertices of the lower convex hull of each row: flat position, cost, slope to the next one.

    The last array is the rounding error of the slopes.

    A point on the chord between its two neighbours, up to rounding, or above it is no vertex. All
    such points are dropped at once, until none is left. The rows lie one after the other with a nan
    between them: every comparison with nan is false, so no vertex is dropped because of another
    row.
    """
    # All rows are pruned together in a few passes; a scan of each
    # would be a loop in Python per point.
    apart = np.full((len(rows), rows.shape[1] + 1), np.nan)
    apart[:, :-1] = rows
    flat = apart.ravel()
    place = (flat != np.inf).nonzero()[0]
    cost = flat[place]
    while True:
        width = place[1:] - place[:-1]
        slope = (cost[1:] - cost[:-1]) / width
        # A slope is known no better than the costs that it is computed from, which are sums.
        error = rounding.ULPS * cost[1:] / width
        equal = rounding.TOLERANCE * slope + error
        keep = np.ones(len(place), bool)
        np.logical_not(slope[1:] <= slope[:-1] + equal[1:], out=keep[1:-1])
        if keep.all():
            return place, cost, slope, error
        place, cost = place[keep], cost[keep]


MOST_TIED = 4  # slots of a group that are looked at for an earlier split of the same cost
# 32 MiB of floats: larger tables are worked through in blocks.
LARGEST_TABLE = 2**22  # entries of one array

Moves = tuple[IntArray, IntArray]  # group and new count of each slot that changes


def repair(
    reduced: FloatArray,
    count: IntArray,
    number: IntArray,
    missing: int,
    limit: float,
    noise: float,
) -> tuple[float, Callable[[], Moves] | None]:
    """Find the cheapest moves that add `missing` worker-slots in total, 1 <= missing <= N.

    `reduced` (G, N + 1) is the reduced cost of each count of workers in a slot of each group, at
    least 0 up to rounding; `count` and `number` (G,) are the workers now in each slot of the group,
    of reduced cost 0, and its slots; groups are in order of time. Totals within `noise` are equal.
    Returns the total reduced cost and what finds the moves, or a lower bound >= `limit` and None.
    """
    # The repair that is always there: one slot takes all that is missing. `relaxed` leaves
    # less than one edge missing, so the slot of that edge can.
    target = count + missing
    fits = (target < reduced.shape[1]).nonzero()[0]
    single = reduced[fits, target[fits]]
    total = max(float(single.min()), 0.0)
    # Of equally dear slots the earliest takes it.
    pick = fits[(single <= total + noise).argmax()]
    if total <= noise:
        return total, lambda: (np.array([pick]), target[[pick]])
    # No reduced cost is below 0, so a move dearer than this repair, or than what is wanted at all,
    # is part of no better solution. The rest keeps moves that only rounding puts above it.
    within = min(total, limit) + noise
    group, new = np.nonzero(reduced <= within)
    step = new - count[group]  # in each group one of them is 0: to make no move
    cost = np.maximum(reduced[group, new], 0.0)
    # Distances in the graph of partial sums, where slots may be used twice: a lower bound.
    levels = _distances(step, cost, max(missing, int(np.abs(step).max())), within)
    moves = _Moves(group, step, cost, number, missing, levels[-1])
    lower = float(levels[-1][len(levels[-1]) // 2 + missing])
    # The bound decides most cases: no better repair is possible than none, or than the one above.
    if lower >= limit:
        return min(lower, limit), None
    upper, noise = total, max(noise, rounding.TOLERANCE * min(total, limit))
    if lower < total - noise:
        # If the steps behind the bound find a slot each at the same cost, the bound is attained.
        chosen = _assign(_path(levels, missing), group, step, cost, number)
        upper = float(cost[chosen].sum()) if chosen is not None else np.inf
        # Only now is the dynamic programme needed, and only below the best cost that is known.
        if upper > lower + noise:
            within = min(within, upper)
            upper = min(upper, moves.within(within).slots(within)[1])
    if upper >= limit:
        return limit, None
    single = int(pick) if upper == total else None
    # Which of equally cheap moves are made is asked for one completion only.
    return upper, partial(_first_of_equal, moves, count, upper + noise, single)


def _distances(step: IntArray, cost: FloatArray, reach: int, within: float) -> list[FloatArray]:
    """Least cost of steps that add up to each of -reach..reach, with at most 1, 2, 4, .. steps.

    A step may be used more often than there are slots for it, so these are lower bounds. Partial
    sums outside -reach..reach need not be looked at: a sequence of steps can be ordered so that it
    goes down whenever it is above 0 and up otherwise.
    """
    least = np.full(2 * reach + 1, np.inf)
    # The dearest move is written first: of several writes to
    # one place the last, cheapest one stays.
    order = np.argsort(-cost, kind="stable")
    least[step[order] + reach] = cost[order]
    least[reach] = 0.0
    levels = [least]
    # Doubling: two parts of at most 2^k steps make one of
    # 2^(k+1), so the rounds grow with a logarithm.
    wide = np.full(4 * reach + 1, np.inf)
    while True:
        # Of two parts of a sum within the limit one costs at most half of it.
        parts = (least <= within / 2).nonzero()[0]
        wide[reach : 3 * reach + 1] = least
        doubled = _joined(wide, len(least), 2 * reach - parts, least[parts])
        # No step costs less than 0, so no part of a sum within the limit is above it.
        doubled[doubled > within] = np.inf
        if not (doubled < least).any():
            return levels
        least = doubled
        levels.append(least)


def _path(levels: list[FloatArray], total: int) -> list[int]:
    """Return the steps that add up to `total` at least cost; `levels` is from `_distances`."""
    reach = len(levels[0]) // 2
    while len(levels) > 1 and levels[-2][reach + total] <= levels[-1][reach + total]:
        levels = levels[:-1]
    if len(levels) == 1:
        return [total] if total else []
    # The level where the cost first appears says how many steps were joined: halve it the same way.
    half = levels[-2]
    low, high = max(-reach, total - reach), min(reach, total + reach)
    ahead = half[low + reach : high + reach + 1]
    behind = half[total - high + reach : total - low + reach + 1][::-1]
    split = low + int(np.argmin(ahead + behind))
    return _path(levels[:-1], split) + _path(levels[:-1], total - split)


def _assign(
    path: list[int], group: IntArray, step: IntArray, cost: FloatArray, number: IntArray
) -> IntArray | None:
    """Find the cheapest move that is left for each step of `path`; None if some step has none."""
    remaining = number.copy()
    chosen = []
    for target in path:
        able = ((step == target) & (remaining[group] > 0)).nonzero()[0]
        if not len(able):
            return None
        # Greedy: it may find no slot, or one too dear, where another
        # choice would fit. `_Moves.slots` is for that.
        pick = able[cost[able].argmin()]
        chosen.append(pick)
        remaining[group[pick]] -= 1
    return np.array(chosen)


def _joined(costs: FloatArray, size: int, shift: IntArray, price: FloatArray) -> FloatArray:
    """Return the least of ``costs[i + shift] + price`` for each i below `size`."""
    # Row k of this view are the costs from number k on.
    shifted = np.ndarray((len(costs) - size + 1, size), buffer=costs, strides=2 * costs.strides)
    least = np.full(size, np.inf)
    block = max(1, LARGEST_TABLE // size)
    for at in range(0, len(shift), block):
        table = shifted[shift[at : at + block]]
        table += price[at : at + block, None]
        np.minimum(least, table.min(axis=0), out=least)
    return least


@dataclass(frozen=True, slots=True)
class _Slot:
    """Moves of one slot, and the least cost of each sum of steps in all slots after it.

    ``after[k]`` is the cost of the sum ``low + k``. Move number `first` is the first of its moves.
    """

    low: int
    after: FloatArray
    steps: IntArray
    prices: FloatArray
    first: int


@dataclass(frozen=True, slots=True)
class _Moves:
    """Moves of which at most one can be made in each slot; `missing` worker-slots are to be added.

    Group, step and cost of each move, by group and step; slots in each group; the least cost of
    each sum of steps from `_distances`.
    """

    group: IntArray
    step: IntArray
    cost: FloatArray
    number: IntArray
    missing: int
    least: FloatArray

    def within(self, limit: float) -> _Moves:
        """Return the moves that can be part of a solution that costs at most `limit`."""
        lack, reach = self.missing - self.step, len(self.least) // 2
        # Beyond the window no distance is known, and 0 is always a bound.
        ahead = np.where(np.abs(lack) > reach, 0.0, self.least.take(lack + reach, mode="clip"))
        likely = (self.cost + ahead <= limit).nonzero()[0]
        group, step, cost = self.group[likely], self.step[likely], self.cost[likely]
        return _Moves(group, step, cost, self.number, self.missing, self.least)

    def slots(self, limit: float, most_tied: int = 0) -> tuple[list[_Slot], float]:
        """Solve a dynamic programme from the last slot to the first; return it and the least cost.

        A sum is dropped when its cost plus the least cost of what is still missing is above
        `limit`. Slots of a group that lower no cost are left out. With `most_tied` slots of a
        group, these are kept; ties are not sought far away.
        """
        reach = len(self.least) // 2
        ahead = np.zeros(len(self.least) + 2)
        ahead[1:-1] = self.least[::-1]
        nearest, furthest = self.missing - 2 * reach, self.missing + 2 * reach + 1
        ends = self.group.searchsorted(np.arange(len(self.number) + 1)).tolist()
        low, costs = 0, np.zeros(1)
        slots: list[_Slot] = []
        for g in range(len(self.number) - 1, -1, -1):
            steps, prices = self.step[ends[g] : ends[g + 1]], self.cost[ends[g] : ends[g + 1]]
            if len(steps) == 1:  # it makes no move
                continue
            lowest, highest = int(steps[0]), int(steps[-1])
            span, number = highest - lowest, int(self.number[g])
            for _ in range(min(number, most_tied or number)):
                size, start = len(costs) + span, low + lowest
                after = np.full(size + span, np.inf)
                after[span:size] = costs
                totals = _joined(after, size, highest - steps, prices)
                if most_tied:
                    a, b = max(0, nearest - start), min(size, furthest - start)
                else:
                    # A state that the bound on its rest puts above the limit leads nowhere.
                    missing = np.arange(size) + (start - self.missing + reach + 1)
                    totals[totals + ahead.take(missing, mode="clip") > limit] = np.inf
                    if not (totals < after[highest : highest + size]).any():
                        break  # no state gains from one more slot of this group, so none from two
                    alive = (totals < np.inf).nonzero()[0]
                    a, b = int(alive[0]), int(alive[-1]) + 1
                slots.append(_Slot(low - span, after, steps, prices, ends[g]))
                low, costs = start + a, totals[a:b]
        at = self.missing - low
        return slots, float(costs[at]) if 0 <= at < len(costs) else np.inf

    def earliest(self, limit: float) -> IntArray:
        """Choose moves of cost up to `limit` with most workers in the earliest slots; indices."""
        slots, cost = self.slots(limit, MOST_TIED)
        if cost > limit:  # they need more slots of a group than that
            slots, _ = self.slots(limit)
        missing, budget, chosen = self.missing, limit, []
        for slot in reversed(slots):
            ahead = slot.after[missing - slot.low - slot.steps]
            # The largest step that the later slots can complete.
            move = int((slot.prices + ahead <= budget).nonzero()[0][-1])
            moved = int(slot.steps[move])
            if moved:
                chosen.append(slot.first + move)
                missing -= moved
            # The difference is rounded; the later slots can always do what they cost.
            budget = max(budget - float(slot.prices[move]), float(ahead[move]))
        return np.array(chosen)


def _first_of_equal(moves: _Moves, count: IntArray, limit: float, single: int | None) -> Moves:
    """Return the moves of cost up to `limit` that put most workers in the earliest slots.

    A slot of the group `single` can take all that is missing at that cost.
    """
    # Only such moves are part of a solution that is as cheap up to rounding.
    moves = moves.within(limit)
    group, step = moves.group, moves.step
    if single is not None:
        # Only a larger count somewhere before the one move is better than that move. A count that
        # is larger by more than is missing has to be made up for by a smaller one, later.
        sooner = (step > 0) & ((group < single) | ((group == single) & (step > moves.missing)))
        sooner &= (step <= moves.missing) | (group <= group[step < 0].max(initial=-1))
        if not sooner.any():
            return np.array([single]), count[[single]] + moves.missing
    chosen = moves.earliest(limit)
    return group[chosen], count[group[chosen]] + step[chosen]
