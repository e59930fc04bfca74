"""Slurm's accounting, as ``sacct`` prints it (docs/traces)."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, option
from oasis.traces.plain_job import ended_as
from oasis.traces.runs import JobRun, add_jobs, combined, grouped
from oasis.traces.table import (
    COLUMN,
    ENTRY,
    REPEATED_ROW,
    STEP,
    MalformedError,
    RowLayout,
    TraceSource,
    TraceTable,
    check_usable,
    csv_cells,
    parse_rows,
    read_table,
)
from oasis.traces.times import Durations, TraceTimes

EMPTY = ("", "(null)", "N/A", "None", "none")
USAGE = ("gpumem", "gpuutil")  # how much of a GPU was used: no GPUs
PARTS = ("shard", "mps", "mig")  # generic resources that are parts of a GPU
SLICE = re.compile(
    r"(?i)(?:^|[_.-])(?:\d+g\.\d+gb|mig(?:$|[_.-]|\d))"
)  # of a type: MIG, such as a100_1g.5gb
GPU_NUMBER = "7696487"  # "gpu" as a number: what sacct prints where it does not know the resource
PER_NODE_PREFIX = "PER_NODE:"  # of ReqGRES, from Slurm 20.02 on
COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")
POWER = {"": 0, "k": 1, "m": 2, "g": 3}  # of 1024


@dataclass(frozen=True, slots=True)
class Resources:
    """Content of a list of resources.

    Parameters
    ----------
    gpus : int
        GPUs it names.
    nodes : int or None
        The nodes of a trackable list (``node=2``); None if it does not say.
    others : tuple of str
        Generic resources that are not read as GPUs.
    is_per_node : bool
        Whether the list itself says that it is of each node (``PER_NODE:gpu:2``).
    """

    gpus: int
    nodes: int | None = None
    others: tuple[str, ...] = ()
    is_per_node: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of a list: ``gres/gpu:a100=4``, ``gpu:a100:4(IDX:0-3)``, ``gpu`` or ``cpu=4``."""

    text: str
    is_generic: bool
    name: str
    type: str | None
    count: str | None

    @property
    def number(self) -> int:
        """Amount of the entry; 1 without a number."""
        if self.count is None:
            return 1
        found = COUNT.fullmatch(self.count)
        # A count that is not understood becomes 0.5, which
        # is refused like every number that is not whole.
        value = float(found[1]) * 1024 ** POWER[found[2].lower()] if found else 0.5
        if value != int(value):
            raise _not_understood(self.text)
        return int(value)


def resources_of(text: str) -> Resources:
    """Read a list of trackable resources (TRES) or of generic ones (GRES).

    The list is split at commas outside of brackets, and each entry is read as a whole. The GPUs are
    those of the entries without a type, which count all types, otherwise the sum over types.

    Raises
    ------
    MalformedError
        For an entry that may stand for GPUs and is not understood, and for parts of GPUs.

    Examples
    --------
    >>> found = resources_of("billing=16,cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=2")
    >>> found.gpus, found.nodes
    (4, 2)
    >>> resources_of("gpu:a100:2(IDX:0,1),gpu:v100").gpus
    3
    >>> found = resources_of("license/abq_gpu=8,gres/nic=2")
    >>> found.gpus, found.others
    (0, ('gres/nic',))
    """
    # A list may name GPUs twice: gres/gpu=4 beside gres/gpu:a100=4 are the same four.
    whole: list[int] = []
    typed: list[int] = []
    nodes: int | None = None
    others: list[str] = []
    for entry in map(_entry, _entries(text)):
        if entry is None:
            continue
        if entry.name == "node" and not entry.is_generic:
            nodes = entry.number
        elif not entry.is_generic or entry.name in USAGE:
            continue
        elif entry.name in PARTS or (entry.name == "gpu" and SLICE.search(entry.type or "")):
            if entry.number:
                raise MalformedError("a part of a GPU, not a whole one", f"{entry.text:.40}")
        elif entry.name == "gpu":
            (whole if entry.type is None else typed).append(entry.number)
        else:
            others.append(f"gres/{entry.name}")
    return Resources(sum(whole or typed), nodes, tuple(others), PER_NODE_PREFIX in text)


