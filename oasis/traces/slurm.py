"""Slurm's accounting, as ``sacct`` prints it (docs/traces)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.traces.documents import parse_document
from oasis.traces.gres import Resources, resources_of
from oasis.traces.job_table import JobTrace, TraceTable, held_note
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, option
from oasis.traces.plain_job import GO_ON, STATES, ended_as, goes_on
from oasis.traces.runs import JobRun, combined, grouped, jobs_of_runs
from oasis.traces.table import (
    COLUMN,
    ENTRY,
    REPEATED_ROW,
    STEP,
    Faults,
    Frame,
    MalformedError,
    Mask,
    RowLayout,
    Rows,
    TraceSource,
    cells_of,
    csv_cells,
    pd,
)
from oasis.traces.times import Durations, TraceTimes

KNOWN = frozenset(  # columns that tell a header from a row of values
    (
        *("JobID", "JobIDRaw", "JobName", "User", "Account", "Partition", "QOS", "State"),
        *("Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "ExitCode"),
        *("NNodes", "AllocNodes", "ReqNodes", "NodeList", "NCPUS", "AllocCPUS", "ReqCPUS"),
        *("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES", "TresPerNode", "Cluster"),
    )
)
PARSABLE = "print it with sacct --parsable2"
CUT = "+"  # ends a cell that is too narrow for its value
ROW = re.compile(r"\d+(?:_\d+|_\[[^\]]*\]|\+\d+)?(?:\.\w+)?\W.*")  # how a row of values begins
LINE = re.compile(  # of a file without a header: a job, then some cell with a date of Slurm's
    r"\d+(?:_\d+|\+\d+)?(?:\.\w+)?\|.*\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
)
RULE = re.compile(r"-+(?: +-+)*\s*")  # below the header of columns of fixed width


def layout_of(source: TraceSource, columns: str = "", delimiter: str = "") -> RowLayout:
    """The layout of lines, by `columns` of a file without a header or by what its header shows."""
    if columns:
        names = [_as_known(name.strip()) for name in columns.split(",")]
        between = delimiter or "|"
        return RowLayout(names, 0, lambda text: _cells(_split(text, between), between, len(names)))
    header = source.header
    below = source.first + 1
    rule = "".join(source.lines[below : below + 1])
    if RULE.fullmatch(rule) and not delimiter:
        spans = [found.span() for found in re.finditer(r"-+", rule)]
        return RowLayout(_fixed(header, spans), below + 1, lambda text: _fixed(text, spans))
    if not KNOWN & set(re.findall(r"\w+", header)):
        _refuse_without_header(source)
    if not delimiter:
        delimiter = _delimiter(header.replace('"', ""))
    has_quotes = '"' in header and len(delimiter) == 1  # written by another program than sacct
    split = csv_cells if has_quotes or delimiter == "," else _split
    names = split(header, delimiter)
    if not names[-1]:  # sacct --parsable ends each line with the delimiter
        names.pop()
    return RowLayout(
        names, below, lambda text: _cells(split(text, delimiter), delimiter, len(names))
    )


def _as_known(name: str) -> str:
    """A column as sacct writes it, which takes names in any letters."""
    return next((known for known in KNOWN if known.lower() == name.lower()), name)


def _refuse_without_header(source: TraceSource) -> None:
    if ROW.fullmatch(source.header.strip()):
        expected = "expected the names of the columns, got a row of values"
        how = "print it without --noheader, or name the columns with --columns"
        raise InstanceError("row 1", f"{expected} ({source.header.strip():.40}); {how}")


def _delimiter(header: str) -> str:
    """Guess the delimiter between the names of the columns."""
    between = set(re.findall(r"\W+", header.strip()))
    if len(between) == 1 and "".join(between).strip(" "):
        return str(between.pop())
    if "|" in header or not between:
        return "|"
    got = "columns with spaces between and no line of dashes below their names"
    if set(header) & set(",;:\t"):
        got = f"{header.strip()[:60]!r}"
    expected = "expected one sign between the names of the columns"
    raise InstanceError("row 1", f"{expected}, got {got}; {PARSABLE}, or give --delimiter")


def _split(text: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in text.split(delimiter)]


def _cells(cells: list[str], delimiter: str, count: int) -> list[str]:
    if len(cells) == count + 1 and not cells[-1]:
        cells.pop()
    if len(cells) > count:
        raise MalformedError(f"more cells than columns: is {delimiter!r} in a cell? {PARSABLE}")
    return cells


def _fixed(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """The cells between `spans`, which sacct counts in bytes and other programs in characters."""
    for line in dict.fromkeys((text.encode().decode("latin-1"), text)):  # a character a byte
        if all(line[end : end + 1] in ("", " ") for _, end in spans):
            cells = [line[begin:end].strip() for begin, end in spans]
            is_bytes = line is not text and not text.isascii()
            return [_of_bytes(cell) for cell in cells] if is_bytes else cells
    raise MalformedError(f"cells do not stand below the names of their columns; {PARSABLE}")


def _of_bytes(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", errors="replace")


def one_of(columns: Sequence[str], header: Sequence[str], file: str, also: str = "") -> str:
    """The first of `columns` in `header`; the error names all, and what else helps."""
    for name in columns:
        if name in header:
            return name
    others = " or ".join(filter(None, (*columns[1:], also)))
    expected = f"expected this column{' or ' if others else ''}{others} in {file}"
    found = ", ".join(header)[:200] or "none"
    raise InstanceError(f"{COLUMN}{columns[0]}", f"{expected}, which has: {found}")


# --- JSON -----------------------------------------------------------------------------------------


def json_cells(source: TraceSource, faults: Faults) -> Frame:
    """The jobs that ``sacct --json`` prints, with sacct's columns, numbered from 1."""
    document = parse_document(source)
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise InstanceError("jobs", "expected the list of jobs that sacct --json prints")
    if not jobs:
        raise InstanceError("jobs", "expected at least one job, got an empty list")
    rows = {}
    for number, job in enumerate(jobs, start=1):
        if not isinstance(job, dict) or "job_id" not in job:
            faults.add("not an object with a job_id", number)
        else:
            rows[number] = _json_row(job)
    return pd.DataFrame(list(rows.values()), index=list(rows), columns=[*_json_row({})])


