"""Records: dataclasses whose fields say with `entry` what may stand in them and what it means.

From that follow the check of the constructor, `parse`, `plain` and the JSON Schema.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, TypeVar

from oasis.model import document
from oasis.model.choices import choice
from oasis.model.errors import InstanceError, located_at
from oasis.model.resources import ResourceVector, Table
from oasis.model.validation import (
    LARGEST_AMOUNT,
    LARGEST_COUNT,
    SMALLEST_AMOUNT,
    amount,
    check_keys,
    check_list,
    integer,
    number,
    text,
)

T = TypeVar("T")
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field accepts, and how its value is read and written; this one accepts anything."""

    named: str = field(default="", kw_only=True)  # its schema is written once, under ``$defs``

    def check(self, value: Any, path: str) -> Any:
        """Return the value to store in the field; `InstanceError` at `path` if it is wrong."""
        return value

    def parse(self, data: Any) -> Any:
        """Return plain data as an argument for the constructor, which calls `check` on it."""
        return data

    def plain(self, value: Any) -> Any:
        """Return a value of the field as plain data, the inverse of `parse`."""
        return list(value) if isinstance(value, tuple) else value

    def schema(self) -> Schema:
        """Return the JSON Schema of the plain data; a reference to it if the kind is `named`."""
        return {"$ref": f"#/$defs/{self.named}"} if self.named else self.body()

    def body(self) -> Schema:
        """Return the JSON Schema of the plain data, written out."""
        return {}


