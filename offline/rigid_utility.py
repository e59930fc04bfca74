"""Upper bound on the total utility of rigid jobs under any scheduler, for traces.

Machines and jobs are those of `offline.rigid_bound`: one pool of G GPUs; job j arrives at r_j,
holds exactly g_j GPUs while it runs, for p_j seconds in all, may be paused at no cost, and is worth
u_j(d) if it ends d seconds after its arrival. Everything is known beforehand, and a job may be left
out. u_j never rises.

Give a GPU-second at time t any price b(t) >= 0. In a schedule, the jobs hold at most G GPUs at
any time, so all of them together pay at most G * integral of b. A job that ends d after its arrival
ran for p_j seconds between r_j and r_j + d, and pays at least c_j(d), g_j times the least integral
of b over p_j seconds of that time. So (Lagrangian duality)

    sum_j u_j(d_j) <= G * integral of b + sum_j max(0, max over d >= p_j of u_j(d) - c_j(d)).

Prices are constant in each of K equal steps of a busy period, and 0 after the last. A job that ends
in step k is worth no more than at the later of p_j and the start of the step, and pays no less than
if it had the whole step: it takes its p_j seconds from the cheapest steps up to k. So one number
for each step bounds what the job gains there. Bounds on busy periods of the fluid machine add up,
as in `offline.rigid_bound`.

The bound holds for every choice of prices; the search below only makes it small. A step becomes
dearer by a factor if the jobs want more than it has, and cheaper if they want less. Of many jobs, a
part decides the prices, and all of them are counted in the bound.
"""

from __future__ import annotations

import math

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.model.utility import UtilityColumns
from offline.elastic_bound import ROUNDING
from offline.rigid_bound import busy_periods, held_at_most, spread_by_work

STEPS = 40  # of the prices of a busy period
ROUNDS = 40  # of the search for prices
SEARCHED = 3_000  # jobs that decide prices, in all periods
LEAST_SEARCHED = 40  # jobs of each period among them
MOST_PERIODS = 200  # with prices, those with most jobs; in the others every job gains what it can
PACE = 0.7  # of the logarithm of a price, in the first round
AT_ONCE = 60_000  # jobs times steps times steps: what is computed at once fits the caches
FIRST_PRICES = (0.1, 0.25, 0.5, 0.75, 0.9)  # quantiles of what jobs are worth for a GPU-second


def rigid_utility_bound(
    arrivals: FloatArray,
    durations: FloatArray,
    gpus: IntArray,
    worth: UtilityColumns,
    total: float,
) -> float:
    """An upper bound on the sum of the utilities of all jobs."""
    order = np.argsort(arrivals, kind="stable")
    order = order[gpus[order] <= total]  # the others never run
    arrivals, lasts, wide = arrivals[order], durations[order], gpus[order].astype(float)
    # Runs subtract times that are rounded.
    lasts = np.maximum(0.0, lasts * (1 - ROUNDING) - ROUNDING * np.abs(arrivals))
    worth = worth.part(order)
    values = worth(lasts)
    periods = list(busy_periods(arrivals, lasts * wide / total)) if len(order) else []
    crowded = [p for p in periods if held_at_most(arrivals[p], lasts[p], wide[p]) > total]
    crowded = sorted(crowded, key=lambda p: p.start - p.stop)[:MOST_PERIODS]
    jobs = sum(p.stop - p.start for p in crowded)
    bounds = {}
    for part in crowded:
        period = _Period(arrivals[part], lasts[part], wide[part], worth.part(part), total)
        count = part.stop - part.start
        least = max(LEAST_SEARCHED, round(SEARCHED * count / jobs))
        bounds[part.start] = min(
            math.fsum(values[part]), period.value(period.search_prices(min(count, least)))
        )
    sums = [bounds.get(p.start, math.fsum(values[p])) for p in periods]
    return math.fsum(sums) * (1 + ROUNDING)


