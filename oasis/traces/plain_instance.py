"""Instances from a table of jobs: a CSV or Parquet file with a row for each of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from sys import intern

from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.model.utility import Constant, Deadline
from oasis.traces.columns import Columns, columns_of, delimiter_of, parse_map
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_job import PlainJob, ended_as, goes_on
from oasis.traces.slurm import resources_of
from oasis.traces.table import (
    NEVER_RAN,
    NOT_ENDED,
    MalformedError,
    RowLayout,
    TraceSource,
    TraceTable,
    csv_cells,
    read_table,
    real,
)
from oasis.traces.times import RELATIVE, UNIT_SECONDS, Durations, TraceTimes

MISSING = frozenset(("", "none", "null", "(null)", "nan", "nat", "n/a", "na", "unknown", "-"))
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
ROUNDED = 1.0  # seconds by which a duration may differ from the time from start to end
NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class PlainOptions(MachineOptions):
    """Assumptions about a table of jobs, which has no more than their GPUs and times.

    Examples
    --------
    >>> from oasis.traces import PlainOptions
    >>> PlainOptions(min_gpus=1, horizon=24, map="gpus=n_gpu").horizon
    24
    """

    map: str = option(
        "",
        "names of columns, such as submitted=submit_time,gpus=gpu_num; also duration, id, "
        "started, ended, waiting, owner, virtual_cluster, worth, deadline, state; others are "
        "guessed by name, started= says that there is none",
        reading=True,
    )
    user: str = option("", "take the jobs of this user alone", reading=True)
    virtual_cluster: str = option("", "take the jobs of this virtual cluster alone", reading=True)
    delimiter: str = option(
        "", "separator of columns, if the header does not show it", reading=True
    )


def read_plain_instance(
    path: str | os.PathLike[str], options: PlainOptions | None = None
) -> Instance:
    r"""Turn a trace of plain jobs into an instance.

    Parameters
    ----------
    path : path
        CSV file with the columns ``id,submitted,duration,gpus``, as for `read_plain`; in place of
        ``duration`` there may be ``start`` and ``end``. A row that cannot be used is left out and
        counted, as in every format.
    options : PlainOptions, optional
        The assumptions; all of them are recorded in the metadata.

    Raises
    ------
    InstanceError
        If a column is missing, more than half of the rows cannot be used or no job is left.
    ValueError
        If an option is out of its range.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import PlainOptions, read_plain_instance
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.csv")
    ...     _ = path.write_text("id,submitted,duration,gpus\na,100,7200,4\nb,1900,3600,2\n")
    ...     instance = read_plain_instance(path, PlainOptions(start="first"))
    >>> [(job.id, job.arrival) for job in instance.jobs]
    [('a', 0), ('b', 1)]
    """
    return PLAIN.instance(path, PlainOptions() if options is None else options)


def gpus_of(text: str, column: str) -> float:
    """GPUs of a cell: a number, or a list as Slurm writes it.

    Examples
    --------
    >>> gpus_of("0.5", "gpus"), gpus_of("gpu:a100:4", "gpus"), gpus_of("gres/gpu=2,mem=64G", "tres")
    (0.5, 4, 2)
    """
    return resources_of(text).gpus if "gpu" in text.lower() else real(text, column)


@dataclass(frozen=True, slots=True)
class TableFormat:
    """Facts about a table that are known before it is read.

    Parameters
    ----------
    columns : mapping of str to str
        The column of each thing that it says; empty: they are guessed by their names.
    is_dated : bool
        Whether its times are dates alone, and 0 stands for none.
    gpus : callable
        Reads the cell of GPUs; takes its text and the name of the column.
    states : mapping of str to str
        Words of its own for how jobs ended.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    is_dated: bool = False
    gpus: Callable[[str, str], float] = gpus_of
    states: Mapping[str, str] = field(default_factory=dict)


