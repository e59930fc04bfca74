"""Microsoft Philly, 2017 (ATC'19): its own log, or the table distributed with the Sia artifact."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.traces.documents import cell, check_name, numbered, parse_document
from oasis.traces.job_table import JobTrace, TraceTable
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, UNIT_SECONDS, option
from oasis.traces.plain_instance import TableFormat, read_table
from oasis.traces.plain_job import ended_as
from oasis.traces.runs import JobRun, jobs_of_runs
from oasis.traces.table import (
    ENTRY,
    Faults,
    MalformedError,
    Rows,
    TraceSource,
    check_header,
    csv_cells,
)
from oasis.traces.times import TraceTimes

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


def _check(rows: Rows, duration: FloatArray, gpus: FloatArray, options: PhillyOptions) -> None:
    """Find columns that were swapped or cut: the third number follows from the other two."""
    total = rows.number("gpu_time", "gpu_time") * UNIT_SECONDS[options.duration_unit]
    off = np.abs(total - duration * gpus) > 1e-6 * total
    rows.reject(off, "gpu_time is not duration times num_gpus")


# The table names no jobs. A line number stays the same whichever rows are left out.
TABLE = TableFormat(
    {
        **{"submitted": "timestamp", "duration": "duration", "gpus": "num_gpus"},
        **{"owner": "cluster", "virtual_cluster": "cluster"},
    },
    is_dated=True,
    gpus=None,
    name="philly-{}",
    more=("gpu_time",),
    check=_check,
)


def _read(source: TraceSource, options: PhillyOptions) -> TraceTable:
    """Read the table, or ``cluster_job_log``: a job has attempts with the GPUs of each server."""
    if not source.header.lstrip().startswith("["):
        check_header(csv_cells(source.header), COLUMNS, source.name)
        return read_table(TABLE, source, options)
    clock, faults = TraceTimes(options, is_dated=True), Faults(ENTRY)
    jobs = list(numbered(parse_document(source), "", "jobid", faults))
    clock.look_at(str(job.get("submitted_time") or "") for _, job in jobs)
    found: dict[str, list[JobRun]] = {}
    for number, job in jobs:
        name = job["jobid"]
        try:
            check_name(name, found, "jobid")
            found[name] = _attempts(number, job, clock)
        except MalformedError as fault:
            faults.add(fault, number)
    frame, notes = jobs_of_runs(found.values(), options.runs, faults)
    faults.check_usable(len(frame), source.name, allow_malformed=options.allow_malformed)
    return TraceTable(frame, faults.malformed, notes, clock)


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


def _is_log(lines: list[str], document: Any) -> bool:
    """Whether a document is ``cluster_job_log``."""
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, Mapping) and {"jobid", "attempts"} <= set(first)


PHILLY = JobTrace(
    "philly",
    _read,
    {"trace": "Microsoft Philly", "licence": "CC-BY 4.0, msr-fiddle/philly-traces"},
    PhillyOptions,
    looks="a CSV file in the format of the Philly trace",
    header=COLUMNS,
    finds=_is_log,
)