def _shown(value: Any) -> Any:
    """Return `value`; a whole float within `LARGEST_COUNT` as an int, for a shorter schema."""
    is_whole = type(value) is float and abs(value) <= LARGEST_COUNT and value == int(value)
    return int(value) if is_whole else value


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A finite number from `minimum` to `maximum`, without `minimum` itself if `above`."""

    minimum: float = 0.0
    above: bool = False
    maximum: float = math.inf

    def check(self, value: Any, path: str) -> float:
        return number(value, path, minimum=self.minimum, above=self.above, maximum=self.maximum)

    def body(self) -> Schema:
        schema: Schema = {"type": "number"}
        if self.minimum > -math.inf:
            schema["exclusiveMinimum" if self.above else "minimum"] = _shown(self.minimum)
        return schema | ({"maximum": _shown(self.maximum)} if self.maximum < math.inf else {})


@dataclass(frozen=True, slots=True)
class Amount(Kind):
    """An amount in the range where sums and quotients stay precise, or 0; `above`: 0 is refused."""

    above: bool = False

    def check(self, value: Any, path: str) -> float:
        if self.above:
            number(value, path, above=True, maximum=LARGEST_AMOUNT)
        return amount(value, path)

    def body(self) -> Schema:
        limits = {"minimum": SMALLEST_AMOUNT, "maximum": LARGEST_AMOUNT}
        return {"type": "number"} | (limits if self.above else {"anyOf": [{"const": 0}, limits]})


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    """An integer from `minimum` to `maximum`."""

    minimum: int = 0
    maximum: int = LARGEST_COUNT

    def check(self, value: Any, path: str) -> int:
        return integer(value, path, minimum=self.minimum, maximum=self.maximum)

    def body(self) -> Schema:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """A text: one of the `choices`, if there are any; may be empty only with `empty`."""

    choices: tuple[str, ...] = ()
    empty: bool = False

    def check(self, value: Any, path: str) -> str:
        if self.empty and value == "":
            return ""
        if self.choices:
            return choice(value, filter(None, self.choices), path)
        if self.empty and not isinstance(value, str):
            raise InstanceError(path, "expected text", value)
        return text(value, path)

    def body(self) -> Schema:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """Accepts true or false."""

    def check(self, value: Any, path: str) -> bool:
        if not isinstance(value, bool):
            raise InstanceError(path, "expected true or false", value)
        return value

    def body(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Fixed(Kind):
    """Accepts exactly one value, such as the version of a format."""

    value: Any

    def check(self, value: Any, path: str) -> Any:
        if type(value) is not type(self.value) or value != self.value:
            raise InstanceError(path, f"expected {self.value!r}", value)
        return value

    def body(self) -> Schema:
        whole = {"type": "integer"} if isinstance(self.value, int) else {}
        return {"const": self.value} | whole


@dataclass(frozen=True, slots=True)
class TableOf(Kind):
    """A table of the class `table` whose values are of the kind `of`."""

    table: type[Table[Any]]
    of: Kind
    meaning: str = ""
    filled: str = ""  # the error for an empty table, which may be empty without it

    def check(self, value: Any, path: str) -> Table[Any]:
        with located_at(path):
            table = value if isinstance(value, self.table) else self.table(value)
        if self.filled and not table:
            raise InstanceError(path, self.filled)
        return table

    def plain(self, value: Any) -> Any:
        return {name: self.of.plain(one) for name, one in value.items()}

    def body(self) -> Schema:
        description = {"description": self.meaning} if self.meaning else {}
        names = {"propertyNames": {"minLength": 1}, "additionalProperties": self.of.schema()}
        filled = {"minProperties": 1} if self.filled else {}
        return {"type": "object", **description, **filled, **names}


@dataclass(frozen=True, slots=True)
class ListOf(Kind):
    """A list of values of the kind `item`; `filled`: the error for an empty list, else allowed."""

    item: Kind
    filled: str = ""
    unique: bool = False

    def check(self, value: Any, path: str) -> tuple[Any, ...]:
        parts = enumerate(check_list(value, path))
        items = tuple(self.item.check(part, f"{path}[{k}]") for k, part in parts)
        if self.filled and not items:
            raise InstanceError(path, self.filled)
        return items

    def parse(self, data: Any) -> Any:
        return document.list_of(self.item.parse)(data)

    def plain(self, value: Any) -> Any:
        return [self.item.plain(part) for part in value]

    def body(self) -> Schema:
        filled = {"minItems": 1} if self.filled else {}
        unique = {"uniqueItems": True} if self.unique else {}
        return {"type": "array", **filled, **unique, "items": self.item.schema()}


@dataclass(frozen=True, slots=True)
class RecordOf(Kind):
    """An object of the dataclass `record`; plain data are parsed into one."""

    record: type[Any]
    meaning: str = ""

    def check(self, value: Any, path: str) -> Any:
        if not isinstance(value, self.record):
            raise InstanceError(path, f"expected an object of oasis.{self.record.__name__}", value)
        return value

    def parse(self, data: Any) -> Any:
        return parse(self.record, data)

    def plain(self, value: Any) -> Any:
        return plain(value)

    def body(self) -> Schema:
        return object_schema(self.record, self.meaning)


@dataclass(frozen=True, slots=True)
class Either(Kind):
    """A value of the kind `value`, or an object of the dataclass `record` with more details."""

    value: Kind
    record: type[Any]

    def check(self, value: Any, path: str) -> Any:
        return value if isinstance(value, self.record) else self.value.check(value, path)

    def parse(self, data: Any) -> Any:
        return parse(self.record, data) if isinstance(data, Mapping) else data

    def body(self) -> Schema:
        return {"oneOf": [self.value.schema(), object_schema(self.record)]}


@dataclass(frozen=True, slots=True)
class Variant(Kind):
    """An object of one of several dataclasses; the attribute ``kind`` tells which."""

    records: Mapping[str, type[Any]]
    meaning: str = ""
    accepts: Callable[[Any], bool] = lambda _: False

    def check(self, value: Any, path: str) -> Any:
        if type(value) not in self.records.values() and not self.accepts(value):
            raise InstanceError(path, f"expected a {path}", value)
        return value

    def parse(self, data: Any) -> Any:
        kind = document.entry(data, "kind", lambda value: value)
        if not isinstance(kind, str) or kind not in self.records:
            raise InstanceError("kind", f"expected one of {', '.join(self.records)}", kind)
        return parse(self.records[kind], data, tag="kind")

    def plain(self, value: Any) -> Any:
        for kind, cls in self.records.items():
            if type(value) is cls:
                return {"kind": kind, **plain(value)}
        raise InstanceError("", f"expected one of {', '.join(self.records)} to write a file")

    def body(self) -> Schema:
        forms = []
        for kind, cls in self.records.items():
            form = object_schema(cls, cls.meaning)
            form["properties"] = {"kind": {"const": kind}, **form["properties"]}
            forms.append({**form, "required": ["kind", *form["required"]]})
        return {"description": self.meaning, "oneOf": forms}


AMOUNTS = TableOf(
    ResourceVector, Amount(), "Amounts by resource; one left out is 0.", named="amounts"
)


def entry(kind: Kind, meaning: str = "", default: Any = MISSING, *, absent: Any = MISSING) -> Any:
    """Return a dataclass field of this kind; `absent` is the value where data leave it out."""
    return field(default=default, metadata={"kind": kind, "meaning": meaning, "absent": absent})


class _Form:
    """The fields of a dataclass with their kinds and defaults, looked up once per class."""

    def __init__(self, record: type[Any]) -> None:
        self.entries = {one.name: one for one in fields(record) if "kind" in one.metadata}
        self.kinds = {name: one.metadata["kind"] for name, one in self.entries.items()}
        defaults = {name: one.metadata["absent"] for name, one in self.entries.items()}
        self.absent = {name: value for name, value in defaults.items() if value is not MISSING}
        no_default = [name for name, one in self.entries.items() if one.default is MISSING]
        self.required = [name for name in no_default if name not in self.absent]
        self.optional = [name for name in self.entries if name not in self.required]
        self.checks = [
            (name, kind.check, self.entries[name].default is None)
            for name, kind in self.kinds.items()
        ]
        # those that do more than hand on what the constructor checks
        own = {
            name: kind for name, kind in self.kinds.items() if type(kind).parse is not Kind.parse
        }
        self.parsers = {name: kind.parse for name, kind in own.items()}


_form: Callable[[Any], _Form] = cache(_Form)


def check(record: Any) -> None:
    """Check all fields of a frozen dataclass and replace each by what its kind returns."""
    for name, checked, is_optional in _form(type(record)).checks:
        value = getattr(record, name)
        if not (is_optional and value is None):
            parsed = checked(value, name)
            # Most values are kept as they are: to set an attribute of a frozen record is slow.
            if parsed is not value:
                object.__setattr__(record, name, parsed)


class Record:
    """Base of dataclasses: the constructor checks each field declared with `entry`, by its kind."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check(self)


