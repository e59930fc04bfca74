"""The parts of the bounds on rigid jobs; no schedule, and every one is tried, earns more."""

from __future__ import annotations

import math
from functools import cache
from itertools import accumulate, combinations, product

import numpy as np
import pytest

from baselines import EASY, FIFO, SJF, SRSF, SRTF
from oasis.model.errors import InputError
from oasis.model.utility import Constant, Deadline, Sigmoid, UtilityColumns
from oasis.simulator import PlainJob, replay, rigid_workload
from offline.elastic_bound import ROUNDING
from offline.rigid_bound import (
    MULTIPLES,
    _dual_value,
    _prices,
    busy_periods,
    rigid_mean_bound,
)
from offline.rigid_utility import STEPS, _Period, rigid_utility_bound


def test_busy_periods_begin_where_all_work_before_is_done() -> None:
    """Who comes in the moment in which it is done still belongs to it. Every short day is tried."""
    for later, seconds in product(product(range(3), repeat=3), product(range(4), repeat=4)):
        came = list(accumulate(later, initial=1))
        begins, done = [0], came[0] + seconds[0]
        for k in (1, 2, 3):
            if came[k] > done:
                begins.append(k)
            done = max(came[k], done) + seconds[k]
        found = busy_periods(np.array(came, float), np.array(seconds, float))
        assert [part.start for part in found] == begins, (came, seconds)


