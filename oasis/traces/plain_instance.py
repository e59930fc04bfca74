"""Tables with a row for each job: columns that are known, named by --map, or guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import nan
from sys import intern
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.model.rounding import FloatArray
from oasis.model.utility import Constant, Deadline
from oasis.traces.columns import Columns, columns_of, delimiter_of, names_submission, parse_map
from oasis.traces.gres import IN_WORDS, names_gpus, resources_of
from oasis.traces.job_table import JobTrace, TraceTable, jobs_frame
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_job import ended_as, goes_on
from oasis.traces.runs import jobs_of_runs
from oasis.traces.table import (
    ENTRY,
    LARGEST,
    MISSING,
    NEVER_RAN,
    NOT_ENDED,
    NUMBER,
    Faults,
    MalformedError,
    Mask,
    Rows,
    TraceSource,
    cell,
    cells_of,
    csv_layout,
    entries_of,
    frame_of_entries,
    records_of,
)
from oasis.traces.times import RELATIVE, Durations, TraceTimes

DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
# Signs of thousands and of decimals: 7.200,5 and 7,200.5. One such cell says it of its column.
SIGNS = {
    ",": re.compile(r"[+-]?[0-9]{1,3}(?:(?:\.[0-9]{3})+,[0-9]+|(?:\.[0-9]{3}){2,})"),
    ".": re.compile(r"[+-]?[0-9]{1,3}(?:(?:,[0-9]{3})+\.[0-9]+|(?:,[0-9]{3}){2,})"),
}
GROUPED = {
    ",": re.compile(r"[+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]+)(?:,[0-9]+)?"),
    ".": re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"),
}
AMOUNT = re.compile(r"[+-]?[0-9.,]+")
ROUNDED = 1.0  # seconds by which a duration may differ from the time from start to end
LOOKED_AT = 200  # cells, to tell whether a column holds words


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
        "names of columns, such as submitted=sent,gpus=cards; also duration, id, "
        "started, ended, waiting, eligible, instances (gpus are of each), model, owner, "
        "virtual_cluster, worth, deadline, state; others are "
        "guessed by name, started= says that there is none",
        reading=True,
    )
    user: str = option("", "take the jobs of this user alone", reading=True)
    virtual_cluster: str = option("", "take the jobs of this virtual cluster alone", reading=True)
    delimiter: str = option(
        "", "separator of columns, if the header does not show it", reading=True
    )


def listed_gpus(text: str) -> tuple[float, bool]:
    """GPUs of a cell, and whether they are parts of GPUs."""
    if NUMBER.fullmatch(text) and 0 <= float(text) <= LARGEST:
        return float(text), float(text) % 1 != 0
    if words := IN_WORDS.fullmatch(text):
        return float(words[1]), False
    found = resources_of(text) if names_gpus(text) else None
    # What names GPUs in a way that is not known is no job without GPUs.
    if found is None or (not found.gpus and any("gpu" in name for name in found.others)):
        raise MalformedError("")
    return found.gpus, found.is_share


@dataclass(frozen=True, slots=True)
class TableFormat:
    """Facts about a trace that are known before it is read.

    `columns` has the column of each thing that it says; empty: they are guessed by their names.
    `rows` makes its rows, if it is no table with a header. `is_dated`: its times are dates alone,
    and 0 stands for none. `gpus` reads a cell; None: a whole number of GPUs is in each. `states`
    are words of its own for how jobs ended, `name` is that of a job by its line, and `never` says
    what happened to one that has not begun. `joins`: a job may have several rows. `in_seconds`: no
    other unit of durations is possible. `check` looks at the rows and adds columns. `labels` are
    options by which jobs are chosen, and their columns.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    rows: Callable[[TraceSource, Any], tuple[Rows, Mapping[str, str], list[str]]] | None = None
    is_dated: bool = False
    gpus: Callable[[str], tuple[float, bool]] | None = listed_gpus
    states: Mapping[str, str] = field(default_factory=dict)
    name: str = "row-{}"
    never: str = NEVER_RAN
    joins: bool = False
    in_seconds: bool = False
    more: tuple[str, ...] = ()
    check: Callable[[Rows, FloatArray, FloatArray, Any], Mapping[str, Any]] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