def _json_row(job: Mapping[str, Any]) -> dict[str, str]:
    time, tres = _part(job, "time"), _part(job, "tres")
    state = _part(job, "state").get("current", "")
    return {
        "JobID": _json_id(job),
        "Submit": _number(time.get("submission")),
        "Eligible": _number(time.get("eligible")),
        "Start": _number(time.get("start")),
        "End": _number(time.get("end")),
        "ElapsedRaw": _number(time.get("elapsed")),
        "State": str(state[0] if isinstance(state, list) and state else state or ""),
        "User": str(job.get("user") or _part(job, "association").get("user") or ""),
        "Account": str(job.get("account") or _part(job, "association").get("account") or ""),
        "Partition": str(job.get("partition") or ""),
        "QOS": str(job.get("qos") or ""),
        "AllocTRES": _json_tres(tres.get("allocated")),
        "ReqTRES": _json_tres(tres.get("requested")),
        "AllocNodes": _number(job.get("allocation_nodes")),
        "Cluster": str(job.get("cluster") or ""),
    }


def _json_id(job: Mapping[str, Any]) -> str:
    het, array = _part(job, "het"), _part(job, "array")
    if _number(het.get("job_id")):
        return f"{_number(het['job_id'])}+{_number(het.get('job_offset')) or 0}"
    task = _number(array.get("task_id"), zero="0")
    if _number(array.get("job_id")) and task:
        return f"{_number(array['job_id'])}_{task}"
    return _number(job.get("job_id"))


def _json_tres(entries: Any) -> str:
    """A list of resources in the words of AllocTRES."""
    if isinstance(entries, str):
        return entries
    found = []
    for entry in entries if isinstance(entries, list) else []:
        kind, name = str(entry.get("type", "")), str(entry.get("name") or "")
        found.append(f"{kind}{'/' if name else ''}{name}={_number(entry.get('count'), zero='0')}")
    return ",".join(found)


def _number(value: Any, zero: str = "") -> str:
    """A number, bare or as ``{"set": true, "number": 5}``; empty if it is not set.

    Zero stands for a time or an identifier that there is not: `zero` is put in its place.
    """
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None or isinstance(value, bool):
        return ""
    return str(value) if value else zero


