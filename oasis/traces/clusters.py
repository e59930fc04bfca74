"""Public traces of clusters: Microsoft, SenseTime, Shanghai AI Laboratory, MIT, Alibaba PAI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError, located_at
from oasis.model.file_kinds import STANDARD_INPUT
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, UNIT_SECONDS, option
from oasis.traces.plain_instance import known_trace, whole_gpus
from oasis.traces.plain_job import FACTS, GOES_ON, state_of
from oasis.traces.table import (
    NOT_ENDED,
    Frame,
    MalformedError,
    Rows,
    TraceSource,
    cell,
    csv_rows,
    entry_rows,
    pd,
    read_source,
)

HELIOS = known_trace("helios")
ACME = known_trace("acme")

# --- Supercloud -----------------------------------------------------------------------------------

# Numbers of resources in the data set's own list: two types of GPUs.
SUPERCLOUD_GPUS = re.compile(r"(?:1001|1002)=([0-9]+)")
NUMBERED = re.compile(r"(?:\s*(?:[0-9]+=[0-9]+)?\s*(?:,|\Z))*")


def numbered_gpus(text: str) -> tuple[float, bool]:
    """GPUs in a list of resources by number, which are whole; one that is not there is none."""
    if not NUMBERED.fullmatch(text):
        expected = "a list such as 1=40,2=170000,1002=2"
        raise MalformedError("bad tres_alloc", expected=expected)
    found = map(SUPERCLOUD_GPUS.fullmatch, map(str.strip, text.split(",")))
    return sum(float(entry[1]) for entry in found if entry), False


SUPERCLOUD = known_trace("supercloud", gpus=numbered_gpus)

# --- Philly: its own log, or the table distributed with the Sia artifact --------------------------


@dataclass(frozen=True, slots=True)
class PhillyOptions(MachineOptions):
    """Assumptions about the Philly trace, which records neither machines nor CPUs nor memory.

    Examples
    --------
    >>> from oasis.traces import PhillyOptions
    >>> options = PhillyOptions(min_gpus=4, start="first")
    >>> options.min_gpus, options.max_gpus
    (4, 8)
    >>> PhillyOptions(stride=0)
    Traceback (most recent call last):
        ...
    oasis.model.errors.InstanceError: stride: expected an integer >= 1, got 0
    """

    virtual_cluster: str = option("", "take the jobs of this virtual cluster alone", reading=True)
    user: str = option("", "take the jobs of this user alone", reading=True)
    runs: str = option(
        "joined",
        "how several attempts of one job of Philly's own log are read: joined (one job, with the "
        "work of all its attempts), last or each",
        reading=True,
        choices=RUNS,
    )


def _check(rows: Rows, found: dict[str, Any], options: PhillyOptions) -> None:
    """Find columns that were swapped or cut: the third number follows from the other two."""
    total = rows.number("gpu_time") * UNIT_SECONDS[options.duration_unit]
    off = np.abs(total - found["duration"] * found["gpus"]) > 1e-6 * total
    rows.reject(off, "gpu_time is not duration times num_gpus")


def _read_log(source: TraceSource, options: PhillyOptions) -> Rows:
    """A row for each attempt of a job; one of no time, if nothing was recorded of any."""
    rows = entry_rows(source, source.document(), "", _attempts)
    rows.unique("jobid")
    return rows


def _attempts(job: Mapping[str, Any]) -> list[dict[str, str]]:
    attempts = job.get("attempts")
    if not isinstance(attempts, list) or not all(isinstance(each, dict) for each in attempts):
        raise MalformedError("bad attempts", expected="a list of objects")
    of_job = {name: cell(job, name) for name in ("jobid", "submitted_time", "vc", "user", "status")}
    runs = []
    for attempt in attempts:
        times = {name: cell(attempt, name) for name in ("start_time", "end_time")}
        if times["start_time"] not in ("", "None"):  # else nothing was recorded of it
            detail = attempt.get("detail")
            servers = detail if isinstance(detail, list) else [None]
            gpus: list[Any] = [
                each.get("gpus") if isinstance(each, dict) else None for each in servers
            ]
            if not all(isinstance(each, list) for each in gpus):
                raise MalformedError("bad detail", expected="servers, each with a list of gpus")
            runs.append({**of_job, **times, "gpus": str(sum(map(len, gpus)))})
    return runs or [{**of_job, "start_time": "", "end_time": "", "gpus": "0"}]


def _by_name(runs: Frame, _: Rows) -> Frame:
    return runs.assign(key=runs["id"])


def _is_log(lines: list[str], document: Any) -> bool:
    """Whether a document is ``cluster_job_log``."""
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, Mapping) and {"jobid", "attempts"} <= set(first)


PHILLY = known_trace(
    "philly",
    PhillyOptions,
    _is_log,
    log=known_trace("cluster_job_log", read=_read_log, joins=_by_name),
    gpus=whole_gpus,
    check=_check,
)

# --- PAI: tables of jobs, tasks and instances without a header, joined by job_name ----------------

JOBS, TASKS, INSTANCES = (FACTS["pai"][table] for table in ("header", "tasks", "instances"))
TASK_TABLE = "pai_task_table.csv"
PERCENT = 100.0  # plan_gpu of one GPU
NO_TIME = ("", "0", "0.0")  # a time that there is not
LINE = re.compile(r"\w+,\w+,\w+,(Terminated|Failed|Running|Waiting),[\d.]*,[\d.]*")


@dataclass(frozen=True, slots=True)
class PaiOptions(MachineOptions):
    """Assumptions about the PAI trace, whose tasks may hold parts of GPUs."""

    user: str = option("", "take the jobs of this user alone", reading=True)
    tasks: str = option(
        "", f"PAI's table of tasks; by default {TASK_TABLE} beside that of jobs", reading=True
    )
    instances: str = option(
        "", "PAI's table of instances, by which a job began and ended; else by tasks", reading=True
    )


def _read_pai(source: TraceSource, options: PaiOptions) -> Rows:
    """The jobs, each with its run by the tasks or instances of its name."""
    rows = csv_rows(source, JOBS, JOBS)
    path = options.tasks
    if not path:
        if source.path == STANDARD_INPUT:
            raise InstanceError("tasks", "expected the table of tasks, for jobs of standard input")
        path = str(Path(source.path).with_name(TASK_TABLE))
        if not Path(path).exists():
            expected = f"expected the table of tasks, there is no {TASK_TABLE} beside the jobs"
            raise InstanceError("tasks", expected)
    tasks = parts = _parts(path, TASKS, rows)
    if options.instances:
        parts = _parts(options.instances, INSTANCES, rows, set(tasks["job_name"]))
    names = rows.texts("job_name")
    rows.reject([state_of(state) == GOES_ON for state in rows.texts("status")], NOT_ENDED)
    runs = parts.groupby("job_name").agg({"begin": "min", "end": "max", "goes_on": "max"})
    runs = runs.join(tasks.groupby("job_name")["gpus"].sum(), how="outer").reindex(names)
    rows.reject(runs["gpus"].isna(), "no task of this job in the table of tasks")
    # Without an end of all parts, the duration would be too short.
    rows.reject(runs["goes_on"] == 1, NOT_ENDED)
    for name in ("begin", "end", "gpus"):
        rows.cells[name] = [f"{value:.15g}" if value >= 0 else "" for value in runs[name]]
    return rows


def _parts(path: str, columns: tuple[str, ...], jobs: Rows, known: Any = None) -> Frame:
    """When the tasks or instances of a table ran, and the GPUs of a task; NaN: not at all."""
    with located_at(source=path):
        source = read_source(path)
        rows = csv_rows(source, columns, columns)
        cells = rows.cells
        found = pd.DataFrame({"job_name": cells["job_name"]})
        if columns is TASKS:
            cells["inst_num"] = cells["inst_num"].replace("", "1")
            cells["plan_gpu"] = cells["plan_gpu"].replace("", "0")
            found["gpus"] = rows.number("inst_num") * rows.number("plan_gpu") / PERCENT
        began, ended = (~cells[name].isin(NO_TIME) for name in ("start_time", "end_time"))
        for time, part, has in (("start_time", "begin", began), ("end_time", "end", began & ended)):
            cells[time] = cells[time].where(has, "0")
            found[part] = np.where(has, rows.number(time), np.nan)
        found["goes_on"] = began & ~ended
        found = found[rows.settle()]
        rows.check_usable(len(found))
    found = found if known is None else found[found["job_name"].isin(known)]
    jobs.notes.append(f"{Path(path).name} is joined by job_name: {len(found)} rows")
    return found


def _is_pai(lines: list[str], document: Any) -> bool:
    """Whether the first line is of a job."""
    return document is None and LINE.fullmatch(lines[0].strip()) is not None


PAI = known_trace("pai", PaiOptions, _is_pai, read=_read_pai)
