"""Files of instances and of elastic jobs: the reader names what is wrong, and the schema agrees.

The bad inputs are one row each of malformed.txt and elastic_malformed.txt, changes of the files
valid.json and elastic_valid.json, which have every field.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.model.examples import example_text
from oasis.model.instance_file import instance_from_dict, instance_schema, instance_to_dict
from oasis.simulator.elastic import (
    FormEntry,
    MachineEntry,
    ServerShare,
    elastic_from_dict,
    elastic_schema,
)
from tests.builders import changed, malformed

KINDS = {
    "": (instance_from_dict, instance_schema(), "congested"),
    "elastic_": (elastic_from_dict, elastic_schema(), "elastic"),
}
VALIDATORS = {
    kind: jsonschema.Draft202012Validator(schema) for kind, (_, schema, _) in KINDS.items()
}
VALID: dict[str, Any] = {
    kind: json.loads(Path(__file__).with_name(f"{kind}valid.json").read_text()) for kind in KINDS
}
ROWS = [(kind, *row) for kind in KINDS for row in malformed(__file__, f"{kind}malformed.txt")]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


@pytest.mark.parametrize(("kind", "field", "value", "message", "in_schema"), ROWS)
def test_a_bad_field_is_named_with_what_was_expected_and_the_schema_says_it_too(
    kind, field, value, message, in_schema
):
    data = changed(VALID[kind], field, value)
    assert VALIDATORS[kind].is_valid(data) != in_schema
    with pytest.raises(oasis.InstanceError) as caught:
        KINDS[kind][0](data)
    error = caught.value
    assert str(error) == message == f"{error.field}: {error.detail}"
    assert error.detail == error.expected + ("" if error.got is None else f", got {error.got}")


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_takes_what_is_shipped_and_all_fields(kind):
    reader, schema, example = KINDS[kind]
    jsonschema.Draft202012Validator.check_schema(schema)
    for data in (json.loads(example_text(example)), VALID[kind]):
        VALIDATORS[kind].validate(data)
        reader(data)
    for preset in ("testbed", "calibrated"):
        VALIDATORS[""].validate(instance_to_dict(oasis.generate(preset, jobs=4, seed=2)))


def places(data: Any, field: str = "") -> list[str]:
    """Every field of a document, outermost first."""
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    found = []
    for key, value in entries:
        here = f"{field}[{key}]" if isinstance(key, int) else f"{field}.{key}"
        found += [here, *(places(value, here) if isinstance(value, dict | list) else [])]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_refuses_nothing_that_the_reader_takes(kind):
    @given(st.sampled_from(places(VALID[kind])), JSON)
    def check(field: str, value: Any) -> None:
        data = changed(VALID[kind], field, value)
        if not VALIDATORS[kind].is_valid(data):
            with pytest.raises(oasis.InstanceError):
                KINDS[kind][0](data)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_says_what_it_means(kind):
    schema = KINDS[kind][1]
    parts = [schema, *(part for part in schema["$defs"].values() if "properties" in part)]
    told = {name: one for part in parts for name, one in part["properties"].items()}
    assert {name for name, one in told.items() if not one.get("description")} <= {
        "format",
        "utility",
    }


def test_classes_of_entries_can_be_pickled():
    entries = (MachineEntry, ServerShare, FormEntry)
    assert pickle.loads(pickle.dumps(entries)) == entries
