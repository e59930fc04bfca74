"""Tables with a row for each job: columns that are known, named by --map, or guessed."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from math import nan
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError, located_at
from oasis.model.file_kinds import refuse_other
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.utility import Constant, Deadline
from oasis.traces import job_table, table, times
from oasis.traces.gres import listed_gpus
from oasis.traces.job_table import MachineOptions, PlainTrace, TraceOptions
from oasis.traces.plain_job import FACTS, UNENDED, state_of
from oasis.traces.table import Frame, MalformedError, Mask, Rows, TraceSource, cell, numbers, pd
from oasis.traces.times import TraceTimes
from oasis.version import __version__

# What a table may say of a job -> names of such columns, the likeliest first.
KNOWN: Mapping[str, Sequence[str]] = FACTS["known"]
NEEDED = ("submitted", "duration", "gpus")
DURATIONS = ("duration", "waiting")
TIMED = ("submitted", "eligible", "started", "ended", "waiting", "duration", "deadline")
DOCUMENTED = {"start": "started", "end": "ended"}  # of the simple format, beside the fields' names
DELIMITERS = ",;\t|"
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
UNSURE = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # thousands, or decimals
# Sign of decimals -> cells that say it of their column, as 7.200,5 does; all cells with such signs.
SIGNS, GROUPED = {}, {}
for _decimal, _thousands in (",.", ".,"):
    _groups = rf"\{_thousands}[0-9]{{3}}"
    _begin, _end = r"[+-]?[0-9]{1,3}", rf"\{_decimal}[0-9]+"
    SIGNS[_decimal] = re.compile(f"{_begin}(?:(?:{_groups})+{_end}|(?:{_groups}){{2,}})")
    GROUPED[_decimal] = re.compile(f"(?:{_begin}(?:{_groups})+|[+-]?[0-9]+)(?:{_end})?")
POINT = re.compile(r"[+-]?[0-9]+\.(?![0-9]{3}\Z)[0-9]+")  # is no sign of thousands
ROUNDED = 1.0  # seconds by which a duration may differ from the time from start to end


@dataclass(frozen=True, slots=True)
class JobTrace:
    """A trace format: how files are recognised and read, and its options; see formats.toml."""

    name: str
    options: Any = MachineOptions
    finds: Callable[[str], bool] = lambda _: False  # tells it by its first line
    read: Callable[[TraceSource, Any], Rows] | None = None  # if it is no table with a header
    gpus: Callable[[Any], tuple[Any, ...] | None] = listed_gpus
    # Gives a `key` to rows of which several are of one job.
    joins: Callable[[Frame, Rows], Frame] | None = None
    # Looks at the rows and adds columns, some of `more`.
    check: Callable[[Rows, dict[str, Any], Any], None] | None = None
    nodes: Callable[[Any, Any], Any] | None = None  # reads a list of machines
    log: JobTrace | None = None  # how a list in JSON is read
    about: str = ""
    licence: str = ""
    looks: str = ""
    header: Sequence[str] = ()
    keys: Sequence[str] = ()
    line: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    more: Sequence[str] = ()
    states: Mapping[str, str] = field(default_factory=dict)
    named: str = "row-{}"
    never: str = table.NEVER_RAN
    is_table: bool = True
    is_dated: bool = False
    in_seconds: bool = False

    def is_of(self, lines: list[str], document: Any) -> bool:
        """Whether a file with these first lines, or with this JSON document, is of this format."""
        if document is not None:
            jobs = document.get("jobs", document) if isinstance(document, dict) else document
            first = jobs[0] if isinstance(jobs, list) and jobs else {}
            keys = [key for entry in (document, first) if isinstance(entry, dict) for key in entry]
            return bool(self.keys) and set(self.keys) <= set(keys)
        if self.header and set(self.header) <= set(table.csv_cells(lines[0])):
            return True
        texts = (line.strip() for line in lines) if self.line else ()
        return self.finds(lines[0]) or any(re.fullmatch(self.line, text) for text in texts)

    def table(self, source: TraceSource, options: TraceOptions) -> PlainTrace:
        """Read the jobs of `source`, before any option selects some of them."""
        kind = source.kind()
        if not (getattr(options, "map", "") and kind is not None and kind.is_table):
            refuse_other(kind, (self.name,), self.looks)
        form = self.log if self.log and source.header.lstrip().startswith("[") else self
        trace = read_table(form, source, options)
        trace.format = self.name
        return trace

    def imported(
        self,
        path: str | os.PathLike[str],
        options: Any,
        fixed: Collection[str] | None = None,
        nodes: str | os.PathLike[str] | None = None,
        *,
        lacks: bool = True,  # the GPUs of jobs that still run
    ) -> tuple[Instance, PlainTrace, Any]:
        """Return instance, trace, options; with `fixed`, all but these are chosen to fit."""
        source = table.read_source(path)
        if self.nodes is not None:
            with located_at(source=path):  # of two files, the error names the wrong one
                refuse_other(source.kind(), (self.name,), self.looks)
        trace = self.table(source, options)
        noun = "jobs" if self.nodes is None else "pods"
        machines = None if self.nodes is None else self.nodes(nodes, options)
        files, rows = {noun: source.name}, {noun: len(trace.frame)}
        trace.choose(options)
        malformed, notes = {noun: trace.malformed}, {noun: [*trace.notes]}
        if machines is None:
            trace.frame = options.sized(trace.frame)
            notes[noun] += trace.gpu_notes
        if trace.frame["utility"].notna().any():
            notes[noun].append(
                f"utilities are drawn with seed {options.seed}, not those of the table"
            )
        options = trace.window(options, fixed)
        jobs, slot = job_table.jobs_of(trace.frame, options), options.slot_seconds
        if fixed is not None:
            fit = job_table.fit_machines if machines is None else machines.fit
            options = fit(options, trace.frame, jobs, fixed)
        cluster = options.cluster() if machines is None else machines.cluster(options)
        begun = trace.running[trace.running["started"] < options.horizon * slot]
        # Nodes are given out in parts of GPUs, as their pods record them.
        if held := (begun["gpus"] if machines is None else begun["gpu"] * begun["workers"]).sum():
            cluster = job_table.without(cluster, held) if lacks else cluster
            rule = "the machines lack at all times" if lacks else "are beside the machines"
            notes[noun].append(f"GPUs of jobs that still run, which {rule}: {held:g}")
        if machines is not None:
            files["nodes"], rows["nodes"] = machines.rows.name, len(machines.frame)
            malformed["nodes"] = machines.rows.malformed
            for name, texts in machines.notes(trace.frame, cluster).items():
                notes[name] = notes.get(name, []) + texts
        late = sum(j.arrival + j.shortest_duration(slot) > options.horizon for j in jobs)
        metadata = {
            **{"generator": f"oasis.traces.{self.name}", "version": __version__},
            **{"seed": options.seed, "options": asdict(options), "left_out": trace.left_out},
            **{"cannot_finish": late, "trace": self.about},
            **({"licence": self.licence} if self.licence else {}),
            **{"files": files, "rows": rows},
            "malformed": {name: kinds for name, kinds in malformed.items() if kinds},
            "notes": {name: texts for name, texts in notes.items() if texts},
            **{"window_start": trace.window_start, "kept": trace.kept},
        }
        return Instance(options.horizon, cluster, jobs, metadata), trace, options


def known_trace(name: str, **how: Any) -> JobTrace:
    """Return the format `name` of formats.toml; `how` sets fields that are not in that file."""
    facts = {key: FACTS[name][key] for key in FACTS[name] if key in JobTrace.__dataclass_fields__}
    facts["options"] = job_table.OPTIONS[facts.get("options", "PlainOptions")]
    return JobTrace(name, **facts, **how)


class _Reader:
    """Turns the text columns of one trace table into the columns of a frame of jobs."""

    def __init__(
        self, rows: Rows, columns: Mapping[str, str], form: JobTrace, options: Any
    ) -> None:
        self.rows, self.columns, self._form, self._options = rows, columns, form, options
        timed = () if form.columns else (name for name in TIMED if name in columns)
        self._units = {name: _base(columns[name])[1] for name in timed}
        self.clock = TraceTimes(options, is_dated=form.is_dated)
        # Numbers of durations; the name of their column, their unit, and the option for it.
        self.read, self.read_as = np.zeros(0), (columns.get("duration", ""), "", "")
        self.late = f"{columns.get('started', 'start')} is before {columns['submitted']}"  # a fault

    def jobs(self) -> dict[str, Any]:
        """Return the columns of a frame of jobs; rows of unended jobs are included."""
        rows, columns, form = self.rows, self.columns, self._form
        words = self._texts("state")
        known = {word: state_of(form.states.get(word, word)) for word in words.unique()}
        states = words.map(known).to_numpy(object)
        goes_on = unended = np.isin(states.astype(str), UNENDED)
        if "ended" in columns:  # a run that began and has no end; sacct says how long it has run
            endless = bool(form.joins) | (self._missing("duration") & (states == ""))
            unended = unended | (~self._missing("started") & self._missing("ended") & endless)
        self.clock.look_at(self._texts("submitted"), self._units.get("submitted", ""))
        relative = self.clock.form == times.RELATIVE and not self._options.time_unit
        units = [
            f"{self.columns[name]} in {unit}"
            for name, unit in self._units.items()
            if unit and (not self._options.duration_unit if name in DURATIONS else relative)
        ]
        rows.note("units guessed from the names of columns", ", ".join(units))
        # Beside seconds or dates, seconds are what is expected.
        is_mixed = relative and not {self.unit("duration"), *self._units.values()} <= {"", "s"}
        bare = [n for n in self._units if n not in DURATIONS and not self._units[n]]
        as_seconds = ", ".join(columns[name] for name in bare) if is_mixed else ""
        rows.note("times read as seconds, as no unit is named (--time-unit)", as_seconds)
        submitted = self._seconds("submitted", np.full(len(words), True))
        eligible, started = self._seconds("eligible"), self._seconds("started", after=submitted)
        started = np.where(np.isnan(started), submitted + self._seconds("waiting"), started)
        started = np.where(states == UNENDED[1], nan, started)  # of one that waits, an estimate
        if not form.joins:
            rows.reject(unended, table.NOT_ENDED)
        ended = self._seconds("ended", after=started)
        duration = np.where(unended, 0.0, self._duration(started, ended, unended))
        if not form.joins:
            # Such a job was cancelled before it ran; it takes nothing and would count as served.
            rows.reject(duration == 0, table.NEVER_RAN)
            rows.reject(started < submitted, self.late)
        first = started + duration
        keeps = ended >= first if form.joins else ~np.isnan(ended)
        requests = rows.convert(self._texts("gpus"), self._gpus_of, ~unended, empty=(nan, False))
        gpus = np.array([request[0] for request in requests], dtype=float) * self._instances()
        rows.reject(~unended & (gpus > table.LARGEST), f"bad {columns['gpus']}: above 2^53")
        # A job waits from when it could run: before, it was held or needed another job.
        waits = (eligible > submitted) & ~(eligible > started)
        rows.note(f"jobs that wait from {columns.get('eligible')} on", np.sum(waits & rows.is_good))
        submitted = np.where(waits, eligible, submitted)
        owners = self._texts("owner")
        owners = owners.mask(owners == "", self._texts("group"))
        names = [form.named.format(line) for line in rows.lines.tolist()]
        values = {
            "id": self._texts("id") if "id" in columns else names,
            **{"submitted": submitted, "duration": duration, "started": started, "gpus": gpus},
            **{"is_share": [request[1] for request in requests], "request": requests},
            "ended": np.where(keeps, ended, first),
            **{"owner": owners, "state": np.where(goes_on, "", states)},
            **{"model": self._texts("model"), "has_ended": ~unended},
        }
        if form.check:
            form.check(rows, values, self._options)
        values["utility"] = self._utility(submitted)
        values["gpus"] = np.ceil(np.where(gpus <= table.LARGEST, gpus, 0)).astype(np.int64)
        return values

    def _gpus_of(self, text: Any) -> tuple[Any, ...]:
        if (request := self._form.gpus(text)) is None:
            shown = f"{text!r:.40}" if "gpu" in text.lower() else ""
            raise MalformedError(f"bad {self.columns['gpus']}", shown, "a number >= 0")
        return request

    def _texts(self, name: str) -> Frame:
        """The cells of the column for the field `name`; empty texts if there is no such column."""
        return self.rows.texts(self.columns.get(name))

    def _missing(self, name: str) -> Mask:
        return self.rows.missing(self.columns.get(name), zero=self._form.is_dated)

    def unit(self, name: str) -> str:
        is_given = name in DURATIONS and not self._form.in_seconds
        chosen: str = self._options.duration_unit if is_given else ""
        return chosen or self._units.get(name, "")

    def _seconds(self, name: str, wanted: Any = None, after: Any = nan) -> FloatArray:
        """Seconds in the column of `name`; NaN if not `wanted`; `after` settles repeated hours."""
        column = self.columns.get(name)
        if column is None:
            return np.full(len(self.rows.lines), nan)
        where = (~self._missing(name) if wanted is None else wanted) & self.rows.is_good
        nothing: Any = None
        keys: Any = np.where(where, self._texts(name), nothing)
        clock, unit = self.clock, self.unit(name)
        read: Any = times.duration_seconds if name in DURATIONS else clock.seconds
        seconds = self.rows.convert(keys, partial(read, name=column, unit=unit), empty=nan)
        values = np.array(seconds, dtype=float)
        if name == "duration":
            self.read = np.where(np.isnan(values), nan, numbers(keys))
            self.read_as = (column, unit, "duration_unit")
        if clock.second:
            # A time that the clocks showed twice is the second where it else came before `after`.
            double = np.array([clock.second.get(key, nan) for key in keys])
            clock.repeated += int(np.sum(~np.isnan(double)))
            values = np.where(values < after, np.fmax(values, double), values)
        return values

    def _duration(self, started: FloatArray, ended: FloatArray, unended: Mask) -> FloatArray:
        """Seconds each job ran, from its duration or from start to end; reject rows without."""
        rows, columns, joins = self.rows, self.columns, self._form.joins is not None
        if "ended" in columns and "started" in columns:
            rows.reject(ended < started, f"{columns['ended']} is before {columns['started']}")
        took = ended - started
        has_run, recorded = ~np.isnan(took), np.zeros(len(started), dtype=bool)
        if "duration" in columns:
            can_miss = has_run | (joins and "started" in columns)
            recorded = ~(can_miss & self._missing("duration")) & ~unended
            duration = self._seconds("duration", recorded)
            differ = recorded & has_run & rows.is_good & (np.abs(took - duration) > ROUNDED)
            if differ.any() and not joins:
                column, begin, end = (columns[name] for name in ("duration", "started", "ended"))
                used = f"{column} is used (--map duration= takes the time between them)"
                differing = f"jobs whose {column} is not the time from {begin} to {end}"
                rows.note(differing, f"{differ.sum()}; {used}")
            took = np.where(recorded, duration, took)
        elif not self._form.columns and self.clock.form == times.RELATIVE:
            unit = self._options.time_unit or self.unit("started")
            self.read = took / times.UNIT_SECONDS[unit]
            self.read_as = ("", unit, "time_unit")  # no column has them
        never = ~recorded & ~unended & np.isnan(started)
        if joins:
            return np.where(never, 0.0, took)
        rows.reject(never, self._form.never)
        rows.reject(~recorded & np.isnan(ended), table.NOT_ENDED)
        return took

    def _instances(self) -> FloatArray | float:
        """Number of instances to multiply a job's GPUs by; 1.0 without a column of them."""
        column = self.columns.get("instances")
        if column is None:
            return 1.0
        if "instances" in parse_map(self._options.map):
            return np.asarray(self.rows.number(column, 1, whole=True), dtype=float)
        counts = numbers(self._texts("instances"))
        fault = MalformedError(f"bad {column}", expected="a whole number >= 1")
        self.rows.reject(counts < 0, fault)
        lists = any("gres/" in text for text in self._texts("gpus"))  # which count all of them
        if not lists and np.any(counts > 1):
            expected = (
                f"expected instances={column} if {self.columns['gpus']} is of each of them, or "
                f"instances= if it counts all GPUs of a job: {column} is above 1"
            )
            raise InstanceError("map", expected)
        return 1.0

    def _utility(self, submitted: FloatArray) -> Any:
        """Utility of each job from worth and deadline; None if the table has neither column."""
        columns, size = self.columns, len(submitted)
        if "worth" not in columns and "deadline" not in columns:
            return None
        worth = self.rows.number(columns["worth"]) if "worth" in columns else np.ones(size)
        limit = self._seconds("deadline") - submitted
        utilities = np.empty(size, dtype=object)
        for k in np.flatnonzero(~np.isnan(worth)).tolist():
            # A deadline before the submission cannot be met: the job is worth nothing.
            always = Constant(float(worth[k]) if np.isnan(limit[k]) else 0.0)
            utilities[k] = Deadline(float(worth[k]), float(limit[k])) if limit[k] >= 0 else always
        return utilities


