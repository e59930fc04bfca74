"""Alibaba's PAI, 2020 (NSDI 2022): a table of jobs, one of tasks, one of instances (docs/traces).

The tables have no header. A task is joined to its job by ``job_name``; so is an instance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError, located_at
from oasis.model.file_kinds import STANDARD_INPUT
from oasis.traces.job_table import JobTrace, TraceTable, jobs_frame
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_job import ended_as, goes_on
from oasis.traces.table import (
    NEVER_RAN,
    NOT_ENDED,
    Faults,
    Frame,
    RowLayout,
    Rows,
    TraceSource,
    cells_of,
    csv_layout,
    pd,
    read_source,
)
from oasis.traces.times import TraceTimes

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


def _cells(source: TraceSource, columns: tuple[str, ...], faults: Faults) -> Rows:
    """The rows of a table without a header; a file that was given one has it."""
    layout = csv_layout(source)
    has_header = layout.header[:1] == [columns[0]]
    layout = RowLayout(columns, source.first + has_header, layout.split, layout.delimiter)
    return Rows(cells_of(source, layout, columns, faults), faults)


def _read(source: TraceSource, options: PaiOptions) -> TraceTable:
    runs, notes = _runs(source, options)
    clock, faults = TraceTimes(options, is_dated=False), Faults()
    rows = _cells(source, JOBS, faults)
    names, states = rows.texts("job_name"), rows.texts("status")
    times = rows.texts("start_time")
    clock.look_at(times)
    rows.reject(np.array([goes_on(state) for state in states], dtype=bool), NOT_ENDED)
    run = runs.reindex(names)
    begin, end, percent = (run[name].to_numpy(float) for name in ("begin", "end", "percent"))
    rows.reject(np.isnan(percent), "no task of this job in the table of tasks")
    # Without an end of all parts, the duration would be too short.
    rows.reject((run["goes_on"] == 1).to_numpy(), NOT_ENDED)
    submitted = rows.some(clock.column, times, rows.is_good, "start_time")
    rows.reject(~(end > begin), NEVER_RAN)
    users = rows.texts("user")
    jobs = jobs_frame(
        rows,
        rows.settle("job_name"),
        **{"id": names, "submitted": submitted, "duration": end - begin, "owner": users},
        **{"started": begin, "ended": end, "state": list(map(ended_as, states)), "user": users},
        # Whole GPUs: the simulated machines do not share one between jobs.
        gpus=np.ceil(np.nan_to_num(percent) / PERCENT - 1e-9).astype(np.int64),
        is_share=np.nan_to_num(percent) % PERCENT != 0,
    )
    faults.check_usable(len(jobs), source.name, allow_malformed=options.allow_malformed)
    return TraceTable(jobs, faults.malformed, notes, clock)


def _runs(source: TraceSource, options: PaiOptions) -> tuple[Frame, list[str]]:
    """The run of each job by its name, and a note on each table that was joined."""
    path = options.tasks
    if not path:
        if source.path == STANDARD_INPUT:
            raise InstanceError("tasks", "expected the table of tasks, for jobs of standard input")
        path = str(Path(source.path).with_name(TASK_TABLE))
        if not Path(path).exists():
            expected = f"expected the table of tasks, there is no {TASK_TABLE} beside the jobs"
            raise InstanceError("tasks", expected)
    with located_at(source=path):
        tasks = _parts(path, TASKS)
    notes = [f"{Path(path).name} is joined by job_name: {len(tasks)} rows"]
    found = tasks
    if options.instances:
        with located_at(source=options.instances):
            found = _parts(options.instances, INSTANCES)
        found = found[found["job_name"].isin(tasks["job_name"])]
        notes.append(f"{Path(options.instances).name} is joined by job_name: {len(found)} rows")
    runs = tasks.groupby("job_name")[["percent"]].sum()
    times = found.groupby("job_name").agg(
        begin=("begin", "min"), end=("end", "max"), goes_on=("goes_on", "max")
    )
    return runs.join(times), notes


def _parts(name: str, columns: tuple[str, ...]) -> Frame:
    """When the tasks or instances of a table ran, and 100 times their GPUs; NaN: not at all."""
    source, faults = read_source(name), Faults()
    rows = _cells(source, columns, faults)
    cells = rows.cells
    found = pd.DataFrame({"job_name": cells["job_name"]})
    if columns is TASKS:
        cells["inst_num"] = cells["inst_num"].replace("", "1")
        cells["plan_gpu"] = cells["plan_gpu"].replace("", "0")
        counts = rows.number("inst_num", "inst_num")
        found["percent"] = counts * rows.number("plan_gpu", "plan_gpu")
    began, ended = (~cells[name].isin(NO_TIME) for name in ("start_time", "end_time"))
    for time, part, has in (("start_time", "begin", began), ("end_time", "end", began & ended)):
        cells[time] = cells[time].where(has, "0")
        found[part] = np.where(has, rows.number(time, time), np.nan)
    found["goes_on"] = began & ~ended
    found = found[rows.settle()]
    faults.check_usable(len(found), source.name)
    return found


def _is_jobs(lines: list[str], document: Any) -> bool:
    """Whether the first line is of a job."""
    return document is None and LINE.fullmatch(lines[0].strip()) is not None


PAI = JobTrace(
    "pai",
    _read,
    {"trace": "Alibaba PAI 2020"},
    PaiOptions,
    looks="the job table of the PAI trace",
    header=JOBS,
    finds=_is_jobs,
)
