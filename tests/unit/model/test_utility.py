"""Utilities: values, logarithms where values underflow, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.utility import Constant, Deadline, Piecewise, Sigmoid, Utility, UtilityColumns
from oasis.testing import utilities

DELAYS = np.arange(0, 40)


@given(utilities())
def test_utilities_never_rise_and_are_never_negative(utility):
    values = utility(DELAYS)
    assert values.shape == DELAYS.shape
    assert values.dtype == np.float64
    assert (values >= 0).all()
    assert (np.diff(values) <= 0).all()
    assert (np.diff(utility.log_value(DELAYS)[values > 0]) <= 0).all()


@given(utilities())
def test_log_value_is_the_logarithm_of_the_value(utility):
    values, logs = utility(DELAYS), utility.log_value(DELAYS)
    assert logs.shape == DELAYS.shape
    fine = values > 1e-300
    np.testing.assert_allclose(logs[fine], np.log(values[fine]), rtol=1e-9, atol=1e-9)
    assert (logs[values == 0] < math.log(1e-300)).all()


@given(utilities(), st.integers(0, 40))
def test_one_delay_gives_what_the_array_gives(utility, delay):
    assert utility(delay) == utility(np.array([delay]))[0]
    assert np.shape(utility(delay)) == ()
    assert float(utility.log_value(delay)) == utility.log_value(np.array([delay]))[0]


@given(utilities())
def test_utilities_are_utilities_frozen_and_equal_by_value(utility):
    assert isinstance(utility, Utility)
    twin = utility.__class__(*(getattr(utility, name) for name in utility.__slots__))
    assert utility == twin
    assert hash(utility) == hash(twin)
    with pytest.raises(AttributeError):
        setattr(utility, utility.__slots__[0], 1.0)


def test_sigmoid_is_half_its_priority_at_the_target():
    sigmoid = Sigmoid(50.0, 0.5, 4.0)
    assert sigmoid(4) == 25.0
    assert sigmoid(0) == pytest.approx(50 / (1 + math.exp(-2)))
    assert sigmoid(6) == pytest.approx(50 / (1 + math.e))


def test_sigmoid_keeps_its_logarithm_where_it_underflows():
    """A time-critical job of the paper at the end of 300 slots: e^-1782, in floats 0."""
    sigmoid = Sigmoid(1.0, 6.0, 3.0)
    assert sigmoid(300) == 0.0
    assert float(sigmoid.log_value(300)) == pytest.approx(-6 * 297, rel=1e-12)


@pytest.mark.parametrize(
    ("sigmoid", "delay", "value"),
    [
        (Sigmoid(5.0, 1e308, 3.0), 2.0, 5.0),
        (Sigmoid(5.0, 1e308, 3.0), 30.0, 0.0),
        (Sigmoid(5.0, 1e308, 1e308), 0.0, 5.0),
        (Sigmoid(5.0, 1e308, 3.0), 3.0, 2.5),
        (Sigmoid(50.0, 0.0, 4.0), 39.0, 25.0),
        (Sigmoid(0.0, 1.0, 1.0), 0.0, 0.0),
    ],
)
def test_extreme_sigmoids_are_steps(sigmoid, delay, value):
    assert sigmoid(delay) == value
    expected = math.log(value) if value else -math.inf
    assert float(sigmoid.log_value(delay)) == pytest.approx(expected)


def test_deadline_counts_the_deadline_itself():
    deadline = Deadline(7.0, 2.0)
    assert deadline([0, 1, 2, 3]).tolist() == [7.0, 7.0, 7.0, 0.0]
    assert deadline.log_value([2, 3]).tolist() == [math.log(7.0), -math.inf]


def test_piecewise_is_linear_between_points_and_constant_outside():
    piecewise = Piecewise((1.0, 3.0, 4.0), (10.0, 6.0, 0.0))
    delays = [0.0, 1.0, 2.0, 3.0, 3.5, 4.0, 99.0]
    assert piecewise(delays).tolist() == [10.0, 10.0, 8.0, 6.0, 3.0, 0.0, 0.0]


def test_columns_of_utilities_are_worth_what_each_of_them_is():
    some = [Sigmoid(9.0, 0.3, 5.0), Deadline(4.0, 7.0), Constant(2.0), Sigmoid(3.0, 500.0, 2.0)]
    columns = UtilityColumns.of(some)
    delays = np.array([0.0, 2.0, 5.0, 7.0, 7.1, 1e4])
    table = columns(np.tile(delays, (len(some), 1)))
    for row, utility in zip(table, some, strict=True):
        assert row == pytest.approx(utility(delays))
    assert columns.rows() == some
    assert columns.part(np.array([1])).rows() == [some[1]]
