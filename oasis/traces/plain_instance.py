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
from oasis.traces.columns import (
    TIMED,
    columns_of,
    delimiter_of,
    guess,
    notes_of_guesses,
    parse_map,
    units_of,
)
from oasis.traces.gres import IN_WORDS, names_gpus, resources_of
from oasis.traces.job_table import JobTrace, PlainTrace, jobs_frame
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import TraceOptions, option
from oasis.traces.plain_job import FACTS, ended_as, goes_on
from oasis.traces.runs import jobs_of_runs
from oasis.traces.table import (
    COLUMN,
    LARGEST,
    LINES_LOOKED_AT,
    MISSING,
    NEVER_RAN,
    NOT_ENDED,
    NUMBER,
    Frame,
    MalformedError,
    Mask,
    Rows,
    TraceSource,
    cell,
    csv_cells,
    csv_rows,
    entry_rows,
)
from oasis.traces.times import RELATIVE, Durations, TraceTimes

DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
UNSURE = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # thousands, or decimals
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
    return float(found.gpus), found.is_share


def whole_gpus(text: str) -> tuple[float, bool]:
    """GPUs of a cell that has a whole number of them, and at least one."""
    value = float(text) if NUMBER.fullmatch(text) else nan
    if not 1 <= value <= LARGEST or value % 1:
        raise MalformedError("", expected="a whole number >= 1")
    return value, False


