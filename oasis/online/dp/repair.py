"""Closing the duality gap: the cheapest changes of workers in single slots add the missing work.

A *move* changes the number of workers in one slot by a *step*, up or down.
"""

from __future__ import annotations

import numpy as np

from oasis.model.rounding import FloatArray, IntArray

LARGEST_TABLE = 2**22  # entries of one array

Moves = tuple[IntArray, IntArray]  # group and new count of each slot that changes


def repair(
    reduced: FloatArray,
    count: IntArray,
    number: IntArray,
    missing: int,
    limit: float,
    noise: float,
) -> tuple[float, Moves | None]:
    """Cheapest moves that add `missing` worker-slots in total.

    Parameters
    ----------
    reduced : (G, N + 1) float array
        Reduced cost of each count of workers in a slot of each group; it is at least 0, up to
        rounding errors.
    count, number : (G,) int array
        Workers now in each slot of the group, a count with reduced cost 0; slots in the group.
    missing : int
        Worker-slots to add, 1 <= missing <= N.
    limit : float
        Moves are wanted only if their total reduced cost is below this.
    noise : float
        Rounding error of a total: one up to this counts as 0.

    Returns
    -------
    float, Moves or None
        The total reduced cost and the moves, or a lower bound >= `limit` and None.
    """
    target = count + missing
    fits = (target < reduced.shape[1]).nonzero()[0]
    single = reduced[fits, target[fits]]
    pick = fits[single.argmin()]
    total = max(float(single.min()), 0.0)
    one = total, (np.array([pick]), target[[pick]])
    if total <= noise:
        return one
    within = min(total, limit) * (1 + 1e-12)
    group, new = np.nonzero(reduced <= within)
    step = new - count[group]
    moving = step.nonzero()[0]
    group, step = group[moving], step[moving]
    cost = np.maximum(reduced[group, new[moving]], 0.0)
    levels = _distances(step, cost, max(missing, int(np.abs(step).max(initial=0))), within)
    reach = len(levels[0]) // 2
    lower = float(levels[-1][reach + missing])
    if lower >= limit:
        return min(lower, limit), None
    if lower >= total - noise:
        return one
    chosen = _assign(_path(levels, missing), group, step, cost, number)
    upper = float(cost[chosen].sum()) if chosen is not None else np.inf
    if upper > lower + noise:
        within = min(within, upper)
        better = _exact(group, step, cost, number, missing, within, levels[-1])
        if better is not None:
            chosen, upper = better, float(cost[better].sum())
    if upper >= limit:
        return limit, None
    return upper, (group[chosen], count[group[chosen]] + step[chosen])


def _distances(step: IntArray, cost: FloatArray, reach: int, within: float) -> list[FloatArray]:
    """Least cost of steps that add up to each of -reach..reach, with at most 1, 2, 4, .. steps.

    A step may be used more often than there are slots for it, so these are lower bounds. Partial
    sums outside -reach..reach need not be looked at: a sequence of steps can be ordered so that it
    goes down whenever it is above 0 and up otherwise.
    """
    least = np.full(2 * reach + 1, np.inf)
    order = np.argsort(-cost, kind="stable")
    least[step[order] + reach] = cost[order]
    least[reach] = 0.0
    levels = [least]
    sums = np.arange(reach, 3 * reach + 1)[:, None] + reach
    while True:
        parts = (least < np.inf).nonzero()[0]
        wide = np.full(4 * reach + 1, np.inf)
        wide[reach : 3 * reach + 1] = least
        doubled = np.full(len(least), np.inf)
        for block in np.array_split(parts, 1 + len(parts) * len(least) // LARGEST_TABLE):
            np.minimum(doubled, (wide[sums - block] + least[block]).min(axis=1), out=doubled)
        doubled[doubled > within] = np.inf
        if not (doubled < least).any():
            return levels
        least = doubled
        levels.append(least)


def _path(levels: list[FloatArray], total: int) -> list[int]:
    """The steps that add up to `total` at the least cost; `levels` is from `_distances`."""
    reach = len(levels[0]) // 2
    while len(levels) > 1 and levels[-2][reach + total] <= levels[-1][reach + total]:
        levels = levels[:-1]
    if len(levels) == 1:
        return [total] if total else []
    half = levels[-2]
    low, high = max(-reach, total - reach), min(reach, total + reach)
    ahead = half[low + reach : high + reach + 1]
    behind = half[total - high + reach : total - low + reach + 1][::-1]
    split = low + int(np.argmin(ahead + behind))
    return _path(levels[:-1], split) + _path(levels[:-1], total - split)


def _assign(
    path: list[int], group: IntArray, step: IntArray, cost: FloatArray, number: IntArray
) -> IntArray | None:
    """For every step of `path` the cheapest move that some slot can still make, or None."""
    left = number.copy()
    chosen = []
    for wanted in path:
        able = ((step == wanted) & (left[group] > 0)).nonzero()[0]
        if not len(able):
            return None
        pick = able[cost[able].argmin()]
        chosen.append(pick)
        left[group[pick]] -= 1
    return np.array(chosen)


def _exact(
    group: IntArray,
    step: IntArray,
    cost: FloatArray,
    number: IntArray,
    missing: int,
    within: float,
    least: FloatArray,
) -> IntArray | None:
    """The cheapest moves, at most one in each slot, by a dynamic programme over the slots.

    Its state is the sum of the steps so far. A state is dropped when its cost plus the least cost
    of the steps still missing, `least` from `_distances`, is above `within`.
    """
    reach = len(least) // 2
    first = np.diff(group, prepend=-1).nonzero()[0]
    sums, costs = np.zeros(1, np.int64), np.zeros(1)
    trail = []
    for a, b in zip(first, np.append(first[1:], len(group)), strict=True):
        steps, prices = np.append(0, step[a:b]), np.append(0.0, cost[a:b])[:, None]
        for _ in range(number[group[a]]):
            low = sums[0] + steps.min()
            size = sums[-1] + steps.max() - low + 1
            table = np.full((len(steps), size), np.inf)
            table[np.arange(len(steps))[:, None], sums + (steps[:, None] - low)] = costs + prices
            made = table.argmin(axis=0)
            totals = table[made, np.arange(size)]
            rest = missing - low - np.arange(size)
            far = np.abs(rest) > reach
            ahead = np.where(far, 0.0, least[np.where(far, 0, rest + reach)])
            alive = (totals + ahead <= within).nonzero()[0]
            if not made[alive].any():
                break  # no state gains from one more slot of this group, so none from two
            sums, costs = low + alive, totals[alive]
            trail.append((sums, made[alive], a))
    at = int(np.searchsorted(sums, missing))
    if at == len(sums) or sums[at] != missing:
        return None
    left, chosen = missing, []
    for sums, made, a in reversed(trail):
        move = made[np.searchsorted(sums, left)]
        if move:
            chosen.append(a + move - 1)
            left -= step[a + move - 1]
    return np.array(chosen[::-1])