def test_the_best_of_several_multiples_of_the_prices_is_what_counts() -> None:
    """In whole seconds, with the cost of each start added up second by second."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        prices = np.sort(rng.integers(0, 5, 6))[::-1]
        jobs = [tuple(rng.integers((0, 1, 1), (6, 5, 4)).tolist()) for _ in range(3)]
        values = [0.0]
        for factor in MULTIPLES:
            value = -factor * 3 * sum(prices)
            for came, lasts, wide in jobs:
                starts = range(came, 7)
                value += min(s - came + factor * wide * sum(prices[s : s + lasts]) for s in starts)
            values.append(value)
        came, lasts, wide = np.array(jobs, float).T
        found = _dual_value(came, lasts, wide, 3.0, np.arange(7.0), prices.astype(float))
        assert found == sum(lasts) + max(values), (prices, jobs)


def test_prices_never_rise_and_end_at_nothing() -> None:
    rng = np.random.default_rng(1)
    came, seconds = np.sort(rng.uniform(0, 50, 60)), rng.exponential(1.0, 60)
    _, prices = _prices(came, seconds, 8.0)
    assert (np.diff(prices) <= 1e-12).all()
    assert prices[-1] >= 0
    edges, prices = _prices(np.zeros(1), np.full(1, 2.0), 1.0)
    # The integral of one over the work of the only job, from the middle of each step on.
    np.testing.assert_allclose(prices, 1.0 - (edges[1:] + edges[:-1]) / 4)


def test_what_cannot_be_bounded_and_what_ends_as_it_comes() -> None:
    none = np.zeros(3)
    assert rigid_mean_bound(none, none, np.array([8, 8, 8]), 8.0) == 0.0
    ones = np.ones(1)
    assert rigid_mean_bound(ones, ones, np.array([9]), 8.0) == math.inf
    with pytest.raises(InputError, match="jobs"):
        rigid_mean_bound(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), 8.0)


def test_neither_order_nor_a_later_begin_of_all_matters() -> None:
    rng = np.random.default_rng(2)
    came, lasts, wide = rng.uniform(0, 9, 40), rng.exponential(5.0, 40), rng.integers(1, 9, 40)
    order = rng.permutation(40)
    one = rigid_mean_bound(came, lasts, wide, 8.0)
    assert rigid_mean_bound(came[order], lasts[order], wide[order], 8.0) == pytest.approx(one)
    assert rigid_mean_bound(came + 100.0, lasts, wide, 8.0) == pytest.approx(one)


def test_a_run_that_subtracts_rounded_times_is_no_better() -> None:
    came, lasts = np.array([0.0, 1e9]), np.array([0.0, 0.3])
    times = (came + lasts) - came
    assert times[1] < lasts[1]
    assert rigid_mean_bound(came, lasts, np.array([1, 1]), 1.0) <= times.mean()


# -- the bound on their utility --------------------------------------------------------------------

Worth = Sigmoid | Constant | Deadline


def utility_bound_of(jobs: list[PlainJob], worth: list[Worth], gpus: int) -> float:
    columns = [np.array([getattr(job, name) for job in jobs]) for name in ("submitted", "duration")]
    wide = np.array([job.gpus for job in jobs])
    return rigid_utility_bound(*columns, wide, UtilityColumns.of(worth), float(gpus))


def most_worth(jobs: list[tuple[int, int, int]], worth: list[Worth], gpus: int) -> float:
    """The most that integer jobs can earn, by trying in each second every set that fits."""
    last = max(came for came, _, _ in jobs) + sum(lasts for _, lasts, _ in jobs)
    table = [worth[k](np.arange(last + 1.0)).tolist() for k in range(len(jobs))]

    @cache
    def best(now: int, left: tuple[int, ...]) -> float:
        there = [k for k, rest in enumerate(left) if rest and jobs[k][0] <= now]
        if now == last:
            return 0.0
        found = best(now + 1, left)
        for count in range(1, len(there) + 1):
            for run in combinations(there, count):
                if sum(jobs[k][2] for k in run) <= gpus:
                    rest = tuple(each - (k in run) for k, each in enumerate(left))
                    ended = sum(table[k][now + 1 - jobs[k][0]] for k in run if not rest[k])
                    found = max(found, ended + best(now + 1, rest))
        return found

    return best(0, tuple(lasts for _, lasts, _ in jobs))


def drawn_worth(rng: np.random.Generator, lasts: float) -> Worth:
    value = float(rng.integers(1, 20))
    match rng.integers(3):
        case 0:
            return Deadline(value, float(np.ceil(lasts * rng.uniform(0.8, 3.0))))
        case 1:
            return Constant(value)
        case _:
            return Sigmoid(value, float(rng.choice([0.0, 0.3, 2.0])), float(rng.integers(1, 12)))


def test_bound_optimum_and_policies_are_in_this_order() -> None:
    """On integer jobs that change at whole seconds, which these policies keep."""
    closest = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        gpus = int(rng.integers(1, 5))
        rows = [
            (int(rng.integers(0, 4)), int(rng.integers(1, 4)), int(rng.integers(1, gpus + 1)))
            for _ in range(int(rng.integers(2, 5)))
        ]
        rows.sort()
        worth = [drawn_worth(rng, lasts) for _, lasts, _ in rows]
        jobs = [PlainJob(f"j{k}", *map(float, row[:2]), row[2]) for k, row in enumerate(rows)]
        most = most_worth(rows, worth, gpus)
        bound = utility_bound_of(jobs, worth, gpus)
        assert bound >= most, seed
        closest.append(most / bound)
        for policy in (FIFO(), SJF(), SRTF(), SRSF(), EASY()):
            outcome = replay(rigid_workload(jobs, 1, gpus), policy)
            earned = sum(
                float(worth[int(job.job_id[1:])](job.end - job.arrival))
                for job in outcome.jobs
                if job.end is not None
            )
            assert earned <= most + 1e-9, (seed, policy.name)
    assert np.mean(closest) > 0.9


def test_a_step_in_which_a_job_just_fits_is_one_in_which_it_may_end() -> None:
    """Steps and times are whole seconds here: what each job gains is added up one by one."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        # Four jobs keep two GPUs busy for as many seconds as there are steps.
        cuts = np.sort(rng.choice(np.arange(1, STEPS), 3, replace=False))
        lasts, wide = np.diff([0, *cuts, STEPS]), np.full(4, 2)
        came = np.sort(rng.integers(0, STEPS, 4))
        came[0] = 0
        worth = [Deadline(float(rng.integers(1, 99)), rng.integers(1, 60) + 0.5) for _ in came]
        prices = rng.integers(0, 4, STEPS)
        bound = 2 * sum(prices)
        for k, job in enumerate(worth):
            gains = [0]
            for end in range(STEPS + 1):
                open_for = sorted(prices[came[k] : end + 1])
                if end == STEPS:  # afterwards all costs nothing
                    open_for = [0] * lasts[k] + open_for
                if len(open_for) >= lasts[k]:
                    delay = max(lasts[k], end - came[k])
                    gains.append(job(delay) - 2 * sum(open_for[: lasts[k]]))
            bound += max(gains)
        columns = came.astype(float), lasts.astype(float), wide.astype(float)
        period = _Period(*columns, UtilityColumns.of(worth), 2.0)
        assert period.value(prices.astype(float)) == bound


def test_a_job_of_no_length_counts_though_it_comes_as_the_last_work_ends() -> None:
    """Only one of the others can end in time."""
    worth: list[Worth] = [Deadline(30.0, 1.0), Deadline(20.0, 1.0), Constant(7.0)]
    done = 2 * (1 - ROUNDING)  # as soon as the bound takes the work to be done
    jobs = [PlainJob("a", 0.0, 1.0, 2), PlainJob("b", 0.0, 1.0, 2), PlainJob("c", done, 0.0, 1)]
    assert 37.0 <= utility_bound_of(jobs, worth, 2) < 39.0
