"""Jobs that work with a minimum of workers, or with none: the search against enumeration.

The enumeration shares nothing with the search. It tries every count of workers in every slot, and
every way to put so many workers and their parameter servers on the servers. Amounts are whole
numbers, so that nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import oasis
from oasis import Cluster, Instance, Job, Piecewise, Server
from oasis.model.rounding import FloatArray
from oasis.model.schedule import COUNT, SLOT
from oasis.online.completions import completions
from oasis.online.dp import best_split
from oasis.online.dp.worker_slots import costs_of_work, workers_for
from oasis.online.ledger import Ledger
from oasis.online.search import Granularity, RemainingWork, Search
from offline import solve
from tests.strategies import Market

RESOURCES = ("gpu", "bandwidth_gbps")


def ledger_of(found: Market) -> Ledger:
    prices = found.worker_prices, found.ps_prices
    return Ledger.of_arrays(found.cluster, *prices, found.worker_used, found.ps_used)


def market(seed: int, least: int) -> Market:
    """Few slots and servers; some prices are 0, some servers full."""
    rng = np.random.default_rng((seed, least))
    horizon = int(rng.integers(2, 5))
    servers = [
        tuple(
            Server(
                f"{name}{k}", dict(zip(RESOURCES, rng.integers(2, 9, 2).astype(float), strict=True))
            )
            for k in range(int(rng.integers(1, 3)))
        )
        for name in "wp"
    ]
    cluster = Cluster(RESOURCES, *servers, slot_seconds=1.0)
    chunks = int(rng.integers(least, 6))
    has_ps = rng.random() < 0.6
    values = np.sort(rng.choice([0.0, 1.0, 2.0, 5.0, 9.0, 20.0], horizon))[::-1]
    job = Job(
        "j",
        arrival=0,
        epochs=int(rng.integers(1, 3)),
        chunks=chunks,
        minibatches=1,
        minibatch_time=float(rng.choice([0.25, 0.5, 1.0, 1.5])),
        gradient_mb=0.0,
        worker={"gpu": float(rng.integers(0, 2)), "bandwidth_gbps": float(has_ps)},
        ps={"gpu": float(rng.integers(0, 2)), "bandwidth_gbps": float(rng.integers(1, 4) * has_ps)},
        utility=Piecewise(tuple(float(t) for t in range(horizon)), tuple(values.tolist())),
        min_workers=least,
    )
    return priced(rng, job, cluster, horizon)


def priced(rng: np.random.Generator, job: Job, cluster: Cluster, horizon: int) -> Market:
    """The job on the cluster; some prices are 0, some machines are full."""
    arrays = []
    for capacity in (cluster.worker_capacity, cluster.ps_capacity):
        shape = (horizon, *capacity.shape)
        used = np.floor(rng.random(shape) * rng.choice([0.0, 0.0, 0.5, 1.1], shape) * capacity)
        arrays.append((rng.choice([0.0, 0.25, 0.25, 0.5, 1.5], shape), np.minimum(used, capacity)))
    (worker_prices, worker_used), (ps_prices, ps_used) = arrays
    return Market(job, cluster, horizon, worker_prices, ps_prices, worker_used, ps_used)


def splits(total: int, servers: int) -> Iterator[tuple[int, ...]]:
    for split in product(range(total + 1), repeat=servers):
        if sum(split) == total:
            yield split


def least_cost(count: int, demand: FloatArray, free: FloatArray, prices: FloatArray) -> float:
    """Of `count` tasks on the servers of a group; `free` and `prices` are (S, R)."""
    costs = [
        float(sum(n * (price @ demand) for n, price in zip(split, prices, strict=True)))
        for split in splits(count, len(free))
        if all((n * demand <= left).all() for n, left in zip(split, free, strict=True))
    ]
    return min(costs, default=math.inf)


def slot_costs(given: Market) -> list[dict[int, float]]:
    """Cost of each allowed count of workers in each slot, with its parameter servers."""
    job, cluster = given.job, given.cluster
    worker, ps = (np.array([d.get(name, 0.0) for name in RESOURCES]) for d in (job.worker, job.ps))
    found = []
    for t in range(given.horizon):
        costs = {0: 0.0}
        for n in range(job.min_workers, job.chunks + 1):
            needed = math.ceil(n * job.bandwidth / job.ps_bandwidth) if job.bandwidth else 0
            free = cluster.worker_capacity - given.worker_used[t]
            cost = least_cost(n, worker, free, given.worker_prices[t])
            free = cluster.ps_capacity - given.ps_used[t]
            cost += least_cost(needed, ps, free, given.ps_prices[t])
            if cost < math.inf:
                costs[n] = cost
        found.append(costs)
    return found


def outcomes(given: Market, start: int, work: int, granularity: Granularity) -> dict[int, float]:
    """The least cost of every completion from slot `start` on that does the work."""
    job = given.job
    chunk, total = job.minibatch_time * job.minibatches, job.epochs * job.chunks
    best: dict[int, float] = {}
    table = slot_costs(given)[start:]
    for counts in product(*(costs for costs in table)):
        if granularity == "chunk":
            is_done = sum(math.floor(n / chunk) for n in counts) >= total
        else:
            is_done = sum(counts) >= work
        if not is_done:
            continue
        completion = start + max(t for t, n in enumerate(counts) if n)
        cost = sum(costs[n] for costs, n in zip(table, counts, strict=True))
        best[completion] = min(best.get(completion, math.inf), cost)
    return best


def best_payoff(given: Market, found: dict[int, float]) -> float:
    payoffs = [float(given.job.utility(t)) - cost for t, cost in found.items()]
    return max([0.0, *payoffs])


@pytest.mark.parametrize("granularity", ["worker-slot", "chunk"])
@pytest.mark.parametrize("least", [1, 2, 3, 4])
def test_the_best_payoff_is_that_of_an_enumeration(least: int, granularity: Granularity) -> None:
    admitted = 0
    for seed in range(120):
        given = market(seed, least)
        job = given.job
        found = outcomes(given, 0, job.work(1.0), granularity)
        best = oasis.best_schedule(
            job,
            given.cluster,
            given.horizon,
            given.worker_prices,
            given.ps_prices,
            given.worker_used,
            given.ps_used,
            granularity=granularity,
        )
        assert best.payoff == pytest.approx(best_payoff(given, found), abs=1e-9), (seed, least)
        if best.schedule is not None:
            admitted += 1
            counts = np.bincount(best.schedule.workers[:, SLOT], best.schedule.workers[:, COUNT])
            assert all(n == 0 or least <= n <= job.chunks for n in counts)
            instance = Instance(given.horizon, given.cluster, (job,))
            assert oasis.verify(instance, {"j": best.schedule}) == best.utility
        elif best.rejection is not None:
            assert best.rejection.smallest_utility == pytest.approx(min(found.values()))
    assert 20 < admitted < 120


@pytest.mark.parametrize("least", [1, 2, 3, 4])
def test_what_is_left_of_a_job_is_placed_at_the_least_cost(least: int) -> None:
    """Also where less is left than the minimum does in a slot."""
    compared = 0
    for seed in range(120):
        given = market(seed, least)
        rng = np.random.default_rng(seed)
        start, work = int(rng.integers(0, 2)), int(rng.integers(1, given.job.work(1.0) + 1))
        ends = completions(given.job, given.horizon, 1.0, 0.0)
        first = start - 1 - (-work // given.job.chunks)
        utility = given.job.utility(np.arange(first, given.horizon))
        logs = np.where(utility > 0, 0.0, -np.inf)
        remaining = RemainingWork(start, work, type(ends)(first, utility, logs))
        search = Search(given.job, ledger_of(given), remaining=remaining)
        found = outcomes(given, start, work, "worker-slot")
        split, cheapest = search.best(), search.cheapest()
        payoff = best_payoff(given, found)
        assert (split.payoff if split else 0.0) == pytest.approx(payoff, abs=1e-9), (seed, least)
        assert (cheapest is None) == (not found), (seed, least)
        earliest = search.earliest(given.horizon - 1)
        counted = [t for t in sorted(found) if given.job.utility(t) > 0]
        assert (earliest is None) == (not counted), (seed, least)
        if cheapest is not None:
            assert -cheapest.payoff == pytest.approx(min(found.values())), (seed, least)
        if earliest is not None:
            schedule = search.schedule(earliest)
            assert schedule.completion == counted[0], (seed, least)
            assert schedule.worker_slots >= work
            compared += 1
        factors = [
            cost / float(given.job.utility(t))
            for t, cost in found.items()
            if given.job.utility(t) > 0
        ]
        factor = search.smallest_factor()
        assert (factor is None) == (not factors)
        if factor is not None:
            assert factor == pytest.approx(min(factors), abs=1e-12), (seed, least)
    assert compared > 20


@pytest.mark.parametrize("least", [1, 2, 3])
def test_the_offline_optimum_of_one_job_is_that_of_the_enumeration(least: int) -> None:
    for seed in range(40):
        given = market(seed, least)
        if given.job.work(1.0) > 8:
            continue
        nothing = np.zeros_like
        free = Market(
            given.job,
            given.cluster,
            given.horizon,
            nothing(given.worker_prices),
            nothing(given.ps_prices),
            nothing(given.worker_used),
            nothing(given.ps_used),
        )
        instance = Instance(given.horizon, given.cluster, (given.job,))
        found = outcomes(free, 0, given.job.work(1.0), "worker-slot")
        assert solve(instance, "bruteforce").objective == best_payoff(free, found), (seed, least)


def textbook(rows: FloatArray, utility: FloatArray, least: int, work: int) -> float:
    """Best payoff by a programme over slots whose state is the work done, at most `work`."""
    cost, best = np.full(work + 1, np.inf), 0.0
    cost[0] = 0.0
    for row, worth in zip(rows, utility, strict=True):
        after = cost.copy()
        for n in range(least, len(row)):
            for done in np.flatnonzero(cost < np.inf).tolist():
                now = min(work, done + n)
                after[now] = min(after[now], cost[done] + row[n])
        cost = after
        best = max(best, float(worth - cost[work]))
    return best


def test_splits_of_many_slots_and_workers_are_those_of_the_textbook() -> None:
    """Costs rise anyhow, with steps of parameter servers and ties in them."""
    found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        slots, most = int(rng.integers(3, 20)), int(rng.integers(2, 14))
        least = int(rng.integers(1, most + 1))
        steps = rng.choice([0.0, 0.25, 1.0, 1.0, 4.0], (slots, most)) + rng.random() * 0.1
        rows = np.concatenate([np.zeros((slots, 1)), steps.cumsum(axis=1)], axis=1)
        for row, room in zip(rows, rng.integers(0, 2 * most, slots), strict=True):
            row[(room if room >= least else 0) + 1 :] = np.inf
        work = int(rng.integers(1, 1 + most * slots // 2))
        utility = np.sort(rng.integers(1, 3 * work + 2, slots).astype(float))[::-1]
        expected = textbook(rows, utility, least, work)
        costs = costs_of_work(rows.copy(), least, work)
        split = best_split(costs, np.ones(slots, np.int64), utility, work, 0.0)
        assert (split.payoff if split else 0.0) == pytest.approx(expected, abs=1e-9), seed
        if split is not None:
            workers = workers_for(split.counts[: split.completion + 1], least, work)
            paid = sum(row[n] for row, n in zip(rows, workers, strict=False))
            assert utility[len(workers) - 1] - paid == pytest.approx(expected, abs=1e-9), seed
            found += 1
    assert found > 100
