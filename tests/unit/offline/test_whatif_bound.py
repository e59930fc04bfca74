"""No policy passes the bounds on the mean and the utility of rigid jobs, no schedule the first."""

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from experiments.evaluation.comparison import CHOSEN, PLAIN
from experiments.evaluation.policies import entry_of
from experiments.evaluation.whatif import Scenario, valued, worth_of
from oasis.model.utility import Deadline, UtilityColumns
from oasis.simulator import PlainJob, replay, rigid_workload
from offline import rigid_bound
from offline.rigid_bound import rigid_mean_bound
from offline.rigid_utility import rigid_utility_bound
from tests.unit.experiments.test_whatif_numbers import jobs_frame

WORKLOADS = 200
SLOW = ("dorm",)  # an integer programme at each event


def drawn(seed, most=14):
    """Jobs that may crowd a small cluster, or leave it idle; some of no length."""
    rng = np.random.default_rng(seed)
    gpus = int(rng.choice([1, 2, 4, 8, 13]))
    count = int(rng.integers(1, most))
    gap = float(rng.choice([0.0, 5.0, 60.0, 400.0]))
    came = np.sort(rng.uniform(0.0, gap * count + 1e-9, count))
    lasts = np.exp(rng.normal(4.0, 1.5, count)) * (rng.random(count) > 0.03)
    wide = np.minimum(gpus, 2 ** rng.integers(0, 4, count))
    if rng.random() < 0.3:
        came, lasts = np.floor(came), np.ceil(lasts)  # many at one time
    rows = zip(came.tolist(), lasts.tolist(), wide.tolist(), strict=True)
    return [PlainJob(f"j{k}", *row) for k, row in enumerate(rows)], gpus


def bound_of(jobs, gpus):
    return rigid_mean_bound(
        np.array([job.submitted for job in jobs]),
        np.array([job.duration for job in jobs]),
        np.array([job.gpus for job in jobs]),
        float(gpus),
    )


@pytest.mark.parametrize("name", [name for name in PLAIN if name not in SLOW])
def test_no_policy_is_below_the_bound(name):
    """On 200 random workloads for what is run by default, on 40 for the others."""
    for seed in range(WORKLOADS if name in CHOSEN else 40):
        jobs, gpus, bound, worth, most = bounded(seed)
        outcome = replay(rigid_workload(jobs, 1, gpus), entry_of(name).make(None, {}))
        if not outcome.unfinished:
            assert outcome.mean_completion >= bound, seed
        ends = [math.inf if job.end is None else job.end - job.arrival for job in outcome.jobs]
        assert worth(np.array(ends)).sum() <= most, seed


@cache
def bounded(seed):
    """Jobs in order of submission, GPUs, the bound of the mean, utilities and their bound."""
    jobs, gpus = drawn(seed)
    columns, _ = valued(jobs_frame(jobs), "drawn", seed)
    bounds, worth = Scenario(columns, (gpus,)).bounds, worth_of(columns)
    assert worth is not None
    assert bounds["utility"] is not None
    return jobs, gpus, bound_of(jobs, gpus), worth, bounds["utility"]


def test_the_bound_is_more_than_the_durations_where_jobs_must_wait():
    """And it is the mean of the durations where none must."""
    gains = []
    for seed in range(WORKLOADS):
        jobs, gpus = drawn(seed)
        mean = math.fsum(job.duration for job in jobs) / len(jobs)
        roomy = sum(job.gpus for job in jobs)
        assert bound_of(jobs, roomy) == pytest.approx(mean, rel=1e-6, abs=1e-3)
        gains.append(bound_of(jobs, gpus) / mean if mean else 1.0)
    assert sum(gain > 1.05 for gain in gains) > WORKLOADS / 3


def least_sum(jobs, gpus):
    """The least sum of times to completion, by trying in each second every set that fits."""

    @cache
    def best(now, left):
        if not any(left):
            return 0.0
        there = [k for k, rest in enumerate(left) if rest and jobs[k][0] <= now]
        if not there:
            return best(now + 1, left)
        found = math.inf
        for count in range(1, len(there) + 1):
            for run in combinations(there, count):
                if sum(jobs[k][2] for k in run) <= gpus:
                    rest = tuple(each - (k in run) for k, each in enumerate(left))
                    ended = sum(now + 1 - jobs[k][0] for k in run if not rest[k])
                    found = min(found, ended + best(now + 1, rest))
        return found

    return best(0, tuple(lasts for _, lasts, _ in jobs))


def test_no_schedule_at_all_is_below_the_bound(monkeypatch):
    """Of integer jobs that change at whole seconds, every one is tried; prices are searched too."""
    monkeypatch.setattr(rigid_bound, "LEAST_SEARCHED", 2)
    rng = np.random.default_rng(3)
    closest = 0.0
    for _ in range(80):
        gpus = int(rng.integers(2, 5))
        rows = [
            (int(rng.integers(0, 4)), int(rng.integers(1, 5)), int(rng.integers(1, gpus + 1)))
            for _ in range(int(rng.integers(2, 5)))
        ]
        jobs = [PlainJob(f"j{k}", *map(float, row[:2]), row[2]) for k, row in enumerate(rows)]
        mean = least_sum(rows, gpus) / len(rows)
        bound = bound_of(jobs, gpus)
        assert bound <= mean + 1e-9, rows
        closest = max(closest, bound / mean)
    assert closest > 0.99


def test_the_search_raises_the_bound_where_many_wait(monkeypatch):
    rng = np.random.default_rng(1)
    came, lasts = np.cumsum(rng.exponential(250.0, 300)), np.exp(rng.normal(7.5, 1.3, 300))
    wide = np.minimum(2 ** rng.integers(0, 5, 300), 16)
    found = rigid_mean_bound(came, lasts, wide, 64.0)
    jobs = [
        PlainJob(f"j{k}", float(a), float(b), int(c))
        for k, (a, b, c) in enumerate(zip(came, lasts, wide, strict=True))
    ]
    best = replay(rigid_workload(jobs, 1, 64), entry_of("srsf").make(None, {})).mean_completion
    monkeypatch.setattr(rigid_bound, "LEAST_SEARCHED", 10_000)
    before = rigid_mean_bound(came, lasts, wide, 64.0)
    assert 1.05 * before < found <= best


def test_the_bounds_hold_wherever_time_begins():
    came, lasts, wide = np.zeros(2), np.full(2, 60.0), np.full(2, 8)
    worth = UtilityColumns.of([Deadline(30.0, 60.0), Deadline(20.0, 120.0)])
    for begin in (-1.6e9, 0.0, 1.6e9):
        assert rigid_mean_bound(came + begin, lasts, wide, 8.0) <= 90.0
        assert rigid_utility_bound(came + begin, lasts, wide, worth, 8.0) >= 50.0