class TableReader:
    """Makes the columns of jobs of the columns of one table."""

    def __init__(self, rows: Rows, columns: Columns, form: TableFormat, options: Any) -> None:
        self.rows, self._form, self._options = rows, form, options
        self.columns, self._units = columns.of, columns.units
        self.clock = TraceTimes(options, is_dated=form.is_dated)
        unit = options.duration_unit or columns.units.get("duration", "")
        self.durations = Durations("" if form.in_seconds else unit)
        self.has_commas = False  # between its columns
        self._later = self._commas = self._differing = 0
        self._nothing = np.full(len(rows.lines), nan)

    def jobs(self) -> dict[str, Any]:
        """The columns of a frame of jobs, also of those that `goes` on."""
        rows, columns, form = self.rows, self.columns, self._form
        words = [form.states.get(word, word) for word in self._texts("state")]
        states = {word: (ended_as(word), goes_on(word)) for word in set(words)}
        goes = np.array([states[word][1] for word in words], dtype=bool)
        if form.joins and "ended" in columns:  # a run that began and has no end
            goes |= ~self._missing("started") & self._missing("ended")
        self.clock.look_at(rows.texts(columns["submitted"]), self._units.get("submitted", ""))
        if not form.joins:
            rows.reject(goes, NOT_ENDED)
        begun = goes & ~self._missing("started")
        submitted = self._times("submitted")
        eligible, started, ended = map(self._times, ("eligible", "started", "ended"))
        waited = Durations(self._units.get("waiting", ""))
        started = np.where(
            np.isnan(started), submitted + self._some(waited.column, "waiting"), started
        )
        started = self._in_order("started", submitted, started)
        ended = self._in_order("ended", started, ended)
        duration = np.where(goes, 0.0, self._duration(started, ended, goes))
        if not form.joins:
            # Such a job was cancelled before it ran; it takes nothing and would count as served.
            rows.reject(duration == 0, NEVER_RAN)
            rows.reject(started < submitted, self.late)
        first = started + duration
        keeps = ended >= first if form.joins else ~np.isnan(ended)
        held, is_share = self._gpus(~goes)
        # A job waits from when it could run: before, it was held or needed another job.
        waits = (eligible > submitted) & ~(eligible > started)
        self._later = int(np.sum(waits & rows.is_good))
        submitted = np.where(waits, eligible, submitted)
        checked = form.check(rows, duration, held, self._options) if form.check else {}
        owners = [a or b for a, b in zip(self._texts("owner"), self._texts("group"), strict=True)]
        names = [form.name.format(line) for line in rows.lines.tolist()]
        return {
            "id": rows.cells[columns["id"]] if "id" in columns else names,
            **{"submitted": submitted, "duration": duration, "started": started},
            "ended": np.where(keeps, ended, first),
            "gpus": np.ceil(np.nan_to_num(held)).astype(np.int64),
            # A million rows have few owners: each name is kept once.
            "owner": [intern(name) for name in owners],
            "state": [states[word][0] for word in words],
            "model": self._texts("model"),
            **{"utility": self._utility(submitted), "is_share": is_share},
            **{"has_ended": ~goes, "begun": begun, **checked},
        }

    @property
    def late(self) -> str:
        """The fault of a job that started before it was submitted."""
        return f"{self.columns.get('started', 'start')} is before {self.columns['submitted']}"

    def _texts(self, name: str) -> list[str]:
        """The cells of a column, empty ones if there is no such."""
        return self.rows.texts(self.columns.get(name))

    def _numbers(self, name: str) -> list[str]:
        """The cells of a column with the signs that Python reads."""
        texts = self._texts(name)
        odd = [text for text in texts if "," in text or text.count(".") > 1]
        signs = {sign for text in odd for sign in SIGNS if SIGNS[sign].fullmatch(text)}
        if len(signs) == 1:
            (decimal,) = signs
            other = ".,"[decimal == "."]
            return [
                text.replace(other, "").replace(decimal, ".")
                if GROUPED[decimal].fullmatch(text)
                else text.replace(".", "?")  # a sign that its column has for something else
                for text in texts
            ]
        # Where commas separate, 3,600 is no 3.6.
        if self.has_commas or signs or not odd:
            return texts
        commas = np.array([bool(DECIMAL_COMMA.fullmatch(text)) for text in texts], dtype=bool)
        self._commas += int(np.sum(commas & self.rows.is_good))
        pairs = zip(texts, commas.tolist(), strict=True)
        return [text.replace(",", ".") if comma else text for text, comma in pairs]

    def _missing(self, name: str) -> Mask:
        missing = self.rows.missing(self.columns.get(name))
        zeros = [text == "0" for text in self._texts(name)] if self._form.is_dated else False
        return np.logical_or(missing, zeros)

    def _some(self, read: Any, name: str, where: Mask | None = None, *more: str) -> FloatArray:
        """Values of a column of times or durations, NaN in rows that say none or not `where`."""
        if name not in self.columns:
            return self._nothing
        wanted = ~self._missing(name) if where is None else where
        return self.rows.some(read, self._numbers(name), wanted, self.columns[name], *more)

    def _times(self, name: str) -> FloatArray:
        """Seconds of a column of times; NaN where it says none."""
        everywhere = np.full(len(self.rows.lines), True) if name == "submitted" else None
        return self._some(self.clock.column, name, everywhere, self._units.get(name, ""))

    def _in_order(self, name: str, before: FloatArray, after: FloatArray) -> FloatArray:
        """Times after others in their row: the second reading, of an hour that came twice."""
        late = np.flatnonzero(after < before)
        if late.size and name in self.columns:
            texts = self._texts(name)
            after[late] = self.clock.second([texts[k] for k in late.tolist()], after[late])
        return after

    def _duration(self, started: FloatArray, ended: FloatArray, goes: Mask) -> FloatArray:
        """How long each job ran, by its own column or from start to end."""
        rows, columns = self.rows, self.columns
        if "ended" in columns and "started" in columns:
            rows.reject(ended < started, f"{columns['ended']} is before {columns['started']}")
        has_run = ~np.isnan(started) & ~np.isnan(ended)
        took, told = ended - started, np.zeros(len(started), dtype=bool)
        if "duration" in columns:
            can_miss = has_run | (self._form.joins and "started" in columns)
            told = ~(can_miss & self._missing("duration")) & ~goes
            duration = self._some(self.durations.column, "duration", told)
            differ = told & has_run & rows.is_good & (np.abs(took - duration) > ROUNDED)
            self._differing += int(np.sum(differ)) if not self._form.joins else 0
            took = np.where(told, duration, took)
        never = ~told & ~goes & np.isnan(started)
        if self._form.joins:
            return np.where(never, 0.0, took)
        rows.reject(never, self._form.never)
        rows.reject(~told & np.isnan(ended), NOT_ENDED)
        return took

    def _gpus(self, where: Mask) -> tuple[FloatArray, Mask]:
        """GPUs of each job, and whether they are parts of GPUs; faults count `where` it ended."""
        rows, column, read = self.rows, self.columns["gpus"], self._form.gpus
        if read is None:
            held = rows.number(column, column, 1, whole=True)
            return held, np.zeros(len(held), dtype=bool)

        def gpus(text: str) -> tuple[float, bool]:
            try:
                return read(text)
            except MalformedError as fault:
                shown = f"{text!r:.40}" if "gpu" in text.lower() else ""
                bad = MalformedError(f"bad {column}", shown, "a number >= 0")
                raise fault if fault.kind else bad from None

        pairs = rows.each(self._numbers("gpus"), gpus, where)
        held = np.array([nan if pair is None else pair[0] for pair in pairs], dtype=float)
        is_share = np.array([bool(pair and pair[1]) for pair in pairs], dtype=bool)
        return held * self._instances(), is_share

    def _instances(self) -> FloatArray | float:
        """Instances of each job that hold its GPUs each; a column may have to be named."""
        column = self.columns.get("instances")
        if column is None:
            return 1.0
        if "instances" in parse_map(self._options.map):
            return np.asarray(self.rows.number(column, column, 1, whole=True), dtype=float)
        counts = [text for text in self._texts("instances") if NUMBER.fullmatch(text)]
        lists = any(names_gpus(text) for text in self._texts("gpus"))
        if not lists and any(float(text) > 1 for text in counts):
            expected = (
                f"expected instances={column} if {self.columns['gpus']} is of each of them, or "
                f"instances= if it counts all GPUs of a job: {column} is above 1"
            )
            raise InstanceError("map", expected)
        return 1.0

    def _utility(self, submitted: FloatArray) -> Any:
        """Utilities of the jobs; the value is 1 if the table gives only a deadline."""
        columns, size = self.columns, len(self.rows.lines)
        if "worth" not in columns and "deadline" not in columns:
            return None
        worth = np.ones(size)
        if "worth" in columns:
            worth = self.rows.number(columns["worth"], columns["worth"])
        found = np.empty(size, dtype=object)
        due = self._times("deadline")
        for k, (value, end, begin) in enumerate(zip(worth, due, submitted, strict=True)):
            if end >= begin:
                found[k] = Deadline(float(value), float(end - begin))
            elif not np.isnan(value):
                # A deadline before the submission cannot be met: the job is worth nothing.
                found[k] = Constant(float(value) if np.isnan(end) else 0.0)
        return found

    def notes(self) -> list[str]:
        """Notes on values that may have been meant differently."""
        said = []
        relative = self.clock.form == RELATIVE
        units = [
            f"{self.columns[name]} in {unit}"
            for name, unit in self._units.items()
            if (not self._options.duration_unit if name == "duration" else relative)
            or name == "waiting"
        ]
        if units:
            said.append(f"units guessed from the names of columns: {', '.join(units)}")
        if self._commas:
            said.append(f"cells such as 3,5, read as numbers with decimals: {self._commas}")
        if self._differing:
            told, begin, end = (self.columns[name] for name in ("duration", "started", "ended"))
            said.append(
                f"jobs whose {told} is not the time from {begin} to {end}: {self._differing}; "
                f"{told} is used (--map duration= takes the time between them)"
            )
        if self._later:
            said.append(f"jobs that wait from {self.columns['eligible']} on: {self._later}")
        return said


