"""Traces of Gavel's simulator: a line for each job, with tabs between (docs/traces)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.traces.documents import parse_document
from oasis.traces.job_table import JobTrace, TraceTable, jobs_frame
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.table import (
    NEVER_RAN,
    NUMBER,
    Faults,
    MalformedError,
    RowLayout,
    Rows,
    TraceSource,
    cells_of,
    read_source,
)
from oasis.traces.times import TraceTimes

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


def _read(source: TraceSource, options: GavelOptions) -> TraceTable:
    columns = LINES.get(source.header.count("\t") + 1, COLUMNS)
    rates = {} if columns is LONG else _rates(options)
    clock = TraceTimes(options, is_dated=False)
    faults = Faults()

    def split(text: str) -> list[str]:
        return [cell.strip() for cell in text.split("\t")]

    layout = RowLayout(columns, source.first, split)
    rows = Rows(cells_of(source, layout, columns, faults), faults)
    times = rows.texts("arrival_time")
    clock.look_at(times)
    submitted = rows.some(clock.column, times, rows.is_good, "arrival_time")
    gpus = rows.number("scale_factor", "scale_factor", 1, whole=True)
    if columns is LONG:
        duration = rows.number("duration", "duration")
    else:
        kinds = list(zip(rows.texts("job_type"), np.nan_to_num(gpus).astype(int), strict=True))
        found = np.array([rates.get((name, int(count)), nan) for name, count in kinds], dtype=float)
        for k in np.flatnonzero(np.isnan(found)):
            kind = f"{kinds[k][0]}, {kinds[k][1]} workers"
            fault = MalformedError(f"no throughput on {options.worker_type}", kind)
            rows.reject(np.arange(len(kinds)) == k, fault)
        duration = rows.number("total_steps", "total_steps") / found
    rows.reject(duration == 0, NEVER_RAN)
    jobs = jobs_frame(
        rows,
        rows.settle(),
        id=[f"job-{line}" for line in rows.lines.tolist()],  # the trace names no jobs
        **{"submitted": submitted, "duration": duration},
        gpus=np.nan_to_num(gpus).astype(np.int64),
    )
    faults.check_usable(len(jobs), source.name, allow_malformed=options.allow_malformed)
    return TraceTable(jobs, faults.malformed, [], clock)


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


GAVEL = JobTrace(
    "gavel",
    _read,
    {"trace": "jobs of Gavel's simulator"},
    GavelOptions,
    is_table=False,
    looks="a trace of Gavel's simulator",
    finds=_is_gavel,
)
