"""Microsoft Philly, 2017 (ATC'19): its own log, or the table distributed with the Sia artifact."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oasis.model.instance import Instance
from oasis.traces.documents import cell, numbered, parse_document
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, option
from oasis.traces.plain_job import PlainJob, ended_as
from oasis.traces.runs import JobRun, add_jobs
from oasis.traces.table import (
    ENTRY,
    NEVER_RAN,
    MalformedError,
    TraceSource,
    TraceTable,
    check_usable,
    parse_rows,
    read_table,
    real,
    whole,
)
from oasis.traces.times import UNIT_SECONDS, Durations, TraceTimes

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
UNKNOWN = ("", "None")  # times of an attempt that were not recorded


@dataclass(frozen=True, slots=True)
class PhillyOptions(MachineOptions):
    """Assumptions about the Philly trace, which records neither machines nor CPUs nor memory.

    Examples
    --------
    >>> from oasis.traces import PhillyOptions
    >>> options = PhillyOptions(min_gpus=4, start="first")
    >>> options.min_gpus, options.max_gpus
    (4, 8)
    >>> PhillyOptions(stride=0)
    Traceback (most recent call last):
        ...
    oasis.model.errors.InstanceError: stride: expected an integer >= 1, got 0
    """

    virtual_cluster: str = option("", "take the jobs of this virtual cluster alone", reading=True)
    user: str = option("", "take the jobs of this user alone", reading=True)
    runs: str = option(
        "joined",
        "how several attempts of one job of Philly's own log are read: joined (one job, with the "
        "work of all its attempts), last or each",
        reading=True,
        choices=RUNS,
    )


def read_philly(path: str | os.PathLike[str], options: PhillyOptions | None = None) -> Instance:
    """Turn the Philly trace into an instance.

    Parameters
    ----------
    path : path
        CSV file with the columns ``timestamp,duration,num_gpus,gpu_time,cluster``, or the JSON
        file ``cluster_job_log`` of the trace itself.
    options : PhillyOptions, optional
        The assumptions; all of them are recorded in the metadata.

    Returns
    -------
    Instance
        ``metadata["malformed"]`` counts the rows that could not be used, by kind.

    Raises
    ------
    InstanceError
        If a column is missing or no job is left.
    ValueError
        If an option is out of its range.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import PhillyOptions, read_philly
    >>> rows = '''timestamp,duration,num_gpus,gpu_time,cluster
    ... 2017-10-09 07:00:00,3600,4,14400,a
    ... 2017-10-09 07:40:00,5400,2,10800,a
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "philly.csv")
    ...     _ = path.write_text(rows)
    ...     instance = read_philly(path, PhillyOptions(start="first"))
    >>> [(job.id, job.arrival, job.work(instance.slot_seconds)) for job in instance.jobs]
    [('philly-2', 0, 8), ('philly-3', 1, 6)]
    """
    return PHILLY.instance(path, PhillyOptions() if options is None else options)


def _read(source: TraceSource, options: PhillyOptions) -> TraceTable[TraceRow]:
    is_log = source.header.lstrip().startswith("[")
    return _read_log(source, options) if is_log else _read_table(source, options)


def _read_table(source: TraceSource, options: PhillyOptions) -> TraceTable[TraceRow]:
    clock, durations = TraceTimes(options, is_dated=True), Durations(options.duration_unit)
    unit = UNIT_SECONDS[options.duration_unit]

    def parse(line: int, row: Mapping[str, str]) -> TraceRow:
        submitted = clock.read(row["timestamp"], "timestamp")
        duration = durations.read(row["duration"], "duration")
        if duration == 0:
            raise MalformedError(NEVER_RAN)
        gpus = whole(row["num_gpus"], "num_gpus", 1)
        # The third number follows from the other two,
        # so columns that were swapped or cut show here.
        total = real(row["gpu_time"], "gpu_time") * unit
        if abs(total - duration * gpus) > 1e-6 * total:
            raise MalformedError("gpu_time is not duration times num_gpus")
        # The trace names no jobs. A line number stays the same whichever rows are left out.
        job = PlainJob(f"philly-{line}", submitted, duration, gpus, row["cluster"])
        return TraceRow(job, {"virtual_cluster": row["cluster"]})

    table = read_table(
        source,
        COLUMNS,
        parse,
        clock=clock,
        time="timestamp",
        allow_malformed=options.allow_malformed,
    )
    durations.question()
    return table


def _read_log(source: TraceSource, options: PhillyOptions) -> TraceTable[TraceRow]:
    """Philly's ``cluster_job_log``: a job has attempts, each with the GPUs of each server."""
    clock = TraceTimes(options, is_dated=True)
    found: TraceTable[list[JobRun]] = TraceTable(unit=ENTRY)
    jobs = list(numbered(parse_document(source), "", "jobid", found))
    clock.look_at(str(job.get("submitted_time") or "") for _, job in jobs)
    parse_rows(found, jobs, lambda number, job: _attempts(number, job, clock), "jobid")
    table: TraceTable[TraceRow] = TraceTable([], found.malformed, [], clock, ENTRY)
    add_jobs(table, found.rows, options.runs)
    check_usable(table, source.name, allow_malformed=options.allow_malformed)
    return table


def _attempts(number: int, job: Mapping[str, Any], clock: TraceTimes) -> list[JobRun]:
    """The runs of a job; one of no time, to be counted by, if nothing was recorded of any."""
    name = job["jobid"]
    submitted = clock.read(cell(job, "submitted_time"), "submitted_time")
    labels = {"virtual_cluster": cell(job, "vc"), "user": cell(job, "user")}
    attempts = job.get("attempts")
    if not isinstance(attempts, list) or not all(isinstance(each, dict) for each in attempts):
        raise MalformedError("bad attempts", expected="a list of objects")
    owner, state = labels["user"] or labels["virtual_cluster"], ended_as(cell(job, "status"))
    runs = []
    for attempt in attempts:
        begin, end = (cell(attempt, key) for key in ("start_time", "end_time"))
        if begin in UNKNOWN:  # an attempt of which nothing was recorded
            continue
        started = clock.read(begin, "start_time")
        ended = None if end in UNKNOWN else clock.read(end, "end_time")
        if ended is not None and ended < started:
            raise MalformedError("end_time is before start_time")
        runs.append(
            JobRun(
                *(name, number, submitted, 0.0 if ended is None else ended - started),
                *(_gpus(attempt), labels, started),
                has_ended=ended is not None,
                owner=owner,
                state=state,
            )
        )
    return runs or [JobRun(name, number, submitted, 0.0, 0, labels, owner=owner)]


def _gpus(attempt: Mapping[str, Any]) -> int:
    """GPUs of an attempt, on all servers."""
    count, detail = 0, attempt.get("detail")
    for server in detail if isinstance(detail, list) else [None]:
        gpus = server.get("gpus") if isinstance(server, dict) else None
        if not isinstance(gpus, list):
            raise MalformedError("bad detail", expected="servers, each with a list of gpus")
        count += len(gpus)
    return count


PHILLY = JobTrace(
    "philly",
    _read,
    {"trace": "Microsoft Philly", "licence": "CC-BY 4.0, msr-fiddle/philly-traces"},
    PhillyOptions,
)
