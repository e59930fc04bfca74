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
from oasis.model.rounding import FloatArray
from oasis.traces.job_table import JobTrace, TraceTable
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, UNIT_SECONDS, option
from oasis.traces.plain_instance import TableFormat, read_table, table_trace
from oasis.traces.plain_job import goes_on
from oasis.traces.table import (
    ENTRY,
    NOT_ENDED,
    Faults,
    Frame,
    MalformedError,
    RowLayout,
    Rows,
    TraceSource,
    cell,
    cells_of,
    check_header,
    csv_cells,
    csv_layout,
    entries_of,
    frame_of_entries,
    parse_document,
    pd,
    read_source,
)

# --- tables of Slurm's accounting -----------------------------------------------------------------

# Both tables of the Shanghai AI Laboratory's clusters have the run itself, from start to end. Its
# column `duration` is not used: in Kalos it is the time from submission to end.
_HELIOS = {
    **{"id": "job_id", "submitted": "submit_time", "started": "start_time", "ended": "end_time"},
    **{"gpus": "gpu_num", "owner": "user", "state": "state"},
}
_HEADER = ("job_id", "gpu_num", "node_num", "submit_time", "start_time", "end_time")
HELIOS = table_trace(
    "helios",
    "SenseTime Helios (SC 2021)",
    TableFormat({**_HELIOS, "virtual_cluster": "vc"}, is_dated=True),
    looks="a job table of the Helios trace",
    header=(*_HEADER, "vc"),
)
ACME = table_trace(
    "acme",
    "AcmeTrace (NSDI 2024)",
    TableFormat(_HELIOS, is_dated=True),
    looks="a job table of AcmeTrace",
    header=(*_HEADER, "type"),
)

# Numbers of resources in the data set's own list: two types of GPUs.
SUPERCLOUD_GPUS = ("1001", "1002")
NUMBERED = re.compile(r"([0-9]+)=([0-9]+)")
SLURM_STATES: Mapping[str, str] = dict(  # by their numbers in Slurm's database
    zip(
        map(str, range(12)),
        (
            *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"),
            *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
        ),
        strict=True,
    )
)


def numbered_gpus(text: str) -> tuple[float, bool]:
    """GPUs in a list of resources by number, which are whole; one that is not there is none."""
    found = [NUMBERED.fullmatch(part.strip()) for part in text.split(",") if part.strip()]
    if not all(found):
        expected = "a list such as 1=40,2=170000,1002=2"
        raise MalformedError("bad tres_alloc", expected=expected)
    return sum(int(entry[2]) for entry in found if entry and entry[1] in SUPERCLOUD_GPUS), False


SUPERCLOUD = table_trace(
    "supercloud",
    "MIT Supercloud (HPEC 2021)",
    TableFormat(
        {
            **{"id": "id_job", "submitted": "time_submit", "eligible": "time_eligible"},
            **{"started": "time_start", "ended": "time_end", "gpus": "tres_alloc"},
            **{"owner": "id_user", "state": "state"},
        },
        is_dated=True,
        gpus=numbered_gpus,
        states=SLURM_STATES,
    ),
    looks="the Slurm log of MIT Supercloud",
    header=("id_job", "time_submit", "time_start", "time_end", "tres_alloc"),
)

# --- Philly: its own log, or the table distributed with the Sia artifact --------------------------

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


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


def _check(
    rows: Rows, duration: FloatArray, gpus: FloatArray, options: PhillyOptions
) -> dict[str, Any]:
    """Find columns that were swapped or cut: the third number follows from the other two."""
    total = rows.number("gpu_time", "gpu_time") * UNIT_SECONDS[options.duration_unit]
    off = np.abs(total - duration * gpus) > 1e-6 * total
    rows.reject(off, "gpu_time is not duration times num_gpus")
    return {}


# The table names no jobs. A line number stays the same whichever rows are left out.
PHILLY_TABLE = TableFormat(
    {
        **{"submitted": "timestamp", "duration": "duration", "gpus": "num_gpus"},
        **{"owner": "cluster", "virtual_cluster": "cluster"},
    },
    is_dated=True,
    gpus=None,
    name="philly-{}",
    more=("gpu_time",),
    check=_check,
)


def _read_philly(source: TraceSource, options: PhillyOptions) -> TraceTable:
    """Read the table, or ``cluster_job_log``: a job has attempts with the GPUs of each server."""
    if source.header.lstrip().startswith("["):
        return read_table(PHILLY_LOG, source, options)
    check_header(csv_cells(source.header), COLUMNS, source.name)
    return read_table(PHILLY_TABLE, source, options)


def _attempts(
    source: TraceSource, options: PhillyOptions
) -> tuple[Rows, dict[str, str], list[str]]:
    """A row for each attempt of a job."""
    faults = Faults(ENTRY)
    entries = entries_of(parse_document(source), "", "jobid", faults)
    rows = Rows(frame_of_entries(entries, _attempts_of, faults), faults)
    known = {"id": "jobid", "submitted": "submitted_time", "started": "start_time"}
    known |= {"ended": "end_time", "gpus": "gpus", "state": "status", "owner": "user"}
    return rows, {**known, "group": "vc", "virtual_cluster": "vc"}, []


def _attempts_of(job: Mapping[str, Any]) -> list[dict[str, str]]:
    """The attempts of a job; one of no time, to be counted by, if nothing was recorded of any."""
    attempts = job.get("attempts")
    if not isinstance(attempts, list) or not all(isinstance(each, dict) for each in attempts):
        raise MalformedError("bad attempts", expected="a list of objects")
    names = ("jobid", "submitted_time", "vc", "user", "status")
    of_job = {name: cell(job, name) for name in names}
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


