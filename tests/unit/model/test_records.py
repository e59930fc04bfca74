"""Records: one declaration gives the check, the reader, the writer and the schema."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from oasis.model.errors import InstanceError
from oasis.model.records import (
    AMOUNTS,
    Amount,
    Either,
    Fixed,
    Flag,
    ListOf,
    Number,
    RecordOf,
    Text,
    Variant,
    Whole,
    check,
    entry,
    object_schema,
    parse,
    plain,
    properties,
)


@dataclass(frozen=True)
class Span:
    low: float = entry(Number(above=True), "Begin.")
    high: float | None = entry(Amount(), "End.", None)

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Dot:
    at: int = entry(Whole(0, 9))
    meaning = "A point."

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Box:
    name: str = entry(Text(), "Its name.")
    spans: tuple[Span, ...] = entry(ListOf(RecordOf(Span), "expected at least one span"), "Parts.")
    size: int | Dot = entry(Either(Whole(1), Dot), "Sizes.", 1)
    shape: Any = entry(Variant({"dot": Dot}, "Shapes."), default=None)
    held: Any = entry(AMOUNTS, "Amounts.", None)
    is_open: bool = entry(Flag(), "Whether it is open.", False)
    version: int = entry(Fixed(1), "Version.", 1)

    def __post_init__(self) -> None:
        check(self)


WHOLE: dict[str, Any] = {
    "name": "a",
    "spans": [{"low": 1, "high": 2}, {"low": 3}],
    "size": {"at": 4},
    "shape": {"kind": "dot", "at": 5},
    "held": {"gpu": 1},
    "is_open": True,
}


def test_plain_data_make_the_round_trip() -> None:
    box = parse(Box, WHOLE)
    assert box.spans == (Span(1.0, 2.0), Span(3.0))
    assert (box.size, box.shape, box.held["gpu"], box.is_open) == (Dot(4), Dot(5), 1.0, True)
    again = plain(replace(box, size=2))
    assert again == WHOLE | {"size": 2}
    assert plain(Box("b", (Span(1),))) == {"name": "b", "spans": [{"low": 1.0}]}
    assert parse(Box, again) == replace(box, size=2)


@pytest.mark.parametrize(
    ("change", "field", "detail"),
    [
        ({"size": 0}, "size", "expected an integer >= 1, got 0"),
        ({"size": {"at": 10}}, "size.at", "expected an integer <= 9, got 10"),
        ({"shape": {"at": 1}}, "shape.kind", "missing; this key is required"),
        ({"shape": {"kind": "box"}}, "shape.kind", "expected one of dot, got 'box'"),
        ({"shape": {"kind": "dot", "at": "x"}}, "shape.at", "expected an integer >= 0, got 'x'"),
        ({"held": None}, "held", "expected an object of amounts, got None"),
        ({"shape": None}, "shape", "expected a shape, got None"),
        ({"spans": [{"low": 1, "high": None}]}, "spans[0].high", "expected a finite number >= 0"),
        ({"is_open": 1}, "is_open", "expected true or false, got 1"),
    ],
)
def test_what_is_wrong_has_its_path(change: dict[str, Any], field: str, detail: str) -> None:
    with pytest.raises(InstanceError) as caught:
        parse(Box, WHOLE | change)
    assert caught.value.field == field
    assert caught.value.detail.startswith(detail)


def test_the_schema_says_what_the_reader_takes() -> None:
    found = properties(Box)
    assert found["name"] == {"type": "string", "minLength": 1, "description": "Its name."}
    assert found["size"]["oneOf"][0] == {"type": "integer", "minimum": 1, "maximum": 2**53}
    assert found["size"]["default"] == 1
    assert "default" not in found["held"]
    span = object_schema(Span)
    assert found["spans"] == {
        "type": "array",
        "minItems": 1,
        "items": span,
        "description": "Parts.",
    }
    assert span["required"] == ["low"]
    assert span["properties"]["low"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Begin.",
    }
    assert found["shape"]["oneOf"][0]["properties"]["kind"] == {"const": "dot"}
    assert object_schema(Box)["required"] == ["name", "spans"]
    assert object_schema(Box)["additionalProperties"] is False
