"""ElasticFlow: whom it admits by enumeration, and every decision against a reference apart."""

import random
from fractions import Fraction
from itertools import product

import pytest

from baselines.elasticflow import Claim, ElasticFlow, FreeSlots, Size, minimum_shares
from oasis.model.utility import Deadline
from oasis.simulator import ChangeCosts, Engine, Machine, Outage, PolicyJob, Site, Workload
from tests.oracle import reference_elasticflow
from tests.unit.baselines.controllers import Told

GPUS, SLOT = 4, 2
TABLES = {
    "linear": [0, 1, 2, 3, 4],
    "falling": [0, 1, 1.5, 1.75, 2],
    "steps": [0, 1, 1, 2.5, 2.5],  # two workers are no faster than one
    "peak": [0, 1, 2, 2.25, 2.125],  # four are slower than three
}
STATES = 2000


def sizes_of(speed, least=1, most=GPUS, powers=False):
    """The numbers of workers that make a job faster than any below."""
    found = []
    for n in range(least, most + 1):
        if (n in (1, 2, 4) or not powers) and all(speed[n] > speed[m] for m in found):
            found.append(n)
    return found or [least]


def claim_of(job, now=0.0):
    sizes = tuple(Size(n, 0, n, job["speed"][n], ((0, n),)) for n in job["sizes"])
    return Claim(job["k"], sizes, float(job["work"]), float(job["due"]) - now)


def draw_set(rng, tables=tuple(TABLES)):
    """A few jobs with deadlines, all there now."""
    jobs = []
    for k in range(rng.randint(1, 4)):
        speed = TABLES[rng.choice(tables)]
        jobs.append(
            {
                "k": k,
                "speed": [Fraction(s) for s in speed],
                "sizes": sizes_of(speed, powers=rng.random() < 0.5),
                "work": Fraction(rng.randint(1, 16), 2),
                "due": Fraction(rng.randint(1, 12), 2),
            }
        )
    return jobs


def admitted(jobs):
    """Those that the policy's own procedure admits, one after the other."""
    kept = []
    for job in jobs:
        _, late = minimum_shares(map(claim_of, [*kept, job]), FreeSlots({0: GPUS}, SLOT))
        if not late:
            kept.append(job)
    return [job["k"] for job in kept]


