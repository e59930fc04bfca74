"""What ``oasis whatif`` prints, its progress, and its tables of jobs and owners."""

from __future__ import annotations

import csv
import io
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from experiments.cli import console
from experiments.cli.commands.sweep import LOG_SECONDS
from experiments.cli.files import CSV, written
from experiments.cli.options import is_given
from experiments.evaluation import whatif_tables as tables
from experiments.evaluation.whatif import (
    RECORDED,
    JobColumns,
    chosen_part,
    earned_by,
    really_happened,
)
from experiments.evaluation.whatif_result import PARTS, WhatIf
from oasis.model.files import write_text
from oasis.model.rounding import FloatArray

if TYPE_CHECKING:
    from experiments.sweep import Cell, CellResult, Executor

LONG = 20.0  # seconds that are said beforehand
# What a job takes on an ordinary core where few wait; long lines make it more.
SECONDS_A_JOB = {
    **dict.fromkeys(("fifo", "sjf", "locality-aware"), 1e-4),
    **{"easy": 2e-4, "srtf": 4e-4, "srsf": 4e-4, "las": 4e-4, "gittins": 6e-4},
}
BOUND, OTHERS = 5e-6, 5e-3
# Of no use to whoever wants the same result.
NOT_AGAIN = ("as_json", "into", "processes", "engine", "scheduler", "table")


class WhatIfProgress:
    """How far the runs are: a bar on a terminal, now and then a line elsewhere.

    Parameters
    ----------
    cells : sequence of Cell
        All of them.
    jobs : int
        Jobs of each.
    executor : Executor
        Where they run, for an estimate of the time.
    """

    def __init__(self, cells: Sequence[Cell], jobs: int, executor: Executor) -> None:
        self._costs = {cell.key: _cost(cell, jobs) for cell in cells}
        self._workers = getattr(executor, "jobs", 1)
        self._began = self._said = monotonic()
        self._runs = [cell.key for cell in cells if cell.policy is not None]
        self._counter = console.counter("replaying", len(self._runs))

    def __enter__(self) -> WhatIfProgress:
        self._advance = self._counter.__enter__()
        cores = os.cpu_count() or 1
        workers = cores if self._workers == -1 else max(1, min(self._workers, cores))
        expected = sum(self._costs.values()) / workers
        if expected > LONG:
            about = tables.duration_text(round(expected, -1))
            console.note(f"{len(self._runs)} runs, about {about} on {workers} cores")
        return self

    def __exit__(self, *error: Any) -> None:
        self._counter.__exit__(*error)

    def done(self, cell: Cell, found: Mapping[str, CellResult]) -> None:
        """Note that `cell` is done."""
        if cell.policy is not None:  # a bound is no run
            self._advance(cell.policy)
        now = monotonic()
        if console.stderr().is_terminal or now - self._said < LOG_SECONDS:
            return
        self._said = now
        spent = sum(cost for key, cost in self._costs.items() if key in found)
        left = (now - self._began) * (sum(self._costs.values()) / spent - 1) if spent else 0.0
        runs, of = sum(key in found for key in self._runs), len(self._runs)
        rest = f", about {tables.duration_text(round(left))} left" if 0 < runs < of else ""
        console.note(f"{now - self._began:7.1f} s  {runs} of {of} runs{rest}")


def _cost(cell: Cell, jobs: int) -> float:
    return jobs * (BOUND if cell.policy is None else SECONDS_A_JOB.get(cell.policy, OTHERS))


def show(found: WhatIf) -> None:
    """Print the answer, the tables and the notes."""
    for sentence in tables.answer(found):
        console.print_notes([sentence])
    jobs = tables.jobs_text(found)
    # A title begins with an empty line, so that one sees where a table ends.
    console.print_rows(tables.SERVED, tables.served_rows(found), f"\n{jobs}: submission to end")
    console.print_rows(tables.WAITED, tables.waited_rows(found), "\nWaiting for GPUs")
    console.print_rows(tables.WORKED, tables.worked_rows(found), "\nGPUs and jobs")
    if earned := tables.earned_rows(found):
        console.print_rows(tables.EARNED, earned, "\nWhat the jobs are worth")
    reference, best = found.reference, found.best(found.first)
    if reference is not None:
        than = f"beside {tables.called(reference)}"
        title = f"\nMean waiting by size, {than}"
        console.print_rows(tables.size_columns(found), tables.size_rows(found), title)
        if best is not None and best != reference and len(found.owners) > 1:
            rows, more = tables.owner_rows(found, best)
            console.print_rows(tables.OWNERS, rows, f"\nMean waiting by owner under {best}, {than}")
            if more:
                console.print_notes([f"{more:,} more owners: --csv or --json has them"])
    if len(found.settings) > 1:
        title = "\nMean from submission to end at other loads and machines"
        console.print_rows(tables.other_columns(found), tables.other_rows(found), title)
    console.print_text("")
    console.print_notes(tables.notes(found))