def read_table(form: JobTrace, source: TraceSource, options: Any) -> PlainTrace:
    """Read a trace of the format `form` into a `PlainTrace`: text, a JSON list or JSON lines."""
    if form.read is not None:
        rows = form.read(source, options)
        # Of several columns that say the same, the first one.
        every = [(name, c) for name in form.columns for c in form.columns[name].split("|")[::-1]]
        columns = {name: column for name, column in every if column in rows.cells}
    else:
        rows, columns = _with_header(form, source, options)
    reader = _Reader(rows, columns, form, options)
    values = reader.jobs()
    owners = {"user": columns.get("owner"), "virtual_cluster": columns.get("virtual_cluster")}
    for label, column in (form.labels or owners).items():
        if getattr(options, label, "") and column in rows.cells:
            values[label] = rows.texts(column)
    if "id" in columns and not form.joins:
        rows.unique(columns["id"])
    good = rows.settle()
    every = pd.DataFrame({**job_table.FIELDS, **values}, index=rows.lines)
    del values, rows.cells  # of a million rows, they are not kept beside their jobs
    jobs = every[good]
    # Jobs that still run are no fault: whether a file can be used is judged by the others.
    ended = int(jobs["has_ended"].sum())
    rows.check_usable(ended or len(jobs), allow_malformed=options.allow_malformed or not ended)
    if not form.in_seconds:  # durations that would be odd as seconds are refused
        rows.notes[:0] = times.notes_of_durations(reader.read, *reader.read_as)
    running = every[~every["has_ended"]]
    if form.joins:
        jobs = form.joins(jobs, rows)
        running = jobs[~jobs.duplicated("key", keep="last") & ~jobs["has_ended"]]
        jobs = job_table.jobs_of_runs(jobs, options.runs, rows, reader.late)
        rows.check_usable(len(jobs), allow_malformed=True)
    running = running[running["started"].notna() & (running["gpus"] > 0)].copy()
    names = ["submitted", "started", "ended"]
    # As far as the trace tells, it ends with the last time in it.
    running["ended"] = np.fmax(*(every[names].max(axis=None) for every in (jobs, running)))
    twice = "in the hour that clocks repeat in autumn, read as the first of the two"
    rows.note(f"times of {reader.clock.zone} {twice}", reader.clock.repeated)
    return PlainTrace(jobs, rows.malformed, rows.notes, reader.clock, running=running)