def _entries(text: str) -> Iterator[str]:
    """The entries between commas outside of brackets."""
    depth, begin = 0, 0
    for position, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth <= 0:
            yield text[begin:position].strip()
            begin = position + 1
    yield text[begin:].strip()


def _entry(text: str) -> _Entry | None:
    """Read an entry; None if it says nothing.

    ``[gres/]name[:type][=count]`` in trackable lists, where what is no GRES has another prefix, or
    none and a count; ``[gres:]name[:type][:count]`` in generic ones.
    """
    if text in EMPTY:
        return None
    bare = re.sub(r"[(\[][^()\[\]]*[)\]]", "", text).strip().removeprefix(PER_NODE_PREFIX)
    prefix, slash, rest = bare.partition("/")
    if slash and prefix != "gres":
        return _Entry(text, False, bare, None, None)  # a licence, a file system, ...
    if bare.startswith("PER_"):  # of a task, a socket, ...: of how many is not known
        raise _not_understood(text)
    if not slash:
        rest = bare.removeprefix("gres:")
    head, equals, count = rest.partition("=")
    name, *more = head.split(":")
    name = "gpu" if name == GPU_NUMBER else name.lower()
    is_generic = bool(slash) or rest != bare or not equals or name == "gpu"
    if is_generic and (re.search(r"[()\[\]]", bare) or not name or len(more) + bool(equals) > 2):
        raise _not_understood(text)
    more = [part for part in more if part]  # a type that is (null) is none
    if equals:
        return _Entry(text, is_generic, name, more[0] if more else None, count)
    if len(more) == 2:
        return _Entry(text, is_generic, name, more[0], more[1])
    if more and not COUNT.fullmatch(more[0]):
        return _Entry(text, is_generic, name, more[0], None)
    return _Entry(text, is_generic, name, None, more[0] if more else None)


def _not_understood(text: str) -> MalformedError:
    return MalformedError("resources not understood", f"{text:.40}")


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
RULE = re.compile(r"-+(?: +-+)*\s*")  # below the header of columns of fixed width


def is_json(source: TraceSource) -> bool:
    """Return whether this is output of ``sacct --json``."""
    return source.header.lstrip().startswith("{")


def layout_of(source: TraceSource, columns: str = "", delimiter: str = "") -> RowLayout:
    """Return the layout by which lines of `source` are split into columns.

    Parameters
    ----------
    source : TraceSource
        Output of sacct, but no JSON.
    columns : str
        The names of the columns with commas between, if the file has no header; else empty.
    delimiter : str
        What stands between columns; empty: it is found in the header.

    Raises
    ------
    InstanceError
        If there is no header, or if it does not show what stands between columns.

    Examples
    --------
    >>> from oasis.traces.table import TraceSource
    >>> layout = layout_of(TraceSource("jobs.txt", ("JobID;Submit;State", "7;2024-03-01;FAILED")))
    >>> layout.header, layout.split("7;2024-03-01;FAILED")
    (['JobID', 'Submit', 'State'], ['7', '2024-03-01', 'FAILED'])
    """
    if columns:
        names = [name.strip() for name in columns.split(",")]
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
    """Return the first of `columns` in `header`; the error names all, and what else helps."""
    for name in columns:
        if name in header:
            return name
    others = " or ".join(filter(None, (*columns[1:], also)))
    expected = f"expected this column{' or ' if others else ''}{others} in {file}"
    found = ", ".join(header)[:200] or "none"
    raise InstanceError(f"{COLUMN}{columns[0]}", f"{expected}, which has: {found}")


# --- JSON -----------------------------------------------------------------------------------------


def json_rows(source: TraceSource, table: TraceTable[Any]) -> list[tuple[int, Mapping[str, str]]]:
    """The jobs that ``sacct --json`` prints, as rows with sacct's columns, numbered from 1.

    An entry that is no job is counted in `table`.

    Raises
    ------
    InstanceError
        If it is no such document, or has no jobs.

    Examples
    --------
    >>> from oasis.traces.table import TraceSource, TraceTable
    >>> job = '{"job_id": 7, "time": {"submission": 1709280000, "elapsed": 60}, "tres": {}}'
    >>> source = TraceSource("jobs.json", ('{"jobs": [' + job + "]}",))
    >>> rows = json_rows(source, TraceTable(unit="entry"))
    >>> rows[0][0], rows[0][1]["JobID"], rows[0][1]["ElapsedRaw"]
    (1, '7', '60')
    """
    try:
        document = json.loads(source.text)
    except ValueError as error:
        raise InstanceError("", f"expected JSON: {error}") from None
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise InstanceError("jobs", "expected the list of jobs that sacct --json prints")
    if not jobs:
        raise InstanceError("jobs", "expected at least one job, got an empty list")
    rows: list[tuple[int, Mapping[str, str]]] = []
    for number, job in enumerate(jobs, start=1):
        if not isinstance(job, dict) or "job_id" not in job:
            table.reject(MalformedError("not an object with a job_id"), number)
        else:
            rows.append((number, _json_row(job)))
    return rows