def _part(job: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = job.get(name)
    return found if isinstance(found, Mapping) else {}


NAMES = ("JobID", "JobIDRaw")
# Both say the same; the first one in plain seconds.
DURATIONS = ("ElapsedRaw", "Elapsed")
# What was allocated goes before what was asked for, and sums over all nodes before those of one.
RESOURCES = ("AllocTRES", "AllocGRES", "ReqTRES", "ReqGRES", "TresPerNode")  # preferred in order
PER_NODE = ("ReqGRES", "TresPerNode")
NODES = ("AllocNodes", "NNodes")
LABELS = {"user": "User", "partition": "Partition", "qos": "QOS"}  # option -> column
CUT_STATES = (*STATES, "REQUEUED", "RESIZING")  # of which a narrow column shows the beginning
UNKNOWN = ("", "Unknown", "None", "N/A", "INVALID")  # times that there are not
HETEROGENEOUS = re.compile(r"(.+)\+(\d+)")  # 838+0 and 838+1 are components of 838


@dataclass(frozen=True, slots=True)
class SlurmOptions(MachineOptions):
    """Assumptions about the jobs of a Slurm cluster.

    Examples
    --------
    >>> from oasis.traces import SlurmOptions
    >>> SlurmOptions(partition="gpu", min_gpus=1).partition
    'gpu'
    """

    user: str = option("", "take the jobs of this user alone", reading=True)
    partition: str = option("", "take the jobs of this partition alone", reading=True)
    qos: str = option("", "take the jobs of this quality of service alone", reading=True)
    runs: str = option(
        "joined",
        "how several rows of one job are read: joined (one job, with the work of all its runs), "
        "last or each",
        reading=True,
        choices=RUNS,
    )
    columns: str = option(
        "", "names of the columns, with commas between, of a file without them", reading=True
    )
    delimiter: str = option(
        "", "separator of columns, if the header does not show it", reading=True
    )


def read_slurm(path: str | os.PathLike[str], options: SlurmOptions | None = None) -> Instance:
    """Turn what ``sacct`` prints into an instance.

    Parameters
    ----------
    path : path
        What ``sacct`` printed with ``--parsable2``, ``--parsable``, ``--json``, another delimiter
        or columns of fixed width. Columns: ``JobID`` or ``JobIDRaw``; ``Submit``; ``ElapsedRaw``,
        ``Elapsed`` or ``Start`` and ``End``; one or more of ``AllocTRES``, ``AllocGRES``,
        ``ReqTRES``, ``ReqGRES`` and ``TresPerNode``, of which each row's first that names GPUs
        counts; perhaps ``State``, ``User``, ``Partition``, ``QOS`` and ``NNodes``. Rows of steps
        are part of their jobs.
    options : SlurmOptions, optional
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
    >>> from oasis.traces import SlurmOptions, read_slurm
    >>> rows = '''JobID|User|Submit|ElapsedRaw|State|AllocTRES
    ... 17|ann|2024-03-01T08:00:00|7200|COMPLETED|cpu=16,mem=64G,node=1,gres/gpu=4
    ... 17.batch||2024-03-01T08:00:00|7200|COMPLETED|cpu=16,mem=64G,node=1,gres/gpu=4
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.txt")
    ...     _ = path.write_text(rows)
    ...     instance = read_slurm(path, SlurmOptions(start="first"))
    >>> [(job.id, job.work(instance.slot_seconds)) for job in instance.jobs]
    [('17', 16)]
    """
    return SLURM.instance(path, SlurmOptions() if options is None else options)


def _read(source: TraceSource, options: SlurmOptions) -> TraceTable:
    is_json = source.header.lstrip().startswith("{")
    faults = Faults(ENTRY if is_json else "row")
    if is_json:
        cells = json_cells(source, faults)
        whole = list(map(tuple, cells.to_numpy().tolist()))
    else:
        layout = layout_of(source, options.columns, options.delimiter)
        _check_columns(layout.header, source.name)
        cells = cells_of(source, layout, [name for name in layout.header if name in KNOWN], faults)
        whole = [source.lines[line - 1] for line in cells.index]
    reader = _SacctReader(Rows(cells, faults), options)
    runs = reader.runs(whole)
    faults.check_usable(len(runs), source.name, allow_malformed=True)
    ended = sum(run.has_ended for run in runs)
    # Rows of jobs that still run are no fault: whether
    # the file can be used is judged by the others.
    if ended:
        faults.check_usable(ended, source.name, allow_malformed=options.allow_malformed)
    reader.check_gpus(runs, source.name)
    notes = [*reader.durations.notes(), *reader.notes(runs)]
    if runs:
        # Steps are as many as jobs, and are part of what
        # was read: there is nothing to report of them.
        faults.drop(STEP)
    groups = list(_jobs(runs, notes))
    last = [group[-1] for group in groups]
    begun = [run.gpus for run in last if not run.has_ended and run.started is not None]
    jobs, more = jobs_of_runs(groups, options.runs, faults)
    more += held_note(len(begun), sum(begun))
    faults.check_usable(len(jobs), source.name, allow_malformed=True)
    return TraceTable(jobs, faults.malformed, [*notes, *more], reader.clock)


def _check_columns(header: Sequence[str], file: str) -> None:
    for name in sorted(KNOWN):
        if header.count(name) > 1:
            expected = f"expected this column once in {file}"
            raise InstanceError(f"{COLUMN}{name}", f"{expected}, which has: {', '.join(header)}")
    one_of(NAMES, header, file)
    one_of(("Submit",), header, file)
    if not {"Start", "End"} <= set(header):
        one_of(DURATIONS, header, file, also="Start and End")
    one_of(RESOURCES, header, file)


class _SacctReader:
    """Turns rows into runs, and collects notes on what it met."""

    def __init__(self, rows: Rows, options: SlurmOptions) -> None:
        self.rows, self._options = rows, options
        self.header = list(rows.cells.columns)
        self.clock = TraceTimes(options, is_dated=True)
        self.durations = Durations(options.duration_unit)
        self.others: Counter[str] = Counter()  # generic resources that are no GPUs
        self.one_node: Counter[str] = Counter()  # column -> rows with GPUs of a node
        self.later = 0  # jobs that could not run when they were submitted

    def runs(self, whole: Sequence[Any]) -> list[JobRun]:
        """The runs that the rows describe; `whole` are the rows with all their cells."""
        rows = self.rows
        column = next(name for name in NAMES if name in self.header)
        names = rows.texts(column)
        # A step repeats the resources of its job, which would be counted twice.
        rows.reject(np.array(["." in name for name in names], dtype=bool), STEP)
        rows.reject(np.array([not name for name in names], dtype=bool), f"no {column}")
        # Two names that are cut off alike would become one job.
        rows.reject(_are_cut(names), _cut(column))
        # Reports of periods that overlap hold the jobs of both periods twice.
        seen: dict[Any, int] = {}
        first = [seen.setdefault(row, k) == k for k, row in enumerate(whole)]
        rows.reject(~np.array(first, dtype=bool), REPEATED_ROW)
        states = self._texts("State")
        goes = rows.each(states, _goes_on) == True  # noqa: E712 (an array; None is malformed)
        # A state that is not known here is no reason to wait; a run that began and has no end is.
        open_end = self._unknown("End") & ~self._unknown("Start")
        has_ended = ~(goes | (open_end if "End" in self.header else False))
        self.clock.look_at(rows.texts("Submit"))
        everywhere = np.full(len(names), True)
        submitted = self._times("Submit", everywhere)
        duration = self._durations(has_ended)
        begun = ~has_ended & ~self._unknown("Start")
        gpus, is_share = self._gpus(has_ended, begun)
        started = self._times("Start", ~self._unknown("Start"))
        eligible, ended = self._if_known("Eligible"), self._if_known("End")
        # A job waits from when it could run: before, it was held or needed another job.
        later = (eligible > submitted) & ~(eligible > started)
        submitted = np.where(later, eligible, submitted)
        self.later = int(np.sum(later & rows.is_good))
        labels = {name: self._texts(column) for name, column in LABELS.items()}
        labels = {name: labels[name] for name in labels if LABELS[name] in self.header}
        users, accounts = self._texts("User"), self._texts("Account")
        clusters = self._texts("Cluster")
        runs = []
        for k in np.flatnonzero(rows.settle()).tolist():
            end = ended[k] if ended[k] >= started[k] + duration[k] else nan
            runs.append(
                JobRun(
                    *(names[k], int(rows.lines[k]), float(submitted[k]), float(duration[k])),
                    *(int(gpus[k]), {name: texts[k] for name, texts in labels.items()}),
                    None if np.isnan(started[k]) else float(started[k]),
                    bool(has_ended[k]),
                    *(clusters[k], users[k] or accounts[k], ended_as(states[k])),
                    None if np.isnan(end) else float(end),
                    bool(is_share[k]),
                )
            )
        return runs

    def _texts(self, column: str) -> list[str]:
        """The cells of a column, empty ones if there is no such."""
        return self.rows.texts(column) if column in self.header else [""] * len(self.rows.lines)

    def _unknown(self, column: str) -> Mask:
        return np.array([text in UNKNOWN for text in self._texts(column)], dtype=bool)

    def _times(self, column: str, where: Mask) -> FloatArray:
        """Times of a column in the good rows `where` it is to be read; NaN elsewhere."""
        texts = self._texts(column)
        if column in self.header:
            self.rows.reject(_are_cut(texts) & where, _cut(column))
        return self.rows.some(self.clock.column, texts, where, column)

    def _if_known(self, column: str) -> FloatArray:
        """Times of a column that a row can do without."""
        values, _ = self.clock.column(self._texts(column), column)
        return values

    def _durations(self, has_ended: Mask) -> FloatArray:
        rows = self.rows
        took, left = np.zeros(len(rows.lines)), has_ended.copy()
        for column in DURATIONS:
            texts = self._texts(column)
            rows.reject(_are_cut(texts) & left, _cut(column))
            told = left & ~self._unknown(column)
            values = rows.some(self.durations.column, texts, told, column)
            took, left = np.where(told, values, took), left & ~told
        if "Start" in self.header:
            left &= ~self._unknown("Start")  # it never began
        rows.reject(left & (self._unknown("Start") | self._unknown("End")), "no duration")
        between = self._times("End", left) - self._times("Start", left)
        rows.reject(between < 0, "End is before Start")
        return np.where(left & rows.is_good, between, took)

    def _gpus(self, has_ended: Mask, begun: Mask) -> tuple[Any, Mask]:
        """GPUs of rows by the first column that names any, and whether they are parts.

        A row of a job that has `begun` may name none that is understood.
        """
        columns = [name for name in (*RESOURCES, *NODES) if name in self.header]
        keys = list(zip(*(self._texts(name) for name in columns), strict=True))
        wanted = np.flatnonzero((has_ended | begun) & self.rows.is_good)
        gpus, is_share = np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=bool)
        found: dict[Any, Any] = {}
        for k in wanted.tolist():
            if keys[k] not in found:
                try:
                    found[keys[k]] = self._held(dict(zip(columns, keys[k], strict=True)))
                except MalformedError as fault:
                    found[keys[k]] = fault
            held = found[keys[k]]
            if isinstance(held, MalformedError):
                self.rows.reject((np.arange(len(keys)) == k) & has_ended, held)
                continue
            gpus[k], is_share[k], others, column = held
            if has_ended[k]:
                self.others.update(others)
                self.one_node.update(column)
        return gpus, is_share

    def _held(self, row: Mapping[str, str]) -> tuple[int, bool, set[str], tuple[str, ...]]:
        """GPUs of a row, whether they are parts, what else it names, a column of one node."""
        found: dict[str, Resources] = {}
        for column in RESOURCES:
            text = row.get(column, "")
            if text.endswith(CUT):
                raise _cut(column)
            each = found[column] = resources_of(text)
            if each.gpus:
                nodes: int | None = 1
                if column in PER_NODE or each.is_per_node:
                    nodes = _nodes(row, found)
                held = each.gpus * (nodes or 1)
                return held, each.is_share, set(), () if nodes else (column,)
        return 0, False, {name for each in found.values() for name in each.others}, ()

    def check_gpus(self, runs: Sequence[JobRun], file: str) -> None:
        """Refuse a file in which no row names a GPU, if jobs with GPUs are wanted."""
        ran = [run for run in runs if run.has_ended and run.duration]
        if ran and self._options.min_gpus and not any(run.gpus for run in ran):
            there = [column for column in RESOURCES if column in self.header]
            others = f"; they name {', '.join(sorted(self.others))}" if self.others else ""
            expected = f"expected gres/gpu in some row of {file}, got none in {', '.join(there)}"
            raise InstanceError(f"{COLUMN}{there[0]}", f"{expected}{others}")

    def notes(self, runs: Sequence[JobRun]) -> list[str]:
        """Notes on how the rows were read, which affect what the numbers mean."""
        notes = []
        without = sum(run.duration > 0 and not run.gpus for run in runs)
        if without:
            notes.append(f"rows of jobs without GPUs: {without}")
        notes += [
            f"{name} is not read as GPUs (rows that name it and no GPU: {count})"
            for name, count in sorted(self.others.items())
        ]
        if self.one_node:
            columns = " and ".join(column for column in RESOURCES if self.one_node[column])
            notes.append(
                f"{columns} names the GPUs of one node; rows without a number of nodes (NNodes), "
                f"read as one node: {self.one_node.total()}"
            )
        if self.later:
            notes.append(f"jobs that wait from Eligible on: {self.later}")
        return notes


