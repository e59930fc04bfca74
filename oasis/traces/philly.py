"""Microsoft Philly, 2017 (ATC'19), in the form distributed with the Sia artifact (docs/traces)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from oasis.model.instance import Instance
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_job import PlainJob
from oasis.traces.table import (
    NEVER_RAN,
    MalformedError,
    TraceSource,
    TraceTable,
    read_table,
    real,
    whole,
)
from oasis.traces.times import UNIT_SECONDS, Durations, TraceTimes

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


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


def read_philly(path: str | os.PathLike[str], options: PhillyOptions | None = None) -> Instance:
    """Turn the Philly trace into an instance.

    Parameters
    ----------
    path : path
        CSV file with the columns ``timestamp,duration,num_gpus,gpu_time,cluster``.
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


PHILLY = JobTrace(
    "philly",
    _read,
    {"trace": "Microsoft Philly", "licence": "CC-BY 4.0, msr-fiddle/philly-traces"},
    PhillyOptions,
)
