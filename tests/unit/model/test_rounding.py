"""The one rounding rule: quotients of floats that should be whole numbers are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model import rounding


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (0.3 / 0.1, 3, 3),  # 2.9999999999999996
        (0.7 / 0.1, 7, 7),  # 6.999999999999999
        (1.1 * 3, 3, 4),  # 3.3000000000000003
        (0.1 * 3 / 0.3, 1, 1),  # 1.0000000000000002
        (0.0, 0, 0),
        (-0.5, -1, 0),
        (2 + 1e-10, 2, 2),
        (2 - 1e-10, 2, 2),
        (2 + 1e-8, 2, 3),
        (2 - 1e-8, 1, 2),
        (1.5e-9, 0, 1),  # below 1 the tolerance is that of 1
        (1e9 + 0.5, 1_000_000_001, 1_000_000_000),  # the tolerance is relative: 1 in 1e9
    ],
)
def test_rounding_forgives_a_billionth(value, down, up):
    assert rounding.floor(value) == down
    assert rounding.ceil(value) == up


@given(st.floats(0, 1e6))
def test_down_and_up_differ_by_at_most_one(value):
    down, up = float(rounding.floor(value)), float(rounding.ceil(value))
    if down != up and up - down != 1:
        assert down - up == 1  # so near a whole number that both ways are open
    assert abs(down - value) <= 1 + 1e-9 * max(1.0, value)
    assert abs(up - value) <= 1 + 1e-9 * max(1.0, value)


@given(st.integers(0, 10**6), st.floats(1e-6, 1e6))
def test_whole_multiples_of_a_demand_fit(count, demand):
    """`count` units of `demand` fit in a capacity of `count * demand`, whatever the last bit."""
    assert rounding.floor(count * demand / demand) == count
    assert rounding.ceil(count * demand / demand) == count
    assert rounding.within(count * demand, demand * count)


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_within_is_an_order_up_to_the_tolerance(value, limit):
    if value <= limit:
        assert rounding.within(value, limit)
    if value > limit * (1 + 2e-9) + 2e-9:
        assert not rounding.within(value, limit)


def test_nothing_is_within_not_a_number():
    assert not rounding.within(math.nan, 1.0)


def test_units_are_what_the_scarcest_resource_holds():
    capacity = np.array([[[6.0, 10.0], [5.9, 10.0]], [[3 * 0.1, 1.0], [0.0, 1e300]]])
    assert rounding.units(capacity, np.array([2.0, 3.0]), 9).tolist() == [[3, 2], [0, 0]]
    assert rounding.units(capacity, np.array([0.1, 0.0]), 9).tolist() == [[9, 9], [3, 0]]
    assert rounding.units(capacity, np.array([0.0, 1e-300]), 2).tolist() == [[2, 2], [2, 2]]
    assert rounding.units(capacity, np.zeros(2), 4).tolist() == [[4, 4], [4, 4]]
    assert rounding.units(capacity - 20.0, np.array([1.0, 1.0]), 4).tolist() == [[0, 0], [0, 0]]
