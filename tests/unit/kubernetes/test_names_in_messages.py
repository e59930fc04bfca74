"""Whatever is wrong in an OasisJob, the message names a field that its owner has written."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import jsonschema
import pytest

from oasis.kubernetes.names import BANDWIDTH, KIND
from oasis.kubernetes.objects.manifests import schema_of
from oasis.kubernetes.objects.network import DEFAULT_PORT, FRAMEWORKS
from oasis.kubernetes.objects.oasis_job import (
    BACKOFF_LIMIT,
    COMPLETION,
    DEFAULT_GRACE,
    ON_REJECTION,
    RESIZE,
    UTILITY_FIELDS,
    SlotClock,
    parse_job,
)
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.kubernetes.objects.schema import PHASES
from oasis.model.errors import InstanceError

CLOCK = SlotClock(60.0, 10.0)
SCHEMA = schema_of(KIND)["spec"]
VALIDATOR = jsonschema.Draft4Validator(SCHEMA)  # in which exclusiveMinimum is true or false
BAD = (-1, 0, 1e31, 1e300, float("inf"), "x", None, [], {}, True, 10**400, [3, 1], 2.5, "1e-40")
UTILITIES = (
    {"kind": "sigmoid", "priority": 3, "decayPerSecond": 0.1, "targetSeconds": 60},
    {"kind": "piecewise", "delaysSeconds": [1, 2], "values": [3, 2]},
)
WORKS = (
    {"workerSeconds": 100},
    {"epochs": 2, "chunks": 4, "minibatches": 3, "minibatchSeconds": 0.5, "gradientMb": 30},
)


def pods(bandwidth: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", BANDWIDTH: bandwidth}, "limits": {"nvidia.com/gpu": "1"}}
    return {"template": {"spec": {"containers": [{"name": "train", "resources": resources}]}}}


FORM = {
    "work": {"workerSeconds": 50},
    "workers": {"maximum": 2, "resources": {"requests": {"cpu": "1"}}},
    "requires": {"gpu": ["a"]},
    "parameterServers": {"resources": {"requests": {"cpu": "2", BANDWIDTH: "4G"}}},
}
FORMS = ({}, {"forms": [FORM]}, {"speeds": {"label": "gpu", "values": {"a": 1, "b": 2}}})


def job(utility: dict[str, Any], work: dict[str, Any], forms: dict[str, Any]) -> dict[str, Any]:
    counts = {"minimum": 1, "initial": 2, "maximum": 4}
    spec = {"utility": utility, "work": work, "parameterServers": pods("4G"), **forms}
    spec["workers"] = {**counts, **pods("1G")}
    return {"metadata": {"name": "j", "namespace": "n", "uid": "u"}, "spec": deepcopy(spec)}


def places(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = found.items() if isinstance(found, dict) else enumerate(found)
    for name, value in entries:
        yield (*path, name)
        if isinstance(value, dict | list):
            yield from places(value, (*path, name))


def said(path: tuple[Any, ...]) -> str:
    words = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path)
    return words.removeprefix(".")


def known() -> set[str]:
    """Fields that an owner may have left out; those of a list without their index."""
    found = set(fields("spec", SCHEMA))
    return found | {f"{path}.spec.containers" for path in found if path.endswith("template")}


def fields(path: str, schema: dict[str, Any]) -> Iterator[str]:
    """Paths of the fields below `path`, as far as the schema knows them."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        if "x-kubernetes-preserve-unknown-fields" not in field:
            yield from fields(f"{path}.{name}", field)
            yield from fields(f"{path}.{name}[]", field.get("items", {}))


def pruned(found: Any) -> Any:
    """An object without fields that are null, as the API server takes it."""
    if isinstance(found, dict):
        return {name: pruned(value) for name, value in found.items() if value is not None}
    return [pruned(value) for value in found] if isinstance(found, list) else found


def refusal(made: dict[str, Any]) -> InstanceError | None:
    try:
        parse_job(made, CLOCK, DEFAULT_RESOURCES)
    except InstanceError as error:
        return error
    return None


@pytest.mark.parametrize("forms", FORMS, ids=["plain", "forms", "speeds"])
@pytest.mark.parametrize("work", WORKS, ids=["seconds", "minibatches"])
def test_messages_name_what_was_written(work: dict[str, Any], forms: dict[str, Any]) -> None:
    """And what the parser takes the schema of the API server takes, too."""
    known_fields, refused = known(), 0
    for utility in UTILITIES:
        whole = job(utility, work, forms)
        parse_job(whole, CLOCK, DEFAULT_RESOURCES)
        for path, bad in itertools.product(places(whole["spec"], ("spec",)), BAD):
            made = deepcopy(whole)
            at: Any = made
            for name in path[:-1]:
                at = at[name]
            at[path[-1]] = deepcopy(bad)
            error = refusal(made)
            if error is None:
                assert VALIDATOR.is_valid(pruned(made["spec"])), path
            else:
                refused += 1
                there = {said(each) for each in places(made["spec"], ("spec",))} | {"spec"}
                bare = error.field.replace("[0]", "[]")
                is_lacking = error.field.endswith(f".requests.{BANDWIDTH}")
                assert error.field in there or bare in known_fields or is_lacking, str(error)
                assert "_" not in str(error), "as the model calls its fields"
    assert refused > 500


def test_choices_and_defaults_of_the_schema_are_those_of_the_parser() -> None:
    fields_of_spec = SCHEMA["properties"]
    network = fields_of_spec["network"]["properties"]
    choices = {name: field["enum"] for name, field in fields_of_spec.items() if "enum" in field}
    assert choices == {
        "resizePolicy": list(RESIZE),
        "onRejection": list(ON_REJECTION),
        "completion": list(COMPLETION),
    }
    assert fields_of_spec["utility"]["properties"]["kind"]["enum"] == list(UTILITY_FIELDS)
    assert network["framework"]["enum"] == list(FRAMEWORKS)
    defaults = {k: field["default"] for k, field in fields_of_spec.items() if "default" in field}
    assert defaults == {
        **{name: values[0] for name, values in choices.items()},
        "gracePeriodSeconds": DEFAULT_GRACE,
        "backoffLimit": BACKOFF_LIMIT,
    }
    assert (network["framework"]["default"], network["port"]["default"]) == (
        FRAMEWORKS[0],
        DEFAULT_PORT,
    )
    assert schema_of(KIND)["status"]["properties"]["phase"]["enum"] == list(PHASES)
