"""Lower bound on the mean completion time of rigid jobs, for traces.

The machines are one pool of G GPUs. A rigid job j arrives at r_j and holds exactly g_j GPUs while
it runs, for p_j seconds in all; it may be paused at no cost, and everything is known beforehand.
No schedule of separate machines, with or without preemption, is better than the best of the pool.

The *fluid machine* works at G GPU-seconds per second, on one job at a time. Time falls into its
busy periods; bounds on the jobs that arrive in each of them add up, because the other jobs only
take GPUs away. For the jobs of one busy period, the bound is the largest of

1. the sum of p_j;
2. the flow times of the fluid machine with the shortest remaining work first (Schrage, 1968);
3. for any prices b(t) >= 0 of a GPU-second that never rise (Lagrangian duality)

       sum_j min_d (d + p_j + g_j * integral of b from r_j + d to r_j + d + p_j) - G * integral of b

   A job that ends d + p_j after its arrival pays least if it runs in the last p_j seconds before
   its end, because prices do not rise. In a schedule, all jobs together pay at most G times the
   integral of b, so the sum is at most the sum of the times to completion.

The prices are those of the fluid machine that takes the least work first: b(t) is the integral from
t to the end of the busy period of 1 / (g_k p_k), k being the job it works on; then the best of
several multiples of them, 0 included, so that 3 is never below 1. A search then raises the price of
steps that the jobs use more than there is, and lowers that of the others, with a part of the jobs;
the bound at its best prices is that of all jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from oasis.model.errors import InputError
from oasis.model.rounding import FloatArray, IntArray
from offline.elastic_bound import ROUNDING, shortest_first

STEPS = 48  # of the prices of a busy period
# One scale does not fit all periods: prices that are right in proportion may be too high or low.
MULTIPLES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.25)
ROUNDS = 60  # of the search for better prices
SEARCHED = 1_500  # jobs of a busy period that decide in it
LEAST_SEARCHED = 20  # jobs; in shorter busy periods there is little to gain
PACE = 0.5  # of the logarithm of a price, in the first round
AT_ONCE = 20_000  # jobs times the steps of the prices: what is computed at once fits the caches


def rigid_mean_bound(
    arrivals: FloatArray, durations: FloatArray, gpus: IntArray, total: float
) -> float:
    """A lower bound on the mean time from arrival to completion if every job is completed."""
    if not len(arrivals):
        raise InputError("jobs", "expected at least one")
    if gpus.max() > total:
        return math.inf
    order = np.argsort(arrivals, kind="stable")
    arrivals, lasts, wide = arrivals[order], durations[order], gpus[order].astype(float)
    sums = [
        _of_period(arrivals[part], lasts[part], wide[part], total)
        for part in busy_periods(arrivals, lasts * wide / total)
    ]
    # Runs subtract times that are rounded.
    rounded = ROUNDING * (float(np.abs(arrivals).max()) + max(sums))
    return max(0.0, math.fsum(sums) / len(arrivals) - rounded)


def busy_periods(arrivals: FloatArray, seconds: FloatArray) -> Iterator[slice]:
    """Yield a slice of the jobs, sorted by arrival, for each busy period of the fluid machine."""
    before = np.concatenate([[0.0], np.cumsum(seconds)[:-1]])
    # It is idle where more time has passed than there was work for: a new record of the difference.
    idle = arrivals - before
    begins = np.flatnonzero(np.concatenate([[True], idle[1:] > np.maximum.accumulate(idle)[:-1]]))
    for begin, end in zip(begins, [*begins[1:], len(arrivals)], strict=True):
        yield slice(int(begin), int(end))


def _of_period(arrivals: FloatArray, lasts: FloatArray, wide: FloatArray, total: float) -> float:
    """Return the bound on the sum of times to completion of the jobs of one busy period."""
    least = math.fsum(lasts)
    if held_at_most(arrivals, lasts, wide) <= total:
        return least  # each job may run from its arrival on
    seconds = lasts * wide / total
    begin = float(arrivals[0])
    flow = shortest_first((arrivals - begin).tolist(), seconds.tolist())
    times, prices = _prices(arrivals - begin, seconds, total)
    value = _dual_value(arrivals - begin, lasts, wide, total, times, prices)
    if len(arrivals) >= LEAST_SEARCHED:
        prices = _search_prices(arrivals - begin, lasts, wide, total, times, prices)
        value = max(value, _dual_value(arrivals - begin, lasts, wide, total, times, prices))
    return max(least, flow, value)


def held_at_most(arrivals: FloatArray, lasts: FloatArray, wide: FloatArray) -> float:
    """Return the most GPUs held at one time if each job runs from its arrival on."""
    times = np.concatenate([arrivals + lasts, arrivals])
    changes = np.concatenate([-wide, wide])
    order = np.argsort(times, kind="stable")  # at one time, ends are before arrivals
    return float(np.cumsum(changes[order]).max())


def spread_by_work(lasts: FloatArray, wide: FloatArray, count: int) -> IntArray:
    """Return the indices of `count` jobs, from the least GPU-seconds to the most, evenly spread."""
    by_work = np.argsort(lasts * wide, kind="stable")
    chosen: IntArray = by_work[np.linspace(0, len(by_work) - 1, count).round().astype(int)]
    return chosen


def _prices(
    arrivals: FloatArray, seconds: FloatArray, total: float
) -> tuple[FloatArray, FloatArray]:
    """Return the edges of the time steps and the falling price of a GPU-second per step."""
    lengths, jobs = _least_work_first(arrivals.tolist(), seconds.tolist())
    ends = np.cumsum(lengths)
    # What waiting costs falls by one over the work of the job that is at work.
    after = np.concatenate([np.cumsum((lengths / (seconds[jobs] * total))[::-1])[::-1], [0.0]])
    edges = np.linspace(0.0, ends[-1], STEPS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    return edges, np.interp(middles, np.concatenate([[0.0], ends]), after)


def _least_work_first(arrivals: list[float], seconds: list[float]) -> tuple[FloatArray, IntArray]:
    """Return how long, and which job, the fluid machine works in turn, least work first."""
    waiting: list[tuple[float, int]] = []
    remaining, lengths, jobs = list(seconds), [], []
    now = 0.0
    for k, until in enumerate([*arrivals[1:], math.inf]):
        if seconds[k] > 0:
            heappush(waiting, (seconds[k], k))
        while waiting and now < until:
            job = waiting[0][1]
            spent = min(remaining[job], until - now)
            lengths.append(spent)
            jobs.append(job)
            remaining[job] -= spent
            if spent < until - now:
                now += spent
                heappop(waiting)
            else:
                now = until
                if remaining[job] <= 0:
                    heappop(waiting)
    return np.array(lengths), np.array(jobs, dtype=np.int64)


def _search_prices(
    arrivals: FloatArray,
    lasts: FloatArray,
    wide: FloatArray,
    total: float,
    edges: FloatArray,
    prices: FloatArray,
) -> FloatArray:
    """Return prices that never rise, at which the dual value of a sample of jobs is large."""
    count = min(len(arrivals), SEARCHED)
    part = spread_by_work(lasts, wide, count)
    arrival, last, width = arrivals[part, None], lasts[part, None], wide[part, None]
    lengths = np.diff(edges)
    # A part of the jobs has as large a part of the GPU-seconds.
    room = total * lengths * count / len(arrivals)
    starts, rows = _starts(arrival, last, edges), np.arange(count)
    best, most = prices, -math.inf
    for k in range(ROUNDS):
        paid = np.concatenate([[0.0], np.cumsum(prices * lengths)])
        cost = np.interp(starts + last, edges, paid) - np.interp(starts, edges, paid)
        whole = starts - arrival + width * cost
        choice = whole.argmin(axis=1)
        value = float(whole[rows, choice].sum() - room @ prices)
        if value > most:
            best, most = prices, value
        begins = starts[rows, choice][:, None]
        runs = np.minimum(begins + last, edges[1:]) - np.maximum(begins, edges[:-1])
        demand = (width * np.clip(runs, 0.0, None)).sum(axis=0)
        # A price rises where more is wanted than there is, in steps that shrink. None stays near
        # zero for ever, and prices never rise over time: item 3 above needs that.
        over = np.clip(demand / room - 1.0, -1.0, 1.0)
        prices = np.maximum(prices, 1e-4 * prices.max()) * np.exp(PACE / (1 + k / 8) * over)
        prices = np.maximum.accumulate(prices[::-1])[::-1]
    return best


def _starts(arrival: FloatArray, last: FloatArray, edges: FloatArray) -> FloatArray:
    """Return starts of each job, at edges or ending there: costs are linear between these."""
    starts = np.concatenate([arrival, np.broadcast_to(edges, (len(arrival), len(edges)))], axis=1)
    begins: FloatArray = np.maximum(np.concatenate([starts, edges - last], axis=1), arrival)
    return begins


def _dual_value(
    arrivals: FloatArray,
    lasts: FloatArray,
    wide: FloatArray,
    total: float,
    edges: FloatArray,
    prices: FloatArray,
) -> float:
    """Return the largest dual value (item 3 above) among `MULTIPLES` of the prices."""
    paid = np.concatenate([[0.0], np.cumsum(prices * np.diff(edges))])  # up to each edge
    factors = np.array(MULTIPLES)
    values = -factors * total * paid[-1]
    for begin in range(0, len(arrivals), max(1, AT_ONCE // len(edges))):
        part = slice(begin, begin + max(1, AT_ONCE // len(edges)))
        arrival, last = arrivals[part, None], lasts[part, None]
        starts = _starts(arrival, last, edges)
        cost = np.interp(starts + last, edges, paid) - np.interp(starts, edges, paid)
        cost *= wide[part, None]
        delays = starts - arrival
        for k, factor in enumerate(factors):
            values[k] += float((delays + factor * cost).min(axis=1).sum())
    return math.fsum(lasts) + float(max(values.max(), 0.0))
