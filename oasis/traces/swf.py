"""The Standard Workload Format of the Parallel Workloads Archive (docs/traces)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from oasis.model.instance import Instance
from oasis.traces.job_table import JobTrace, TraceRow, seconds, show_seconds
from oasis.traces.machine_options import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_job import PlainJob
from oasis.traces.source import Source
from oasis.traces.table import MalformedError, Table, real, refuse_all_malformed, whole

FIELDS = 18
COMMENT = ";"
UNKNOWN = "-1"


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


def read_swf(path: str | os.PathLike[str], options: SwfOptions | None = None) -> Instance:
    """Turn a log in the Standard Workload Format into an instance.

    Parameters
    ----------
    path : path
        Lines of 18 numbers: 1 job, 2 submission, 4 run time, 5 and 8 processors allocated and
        requested, 12 user and 15 queue are used. Lines that begin with ``;`` are comments.
    options : SwfOptions, optional
        The assumptions; all of them are recorded in the metadata.

    Raises
    ------
    InstanceError
        If no row can be used or no job is left.
    ValueError
        If an option is out of its range.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import SwfOptions, read_swf
    >>> rows = '''; Computer: an example
    ... 1 0 10 7200 4 -1 -1 4 7200 -1 1 3 1 -1 1 -1 -1 -1
    ... 2 600 0 3600 -1 -1 -1 8 7200 -1 1 5 1 -1 1 -1 -1 -1
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "log.swf")
    ...     _ = path.write_text(rows)
    ...     instance = read_swf(path, SwfOptions(start="first"))
    >>> [(job.id, job.work(instance.slot_seconds)) for job in instance.jobs]
    [('1', 16), ('2', 16)]
    """
    return SWF.instance(path, SwfOptions() if options is None else options)


def _read(source: Source, options: MachineOptions) -> Table[TraceRow]:
    each = options.processors_per_gpu if isinstance(options, SwfOptions) else 1
    table: Table[TraceRow] = Table()
    for line, text in enumerate(source.lines, start=1):
        if text.lstrip().startswith(COMMENT):
            continue
        try:
            table.rows.append(_row(text.split(), each))
        except MalformedError as fault:
            table.reject(str(fault), line)
    refuse_all_malformed(table, source.name)
    return table


def _row(cells: Sequence[str], each: int) -> TraceRow:
    if not cells:
        raise MalformedError("blank row")
    if len(cells) != FIELDS:
        raise MalformedError(f"expected {FIELDS} numbers")
    processors = cells[4] if cells[4] != UNKNOWN else cells[7]
    took = real(cells[3], "run time", minimum=-1.0)
    if took <= 0:
        raise MalformedError("never ran")
    gpus = -(-whole(processors, "number of processors", 1) // each)
    job = PlainJob(cells[0], real(cells[1], "submission"), took, gpus)
    return TraceRow(job, {"user": cells[11], "queue": cells[14]})


SWF = JobTrace(
    "swf",
    _read,
    seconds,
    "seconds since the log begins",
    show_seconds,
    {"trace": "Standard Workload Format"},
    SwfOptions,
)