def again(context: typer.Context) -> str:
    """The command that was given, without options that change no result."""
    words = []
    for parameter in context.command.params:
        name = str(parameter.name)
        if name in NOT_AGAIN or not is_given(context, name):
            continue
        value = context.params[name]
        option = parameter.opts[0] if parameter.param_type_name == "option" else None
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [option] if option else []
            words += [] if each is True else [str(each)]
    return "oasis whatif " + " ".join(map(shlex.quote, words))


def csv_files(prefix: Path | None) -> tuple[Path, Path] | None:
    """The files of jobs and of owners."""
    if prefix is None:
        return None
    if prefix.is_dir():
        return prefix / "jobs.csv", prefix / "owners.csv"
    name = prefix.name
    return prefix.with_name(f"{name}-jobs.csv"), prefix.with_name(f"{name}-owners.csv")


CSV_FILES = written(CSV, lambda prefix, _: csv_files(prefix) or ())


EACH = (
    "policy",
    "job",
    "owner",
    "gpus",
    "submitted",
    "duration",
    "started",
    "waiting",
    "completion",
)


def write_csv(
    files: tuple[Path, Path] | None,
    jobs: JobColumns,
    found: WhatIf,
    cells: Sequence[Cell],
    records: Mapping[str, CellResult],
) -> None:
    """Write a row for each job under each policy, and for each owner in each setting.

    Jobs are those of the first setting; times are in seconds.
    """
    if files is None:
        return
    worth = () if jobs.worth is None else ("utility",)
    write_text(files[0], _text((*EACH, *worth), _job_rows(jobs, cells, records)))
    columns = ("load", "machines", "gpus", "policy", "owner", *PARTS, *worth)
    write_text(files[1], _text(columns, _owner_rows(found, (*PARTS, *worth))))
    console.note(f"wrote {files[0]} and {files[1]}")


def _text(columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue()


def _job_rows(
    jobs: JobColumns, cells: Sequence[Cell], records: Mapping[str, CellResult]
) -> Iterator[Sequence[Any]]:
    owners = [jobs.owners[k] for k in jobs.owner.tolist()]
    times = (jobs.submitted.tolist(), jobs.durations.tolist())
    known = list(zip(jobs.ids, owners, jobs.gpus.tolist(), *times, strict=True))
    if jobs.is_recorded:
        real, places = really_happened(jobs)
        columns = [real.started.tolist(), real.waiting.tolist(), real.completion.tolist()]
        columns += _earned(chosen_part(jobs, places), real.completion)
        for place, *row in zip(places.tolist(), *columns, strict=True):
            yield (RECORDED, *known[place], *row)
    for cell in cells:
        record = records.get(cell.key)
        if cell.policy is None or record is None or "each" not in record.figures:
            continue
        each = record.figures["each"]
        columns = [each["started"], each["waiting"], each["completion"]]
        columns += _earned(jobs, np.array(each["completion"], dtype=float))
        for job, *row in zip(known, *columns, strict=True):
            yield (cell.policy, *job, *row)


def _earned(jobs: JobColumns, completion: FloatArray) -> list[list[float]]:
    """The column of what each job earned, if it is known what jobs are worth."""
    earned = earned_by(jobs, completion)
    return [] if earned is None else [earned.tolist()]


def _owner_rows(found: WhatIf, parts: Sequence[str]) -> Iterator[Sequence[Any]]:
    for setting in found.settings:
        where = (setting.load, len(setting.machines), setting.gpus)
        for policy, row in setting.policies.items():
            columns = zip(found.owners, *(row["by_owner"][name] for name in parts), strict=True)
            for owner, *values in columns:
                yield (*where, policy, owner, *values)
