"""Traces read as plain jobs, with GPUs and a duration; no assumption is added (docs/simulator)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from oasis.model.errors import InstanceError
from oasis.model.summary import Facts, Summarised
from oasis.traces import philly
from oasis.traces.job_table import TraceRow
from oasis.traces.plain_job import PlainJob
from oasis.traces.source import Source, read_source
from oasis.traces.table import Table, read_header, read_table, real, whole
from oasis.traces.times import submission_time
from oasis.traces.window import check_choice

COLUMNS = ("id", "submitted", "duration", "gpus")
CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, repr=False)
class PlainTrace(Summarised):
    """The jobs of a trace.

    Parameters
    ----------
    jobs : tuple of PlainJob
        In order of submission, those of one instant as in the file; submitted in seconds after the
        first of them.
    format : {"plain", "philly"}
        How the file was read.
    malformed : mapping
        Rows that could not be used: kind of fault -> ``{"count": n, "first_row": line}``.

    Examples
    --------
    >>> from oasis.traces import PlainTrace
    >>> from oasis.traces.plain_job import PlainJob
    >>> trace = PlainTrace((PlainJob("a", submitted=0.0, duration=60.0, gpus=4),), format="plain")
    >>> trace.jobs[0].gpus, trace.malformed
    (4, {})
    """

    jobs: tuple[PlainJob, ...]
    format: str
    malformed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def summary(self) -> tuple[str, Facts]:
        """Format, jobs, and rows that could not be used."""
        unusable = sum(found["count"] for found in self.malformed.values())
        counts = [("jobs", str(len(self.jobs))), ("malformed rows", str(unusable))]
        return "PlainTrace", [("format", self.format), *counts]


def read_plain(
    path: str | os.PathLike[str],
    *,
    virtual_cluster: str = "",
    max_gpus: int | None = None,
    first: int = 0,
    jobs: int | None = None,
) -> PlainTrace:
    """Plain jobs of a CSV file, in the simple format or in that of the Philly trace.

    The simple format has the columns ``id,submitted,duration,gpus``, in any order: a name that is
    not repeated, seconds after any fixed moment, seconds, a whole number. A column ``owner`` may
    name the user who submitted each job. Every row must be good; blank ones are skipped. A file
    with a column ``timestamp`` or ``num_gpus`` is read as Philly's,
    ``timestamp,duration,num_gpus,gpu_time,cluster``, whose bad rows are left out and counted; the
    owner of a job is its virtual cluster.

    Parameters
    ----------
    path : path
        The file.
    virtual_cluster : str
        Only the jobs of this virtual cluster (Philly's format only); empty: all.
    max_gpus : int, optional
        Leave out jobs with more GPUs.
    first, jobs : int, optional
        Of what remains, so many jobs (default: all) from this one on.

    Raises
    ------
    InstanceError
        Naming the row and the column, or if no job is left.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import read_plain
    >>> rows = '''id,submitted,duration,gpus
    ... a,100,60,4
    ... b,130,30,8
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.csv")
    ...     _ = path.write_text(rows)
    ...     trace = read_plain(path)
    >>> [(job.id, job.submitted) for job in trace.jobs]
    [('a', 0.0), ('b', 30.0)]
    """
    source = read_source(path)
    header = read_header(source)
    if "timestamp" in header or "num_gpus" in header:
        kind, table = "philly", read_table(source, philly.COLUMNS, _philly_row)
        check_choice("cluster", virtual_cluster, (row.labels[CLUSTER] for row in table.rows))
    else:
        kind, table = "plain", read_plain_rows(source)
        if virtual_cluster:
            raise InstanceError("virtual_cluster", "expected a trace in Philly's format")
    wanted = [
        row.job
        for row in table.rows
        if virtual_cluster in ("", row.labels.get(CLUSTER, ""))
        and (max_gpus is None or row.job.gpus <= max_gpus)
    ]
    wanted.sort(key=lambda job: job.submitted)
    wanted = wanted[first:] if jobs is None else wanted[first : first + jobs]
    if not wanted:
        raise InstanceError("jobs", f"expected at least one job, got none from {path}")
    begin = wanted[0].submitted
    return PlainTrace(
        tuple(replace(job, submitted=job.submitted - begin) for job in wanted),
        kind,
        table.malformed,
    )


def read_philly_plain(
    path: str | os.PathLike[str],
    *,
    virtual_cluster: str = "",
    max_gpus: int | None = None,
    first: int = 0,
    jobs: int | None = None,
) -> list[PlainJob]:
    """Plain jobs of the Philly trace, named after their lines in the file.

    The parameters are those of `read_plain`; the counts of bad rows are not returned.

    Raises
    ------
    InstanceError
        If a column is missing or no job is left.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import read_philly_plain
    >>> rows = '''timestamp,duration,num_gpus,gpu_time,cluster
    ... 2017-10-09 07:00:00,3600,4,14400,a
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "philly.csv")
    ...     _ = path.write_text(rows)
    ...     read_philly_plain(path)
    [PlainJob(id='philly-2', submitted=0.0, duration=3600.0, gpus=4, owner='a')]
    """
    header = read_header(read_source(path))
    for name in philly.COLUMNS:
        if name not in header:
            expected = f"expected this column once in the header of {Path(path).name}"
            raise InstanceError(name, expected)
    trace = read_plain(
        path, virtual_cluster=virtual_cluster, max_gpus=max_gpus, first=first, jobs=jobs
    )
    return list(trace.jobs)


def read_plain_rows(source: Source) -> Table[TraceRow]:
    """The rows of a file in the simple format; every one of them must be good."""
    table = read_table(source, COLUMNS, _plain_row, key="id")
    _refuse_faults(table)
    return table


def _philly_row(line: int, row: Mapping[str, str]) -> TraceRow:
    gpus = whole(row["num_gpus"], "num_gpus", 1)
    duration = real(row["duration"], "duration")
    submitted = submission_time(row["timestamp"])
    cluster = row["cluster"]
    job = PlainJob(f"philly-{line}", submitted, duration, gpus, cluster)
    return TraceRow(job, {CLUSTER: cluster})


def _plain_row(line: int, row: Mapping[str, str]) -> TraceRow:
    submitted = _cell(line, row, "submitted", float, -math.inf)
    duration = _cell(line, row, "duration", float, 0.0)
    gpus = _cell(line, row, "gpus", int, 1)
    return TraceRow(PlainJob(row["id"], submitted, duration, int(gpus), row.get("owner", "")), {})


def _cell(
    line: int,
    row: Mapping[str, str],
    column: str,
    convert: Callable[[str], float],
    least: float,
) -> float:
    """The number in a cell, or an error that names row and column."""
    text = row[column]
    try:
        value = float(convert(text))
    except (ValueError, OverflowError):
        value = math.nan
    if math.isfinite(value) and value >= least:
        return value
    kind = "a whole number" if convert is int else "a number"
    bound = f" >= {least:g}" if math.isfinite(least) else ""
    raise InstanceError(f"row {line}, {column}", f"expected {kind}{bound}, got {text!r:.40}")


def _refuse_faults(table: Table[TraceRow]) -> None:
    faults = {kind: found for kind, found in table.malformed.items() if kind != "blank row"}
    if faults:
        kind = min(faults, key=lambda fault: faults[fault]["first_row"])
        raise InstanceError(f"row {faults[kind]['first_row']}", kind)
    table.malformed.clear()