class _TableReader:
    """Makes jobs of the rows of one table."""

    def __init__(
        self, columns: Columns, form: TableFormat, options: PlainOptions, *, has_commas: bool
    ) -> None:
        self._columns, self._form, self._options = columns.of, form, options
        self._units, self._has_commas = columns.units, has_commas
        self.clock = TraceTimes(options, is_dated=form.is_dated)
        self.durations = Durations(options.duration_unit or columns.units.get("duration", ""))
        self.commas = self.differing = 0

    def job(self, line: int, row: Mapping[str, str]) -> TraceRow:
        """The job of a row."""
        columns = self._columns
        word = row[columns["state"]] if "state" in columns else ""
        word = self._form.states.get(word, word)
        if word and goes_on(word):
            raise MalformedError(NOT_ENDED)
        submitted = self._read_time(row[columns["submitted"]], "submitted")
        started, ended = self._time(row, "started"), self._time(row, "ended")
        if started is None:
            started = self._after_waiting(row, submitted)
        duration = self._duration(row, started, ended)
        # Such a job was cancelled before it ran; it takes nothing and would count as served.
        if duration == 0:
            raise MalformedError(NEVER_RAN)
        if started is not None and started < submitted:
            first, second = columns["started"], columns["submitted"]
            raise MalformedError(f"{first} is before {second}")
        if ended is None and started is not None:
            ended = started + duration
        held = self._form.gpus(self._number(row[columns["gpus"]]), columns["gpus"])
        job = PlainJob(
            row[columns["id"]] if "id" in columns else f"row-{line}",
            submitted,
            duration,
            ceil(held),
            # A million rows have few owners: each name is kept once.
            intern(row[columns["owner"]]) if "owner" in columns else "",
            started,
            ended,
            ended_as(word),
            self._utility(row, submitted),
        )
        return TraceRow(job, self._labels(row), is_share=held != job.gpus)

    def _utility(self, row: Mapping[str, str], submitted: float) -> Constant | Deadline | None:
        """Utility of the job; its value is 1 if the table gives only a deadline."""
        column, due = self._columns.get("worth"), self._time(row, "deadline")
        if column is None and "deadline" not in self._columns:
            return None
        worth = 1.0 if column is None else real(self._number(row[column]), column)
        if due is None:
            return Constant(worth)
        # A deadline before the submission cannot be met: the job is worth nothing, but is there.
        return Deadline(worth, due - submitted) if due >= submitted else Constant(0.0)

    def _time(self, row: Mapping[str, str], name: str) -> float | None:
        column = self._columns.get(name)
        if column is None:
            return None
        text = row[column]
        if text.lower() in MISSING or (self._form.is_dated and text == "0"):
            return None
        return self._read_time(text, name)

    def _read_time(self, text: str, name: str) -> float:
        """A time of the column of `name`; one since the trace began is in the column's unit."""
        time = self.clock.read(self._number(text), self._columns[name])
        is_relative = self.clock.form == RELATIVE
        return time * UNIT_SECONDS[self._units.get(name, "")] if is_relative else time

    def _has_unit(self, name: str) -> bool:
        """Whether the unit of this column's name is what its numbers are read in."""
        if name == "duration":
            return not self._options.duration_unit
        return name == "waiting" or self.clock.form == RELATIVE

    def _after_waiting(self, row: Mapping[str, str], submitted: float) -> float | None:
        """When the job started, by how long it waited; None if no column says so."""
        column = self._columns.get("waiting")
        if column is None or row[column].lower() in MISSING:
            return None
        waits = Durations(self._units.get("waiting", ""))
        return submitted + waits.read(self._number(row[column]), column)

    def _duration(
        self, row: Mapping[str, str], started: float | None, ended: float | None
    ) -> float:
        column = self._columns.get("duration")
        if started is not None and ended is not None and ended < started:
            raise MalformedError(f"{self._columns['ended']} is before {self._columns['started']}")
        has_run = started is not None and ended is not None
        if column is not None and not (has_run and row[column].lower() in MISSING):
            told = self.durations.read(self._number(row[column]), column)
            if started is not None and ended is not None:
                self.differing += abs(ended - started - told) > ROUNDED
            return told
        if started is None:
            raise MalformedError(NEVER_RAN)
        if ended is None:
            raise MalformedError(NOT_ENDED)
        return ended - started

    def _number(self, text: str) -> str:
        """Parse a number with a decimal comma, unless commas separate: 3,600 is no 3.6 then."""
        if self._has_commas or "," not in text or not DECIMAL_COMMA.fullmatch(text):
            return text
        self.commas += 1
        return text.replace(",", ".")

    def _labels(self, row: Mapping[str, str]) -> Mapping[str, str]:
        options, columns = self._options, self._columns
        if not options.user and not options.virtual_cluster:
            return NO_LABELS
        names = {"user": "owner", "virtual_cluster": "virtual_cluster"}
        return {label: row[columns[name]] for label, name in names.items() if name in columns}

    def notes(self) -> list[str]:
        """Notes on values that may have been meant differently."""
        said = []
        units = [
            f"{self._columns[name]} in {unit}"
            for name, unit in self._units.items()
            if self._has_unit(name)
        ]
        if units:
            said.append(f"units guessed from the names of columns: {', '.join(units)}")
        if self.commas:
            said.append(f"cells such as 3,5, read as numbers with decimals: {self.commas}")
        if self.differing:
            told, begin, end = (self._columns[name] for name in ("duration", "started", "ended"))
            said.append(
                f"jobs whose {told} is not the time from {begin} to {end}: {self.differing}; "
                f"{told} is used (--map duration= takes the time between them)"
            )
        return said


def _read(form: TableFormat, source: TraceSource, options: PlainOptions) -> TraceTable[TraceRow]:
    delimiter = options.delimiter or delimiter_of(source.header)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InstanceError("delimiter", "expected one character (a tab: $'\\t')", delimiter)
    split = partial(csv_cells, delimiter=delimiter)
    layout = RowLayout(split(source.header), source.first + 1, split)
    columns = columns_of(layout.header, parse_map(options.map), source.name, form.columns)
    reader = _TableReader(columns, form, options, has_commas=delimiter == ",")
    table = read_table(
        source,
        tuple(dict.fromkeys(columns.of.values())),
        reader.job,
        key=columns.of.get("id"),
        layout=layout,
        clock=reader.clock,
        time=columns.of["submitted"],
        allow_malformed=options.allow_malformed,
    )
    reader.durations.question()
    named = [] if "id" in columns.of else ["jobs are named after their lines: no column names them"]
    table.notes += [*columns.notes(), *named, *reader.notes()]
    return table


def table_trace(name: str, about: Mapping[str, str], form: TableFormat | None = None) -> JobTrace:
    """A kind of trace that is a table of jobs."""
    return JobTrace(name, partial(_read, form or TableFormat()), about, PlainOptions)


PLAIN = table_trace("plain", {"trace": "plain jobs"})