def read_table(
    form: TableFormat, source: TraceSource, options: Any, reader: Any = TableReader
) -> TraceTable:
    """Read a table of jobs; a JSON list of them, or lines of JSON, are one too."""
    said: list[str] = []
    has_commas = False
    if form.rows is not None:
        rows, there, said = form.rows(source, options)
        columns = Columns({name: there[name] for name in there if there[name] in rows.cells})
    else:
        rows, columns, has_commas = _guessed(form, source, options)
        said = columns.notes()
        if "id" not in columns.of and not form.columns:
            said.append("jobs are named after their lines: no column names them")
    if not len(rows.lines):
        rows.faults.check_usable(0, source.name)
    read = reader(rows, columns, form, options)
    read.has_commas = has_commas
    found = read.jobs()
    labels = form.labels or {
        label: columns.of.get(name, "")
        for label, name in (("user", "owner"), ("virtual_cluster", "virtual_cluster"))
        if getattr(options, label, "") != ""
    }
    found |= {name: rows.texts(labels[name]) for name in labels if labels[name] in rows.cells}
    faults = rows.faults
    good = rows.settle(None if form.joins else columns.of.get("id"))
    every = jobs_frame(rows, **found)
    jobs = every[good]
    allow = options.allow_malformed
    # Jobs that still run are no fault: whether a file can be used is judged by the others.
    ended = int(jobs["has_ended"].sum())
    faults.check_usable(ended or len(jobs), source.name, allow_malformed=allow or not ended)
    notes = [*([] if form.in_seconds else read.durations.notes()), *said, *read.notes()]
    open_runs = every[~every["has_ended"]]
    if form.joins:
        jobs = (
            read.grouped(jobs, notes) if hasattr(read, "grouped") else jobs.assign(key=jobs["id"])
        )
        open_runs = jobs[~jobs.duplicated("key", keep="last") & ~jobs["has_ended"]]
        jobs, more = jobs_of_runs(jobs, options.runs, faults, read.late)
        notes += more
        faults.check_usable(len(jobs), source.name, allow_malformed=True)
    begun = open_runs[open_runs["begun"]]
    if begun["gpus"].sum():
        free = "they are left out, so that these count as free"
        held = f"{len(begun)}, on {begun['gpus'].sum()} GPUs; {free}"
        notes.append(f"jobs that had begun and not ended: {held}")
    return TraceTable(
        jobs.drop(columns=["has_ended", "begun"], errors="ignore"),
        faults.malformed,
        notes,
        read.clock,
    )