@dataclass(frozen=True, slots=True)
class TableFormat:
    """Facts about a trace that are known before it is read.

    `columns` has the column of each thing that it says, with ``|`` between those that may say it,
    and ``?`` behind one that may be missing; empty: they are guessed by their names. `read` makes
    its rows, if it is no table with a header. `is_dated`: its times are dates alone, and 0 stands
    for none. `gpus` reads a column of GPUs. `states` are words of its own for how jobs ended,
    `name` is that of a job by its line, and `never` says what happened to one that has not begun.
    `joins` gives a `key` to rows of which several are of one job. `in_seconds`: no other unit of
    durations is possible. `check` looks at the rows and adds columns, some of `more`. `labels` are
    options by which jobs are chosen, and their columns.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[TraceSource, Any], Rows] | None = None
    is_dated: bool = False
    gpus: Callable[[Any], tuple[Any, ...]] = listed_gpus
    states: Mapping[str, str] = field(default_factory=dict)
    name: str = "row-{}"
    never: str = NEVER_RAN
    joins: Callable[[Frame, Rows], Frame] | None = None
    in_seconds: bool = False
    more: Sequence[str] = ()
    check: Callable[[Rows, dict[str, Any], Any], None] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


class _Reader:
    """Makes the columns of jobs of the columns of one table."""

    def __init__(
        self, rows: Rows, columns: Mapping[str, str], form: TableFormat, options: Any
    ) -> None:
        self.rows, self.columns, self._form, self._options = rows, columns, form, options
        self._units = {} if form.columns else units_of(columns)
        self.clock = TraceTimes(options, is_dated=form.is_dated)
        self.durations = {
            name: Durations(
                "" if form.in_seconds else options.duration_unit or self._units.get(name, "")
            )
            for name in ("duration", "waiting")
        }
        self._later = self._differing = 0

    def jobs(self) -> dict[str, Any]:
        """The columns of a frame of jobs, also of those that go on."""
        rows, columns, form = self.rows, self.columns, self._form
        words = [form.states.get(word, word) for word in self._texts("state")]
        states = {word: (ended_as(word), goes_on(word)) for word in set(words)}
        goes = np.array([states[word][1] for word in words], dtype=bool)
        if form.joins and "ended" in columns:  # a run that began and has no end
            goes |= ~self._missing("started") & self._missing("ended")
        self.clock.look_at(self._texts("submitted"), self._units.get("submitted", ""))
        if not form.joins:
            rows.reject(goes, NOT_ENDED)
        begun = goes & ~self._missing("started")
        submitted = self._seconds("submitted", np.full(len(words), True))
        eligible, started, ended = map(self._seconds, ("eligible", "started", "ended"))
        waited = self._seconds("waiting")
        started = np.where(np.isnan(started), submitted + waited, started)
        started = self._in_order("started", submitted, started)
        ended = self._in_order("ended", started, ended)
        duration = np.where(goes, 0.0, self._duration(started, ended, goes))
        if not form.joins:
            # Such a job was cancelled before it ran; it takes nothing and would count as served.
            rows.reject(duration == 0, NEVER_RAN)
            rows.reject(started < submitted, self.late)
        first = started + duration
        keeps = ended >= first if form.joins else ~np.isnan(ended)
        read = rows.each(self._texts("gpus"), self._gpus_of, ~goes)
        told = [each or (nan, False) for each in read]
        held = np.array([each[0] for each in told], dtype=float) * self._instances()
        rows.reject(~goes & (held > LARGEST), f"bad {columns['gpus']}: above 2^53")
        # A job waits from when it could run: before, it was held or needed another job.
        waits = (eligible > submitted) & ~(eligible > started)
        self._later = int(np.sum(waits & rows.is_good))
        submitted = np.where(waits, eligible, submitted)
        owners = [a or b for a, b in zip(self._texts("owner"), self._texts("group"), strict=True)]
        names = [form.name.format(line) for line in rows.lines.tolist()]
        found = {
            "id": rows.cells[columns["id"]] if "id" in columns else names,
            **{"submitted": submitted, "duration": duration, "started": started, "gpus": held},
            **{"is_share": [each[1] for each in told], "told": told},
            "ended": np.where(keeps, ended, first),
            # A million rows have few owners: each name is kept once.
            "owner": [intern(name) for name in owners],
            "state": [states[word][0] for word in words],
            **{"model": self._texts("model"), "has_ended": ~goes, "begun": begun},
        }
        if form.check:
            form.check(rows, found, self._options)
        found["utility"] = self._utility(submitted)
        found["gpus"] = np.ceil(np.where(held <= LARGEST, held, 0)).astype(np.int64)
        return found

    def _gpus_of(self, text: Any) -> tuple[Any, ...]:
        try:
            return self._form.gpus(text)
        except MalformedError as fault:
            if fault.kind:
                raise
            shown = f"{text!r:.40}" if "gpu" in text.lower() else ""
            kind, expected = f"bad {self.columns['gpus']}", fault.expected or "a number >= 0"
            raise MalformedError(kind, shown, expected) from None

    @property
    def late(self) -> str:
        """The fault of a job that started before it was submitted."""
        return f"{self.columns.get('started', 'start')} is before {self.columns['submitted']}"

    def _texts(self, name: str) -> list[str]:
        """The cells of a column, empty ones if there is no such."""
        return self.rows.texts(self.columns.get(name))

    def _missing(self, name: str) -> Mask:
        return self.rows.missing(self.columns.get(name), zero=self._form.is_dated)

    def _seconds(self, name: str, where: Mask | None = None) -> FloatArray:
        """Seconds of a column of times or durations, NaN where it says none, or not `where`."""
        rows, values = self.rows, np.full(len(self.rows.lines), nan)
        column, texts = self.columns.get(name), self._texts(name)
        if column is None:
            return values
        read: Callable[..., float] = partial(self.clock.seconds, unit=self._units.get(name, ""))
        read = self.durations[name].seconds if name in self.durations else read
        wanted = ~self._missing(name) if where is None else where
        for k in np.flatnonzero(wanted & rows.is_good).tolist():
            try:
                values[k] = read(texts[k], column)
            except MalformedError as fault:
                rows.fault[k] = fault
        return values

    def _in_order(self, name: str, before: FloatArray, after: FloatArray) -> FloatArray:
        """Times after others in their row: the second reading, of an hour that came twice."""
        texts = self._texts(name)
        for k in np.flatnonzero(after < before).tolist() if name in self.columns else ():
            after[k] = self.clock.second(texts[k])
        return after

    def _duration(self, started: FloatArray, ended: FloatArray, goes: Mask) -> FloatArray:
        """How long each job ran, by its own column or from start to end."""
        rows, columns, joins = self.rows, self.columns, self._form.joins is not None
        if "ended" in columns and "started" in columns:
            rows.reject(ended < started, f"{columns['ended']} is before {columns['started']}")
        has_run = ~np.isnan(started) & ~np.isnan(ended)
        took, told = ended - started, np.zeros(len(started), dtype=bool)
        if "duration" in columns:
            can_miss = has_run | (joins and "started" in columns)
            told = ~(can_miss & self._missing("duration")) & ~goes
            duration = self._seconds("duration", told)
            differ = told & has_run & rows.is_good & (np.abs(took - duration) > ROUNDED)
            self._differing += int(np.sum(differ)) if not joins else 0
            took = np.where(told, duration, took)
        never = ~told & ~goes & np.isnan(started)
        if joins:
            return np.where(never, 0.0, took)
        rows.reject(never, self._form.never)
        rows.reject(~told & np.isnan(ended), NOT_ENDED)
        return took

    def _instances(self) -> FloatArray | float:
        """Instances of each job that hold its GPUs each; a column may have to be named."""
        column = self.columns.get("instances")
        if column is None:
            return 1.0
        if "instances" in parse_map(self._options.map):
            return np.asarray(self.rows.number(column, 1, whole=True), dtype=float)
        counts = [text for text in self._texts("instances") if NUMBER.fullmatch(text)]
        lists = any("gres/" in text for text in self._texts("gpus"))  # which count all of them
        if not lists and any(float(text) > 1 for text in counts):
            expected = (
                f"expected instances={column} if {self.columns['gpus']} is of each of them, or "
                f"instances= if it counts all GPUs of a job: {column} is above 1"
            )
            raise InstanceError("map", expected)
        return 1.0

    def _utility(self, submitted: FloatArray) -> Any:
        """Utilities of the jobs; the value is 1 if the table gives only a deadline."""
        columns, size = self.columns, len(submitted)
        if "worth" not in columns and "deadline" not in columns:
            return None
        worth = self.rows.number(columns["worth"]) if "worth" in columns else np.ones(size)
        found = np.empty(size, dtype=object)
        due = self._seconds("deadline")
        for k, (value, end, begin) in enumerate(zip(worth, due, submitted, strict=True)):
            if end >= begin:
                found[k] = Deadline(float(value), float(end - begin))
            elif not np.isnan(value):
                # A deadline before the submission cannot be met: the job is worth nothing.
                found[k] = Constant(float(value) if np.isnan(end) else 0.0)
        return found

    def tell(self) -> None:
        """Note how the rows were read, which affects what the numbers mean."""
        options, said = self._options, self.rows.notes
        relative = self.clock.form == RELATIVE and not options.time_unit
        units = [
            f"{self.columns[name]} in {unit}"
            for name, unit in self._units.items()
            if (not options.duration_unit if name in ("duration", "waiting") else relative)
        ]
        if units:
            said.append(f"units guessed from the names of columns: {', '.join(units)}")
        if self._differing:
            told, begin, end = (self.columns[name] for name in ("duration", "started", "ended"))
            said.append(
                f"jobs whose {told} is not the time from {begin} to {end}: {self._differing}; "
                f"{told} is used (--map duration= takes the time between them)"
            )
        if self._later:
            said.append(f"jobs that wait from {self.columns['eligible']} on: {self._later}")


def read_table(form: TableFormat, source: TraceSource, options: Any) -> PlainTrace:
    """Read a table of jobs; a JSON list of them, or lines of JSON, are one too."""
    if form.read is not None:
        rows = form.read(source, options)
        either = {name: column.split("|") for name, column in form.columns.items()}
        there = {name: [c for c in either[name] if c in rows.cells] for name in either}
        columns = {name: found[0] for name, found in there.items() if found}
    else:
        rows, columns = _with_header(form, source, options)
    reader = _Reader(rows, columns, form, options)
    found = reader.jobs()
    owners = {"user": columns.get("owner"), "virtual_cluster": columns.get("virtual_cluster")}
    for label, column in (form.labels or owners).items():
        if getattr(options, label, "") and column in rows.cells:
            found[label] = rows.texts(column)
    if "id" in columns and not form.joins:
        rows.unique(columns["id"])
    good = rows.settle()
    every = jobs_frame(rows, **found)
    jobs = every[good]
    # Jobs that still run are no fault: whether a file can be used is judged by the others.
    ended = int(jobs["has_ended"].sum())
    rows.check_usable(ended or len(jobs), allow_malformed=options.allow_malformed or not ended)
    notes = [] if form.in_seconds else reader.durations["duration"].notes()
    reader.tell()
    running = every[~every["has_ended"]]
    if form.joins:
        jobs = form.joins(jobs, rows)
        running = jobs[~jobs.duplicated("key", keep="last") & ~jobs["has_ended"]]
        jobs = jobs_of_runs(jobs, options.runs, rows, reader.late)
        rows.check_usable(len(jobs), allow_malformed=True)
    begun = running[running["begun"]]
    if begun["gpus"].sum():
        free = "they are left out, so that these count as free"
        held = f"{len(begun)}, on {begun['gpus'].sum()} GPUs; {free}"
        rows.notes.append(f"jobs that had begun and not ended: {held}")
    return PlainTrace(jobs, rows.malformed, [*notes, *rows.notes], reader.clock)


def _with_header(
    form: TableFormat, source: TraceSource, options: Any
) -> tuple[Rows, dict[str, str]]:
    """The rows of a table with a header, or of JSON, and its columns."""
    records = source.records()
    delimiter: str = getattr(options, "delimiter", "") or delimiter_of(source.header)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InstanceError("delimiter", "expected one character (a tab: $'\\t')", delimiter)
    if records is None:
        header = csv_cells(source.header, delimiter)
        begin = source.lines[source.first + 1 :][:LINES_LOOKED_AT]
        # A line with fewer cells is a part of a record, whose cells have other places.
        each = [cells for t in begin if len(cells := csv_cells(t, delimiter)) >= len(header)]
        some = [dict(zip(header, cells, strict=False)) for cells in each]
    else:
        some = [row for row in records if isinstance(row, dict)]
        header = list(dict.fromkeys(name for row in some for name in row))
    words = [name for name in header if _are_words(some[:LINES_LOOKED_AT], name)]
    given = parse_map(getattr(options, "map", ""))
    columns = columns_of(header, given, source.name, form.columns, words)
    wanted = (*form.more, *columns.values())
    if records is None:
        rows = csv_rows(source, wanted, delimiter=delimiter)
    else:
        rows = entry_rows(source, records, "", partial(_record, wanted=wanted))
    name = columns.get("id", "")
    # A column `job` may have the kinds of jobs: it then names none of them.
    if name.lower() == "job" and "id" not in given and rows.cells[name].duplicated().any():
        del columns["id"]
    if not form.columns:
        rows.notes += notes_of_guesses(columns, given)
        if "id" not in columns:
            rows.notes.append("jobs are named after their lines: no column names them")
        has_commas = records is None and delimiter == ","
        counted = [columns[n] for n in (*TIMED, "gpus", "instances", "worth") if n in columns]
        commas = sum(_sign(rows, column, has_commas) for column in counted)
        if commas:
            rows.notes.append(f"cells such as 3,5, read as numbers with decimals: {commas}")
    return rows, columns


def _are_words(some: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether a column holds words, such as a model of GPU, and no amounts."""
    texts = [text for row in some if not MISSING.fullmatch(text := str(row.get(name, "")))]
    return bool(texts) and not any(AMOUNT.fullmatch(t) or names_gpus(t) for t in texts)


