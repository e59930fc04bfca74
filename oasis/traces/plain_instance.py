"""Instances from a trace in the simplest format: ``id,submitted,duration,gpus``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from oasis.model.instance import Instance
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import MachineOptions
from oasis.traces.plain_job import PlainJob
from oasis.traces.table import (
    NEVER_RAN,
    MalformedError,
    TraceSource,
    TraceTable,
    read_header,
    read_table,
    whole,
)
from oasis.traces.times import Durations, TraceTimes

COLUMNS = ("id", "submitted", "gpus")
DURATION, RUN = "duration", ("start", "end")  # of a job, or else when it began and ended


@dataclass(frozen=True, slots=True)
class PlainOptions(MachineOptions):
    """Assumptions about a trace that records a submission, a duration and GPUs.

    Examples
    --------
    >>> from oasis.traces import PlainOptions
    >>> PlainOptions(min_gpus=1, horizon=24).horizon
    24
    """


def read_plain_instance(
    path: str | os.PathLike[str], options: PlainOptions | None = None
) -> Instance:
    r"""Turn a trace of plain jobs into an instance.

    Parameters
    ----------
    path : path
        CSV file with the columns ``id,submitted,duration,gpus``, as for `read_plain`; in place of
        ``duration`` there may be ``start`` and ``end``. A row that cannot be used is left out and
        counted, as in every format.
    options : PlainOptions, optional
        The assumptions; all of them are recorded in the metadata.

    Raises
    ------
    InstanceError
        If a column is missing, more than half of the rows cannot be used or no job is left.
    ValueError
        If an option is out of its range.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import PlainOptions, read_plain_instance
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.csv")
    ...     _ = path.write_text("id,submitted,duration,gpus\na,100,7200,4\nb,1900,3600,2\n")
    ...     instance = read_plain_instance(path, PlainOptions(start="first"))
    >>> [(job.id, job.arrival) for job in instance.jobs]
    [('a', 0), ('b', 1)]
    """
    return PLAIN.instance(path, PlainOptions() if options is None else options)


def _read(source: TraceSource, options: PlainOptions) -> TraceTable[TraceRow]:
    clock, durations = TraceTimes(options, is_dated=False), Durations(options.duration_unit)
    header = read_header(source)
    # A duration that is written down goes before the difference of two times.
    has_run = DURATION not in header and set(RUN) <= set(header)

    def parse(line: int, row: Mapping[str, str]) -> TraceRow:
        submitted = clock.read(row["submitted"], "submitted")
        started = ended = None
        if has_run:
            started, ended = clock.read(row["start"], "start"), clock.read(row["end"], "end")
            duration = ended - started
            if duration < 0:
                raise MalformedError("end is before start")
        else:
            duration = durations.read(row[DURATION], DURATION)
        if duration == 0:
            raise MalformedError(NEVER_RAN)
        gpus, owner = whole(row["gpus"], "gpus"), row.get("owner", "")
        return TraceRow(PlainJob(row["id"], submitted, duration, gpus, owner, started, ended), {})

    table = read_table(
        source,
        (*COLUMNS, *(() if has_run else (DURATION,))),
        parse,
        key="id",
        clock=clock,
        time="submitted",
        allow_malformed=options.allow_malformed,
    )
    durations.question()
    return table


PLAIN = JobTrace("plain", _read, {"trace": "plain jobs"}, PlainOptions)
