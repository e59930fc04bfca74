"""Upper bound on the utility of elastic jobs: a configuration LP without interference or costs.

Relaxed: a job works at the best speed that its workers can have, wherever they are and whoever is
beside them; a change costs nothing; the machines are one pool, whatever their labels are, in which
parameter servers take no room; time is divided as finely as one likes within a slot; and everything
is known from the start. Whatever a policy does is one configuration per job: a form, a slot of
completion and the worker-time in each slot up to it, and is worth no more there. So the optimum of
the LP

    max sum f_il x_il,  sum_l x_il <= 1 for each job,
    sum w_ir u_ilt x_il <= C_r L in each slot t for each resource r,  x >= 0

is at least the utility of every run. A configuration of a job that may switch has no form: it says
for how many seconds of each slot the job works in each form with each number of workers. In a run
these seconds are no more than the slot has, each second does at most the share of the work that the
form needs for all of it, and the shares come to one by the end, whatever a restart loses between
them: so a run is such a configuration, too.

The LP is solved by column generation. What is returned is its Lagrangian dual at the best prices
that were met, so that the bound holds however early that ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace

import numpy as np

from oasis.model.errors import InputError
from oasis.model.rounding import FloatArray, IntArray
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.simulator.speed import Load
from oasis.simulator.workload import Workload
from oasis.solvers.lp import ColumnLp, LpColumn

MOST_ROUNDS = 200  # the bound holds after any number of them
GAP = 1e-3  # the bound is within this part of the LP's optimum, unless the rounds are used up
ROUNDING = 1e-9  # of a time: more than a run loses when it adds and subtracts times


@dataclass(frozen=True, slots=True)
class ElasticBound:
    """An upper bound (`value`) on any run's utility; `reached` is the value of the last master."""

    value: float
    reached: float
    rounds: int
    slot_seconds: float


