"""A kind of trace, and the frame of the jobs that it reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.model.file_kinds import refuse_other
from oasis.model.instance import Instance
from oasis.traces.everything import fit_machines, widened
from oasis.traces.mapping import MachineOptions, build
from oasis.traces.options import TraceOptions
from oasis.traces.plain_job import PlainJob
from oasis.traces.table import Frame, Rows, TraceSource, pd, read_source
from oasis.traces.times import TraceTimes
from oasis.traces.window import LABELS, Window, check_choice, select

SHARES = "jobs with a part of a GPU, which count with the next whole number"
TABLE = "csv"  # a table of no kind that is known
FIELDS: Mapping[str, Any] = {  # columns of a frame of jobs -> their values where a trace has none
    **{"id": "", "submitted": np.nan, "duration": np.nan, "gpus": 0, "owner": ""},
    **{
        "started": np.nan,
        "ended": np.nan,
        "state": "",
        "utility": None,
        "model": "",
        "is_share": False,
    },
}


@dataclass(slots=True)
class TraceTable:
    """The jobs of a file, and what is to be said of how it was read.

    ``jobs`` is a frame with the columns `FIELDS`, in the order of the file, its lines as index, and
    a column for each label that jobs can be chosen by. NaN in `started` and `ended` is unknown.
    """

    jobs: Frame
    malformed: Mapping[str, Mapping[str, int]]
    notes: list[str] = field(default_factory=list)
    clock: TraceTimes | None = None


def jobs_frame(rows: Rows, **columns: Any) -> Frame:
    """The frame of these rows; a column is an array, a list or one value."""
    return pd.DataFrame({**FIELDS, **columns}, index=rows.lines)


def model_note(jobs: Frame) -> list[str]:
    """What is said of jobs that ask for a model of GPU."""
    count = int((jobs["model"] != "").sum())
    alike = "which is not respected: all GPUs count alike"
    return [f"jobs that ask for a model of GPU, {alike}: {count}"] if count else []


def plain_jobs_of(frame: Frame) -> list[PlainJob]:
    """The jobs of a frame."""
    columns = [frame[name].tolist() for name in FIELDS if name != "is_share"]
    for name in ("started", "ended"):
        place = list(FIELDS).index(name)
        columns[place] = [None if isnan(time) else time for time in columns[place]]
    return list(map(PlainJob, *columns))


@dataclass(frozen=True, slots=True)
class JobTrace:
    """A kind of trace: how it is read and recognised, what is said of it, and its options.

    `looks` describes it in words, with an article; `header` are columns that its first line has
    between commas, and `finds` tells it by its first lines or its JSON document otherwise.
    """

    name: str
    read: Callable[[TraceSource, Any], TraceTable]
    about: Mapping[str, str]
    options: type[TraceOptions] = MachineOptions
    looks: str = ""
    header: tuple[str, ...] = ()
    finds: Callable[[list[str], Any], bool] | None = None
    is_table: bool = True  # with a header, so that --map names its columns; or so read by it

    def table(self, source: TraceSource, options: TraceOptions) -> TraceTable:
        """Read the jobs of `source`, before any option selects some of them."""
        kind = source.kind()
        if not (getattr(options, "map", "") and kind is not None and kind.is_table):
            refuse_other(kind, (self.name, TABLE), self.looks, source.path)
        table = self.read(source, options)
        if table.clock is not None:
            table.notes += table.clock.notes()
        return table

    def window(
        self,
        path: str | os.PathLike[str],
        options: MachineOptions,
        fixed: Collection[str] | None = None,
    ) -> tuple[Window, dict[str, Any], MachineOptions]:
        """The jobs that the options choose, what reading the file reports, and the options.

        With `fixed`, all jobs are kept: every option that leaves out jobs, the number of machines
        and the horizon are chosen so that they fit, but for the options with these names.
        """
        source = read_source(path)
        table = self.table(source, options)
        jobs, left_out = chosen_jobs(table, options)
        records = [options.record(job) for job in plain_jobs_of(jobs)]
        notes = [*table.notes, *model_note(jobs)]
        shares = int(jobs["is_share"].sum())
        if shares:
            notes.append(f"{SHARES}: {shares}")
        if jobs["utility"].notna().any():
            notes.append(f"utilities are drawn with seed {options.seed}, not those of the table")
        clock = table.clock or TraceTimes(options, is_dated=False)
        begin = clock.start(options.start)
        if fixed is not None:
            options = widened(options, records, fixed, begin)
        window = select(records, options, begin)
        if fixed is not None:
            options = fit_machines(options, window, fixed)
        window = Window(window.start, window.records, {**left_out, **window.left_out})
        found = {
            **self.about,
            "files": {"jobs": source.name},
            "rows": {"jobs": len(table.jobs)},
            "malformed": {"jobs": table.malformed} if table.malformed else {},
            "notes": {"jobs": notes} if notes else {},
            "window_start": clock.show(window.start),
        }
        return window, found, options

    def instance(
        self,
        path: str | os.PathLike[str],
        options: MachineOptions,
        fixed: Collection[str] | None = None,
    ) -> Instance:
        """The instance of those jobs; parameters and errors are those of `window`."""
        window, found, options = self.window(path, options, fixed)
        return build(self.name, window, options.cluster(), options, found)


def chosen_jobs(table: TraceTable, options: TraceOptions) -> tuple[Frame, dict[str, int]]:
    """Jobs with the labels that the options name, and how many each of these labels left out."""
    jobs, left_out = table.jobs, {}
    for name in LABELS:
        label = getattr(options, name, "")
        if label and len(table.jobs):
            if name not in table.jobs:
                raise InstanceError(name, "expected a file with a column of it", label)
            # A label that no row has is refused: it is a typo more often than a wish for no jobs.
            check_choice(name, label, table.jobs[name].unique())
            kept = jobs[jobs[name] == label]
            left_out[name] = len(jobs) - len(kept)
            jobs = kept
    if options.parts != "whole" and jobs["is_share"].any():
        left_out["parts"] = int(jobs["is_share"].sum())
        jobs = jobs[~jobs["is_share"]]
    return jobs, left_out