def _with_header(form: JobTrace, source: TraceSource, options: Any) -> tuple[Rows, dict[str, str]]:
    """Read a table with a header, or JSON; return its rows and its column for each field."""
    records = source.records()
    delimiter: str = getattr(options, "delimiter", "") or delimiter_of(source.header)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InstanceError("delimiter", "expected one character (a tab: $'\\t')", delimiter)
    if records is None:
        header = table.csv_cells(source.header, delimiter)
    else:
        some = (row for row in records if isinstance(row, dict))
        header = list(dict.fromkeys(name for row in some for name in row))
    mapped = parse_map(getattr(options, "map", ""))
    columns = columns_of(header, mapped, source.name, form.columns)
    wanted = (*form.more, *columns.values())
    if records is None:
        rows = table.csv_rows(source, wanted, delimiter=delimiter)
    else:
        rows = table.entry_rows(
            source, records, "", lambda row: [{n: cell(row, n) for n in wanted}]
        )
    name = columns.get("id", "")
    # A column `job` may have the kinds of jobs: it then names none of them.
    if name.lower() == "job" and "id" not in mapped and rows.cells[name].duplicated().any():
        del columns["id"]
    if not form.columns:
        guessed = ", ".join(
            f"{name}={column}"
            for name, column in columns.items()
            if name not in (*mapped, column, DOCUMENTED.get(column), "instances")
        )
        guesses = f"{guessed} (--map names others)" if guessed else ""
        rows.note("columns guessed from their names", guesses)
        if "id" not in columns:
            rows.notes.append("jobs are named after their lines: no column names them")
        has_commas = records is None and delimiter == ","
        counted = [columns[n] for n in (*TIMED, "gpus", "instances", "worth") if n in columns]
        commas: Counter[str] = Counter()
        for column in counted:
            commas.update(_sign(rows, column, has_commas))
        rows.note("cells such as 3,5, read as numbers with decimals", commas[","])
        rows.note("cells such as 3,600, read as numbers with signs of thousands", commas["."])
    return rows, columns


