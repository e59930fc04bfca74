"""The best split of a job's work over slots: DP_COST of Algorithm 2 for every completion at once.

Only completions whose Lagrangian bound beats the best payoff so far are searched, and in each of
them only the counts whose reduced cost lies within the duality gap. The result equals that of the
textbook dynamic programme (docs/theory, "Why the search is exact").
"""

from __future__ import annotations

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.online.dp.envelope import Envelope, Slots
from oasis.online.dp.repair import repair
from oasis.online.dp.split import Split

ULPS = 1e-14  # relative rounding error of a sum of costs
PROBES = 24  # completions whose optimal multiplier is computed before the search begins


def best_split(
    rows: FloatArray,
    lengths: IntArray,
    utility: FloatArray,
    demand: int,
    at_least: float = -np.inf,
) -> Split | None:
    """Best completion slot and the cheapest work up to it.

    Parameters
    ----------
    rows, lengths, demand
        See `Envelope`.
    utility : (n,) float array
        Non-increasing value of completing in each slot; <= 0 where that is worthless.
    at_least : float
        A split is wanted only if its payoff is above this.

    Returns
    -------
    Split or None
        The highest payoff, the earliest such completion; None if none exceeds `at_least`.

    Examples
    --------
    Two slots; a worker costs 3 in the first and 1 in the second, which completes the job later.

    >>> import numpy as np
    >>> from oasis.online.dp import best_split
    >>> rows = np.array([[0.0, 3.0, 6.0], [0.0, 1.0, 2.0]])
    >>> split = best_split(rows, np.array([1, 1]), utility=np.array([10.0, 8.0]), demand=2)
    >>> split.payoff, split.completion, split.counts
    (6.0, 1, array([0, 2]))
    """
    limit = float(utility.max(initial=0.0)) - at_least
    return _best(Envelope(below(rows, limit), lengths, demand), utility, at_least)


def below(rows: FloatArray, limit: float) -> FloatArray:
    """The costs, with inf for those above `limit`, which no wanted schedule can contain.

    Prices span many orders of magnitude: in a sum with a very large cost the small ones would be
    lost to rounding.
    """
    costs: FloatArray = np.where(rows > limit, np.inf, rows)
    return costs


def noise_of(utility: FloatArray) -> float:
    """Payoffs that differ by no more than this count as equal; some utility is positive."""
    return ULPS * float(utility[(utility > 0).argmax()])