PHILLY_LOG = TableFormat(
    rows=_attempts, is_dated=True, joins=True, labels={"user": "user", "virtual_cluster": "vc"}
)


def _is_log(lines: list[str], document: Any) -> bool:
    """Whether a document is ``cluster_job_log``."""
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, Mapping) and {"jobid", "attempts"} <= set(first)


PHILLY = JobTrace(
    "philly",
    _read_philly,
    {"trace": "Microsoft Philly", "licence": "CC-BY 4.0, msr-fiddle/philly-traces"},
    PhillyOptions,
    looks="a CSV file in the format of the Philly trace",
    header=COLUMNS,
    finds=_is_log,
)

# --- PAI: tables of jobs, tasks and instances without a header, joined by job_name ----------------

JOBS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASKS = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
)
INSTANCES = (
    *("job_name", "task_name", "inst_name", "worker_name", "inst_id", "status"),
    *("start_time", "end_time", "machine"),
)
TASK_TABLE = "pai_task_table.csv"
PERCENT = 100.0  # plan_gpu of one GPU
NO_TIME = ("", "0", "0.0")  # a time that there is not


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


LINE = re.compile(r"\w+,\w+,\w+,(Terminated|Failed|Running|Waiting),[\d.]*,[\d.]*")


def _pai_table(source: TraceSource, columns: tuple[str, ...]) -> Rows:
    """The rows of a table without a header; a file that was given one has it."""
    layout, faults = csv_layout(source), Faults()
    first = source.first + (layout.header[:1] == [columns[0]])
    layout = RowLayout(columns, first, layout.split, layout.delimiter)
    return Rows(cells_of(source, layout, columns, faults), faults)


def _pai_rows(source: TraceSource, options: PaiOptions) -> tuple[Rows, dict[str, str], list[str]]:
    """The jobs, each with its run by the tasks or instances of its name."""
    path = options.tasks
    if not path:
        if source.path == STANDARD_INPUT:
            raise InstanceError("tasks", "expected the table of tasks, for jobs of standard input")
        path = str(Path(source.path).with_name(TASK_TABLE))
        if not Path(path).exists():
            expected = f"expected the table of tasks, there is no {TASK_TABLE} beside the jobs"
            raise InstanceError("tasks", expected)
    with located_at(source=path):
        tasks = parts = _parts(path, TASKS)
    notes = [f"{Path(path).name} is joined by job_name: {len(tasks)} rows"]
    if options.instances:
        with located_at(source=options.instances):
            parts = _parts(options.instances, INSTANCES)
        parts = parts[parts["job_name"].isin(tasks["job_name"])]
        notes.append(f"{Path(options.instances).name} is joined by job_name: {len(parts)} rows")
    rows = _pai_table(source, JOBS)
    names = rows.texts("job_name")
    rows.reject([goes_on(state) for state in rows.texts("status")], NOT_ENDED)
    runs = parts.groupby("job_name").agg({"begin": "min", "end": "max", "goes_on": "max"})
    runs = runs.reindex(names)
    gpus = tasks.groupby("job_name")["gpus"].sum().reindex(names)
    rows.reject(gpus.isna(), "no task of this job in the table of tasks")
    # Without an end of all parts, the duration would be too short.
    rows.reject(runs["goes_on"] == 1, NOT_ENDED)
    for name, values in (("begin", runs["begin"]), ("end", runs["end"]), ("gpus", gpus)):
        rows.cells[name] = [f"{value:.15g}" if value >= 0 else "" for value in values]
    known = {"id": "job_name", "submitted": "start_time", "started": "begin", "ended": "end"}
    return rows, {**known, "gpus": "gpus", "owner": "user", "state": "status"}, notes


def _parts(name: str, columns: tuple[str, ...]) -> Frame:
    """When the tasks or instances of a table ran, and the GPUs of a task; NaN: not at all."""
    source = read_source(name)
    rows = _pai_table(source, columns)
    cells = rows.cells
    found = pd.DataFrame({"job_name": cells["job_name"]})
    if columns is TASKS:
        cells["inst_num"] = cells["inst_num"].replace("", "1")
        cells["plan_gpu"] = cells["plan_gpu"].replace("", "0")
        counts = rows.number("inst_num", "inst_num")
        found["gpus"] = counts * rows.number("plan_gpu", "plan_gpu") / PERCENT
    began, ended = (~cells[name].isin(NO_TIME) for name in ("start_time", "end_time"))
    for time, part, has in (("start_time", "begin", began), ("end_time", "end", began & ended)):
        cells[time] = cells[time].where(has, "0")
        found[part] = np.where(has, rows.number(time, time), np.nan)
    found["goes_on"] = began & ~ended
    found = found[rows.settle()]
    rows.faults.check_usable(len(found), source.name)
    return found


def _is_pai(lines: list[str], document: Any) -> bool:
    """Whether the first line is of a job."""
    return document is None and LINE.fullmatch(lines[0].strip()) is not None


PAI = table_trace(
    "pai",
    "Alibaba PAI 2020",
    TableFormat(rows=_pai_rows, labels={"user": "user"}),
    options=PaiOptions,
    looks="the job table of the PAI trace",
    header=JOBS,
    finds=_is_pai,
)
