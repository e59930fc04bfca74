"""The JSON Schema refuses nothing that the reader takes, and says what a schema can say."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.model.instance_file import instance_from_dict, instance_schema, instance_to_dict
from tests.unit.model.test_io import GONE, ROWS, VALID, changed

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
VALIDATOR = jsonschema.Draft202012Validator(instance_schema())
SMALL = json.loads((EXAMPLES / "congested.json").read_text(encoding="utf-8"))
SMALL["jobs"] = SMALL["jobs"][:2]
SMALL["worker_servers"] = SMALL["worker_servers"][:1]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, outermost first."""
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    return [
        place
        for key, value in entries
        for place in (
            [(*path, key), *places(value, (*path, key))]
            if isinstance(value, dict | list)
            else [(*path, key)]
        )
    ]


def with_change(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(data)
    *outer, last = path
    inner = changed
    for key in outer:
        inner = inner[key]
    inner[last] = value
    return changed


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(instance_schema())


def test_it_takes_what_is_shipped_and_what_is_generated() -> None:
    VALIDATOR.validate(json.loads((EXAMPLES / "congested.json").read_text(encoding="utf-8")))
    VALIDATOR.validate(VALID)  # with a utility of each kind
    for preset in ("testbed", "calibrated"):
        VALIDATOR.validate(instance_to_dict(oasis.generate(preset, jobs=4, seed=2)))


@pytest.mark.parametrize("row", ROWS)
def test_it_refuses_what_the_reader_refuses_unless_no_schema_can_say_it(row: str) -> None:
    field, value, _, *only = row.split(" | ")
    data = changed(field, GONE if value == "GONE" else json.loads(value))
    assert VALIDATOR.is_valid(data) == (only == ["the reader alone"])


@given(st.sampled_from(places(SMALL)), JSON)
def test_it_refuses_nothing_that_the_reader_takes(path: tuple[Any, ...], value: Any) -> None:
    data = with_change(SMALL, path, value)
    if not VALIDATOR.is_valid(data):
        with pytest.raises(oasis.InstanceError):
            instance_from_dict(data)
