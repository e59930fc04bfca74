"""Instances from a trace in the simplest format: ``id,submitted,duration,gpus``."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from oasis.model.instance import Instance
from oasis.traces.job_table import NEVER_RAN, JobTrace, TraceRow, seconds, show_seconds
from oasis.traces.machine_options import MachineOptions
from oasis.traces.plain_job import PlainJob
from oasis.traces.source import Source
from oasis.traces.table import MalformedError, Table, read_table, real, whole

COLUMNS = ("id", "submitted", "duration", "gpus")


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
        CSV file with the columns ``id,submitted,duration,gpus``, as for `read_plain`. A row that
        cannot be used is left out and counted, as in every format.
    options : PlainOptions, optional
        The assumptions; all of them are recorded in the metadata.

    Raises
    ------
    InstanceError
        If a column is missing, no row can be used or no job is left.
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


def _read(source: Source, _: MachineOptions) -> Table[TraceRow]:
    return read_table(source, COLUMNS, _row, key="id")


def _row(line: int, row: Mapping[str, str]) -> TraceRow:
    submitted = real(row["submitted"], "submitted", minimum=-math.inf)
    duration = real(row["duration"], "duration")
    if duration == 0:
        raise MalformedError(NEVER_RAN)
    gpus = whole(row["gpus"], "gpus")
    return TraceRow(PlainJob(row["id"], submitted, duration, gpus, row.get("owner", "")), {})


PLAIN = JobTrace(
    "plain",
    _read,
    seconds,
    "a time as in the column submitted",
    show_seconds,
    {"trace": "plain jobs"},
    PlainOptions,
)
