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

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
VALIDATOR = jsonschema.Draft202012Validator(instance_schema())
SMALL = json.loads((EXAMPLES / "congested.json").read_text(encoding="utf-8"))
SMALL["jobs"] = SMALL["jobs"][:2]
SMALL["worker_servers"] = SMALL["worker_servers"][:1]
UTILITIES = (
    {"kind": "constant", "value": 3.0},
    {"kind": "deadline", "value": 3.0, "deadline": 4.0},
    {"kind": "piecewise", "delays": [0.0, 2.5], "values": [4.0, 1.5]},
)
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
    for preset in ("testbed", "calibrated"):
        VALIDATOR.validate(instance_to_dict(oasis.generate(preset, jobs=4, seed=2)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), "other"),
        (("version",), 2),
        (("horizon",), 0),
        (("horizon",), "10"),
        (("slot_seconds",), 0),
        (("slot_seconds",), 1e-320),
        (("slot_seconds",), 1e300),
        (("resources",), []),
        (("worker_servers",), []),
        (("worker_servers", 0, "capacity", "gpu"), -1),
        (("worker_servers", 0, "capacity", "gpu"), 1e300),
        (("worker_servers", 0, "capacity", "gpu"), 1e-320),
        (("jobs", 0, "ps", "cpu"), 1e-31),
        (("worker_servers", 0, "colour"), "red"),
        (("jobs", 0, "epochs"), 0),
        (("jobs", 0, "chunks"), 2.5),
        (("jobs", 0, "gradient_mb"), -1.0),
        (("jobs", 0, "min_workers"), 0),
        (("jobs", 0, "min_workers"), 1.5),
        (("jobs", 1, "id"), ""),
        (("jobs", 1, "utility"), {"kind": "step"}),
        (("jobs", 1, "utility"), {"kind": "constant", "deadline": 1}),
    ],
    ids=str,
)
def test_it_refuses_what_the_reader_refuses_there(path: tuple[Any, ...], value: Any) -> None:
    data = with_change(SMALL, path, value)
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(oasis.InstanceError):
        instance_from_dict(data)


@given(st.sampled_from(places(SMALL)), JSON)
def test_it_refuses_nothing_that_the_reader_takes(path: tuple[Any, ...], value: Any) -> None:
    data = with_change(SMALL, path, value)
    if not VALIDATOR.is_valid(data):
        with pytest.raises(oasis.InstanceError):
            instance_from_dict(data)


REQUIRED = [(key,) for key in SMALL if key not in ("metadata", "ps_servers")]
REQUIRED += [("jobs", 0, key) for key in SMALL["jobs"][0] if key != "ps"]
REQUIRED += [("ps_servers", 0, "id"), ("ps_servers", 0, "capacity"), ("jobs", 1, "utility", "kind")]


@pytest.mark.parametrize("path", REQUIRED, ids=str)
def test_it_misses_no_required_key(path: tuple[Any, ...]) -> None:
    *outer, last = path
    data = copy.deepcopy(SMALL)
    inner = data
    for key in outer:
        inner = inner[key]
    del inner[last]
    assert not VALIDATOR.is_valid(data)
