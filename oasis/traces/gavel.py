"""Traces of Gavel's simulator: a line for each job, with tabs between (docs/traces)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from oasis.model.errors import InstanceError
from oasis.traces.documents import parse_document
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_job import PlainJob
from oasis.traces.table import (
    NEVER_RAN,
    MalformedError,
    RowLayout,
    TraceSource,
    TraceTable,
    read_source,
    read_table,
    real,
    whole,
)
from oasis.traces.times import TraceTimes

# Gavel's own lines (OSDI 2020), and those of Shockwave (NSDI 2023), which adds a mode and a
# duration in seconds.
COLUMNS = (
    *("job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir"),
    *("total_steps", "scale_factor", "priority_weight", "SLO", "arrival_time"),
)
LONG = (*COLUMNS[:7], "mode", *COLUMNS[7:9], "duration", COLUMNS[9])
KEY = re.compile(r"\('(.*)', (\d+)\)")
Rates = Mapping[tuple[str, int], float]


@dataclass(frozen=True, slots=True)
class GavelOptions(MachineOptions):
    """Assumptions about a trace of Gavel, which records steps of training and no time.

    Examples
    --------
    >>> from oasis.traces.gavel import GavelOptions
    >>> GavelOptions(worker_type="p100").worker_type
    'p100'
    """

    throughputs: str = option(
        "", "Gavel's file of steps per second (JSON), for a trace without durations", reading=True
    )
    worker_type: str = option("v100", "type of worker in that file", reading=True)


def _read(source: TraceSource, options: GavelOptions) -> TraceTable[TraceRow]:
    columns = LONG if source.header.count("\t") + 1 == len(LONG) else COLUMNS
    rates = {} if columns is LONG else _rates(options)
    clock = TraceTimes(options, is_dated=False)

    def parse(line: int, row: Mapping[str, str]) -> TraceRow:
        submitted = clock.read(row["arrival_time"], "arrival_time")
        gpus = whole(row["scale_factor"], "scale_factor", 1)
        if columns is LONG:
            duration = real(row["duration"], "duration")
        else:
            rate = rates.get((row["job_type"], gpus))
            if rate is None:
                kind = f"{row['job_type']}, {gpus} workers"
                raise MalformedError(f"no throughput on {options.worker_type}", kind)
            duration = real(row["total_steps"], "total_steps") / rate
        if duration == 0:
            raise MalformedError(NEVER_RAN)
        # The trace names no jobs.
        return TraceRow(PlainJob(f"job-{line}", submitted, duration, gpus), {})

    def split(text: str) -> list[str]:
        return [cell.strip() for cell in text.split("\t")]

    return read_table(
        source,
        columns,
        parse,
        layout=RowLayout(columns, source.first, split),
        clock=clock,
        time="arrival_time",
        allow_malformed=options.allow_malformed,
    )


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


GAVEL = JobTrace("gavel", _read, {"trace": "jobs of Gavel's simulator"}, GavelOptions)
