"""The Standard Workload Format of the Parallel Workloads Archive (docs/traces)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, option
from oasis.traces.plain_instance import TableFormat, table_trace
from oasis.traces.table import (
    NUMBER,
    Faults,
    Frame,
    MalformedError,
    Rows,
    TraceSource,
    numbers,
    pd,
)

FIELDS = (
    *("job", "submission", "wait", "run time", "allocated", "cpu", "memory", "requested", "limit"),
    *(
        "memory limit",
        "status",
        "user",
        "group",
        "program",
        "queue",
        "partition",
        "before",
        "think",
    ),
)
COLUMNS = {
    **{"id": "job", "submitted": "submission", "waiting": "wait", "duration": "run time"},
    **{"gpus": "gpus", "owner": "owner", "state": "state"},
}
COMMENT, UNKNOWN = ";", "-1"
PARTS = range(2, 5)  # statuses: a part to be continued, the last one of a job that ended, or failed
HAS_COMPLETED, CONTINUED = 1, 2
STATES = {0: "FAILED", 1: "COMPLETED", 3: "COMPLETED", 4: "FAILED", 5: "CANCELLED"}  # by status


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


def _rows(source: TraceSource, options: SwfOptions) -> tuple[Rows, dict[str, str], list[str]]:
    """The lines of the log that are jobs, or those of their parts that are read."""
    faults, lines, cells = Faults(), [], []
    for line, text in enumerate(source.lines, start=1):
        row = text.split()
        if len(row) == len(FIELDS) and not row[0].startswith(COMMENT):
            lines.append(line)
            cells.append(row)
        elif not text.lstrip().startswith(COMMENT):
            faults.add(f"expected {len(FIELDS)} numbers" if row else "blank row", line)
    frame = pd.DataFrame(cells, index=lines, columns=list(FIELDS), dtype=object)
    rows = Rows(frame, faults)
    status = rows.number("status", "status", -1, whole=True)
    rows.reject(status > max(STATES), "bad status")
    is_part = np.isin(status, PARTS)
    rows.reject((frame["submission"] == UNKNOWN) & ~is_part, "no submission")
    rows.number("wait", "wait", -1.0)
    rows.reject((frame["run time"] == UNKNOWN) & (status == HAS_COMPLETED), "no run time")
    frame["run time"] = frame["run time"].replace(UNKNOWN, "0")
    took = rows.number("run time", "run time")
    # Processors that were allocated count; what was requested stands in where a log lacks them. A
    # job that was cancelled while it waited need not name processors.
    held = frame["allocated"].where(frame["allocated"] != UNKNOWN, frame["requested"])
    frame["held"] = held.mask(took == 0, "1")
    gpus = np.ceil(rows.number("held", "number of processors", 1, whole=True))
    frame["gpus"] = [f"{-(-n // options.processors_per_gpu):.0f}" for n in gpus.tolist()]
    # The number of the group stands in where a log has none of the user.
    frame["owner"] = (
        frame["user"].mask(frame["user"] == UNKNOWN, frame["group"]).replace(UNKNOWN, "")
    )
    frame["wait"] = frame["wait"].mask(frame["wait"].str.startswith("-"), "")
    frame["state"] = [STATES.get(int(code), "") for code in np.nan_to_num(status)]
    frame = frame.assign(status=status, took=took)[rows.settle()]
    return _chosen(frame, options.runs, faults)


def _chosen(frame: Frame, rule: str, faults: Faults) -> tuple[Rows, dict[str, str], list[str]]:
    """Each job's own line, or its parts if they are wanted or there is no such."""
    is_part = frame["status"].isin(PARTS)
    # Parts share the number of their job; a second line of any other status is a mistake.
    first = frame[~is_part].groupby("job").cumcount() if len(frame) else frame["took"]
    owners = dict(zip(frame["job"][~is_part][::-1], frame.index[~is_part][::-1], strict=True))
    keep = pd.Series(True, index=frame.index)
    for line in first.index[first > 0]:
        name = frame["job"][line]
        faults.add(MalformedError("repeated job", f"{name} is in row {owners[name]} too"), line)
        keep[line] = False
    named = 0
    apart = frame[keep & frame["job"].isin(set(frame["job"][is_part]))]
    for _, lines in apart.groupby("job", sort=False):
        parts, own = lines[is_part[lines.index]], lines[~is_part[lines.index]]
        # Where the line of the job has no run time, what it did stands in its parts.
        if (own["took"] > 0).any() and rule == "joined":
            named += len(parts)
            keep[parts.index] = False
            continue
        keep[own.index] = False
        if parts["status"].iloc[-1] == CONTINUED and own.empty:
            frame.loc[parts.index[-1], "state"] = "RUNNING"
        # A part without a submission came when the last one ended; what is no number is told later.
        (end,) = numbers(own["submission"].tolist()[:1] or [""])
        for line, begin, part in zip(
            parts.index, numbers(parts["submission"]), parts.to_dict("records"), strict=True
        ):
            if part["submission"] == UNKNOWN:
                if np.isnan(end):
                    faults.add("bad submission", line)
                    keep[parts.index] = False
                    break
                frame.loc[line, "submission"] = f"{end:.17g}"
            end = (end if part["submission"] == UNKNOWN else begin) + part["took"]
            end += float(part["wait"] or 0)
    told = f"lines that are parts of jobs (status 2 to 4): {named}; the jobs' own lines are read"
    return Rows(frame[keep], faults), COLUMNS, [told] if named else []


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


SWF = table_trace(
    "swf",
    "Standard Workload Format",
    TableFormat(rows=_rows, joins=True, labels={"user": "user", "queue": "queue"}),
    options=SwfOptions,
    is_table=False,
    looks="a log in the Standard Workload Format",
    finds=_is_log,
)
