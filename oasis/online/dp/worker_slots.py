"""The best split of a job's work over slots: DP_COST of Algorithm 2 for every completion at once.

The exact form counts worker-slots, `ChunkSplit` whole chunks as printed; a gang works with its
minimum of workers or with none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from oasis.model import rounding
from oasis.model.rounding import TOLERANCE, FloatArray, IntArray, payoff_noise
from oasis.online.dp.lagrangian import Envelope, Moves, Slots, Split, repair


def costs_of_work(rows: FloatArray, least: int, work: int) -> FloatArray:
    """Return the cost of 0, 1, .. worker-slots in a slot with no or at least `least` workers.

    Parameters
    ----------
    rows : (q, N + 1) float array
        Cost of 0..N workers in one slot of each of q runs, N >= `least` or N = 0; it is written
        over.
    least : int
        The minimum of workers, at least 2.
    work : int
        Worker-slots to do; a slot with more of them is not needed.

    Examples
    --------
    >>> import numpy as np
    >>> costs_of_work(np.array([[0.0, 1.0, 2.0, 5.0, np.inf]]), least=3, work=3)
    array([[0., 5., 5., 5.]])
    """
    if rows.shape[1] > 1:
        # One worker-slot in a slot costs a whole minimum of
        # workers: fewer are not allowed to run there.
        rows[:, 1:least] = rows[:, least, None]
    return rows[:, : work + 1]


def workers_for(counts: IntArray, least: int, work: int | None) -> IntArray:
    """Return the number of workers in each slot that does these worker-slots.

    Parameters
    ----------
    counts : (n,) int array
        Worker-slots of each slot.
    least : int
        The minimum of workers.
    work : int or None
        Worker-slots to do in all, at most the sum of `counts`. Slots with fewer than `least` of
        them do more: the slots after the work is done are left out, and as far as there still is
        more than the work, the latest slots that can have fewer workers have fewer. None: all
        counts stay what they are, or are raised.

    Examples
    --------
    The two workers that are not asked for in slot 0 do the work of slot 2.

    >>> import numpy as np
    >>> workers_for(np.array([1, 4, 2]), least=3, work=7)
    array([3, 4])
    >>> workers_for(np.array([6, 1]), least=3, work=7)
    array([4, 3])
    >>> workers_for(np.array([1, 0, 4, 2]), least=3, work=None)
    array([3, 0, 4, 3])
    """
    workers: IntArray = np.where(counts > 0, np.maximum(counts, least), 0)
    if work is None:
        return workers
    done = workers.cumsum()
    last = int(done.searchsorted(work))
    # Raised counts finish the work earlier than the split did: what comes after is not needed.
    workers, surplus = workers[: last + 1], done[last] - work
    # Surplus is taken from the latest slots first, so that work stays early.
    spare = np.maximum(workers - least, 0)
    of_later_slots = spare[::-1].cumsum()[::-1] - spare
    workers -= np.minimum(np.maximum(surplus - of_later_slots, 0), spare)
    return workers


# Each probe costs one pass over all slots; ceilings between two probes are lowered by the search.
PROBES = 24  # completions whose optimal multiplier is computed before the search begins


def best_split(
    rows: FloatArray,
    lengths: IntArray,
    utility: FloatArray,
    demand: int,
    at_least: float = -np.inf,
) -> Split | None:
    """Find the best completion slot and the cheapest work up to it.

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
    # A schedule whose cost in one slot alone is above this cannot have the payoff that is wanted.
    limit = float(utility.max(initial=0.0)) - at_least
    return _best(Envelope(below(rows, limit), lengths, demand), utility, at_least)


def below(rows: FloatArray, limit: float) -> FloatArray:
    """Return `rows` with inf for costs above `limit`, which no wanted schedule can contain.

    Prices span many orders of magnitude: in a sum with a very large cost the small ones would be
    lost to rounding.
    """
    costs: FloatArray = np.where(rows > limit, np.inf, rows)
    return costs


