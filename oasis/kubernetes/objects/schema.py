"""The one reader of our kinds: an object is checked by the schema that the API server has of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from typing import Any

from oasis.kubernetes.objects.quantities import quantity
from oasis.model import validation
from oasis.model.document import flag, list_of, mapping, text
from oasis.model.errors import InstanceError, located_at
from oasis.model.validation import LARGEST_AMOUNT, LARGEST_COUNT, check_keys, integer, number

Schema = Mapping[str, Any]

# Phases of jobs that hold room: before their gang works, and then.
HOLDING = ("Starting", "Running")
PHASES = ("Pending", "Waiting", *HOLDING, "Completed", "Rejected", "GivenUp", "Invalid", "Failed")
# Invalid and Failed are no ends: an edit brings such a job back.
TERMINAL = frozenset({"Completed", "Rejected", "GivenUp"})


def checked(schema: Schema, value: Any) -> Any:
    """Return `value` checked by `schema`, with its defaults; an `InstanceError` names the field."""
    # Rules between fields are for whoever reads the value.
    kind = schema["type"]
    if kind == "object":
        return _object(schema, value)
    if kind == "array":
        items = list(list_of(partial(checked, schema["items"]))(value))
        if len(items) < schema.get("minItems", 0):
            raise InstanceError("", "expected at least one entry")
        return items
    if kind == "boolean":
        return flag(value)
    least = schema.get("minimum", 0)
    if kind == "integer":
        return integer(value, "", minimum=least, maximum=schema.get("maximum", LARGEST_COUNT))
    if kind == "number":
        most = LARGEST_AMOUNT if "x-kubernetes-validations" in schema else math.inf
        above = schema.get("exclusiveMinimum", False)
        return number(value, "", minimum=least, above=above, maximum=most)
    return _string(schema, value)


def _string(schema: Schema, value: Any) -> Any:
    if schema.get("format") == "quantity":
        quantity(value, "")
        return value
    if "enum" in schema:
        if value not in schema["enum"]:
            raise InstanceError("", f"expected one of {', '.join(schema['enum'])}", value)
        return value
    if "format" in schema or "minLength" in schema:
        return validation.text(value, "")
    if not re.search(schema.get("pattern", ""), text(value)):
        raise InstanceError("", f"expected what matches {schema['pattern']}", value)
    return str(value)


def _object(schema: Schema, value: Any) -> dict[str, Any]:
    known, every = schema.get("properties", {}), schema.get("additionalProperties")
    # A field that is null counts as left out, and gets its default.
    fields = {name: each for name, each in mapping(value).items() if each is not None}
    required = schema.get("required", ())
    is_open = every is not None or "x-kubernetes-preserve-unknown-fields" in schema
    check_keys(fields, required, [*known, *(fields if is_open else ())])
    for name, each in fields.items():
        below = known.get(name, every)
        if below is not None:
            with located_at(name):
                fields[name] = checked(below, each)
    return {k: field["default"] for k, field in known.items() if "default" in field} | fields


def checked_template(template: Any, path: str) -> Any:
    """Return a pod template in which all fields that we read are checked; errors name `path`."""
    with located_at(path):
        return checked(read_yaml("objects/template.yaml")[0], template)


def schema_of(kind: str) -> Schema:
    """Return the schemas of the fields of one of our kinds: ``spec`` and perhaps ``status``."""
    (definition,) = read_yaml(f"chart/shared/{kind.lower()}.yaml")
    (version,) = definition["spec"]["versions"]
    fields: Schema = version["schema"]["openAPIV3Schema"]["properties"]
    return fields


@cache
def read_yaml(name: str) -> list[dict[str, Any]]:
    """Return the objects in a YAML file of this package. Cached: do not change them."""
    import yaml  # noqa: PLC0415 (needs an extra)

    file = resources.files("oasis.kubernetes") / name
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
