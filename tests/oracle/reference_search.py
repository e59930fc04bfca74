"""Algorithm 2 a second time, as in the paper and with nothing clever, and by brute force.

Plain Python on purpose, and no code shared with `oasis`: the rounding rule, the work of a job and
the greedy of COST_t are all written anew from docs/theory. Three answers to the same question:

- `textbook`: cost(that, D) = min_d COST_t(that, d) + cost(that - 1, D - d), by recursion;
- `printed`: the same over whole chunks, as the paper prints it;
- `brute_force`: every placement of every slot, without greedy and without recursion over work.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

INFINITE = math.inf


def round_down(x: float) -> int:
    return math.floor(x + 1e-9 * max(1.0, abs(x)))


def round_up(x: float) -> int:
    return math.ceil(x - 1e-9 * max(1.0, abs(x)))


def minibatch_slots(job: Any, cluster: Any) -> float:
    """kappa_i: train, push and pull; MB are 8e-3 Gbit."""
    if job.gradient_mb == 0:
        return job.minibatch_time
    seconds = 2 * job.gradient_mb * 8e-3 / job.worker["bandwidth_gbps"]
    return job.minibatch_time + seconds / cluster.slot_seconds


def total_work(job: Any, cluster: Any) -> int:
    kappa = minibatch_slots(job, cluster)
    return max(1, round_up(job.epochs * job.chunks * job.minibatches * kappa))


def ps_for(job: Any, workers: int) -> int:
    """(6): the fewest parameter servers that serve this many workers."""
    b = job.worker.get("bandwidth_gbps", 0.0)
    return round_up(workers * (b / job.ps["bandwidth_gbps"])) if b > 0 else 0


def admitted(servers: Sequence[Any], required: Any) -> list[bool]:
    """Whether each machine has the labels that are required."""
    labels = [server.labels for server in servers for _ in server.ids]
    return [all(own.get(name) in values for name, values in required.items()) for own in labels]


def rooms(
    demand: Any, resources: Sequence[str], capacity: Any, used: Any, most: int, there: list[bool]
) -> list[int]:
    """Units that still fit on each server in one slot."""
    fits = []
    for limits, taken, is_admitted in zip(capacity.tolist(), used.tolist(), there, strict=True):
        room = most if is_admitted else 0
        for name, limit, gone in zip(resources, limits, taken, strict=True):
            if demand.get(name, 0.0) > 0:
                room = min(room, round_down((limit - gone) / demand[name]))
        fits.append(max(0, room))
    return fits


def unit_costs(demand: Any, resources: Sequence[str], prices: Any) -> list[float]:
    """sum_r p_h^r w^r of each server in one slot."""
    return [
        sum(price * demand.get(name, 0.0) for name, price in zip(resources, row, strict=True))
        for row in prices.tolist()
    ]


def greedy(units: int, fits: list[int], costs: list[float]) -> float:
    """Fill servers in non-decreasing order of cost; infinite if the units do not all fit."""
    total = 0.0
    for server in sorted(range(len(fits)), key=lambda s: costs[s]):
        taken = min(units, fits[server])
        total += taken * costs[server]
        units -= taken
    return total if units == 0 else INFINITE


class Question:
    """One job at given prices and usage; slots count from the job's arrival."""

    def __init__(
        self,
        job: Any,
        cluster: Any,
        horizon: int,
        worker_prices: Any,
        ps_prices: Any,
        worker_used: Any,
        ps_used: Any,
    ) -> None:
        self.job, self.cluster, self.horizon = job, cluster, horizon
        self.work = total_work(job, cluster)
        names = cluster.resources
        self.slots = range(job.arrival, horizon)
        most = job.chunks
        groups = (
            (
                job.worker,
                job.requires,
                cluster.worker_servers,
                cluster.worker_capacity,
                worker_used,
            ),
            (job.ps, job.ps_requires, cluster.ps_servers, cluster.ps_capacity, ps_used),
        )
        self.worker_rooms, self.ps_rooms = (
            [rooms(demand, names, capacity, used[t], most, is_admitted) for t in self.slots]
            for demand, required, servers, capacity, used in groups
            for is_admitted in [admitted(servers, required)]
        )
        self.worker_costs = [unit_costs(job.worker, names, worker_prices[t]) for t in self.slots]
        self.ps_costs = [unit_costs(job.ps, names, ps_prices[t]) for t in self.slots]

    @cache  # noqa: B019 - a question lives as long as its answer takes
    def slot_cost(self, slot: int, workers: int) -> float:
        """COST_t for a number of workers, the greedy of Algorithm 2."""
        if workers and not self.job.min_workers <= workers <= self.job.chunks:
            return INFINITE
        return greedy(workers, self.worker_rooms[slot], self.worker_costs[slot]) + greedy(
            ps_for(self.job, workers), self.ps_rooms[slot], self.ps_costs[slot]
        )

    def utility(self, slot: int, fraction: float = 0.0) -> float:
        """f_i of completing in `slot`; 0 under the floor or before the job can possibly end."""
        earliest = -(-self.work // self.job.chunks) - 1
        if slot < earliest:
            return 0.0
        value = float(self.job.utility(slot))
        return value if value >= fraction * float(self.job.utility(earliest)) else 0.0


def _payoffs(question: Question, costs: list[float], fraction: float) -> list[float]:
    """f - cost of completing in each slot since the arrival."""
    return [question.utility(t, fraction) - cost for t, cost in enumerate(costs)]


def textbook(market: dict[str, Any], fraction: float = 0.0) -> float:
    """Best payoff by DP_COST over worker-slots: the exact optimum of (27); 0 is to do nothing."""
    return max([0.0, *textbook_payoffs(market, fraction)])


def textbook_payoffs(market: dict[str, Any], fraction: float = 0.0) -> list[float]:
    """The best payoff of completing by each slot since the arrival."""
    question = Question(**market)
    return _payoffs(question, textbook_costs(question, question.work), fraction)


def textbook_costs(question: Question, work: int, start: int = 0) -> list[float]:
    """The least cost of doing this work from slot `start` to each later one since the arrival."""
    least = question.job.min_workers

    @cache
    def cost(last: int, work: int) -> float:
        if work <= 0:
            return 0.0
        if last < start:
            return INFINITE
        most = max(least, min(question.job.chunks, work))  # a minimum may do more than is left
        counts = [0, *range(least, most + 1)]
        return min(question.slot_cost(last, n) + cost(last - 1, work - n) for n in counts)

    return [cost(t, work) for t in range(len(question.slots))]


def printed(market: dict[str, Any], fraction: float = 0.0) -> float:
    """Best payoff by Algorithm 2 as printed: whole chunks a slot, workers rounded up in each."""
    question = Question(**market)
    return max([0.0, *_payoffs(question, printed_costs(question), fraction)])


def printed_costs(question: Question) -> list[float]:
    """The same as `textbook_costs` of all the work, in chunks."""
    job = question.job
    chunk = job.minibatches * minibatch_slots(job, question.cluster)

    @cache
    def cost(last: int, chunks: int) -> float:
        if chunks == 0:
            return 0.0
        if last < 0:
            return INFINITE
        return min(
            question.slot_cost(last, max(job.min_workers, round_up(d * chunk)) if d else 0)
            + cost(last - 1, chunks - d)
            for d in range(chunks + 1)
        )

    return [cost(t, job.epochs * job.chunks) for t in range(len(question.slots))]


def brute_force(market: dict[str, Any], fraction: float = 0.0) -> float:
    """Best payoff over every placement of workers and parameter servers in every slot."""
    question = Question(**market)
    options = [list(_placements(question, t)) for t in range(len(question.slots))]
    best = 0.0
    for chosen in product(*options):
        if sum(n for n, _ in chosen) >= question.work:
            last = max(t for t, (n, _) in enumerate(chosen) if n > 0)
            total = math.fsum(cost for _, cost in chosen)
            best = max(best, question.utility(last, fraction) - total)
    return best


def _placements(question: Question, slot: int) -> Iterator[tuple[int, float]]:
    """(workers, cost) of every placement in one slot that satisfies (3)-(7)."""
    job = question.job
    for y in product(*(range(room + 1) for room in question.worker_rooms[slot])):
        n = sum(y)
        if n and not job.min_workers <= n <= job.chunks:
            continue
        for z in product(*(range(room + 1) for room in question.ps_rooms[slot])):
            if ps_for(job, n) <= sum(z) <= n:
                yield n, _dot(y, question.worker_costs[slot]) + _dot(z, question.ps_costs[slot])


def _dot(units: Sequence[int], costs: Sequence[float]) -> float:
    return math.fsum(n * cost for n, cost in zip(units, costs, strict=True))
