"""Algorithm 1 once more, in decimals of 50 digits: which of equally good schedules OASiS takes.

No code is shared with `oasis.online`; of `oasis` only the instance is read. A number of the
instance is what its user wrote (`Decimal(repr(x))`), so that 0.1 + 0.2 is 0.3 here. Numbers of
50 digits are equal if they differ by less than a relative 1e-30. That is more than all rounding
here, and less than any difference between schedules that are not equally good.

The rule (docs/theory, "Ties and rounding"):

1. *Completion.* The largest payoff; of equal payoffs the earliest completion.
2. *Workers of each slot.* The cheapest split of the work over the slots up to there. Of equally
   cheap splits, that with most workers in the first slot; of those, that with most in the second,
   and so on: the counts, in order of the slots, are lexicographically largest. All that costs the
   same is compared, also where the parameter servers make the costs of a slot uneven: seven, six
   and three workers come before six, six and four.
3. *Servers.* Servers with room in order of what a unit costs there, of equal ones the lower index
   first. Each is filled before the next one. So it is for workers, then for the
   ceil(n b / B) parameter servers of n workers.

A job is admitted if its payoff is above 0. Jobs come in order of arrival, those of one slot in
the order of the file. Counts are rounded with the one tolerance of the toolkit, ceil(x - eps) and
floor(x + eps) with eps = 1e-9 max(1, |x|).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cmp_to_key
from typing import Any

import numpy as np

PRECISE = Context(prec=50, Emax=999_999_999, Emin=-999_999_999)
EQUAL = Decimal("1e-30")
SLACK, MOST_SLACK = Decimal("1e-9"), Decimal("0.5")
ZERO, ONE, INFINITE = Decimal(0), Decimal(1), Decimal("Infinity")

Row = tuple[int, int, int]  # slot, server, count


def written(x: float) -> Decimal:
    """The number that the user wrote, not the nearest binary one."""
    return Decimal(repr(float(x)))


def slack(x: Decimal) -> Decimal:
    return min(SLACK * max(ONE, abs(x)), MOST_SLACK)


def round_up(x: Decimal) -> int:
    return int((x - slack(x)).to_integral_value("ROUND_CEILING"))


def round_down(x: Decimal) -> int:
    return int((x + slack(x)).to_integral_value("ROUND_FLOOR"))


def compare(a: Decimal, b: Decimal) -> int:
    """-1, 0 or 1, where what is equal within the tolerance is equal."""
    if a == b or abs(a - b) <= EQUAL * min(abs(a), abs(b)):  # nothing equals infinity but itself
        return 0
    return -1 if a < b else 1


def utility_at(utility: Any, delay: int) -> Decimal:
    """f_i(delay) of the kinds that presets draw."""
    if utility.kind == "constant":
        return written(utility.value)
    exponent = written(utility.decay) * (delay - written(utility.target))
    return written(utility.priority) / (1 + exponent.exp())


@dataclass(frozen=True)
class Choice:
    """What the reference decides on one job; `payoff` is 0 for a job that is rejected."""

    payoff: Decimal
    completion: int | None
    workers: tuple[Row, ...] = ()
    ps: tuple[Row, ...] = ()

    @property
    def counts(self) -> dict[int, int]:
        """Workers of each slot that has some."""
        slots = dict.fromkeys(slot for slot, _, _ in self.workers)
        return {s: sum(n for slot, _, n in self.workers if slot == s) for s in slots}


class Task:
    """A job as Algorithm 2 sees it; slots are counted from the beginning of the horizon."""

    def __init__(self, job: Any, instance: Any, fraction: Decimal) -> None:
        assert job.in_forms == (job,), "the reference knows jobs of one form"
        assert job.min_workers == 1, "and of single workers"
        assert not job.requires, "on any machine"
        names = instance.cluster.resources
        self.arrival = job.arrival
        self.worker, self.ps = (
            tuple(written(amounts.get(name, 0.0)) for name in names)
            for amounts in (job.worker, job.ps)
        )
        b, big_b = (written(amounts.get("bandwidth_gbps", 0.0)) for amounts in (job.worker, job.ps))
        kappa = written(job.minibatch_time)
        if job.gradient_mb > 0:
            seconds = written(job.gradient_mb) * Decimal("8e-3") / b
            kappa += 2 * seconds / written(instance.slot_seconds)
        self.work = max(1, round_up(job.epochs * job.chunks * job.minibatches * kappa))  # (2)
        self.most = min(job.chunks, self.work)  # (3)
        self.needed = [round_up(n * b / big_b) if b > 0 else 0 for n in range(self.most + 1)]  # (6)
        first = job.arrival - (-self.work // job.chunks) - 1
        worth = {
            t: utility_at(job.utility, t - job.arrival) for t in range(first, instance.horizon)
        }
        # The floor is a share of the job's best utility, that of its earliest completion.
        self.worth = {
            t: value
            for t, value in worth.items()
            if value > 0 and compare(value, fraction * worth[first]) >= 0
        }


class Group:
    """The servers for workers or for parameter servers: their capacity, use and prices."""

    def __init__(self, capacity: Sequence[Sequence[float]], horizon: int) -> None:
        self.capacity = [[written(amount) for amount in row] for row in capacity]
        self.total = [sum(column, ZERO) for column in zip(*self.capacity, strict=True)]
        self.used = [[[ZERO] * len(self.total) for _ in self.capacity] for _ in range(horizon)]
        self.known: dict[tuple[int, Decimal, Decimal], Decimal] = {}

    def bound(self, jobs: Iterable[tuple[Task, tuple[Decimal, ...]]]) -> None:
        """(23)-(26) from the jobs and the demands of their tasks, in shares of the totals."""
        loads, low, high = [], [], [ZERO] * len(self.total)
        for task, demand in jobs:
            shares = [w / c if c > 0 else ZERO for w, c in zip(demand, self.total, strict=True)]
            if not any(shares):
                continue
            loads.append(task.work * sum(shares))
            low.append(min(task.worth.values()) / loads[-1])
            best = max(task.worth.values())
            high = [max(u, best / w) if w else u for u, w in zip(high, shares, strict=True)]
        self.lower = self.log_ratio = [ZERO] * len(self.total)
        if not loads:
            return  # nothing is asked for: all prices are 0
        supply = len(self.used) * sum(1 for c in self.total if c > 0)
        lower = min(low) / (4 * max(supply / load for load in loads))
        self.log_ratio = [
            max(ZERO, (u / lower).ln()) if u > 0 and c > 0 else ZERO
            for u, c in zip(high, self.total, strict=True)
        ]
        self.lower = [lower / c if c > 0 else ZERO for c in self.total]

    def price(self, resource: int, used: Decimal, capacity: Decimal) -> Decimal:
        """P(g) = L (U / L)^(g / c), (22)."""
        key = resource, used, capacity
        if key not in self.known:
            share = min(max(used / capacity, ZERO), ONE) if capacity > 0 else ONE
            self.known[key] = self.lower[resource] * (self.log_ratio[resource] * share).exp()
        return self.known[key]

    def unit_cost(self, demand: tuple[Decimal, ...], slot: int, server: int) -> Decimal:
        """sum_r p^r w^r."""
        places = zip(demand, self.used[slot][server], self.capacity[server], strict=True)
        return sum((w * self.price(r, g, c) for r, (w, g, c) in enumerate(places) if w), ZERO)

    def offers(
        self, demand: tuple[Decimal, ...], slot: int, most: int
    ) -> list[tuple[Decimal, int, int]]:
        """Cost of a unit, server and room, in the order in which servers are filled."""
        found = []
        for server, limits in enumerate(self.capacity):
            places = zip(demand, limits, self.used[slot][server], strict=True)
            room = min([round_down((c - g) / w) for w, c, g in places if w > 0], default=most)
            if min(room, most) > 0:
                found.append((self.unit_cost(demand, slot, server), server, min(room, most)))
        # The stable sort leaves equals in the order of their index.
        return sorted(found, key=cmp_to_key(lambda a, b: compare(a[0], b[0])))

    def commit(self, demand: tuple[Decimal, ...], rows: Iterable[Row]) -> None:
        for slot, server, count in rows:
            used = self.used[slot][server]
            used[:] = [g + count * w for g, w in zip(used, demand, strict=True)]


def costs(offers: list[tuple[Decimal, int, int]], most: int) -> list[Decimal]:
    """Cost of 0, 1, .. units on the cheapest servers, as far as they fit, at most `most`."""
    found = [ZERO]
    for unit, _, room in offers:
        found += [found[-1] + n * unit for n in range(1, min(room, most + 1 - len(found)) + 1)]
    return found


def filled(offers: list[tuple[Decimal, int, int]], slot: int, units: int) -> list[Row]:
    """Where the units go: each server is filled before the next one."""
    rows = []
    for _, server, room in offers:
        taken = min(room, units)
        units -= taken
        if taken:
            rows.append((slot, server, taken))
    return sorted(rows)


def cheapest(tables: Iterable[list[Decimal]], work: int) -> list[Any]:
    """DP_COST: after each slot, the least cost of 0..`work` worker-slots in the slots so far."""
    best = np.full(work + 1, INFINITE, dtype=object)
    best[0] = ZERO
    after = [best]
    for row in tables:
        value = best.copy()
        for n in range(1, min(len(row) - 1, work) + 1):
            value[n:] = np.minimum(value[n:], best[:-n] + row[n])
        best = value
        after.append(best)
    return after


def first_split(tables: list[list[Decimal]], work: int) -> list[int]:
    """The cheapest split of the work, of equal ones the lexicographically largest."""
    rest = cheapest(reversed(tables), work)[::-1]  # in the slots from each one on
    counts = []
    for slot, row in enumerate(tables):
        for n in range(min(len(row) - 1, work), -1, -1):
            if compare(row[n] + rest[slot + 1][work - n], rest[slot][work]) == 0:
                break
        counts.append(n)
        work -= n
    return counts


class Reference:
    """OASiS on an instance: `decide` on a job, then `commit` a choice."""

    def __init__(self, instance: Any, fraction: float = 0.7) -> None:
        cluster = instance.cluster
        self.instance, self.fraction = instance, written(fraction)
        self.groups = [
            Group(capacity.tolist(), instance.horizon)
            for capacity in (cluster.worker_capacity, cluster.ps_capacity)
        ]
        with localcontext(PRECISE):
            self.tasks = {job.id: Task(job, instance, self.fraction) for job in instance.jobs}
            counted = [task for task in self.tasks.values() if task.worth]
            self.groups[0].bound((task, task.worker) for task in counted)
            self.groups[1].bound((task, task.ps) for task in counted if task.needed[-1])

    def decide(self, job_id: str) -> Choice:
        """The best schedule of a job (Algorithm 2); nothing is committed."""
        with localcontext(PRECISE):
            return self._decide(self.tasks[job_id])

    def _decide(self, task: Task) -> Choice:
        slots = range(task.arrival, max(task.worth, default=-1) + 1)
        workers, ps = self.groups
        hosts = [workers.offers(task.worker, t, task.most) for t in slots]
        ps_hosts = [ps.offers(task.ps, t, task.needed[-1]) for t in slots]
        tables = []
        for of_workers, of_ps in zip(hosts, ps_hosts, strict=True):
            alone, served = costs(of_workers, task.most), costs(of_ps, task.needed[-1])
            # As many workers as there is room for their parameter servers, too.
            able = [n for n in range(len(alone)) if task.needed[n] < len(served)]
            tables.append([alone[n] + served[task.needed[n]] for n in able])
        best, completion = ZERO, None
        for t, value in zip(slots, cheapest(tables, task.work)[1:], strict=True):
            cost = value[task.work]
            # Payoffs are differences: they are as exact as the utilities and costs.
            if t in task.worth and compare(task.worth[t], best + cost) > 0:
                best, completion = task.worth[t] - cost, t
        if completion is None:
            return Choice(ZERO, None)
        counts = first_split(tables[: completion + 1 - task.arrival], task.work)
        rows: tuple[list[Row], list[Row]] = [], []
        for t, n, of_workers, of_ps in zip(slots, counts, hosts, ps_hosts, strict=False):
            rows[0].extend(filled(of_workers, t, n))
            rows[1].extend(filled(of_ps, t, task.needed[n]))
        return Choice(best, completion, tuple(rows[0]), tuple(rows[1]))

    def cost(self, job_id: str, choice: Choice) -> Decimal:
        """What a schedule of a job costs now."""
        task, total = self.tasks[job_id], ZERO
        with localcontext(PRECISE):
            for group, demand, rows in self._parts(task, choice):
                total += sum((n * group.unit_cost(demand, t, s) for t, s, n in rows), ZERO)
        return total

    def commit(self, job_id: str, choice: Choice) -> None:
        with localcontext(PRECISE):
            for group, demand, rows in self._parts(self.tasks[job_id], choice):
                group.commit(demand, rows)

    def _parts(self, task: Task, choice: Choice) -> Iterable[tuple[Group, Any, Any]]:
        return zip(self.groups, (task.worker, task.ps), (choice.workers, choice.ps), strict=True)

    def run(self) -> dict[str, Choice]:
        """Decide on all jobs in order of arrival."""
        made = {}
        for job in sorted(self.instance.jobs, key=lambda job: job.arrival):
            made[job.id] = self.decide(job.id)
            self.commit(job.id, made[job.id])
        return made