def _sign(rows: Rows, column: str, has_commas: bool) -> dict[str, int]:
    """Rewrite numbers of a column with decimal points; return how many cells had which sign."""
    texts = rows.texts(column)
    odd = [text for text in texts if "," in text or text.count(".") > 1]
    signs = {sign for text in odd for sign in SIGNS if SIGNS[sign].fullmatch(text)}
    commas = [] if signs else [text for text in odd if DECIMAL_COMMA.fullmatch(text)]
    is_unsure = all(map(UNSURE.fullmatch, commas))
    # Commas between columns say that a comma in a number is no sign of decimals.
    points = has_commas or any(map(POINT.fullmatch, texts if commas else ()))
    if commas and is_unsure and not points:
        expected = "expected numbers without signs of thousands, or decimals after a point"
        raise InstanceError(f"{table.COLUMN}{column}", f"{expected}: this may be either", commas[0])
    if commas and (is_unsure or not has_commas):
        signs = {"." if is_unsure else ","}
    if len(signs) == 1:
        (decimal,) = signs
        other = ".,"[decimal == "."]
        # A sign that its column has for something else is none of a number.
        rows.cells[column] = [
            text.replace(other, "").replace(decimal, ".")
            if GROUPED[decimal].fullmatch(text)
            else text.replace(".", "?")
            for text in texts
        ]
    return dict.fromkeys(signs, len(commas))


