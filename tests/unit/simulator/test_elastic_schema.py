"""The JSON Schema of elastic workloads refuses nothing that the reader takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.errors import InstanceError
from oasis.simulator.elastic import elastic_from_dict, elastic_schema
from tests.builders import elastic_data
from tests.unit.model.test_schema import JSON, places, with_change

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "elastic.json"
VALIDATOR = jsonschema.Draft202012Validator(elastic_schema())
SMALL = elastic_data(2) | {
    "partial_gangs": True,
    "share_links": False,
}
SMALL["jobs"][0]["utility"] = {"kind": "deadline", "value": 3.0, "deadline": 400.0}
SMALL["jobs"][1]["parameter_servers"] = {"per_worker": 0.5}
SMALL["machines"][0]["labels"] = {"gpu": "a"}
SMALL["jobs"][0] |= {
    "ps_requires": {"gpu": ["a"]},
    "forms": [{"requires": {"gpu": ["a"]}, "workers": 2}, {"work": 9.0, "ps": {}}],
    "switch": "restart",
}
SMALL["jobs"][1]["speeds"] = {"label": "gpu", "values": {"a": 1.0, "b": 2.0}}


def test_it_takes_what_is_shipped_and_all_fields() -> None:
    jsonschema.Draft202012Validator.check_schema(elastic_schema())
    VALIDATOR.validate(json.loads(EXAMPLE.read_text(encoding="utf-8")))
    VALIDATOR.validate(SMALL)
    elastic_from_dict(SMALL)


def test_it_describes_every_field_of_a_job() -> None:
    assert set(SMALL["jobs"][0]) <= set(elastic_schema()["$defs"]["job"]["properties"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), True),
        (("machines",), []),
        (("machines", 0, "count"), 0),
        (("machines", 0, "cpu_cores"), 0),
        (("partial_gangs",), "yes"),
        (("costs", "start"), -1),
        (("costs", "stop"), 1),
        (("observation",), {}),
        (("jobs", 0, "arrival"), 1e17),
        (("jobs", 0, "work"), 0),
        (("jobs", 0, "workers"), 0),
        (("jobs", 0, "workers"), {"min": 1}),
        (("jobs", 0, "parameter_servers"), {"per_worker": 2}),
        (("jobs", 0, "worker", "gpu"), 1e300),
        (("jobs", 0, "gradient_mb"), 1e300),
        (("jobs", 0, "speedup"), [0]),
        (("jobs", 0, "curve"), [[0, 1, 2]]),
        (("machines", 0, "labels"), {"gpu": 1}),
        (("jobs", 0, "requires"), {"gpu": []}),
        (("jobs", 0, "forms", 0), {"speedup": [1]}),
        (("jobs", 0, "forms", 0, "work"), None),
        (("jobs", 0, "switch"), "pause"),
        (("jobs", 1, "speeds", "values"), {"a": 0}),
    ],
    ids=str,
)
def test_it_refuses_what_the_reader_refuses_there(path: tuple[Any, ...], value: Any) -> None:
    data = with_change(SMALL, path, value)
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(InstanceError):
        elastic_from_dict(data)


@given(st.sampled_from(places(SMALL)), JSON)
def test_it_refuses_nothing_that_the_reader_takes(path: tuple[Any, ...], value: Any) -> None:
    data = with_change(SMALL, path, value)
    if not VALIDATOR.is_valid(data):
        with pytest.raises(InstanceError):
            elastic_from_dict(data)
