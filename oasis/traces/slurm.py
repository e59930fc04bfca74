"""Slurm's accounting, as ``sacct --parsable2`` prints it (docs/traces)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.machine_options import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_job import PlainJob
from oasis.traces.source import Source
from oasis.traces.table import MalformedError, Table, read_table, real, refuse_all_malformed
from oasis.traces.times import elapsed_seconds, submission_time

NAMES = ("JobID", "JobIDRaw")
COLUMNS = ("Submit",)
DURATIONS = ("ElapsedRaw", "Elapsed")
RESOURCES = ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES")
LABELS = {"user": "User", "partition": "Partition", "qos": "QOS"}  # option -> column
UNFINISHED = ("PENDING", "RUNNING", "REQUEUED", "RESIZING", "SUSPENDED")
STEP = "step of a job"  # rows such as 17.batch, which are part of another
GPUS = re.compile(r"(?:gres/)?gpu(?P<kind>:[^=,:]+)?[=:](?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class SlurmOptions(MachineOptions):
    """Assumptions about the jobs of a Slurm cluster.

    Examples
    --------
    >>> from oasis.traces import SlurmOptions
    >>> SlurmOptions(partition="gpu", min_gpus=1).partition
    'gpu'
    """

    user: str = option("", "take the jobs of this user alone", reading=True)
    partition: str = option("", "take the jobs of this partition alone", reading=True)
    qos: str = option("", "take the jobs of this quality of service alone", reading=True)


def read_slurm(path: str | os.PathLike[str], options: SlurmOptions | None = None) -> Instance:
    """Turn what ``sacct --parsable2`` prints into an instance.

    Parameters
    ----------
    path : path
        A table with ``|`` between columns: ``JobID`` or ``JobIDRaw``, ``Submit``, one of
        ``ElapsedRaw`` and ``Elapsed``, one of ``AllocTRES``, ``ReqTRES``, ``AllocGRES`` and
        ``ReqGRES``, and perhaps ``State``, ``User``, ``Partition`` and ``QOS``. Rows of steps are
        part of their jobs.
    options : SlurmOptions, optional
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
    >>> from oasis.traces import SlurmOptions, read_slurm
    >>> rows = '''JobID|User|Submit|ElapsedRaw|State|AllocTRES
    ... 17|ann|2024-03-01T08:00:00|7200|COMPLETED|cpu=16,mem=64G,node=1,gres/gpu=4
    ... 17.batch||2024-03-01T08:00:00|7200|COMPLETED|cpu=16,mem=64G,node=1,gres/gpu=4
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.txt")
    ...     _ = path.write_text(rows)
    ...     instance = read_slurm(path, SlurmOptions(start="first"))
    >>> [(job.id, job.work(instance.slot_seconds)) for job in instance.jobs]
    [('17', 16)]
    """
    return SLURM.instance(path, SlurmOptions() if options is None else options)


def _read(source: Source, _: MachineOptions) -> Table[TraceRow]:
    header = source.header.split("|")
    duration = _one_of(DURATIONS, header, source.name)
    resources = _one_of(RESOURCES, header, source.name)
    job_id = _one_of(NAMES, header, source.name)
    labels = {name: column for name, column in LABELS.items() if column in header}

    def parse(line: int, row: Mapping[str, str]) -> TraceRow:
        if "." in row[job_id]:
            raise MalformedError(STEP)
        if not row[job_id]:
            raise MalformedError(f"no {job_id}")
        if row.get("State", "").startswith(UNFINISHED):
            raise MalformedError("has not ended")
        text = row[duration]
        took = elapsed_seconds(text) if duration == "Elapsed" else real(text, duration)
        if took == 0:
            raise MalformedError("never ran")
        job = PlainJob(row[job_id], submission_time(row["Submit"]), took, gpus_of(row[resources]))
        return TraceRow(job, {name: row[column] for name, column in labels.items()})

    table = read_table(source, COLUMNS, parse, delimiter="|")
    steps = table.malformed.pop(STEP, None)
    if steps is not None and not table.rows:
        table.malformed[STEP] = steps
        refuse_all_malformed(table, source.name)
    return table


def _one_of(columns: tuple[str, ...], header: list[str], file: str) -> str:
    for name in columns:
        if name in header:
            return name
    expected = f"expected one of the columns {', '.join(columns)} in the header of {file}"
    raise InstanceError(columns[0], expected)


def gpus_of(text: str) -> int:
    """GPUs in a list of trackable or generic resources; 0 if it names none.

    Examples
    --------
    >>> gpus_of("billing=16,cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1")
    4
    >>> gpus_of("gpu:a100:2,gpu:v100:1"), gpus_of("cpu=4,mem=8G")
    (3, 0)
    """
    found = list(GPUS.finditer(text))
    whole = [entry for entry in found if entry["kind"] is None]
    return sum(int(entry["count"]) for entry in whole or found)


def _show(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


SLURM = JobTrace(
    "slurm",
    _read,
    submission_time,
    "a time such as 2024-03-01T08:00:00",
    _show,
    {"trace": "Slurm accounting (sacct)"},
    SlurmOptions,
)