# --- columns --------------------------------------------------------------------------------------


def parse_map(text: str) -> dict[str, str]:
    """Parse ``--map`` into field -> column; an empty column means that the table has none."""
    columns: dict[str, str] = {}
    for part in table.csv_cells(text) if text else []:
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or name not in KNOWN:
            expected = f"expected NAME=COLUMN with a name of {', '.join(KNOWN)}"
            raise InstanceError("map", expected, part)
        if name in columns:
            raise InstanceError("map", f"expected {name} once", text)
        columns[name] = column
    return columns


def columns_of(
    header: Sequence[str], mapped: Mapping[str, str], file: str, preset: Mapping[str, str]
) -> dict[str, str]:
    """Return the column of each field: by `mapped`, else `preset`, else guessed from names."""
    columns = {name: column for name, column in mapped.items() if column}
    for name in KNOWN:
        column = preset.get(name, "").removesuffix("?")
        if name not in mapped and column and (column in header or column == preset[name]):
            columns[name] = column
        # A known format is not guessed at: a column of a likely name may mean something else there.
        elif not (name in mapped or preset or (name == "waiting" and "started" in columns)):
            free = [column for column in header if column not in columns.values()]
            if column := guess(header, free, name):
                columns[name] = column
    for name, column in columns.items():
        if header.count(column) != 1 and not preset:
            often = "twice or more" if column in header else "not"
            shown = f"for {name}: {','.join(header)[:200]}"
            raise InstanceError(
                f"{table.COLUMN}{column}", f"is {often} in the header of {file}, {shown}"
            )
    has_run = "ended" in columns and ("started" in columns or "waiting" in columns)
    missing = [
        name for name in NEEDED if name not in columns and not (name == "duration" and has_run)
    ]
    if not missing:
        return {name: columns[name] for name in KNOWN if name in columns}
    expected = f"expected {'these columns' if len(missing) > 1 else 'this column'}"
    expected += ", or started and ended for duration," if "duration" in missing else ""
    hint = f"--map {','.join(f'{name}=COLUMN' for name in missing)} names others"
    shown = f"{expected} once in the header of {file}: {','.join(header)[:200]}; {hint}"
    raise InstanceError(f"{table.COLUMN}{', '.join(missing)}", shown)


