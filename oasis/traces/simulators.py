"""Traces that simulators take: SWF logs, Tiresias's, Gavel's and Batsim's (docs/traces)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_instance import known_trace, whole_gpus
from oasis.traces.plain_job import FACTS
from oasis.traces.table import (
    LARGEST,
    NUMBER,
    PART,
    MalformedError,
    Rows,
    TraceSource,
    cell,
    entry_rows,
    numbers,
    read_source,
    rows_of,
)

TIRESIAS = known_trace("tiresias")

# --- Standard Workload Format ---------------------------------------------------------------------

FIELDS, HELD = FACTS["swf"]["fields"], FACTS["swf"]["columns"]["gpus"]
COMMENT, UNKNOWN = ";", "-1"
HAS_COMPLETED, CANCELLED = 1, 5  # statuses
PARTS = range(2, 5)  # of which the last one may have ended or failed


@dataclass(frozen=True, slots=True)
class SwfOptions(MachineOptions):
    """Assumptions about a log of a parallel computer, whose processors are read as GPUs.

    Examples
    --------
    >>> from oasis.traces import SwfOptions
    >>> SwfOptions(processors_per_gpu=16).processors_per_gpu
    16
    """

    processors_per_gpu: int = option(
        1, "processors that are read as one GPU", minimum=1, reading=True
    )
    user: str = option("", "take the jobs of this user's number alone", reading=True)
    queue: str = option("", "take the jobs of this queue's number alone", reading=True)


def _read_swf(source: TraceSource, options: SwfOptions) -> Rows:
    """The lines of the log that are jobs."""
    faults = (f"expected {len(FIELDS)} numbers",) * 2
    rows = rows_of(source, FIELDS, 0, FIELDS, faults=faults, comment=COMMENT)
    frame = rows.cells
    status = rows.number("status", -1, whole=True)
    rows.reject(status > CANCELLED, "bad status")
    # The job has a line of its own, with the time of all its parts.
    rows.reject(np.isin(status, PARTS), PART)
    rows.reject(frame["submission"] == UNKNOWN, "no submission")
    rows.number("wait", -1.0)
    rows.reject((frame["run time"] == UNKNOWN) & (status == HAS_COMPLETED), "no run time")
    frame["run time"] = frame["run time"].replace(UNKNOWN, "0")
    took = rows.number("run time")
    # Processors that were allocated count; what was requested stands in where a log lacks them. A
    # job that was cancelled while it waited need not name processors.
    held = frame["allocated"].where(frame["allocated"] != UNKNOWN, frame["requested"])
    frame[HELD] = held.mask(took == 0, "1")
    gpus = rows.number(HELD, 1, whole=True)
    frame[HELD] = [f"{-(-n // options.processors_per_gpu):.0f}" for n in gpus.tolist()]
    # The number of the group stands in where a log has none of the user.
    owner = frame["user"].mask(frame["user"] == UNKNOWN, frame["group"])
    frame["owner"] = owner.replace(UNKNOWN, "")
    frame["wait"] = frame["wait"].mask(frame["wait"].str.startswith("-"), "")
    frame["status"] = [f"{code:.0f}" for code in status.tolist()]
    return rows


def _is_swf(lines: list[str], document: Any) -> bool:
    """Whether these lines are a log's; half is enough: what is wrong with the others is named."""
    if document is not None:
        return False
    rows = [line.split() for line in lines if not line.lstrip().startswith(COMMENT)]
    if not rows:
        told = r";\s*(Version|Computer|MaxJobs|UnixStartTime)"
        return any(re.match(told, line) for line in lines)
    good = sum(len(row) == len(FIELDS) and all(map(NUMBER.fullmatch, row)) for row in rows)
    return 2 * good >= len(rows)


SWF = known_trace("swf", SwfOptions, _is_swf, read=_read_swf)

# --- Gavel ----------------------------------------------------------------------------------------

LINES = {len(columns): columns for columns in FACTS["gavel"]["lines"]}
KEY = re.compile(r"\('(.*)', (\d+)\)")


@dataclass(frozen=True, slots=True)
class GavelOptions(MachineOptions):
    """Assumptions about a trace of Gavel, which records steps of training and no time."""

    throughputs: str = option(
        "", "Gavel's file of steps per second (JSON), for a trace without durations", reading=True
    )
    worker_type: str = option("v100", "type of worker in that file", reading=True)


