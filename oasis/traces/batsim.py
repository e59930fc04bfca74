"""Workloads of the simulator Batsim: JSON with jobs and profiles (docs/traces)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oasis.model.errors import InstanceError
from oasis.traces.documents import cell, numbered, parse_document
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import MachineOptions
from oasis.traces.plain_job import PlainJob
from oasis.traces.table import (
    ENTRY,
    NEVER_RAN,
    MalformedError,
    TraceSource,
    TraceTable,
    check_usable,
    parse_rows,
    real,
    whole,
)
from oasis.traces.times import TraceTimes

DELAYS = ("delay", "DelayProfile")
SEQUENCES = ("composed", "SequentialCompositionProfile")
DEEPEST = 20  # sequences of sequences
NO_LIMIT = "-1"


@dataclass(frozen=True, slots=True)
class BatsimOptions(MachineOptions):
    """Assumptions about a workload of Batsim, whose resources are read as GPUs.

    Examples
    --------
    >>> from oasis.traces.batsim import BatsimOptions
    >>> BatsimOptions(min_gpus=1).min_gpus
    1
    """


def _read(source: TraceSource, options: BatsimOptions) -> TraceTable[TraceRow]:
    document = parse_document(source)
    profiles = document.get("profiles") if isinstance(document, dict) else None
    if not isinstance(profiles, dict):
        raise InstanceError("profiles", "expected the profiles of a workload of Batsim")
    clock = TraceTimes(options, is_dated=False)
    table: TraceTable[TraceRow] = TraceTable(clock=clock, unit=ENTRY)
    jobs = list(numbered(document.get("jobs"), "jobs", "id", table))
    clock.look_at(str(job.get("subtime", "")) for _, job in jobs)
    parse_rows(table, jobs, lambda _, job: TraceRow(_job(job, profiles, clock), {}), "id")
    check_usable(table, source.name, allow_malformed=options.allow_malformed)
    return table


def _job(job: Mapping[str, Any], profiles: Mapping[str, Any], clock: TraceTimes) -> PlainJob:
    submitted = clock.read(cell(job, "subtime"), "subtime")
    duration = _seconds(cell(job, "profile"), profiles, DEEPEST)
    limit = cell(job, "walltime")
    if limit not in ("", NO_LIMIT):  # Batsim ends a job there
        duration = min(duration, real(limit, "walltime"))
    if duration == 0:
        raise MalformedError(NEVER_RAN)
    gpus = whole(cell(job, "res"), "res", 1)
    return PlainJob(cell(job, "id"), submitted, duration, gpus, cell(job, "user"))


def _seconds(name: str, profiles: Mapping[str, Any], deepest: int) -> float:
    """Duration of a profile; only delays and sequences of them are the same on all machines."""
    profile = profiles.get(name)
    if not isinstance(profile, dict):
        raise MalformedError(f"there is no profile {name!r:.40}")
    kind = cell(profile, "type")
    if kind in DELAYS:
        return real(cell(profile, "delay"), "delay")
    sequence = profile.get("seq")
    if kind in SEQUENCES and isinstance(sequence, list) and deepest:
        times = whole(cell(profile, "repeat") or "1", "repeat")
        return times * sum(_seconds(str(part), profiles, deepest - 1) for part in sequence)
    raise MalformedError(f"a profile of type {kind or 'none'} says no duration")


BATSIM = JobTrace("batsim", _read, {"trace": "workload of Batsim"}, BatsimOptions)
