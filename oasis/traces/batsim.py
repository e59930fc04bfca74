"""Workloads of the simulator Batsim: JSON with jobs and profiles (docs/traces)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oasis.model.errors import InstanceError
from oasis.traces.documents import cell, check_name, numbered, parse_document
from oasis.traces.job_table import JobTrace, TraceTable, frame_of
from oasis.traces.mapping import MachineOptions
from oasis.traces.plain_job import PlainJob
from oasis.traces.table import (
    ENTRY,
    LARGEST,
    NEVER_RAN,
    NUMBER,
    Faults,
    MalformedError,
    TraceSource,
)
from oasis.traces.times import TraceTimes

DELAYS = ("delay", "DelayProfile")
SEQUENCES = ("composed", "SequentialCompositionProfile")
DEEPEST = 20  # sequences of sequences
NO_LIMIT = "-1"


@dataclass(frozen=True, slots=True)
class BatsimOptions(MachineOptions):
    """Assumptions about a workload of Batsim, whose resources are read as GPUs."""


def _read(source: TraceSource, options: BatsimOptions) -> TraceTable:
    document = parse_document(source)
    profiles = document.get("profiles") if isinstance(document, dict) else None
    if not isinstance(profiles, dict):
        raise InstanceError("profiles", "expected the profiles of a workload of Batsim")
    clock = TraceTimes(options, is_dated=False)
    faults = Faults(ENTRY)
    entries = list(numbered(document.get("jobs"), "jobs", "id", faults))
    clock.look_at(str(job.get("subtime", "")) for _, job in entries)
    jobs: dict[str, tuple[int, PlainJob]] = {}
    for number, entry in entries:
        name = entry["id"]
        try:
            check_name(name, jobs, "id")
            jobs[name] = (number, _job(entry, profiles, clock))
        except MalformedError as fault:
            faults.add(fault, number)
    faults.check_usable(len(jobs), source.name, allow_malformed=options.allow_malformed)
    frame = frame_of([job for _, job in jobs.values()], [number for number, _ in jobs.values()])
    return TraceTable(frame, faults.malformed, [], clock)


def _job(job: Mapping[str, Any], profiles: Mapping[str, Any], clock: TraceTimes) -> PlainJob:
    submitted = clock.read(cell(job, "subtime"), "subtime")
    duration = _seconds(cell(job, "profile"), profiles, DEEPEST)
    limit = cell(job, "walltime")
    if limit not in ("", NO_LIMIT):  # Batsim ends a job there
        duration = min(duration, _real(limit, "walltime"))
    if duration == 0:
        raise MalformedError(NEVER_RAN)
    gpus = int(_real(cell(job, "res"), "res", 1.0, whole=True))
    return PlainJob(cell(job, "id"), submitted, duration, gpus, cell(job, "user"))


def _real(text: str, name: str, minimum: float = 0.0, *, whole: bool = False) -> float:
    value = float(text) if NUMBER.fullmatch(text) else -1.0
    if not minimum <= value <= LARGEST or (whole and value != int(value)):
        what = f"a{' whole' if whole else ''} number >= {minimum:g}"
        raise MalformedError(f"bad {name}", expected=what)
    return value


def _seconds(name: str, profiles: Mapping[str, Any], deepest: int) -> float:
    """Duration of a profile; only delays and sequences of them are the same on all machines."""
    profile = profiles.get(name)
    if not isinstance(profile, dict):
        raise MalformedError(f"there is no profile {name!r:.40}")
    kind = cell(profile, "type")
    if kind in DELAYS:
        return _real(cell(profile, "delay"), "delay")
    sequence = profile.get("seq")
    if kind in SEQUENCES and isinstance(sequence, list) and deepest:
        times = int(_real(cell(profile, "repeat") or "1", "repeat", whole=True))
        return times * sum(_seconds(str(part), profiles, deepest - 1) for part in sequence)
    raise MalformedError(f"a profile of type {kind or 'none'} says no duration")


BATSIM = JobTrace(
    "batsim",
    _read,
    {"trace": "workload of Batsim"},
    BatsimOptions,
    is_table=False,
    looks="a workload of Batsim",
    finds=lambda _, document: (
        isinstance(document, Mapping)
        and "jobs" in document
        and isinstance(document.get("profiles"), Mapping)
    ),
)