def _best(envelope: Envelope, utility: FloatArray, at_least: float) -> Split | None:
    # Alg. 2, l. 4-9 tries every completion in turn. Here each has a ceiling on its payoff, and one
    # is tried only as long as its ceiling says that it may win.
    """As `best_split`, from the envelope of costs that are all within the limit."""
    worthy = (utility > 0).nonzero()[0]
    n = int(worthy[-1]) + 1 if len(worthy) else 0
    if envelope.earliest >= n:
        return None
    bounds = envelope.bounds(envelope.multipliers(_probes(envelope.earliest, n)))[:n]
    # No cost is below 0, whatever the bound says.
    ceiling = utility[:n] - np.maximum(bounds, 0.0)
    # Before these slots the work cannot be complete, or its completion is worth nothing.
    ceiling[: max(envelope.earliest, int(worthy[0]))] = -np.inf
    most_worth = float(utility[worthy[0]])
    margin, best, end, slots, tries = 0.0, at_least, n, None, 0
    while True:
        candidates = (ceiling > best + margin).nonzero()[0]
        # The likeliest raises the best payoff; the last lowers the most
        # ceilings, as costs never rise with the completion.
        if len(candidates):  # a higher payoff is possible: try the likeliest and the last by turns
            at = int(candidates[-1] if tries % 2 else candidates[np.argmax(ceiling[candidates])])
        else:  # an earlier completion may be as good: search the earliest, in growing strides
            candidates = (ceiling[:end] >= best - margin).nonzero()[0] if slots else candidates
            if not len(candidates):
                break
            # One failure near the front rules out few completions;
            # each further one goes twice as far.
            at = int(candidates[min(2**tries - 1, len(candidates) // 2)])
        tries += 1
        cost, candidate = cheapest(envelope, at, float(utility[at]) - best + margin)
        # Any earlier completion costs at least as much: it has fewer slots for the same work.
        ceiling[: at + 1] = np.minimum(ceiling[: at + 1], utility[: at + 1] - cost)
        # Its best split is known now, or not wanted: no completion is tried twice.
        ceiling[at] = -np.inf
        payoff = float(utility[at]) - cost
        is_better = at < end or payoff > best + margin
        # A tie with a payoff that is wanted is not wanted itself if it does not pay.
        if candidate is not None and is_better and payoff > at_least:
            best, end, slots = max(best, payoff), at, candidate
            # From now on only a payoff above it by more than rounding counts as better.
            margin = payoff_noise(most_worth, cost)
    return None if slots is None else envelope.split(slots(), utility)


def _probes(first: int, end: int) -> IntArray:
    """Return at most `PROBES` of the completions ``first .. end - 1``, evenly spread."""
    if end - first <= PROBES:
        return np.arange(first, end)
    return np.linspace(first, end - 1, PROBES).astype(np.int64)


def cheapest(
    envelope: Envelope, completion: int, limit: float, noise: float = 0.0
) -> tuple[float, Callable[[], Slots] | None]:
    """Return cost of the cheapest work up to `completion`, and its slots; or a bound, and None."""
    # DP_COST of Alg. 2 (l. 14-19) by relaxation: the envelopes
    # give a bound, `repair` the exact cost.
    slots, multiplier, missing = envelope.relaxed(completion)
    costs = envelope.rows[slots.row]
    at = np.arange(len(slots.row))
    bound = float(costs[at, slots.count] @ slots.number) + multiplier * missing
    # The sum itself is known no better than this.
    noise = max(noise, TOLERANCE * abs(bound))
    if bound >= limit:
        return bound, None
    # Whole vertices cost the same with and without the envelope: the bound is attained.
    if missing == 0:
        return bound, lambda: slots
    # What a change costs beyond the price of the work that it adds;
    # at least 0 by the choice of the price.
    reduced = costs - multiplier * np.arange(costs.shape[1])
    reduced -= reduced[at, slots.count][:, None]
    extra, moves = repair(reduced, slots.count, slots.number, missing, limit - bound, noise)
    if moves is None:
        return bound + extra, None
    return bound + extra, partial(_moved, slots, moves)


def _moved(slots: Slots, moves: Callable[[], Moves]) -> Slots:
    """Return `slots` after the moves: one slot of a group each, with its new count."""
    group, count = moves()
    number = slots.number.copy()
    # Each move takes one slot out of its group, and a group may be moved from more than once.
    np.subtract.at(number, group, 1)
    return Slots(
        np.concatenate((slots.row, slots.row[group])),
        np.concatenate((slots.count, count)),
        np.concatenate((number, np.ones_like(group))),
    )


def smallest_cost(
    rows: FloatArray, lengths: IntArray, demand: int, noise: float = 0.0
) -> Split | None:
    """Return the cheapest split that does the work in all slots; its payoff is minus its cost.

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
    counts = slots().per_slot(len(free))
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
    # The last completion has most slots, so it is the cheapest: its ratio is a first upper bound.
    last = int(worthy[-1])
    cost, _ = cheapest(envelope, last, np.inf)
    factor = cost / float(utility[last])
    envelope = Envelope(below(rows, factor * float(utility.max())), lengths, demand)
    while True:
        split = _best(envelope, factor * utility, 0.0)
        if split is None:
            return factor
        worth = float(utility[split.completion])
        lower = (factor * worth - split.payoff) / worth
        # The method falls strictly in exact numbers; rounding may
        # stall it, and then it would never end.
        if not lower < factor:
            return factor
        factor = lower


def falls_after(utility: FloatArray, slot: int) -> bool:
    """Return whether every later completion is worth less, even at almost no cost."""
    soon = float(utility[slot])
    return soon > 0 and _later(utility, slot) + payoff_noise(float(utility.max())) < soon


def first_if_best(
    rows: FloatArray, lengths: IntArray, utility: FloatArray, demand: int
) -> Split | None:
    """Return the earliest completion if its payoff exceeds the utility of any later one.

    The result is that of `best_split` with all slots, to the last bit.

    Parameters
    ----------
    rows, lengths, demand
        See `Envelope`; the runs end with the first slot in which the work can be complete.
    utility : (n,) float array
        Value of completing in each slot, also in those after the runs: 0 where that is impossible,
        then never rising.

    Returns
    -------
    Split or None
        None if a later completion may be better, or if the first does not pay.

    Examples
    --------
    Two workers at once cost 6. Completing a slot later is worth 5 less, so it cannot pay as much.

    >>> import numpy as np
    >>> from oasis.online.dp.worker_slots import first_if_best
    >>> rows, one_slot = np.array([[0.0, 1.0, 3.0]]), np.array([1])
    >>> split = first_if_best(rows, one_slot, utility=np.array([10.0, 5.0]), demand=2)
    >>> split.payoff, split.completion, split.counts
    (7.0, 0, array([2, 0]))
    >>> first_if_best(rows, one_slot, utility=np.array([10.0, 8.0]), demand=2) is None
    True
    """
    last = int(lengths.sum()) - 1
    soon = float(utility[last])
    beyond = _later(utility, last) + payoff_noise(float(utility.max()))
    # The cheapest worker-slot of all, for every worker-slot: a bound that often saves the envelope.
    least = demand * float((rows[:, 1:] / np.arange(1, rows.shape[1])).min())  # before the envelope
    if not beyond < soon - least:
        return None
    envelope = Envelope(below(rows, float(utility.max())), lengths, demand)
    if envelope.earliest > last:  # without the costs that are above every utility
        return None
    cost, slots = cheapest(envelope, last, soon)
    if slots is None or not beyond < soon - cost:
        return None
    return envelope.split(slots(), utility)


def _later(utility: FloatArray, slot: int) -> float:
    """Return the largest utility of a completion after `slot`; 0 if there is none."""
    return float(utility[slot + 1 :].max(initial=0.0))


@dataclass(frozen=True, slots=True)
class ChunkSplit:
    """Cheapest ways to do all the work by the end of each slot.

    Parameters
    ----------
    table : (n, N + 1) float array
        ``table[t, n]`` is the cost of n workers in slot t, inf where they do not fit.
    progress : (N + 1,) int array
        Work that each count does in a slot; non-decreasing, starts at 0.
    value : (n + 1, D + 1) float array
        ``value[s, d]`` is the cheapest cost of at least d units of work in the first s slots.

    Examples
    --------
    >>> import numpy as np
    >>> from oasis.online.dp import ChunkSplit
    >>> table = np.array([[0.0, 3.0, 5.0], [0.0, 1.0, 2.0]])  # cost of 0, 1, 2 workers in 2 slots
    >>> split = ChunkSplit.of(table, progress=np.array([0, 1, 2]), total=2)
    >>> split.cost, split.cheapest().counts
    (array([5., 2.]), array([0, 2]))
    """

    table: FloatArray
    progress: IntArray
    value: FloatArray

    @classmethod
    def of(cls, table: FloatArray, progress: IntArray, total: int) -> ChunkSplit:
        """Run the dynamic programme over slots; state: work done so far, 0..`total`."""
        # Doing more than is left is allowed (2), so a count may overshoot into the state 0.
        before = np.maximum(0, np.arange(total + 1)[:, None] - progress)
        value = np.full((len(table) + 1, total + 1), np.inf)
        value[0, 0] = 0.0
        for slot, costs in enumerate(table):
            # cost(t, D) = min_n COST_t(t, n) + cost(t - 1, D - work of n workers)
            value[slot + 1] = (value[slot][before] + costs).min(axis=1)
        return cls(table, progress, value)

    @property
    def cost(self) -> FloatArray:
        """The least cost of all the work by the end of each slot, shape (n,); inf if impossible."""
        return self.value[1:, -1]

    def best(self, utility: FloatArray) -> Split | None:
        """Return the split of largest positive payoff, the earliest of equals; else None."""
        payoff = np.where(utility > 0, utility - self.cost, -np.inf)
        # Alg. 2, l. 6-9, with the first of equal payoffs: the earliest completion.
        best = int(payoff.argmax())
        if not payoff[best] > 0:
            return None
        noise = payoff_noise(float(utility.max()), float(self.cost[best]))
        at = int(((payoff > 0) & (payoff >= payoff[best] - noise)).argmax())
        return self._split(at, float(payoff[at]))

    def cheapest(self) -> Split | None:
        """Return the cheapest split (payoff: minus its cost); None if the work does not fit."""
        cost = float(self.cost[-1])  # never more than that of an earlier completion
        return self._split(len(self.cost) - 1, -cost) if cost < np.inf else None

    def smallest_factor(self, utility: FloatArray) -> float | None:
        """The least x at which x times `utility` pays for the work; None if none does."""
        reachable = (utility > 0) & (self.cost < np.inf)
        factors = self.cost[reachable] / utility[reachable]
        return float(factors.min()) if factors.size else None

    def _split(self, last: int, payoff: float) -> Split:
        """Make the split that completes by slot `last`, with this payoff."""
        counts = self.counts(last)
        return Split(payoff, int(np.flatnonzero(counts)[-1]), counts)

    def counts(self, last: int) -> IntArray:
        """Workers in slots 0..`last` at cost ``cost[last]``, as early as possible in ties."""
        counts = np.zeros(last + 1, dtype=np.int64)
        work = self.value.shape[1] - 1
        for slot in range(last, -1, -1):
            before = np.maximum(0, work - self.progress)
            reached = self.value[slot][before] + self.table[slot]
            # Going backwards, the fewest workers that fit the value:
            # ties leave the work to earlier slots.
            counts[slot] = rounding.first_of_least(reached)
            work = before[counts[slot]]
        return counts
