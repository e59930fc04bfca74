"""Reading plain data back, data frames, and what stands for an object where it is shown."""

from __future__ import annotations

import re
from typing import Any

import pytest

from oasis.model import extras
from oasis.model.document import count, entry, flag, list_of, mapping, optional, real, text
from oasis.model.errors import InstanceError
from oasis.model.files import frame
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.model.summary import Summarised, short


@pytest.mark.parametrize(
    ("reader", "value"),
    [(text, ""), (flag, False), (real, -1.5), (real, 2), (count, -3), (mapping, {"a": 1})],
)
def test_a_reader_gives_the_value_as_it_is(reader: Any, value: Any) -> None:
    found = entry({"x": value, "more": 1}, "x", reader)
    assert (found, type(found)) == (value, type(value))
    assert entry({"x": None}, "x", optional(reader)) is None
    assert entry({"x": [value]}, "x", list_of(reader)) == (value,)


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
def test_what_is_wrong_is_said_with_its_path(reader: Any, value: Any, message: str) -> None:
    with pytest.raises(InstanceError, match=f"^{re.escape(message)}$"):
        entry({"x": value}, "x", reader)


def test_schedules_of_a_document_are_by_job_and_each_job_has_one() -> None:
    one = Schedule("a", [[0, 1, 2]], [])
    assert schedules_by_job([one.to_dict()]) == {"a": one}
    with pytest.raises(InstanceError, match=r"^\[1\]\.job_id: duplicate job id 'a'$"):
        schedules_by_job([one.to_dict(), one.to_dict()])


@pytest.mark.parametrize("rows", [[[0, 1]], [[0, 1, 2, 3]]])
def test_a_row_of_a_schedule_has_three_integers(rows: list[list[int]]) -> None:
    with pytest.raises(InstanceError, match=r"^workers\[0\]: expected slot, server and count"):
        Schedule.from_dict({"job_id": "a", "workers": rows, "ps": []})


def test_without_pandas_a_frame_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda package: None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pandas: pip install .*\[sweep\]"):
        frame([], {})


def test_what_is_shown_in_a_notebook_is_escaped() -> None:
    class Odd(Summarised):
        def summary(self) -> tuple[str, list[tuple[str, str]]]:
            return "Odd", [("name", "<b>"), ("n", short(0.1234567))]

    assert repr(Odd()) == "<Odd: name <b>, n 0.123457>"
    assert "&lt;b&gt;" in Odd()._repr_html_()
    assert "<b>" not in Odd()._repr_html_()