def _base(column: str) -> tuple[str, str]:
    """Return a name without the unit at its end, and that unit: ``run [min]`` -> run, min."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower())
    if len(words) > 1 and words[-1] in times.UNITS:
        unit = times.UNITS[words.pop()]
        return "".join(words[:-1] if words[1:] and words[-1] == "in" else words), unit
    plain = _plain(column)
    # A name that is a unit alone, as hours; of one letter it is more often something else.
    return plain, times.UNITS.get(plain, "") if len(plain) > 2 and plain != "min" else ""


def guess(header: Sequence[str], free: Sequence[str], name: str) -> str:
    """Return the likeliest column of `free` for the field `name`, or an empty text."""
    if name in free:
        return name
    base = {column: _base(column) if name in TIMED else (_plain(column), "") for column in free}
    # Known names outermost: a likelier name wins, wherever its column stands.
    likely = [c for known in KNOWN[name] for c in free if base[c][0] == known]
    if name == "duration":  # a column of hours, or run_hours
        likely += [c for c in free if base[c][1] and base[c][0] in ("run", _plain(c))]
    return likely[0] if likely else ""


def _plain(column: str) -> str:
    """Return a column name in lower case with only letters and digits, to compare names."""
    return re.sub(r"[^a-z0-9]", "", column.lower())


def delimiter_of(header: str) -> str:
    """Return the delimiter of a header: the candidate that splits it most, or a comma."""
    return max(DELIMITERS, key=lambda sign: len(table.csv_cells(header, sign)))


def is_table_of_records(source: TraceSource) -> bool:
    """Whether a file is a JSON list of jobs, or has a JSON job in each line."""
    records = source.records()
    first = records[0] if records else None
    return isinstance(first, dict) and bool(guess(list(first), list(first), "submitted"))


PLAIN = known_trace("plain")