def _best(envelope: Envelope, utility: FloatArray, at_least: float) -> Split | None:
    worthy = (utility > 0).nonzero()[0]
    n = int(worthy[-1]) + 1 if len(worthy) else 0
    if envelope.earliest >= n:
        return None
    bounds = envelope.bounds(envelope.multipliers(_probes(envelope.earliest, n)))[:n]
    ceiling = utility[:n] - np.maximum(bounds, 0.0)
    ceiling[: max(envelope.earliest, int(worthy[0]))] = -np.inf
    noise = noise_of(utility)
    best, found, slots, tries = at_least, n, None, 0
    while True:
        margin = 0.0 if slots is None else noise
        wanted = (ceiling > best + margin).nonzero()[0]
        if len(wanted):  # a higher payoff is possible: try the likeliest and the last by turns
            at = int(wanted[-1] if tries % 2 else wanted[np.argmax(ceiling[wanted])])
        else:  # an earlier completion may be as good: search the earliest, in growing strides
            wanted = (ceiling[:found] >= best - margin).nonzero()[0] if slots else wanted
            if not len(wanted):
                break
            at = int(wanted[min(2**tries - 1, len(wanted) // 2)])
        tries += 1
        cost, candidate = cheapest(envelope, at, float(utility[at]) - best + margin, noise)
        ceiling[: at + 1] = np.minimum(ceiling[: at + 1], utility[: at + 1] - cost)
        ceiling[at] = -np.inf
        payoff = float(utility[at]) - cost
        if candidate is not None and (at < found or payoff > best + margin):
            best, found, slots = max(best, payoff), at, candidate
    return None if slots is None else envelope.split(slots, utility)


def _probes(first: int, end: int) -> IntArray:
    """At most `PROBES` of the completions ``first .. end - 1``, evenly spread."""
    if end - first <= PROBES:
        return np.arange(first, end)
    return np.linspace(first, end - 1, PROBES).astype(np.int64)


def cheapest(
    envelope: Envelope, completion: int, limit: float, noise: float
) -> tuple[float, Slots | None]:
    """Cheapest work up to `completion`, or None if it costs at least `limit`.

    The first value is the cost of the work, or a lower bound on it, at least `limit`.
    """
    slots, multiplier, missing = envelope.relaxed(completion)
    costs = envelope.rows[slots.row]
    at = np.arange(len(slots.row))
    bound = float(costs[at, slots.count] @ slots.number) + multiplier * missing
    noise = max(noise, ULPS * abs(bound))
    if bound >= limit:
        return bound, None
    if missing == 0:
        return bound, slots
    reduced = costs - multiplier * np.arange(costs.shape[1])
    reduced -= reduced[at, slots.count][:, None]
    extra, moves = repair(reduced, slots.count, slots.number, missing, limit - bound, noise)
    if moves is None:
        return bound + extra, None
    group, count = moves
    number = slots.number.copy()
    np.subtract.at(number, group, 1)
    done = Slots(
        np.concatenate((slots.row, slots.row[group])),
        np.concatenate((slots.count, count)),
        np.concatenate((number, np.ones_like(group))),
    )
    return bound + extra, done


def smallest_cost(
    rows: FloatArray, lengths: IntArray, demand: int, noise: float = 0.0
) -> Split | None:
    """The cheapest split that does the work in all the slots; its payoff is minus its cost.

    Differences of cost up to `noise` do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from oasis.online.dp import smallest_cost
    >>> rows = np.array([[0.0, 3.0, 6.0], [0.0, 1.0, np.inf]])  # one worker at most in the second
    >>> split = smallest_cost(rows, np.array([1, 1]), demand=2)
    >>> -split.payoff, split.counts
    (4.0, array([1, 1]))
    """
    free = np.zeros(int(lengths.sum()))
    envelope = Envelope(rows, lengths, demand)
    if envelope.earliest >= len(free):
        return None
    cost, slots = cheapest(envelope, len(free) - 1, np.inf, noise)
    assert slots is not None  # there is room, and no limit
    counts = slots.per_slot(len(free))
    return Split(-cost, int(counts.nonzero()[0][-1]), counts)


def smallest_factor(
    rows: FloatArray, lengths: IntArray, utility: FloatArray, demand: int
) -> float | None:
    """The least x at which x times `utility` pays for the work: min cost(t) / utility(t).

    Dinkelbach's method: while some completion has a positive payoff at factor x, x becomes the
    ratio cost / utility of that completion, which is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from oasis.online.dp import smallest_factor
    >>> rows = np.array([[0.0, 3.0, 6.0], [0.0, 1.0, 2.0]])
    >>> smallest_factor(rows, np.array([1, 1]), utility=np.array([3.0, 4.0]), demand=2)
    0.5
    """
    worthy = (utility > 0).nonzero()[0]
    envelope = Envelope(rows, lengths, demand)
    if not len(worthy) or envelope.earliest > worthy[-1]:
        return None
    last = int(worthy[-1])
    cost, _ = cheapest(envelope, last, np.inf, 0.0)
    factor = cost / float(utility[last])
    envelope = Envelope(below(rows, factor * float(utility.max())), lengths, demand)
    while True:
        split = _best(envelope, factor * utility, 0.0)
        if split is None:
            return factor
        worth = float(utility[split.completion])
        lower = (factor * worth - split.payoff) / worth
        if not lower < factor:
            return factor
        factor = lower
