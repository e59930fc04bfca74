"""The parts of the bound on rigid jobs: busy periods, prices, and what is refused."""

from __future__ import annotations

import math
from itertools import accumulate, product

import numpy as np
import pytest

from oasis.model.errors import InputError
from offline.rigid_bound import (
    MULTIPLES,
    _dual_value,
    _least_work_first,
    _prices,
    busy_periods,
    rigid_mean_bound,
)


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


def test_the_fluid_machine_takes_the_least_work_first() -> None:
    lengths, jobs = _least_work_first([0.0, 1.0, 2.0], [5.0, 1.0, 9.0])
    assert list(zip(jobs.tolist(), lengths.tolist(), strict=True)) == [
        *((0, 1.0), (1, 1.0), (0, 4.0), (2, 9.0)),
    ]


def test_prices_never_rise_and_end_at_nothing() -> None:
    rng = np.random.default_rng(1)
    came, seconds = np.sort(rng.uniform(0, 50, 60)), rng.exponential(1.0, 60)
    _, prices = _prices(came, seconds, 8.0)
    assert (np.diff(prices) <= 1e-12).all()
    assert prices[-1] >= 0
    edges, prices = _prices(np.zeros(1), np.full(1, 2.0), 1.0)
    # The integral of one over the work of the only job, from the middle of each step on.
    np.testing.assert_allclose(prices, 1.0 - (edges[1:] + edges[:-1]) / 4)


def test_what_cannot_be_bounded() -> None:
    ones = np.ones(1)
    assert rigid_mean_bound(ones, ones, np.array([9]), 8.0) == math.inf
    with pytest.raises(InputError, match="jobs"):
        rigid_mean_bound(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), 8.0)


def test_jobs_of_no_length_end_as_they_come() -> None:
    none = np.zeros(3)
    assert rigid_mean_bound(none, none, np.array([8, 8, 8]), 8.0) == 0.0


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
