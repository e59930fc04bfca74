"""The Standard Workload Format of the Parallel Workloads Archive (docs/traces)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oasis.model.instance import Instance
from oasis.traces.job_table import JobTrace, TraceTable
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, option
from oasis.traces.plain_job import COMPLETED, FAILED, KILLED
from oasis.traces.runs import JobRun, grouped, jobs_of_runs
from oasis.traces.table import (
    EARLIER_RUN,
    NOT_ENDED,
    NUMBER,
    Faults,
    MalformedError,
    Rows,
    TraceSource,
    pd,
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


def _read(source: TraceSource, options: SwfOptions) -> TraceTable:
    faults, notes = Faults(), list[str]()
    clock, durations = TraceTimes(options, is_dated=False), Durations(options.duration_unit)
    lines = _lines(source, options.processors_per_gpu, clock, durations, faults)
    finals: dict[str, int] = {}
    found = []
    for row in lines:
        # Parts share the number of their job; a second line of any other status is a mistake.
        is_part, line = row.status in PARTS, row.run.line
        first = line if is_part else finals.setdefault(row.run.id, line)
        if first == line:
            found.append(row)
        else:
            faults.add(MalformedError("repeated job", f"{row.run.id} is in row {first} too"), line)
    faults.check_usable(len(found), source.name, allow_malformed=options.allow_malformed)
    said = durations.notes()
    jobs, more = jobs_of_runs(list(_jobs(found, faults, notes, options.runs)), options.runs, faults)
    faults.check_usable(len(jobs), source.name, allow_malformed=True)
    return TraceTable(jobs, faults.malformed, [*said, *notes, *more], clock)


def _lines(
    source: TraceSource, each: int, clock: TraceTimes, durations: Durations, faults: Faults
) -> Iterator[_Line]:
    """The lines of the log that can be read."""
    numbered, cells = [], []
    for line, text in enumerate(source.lines, start=1):
        if not text.lstrip().startswith(COMMENT):
            row = text.split()
            if len(row) == FIELDS:
                numbered.append(line)
                cells.append(row)
            else:
                faults.add(f"expected {FIELDS} numbers" if row else "blank row", line)
    rows = Rows(
        pd.DataFrame(cells, index=numbered, columns=list(map(str, range(FIELDS))), dtype=object),
        faults,
    )
    texts = rows.cells.to_numpy()
    status = rows.number("10", "status", -1, whole=True)
    rows.reject(status > LAST_STATUS, "bad status")
    is_part = np.isin(status, PARTS)
    nameless = texts[:, 1] == UNKNOWN
    # The form of the times is found in whole rows alone; a part of a job may have no submission.
    clock.look_at(texts[~nameless, 1].tolist())
    rows.reject(nameless & ~is_part, "no submission")
    submitted = rows.some(clock.column, texts[:, 1].tolist(), ~nameless, "submission")
    wait = rows.number("2", "wait", -1.0)
    unknown = texts[:, 3] == UNKNOWN
    rows.reject(unknown & (status == HAS_COMPLETED), "no run time")
    told = rows.some(durations.column, texts[:, 3].tolist(), ~unknown, "run time")
    took = np.where(unknown, 0.0, told)
    # Processors that were allocated count; what was requested stands in where a log lacks them.
    rows.cells["held"] = np.where(texts[:, 4] == UNKNOWN, texts[:, 7], texts[:, 4])
    # A job that was cancelled while it waited need not name processors.
    rows.cells.loc[took == 0, "held"] = "1"
    gpus = rows.number("held", "number of processors", 1, whole=True)
    for k in np.flatnonzero(rows.settle()).tolist():
        row, begin, delay = texts[k], float(submitted[k]), float(wait[k])
        # The number of the group stands in where a log has none of the user.
        owner = next((cell for cell in row[11:13] if cell != UNKNOWN), "")
        run = JobRun(
            *(row[0], numbered[k], begin, float(took[k])),
            int(-(-gpus[k] // each)) if took[k] else 0,
            {"user": row[11], "queue": row[14]},
            begin + delay if delay >= 0 else None,
            owner=owner,
            state=STATES.get(int(status[k]), ""),
        )
        yield _Line(run, int(status[k]), delay)


def _jobs(
    found: Sequence[_Line], faults: Faults, notes: list[str], rule: str
) -> Iterator[list[JobRun]]:
    """The runs of each job: its own line, or its parts if they are wanted or there is no such."""
    named = 0
    for lines in grouped((row.run.id, row) for row in found):
        own = [row.run for row in lines if row.status not in PARTS]
        parts = [row for row in lines if row.status in PARTS]
        # Where the line of the job has no run time, what it did stands in its parts.
        says_nothing = parts and not any(run.duration for run in own)
        if own and not says_nothing and (rule == "joined" or not parts):
            named += len(parts)
            yield own
        elif parts[-1].status == CONTINUED and not own:
            for row in parts[:-1]:
                faults.add(EARLIER_RUN, row.run.line)
            faults.add(NOT_ENDED, parts[-1].run.line)
        else:
            runs = _placed(parts, own)
            if runs is None:
                faults.add("bad submission", parts[0].run.line)
            else:
                yield runs
    if named:
        notes.append(
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


def _is_log(lines: list[str], document: Any) -> bool:
    """Whether these lines are a log's; half is enough: what is wrong with the others is named."""
    if document is not None:
        return False
    rows = [line.split() for line in lines if not line.lstrip().startswith(COMMENT)]
    if not rows:
        told = r";\s*(Version|Computer|MaxJobs|UnixStartTime)"
        return any(re.match(told, line) for line in lines)
    good = sum(len(row) == FIELDS and all(map(NUMBER.fullmatch, row)) for row in rows)
    return 2 * good >= len(rows)


SWF = JobTrace(
    "swf",
    _read,
    {"trace": "Standard Workload Format"},
    SwfOptions,
    is_table=False,
    looks="a log in the Standard Workload Format",
    finds=_is_log,
)
