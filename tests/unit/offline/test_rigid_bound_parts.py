"""The parts of the bound on rigid jobs: busy periods, prices, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oasis.model.errors import InputError
from offline.rigid_bound import _least_work_first, _prices, busy_periods, rigid_mean_bound


def test_busy_periods_begin_where_all_work_before_is_done() -> None:
    came, seconds = np.array([0.0, 1.0, 5.0, 5.0, 9.0]), np.array([2.0, 3.0, 1.0, 1.0, 4.0])
    found = [(part.start, part.stop) for part in busy_periods(came, seconds)]
    assert found in ([(0, 4), (4, 5)], [(0, 2), (2, 4), (4, 5)])  # the second begins as one ends


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


def test_what_cannot_be_bounded() -> None:
    ones = np.ones(1)
    assert rigid_mean_bound(ones, ones, np.array([9]), 8.0) == math.inf
    with pytest.raises(InputError, match="jobs"):
        rigid_mean_bound(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), 8.0)


def test_jobs_of_no_length_end_as_they_come() -> None:
    none = np.zeros(3)
    assert rigid_mean_bound(none, none, np.array([8, 8, 8]), 8.0) == 0.0


def test_the_order_of_the_jobs_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    came, lasts, wide = rng.uniform(0, 9, 40), rng.exponential(5.0, 40), rng.integers(1, 9, 40)
    order = rng.permutation(40)
    one = rigid_mean_bound(came, lasts, wide, 8.0)
    assert rigid_mean_bound(came[order], lasts[order], wide[order], 8.0) == pytest.approx(one)
