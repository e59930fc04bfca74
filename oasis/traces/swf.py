"""The Standard Workload Format of the Parallel Workloads Archive (docs/traces)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, option
from oasis.traces.plain_instance import table_trace
from oasis.traces.plain_job import FACTS
from oasis.traces.runs import by_name
from oasis.traces.table import NUMBER, MalformedError, Rows, TraceSource, numbers, rows_of

FIELDS, HELD = FACTS["swf"]["fields"], FACTS["swf"]["columns"]["gpus"]
COMMENT, UNKNOWN = ";", "-1"
PARTS = range(2, 5)  # statuses: a part to be continued, the last one of a job that ended, or failed
HAS_COMPLETED, CONTINUED, CANCELLED = 1, 2, 5


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


def _read(source: TraceSource, options: SwfOptions) -> Rows:
    """The lines of the log that are jobs, or those of their parts that are read."""
    faults = (f"expected {len(FIELDS)} numbers",) * 2
    rows = rows_of(source, FIELDS, 0, FIELDS, faults=faults, comment=COMMENT)
    frame = rows.cells
    status = rows.number("status", -1, whole=True)
    rows.reject(status > CANCELLED, "bad status")
    is_part = np.isin(status, PARTS)
    rows.reject((frame["submission"] == UNKNOWN) & ~is_part, "no submission")
    rows.number("wait", -1.0)
    rows.reject((frame["run time"] == UNKNOWN) & (status == HAS_COMPLETED), "no run time")
    frame["run time"] = frame["run time"].replace(UNKNOWN, "0")
    took = rows.number("run time")
    # Processors that were allocated count; what was requested stands in where a log lacks them. A
    # job that was cancelled while it waited need not name processors.
    held = frame["allocated"].where(frame["allocated"] != UNKNOWN, frame["requested"])
    frame[HELD] = held.mask(took == 0, "1")
    gpus = rows.number(HELD, 1, whole=True)
    frame[HELD] = [f"{-(-n // options.processors_per_gpu):.0f}" for n in gpus.tolist()]
    # The number of the group stands in where a log has none of the user.
    owner = frame["user"].mask(frame["user"] == UNKNOWN, frame["group"])
    frame["owner"] = owner.replace(UNKNOWN, "")
    frame["wait"] = frame["wait"].mask(frame["wait"].str.startswith("-"), "")
    frame["state"] = [f"{code:.0f}" for code in status.tolist()]
    frame["status"], frame["took"] = status, took
    rows.keep(rows.settle())
    _choose(rows, options.runs)
    return rows


def _choose(rows: Rows, rule: str) -> None:
    """Keep each job's own line, or its parts if they are wanted or there is no such."""
    frame, lines = rows.cells, rows.lines.tolist()
    own: dict[str, int] = {}
    parts: dict[str, list[int]] = {}
    left_out: set[int] = set()
    for line, job, status in zip(lines, frame["job"], frame["status"], strict=True):
        # Parts share the number of their job; a second line of any other status is a mistake.
        if status in PARTS:
            parts.setdefault(job, []).append(line)
        elif own.setdefault(job, line) != line:
            rows.count([line], MalformedError("repeated job", f"{job} is in row {own[job]} too"))
            left_out.add(line)
    named = 0
    for job, of_job in parts.items():
        end, is_named = nan, job in own
        if is_named and frame.at[own[job], "took"] > 0 and rule == "joined":
            named += len(of_job)
            left_out.update(of_job)
            continue
        # Where the line of the job has no run time, what it did stands in its parts.
        if is_named:
            left_out.add(own[job])
            (end,) = numbers([frame.at[own[job], "submission"]])
        elif frame.at[of_job[-1], "status"] == CONTINUED:
            frame.at[of_job[-1], "state"] = "RUNNING"
        # A part without a submission came when the last one ended; what is no number is told later.
        for line in of_job:
            if frame.at[line, "submission"] == UNKNOWN:
                if np.isnan(end):
                    rows.count([line], "bad submission")
                    left_out.update(of_job)
                    break
                frame.at[line, "submission"] = f"{end:.17g}"
            (begin,) = numbers([frame.at[line, "submission"]])
            end = begin + frame.at[line, "took"] + float(frame.at[line, "wait"] or 0)
    rows.keep(~frame.index.isin(left_out))
    if named:
        told = f"lines that are parts of jobs (status 2 to 4): {named}"
        rows.notes.append(f"{told}; the jobs' own lines are read")


def _is_log(lines: list[str], document: Any) -> bool:
    """Whether these lines are a log's; half is enough: what is wrong with the others is named."""
    if document is not None:
        return False
    rows = [line.split() for line in lines if not line.lstrip().startswith(COMMENT)]
    if not rows:
        told = r";\s*(Version|Computer|MaxJobs|UnixStartTime)"
        return any(re.match(told, line) for line in lines)
    good = sum(len(row) == len(FIELDS) and all(map(NUMBER.fullmatch, row)) for row in rows)
    return 2 * good >= len(rows)


SWF = table_trace("swf", SwfOptions, _is_log, read=_read, joins=by_name)
