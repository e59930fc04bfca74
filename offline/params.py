"""Parameters of methods: named, documented, checked, and plain data in every result.

Each method has one frozen dataclass of them, and those of its parts are nested in it. What is
called a limit is in seconds, or in units of work where the solve is limited in work
(`work_limit`); a share is a part of something, from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints

from oasis.model.errors import InputError, located_at


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a parameter may take."""

    least: float
    most: float = math.inf
    is_integer: bool = False

    def __str__(self) -> str:
        kind = "a whole number" if self.is_integer else "a number"
        if math.isinf(self.most):
            return f"{kind} >= {self.least:g}"
        return f"{kind} from {self.least:g} to {self.most:g}"

    def allows(self, value: object) -> bool:
        """Return whether `value` is a number in the range; true and false are not numbers."""
        kinds = (int,) if self.is_integer else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        return math.isfinite(value) and self.least <= value <= self.most


Share = Annotated[float, Range(0.0, 1.0)]
Amount = Annotated[float, Range(0.0)]
Count = Annotated[int, Range(0, is_integer=True)]
Number = Annotated[int, Range(1, is_integer=True)]


@dataclass(frozen=True, slots=True)
class Params:
    """Base of parameters of methods: checks, and conversion to and from plain data.

    Raises
    ------
    InputError
        For a value that its field does not allow, by the name of the field.

    Examples
    --------
    >>> from offline import CompactParams
    >>> CompactParams.from_dict({"presolve": False}).to_dict()
    {'presolve': False}
    >>> CompactParams.from_dict({"presolve": "off"})
    Traceback (most recent call last):
    oasis.model.errors.InputError: presolve: expected true or false, got 'off'
    """

    def __post_init__(self) -> None:
        hints = hints_of(type(self))
        for field in fields(self):
            _check(field.name, hints[field.name], _value(self, field))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, nested as the parameters are."""
        return {field.name: _plain(_value(self, field)) for field in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild parameters from `to_dict`; what is left out has its default.

        Raises
        ------
        InputError
            For an unknown name, or a value that is not allowed.
        """
        return cls().changed(data)

    def changed(self, data: Mapping[str, Any]) -> Self:
        """The same but for what `data` says, nested as the parameters are; see `from_dict`."""
        names = [field.name for field in fields(self)]
        if not isinstance(data, Mapping):
            raise InputError("", f"expected parameters by name: {', '.join(names)}", data)
        new = {}
        for name, value in data.items():
            if name not in names:
                expected = f"one of {', '.join(names)}" if names else "none, for there are none"
                raise InputError(name, f"no such parameter; expected {expected}")
            with located_at(name):
                new[name] = _rebuilt(getattr(self, name), value)
        return replace(self, **new)


def hints_of(kind: type[Params]) -> dict[str, Any]:
    """Types of the fields, in their order, with the range that each number has."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def _value(params: Params, field: Any) -> Any:
    return getattr(params, field.name)


def _check(name: str, hint: Any, value: Any) -> None:
    if get_origin(hint) is Annotated:
        allowed: Range = get_args(hint)[1]
        if not allowed.allows(value):
            raise InputError(name, f"expected {allowed}", value)
    elif get_origin(hint) is tuple:
        if not isinstance(value, tuple):
            raise InputError(name, "expected several numbers", value)
        for entry in value:
            _check(name, get_args(hint)[0], entry)
    elif not isinstance(value, hint):
        expected = "true or false" if hint is bool else hint.__name__
        raise InputError(name, f"expected {expected}", value)


def _plain(value: Any) -> Any:
    if isinstance(value, Params):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


def _rebuilt(default: Any, value: Any) -> Any:
    """A value as plain data has it, as its field does."""
    if isinstance(default, Params) and not isinstance(value, Params):
        return default.changed(value)
    return tuple(value) if isinstance(default, tuple) and isinstance(value, list) else value
