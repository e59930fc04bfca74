"""Assumptions of importers about jobs, machines and time, one field each."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from typing import Any

from oasis.model.errors import InputError, InstanceError
from oasis.model.records import Flag, Kind, Number, Whole, check
from oasis.traces.plain_job import FACTS

UNIT_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0, "d": 86400.0}
UNIT_WORDS = {"s": "seconds", "ms": "milliseconds", "min": "minutes", "h": "hours", "d": "days"}
UNITS = {  # words, also at the end of a column's name -> the unit of its numbers
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "sekunden"), "s"),
    **dict.fromkeys(("ms", "millis", "msec", "milliseconds", "millisekunden"), "ms"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "minuten"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "std", "stunden"), "h"),
    **dict.fromkeys(("d", "day", "days", "tagen"), "d"),
}
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


def option(owner: str, name: str) -> Any:
    """A field of a class of options, by its facts; all commands have those about `reading`."""
    fact = {"minimum": 0, "above": False, "choices": [], **FACTS["options"][owner][name]}
    kinds = {
        **{bool: Flag(), str: Word(tuple(fact["choices"])), int: Whole(fact["minimum"])},
        float: Number(fact["minimum"], fact["above"]),
    }
    entry = {"kind": kinds[type(fact["default"])], "meaning": fact["doc"], "absent": MISSING}
    told = {"help": fact["doc"], "reading": fact.get("reading", True)}
    return field(default=fact["default"], metadata={**told, **entry})


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Assumptions shared by the importers; docs/traces gives the formula behind each."""

    slot_seconds: float = option("TraceOptions", "slot_seconds")
    horizon: int = option("TraceOptions", "horizon")
    arrival_slots: int = option("TraceOptions", "arrival_slots")
    start: str = option("TraceOptions", "start")
    stride: int = option("TraceOptions", "stride")
    max_jobs: int = option("TraceOptions", "max_jobs")
    keep: str = option("TraceOptions", "keep")
    min_gpus: int = option("TraceOptions", "min_gpus")
    max_gpus: int = option("TraceOptions", "max_gpus")
    min_duration: float = option("TraceOptions", "min_duration")
    max_duration: float = option("TraceOptions", "max_duration")
    elasticity: float = option("TraceOptions", "elasticity")
    epochs: int = option("TraceOptions", "epochs")
    minibatch_seconds: float = option("TraceOptions", "minibatch_seconds")
    gradient_mb: float = option("TraceOptions", "gradient_mb")
    worker_bandwidth_gbps: float = option("TraceOptions", "worker_bandwidth_gbps")
    ps_bandwidth_gbps: float = option("TraceOptions", "ps_bandwidth_gbps")
    ps_cpus: float = option("TraceOptions", "ps_cpus")
    ps_memory_gb: float = option("TraceOptions", "ps_memory_gb")
    server_bandwidth_gbps: float = option("TraceOptions", "server_bandwidth_gbps")
    target_factor: float = option("TraceOptions", "target_factor")
    min_priority: float = option("TraceOptions", "min_priority")
    max_priority: float = option("TraceOptions", "max_priority")
    insensitive: float = option("TraceOptions", "insensitive")
    critical: float = option("TraceOptions", "critical")
    seed: int = option("TraceOptions", "seed")
    time_format: str = option("TraceOptions", "time_format")
    time_zone: str = option("TraceOptions", "time_zone")
    any_year: bool = option("TraceOptions", "any_year")
    time_unit: str = option("TraceOptions", "time_unit")
    duration_unit: str = option("TraceOptions", "duration_unit")
    parts: str = option("TraceOptions", "parts")
    cpu_jobs: bool = option("TraceOptions", "cpu_jobs")
    allow_malformed: bool = option("TraceOptions", "allow_malformed")

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