def _nodes(row: Mapping[str, str], found: Mapping[str, Resources]) -> int | None:
    """Nodes of a job, of one of which a column names the GPUs; None if the row does not say."""
    for name in NODES:
        if re.fullmatch(r"[1-9]\d*", row.get(name, "")):
            return int(row[name])
    return next((each.nodes for each in found.values() if each.nodes), None)


def _are_cut(texts: Sequence[str]) -> Mask:
    return np.array([text.endswith(CUT) for text in texts], dtype=bool)


def _cut(column: str) -> MalformedError:
    return MalformedError(
        f"{column} is cut off (+): print it with sacct --parsable2, or wider: {column}%80"
    )


def _goes_on(text: str) -> bool:
    """Return whether the run of a row has not ended; a preempted run has ended."""
    state = text.upper().split(maxsplit=1)[0] if text.strip() else ""
    if not state.endswith(CUT):
        return goes_on(state)
    found = any(name.startswith(state[:-1]) for name in GO_ON)  # a narrow column
    if found and any(name.startswith(state[:-1]) for name in CUT_STATES):
        raise _cut("State")
    return found


def _jobs(runs: Sequence[JobRun], notes: list[str]) -> Iterator[list[JobRun]]:
    """The runs of each job in order; the components of a heterogeneous one are put together."""
    users: dict[tuple[str, str], str] = {}  # the last one: numbers are given again after some years
    keyed = []
    together = 0
    for run in runs:
        found = HETEROGENEOUS.fullmatch(run.id)
        job, component = (found[1], int(found[2])) if found else (run.id, 0)
        key = (run.cluster, job)
        user = users[key] = run.labels.get("user") or users.get(key, "")
        keyed.append(((*key, user), (component, replace(run, id=job))))
    for parts in grouped(keyed):
        components = [
            # The line decides last, so that runs with the same times keep the order of the file.
            sorted(component, key=lambda run: (run.submitted, run.started or 0.0, run.line))
            for component in grouped(parts)
        ]
        if len(components) == 1:
            yield components[0]
            continue
        together += 1
        count = max(map(len, components))
        yield [
            _together([component[k] for component in components if k < len(component)])
            for k in range(count)
        ]
    if together:
        notes.append(
            f"heterogeneous jobs: {together}; the GPUs of their components are added, for as long "
            "as their work needs"
        )


