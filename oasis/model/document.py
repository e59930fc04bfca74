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
    """Return what `reader` makes of ``data[name]``; `InstanceError` with the path if wrong."""
    mapping(data)
    if name not in data:
        raise InstanceError(name, "missing; this key is required")
    with located_at(name):
        return reader(data[name])


def mapping(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object; otherwise `InstanceError`."""
    if not isinstance(value, Mapping):
        raise InstanceError("", "expected an object", value)
    return value


def text(value: Any) -> str:
    """Return `value` if it is a string, which may be empty; otherwise `InstanceError`."""
    if not isinstance(value, str):
        raise InstanceError("", "expected text", value)
    return value


def flag(value: Any) -> bool:
    """Return `value` if it is true or false; otherwise `InstanceError`."""
    if not isinstance(value, bool):
        raise InstanceError("", "expected true or false", value)
    return value


def real(value: Any) -> float:
    """Return `value` if it is a finite number of either sign; an integer stays an int."""
    checked = validation.number(value, "", minimum=-float("inf"))
    result: float = value if abs(checked) <= LARGEST_COUNT else checked
    return result


def count(value: Any) -> int:
    """Return `value` if it is an integer of either sign; otherwise `InstanceError`."""
    try:
        return validation.integer(value, "", minimum=-LARGEST_COUNT)
    except InstanceError:
        raise InstanceError("", "expected an integer", value) from None


def optional(reader: Reader[T]) -> Reader[T | None]:
    """Return a reader that gives None for null and uses `reader` for anything else."""
    return lambda value: None if value is None else reader(value)


def object_of(reader: Reader[T]) -> Reader[dict[str, T]]:
    """Return a reader of JSON objects with any keys; `reader` reads the values."""
    return lambda value: {name: entry(value, name, reader) for name in mapping(value)}


def list_of(reader: Reader[T]) -> Reader[tuple[T, ...]]:
    """Return a reader of JSON lists, as tuples; `reader` reads the items."""

    def read(value: Any) -> tuple[T, ...]:
        items = []
        for k, part in enumerate(check_list(value, "")):
            with located_at(f"[{k}]"):
                items.append(reader(part))
        return tuple(items)

    return read


def record(kind: Callable[..., T], **readers: Reader[Any]) -> Reader[T]:
    """Return a reader of objects with these entries, and possibly others, as a `kind`."""
    return lambda data: kind(**{name: entry(data, name, read) for name, read in readers.items()})
