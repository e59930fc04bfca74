"""Assumptions of importers about jobs, machines and time, one field each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, make_dataclass
from typing import Any

from oasis.model.errors import InputError, InstanceError
from oasis.model.records import Flag, Kind, Number, Whole, check
from oasis.traces.plain_job import FACTS

UNIT_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0, "d": 86400.0}
UNIT_WORDS = {"s": "seconds", "ms": "milliseconds", "min": "minutes", "h": "hours", "d": "days"}
# Words, also at the end of a column's name -> the unit of its numbers.
UNITS: Mapping[str, str] = {word: unit for unit in FACTS["units"] for word in FACTS["units"][unit]}
ORDERED = (
    ("min_gpus", "max_gpus"),
    ("min_duration", "max_duration"),
    ("min_priority", "max_priority"),
    ("arrival_slots", "horizon"),
    # Constraint (7) has no solution where a worker sends more than a parameter server takes.
    ("worker_bandwidth_gbps", "ps_bandwidth_gbps"),
)


@dataclass(frozen=True, slots=True)
class Word(Kind):
    """A text, one of the choices if there are such."""

    choices: tuple[str, ...] = ()

    def check(self, value: Any, path: str) -> str:
        if not isinstance(value, str):
            raise InstanceError(path, "expected text", value)
        if self.choices and value not in self.choices:
            expected = f"expected one of {', '.join(filter(None, self.choices))}, got {value!r}"
            raise InstanceError(path, expected)
        return value


def _field(fact: Mapping[str, Any]) -> Any:
    """A field of a class of options; all commands have those about `reading`."""
    fact = {"minimum": 0, "above": False, "choices": [], "reading": True, **fact}
    kinds = {
        **{bool: Flag(), str: Word(tuple(fact["choices"])), int: Whole(fact["minimum"])},
        float: Number(fact["minimum"], fact["above"]),
    }
    entry = {"kind": kinds[type(fact["default"])], "meaning": fact["doc"], "absent": MISSING}
    told = {"help": fact["doc"], "reading": fact["reading"]}
    return field(default=fact["default"], metadata={**told, **entry})


def options_of_toml(name: str, *bases: type) -> Any:
    """A class of options by its entry in formats.toml."""
    facts = {key: fact for key, fact in FACTS["options"][name].items() if key != "doc"}
    entries = [(k, type(fact["default"]).__name__, _field(fact)) for k, fact in facts.items()]
    space = {"__doc__": FACTS["options"][name]["doc"].strip(), "__module__": "oasis.traces"}
    return make_dataclass(name, entries, bases=bases, namespace=space, frozen=True, slots=True)


_Checked: Any = options_of_toml("TraceOptions")


@dataclass(frozen=True)
class TraceOptions(_Checked):  # type: ignore[misc]
    """Assumptions shared by the importers; docs/traces gives the formula behind each."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name in ("time_unit", "duration_unit"):
            value = getattr(self, name)
            object.__setattr__(self, name, UNITS.get(str(value).lower(), value))
        check(self)
        if self.insensitive + self.critical > 1:
            raise InputError("critical", "expected insensitive + critical <= 1")
        for low, high in ORDERED:
            if getattr(self, low) > getattr(self, high):
                raise InputError(low, f"expected at most {high} ({getattr(self, high):g})")
