"""Checks of single fields: what passes, in which type it comes back, and what a refusal says."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oasis.model.errors import InstanceError, describe
from oasis.model.validation import (
    amount,
    check_keys,
    number,
)


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    with pytest.raises(InstanceError) as caught:
        call(*arguments, **options)
    return str(caught.value)


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        (0, 0.0),
        (3, 3.0),
        (2.5, 2.5),
        (Fraction(1, 4), 0.25),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7.0),
        (5e-324, 5e-324),
    ],
)
def test_any_real_number_comes_back_as_a_plain_float(given_value: Any, expected: float) -> None:
    found = number(given_value, "x")
    assert found == expected
    assert type(found) is float


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-1e-300, "-1e-300"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (True, "True"),
        (None, "None"),
        ("1", "'1'"),
        (1j, "1j"),
        (Decimal(1), "Decimal('1')"),
        ([1.0], "[1.0]"),
    ],
)
def test_what_is_no_finite_number_is_refused_and_shown(value: Any, shown: str) -> None:
    assert refusal(number, value, "a.b") == f"a.b: expected a finite number >= 0, got {shown}"


def test_an_integer_beyond_all_floats_is_refused_without_its_digits() -> None:
    found = refusal(number, 10**400, "work")
    assert found == "work: expected a finite number >= 0, got an integer too large for a float"


def test_an_amount_is_nothing_or_of_a_size_that_can_be_divided_by() -> None:
    assert [amount(value, "cpu") for value in (0, -0.0, 1e-30, 1e30)] == [0.0, 0.0, 1e-30, 1e30]
    assert refusal(amount, 9e-31, "cpu") == "cpu: expected 0 or a number >= 1e-30, got 9e-31"
    assert refusal(amount, 1.1e30, "cpu") == "cpu: expected a number <= 1e+30, got 1.1e+30"


# -- integers --------------------------------------------------------------------------------------


# -- keys ------------------------------------------------------------------------------------------


def test_a_misspelt_key_is_told_before_a_missing_one() -> None:
    """It is most likely the missing one, misspelt."""
    assert refusal(check_keys, {"size": 2, "id": 1}, ("id", "capacity")).startswith("size:")


# -- descriptions ----------------------------------------------------------------------------------


def test_a_long_value_is_cut_to_sixty_characters() -> None:
    assert describe("x" * 58) == f"'{'x' * 58}'"  # sixty with its quotes: still whole
    cut = describe("x" * 59)
    assert len(cut) == 60
    assert cut == "'" + "x" * 56 + "..."