def parse(record: type[T], data: Any, tag: str = "", **more: Any) -> T:
    """Build a `record` from plain data, without their key `tag`, and from the arguments `more`."""
    form = _form(record)
    check_keys(data, [tag, *form.required] if tag else form.required, form.optional)
    values = {**form.absent, **data}
    values.pop(tag, None)
    for name, checked, is_optional in form.checks:
        if is_optional and values.get(name, MISSING) is None:
            checked(None, name)  # data leave it out: null is of no kind, as the schema says
    for name, read in form.parsers.items():
        if name in values:
            with located_at(name):
                values[name] = read(values[name])
    return record(**values, **more)


def plain(record: Any) -> dict[str, Any]:
    """Return a record as plain data, the inverse of `parse`, without fields at their default."""
    form, data = _form(type(record)), {}
    for name, kind in form.kinds.items():
        value, default = getattr(record, name), form.entries[name].default
        if default is MISSING or value != default:
            with located_at(name):
                data[name] = kind.plain(value)
    return data


def properties(record: type[Any]) -> dict[str, Schema]:
    """Return the JSON Schema of each field of a dataclass, by name."""
    schemas, form = {}, _form(record)
    for name, one in form.entries.items():
        description = {"description": one.metadata["meaning"]} if one.metadata["meaning"] else {}
        kind, value = form.kinds[name], one.metadata["absent"]
        if one.default is not MISSING:
            value = None if one.default is None else kind.plain(one.default)
        default = {} if value is MISSING or value is None else {"default": _shown(value)}
        schemas[name] = kind.schema() | default | description
    return schemas


def object_schema(record: type[Any], meaning: str = "") -> Schema:
    """Return the JSON Schema of the plain data of a dataclass; `meaning` describes it."""
    return {
        "type": "object",
        **({"description": meaning} if meaning else {}),
        "properties": properties(record),
        **({"required": list(required)} if (required := _form(record).required) else {}),
        "additionalProperties": False,
    }
