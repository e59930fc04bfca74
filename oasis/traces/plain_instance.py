"""Tables with a row for each job: columns that are known, named by --map, or guessed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import nan
from sys import intern
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.utility import Constant, Deadline
from oasis.traces.columns import Columns, columns_of, delimiter_of, names_submission, parse_map
from oasis.traces.documents import records_frame, records_of
from oasis.traces.gres import names_gpus, resources_of
from oasis.traces.job_table import JobTrace, TraceTable, held_note, jobs_frame
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import option
from oasis.traces.plain_job import ended_as, goes_on
from oasis.traces.table import (
    ENTRY,
    NEVER_RAN,
    NOT_ENDED,
    NUMBER,
    Faults,
    Frame,
    MalformedError,
    Mask,
    Objects,
    Rows,
    TraceSource,
    cells_of,
    csv_layout,
    numbers,
)
from oasis.traces.times import RELATIVE, Durations, TraceTimes

MISSING = frozenset(("", "none", "null", "(null)", "nan", "nat", "n/a", "na", "unknown", "-"))
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
# Signs of thousands and of decimals: 7.200,5 and 7,200.5. One such cell says it of its column.
SIGNS = {
    ",": re.compile(r"[+-]?[0-9]{1,3}(?:(?:\.[0-9]{3})+,[0-9]+|(?:\.[0-9]{3}){2,})"),
    ".": re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+"),
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
        "names of columns, such as submitted=submit_time,gpus=gpu_num; also duration, id, "
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


def _listed(text: str) -> tuple[float, bool]:
    """GPUs of a list, and whether they are parts of GPUs."""
    if not names_gpus(text):
        raise MalformedError("")
    found = resources_of(text)
    return found.gpus, found.is_share


@dataclass(frozen=True, slots=True)
class TableFormat:
    """Facts about a table that are known before it is read.

    `columns` has the column of each thing that it says; empty: they are guessed by their names.
    `is_dated`: its times are dates alone, and 0 stands for none. `gpus` reads a cell that is no
    number; None: a whole number of GPUs is in each. `states` are words of its own for how jobs
    ended, `name` is that of a job by its line, and `check` looks at `more` columns.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    is_dated: bool = False
    gpus: Callable[[str], tuple[float, bool]] | None = _listed
    states: Mapping[str, str] = field(default_factory=dict)
    name: str = "row-{}"
    more: tuple[str, ...] = ()
    check: Callable[[Rows, FloatArray, FloatArray, Any], None] | None = None