def least_shape(job, used):
    """The shape under each limit, and of those that do the work that of the least; None if none."""
    slots = range(-int(-job["due"] // SLOT))
    for limit in job["sizes"]:
        room = [min(limit, GPUS - used.get(t, 0)) for t in slots]
        shape = [max([0, *(n for n in job["sizes"] if n <= most)]) for most in room]
        for end in slots:
            spans = [min(job["due"], SLOT * (t + 1)) - SLOT * t for t in range(end + 1)]
            if sum(job["speed"][n] * span for n, span in zip(shape, spans)) >= job["work"]:  # noqa: B905
                return shape[: end + 1]
    return None


def by_definition(jobs):
    """The same: in order of deadlines, each has its least shape beside those before it."""
    kept = []
    for job in jobs:
        used, in_time = {}, True
        for each in sorted([*kept, job], key=lambda job: (job["due"], job["k"])):
            shape = least_shape(each, used)
            in_time &= shape is not None
            for t, n in enumerate(shape or ()):
                used[t] = used.get(t, 0) + n
        if in_time:
            kept.append(job)
    return [job["k"] for job in kept]


def test_it_admits_exactly_the_jobs_that_its_definition_says():
    rng, turned_away = random.Random(3), 0
    for _ in range(200):
        jobs = draw_set(rng)
        expected = by_definition(jobs)
        assert admitted(jobs) == expected, jobs
        turned_away += len(jobs) - len(expected)
    assert 50 < turned_away < 400


def can_be_met(jobs, slots):
    """Return whether any numbers of workers in any slots meet all deadlines: all are tried."""

    def ways(job):
        """Shapes that do the work, none with more than another in each slot."""
        lengths = [max(Fraction(0), min(job["due"] - SLOT * t, SLOT)) for t in range(slots)]
        found = []
        # in order of what they take, so that those that take less are there first
        for shape in sorted(product([0, *job["sizes"]], repeat=slots), key=sum):
            done = sum(job["speed"][n] * t for n, t in zip(shape, lengths, strict=True) if n)
            if done >= job["work"] and not any(
                all(a <= b for a, b in zip(less, shape, strict=True)) for less in found
            ):
                found.append(shape)
        return found

    def search(rest, used):
        return not rest or any(
            search(rest[1:], [a + n for a, n in zip(used, shape, strict=True)])
            for shape in rest[0]
            if all(a + n <= GPUS for a, n in zip(used, shape, strict=True))
        )

    return search([ways(job) for job in jobs], [0] * slots)


def test_it_promises_nothing_that_cannot_be_kept():
    """What no numbers of workers in any slot can meet is never admitted; all of them are tried."""
    rng, impossible = random.Random(4), 0
    for _ in range(150):
        jobs = [job | {"due": min(job["due"], Fraction(6))} for job in draw_set(rng)[:3]]
        if not can_be_met(jobs, 3):
            impossible += 1
            assert len(admitted(jobs)) < len(jobs), jobs
    assert impossible > 30


# -- whole decisions -------------------------------------------------------------------------------


class Twin:
    """Asks the policy and the reference, and compares the numbers of workers."""

    told_remaining, slotted = True, False

    def __init__(self, powers):
        self.policy = ElasticFlow(SLOT / 60, sizes="powers" if powers else "any")
        self.reference = reference_elasticflow.Reference(GPUS, SLOT)
        self.name, self.parameters, self.powers, self.states = "twin", {}, powers, 0

    def reset(self, site):
        self.policy.reset(site)

    def plain(self, job):
        speed = [Fraction(job.speed(n)) for n in range(GPUS + 1)]
        due = Fraction(job.arrival) + Fraction(job.utility.deadline) if job.has_utility else None
        sizes = sizes_of(speed, job.min_workers, job.max_workers, self.powers)
        return {"k": job.index, "speed": speed, "due": due, "sizes": sizes}

    def decide(self, view):
        left = {job.index: view.remaining(job) for job in view.jobs()}
        self.reference.gpus = view.capacity()[0][0]
        plan = self.policy.decide(view)
        came = [self.plain(job) for job in view.arrived]
        gone = [job.index for job in view.finished]
        counts, away = self.reference.decide(view.now, left, came, gone)
        found = {
            job.index: plan.changes.get(job.index, view.allocation(job)).worker_count
            for job in view.jobs()
            if job.index not in plan.rejected
        }
        assert sorted(plan.rejected) == away
        assert found == counts
        self.states += 1
        return plan


def draw_workload(rng):
    jobs = []
    for k in range(rng.randint(2, 7)):
        least = rng.choice([1, 1, 1, 2, 3])
        due = rng.choice([None, rng.randint(1, 12) / 2 + 0.5, rng.randint(8, 40) / 2])
        table = TABLES[rng.choice(list(TABLES))]
        jobs.append(
            PolicyJob(
                f"j{k}",
                rng.randint(0, 20) / 2,
                rng.randint(1, 24) / 2,
                ((0, 1),),
                min_workers=least,
                max_workers=rng.randint(least, GPUS),
                speedup=tuple(float(s) for s in table[1:]),
                utility=None if due is None else Deadline(1.0, due),
            )
        )
    return Workload.of(Site(("gpu",), (Machine("m", (float(GPUS),)),)), jobs)


@pytest.mark.parametrize("powers", [True, False])
def test_every_decision_is_that_of_the_reference(powers):
    rng, states, seen = random.Random(5), 0, []
    while states < STATES:
        twin = Twin(powers)
        costs = rng.choice([None, ChangeCosts(start=0.25, resize=0.25)])
        lost = [Outage(0, 4.25, 6.25)] if rng.random() < 0.2 else []
        work = draw_workload(rng)
        Engine(work, twin, costs=costs, outages=lost, speed=Told()).run()
        states += twin.states
        seen += twin.reference.seen
    branches = ("late", "turned away", "waits for its slot", "grown", "best effort grown")
    assert all(seen.count(branch) >= 10 for branch in branches), seen