def envelope(rates: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return widths and slopes of the concave envelope of the speeds with 0, 1, 2, .. workers."""
    corners = [0]
    while corners[-1] < len(rates) - 1:
        last = corners[-1]
        slopes = [(rates[n] - rates[last]) / (n - last) for n in range(last + 1, len(rates))]
        best = int(np.argmax(slopes))
        if slopes[best] <= 0:
            break
        corners.append(last + 1 + best)
    widths = np.diff(corners).astype(float)
    return widths, np.diff([rates[corner] for corner in corners]) / widths


class _Configurations:
    """The configurations of a job in one form, and the best of them at given prices."""

    def __init__(
        self,
        job: PolicyJob,
        rates: Sequence[float],
        most: int,
        length: float,
        slots: int,
        share: FloatArray,
    ) -> None:
        self.share = share
        widths, slopes = envelope(rates[: most + 1])
        self._open_from(job, length, slots)
        self._slots = np.repeat(np.arange(slots), len(widths))
        self._slopes = np.tile(slopes, slots)
        # In each slot the steepest part of the envelope comes first, so that taking the cheapest
        # work first never takes a later worker without the earlier ones.
        self._work = np.outer(self.open, widths * slopes).ravel()
        top = max(rates[: most + 1])  # not the sum of the envelope, which is rounded
        self._value(job, job.work, top, self._work.reshape(slots, -1).sum(axis=1))

    def _open_from(self, job: PolicyJob, length: float, slots: int) -> None:
        """Set `open`, the seconds of each slot after the arrival of `job`."""
        self.length, self._begins = length, np.arange(slots) * length
        self.open = np.clip(self._begins + length - job.arrival, 0.0, length)

    def _value(self, job: PolicyJob, total: float, top: float, most: FloatArray) -> None:
        """Set `worth` by slot of completion, of work `total`: `most` a slot, `top` a second."""
        self._total, begins = total, self._begins
        slots, length = len(begins), self.length
        fastest = total / top if top > 0 else np.inf
        # A run may be quicker by rounding than the slots say: without this it would not be a
        # configuration.
        able = np.cumsum(most) + top * ROUNDING * (begins + length) >= total
        delays = np.maximum(begins - job.arrival, fastest)
        worth = np.asarray(job.utility(_earlier(delays, job.arrival)), dtype=float)
        self.worth = np.where(able, worth, -np.inf)
        never = np.array([max(slots * length - job.arrival, fastest)])
        # who completes after the last slot pays nothing for it
        self.later = float(job.utility(_earlier(never, job.arrival))[0]) if top > 0 else 0.0

    def best(self, prices: FloatArray) -> tuple[float, float, FloatArray | None]:
        """Return gain, utility, pool shares of the best; no shares: it ends after the last slot."""
        cost = self._work_costs(prices)
        gain = self.worth - self._least_costs(cost, len(prices))
        slot = int(np.argmax(gain)) if len(gain) else -1
        if slot < 0 or gain[slot] <= self.later:
            return self.later, self.later, None
        pieces = np.flatnonzero(self._slots <= slot)
        order = pieces[np.argsort(cost[pieces], kind="stable")]
        amounts = self._work[order]
        amounts_used = np.clip(self._total - (np.cumsum(amounts) - amounts), 0.0, amounts)
        worth = float(self.worth[slot])
        return worth - float(amounts_used @ cost[order]), worth, self._load(order, amounts_used)

    def _work_costs(self, prices: FloatArray) -> FloatArray:
        """Return the cost of a unit of work in each piece, in each slot the cheapest first."""
        price = prices @ self.share / self.length  # of a worker-second
        return price[self._slots] / self._slopes

    def _load(self, order: IntArray, amounts_used: FloatArray) -> FloatArray:
        """Return the pool shares (T, R) of `amounts_used` of work in the pieces `order`."""
        used = np.zeros(len(self.open))
        np.add.at(used, self._slots[order], amounts_used / self._slopes[order])
        return np.outer(used, self.share / self.length)

    def _least_costs(self, cost: FloatArray, slots: int) -> FloatArray:
        """Return the least cost of all the work, by slot up to which it is done."""
        # From one slot to the next, the pieces of work of the new slot replace the dearest held
        # ones, which no later slot needs: a heap holds no more than has to be done.
        costs = np.zeros(slots)
        bought: list[tuple[float, float]] = []  # the dearest piece first: cost negated, amount
        done = paid = 0.0
        per_slot = len(cost) // slots
        pieces = list(zip((-cost).tolist(), self._work.tolist(), strict=True))
        for slot in range(slots):
            for piece in pieces[slot * per_slot : (slot + 1) * per_slot]:
                heappush(bought, piece)
                done += piece[1]
                paid -= piece[0] * piece[1]
            while done > self._total:
                dearest, amount = bought[0]
                over = min(amount, done - self._total)
                done -= over
                paid += dearest * over
                if over < amount:
                    heapreplace(bought, (dearest, amount - over))
                    break
                heappop(bought)
            costs[slot] = paid
        return costs


class _Switching(_Configurations):
    """Configurations of a job that may switch forms; work is counted in shares of the whole."""

    def __init__(
        self, job: PolicyJob, uses: FloatArray, paces: FloatArray, length: float, slots: int
    ) -> None:
        # Of equally steep ways, `argmin` then takes the fastest.
        fastest_first = np.argsort(-paces, kind="stable")
        self._uses, self._paces = uses[fastest_first], paces[fastest_first]
        self._open_from(job, length, slots)
        self._slots = np.repeat(np.arange(slots), len(paces))
        top = float(max(paces, default=0.0))
        self._value(job, 1.0, top, top * self.open)

    def _work_costs(self, prices: FloatArray) -> FloatArray:
        """Set the pieces of work for these prices, and return their costs per unit of work."""
        slots, ways, rows = len(prices), len(self._paces), np.arange(len(prices))
        costs = prices @ self._uses.T / self.length
        at, pace = np.zeros((slots, self._uses.shape[1])), np.zeros(slots)  # from nothing on
        paid, gains, work = np.zeros(slots), np.zeros((slots, ways)), np.zeros((slots, ways))
        more = np.zeros((slots, ways, self._uses.shape[1]))  # used by a unit of work
        for piece in range(ways):
            faster = self._paces - pace[:, None]
            steep = np.full((slots, ways), np.inf)
            np.divide(costs - paid[:, None], faster, out=steep, where=faster > 0)
            way = steep.argmin(axis=1)  # of equals the fastest, which comes first
            step = np.maximum(faster[rows, way], 0.0)
            (on,) = np.nonzero(step)  # the others are at the end, with pieces of no work
            if not len(on):
                break
            gains[on, piece] = np.maximum(steep[on, way[on]], 0.0)
            work[on, piece] = step[on] * self.open[on]
            more[on, piece] = (self._uses[way[on]] - at[on]) / step[on, None]
            at[on], pace[on] = self._uses[way[on]], self._paces[way[on]]
            paid[on] = costs[on, way[on]]
        self._work, self._more = work.ravel(), more.reshape(slots * ways, self._uses.shape[1])
        return gains.ravel()

    def _load(self, order: IntArray, amounts_used: FloatArray) -> FloatArray:
        used = np.zeros((len(self.open), self._uses.shape[1]))
        np.add.at(used, self._slots[order], amounts_used[:, None] * self._more[order])
        return used / self.length


def _earlier(delays: FloatArray, arrival: float) -> FloatArray:
    """Round delays down: a run subtracts times that are rounded."""
    return np.maximum(0.0, delays * (1 - ROUNDING) - ROUNDING * arrival)


def elastic_bound(
    workload: Workload, slot_seconds: float, *, slots: int | None = None
) -> ElasticBound:
    """Return an upper bound on what any policy, also clairvoyant, can earn on `workload`."""
    if not slot_seconds > 0:
        raise InputError("slot_seconds", "expected a time > 0", slot_seconds)
    jobs = workload.jobs
    for job in jobs:
        if not job.has_utility:
            raise InputError("utility", f"expected one for each job, got none for {job.id!r}")
    totals, demands = pool(workload)
    if slots is None:
        slots = slots_needed(workload, slot_seconds)
    if slots < 1:
        raise InputError("slots", "expected at least 1", slots)
    # A resource that no machine has drops out: jobs that need it can have no worker anyway.
    exists = totals > 0
    choices: list[list[_Configurations]] = []
    for job, own in zip(jobs, demands, strict=True):
        rates = [best_rates(workload, form) for form in job.in_forms]
        most = [_most(form, demand, totals) for form, demand in zip(job.in_forms, own, strict=True)]
        shares = own[:, exists] / totals[exists]
        columns = zip(job.in_forms, rates, most, shares, strict=True)
        if job.may_switch:
            ways = [
                (n * share, rate / form.work)
                for form, speeds, limit, share in columns
                for n, rate in enumerate(speeds[: limit + 1])
                if rate > 0
            ]
            uses = np.array([use for use, _ in ways]).reshape(len(ways), exists.sum())
            paces = np.array([pace for _, pace in ways])
            choices.append([_Switching(job, uses, paces, slot_seconds, slots)])
        else:
            forms = [_Configurations(*row[:3], slot_seconds, slots, row[3]) for row in columns]
            choices.append(forms)
    return _generate(choices, slots, int(exists.sum()), slot_seconds)


def best_rates(workload: Workload, job: PolicyJob) -> list[float]:
    """Speeds of `job` with 0, 1, 2, .. workers on one machine that it has for itself."""
    scaling = getattr(workload.speed, "scaling", workload.speed)
    rates = [0.0]
    for workers in range(1, job.max_workers + 1):
        load = Load(workload.site)
        allocation = Allocation(((0, workers),))
        load.add(job, allocation)
        rate = scaling.rate(job, allocation, load) if workers in job.worker_counts else 0.0
        rates.append(rate)
    return rates


def _most(job: PolicyJob, demand: FloatArray, totals: FloatArray) -> int:
    """Return the most workers of `job` for which the pool has the resources."""
    limits = [total // amount for total, amount in zip(totals, demand, strict=True) if amount]
    return int(min([job.max_workers, *limits]))


def slots_needed(workload: Workload, slot_seconds: float) -> int:
    """Return slots that suffice for the pool to do all work, begun after the last arrival."""
    totals, demands = pool(workload)
    longest, shares = 0.0, np.zeros(len(totals))
    for job, own in zip(workload.jobs, demands, strict=True):
        bests = [_best_worker(workload, form) for form in job.in_forms]
        durations = [form.work / best for form, best in zip(job.in_forms, bests, strict=True)]
        k = durations.index(min(durations))
        longest = max(longest, durations[k])
        part = np.divide(own[k], totals, out=np.zeros(len(totals)), where=totals > 0)
        shares += part * job.in_forms[k].work / bests[k]
    last = max(job.arrival for job in workload.jobs)
    return int((last + max(longest, float(shares.max(initial=0.0)))) // slot_seconds) + 2


def _best_worker(workload: Workload, form: PolicyJob) -> float:
    """Return the largest speed per worker that a form has with any number of workers."""
    return max(rate / n for n, rate in enumerate(best_rates(workload, form)) if n)


def pool(workload: Workload) -> tuple[FloatArray, list[FloatArray]]:
    """Total capacity of all machines, and the demand of a worker of each form of a job."""
    machines = np.array([machine.capacity for machine in workload.site.machines], dtype=float)
    demands = []
    for job in workload.jobs:
        own = np.zeros((len(job.in_forms), machines.shape[1]))
        for row, form in zip(own, job.in_forms, strict=True):
            for resource, amount in form.worker:
                row[resource] = amount
        demands.append(own)
    return machines.sum(axis=0), demands


def _generate(
    choices: Sequence[Sequence[_Configurations]], slots: int, resources: int, length: float
) -> ElasticBound:
    """Solve the LP by column generation over the forms of each job; return its bound."""
    count = len(choices)
    every = [own for forms in choices for own in forms]
    largest = max((float(max(own.worth.max(), own.later)) for own in every), default=0.0)
    scale = largest if largest > 0 else 1.0
    master = ColumnLp(np.ones(count + slots * resources))
    duals = np.zeros(count + slots * resources)
    value, reached, rounds = np.inf, 0.0, 0
    while rounds < MOST_ROUNDS:
        rounds += 1
        prices = duals[count:].reshape(slots, resources) * scale
        columns, dual = [], float(prices.sum())
        for k, forms in enumerate(choices):
            answers = [own.best(prices) for own in forms]
            gain, worth, load = max(answers, key=lambda one: one[0])  # the first of equals
            dual += gain
            # Only a column of positive reduced cost can raise the master's value.
            if gain > duals[k] * scale + 1e-9 * scale:
                columns.append(_column(k, worth / scale, load, count))
        # D goes up and down from round to round, and each value is a bound.
        value = min(value, dual)
        if not columns or value - reached <= GAP * value:
            break
        master.add_columns(columns)
        solution = master.solve()
        assert solution is not None  # it has no limit
        reached, duals = solution.objective * scale, solution.duals
    return ElasticBound(float(value), reached, rounds, length)


def _column(job: int, worth: float, load: FloatArray | None, count: int) -> LpColumn:
    """Return the LP column of a job's configuration; rows of jobs come first, `count` of them."""
    rows: IntArray = np.array([job])
    values = np.ones(1)
    if load is not None:
        table = load.ravel()
        entries = np.flatnonzero(table)
        rows = np.concatenate([rows, count + entries])
        values = np.concatenate([values, table[entries]])
    return LpColumn(worth, rows, values)


def mean_completion_bound(workload: Workload) -> float:
    """A lower bound on the mean time from arrival to completion if every job is completed.

    It is the largest of the means of two relaxations:

    1. Each job runs from its arrival on in the form and with the workers with which it is fastest.
    2. To complete job j, a policy spends at least a_j = work_j * min_n (n w_j / rate_j(n)) of a
       resource, where n are workers that need w_j each and rate_j(n) is the best speed that n of
       them can have; and all jobs together never have more than the capacity C of all machines. So
       whatever it does is also a schedule of one machine that works at speed C, may be preempted at
       any time, and has to do a_j for job j, with the same completion times. On such a machine the
       job with the shortest remaining time first is optimal for the sum of completion times
       (Schrage, 1968). The bound takes the resource that gives most.

    Changes, parameter servers, locality and jobs that share a machine only slow jobs down; and
    whoever switches forms does no share of the work in less time or area than in the best of them.
    """
    totals, demands = pool(workload)
    jobs = workload.jobs
    fastest: list[float] = []
    areas: list[list[float]] = [[] for _ in totals]  # seconds of the whole pool, by resource
    for job, own in zip(jobs, demands, strict=True):
        pairs = zip(job.in_forms, own.tolist(), strict=True)
        able = [
            times for pair in pairs if (times := _least_times(workload, *pair, totals.tolist()))
        ]
        if not able:
            return math.inf
        time, *shares = (min(column) for column in zip(*able, strict=True))
        fastest.append(time)
        for area, share in zip(areas, shares, strict=True):
            area.append(share)
    arrivals = [job.arrival for job in jobs]
    sums = [math.fsum(fastest), *(shortest_first(arrivals, area) for area in areas)]
    # runs subtract times that are rounded
    rounded = ROUNDING * (max(arrivals) + max(sums))
    return max(0.0, max(sums) / len(jobs) - rounded)


def _least_times(
    workload: Workload, form: PolicyJob, demand: list[float], totals: list[float]
) -> list[float]:
    """Return the least seconds of a form, then pool seconds by resource; [] if it cannot run."""
    rates = best_rates(workload, form)
    able = [
        n
        for n, rate in enumerate(rates)
        if rate > 0 and all(n * w <= total for w, total in zip(demand, totals, strict=True))
    ]
    if not able:
        return []
    best = max(rates[n] / n for n in able)
    areas = [
        form.work / best * needed / total if needed else 0.0
        for needed, total in zip(demand, totals, strict=True)
    ]
    return [form.work / max(rates[n] for n in able), *areas]


def shortest_first(arrivals: Sequence[float], work: Sequence[float]) -> float:
    """Return the sum of flow times on one machine, shortest remaining work first, preemptive."""
    order = sorted(range(len(work)), key=lambda k: arrivals[k])
    remaining: list[tuple[float, int]] = []
    now, ends = 0.0, []
    for place, k in enumerate(order):
        now = max(now, arrivals[k])
        heappush(remaining, (work[k], k))
        until = arrivals[order[place + 1]] if place + 1 < len(order) else math.inf
        while remaining and now < until:
            left, job = heappop(remaining)
            if now + left > until:
                heappush(remaining, (left - (until - now), job))
                now = until
            else:
                now += left
                ends.append(now - arrivals[job])
    return math.fsum(ends)