def _record(row: Mapping[str, Any], wanted: Sequence[str]) -> list[dict[str, str]]:
    """A record of JSON as cells; a value that is an object stays JSON."""
    return [
        {
            name: json.dumps(row[name]) if isinstance(row.get(name), dict) else cell(row, name)
            for name in wanted
        }
    ]


def _sign(rows: Rows, column: str, has_commas: bool) -> int:
    """Write the numbers of a column with the signs that Python reads; count decimals after commas.

    With commas between columns, 3,600 is no 3.6; with others, it may be, or thousands.
    """
    texts = rows.texts(column)
    odd = [text for text in texts if "," in text or text.count(".") > 1]
    signs = {sign for text in odd for sign in SIGNS if SIGNS[sign].fullmatch(text)}
    if len(signs) == 1:
        (decimal,) = signs
        other = ".,"[decimal == "."]
        rows.cells[column] = [
            text.replace(other, "").replace(decimal, ".")
            if GROUPED[decimal].fullmatch(text)
            else text.replace(".", "?")  # a sign that its column has for something else
            for text in texts
        ]
    commas = [text for text in odd if DECIMAL_COMMA.fullmatch(text)]
    if signs or has_commas or not commas:
        return 0
    if all(map(UNSURE.fullmatch, commas)):
        expected = "expected numbers without signs of thousands, or decimals after a point"
        raise InstanceError(f"{COLUMN}{column}", f"{expected}: this may be either", commas[0])
    known = {text: text.replace(",", ".") for text in commas}
    rows.cells[column] = [known.get(text, text) for text in texts]
    return len(commas)