def _together(components: Sequence[JobRun]) -> JobRun:
    """One run of the components of a heterogeneous job, which run at the same time."""
    gpus = sum(run.gpus for run in components)
    if gpus:
        return combined(components, gpus)
    longest = max(run.duration for run in components)
    return replace(components[0], duration=longest, has_ended=all(r.has_ended for r in components))


def _is_sacct(lines: list[str], document: Any) -> bool:
    """Whether these lines, or this document, are sacct's."""
    if isinstance(document, Mapping):
        jobs = document.get("jobs")
        first = jobs[0] if isinstance(jobs, list) and jobs else None
        is_job = isinstance(first, Mapping) and "job_id" in first
        return "jobs" in document and ("meta" in document or is_job)
    if document is not None:
        return False
    header = re.findall(r"\w+", lines[0])
    has_id = any(name in header for name in NAMES)
    has_more = any(name in header for name in ("Submit", "State", *DURATIONS))
    is_own = has_id and has_more and not _is_made_of_sacct(lines[0])
    return is_own or LINE.match(lines[0]) is not None


def _is_made_of_sacct(header: str) -> bool:
    """Whether a program has made this header of sacct's names: its own have no spaces, no GPUs."""
    cells = [cell.strip(' "') for cell in re.split(r"[,;|\t]", header)]
    has_space = len(cells) > 1 and any(" " in cell for cell in cells)
    has_gpus = re.search(r"(?i)gpu", header) is not None
    return has_space or (has_gpus and re.search(r"(?i)[TG]RES", header) is None)


SLURM = JobTrace(
    "slurm",
    _read,
    {"trace": "Slurm accounting (sacct)"},
    SlurmOptions,
    looks="output of Slurm's sacct",
    finds=_is_sacct,
)