def _read_gavel(source: TraceSource, options: GavelOptions) -> Rows:
    """The lines, with durations by the throughput of their kind where they have none."""
    columns = LINES.get(source.header.count("\t") + 1, FACTS["gavel"]["lines"][0])
    rows = rows_of(source, columns, source.first, columns, "\t")
    if "duration" not in columns:
        rates = _rates(options)

        def rate(kind: tuple[str, float]) -> float:
            if kind not in rates:
                shown = f"{kind[0]}, {kind[1]:.0f} workers"
                raise MalformedError(f"no throughput on {options.worker_type}", shown)
            return rates[kind]

        counts = np.nan_to_num(numbers(rows.texts("scale_factor"))).tolist()
        kinds = list(zip(rows.texts("job_type"), counts, strict=True))
        steps = rows.number("total_steps") / np.array(rows.each(kinds, rate), dtype=float)
        rows.cells["duration"] = [f"{seconds:.17g}" for seconds in steps.tolist()]
    return rows


def _rates(options: GavelOptions) -> Mapping[tuple[str, float], float]:
    """Steps per second of each kind of job alone on its workers, by their number."""
    if not options.throughputs:
        expected = "expected Gavel's file of throughputs: the trace has steps and no durations"
        raise InstanceError("throughputs", expected)
    document = read_source(options.throughputs).document()
    kinds = document.get(options.worker_type) if isinstance(document, dict) else None
    if not isinstance(kinds, dict):
        known = ", ".join(document) if isinstance(document, dict) else "none"
        raise InstanceError("worker_type", f"expected one of {known:.200}", options.worker_type)
    found = {}
    for name, rates in kinds.items():
        key, rate = KEY.fullmatch(name), rates.get("null") if isinstance(rates, dict) else None
        if key and isinstance(rate, (int, float)) and rate > 0:
            found[key[1], float(key[2])] = float(rate)
    return found


def _is_gavel(lines: list[str], document: Any) -> bool:
    """Whether the first line is of a job: numbers stand where they should."""
    cells = [] if document is not None else lines[0].split("\t")
    row = dict(zip(LINES.get(len(cells), ()), cells, strict=False))
    counted = (row.get(name, "") for name in ("total_steps", "scale_factor", "arrival_time"))
    return row.get("needs_data_dir") in ("0", "1") and all(
        NUMBER.fullmatch(text.strip()) for text in counted
    )


GAVEL = known_trace("gavel", GavelOptions, _is_gavel, read=_read_gavel, gpus=whole_gpus)

# --- Batsim ---------------------------------------------------------------------------------------

DELAYS = ("delay", "DelayProfile")
SEQUENCES = ("composed", "SequentialCompositionProfile")
DEEPEST = 20  # sequences of sequences
NO_LIMIT = "-1"


def _read_batsim(source: TraceSource, _: MachineOptions) -> Rows:
    """The jobs, with the durations of their profiles."""
    document = source.document()
    profiles = document.get("profiles") if isinstance(document, dict) else None
    if not isinstance(profiles, dict):
        raise InstanceError("profiles", "expected the profiles of a workload of Batsim")

    def read(job: Mapping[str, Any]) -> list[dict[str, str]]:
        duration = _seconds(cell(job, "profile"), profiles, DEEPEST)
        limit = cell(job, "walltime")
        if limit not in ("", NO_LIMIT):  # Batsim ends a job there
            duration = min(duration, _real(limit, "walltime"))
        cells = {name: cell(job, name) for name in ("id", "subtime", "res", "user")}
        return [{**cells, "duration": f"{duration:.17g}"}]

    return entry_rows(source, document.get("jobs"), "jobs", read)


def _real(text: str, name: str) -> float:
    value = float(text) if NUMBER.fullmatch(text) else -1.0
    if not 0 <= value <= LARGEST:
        raise MalformedError(f"bad {name}", expected="a number >= 0")
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
        times = int(_real(cell(profile, "repeat") or "1", "repeat"))
        return times * sum(_seconds(str(part), profiles, deepest - 1) for part in sequence)
    raise MalformedError(f"a profile of type {kind or 'none'} says no duration")


def _is_batsim(lines: list[str], document: Any) -> bool:
    """Whether a document is a workload: jobs, and profiles by their names."""
    is_object = isinstance(document, Mapping) and "jobs" in document
    return is_object and isinstance(document.get("profiles"), Mapping)


BATSIM = known_trace("batsim", MachineOptions, _is_batsim, read=_read_batsim, gpus=whole_gpus)