def is_table_of_records(source: TraceSource) -> bool:
    """Whether a JSON file is a list of jobs, or lines of jobs."""
    records = source.records()
    first = records[0] if records else None
    return isinstance(first, dict) and bool(guess(list(first), list(first), "submitted"))


def form_of(name: str, **how: Any) -> TableFormat:
    """The format that formats.toml has under this name; `how` it is read otherwise."""
    known = TableFormat.__dataclass_fields__
    return TableFormat(**{key: fact for key, fact in FACTS[name].items() if key in known}, **how)


def table_trace(
    name: str,
    options: type[TraceOptions] = PlainOptions,
    finds: Callable[[list[str], Any], bool] | None = None,
    *,
    log: TableFormat | None = None,
    **how: Any,
) -> JobTrace:
    """A kind of trace that is a table of jobs, or a `log` in JSON; `how` it is read otherwise."""
    facts, form = FACTS[name], form_of(name, **how)
    licence = {"licence": facts["licence"]} if "licence" in facts else {}

    def read(source: TraceSource, given: Any) -> PlainTrace:
        is_list = source.header.lstrip().startswith("[")
        return read_table(log if log and is_list else form, source, given)

    return JobTrace(
        name,
        read,
        {"trace": facts["about"], **licence},
        options,
        facts["looks"],
        tuple(facts.get("header", ())),
        finds,
        facts.get("is_table", True),
    )


PLAIN = table_trace("plain")
