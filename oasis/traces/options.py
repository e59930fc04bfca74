"""Assumptions of importers about jobs, machines and time, one field each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field
from typing import Any

from oasis.model.errors import InputError, InstanceError
from oasis.model.records import Flag, Kind, Number, Whole, check

KEEP = ("spread", "largest", "first")
PARTS = ("whole", "leave-out")
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


def option(
    default: Any,
    doc: str,
    *,
    minimum: float = 0,
    above: bool = False,
    reading: bool = False,
    choices: Sequence[str] = (),
) -> Any:
    """A field with a line of help and limits; all commands have those about `reading`."""
    number = Number(minimum, above)
    kinds = {bool: Flag(), int: Whole(int(minimum)), float: number, str: Word(tuple(choices))}
    entry = {"kind": kinds[type(default)], "meaning": doc, "absent": MISSING}
    return field(default=default, metadata={"help": doc, "reading": reading, **entry})


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Assumptions shared by the importers; docs/traces gives the formula behind each."""

    slot_seconds: float = option(1800.0, "length of a slot in seconds", above=True)
    horizon: int = option(14, "number of slots T", minimum=1)
    arrival_slots: int = option(12, "length of the window in slots", minimum=1)
    start: str = option("busiest", "where the window begins: busiest, first or a time of the trace")
    stride: int = option(1, "take every n-th job of the window", minimum=1)
    max_jobs: int = option(20, "most jobs to take", minimum=1)
    keep: str = option(
        "spread", "which jobs max_jobs keeps: spread (evenly), largest or first", choices=KEEP
    )
    min_gpus: int = option(1, "leave out jobs with fewer GPUs")
    max_gpus: int = option(8, "leave out jobs with more GPUs")
    min_duration: float = option(1800.0, "leave out jobs that ran shorter, in seconds")
    max_duration: float = option(10800.0, "leave out jobs that ran longer, in seconds")
    elasticity: float = option(
        2.0, "most workers at once, as a multiple of the recorded ones", above=True
    )
    epochs: int = option(10, "most epochs of a job", minimum=1)
    minibatch_seconds: float = option(8.0, "least time to train one mini-batch", above=True)
    gradient_mb: float = option(100.0, "gradients of a job in MB; 0: no parameter servers")
    worker_bandwidth_gbps: float = option(1.0, "bandwidth reserved by a worker", above=True)
    ps_bandwidth_gbps: float = option(5.0, "bandwidth reserved by a parameter server", above=True)
    ps_cpus: float = option(2.0, "CPU cores of a parameter server")
    ps_memory_gb: float = option(8.0, "memory of a parameter server in GB")
    server_bandwidth_gbps: float = option(20.0, "bandwidth of a machine in Gbit/s")
    target_factor: float = option(1.5, "target completion, as a multiple of the recorded duration")
    min_priority: float = option(1.0, "lower end of the range of gamma1")
    max_priority: float = option(100.0, "upper end of the range of gamma1")
    insensitive: float = option(0.10, "share of time-insensitive jobs")
    critical: float = option(0.35, "share of time-critical jobs; the others are time-sensitive")
    seed: int = option(0, "seed of the priorities and decays, which no trace records")
    time_format: str = option(
        "", "how the file writes times, as in Python's strptime: %d/%m/%Y %H:%M", reading=True
    )
    time_zone: str = option("", "zone of times that name none, such as Europe/Berlin", reading=True)
    any_year: bool = option(False, "take times outside the years 1990 to 2100 too", reading=True)
    time_unit: str = option(
        "",
        "unit of times that are numbers since the trace began: s, ms, min, h or d",
        reading=True,
        choices=tuple(UNIT_SECONDS),
    )
    duration_unit: str = option(
        "",
        "unit of durations that are numbers: s, ms, min, h or d",
        reading=True,
        choices=tuple(UNIT_SECONDS),
    )
    parts: str = option(
        "whole",
        "jobs with parts of GPUs (MIG, shards, 0.5): whole (each part counts as a GPU), leave-out",
        reading=True,
        choices=PARTS,
    )
    cpu_jobs: bool = option(
        False,
        "keep jobs without GPUs: each holds one GPU in a replay, and CPUs and memory alone in an "
        "instance or a workload",
        reading=True,
    )
    allow_malformed: bool = option(
        False, "go on even if more than half of the rows cannot be used", reading=True
    )

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