def _guessed(form: TableFormat, source: TraceSource, options: Any) -> tuple[Rows, Columns, bool]:
    """The rows of a table with a header or of JSON, its columns, and if commas are between."""
    records = records_of(source)
    delimiter: str = getattr(options, "delimiter", "") or delimiter_of(source.header)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InstanceError("delimiter", "expected one character (a tab: $'\\t')", delimiter)
    layout = csv_layout(source, delimiter)
    header = list(layout.header)
    if records is not None:
        objects = [row for row in records if isinstance(row, dict)]
        header = list(dict.fromkeys(name for row in objects for name in row))

    def has_words(column: str) -> bool:
        """Whether a column of that name holds words, such as a model of GPU, and no amounts."""
        place = header.index(column)
        begin = source.lines[layout.first : layout.first + LOOKED_AT]
        cells = [row[place : place + 1] for row in map(layout.split, begin)]
        if records is not None:
            cells = [[str(row.get(column, ""))] for row in objects[:LOOKED_AT]]
        texts = [text for each in cells for text in each if not MISSING.fullmatch(text)]
        return bool(texts) and not any(AMOUNT.fullmatch(t) or names_gpus(t) for t in texts)

    given = parse_map(getattr(options, "map", ""))
    columns = columns_of(header, given, source.name, form.columns, has_words)
    wanted = list(dict.fromkeys((*columns.of.values(), *form.more)))
    faults = Faults() if records is None else Faults(ENTRY)
    if records is None:
        cells = cells_of(source, layout, wanted, faults)
        name = columns.of.get("id", "")
        # A column `job` may have the kinds of jobs: it then names none of them.
        if name.lower() == "job" and "id" not in given and cells[name].duplicated().any():
            columns = columns.without("id")
        return Rows(cells, faults), columns, delimiter == ","
    cells = frame_of_entries(
        entries_of(records, "", "", faults), partial(_record, wanted=wanted), faults
    )
    return Rows(cells.reindex(columns=wanted), faults), columns, False


def _record(row: Mapping[str, Any], wanted: Sequence[str]) -> list[dict[str, str]]:
    """A record of JSON as cells; a value that is an object stays JSON."""
    return [
        {
            name: json.dumps(row[name]) if isinstance(row.get(name), dict) else cell(row, name)
            for name in wanted
        }
    ]


def is_table_of_records(source: TraceSource) -> bool:
    """Whether a JSON file is a list of jobs, or lines of jobs."""
    records = records_of(source)
    first = records[0] if records else None
    return isinstance(first, dict) and names_submission(list(first))


def table_trace(
    name: str,
    about: str,
    form: TableFormat,
    reader: type[TableReader] = TableReader,
    *,
    licence: str = "",
    **more: Any,
) -> JobTrace:
    """A kind of trace that is a table of jobs."""
    said = {"trace": about, **({"licence": licence} if licence else {})}
    read = partial(read_table, form, reader=reader)
    return JobTrace(name, read, said, **{"options": PlainOptions, **more})


PLAIN = table_trace(
    "plain",
    "plain jobs",
    TableFormat(),
    looks="a CSV file of jobs, id,submitted,duration,gpus",
    header=("id", "submitted", "duration", "gpus"),
)
