"""Single values of plain data, read and checked; data frames; objects where they are shown."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oasis import extras
from oasis.model.document import count, entry, flag, list_of, mapping, optional, real, text
from oasis.model.errors import InstanceError, describe
from oasis.model.files import frame
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.model.summary import Summarised, short
from oasis.model.validation import amount, check_keys, number


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    with pytest.raises(InstanceError) as caught:
        call(*arguments, **options)
    return str(caught.value)


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
def test_what_is_no_finite_number_is_refused_and_shown(value, shown):
    assert refusal(number, value, "a.b") == f"a.b: expected a finite number >= 0, got {shown}"


def test_any_real_number_comes_back_as_a_plain_float():
    given = (0, 3, 2.5, Fraction(1, 4), np.float32(0.5), np.int64(7), 5e-324)
    found = [number(value, "x") for value in given]
    assert found == [0.0, 3.0, 2.5, 0.25, 0.5, 7.0, 5e-324]
    assert {type(value) for value in found} == {float}


def test_an_integer_beyond_all_floats_is_refused_without_its_digits():
    found = refusal(number, 10**400, "work")
    assert found == "work: expected a finite number >= 0, got an integer too large for a float"


def test_an_amount_is_nothing_or_of_a_size_that_can_be_divided_by():
    assert [amount(value, "cpu") for value in (0, -0.0, 1e-30, 1e30)] == [0.0, 0.0, 1e-30, 1e30]
    assert refusal(amount, 9e-31, "cpu") == "cpu: expected 0 or a number >= 1e-30, got 9e-31"
    assert refusal(amount, 1.1e30, "cpu") == "cpu: expected a number <= 1e+30, got 1.1e+30"


def test_a_misspelt_key_is_told_before_a_missing_one():
    """It is most likely the missing one, misspelt."""
    assert refusal(check_keys, {"size": 2, "id": 1}, ("id", "capacity")).startswith("size:")


def test_a_long_value_is_cut_to_sixty_characters():
    assert describe("x" * 58) == f"'{'x' * 58}'"  # sixty with its quotes: still whole
    cut = describe("x" * 59)
    assert len(cut) == 60
    assert cut == "'" + "x" * 56 + "..."


@pytest.mark.parametrize(
    ("reader", "value", "message"),
    [
        (text, 1, "x: expected text, got 1"),
        (flag, 1, "x: expected true or false, got 1"),
        (real, True, "x: expected a finite number, got True"),
        (real, float("nan"), "x: expected a finite number, got nan"),
        (real, "1", "x: expected a finite number, got '1'"),
        (count, 1.5, "x: expected an integer, got 1.5"),
        (count, 2**60, f"x: expected an integer, got {2**60}"),
        (mapping, [], "x: expected an object, got []"),
        (list_of(count), {}, "x: expected a list, got {}"),
        (list_of(count), [1, None], "x[1]: expected an integer, got None"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(reader, value, message):
    with pytest.raises(InstanceError, match=f"^{re.escape(message)}$"):
        entry({"x": value}, "x", reader)
    assert entry({"x": None}, "x", optional(reader)) is None


def test_schedules_of_a_document_have_rows_of_three_and_each_job_has_one():
    one = Schedule("a", [[0, 1, 2]], [])
    assert schedules_by_job([one.to_dict()]) == {"a": one}
    with pytest.raises(InstanceError, match=r"^\[1\]\.job_id: duplicate job id 'a'$"):
        schedules_by_job([one.to_dict(), one.to_dict()])
    for rows in ([[0, 1]], [[0, 1, 2, 3]]):
        with pytest.raises(InstanceError, match=r"^workers\[0\]: expected slot, server and count"):
            Schedule.from_dict({"job_id": "a", "workers": rows, "ps": []})


def test_without_pandas_a_frame_names_the_extra(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda package: None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pandas: pip install .*\[sweep\]"):
        frame([], {})


def test_what_is_shown_in_a_notebook_is_escaped():
    class Odd(Summarised):
        def summary(self) -> tuple[str, list[tuple[str, str]]]:
            return "Odd", [("name", "<b>"), ("n", short(0.1234567))]

    assert repr(Odd()) == "<Odd: name <b>, n 0.123457>"
    assert "&lt;b&gt;" in Odd()._repr_html_()
    assert "<b>" not in Odd()._repr_html_()