class _TableReader:
    """Makes the columns of jobs of the columns of one table."""

    def __init__(
        self, rows: Rows, columns: Columns, form: TableFormat, options: Any, *, has_commas: bool
    ) -> None:
        self.rows, self._form, self._options = rows, form, options
        self._columns, self._units, self._has_commas = columns.of, columns.units, has_commas
        self.clock = TraceTimes(options, is_dated=form.is_dated)
        self.durations = Durations(options.duration_unit or columns.units.get("duration", ""))
        self._held = (0, 0)  # jobs that had begun and not ended, and their GPUs
        self._later = self._commas = self._differing = 0

    def jobs(self) -> dict[str, Any]:
        """The columns of a frame of jobs."""
        rows, columns = self.rows, self._columns
        words = [self._form.states.get(word, word) for word in self._texts("state")]
        states = {word: (ended_as(word), goes_on(word)) for word in set(words)}
        goes = np.array([states[word][1] for word in words], dtype=bool)
        rows.reject(goes, NOT_ENDED)
        begun = goes & ~self._missing(self._texts("started"))
        held = np.nan_to_num(numbers(self._texts("gpus")))[begun]
        self._held = (held.size, int(np.sum(held)))
        self.clock.look_at(rows.texts(columns["submitted"]), self._units.get("submitted", ""))
        submitted = self._times("submitted")
        eligible, started, ended = map(self._times, ("eligible", "started", "ended"))
        started = np.where(np.isnan(started), submitted + self._waited(), started)
        started = self._in_order("started", submitted, started)
        ended = self._in_order("ended", started, ended)
        duration = self._duration(started, ended)
        # Such a job was cancelled before it ran; it takes nothing and would count as served.
        rows.reject(duration == 0, NEVER_RAN)
        if "started" in columns:
            said = f"{columns['started']} is before {columns['submitted']}"
            rows.reject(started < submitted, said)
        ended = np.where(np.isnan(ended), started + duration, ended)
        held, is_share = self._gpus()
        # A job waits from when it could run: before, it was held or needed another job.
        waits = (eligible > submitted) & ~(eligible > started)
        self._later = int(np.sum(waits & rows.is_good))
        submitted = np.where(waits, eligible, submitted)
        utility = self._utility(submitted)
        if self._form.check is not None:
            self._form.check(rows, duration, held, self._options)
        names = [self._form.name.format(line) for line in rows.lines.tolist()]
        return {
            "id": rows.cells[columns["id"]] if "id" in columns else names,
            **{"submitted": submitted, "duration": duration, "started": started, "ended": ended},
            "gpus": np.ceil(np.nan_to_num(held)).astype(np.int64),
            # A million rows have few owners: each name is kept once.
            "owner": [intern(name) for name in self._texts("owner")],
            "state": [states[word][0] for word in words],
            "model": self._texts("model"),
            **{"utility": utility, "is_share": is_share},
        }

    def _texts(self, name: str) -> list[str]:
        """The cells of a column, empty ones if there is no such."""
        column = self._columns.get(name)
        return [""] * len(self.rows.lines) if column is None else self.rows.texts(column)

    def _numbers(self, name: str) -> list[str]:
        """The cells of a column with the signs that Python reads."""
        texts = self._texts(name)
        odd = [text for text in texts if "," in text or text.count(".") > 1]
        if not odd:
            return texts
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
        if self._has_commas or signs:
            return texts
        commas = np.array([bool(DECIMAL_COMMA.fullmatch(text)) for text in texts], dtype=bool)
        self._commas += int(np.sum(commas & self.rows.is_good))
        pairs = zip(texts, commas.tolist(), strict=True)
        return [text.replace(",", ".") if comma else text for text, comma in pairs]

    def _missing(self, texts: Sequence[str]) -> Mask:
        zero = self._form.is_dated
        missing = [text.lower() in MISSING or (zero and text == "0") for text in texts]
        return np.array(missing, dtype=bool)

    def _some(
        self, read: Callable[..., tuple[FloatArray, Objects]], name: str, where: Mask, *more: str
    ) -> FloatArray:
        """Values of a column of times or durations in some rows, NaN in the others."""
        return self.rows.some(read, self._numbers(name), where, self._columns[name], *more)

    def _times(self, name: str) -> FloatArray:
        """Seconds of a column of times; NaN where it says none."""
        if name not in self._columns:
            return np.full(len(self.rows.lines), nan)
        wanted = np.full(len(self.rows.lines), True)
        if name != "submitted":
            wanted = ~self._missing(self._texts(name))
        return self._some(self.clock.column, name, wanted, self._units.get(name, ""))

    def _in_order(self, name: str, before: FloatArray, after: FloatArray) -> FloatArray:
        """Times after others in their row: the second reading, of an hour that came twice."""
        late = np.flatnonzero(after < before)
        if late.size and name in self._columns:
            texts = self._texts(name)
            after[late] = [self.clock.second(texts[k], after[k]) for k in late.tolist()]
        return after

    def _waited(self) -> FloatArray:
        """How long each job waited, by a column; NaN where none says it."""
        if "waiting" not in self._columns:
            return np.full(len(self.rows.lines), nan)
        waits = Durations(self._units.get("waiting", ""))
        return self._some(waits.column, "waiting", ~self._missing(self._texts("waiting")))

    def _duration(self, started: FloatArray, ended: FloatArray) -> FloatArray:
        rows, columns = self.rows, self._columns
        if "ended" in columns and "started" in columns:
            rows.reject(ended < started, f"{columns['ended']} is before {columns['started']}")
        has_run = ~np.isnan(started) & ~np.isnan(ended)
        took = ended - started
        told = np.zeros(len(took), dtype=bool)
        if "duration" in columns:
            told = ~(has_run & self._missing(self._texts("duration")))
            duration = self._some(self.durations.column, "duration", told)
            differ = told & has_run & rows.is_good & (np.abs(took - duration) > ROUNDED)
            self._differing += int(np.sum(differ))
            took = np.where(told, duration, took)
        rows.reject(~told & np.isnan(started), NEVER_RAN)
        rows.reject(~told & np.isnan(ended), NOT_ENDED)
        return took

    def _gpus(self) -> tuple[FloatArray, Mask]:
        """GPUs of each job, and whether they are parts of GPUs."""
        rows, column, read = self.rows, self._columns["gpus"], self._form.gpus
        if read is None:
            held = rows.number(column, column, 1, whole=True)
            return held, np.zeros(len(held), dtype=bool)
        bad = MalformedError(f"bad {column}", expected="a number >= 0")

        def gpus(text: str) -> tuple[float, bool]:
            if read is _listed and NUMBER.fullmatch(text):
                if not 0 <= float(text) <= 2.0**53:
                    raise bad
                return float(text), float(text) % 1 != 0
            try:
                return read(text)
            except MalformedError as fault:
                raise fault if fault.kind else bad from None

        pairs = rows.each(self._numbers("gpus"), gpus)
        held = np.array([nan if pair is None else pair[0] for pair in pairs], dtype=float)
        is_share = np.array([bool(pair and pair[1]) for pair in pairs], dtype=bool)
        return held * self._instances(), is_share

    def _instances(self) -> FloatArray:
        """Instances of each job that hold its GPUs each; a column may have to be named."""
        if "instances" not in self._columns:
            return np.ones(len(self.rows.lines))
        column = self._columns["instances"]
        if "instances" in parse_map(self._options.map):
            return np.asarray(self.rows.number(column, column, 1, whole=True), dtype=float)
        counts = [text for text in self._texts("instances") if NUMBER.fullmatch(text)]
        lists = any(names_gpus(text) for text in self._texts("gpus"))
        if not lists and any(float(text) > 1 for text in counts):
            expected = (
                f"expected instances={column} if {self._columns['gpus']} is of each of them, or "
                f"instances= if it counts all GPUs of a job: {column} is above 1"
            )
            raise InstanceError("map", expected)
        return np.ones(len(self.rows.lines))

    def _utility(self, submitted: FloatArray) -> Any:
        """Utilities of the jobs; the value is 1 if the table gives only a deadline."""
        columns, size = self._columns, len(self.rows.lines)
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
            f"{self._columns[name]} in {unit}"
            for name, unit in self._units.items()
            if (not self._options.duration_unit if name == "duration" else relative)
            or name == "waiting"
        ]
        if units:
            said.append(f"units guessed from the names of columns: {', '.join(units)}")
        if self._commas:
            said.append(f"cells such as 3,5, read as numbers with decimals: {self._commas}")
        if self._differing:
            told, begin, end = (self._columns[name] for name in ("duration", "started", "ended"))
            said.append(
                f"jobs whose {told} is not the time from {begin} to {end}: {self._differing}; "
                f"{told} is used (--map duration= takes the time between them)"
            )
        if self._later:
            said.append(f"jobs that wait from {self._columns['eligible']} on: {self._later}")
        return [*said, *held_note(*self._held)]