def _json_row(job: Mapping[str, Any]) -> dict[str, str]:
    time, tres = _part(job, "time"), _part(job, "tres")
    state = _part(job, "state").get("current", "")
    return {
        "JobID": _json_id(job),
        "Submit": _number(time.get("submission")),
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
    return _number(job["job_id"])


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
UNFINISHED = (  # sacct's states of jobs that have not ended, long and short
    *("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED", "SIGNALING"),
    *("STAGE_OUT", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"),
    *("PD", "R", "S", "CF", "CG", "ST", "SI", "SO", "RH", "RF", "RD", "SE"),
)
ENDED = (
    *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED"),
    *("BOOT_FAIL", "DEADLINE", "REQUEUED", "REVOKED", "RESIZING"),
)
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


def _read(source: TraceSource, options: SlurmOptions) -> TraceTable[TraceRow]:
    if is_json(source):
        found: TraceTable[JobRun] = TraceTable(unit=ENTRY)
        rows = json_rows(source, found)
        reader = _Reader(list(rows[0][1]) if rows else [*NAMES], options)
        reader.clock.look_at(row["Submit"] for _, row in rows)
        parse_rows(found, rows, reader.run)
    else:
        layout = layout_of(source, options.columns, options.delimiter)
        _check_columns(layout.header, source.name)
        reader = _Reader(layout.header, options)
        found = read_table(
            source,
            (),
            reader.run,
            layout=layout,
            clock=reader.clock,
            time="Submit",
            allow_malformed=True,
        )
    ended: TraceTable[JobRun] = TraceTable(
        [run for run in found.rows if run.has_ended], found.malformed, unit=found.unit
    )
    # Rows of jobs that still run are no fault: whether
    # the file can be used is judged by the others.
    if ended.rows:
        check_usable(ended, source.name, allow_malformed=options.allow_malformed)
    reader.durations.question()
    reader.check_gpus(found, source.name)
    table: TraceTable[TraceRow] = TraceTable(
        [], found.malformed, reader.notes(found), reader.clock, found.unit
    )
    if found.rows:
        # Steps are as many as jobs, and are part of what
        # was read: there is nothing to report of them.
        table.malformed.pop(STEP, None)
    add_jobs(table, list(_jobs(found.rows, table.notes)), options.runs)
    check_usable(table, source.name, allow_malformed=True)
    return table


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


@dataclass(slots=True)
class _Reader:
    """Turns rows into runs, and collects notes on what it met."""

    header: Sequence[str]
    options: SlurmOptions
    clock: TraceTimes = field(init=False)
    durations: Durations = field(init=False)
    others: Counter[str] = field(default_factory=Counter)  # generic resources that are no GPUs
    one_node: Counter[str] = field(default_factory=Counter)  # column -> rows with GPUs of a node
    seen: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = TraceTimes(self.options, is_dated=True)
        self.durations = Durations(self.options.duration_unit)

    @property
    def id_column(self) -> str:
        """The column that names jobs."""
        return next(name for name in NAMES if name in self.header)

    def run(self, line: int, row: Mapping[str, str]) -> JobRun:
        """The run that a row describes."""
        job = row[self.id_column]
        # A step repeats the resources of its job, which would be counted twice.
        if "." in job:
            raise MalformedError(STEP)
        if not job:
            raise MalformedError(f"no {self.id_column}")
        # Two names that are cut off alike would become one job.
        if job.endswith(CUT):
            raise _cut(self.id_column)
        # Reports of periods that overlap hold the jobs of both periods twice.
        if self.seen.setdefault(tuple(row.values()), line) != line:
            raise MalformedError(REPEATED_ROW)
        has_ended = not _is_unfinished(row)
        return JobRun(
            job,
            line,
            self._time(row, "Submit"),
            self._duration(row) if has_ended else 0.0,
            self._gpus(row) if has_ended else 0,
            {name: row[column] for name, column in LABELS.items() if column in row},
            self._time(row, "Start") if row.get("Start", "") not in UNKNOWN else None,
            has_ended,
            row.get("Cluster", ""),
            row.get("User") or row.get("Account", ""),
            ended_as(_state(row)),
        )

    def _time(self, row: Mapping[str, str], column: str) -> float:
        text = row[column]
        if text.endswith(CUT):
            raise _cut(column)
        return self.clock.read(text, column)

    def _duration(self, row: Mapping[str, str]) -> float:
        for column in DURATIONS:
            text = row.get(column, "")
            if text.endswith(CUT):
                raise _cut(column)
            if text not in UNKNOWN:
                return self.durations.read(text, column)
        if "Start" in row and row["Start"] in UNKNOWN:
            return 0.0  # it never began
        if any(row.get(name, "") in UNKNOWN for name in ("Start", "End")):
            raise MalformedError("no duration")
        took = self._time(row, "End") - self._time(row, "Start")
        if took < 0:
            raise MalformedError("End is before Start")
        return took

    def _gpus(self, row: Mapping[str, str]) -> int:
        """GPUs by the first column that names any."""
        found: dict[str, Resources] = {}
        for column in RESOURCES:
            text = row.get(column, "")
            if text.endswith(CUT):
                raise _cut(column)
            found[column] = resources_of(text)
            gpus = found[column].gpus
            if gpus and (column in PER_NODE or found[column].is_per_node):
                return gpus * self._nodes(column, row, found)
            if gpus:
                return gpus
        self.others.update({name for each in found.values() for name in each.others})
        return 0

    def _nodes(self, column: str, row: Mapping[str, str], found: Mapping[str, Resources]) -> int:
        """Nodes of a job, of one of which `column` names the GPUs; one if the row does not say."""
        for name in NODES:
            if re.fullmatch(r"[1-9]\d*", row.get(name, "")):
                return int(row[name])
        for resources in found.values():
            if resources.nodes:
                return resources.nodes
        self.one_node[column] += 1
        return 1

    def check_gpus(self, found: TraceTable[JobRun], file: str) -> None:
        """Refuse a file in which no row names a GPU, if jobs with GPUs are wanted."""
        ran = [run for run in found.rows if run.has_ended and run.duration]
        if ran and self.options.min_gpus and not any(run.gpus for run in ran):
            there = [column for column in RESOURCES if column in self.header]
            others = f"; they name {', '.join(sorted(self.others))}" if self.others else ""
            expected = f"expected gres/gpu in some row of {file}, got none in {', '.join(there)}"
            raise InstanceError(f"{COLUMN}{there[0]}", f"{expected}{others}")

    def notes(self, found: TraceTable[JobRun]) -> list[str]:
        """Notes on how the rows were read, which affect what the numbers mean."""
        notes = []
        without = sum(run.duration > 0 and not run.gpus for run in found.rows)
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
        return notes


def _cut(column: str) -> MalformedError:
    return MalformedError(
        f"{column} is cut off (+): print it with sacct --parsable2, or wider: {column}%80"
    )


def _state(row: Mapping[str, str]) -> str:
    """The state without what follows, as in ``CANCELLED by 1000``."""
    words = row.get("State", "").upper().split()
    return words[0] if words else ""


def _is_unfinished(row: Mapping[str, str]) -> bool:
    """Return whether the run of a row has not ended; a preempted run has ended."""
    state = _state(row)
    if state.endswith(CUT):  # a narrow column
        goes_on = any(name.startswith(state[:-1]) for name in UNFINISHED)
        if goes_on and any(name.startswith(state[:-1]) for name in ENDED):
            raise _cut("State")
        return goes_on
    if state in UNFINISHED:
        return True
    # A state that is not known here is no reason to wait; a run that began and has no end is one.
    return "End" in row and row["End"] in UNKNOWN and row.get("Start", "") not in UNKNOWN


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


SLURM = JobTrace("slurm", _read, {"trace": "Slurm accounting (sacct)"}, SlurmOptions)
