"""Optimus: every decision against a reference apart, its fits and its placement by enumeration."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.optimus import Evenly, Optimus, fit, speed_of
from oasis.simulator import (
    ChangeCosts,
    Engine,
    Machine,
    Outage,
    PolicyJob,
    Room,
    ScalingTable,
    Site,
    Workload,
)
from tests.oracle import reference_optimus

INTERVAL = 2.0
STATES = 2000
counts = st.tuples(st.integers(1, 8), st.integers(1, 8))


@given(
    pairs=st.dictionaries(counts, st.floats(0.2, 9.0), min_size=1, max_size=8),
    kind=st.sampled_from(["sync", "async"]),
)
def test_no_other_coefficients_are_nearer(pairs, kind):
    """Every choice of terms is tried by the reference; the sums of squares agree."""
    mine, other = fit(pairs, kind), reference_optimus.fit(pairs, kind)
    errors = [
        sum((speed / found - 1) ** 2 for speed, found in zip(pairs.values(), speeds, strict=True))
        for speeds in (
            [speed_of(mine, each, kind) for each in pairs],
            [reference_optimus.rate(other, *each, kind) for each in pairs],
        )
    ]
    assert min(mine) >= 0
    assert errors[0] == pytest.approx(errors[1], rel=1e-6, abs=1e-9)


class Twin:
    """Asks the policy and the reference, and compares the numbers of tasks."""

    told_remaining, slotted = True, False

    def __init__(self, gpus, cores, kind):
        self.policy = Optimus(INTERVAL / 60, kind)
        self.reference = reference_optimus.Reference(
            *(gpus, cores, INTERVAL),
            lambda pairs: fit(pairs, kind),
            lambda coefficients, counts: speed_of(coefficients, counts, kind),
        )
        self.name, self.parameters, self.states = "twin", {}, 0

    def reset(self, site):
        self.policy.reset(site)

    def decide(self, view):
        left = {job.index: view.remaining(job) for job in view.jobs()}
        held = {job.index: numbers(view.allocation(job)) for job in view.jobs()}
        capacity = view.capacity()[0]
        self.reference.room = capacity if any(capacity) else (1e-9, 1e-9)
        plan = self.policy.decide(view)
        came = [plain(job) for job in view.arrived if job.index not in plan.rejected]
        gone = [job.index for job in view.finished]
        changed = bool(view.lost or view.returned)
        said = self.reference.decide(view.now, left, held, came, gone, changed)
        found = {
            index: numbers(plan.changes.get(index, view.allocation(job)))
            for index, job in self.policy._book.jobs.items()
        }
        assert found == said
        self.states += 1
        return plan


def numbers(held):
    return held.worker_count, held.ps_count


def plain(job):
    counts = range(job.max_workers + 1)
    return {
        "k": job.index,
        "least": job.min_workers,
        "most": job.max_workers,
        "needed": [job.ps_needed(n) for n in counts],
        "most_ps": [job.ps_most(n) for n in counts],
        "declared": [job.speed(n) for n in counts] if job.speedup else None,
    }


def draw_workload(rng):
    gpus, cores = rng.randint(3, 9), rng.randint(2, 9)
    jobs, real = [], {}
    for k in range(rng.randint(2, 6)):
        least = rng.choice([1, 1, 2])
        most = rng.randint(least, 6)
        power = rng.uniform(0.4, 1.0)
        table = tuple(round(n**power, 3) for n in range(1, most + 1))
        real[f"j{k}"] = tuple(round(s * rng.uniform(0.7, 1.0), 3) for s in table)
        rules = [{"fixed_ps": 0}, {"fixed_ps": 1}, {"ps_per_worker": 0.3}, {"ps_per_worker": 0.7}]
        rule = rng.choice(rules)
        jobs.append(
            PolicyJob(
                f"j{k}",
                rng.randint(0, 40) / 4,
                rng.uniform(2.0, 30.0),
                ((0, 1),),
                ((1, 1),),
                least,
                most,
                **rule,
                speedup=table if rng.random() < 0.6 else (),
            )
        )
    site = Site(("gpu", "cpu"), (Machine("m", (float(gpus), float(cores))),))
    return gpus, cores, Workload.of(site, jobs), ScalingTable(real)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_every_decision_is_that_of_the_reference(kind):
    rng, states, seen = random.Random(6), 0, []
    while states < STATES:
        gpus, cores, work, speed = draw_workload(rng)
        twin = Twin(gpus, cores, kind)
        costs = rng.choice([None, ChangeCosts(start=0.3, resize=0.4)])
        lost = [Outage(0, 4.25, 6.25)] if rng.random() < 0.3 else []
        Engine(work, twin, speed=speed, costs=costs, outages=lost).run()
        states += twin.states
        seen += twin.reference.seen
    branches = (
        "learned",
        "worker",
        "server alone",
        "no room",
        "full",
        "nobody gains",
        "begins within",
    )
    assert all(seen.count(branch) >= 10 for branch in branches), seen


@given(
    free=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5),
    workers=st.integers(1, 8),
    ps=st.integers(0, 4),
)
def test_tasks_are_spread_evenly_over_the_fewest_machines_that_hold_even_parts(free, workers, ps):
    """Every number of machines is tried, those with most left first."""
    site = Site(("gpu", "cpu"), tuple(Machine(f"m{k}", (5.0, 5.0)) for k in range(len(free))))
    job = PolicyJob("j", 0.0, 1.0, ((0, 1),), ((1, 1),), max_workers=9)
    found = Evenly().place(Room(site, list(free)), job, workers, ps)
    order = sorted(range(len(free)), key=lambda k: (-sum(free[k]), k))
    expected = None
    for number in range(1, len(free) + 1):
        parts = [
            {k: sum(1 for task in range(count) if order[task % number] == k) for k in order}
            for count in (workers, ps)
        ]
        if all(parts[0][k] <= free[k][0] and parts[1][k] <= free[k][1] for k in order):
            expected = [{k: n for k, n in part.items() if n} for part in parts]
            break
    if expected is not None:
        assert [dict(found.workers), dict(found.ps)] == expected
    elif found is not None:  # in uneven parts, wherever there is room
        assert (found.worker_count, found.ps_count) == (workers, ps)
    else:
        assert sum(gpu for gpu, _ in free) < workers or sum(cpu for _, cpu in free) < ps