class _Period:
    """The jobs of one busy period, and their gains at given prices."""

    def __init__(
        self, arrivals: FloatArray, lasts: FloatArray, wide: FloatArray, worth: UtilityColumns,
        total: float,
    ) -> None:  # fmt: skip
        self._arrivals, self._lasts, self._wide, self._worth = arrivals, lasts, wide, worth
        self._total = total
        length = float((lasts * wide).sum()) / total  # the fluid machine is never idle in it
        self._edges = arrivals[0] + np.linspace(0.0, length, STEPS + 1)
        self._seconds = length / STEPS

    def value(self, prices: FloatArray) -> float:
        """Return the bound on the utility of the period's jobs at these prices."""
        places = np.arange(len(self._arrivals))
        return math.fsum([self._paid(prices), *(gain for gain, _ in self._gains(places, prices))])

    def _paid(self, prices: FloatArray) -> float:
        return self._total * self._seconds * math.fsum(prices)

    def search_prices(self, count: int) -> FloatArray:
        """Return prices at which the bound on a sample of `count` jobs is small."""
        chosen = spread_by_work(self._lasts, self._wide, count)
        # A part of the jobs has as large a part of the GPU-seconds.
        scale = len(self._arrivals) / count
        room = self._total * self._seconds / scale

        def evaluate(prices: FloatArray) -> tuple[float, FloatArray]:
            gains = list(self._gains(chosen, prices))
            demand = np.sum([used for _, used in gains], axis=0)
            return self._paid(prices) / scale + math.fsum(gain for gain, _ in gains), demand

        work = np.maximum(self._lasts * self._wide, ROUNDING)
        firsts = np.quantile(self._worth(self._lasts) / work, FIRST_PRICES)
        starts = [np.full(STEPS, price) for price in firsts]
        trials = [evaluate(prices) for prices in starts]
        best = min(range(len(trials)), key=lambda k: trials[k][0])
        (value, demand), prices = trials[best], starts[best]
        least = (value, prices)
        for k in range(ROUNDS):
            # A price rises where more is wanted than there is, in steps that shrink.
            over = np.clip(demand / room - 1, -1.0, 1.0)
            prices = prices * np.exp(PACE / (1 + k / 8) * over)
            value, demand = evaluate(prices)
            least = min(least, (value, prices), key=lambda one: one[0])
        return least[1]

    def _gains(self, places: IntArray, prices: FloatArray) -> list[tuple[float, FloatArray]]:
        """Return, for parts of the jobs, total gain and the GPU-seconds used in each step."""
        size = max(1, AT_ONCE // (STEPS + 1) ** 2)
        parts = (places[k : k + size] for k in range(0, len(places), size))
        return [self._gain(part, prices) for part in parts]

    def _gain(self, part: IntArray, prices: FloatArray) -> tuple[float, FloatArray]:
        columns = self._arrivals, self._lasts, self._wide
        arrivals, lasts, wide = (column[part, None] for column in columns)
        begins, ends = self._edges[:-1], self._edges[1:]
        open_for = np.clip(ends - np.maximum(begins, arrivals), 0.0, None)
        # After the last step there is as much time as anybody needs, for nothing.
        open_for = np.concatenate([open_for, lasts], axis=1)
        prices = np.append(prices, 0.0)
        able = np.cumsum(open_for, axis=1) >= lasts
        delays = np.maximum(lasts, self._edges * (1 - ROUNDING * np.sign(self._edges)) - arrivals)
        worth = np.where(able, self._worth.part(part)(delays), -np.inf)
        # A job that completes in a step runs in the cheapest steps up to that one.
        cheapest = np.argsort(prices, kind="stable")
        allowed = cheapest <= np.arange(STEPS + 1)[:, None]  # (step of the end, steps by price)
        sums = np.cumsum(open_for[:, None, cheapest] * allowed, axis=2)
        amounts = np.minimum(sums, lasts[:, :, None])
        # Its cost, summed by parts: seconds up to each step times the rise of the price after it.
        rises = -np.diff(prices[cheapest], append=0.0)
        gains = worth - wide * (amounts @ rises)
        end = np.argmax(gains, axis=1)
        rows = np.arange(len(part))
        gain = gains[rows, end]
        used = np.zeros((len(part), STEPS + 1))
        used[:, cheapest] = np.diff(amounts[rows, end], axis=1, prepend=0.0) * wide
        runs = gain > 0
        return math.fsum(gain[runs]), used[runs, :-1].sum(axis=0)
