"""Reading plain data back: one entry of a JSON document at a time, each with its path in errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from oasis.model import validation
from oasis.model.errors import InstanceError, located_at
from oasis.model.validation import LARGEST_COUNT, check_list

T = TypeVar("T")
Reader = Callable[[Any], T]


def entry(data: Any, name: str, reader: Reader[T]) -> T:
    """Read the entry `name` of the object `data`."""
    mapping(data)
    if name not in data:
        raise InstanceError(name, "missing; this key is required")
    with located_at(name):
        return reader(data[name])


def mapping(value: Any) -> Mapping[str, Any]:
    """An object of the document as it is."""
    if not isinstance(value, Mapping):
        raise InstanceError("", "expected an object", value)
    return value


def text(value: Any) -> str:
    """A string, which may be empty."""
    if not isinstance(value, str):
        raise InstanceError("", "expected text", value)
    return value


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InstanceError("", "expected true or false", value)
    return value


def real(value: Any) -> float:
    """A finite number of either sign; an integer stays one."""
    try:
        validation.number(value, "", minimum=-float("inf"))
    except InstanceError:
        raise InstanceError("", "expected a finite number", value) from None
    result: float = value
    return result


def count(value: Any) -> int:
    """An integer of either sign."""
    try:
        return validation.integer(value, "", minimum=-LARGEST_COUNT)
    except InstanceError:
        raise InstanceError("", "expected an integer", value) from None


def optional(reader: Reader[T]) -> Reader[T | None]:
    """A reader that also takes null."""
    return lambda value: None if value is None else reader(value)


def object_of(reader: Reader[T]) -> Reader[dict[str, T]]:
    """A reader of objects with any keys; errors have the key."""
    return lambda value: {name: entry(value, name, reader) for name in mapping(value)}


def list_of(reader: Reader[T]) -> Reader[tuple[T, ...]]:
    """A reader of lists; errors have the index."""

    def read(value: Any) -> tuple[T, ...]:
        found = []
        for k, part in enumerate(check_list(value, "")):
            with located_at(f"[{k}]"):
                found.append(reader(part))
        return tuple(found)

    return read
