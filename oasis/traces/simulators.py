"""Traces of simulators: Tiresias's table, Gavel's lines, Batsim's workloads (docs/traces)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_instance import TableFormat, table_trace
from oasis.traces.table import (
    ENTRY,
    LARGEST,
    NUMBER,
    Faults,
    MalformedError,
    RowLayout,
    Rows,
    TraceSource,
    cell,
    cells_of,
    entries_of,
    frame_of_entries,
    numbers,
    parse_document,
    read_source,
)

TIRESIAS = table_trace(
    "tiresias",
    "jobs of Tiresias's simulator (NSDI 2019)",
    TableFormat(
        {"id": "job_id", "submitted": "submit_time", "duration": "duration", "gpus": "num_gpu"}
    ),
    looks="a job table of Tiresias's simulator",
    header=("job_id", "num_gpu", "submit_time", "model_name", "duration"),
)

# --- Gavel ----------------------------------------------------------------------------------------

# Gavel's own lines (OSDI 2020), with and without a weight, an SLO and the need for data, and those
# of Shockwave (NSDI 2023), which adds a mode and a duration in seconds.
COLUMNS = (
    *("job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir"),
    *("total_steps", "scale_factor", "priority_weight", "SLO", "arrival_time"),
)
SHORT = (*COLUMNS[:2], "num_steps_arg", "needs_data_dir", *COLUMNS[5:7], COLUMNS[9])
LONG = (*COLUMNS[:7], "mode", *COLUMNS[7:9], "duration", COLUMNS[9])
LINES = {len(columns): columns for columns in (SHORT, COLUMNS, LONG)}
KEY = re.compile(r"\('(.*)', (\d+)\)")
Rates = Mapping[tuple[str, int], float]


@dataclass(frozen=True, slots=True)
class GavelOptions(MachineOptions):
    """Assumptions about a trace of Gavel, which records steps of training and no time."""

    throughputs: str = option(
        "", "Gavel's file of steps per second (JSON), for a trace without durations", reading=True
    )
    worker_type: str = option("v100", "type of worker in that file", reading=True)


def _gavel_rows(
    source: TraceSource, options: GavelOptions
) -> tuple[Rows, dict[str, str], list[str]]:
    columns = LINES.get(source.header.count("\t") + 1, COLUMNS)

    def split(text: str) -> list[str]:
        return [cell.strip() for cell in text.split("\t")]

    faults = Faults()
    rows = Rows(cells_of(source, RowLayout(columns, source.first, split), columns, faults), faults)
    if columns is not LONG:
        rates, cells = _rates(options), rows.cells
        fault = f"no throughput on {options.worker_type}"

        def rate(kind: tuple[str, float]) -> float:
            if kind not in rates:
                raise MalformedError(fault, f"{kind[0]}, {kind[1]:.0f} workers")
            return rates[kind[0], int(kind[1])]

        counts = np.nan_to_num(numbers(rows.texts("scale_factor"))).tolist()
        kinds = list(zip(rows.texts("job_type"), counts, strict=True))
        found = rows.each(kinds, rate, rows.is_good)
        steps = rows.number("total_steps", "total_steps") / np.array(found, dtype=float)
        cells["duration"] = [f"{seconds:.17g}" for seconds in steps.tolist()]
    known = {"submitted": "arrival_time", "duration": "duration", "gpus": "scale_factor"}
    return rows, known, []


def _rates(options: GavelOptions) -> Rates:
    """Steps per second of each kind of job alone on its workers, by their number."""
    if not options.throughputs:
        expected = "expected Gavel's file of throughputs: the trace has steps and no durations"
        raise InstanceError("throughputs", expected)
    document = parse_document(read_source(options.throughputs))
    kinds = document.get(options.worker_type) if isinstance(document, dict) else None
    if not isinstance(kinds, dict):
        known = ", ".join(document) if isinstance(document, dict) else "none"
        raise InstanceError("worker_type", f"expected one of {known:.200}", options.worker_type)
    found = {}
    for name, rates in kinds.items():
        key, rate = KEY.fullmatch(name), rates.get("null") if isinstance(rates, dict) else None
        if key and isinstance(rate, (int, float)) and rate > 0:
            found[key[1], int(key[2])] = float(rate)
    return found


def _is_gavel(lines: list[str], document: Any) -> bool:
    """Whether the first line is of a job: numbers stand where they should."""
    cells = [] if document is not None else lines[0].split("\t")
    columns = LINES.get(len(cells))
    if columns is None:
        return False
    row = dict(zip(columns, cells, strict=True))
    numbers = (row["total_steps"], row["scale_factor"], row["arrival_time"].strip())
    return row["needs_data_dir"] in ("0", "1") and all(map(NUMBER.fullmatch, numbers))


GAVEL = table_trace(
    "gavel",
    "jobs of Gavel's simulator",
    TableFormat(rows=_gavel_rows, gpus=None, name="job-{}", in_seconds=True),
    options=GavelOptions,
    is_table=False,
    looks="a trace of Gavel's simulator",
    finds=_is_gavel,
)

# --- Batsim ---------------------------------------------------------------------------------------

DELAYS = ("delay", "DelayProfile")
SEQUENCES = ("composed", "SequentialCompositionProfile")
DEEPEST = 20  # sequences of sequences
NO_LIMIT = "-1"


@dataclass(frozen=True, slots=True)
class BatsimOptions(MachineOptions):
    """Assumptions about a workload of Batsim, whose resources are read as GPUs."""


def _batsim_rows(
    source: TraceSource, options: BatsimOptions
) -> tuple[Rows, dict[str, str], list[str]]:
    document = parse_document(source)
    profiles = document.get("profiles") if isinstance(document, dict) else None
    if not isinstance(profiles, dict):
        raise InstanceError("profiles", "expected the profiles of a workload of Batsim")
    faults = Faults(ENTRY)
    entries = entries_of(document.get("jobs"), "jobs", "id", faults)
    rows = Rows(frame_of_entries(entries, partial(_batsim_job, profiles=profiles), faults), faults)
    known = {"id": "id", "submitted": "subtime", "duration": "duration", "gpus": "res"}
    return rows, {**known, "owner": "user"}, []


def _batsim_job(job: Mapping[str, Any], profiles: Mapping[str, Any]) -> list[dict[str, str]]:
    duration = _seconds(cell(job, "profile"), profiles, DEEPEST)
    limit = cell(job, "walltime")
    if limit not in ("", NO_LIMIT):  # Batsim ends a job there
        duration = min(duration, _real(limit, "walltime"))
    cells = {name: cell(job, name) for name in ("id", "subtime", "res", "user")}
    return [{**cells, "duration": f"{duration:.17g}"}]


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


BATSIM = table_trace(
    "batsim",
    "workload of Batsim",
    TableFormat(rows=_batsim_rows, gpus=None, in_seconds=True),
    options=BatsimOptions,
    is_table=False,
    looks="a workload of Batsim",
    finds=lambda _, document: (
        isinstance(document, Mapping)
        and "jobs" in document
        and isinstance(document.get("profiles"), Mapping)
    ),
)