def read_table(form: TableFormat, source: TraceSource, options: Any) -> TraceTable:
    """Read a table of jobs; a JSON list of them, or lines of JSON, are one too."""
    records = records_of(source)
    given: str = getattr(options, "delimiter", "")
    delimiter = given or delimiter_of(source.header)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InstanceError("delimiter", "expected one character (a tab: $'\\t')", delimiter)
    layout = csv_layout(source, delimiter)
    header = list(layout.header)
    if records is not None:
        rows = [row for row in records if isinstance(row, dict)]
        header = list(dict.fromkeys(name for row in rows for name in row))

    def has_words(column: str) -> bool:
        """Whether a column of that name holds words, such as a model of GPU, and no amounts."""
        place = header.index(column)
        begin = source.lines[layout.first : layout.first + LOOKED_AT]
        cells = [row[place : place + 1] for row in map(layout.split, begin)]
        if records is not None:
            cells = [[str(row.get(column, ""))] for row in rows[:LOOKED_AT]]
        texts = [text for each in cells for text in each if text.lower() not in MISSING]
        return bool(texts) and not any(AMOUNT.fullmatch(t) or names_gpus(t) for t in texts)

    columns = columns_of(
        header, parse_map(getattr(options, "map", "")), source.name, form.columns, has_words
    )
    wanted = (*columns.of.values(), *form.more)
    faults = Faults() if records is None else Faults(ENTRY)
    cells: Frame
    if records is None:
        cells = cells_of(source, layout, wanted, faults)
    else:
        cells = records_frame(records, list(dict.fromkeys(wanted)), faults)
    reader = _TableReader(Rows(cells, faults), columns, form, options, has_commas=delimiter == ",")
    found = reader.jobs()
    labels = {"user": "owner", "virtual_cluster": "virtual_cluster"}
    for label, name in labels.items():
        if name in columns.of and getattr(options, label, "") != "":
            found[label] = reader.rows.texts(columns.of[name])
    good = reader.rows.settle(columns.of.get("id"))
    jobs = jobs_frame(reader.rows, good, **found)
    faults.check_usable(len(jobs), source.name, allow_malformed=options.allow_malformed)
    unnamed = "id" not in columns.of and not form.columns
    named = ["jobs are named after their lines: no column names them"] if unnamed else []
    notes = [*reader.durations.notes(), *columns.notes(), *named, *reader.notes()]
    return TraceTable(jobs, faults.malformed, notes, reader.clock)


def is_table_of_records(source: TraceSource) -> bool:
    """Whether a JSON file is a list of jobs, or lines of jobs."""
    records = records_of(source)
    first = records[0] if records else None
    return isinstance(first, dict) and names_submission(list(first))


def table_trace(name: str, about: Mapping[str, str], form: TableFormat, **more: Any) -> JobTrace:
    """A kind of trace that is a table of jobs."""
    return JobTrace(name, partial(read_table, form), about, **{"options": PlainOptions, **more})


PLAIN = table_trace(
    "plain",
    {"trace": "plain jobs"},
    TableFormat(),
    looks="a CSV file of jobs, id,submitted,duration,gpus",
    header=("id", "submitted", "duration", "gpus"),
)
