"""Alibaba's PAI, 2020 (NSDI 2022): a table of jobs, one of tasks, one of instances (docs/traces).

The tables have no header. A task is joined to its job by ``job_name``; so is an instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from oasis.model.errors import InstanceError, located_at
from oasis.model.file_kinds import STANDARD_INPUT
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_job import PlainJob, ended_as, goes_on
from oasis.traces.table import (
    NEVER_RAN,
    NOT_ENDED,
    MalformedError,
    RowLayout,
    TraceSource,
    TraceTable,
    csv_cells,
    read_source,
    read_table,
    real,
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
    """Assumptions about the PAI trace, whose tasks may hold parts of GPUs.

    Examples
    --------
    >>> from oasis.traces.pai import PaiOptions
    >>> PaiOptions(user="58540f191766").user
    '58540f191766'
    """

    user: str = option("", "take the jobs of this user alone", reading=True)
    tasks: str = option(
        "", f"PAI's table of tasks; by default {TASK_TABLE} beside that of jobs", reading=True
    )
    instances: str = option(
        "", "PAI's table of instances, by which a job began and ended; else by tasks", reading=True
    )


@dataclass(slots=True)
class _Run:
    """Times at which the tasks or instances of a job ran, and their GPUs."""

    percent: float = 0.0
    started: float = float("inf")
    ended: float = 0.0
    goes_on: bool = False

    def note(self, row: Mapping[str, str]) -> None:
        """Add the time of a task or of an instance."""
        if row["start_time"] in NO_TIME:
            return
        self.started = min(self.started, real(row["start_time"], "start_time"))
        if row["end_time"] in NO_TIME:
            self.goes_on = True
        else:
            self.ended = max(self.ended, real(row["end_time"], "end_time"))


def _layout(source: TraceSource, columns: Sequence[str]) -> RowLayout:
    """The tables are without a header; a file that was given one has it."""
    has_header = csv_cells(source.header)[:1] == [columns[0]]
    return RowLayout(columns, source.first + has_header, csv_cells)


def _read(source: TraceSource, options: PaiOptions) -> TraceTable[TraceRow]:
    runs, notes = _runs(source, options)
    clock = TraceTimes(options, is_dated=False)

    def parse(line: int, row: Mapping[str, str]) -> TraceRow:
        if goes_on(row["status"]):
            raise MalformedError(NOT_ENDED)
        run = runs.get(row["job_name"])
        if run is None:
            raise MalformedError("no task of this job in the table of tasks")
        # Without an end of all parts, the duration would be too short.
        if run.goes_on:
            raise MalformedError(NOT_ENDED)
        submitted = clock.read(row["start_time"], "start_time")
        if run.ended <= run.started:
            raise MalformedError(NEVER_RAN)
        # Whole GPUs: the simulated machines do not share one between jobs.
        gpus = ceil(run.percent / PERCENT - 1e-9)
        job = PlainJob(
            *(row["job_name"], submitted, run.ended - run.started, gpus, row["user"]),
            *(run.started, run.ended, ended_as(row["status"])),
        )
        is_share = run.percent % PERCENT != 0
        return TraceRow(job, {"user": row["user"]} if options.user else {}, is_share)

    table = read_table(
        source,
        JOBS,
        parse,
        key="job_name",
        layout=_layout(source, JOBS),
        clock=clock,
        time="start_time",
        allow_malformed=options.allow_malformed,
    )
    table.notes += notes
    return table


def _runs(source: TraceSource, options: PaiOptions) -> tuple[dict[str, _Run], list[str]]:
    """The run of each job by its name, and a note on each table that was joined."""
    path = options.tasks
    if not path:
        if source.path == STANDARD_INPUT:
            raise InstanceError("tasks", "expected the table of tasks, for jobs of standard input")
        path = str(Path(source.path).with_name(TASK_TABLE))
        if not Path(path).exists():
            expected = f"expected the table of tasks, there is no {TASK_TABLE} beside the jobs"
            raise InstanceError("tasks", expected)
    runs: dict[str, _Run] = {}
    notes = []
    for name, columns in ((path, TASKS), (options.instances, INSTANCES)):
        if not name:
            continue
        with located_at(source=name):
            joined = _joined(name, columns, runs, has_times=name == path and not options.instances)
        notes.append(f"{Path(name).name} is joined by job_name: {joined} rows")
    return runs, notes


def _joined(name: str, columns: Sequence[str], runs: dict[str, _Run], *, has_times: bool) -> int:
    """Add the rows of a table to `runs`; how many they are."""
    source = read_source(name)
    is_tasks = columns is TASKS

    def parse(line: int, row: Mapping[str, str]) -> None:
        run = runs.get(row["job_name"])
        if run is None:
            if not is_tasks:
                return
            run = runs[row["job_name"]] = _Run()
        if is_tasks and row["plan_gpu"]:
            instances = real(row["inst_num"] or "1", "inst_num")
            run.percent += instances * real(row["plan_gpu"], "plan_gpu")
        if has_times or not is_tasks:
            run.note(row)

    table = read_table(source, columns, parse, layout=_layout(source, columns))
    return len(table.rows)


PAI = JobTrace(
    "pai",
    _read,
    {"trace": "Alibaba PAI 2020"},
    PaiOptions,
)
