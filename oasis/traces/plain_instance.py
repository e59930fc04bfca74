"""Instances from a trace in the simplest format: ``id,submitted,duration,gpus``."""

from __future__ import annotations

import os
from dataclasses import dataclass

from oasis.model.instance import Instance
from oasis.traces.job_table import JobTrace, TraceRow, seconds, show_seconds
from oasis.traces.machine_options import MachineOptions
from oasis.traces.plain import read_plain_rows
from oasis.traces.source import Source
from oasis.traces.table import Table


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
        CSV file with the columns ``id,submitted,duration,gpus``, as for `read_plain`.
    options : PlainOptions, optional
        The assumptions; all of them are recorded in the metadata.

    Raises
    ------
    InstanceError
        Naming the row and the column, or if no job is left.
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
    return read_plain_rows(source)


PLAIN = JobTrace(
    "plain",
    _read,
    seconds,
    "a time as in the column submitted",
    show_seconds,
    {"trace": "plain jobs"},
)
