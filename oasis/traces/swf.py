"""The Standard Workload Format of the Parallel Workloads Archive (docs/traces)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from oasis.model.instance import Instance
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, option
from oasis.traces.plain_job import COMPLETED, FAILED, KILLED
from oasis.traces.runs import JobRun, add_jobs, grouped
from oasis.traces.table import (
    EARLIER_RUN,
    NOT_ENDED,
    MalformedError,
    TraceSource,
    TraceTable,
    check_usable,
    real,
    whole,
)
from oasis.traces.times import Durations, TraceTimes

FIELDS = 18
COMMENT = ";"
UNKNOWN = "-1"
PARTS = range(2, 5)  # statuses: a part to be continued, the last one of a job that ended, or failed
HAS_COMPLETED, CONTINUED = 1, 2
LAST_STATUS = 5  # cancelled
STATES = {0: FAILED, 1: COMPLETED, 3: COMPLETED, 4: FAILED, 5: KILLED}  # by status


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
    runs: str = option(
        "joined",
        "how a job in several parts (status 2 to 4) is read: joined (its own line, or the work of "
        "all parts), last (part) or each",
        reading=True,
        choices=RUNS,
    )


def read_swf(path: str | os.PathLike[str], options: SwfOptions | None = None) -> Instance:
    """Turn a log in the Standard Workload Format into an instance.

    Parameters
    ----------
    path : path
        Lines of 18 numbers: 1 job, 2 submission, 3 wait, 4 run time, 5 and 8 processors allocated
        and requested, 11 status, 12 user and 15 queue are used. Lines with a status from 2 to 4 are
        parts of a job. Lines that begin with ``;`` are comments.
    options : SwfOptions, optional
        The assumptions; all of them are recorded in the metadata.

    Raises
    ------
    InstanceError
        If more than half of the rows cannot be used or no job is left.
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


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the log; a part of a job may not say when it was submitted."""

    run: JobRun
    status: int
    wait: float


def _read(source: TraceSource, options: SwfOptions) -> TraceTable[TraceRow]:
    found: TraceTable[_Line] = TraceTable()
    clock, durations = TraceTimes(options, is_dated=False), Durations(options.duration_unit)
    rows = [
        (line, text.split())
        for line, text in enumerate(source.lines, start=1)
        if not text.lstrip().startswith(COMMENT)
    ]
    # The form of the times is found in whole rows alone; a part of a job may have no submission.
    clock.look_at(cells[1] for _, cells in rows if len(cells) == FIELDS and cells[1] != UNKNOWN)
    finals: dict[str, int] = {}
    for line, cells in rows:
        try:
            row = _line(line, cells, options.processors_per_gpu, clock, durations)
            # Parts share the number of their job; a second line of any other status is a mistake.
            first = line if row.status in PARTS else finals.setdefault(row.run.id, line)
            if first == line:
                found.rows.append(row)
            else:
                example = f"{row.run.id} is in row {first} too"
                found.reject(MalformedError("repeated job", example), line)
        except MalformedError as fault:
            found.reject(fault, line)
    check_usable(found, source.name, allow_malformed=options.allow_malformed)
    durations.question()
    table: TraceTable[TraceRow] = TraceTable([], found.malformed, [], clock)
    add_jobs(table, list(_jobs(found, table, options.runs)), options.runs)
    check_usable(table, source.name, allow_malformed=True)
    return table


def _line(
    line: int, cells: Sequence[str], each: int, clock: TraceTimes, durations: Durations
) -> _Line:
    if not cells:
        raise MalformedError("blank row")
    if len(cells) != FIELDS:
        raise MalformedError(f"expected {FIELDS} numbers")
    status = whole(cells[10], "status", -1)
    if status > LAST_STATUS:
        raise MalformedError("bad status")
    part = status in PARTS
    if cells[1] == UNKNOWN and not part:
        raise MalformedError("no submission")
    submitted = math.nan if cells[1] == UNKNOWN else clock.read(cells[1], "submission")
    wait = real(cells[2], "wait", minimum=-1.0)
    if cells[3] == UNKNOWN and status == HAS_COMPLETED:
        raise MalformedError("no run time")
    took = 0.0 if cells[3] == UNKNOWN else durations.read(cells[3], "run time")
    # Processors that were allocated count; what was requested stands in where a log lacks them.
    processors = cells[4] if cells[4] != UNKNOWN else cells[7]
    # A job that was cancelled while it waited need not name processors.
    gpus = -(-whole(processors, "number of processors", 1) // each) if took else 0
    labels = {"user": cells[11], "queue": cells[14]}
    started = submitted + wait if wait >= 0 else None
    # The number of the group stands in where a log has none of the user.
    owner = next((cell for cell in cells[11:13] if cell != UNKNOWN), "")
    run = JobRun(
        *(cells[0], line, submitted, took, gpus, labels, started),
        owner=owner,
        state=STATES.get(status, ""),
    )
    return _Line(run, status, wait)


def _jobs(
    found: TraceTable[_Line], table: TraceTable[TraceRow], rule: str
) -> Iterator[list[JobRun]]:
    """The runs of each job: its own line, or its parts if they are wanted or there is no such."""
    named = 0
    for lines in grouped((row.run.id, row) for row in found.rows):
        own = [row.run for row in lines if row.status not in PARTS]
        parts = [row for row in lines if row.status in PARTS]
        # Where the line of the job has no run time, what it did stands in its parts.
        says_nothing = parts and not any(run.duration for run in own)
        if own and not says_nothing and (rule == "joined" or not parts):
            named += len(parts)
            yield own
        elif parts[-1].status == CONTINUED and not own:
            for row in parts[:-1]:
                table.reject(EARLIER_RUN, row.run.line)
            table.reject(NOT_ENDED, parts[-1].run.line)
        else:
            runs = _placed(parts, own)
            if runs is None:
                table.reject("bad submission", parts[0].run.line)
            else:
                yield runs
    if named:
        table.notes.append(
            f"lines that are parts of jobs (status 2 to 4): {named}; the jobs' own lines are read"
        )


def _placed(parts: Sequence[_Line], own: Sequence[JobRun]) -> list[JobRun] | None:
    """The parts with times of submission; a part without one came when the last one ended."""
    runs: list[JobRun] = []
    for row in parts:
        run = row.run
        if math.isnan(run.submitted):
            if runs:
                last = runs[-1]
                end = (last.submitted if last.started is None else last.started) + last.duration
            elif own:
                end = own[0].submitted
            else:
                return None
            run = replace(run, submitted=end, started=end + row.wait if row.wait >= 0 else None)
        runs.append(run)
    return runs


SWF = JobTrace("swf", _read, {"trace": "Standard Workload Format"}, SwfOptions)
