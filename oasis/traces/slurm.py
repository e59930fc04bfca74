"""Slurm's accounting, as ``sacct`` prints it (docs/traces)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.traces.gres import Resources, resources_of
from oasis.traces.mapping import MachineOptions
from oasis.traces.options import RUNS, option
from oasis.traces.plain_instance import TableFormat, TableReader, table_trace
from oasis.traces.plain_job import GO_ON, STATES
from oasis.traces.runs import combined
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
    entries_of,
    frame_of_entries,
    parse_document,
    pd,
)

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
        return _layout(names, 0, _split, between)
    header = source.header
    below = source.first + 1
    rule = "".join(source.lines[below : below + 1])
    if RULE.fullmatch(rule) and not delimiter:
        spans = [found.span() for found in re.finditer(r"-+", rule)]
        fault = f"cells do not stand below the names of their columns; {PARSABLE}"
        return RowLayout(
            _fixed(header, spans), below + 1, lambda text: _fixed(text, spans), "", fault
        )
    if not KNOWN & set(re.findall(r"\w+", header)):
        _refuse_without_header(source)
    if not delimiter:
        delimiter = _delimiter(header.replace('"', ""))
    has_quotes = '"' in header and len(delimiter) == 1  # written by another program than sacct
    split = csv_cells if has_quotes or delimiter == "," else _split
    names = split(header, delimiter)
    if not names[-1]:  # sacct --parsable ends each line with the delimiter
        names.pop()
    return _layout(names, below, split, delimiter)


def _layout(
    names: list[str], first: int, split: Callable[[str, str], list[str]], delimiter: str
) -> RowLayout:
    """The layout of lines that may end with the sign between their cells."""

    def cells(text: str) -> list[str]:
        found = split(text, delimiter)
        return found[:-1] if len(found) == len(names) + 1 and not found[-1] else found

    fault = f"more cells than columns: is {delimiter!r} in a cell? {PARSABLE}"
    return RowLayout(names, first, cells, "", fault)


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


def _fixed(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """The cells between `spans`, which sacct counts in bytes and other programs in characters."""
    for line in dict.fromkeys((text.encode().decode("latin-1"), text)):  # a character a byte
        if all(line[end : end + 1] in ("", " ") for _, end in spans):
            cells = [line[begin:end].strip() for begin, end in spans]
            is_bytes = line is not text and not text.isascii()
            return [_of_bytes(cell) for cell in cells] if is_bytes else cells
    return [text] * (len(spans) + 1)  # too many: that is the fault of such a line


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

JSON_CELLS = {  # column -> where sacct --json has it; the first that is there
    "Submit": ("time.submission",),
    "Eligible": ("time.eligible",),
    "Start": ("time.start",),
    "End": ("time.end",),
    "ElapsedRaw": ("time.elapsed",),
    "State": ("state.current",),
    "User": ("user", "association.user"),
    "Account": ("account", "association.account"),
    "Partition": ("partition",),
    "QOS": ("qos",),
    "AllocTRES": ("tres.allocated",),
    "ReqTRES": ("tres.requested",),
    "AllocNodes": ("allocation_nodes",),
    "Cluster": ("cluster",),
}


def json_cells(source: TraceSource, faults: Faults) -> Frame:
    """The jobs that ``sacct --json`` prints, with sacct's columns, numbered from 1."""
    document = parse_document(source)
    jobs = document.get("jobs") if isinstance(document, dict) else None
    return frame_of_entries(entries_of(jobs, "jobs", "", faults), _json_row, faults)


def _json_row(job: Mapping[str, Any]) -> list[dict[str, str]]:
    if "job_id" not in job:
        raise MalformedError("not an object with a job_id")
    row = {
        column: next(filter(None, (_json_cell(_at(job, place)) for place in places)), "")
        for column, places in JSON_CELLS.items()
    }
    name, task = _json_cell(job["job_id"]), _json_cell(_at(job, "array.task_id"), zero="0")
    array, het = _json_cell(_at(job, "array.job_id")), _json_cell(_at(job, "het.job_id"))
    if het:
        name = f"{het}+{_json_cell(_at(job, 'het.job_offset')) or 0}"
    elif array and task:
        name = f"{array}_{task}"
    return [{"JobID": name, **row}]


def _at(value: Any, place: str) -> Any:
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _json_cell(value: Any, zero: str = "") -> str:
    """A text or number, bare or as ``{"set": true, "number": 5}``; empty if it is not set.

    Zero stands for a time or an identifier that there is not: `zero` is put in its place. A list of
    resources becomes the words of AllocTRES; of another list, the first is taken.
    """
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return ",".join(
            f"{'/'.join(filter(None, (entry.get('type', ''), entry.get('name'))))}"
            f"={_json_cell(entry.get('count'), zero='0')}"
            for entry in value
        )
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None or isinstance(value, bool):
        return ""
    return str(value) if value else zero


# --- rows -----------------------------------------------------------------------------------------

NAMES = ("JobID", "JobIDRaw")
DURATIONS = ("ElapsedRaw", "Elapsed")  # both say the same; the first one in plain seconds
COLUMNS = {
    **{"submitted": "Submit", "eligible": "Eligible", "started": "Start", "ended": "End"},
    **{"owner": "User", "group": "Account", "state": "State", "gpus": "held"},
}
# What was allocated goes before what was asked for, and sums over all nodes before those of one.
RESOURCES = ("AllocTRES", "AllocGRES", "ReqTRES", "ReqGRES", "TresPerNode")  # preferred in order
PER_NODE = ("ReqGRES", "TresPerNode")
NODES = ("AllocNodes", "NNodes")
CUT_STATES = (*STATES, *GO_ON, "REQUEUED", "RESIZING")  # a narrow column shows their beginning
HETEROGENEOUS = r"(?P<job>.+)\+(?P<component>\d+)\Z"  # 838+0 and 838+1 are components of 838


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


def _rows(source: TraceSource, options: SlurmOptions) -> tuple[Rows, dict[str, str], list[str]]:
    """The rows of sacct without those of steps, and its columns by their meaning."""
    if source.header.lstrip().startswith("{"):
        faults = Faults(ENTRY)
        whole = cells = json_cells(source, faults)
    else:
        faults, layout = Faults(), layout_of(source, options.columns, options.delimiter)
        _check_columns(layout.header, source.name)
        cells = cells_of(source, layout, [name for name in layout.header if name in KNOWN], faults)
        whole = pd.Series([source.lines[line - 1] for line in cells.index], dtype=object)
    name = next(name for name in NAMES if name in cells)
    # A step repeats the resources of its job, which would be counted twice. Steps are as many as
    # jobs, and are part of what was read: there is nothing to report of them.
    steps = cells[name].str.contains(".", regex=False).to_numpy(bool)
    if not steps.all():
        cells, whole = cells[~steps].copy(), whole[~steps]
    rows = Rows(cells, faults)
    rows.reject(cells[name].str.contains(".", regex=False), STEP)
    rows.reject(cells[name] == "", f"no {name}")
    # Two names that are cut off alike would become one job.
    for column in (name, "Submit", "Start", "End", *DURATIONS):
        if column in cells:
            rows.reject(cells[column].str.endswith(CUT), _cut(column))
    # Reports of periods that overlap hold the jobs of both periods twice.
    rows.reject(whole.duplicated(), REPEATED_ROW)
    if "State" in cells:
        everywhere = np.full(len(cells), True)
        cells["State"] = [
            state or "" for state in rows.each(rows.texts("State"), _uncut, everywhere)
        ]
    took = [column for column in DURATIONS if column in cells]
    if len(took) > 1:
        cells[took[0]] = cells[took[0]].mask(rows.missing(took[0]), cells[took[1]])
    if took and "Start" not in cells:
        rows.reject(rows.missing(took[0]), "no duration")
    cells["held"] = ""
    return rows, {"id": name, **({"duration": took[0]} if took else {}), **COLUMNS}, []


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


class _SacctReader(TableReader):
    """Makes jobs of rows of sacct, of which several columns may name GPUs."""

    _without = 0  # rows of jobs without GPUs

    def _gpus(self, where: Mask) -> tuple[Any, Mask]:
        """GPUs of rows by the first column that names any, and whether they are parts."""
        rows, cells = self.rows, self.rows.cells
        columns = [name for name in (*RESOURCES, *NODES) if name in cells]
        keys = list(zip(*(rows.texts(name) for name in columns), strict=True))
        found = rows.each(keys, lambda key: _held(dict(zip(columns, key, strict=True))), where)
        self.others: Counter[str] = Counter()  # generic resources that are no GPUs
        self.one_node: Counter[str] = Counter()  # column -> rows with GPUs of a node
        good = where & rows.is_good
        for k in np.flatnonzero(good).tolist():
            self.others.update(found[k][2])
            self.one_node.update(found[k][3])
        held = np.array([each[0] if each else 0 for each in found], dtype=float)
        is_share = np.array([bool(each and each[1]) for each in found], dtype=bool)
        self._without = good & (held == 0)
        self._held = good & (held > 0)
        return held, is_share

    def jobs(self) -> dict[str, Any]:
        """The columns of a frame of jobs; a file without any GPUs is refused."""
        found = super().jobs()
        ran = (found["duration"] > 0) & self.rows.is_good
        self._without = int(np.sum(self._without & ran))
        if self._options.min_gpus and ran.any() and not (self._held & ran).any():
            there = [column for column in RESOURCES if column in self.rows.cells]
            others = f"; they name {', '.join(sorted(self.others))}" if self.others else ""
            expected = f"expected gres/gpu in some row, got none in {', '.join(there)}"
            raise InstanceError(f"{COLUMN}{there[0]}", f"{expected}{others}")
        return found | {"cluster": self.rows.texts("Cluster")}

    def notes(self) -> list[str]:
        """Notes on how the rows were read, which affect what the numbers mean."""
        notes = [f"rows of jobs without GPUs: {self._without}"] if self._without else []
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
        return [*notes, *super().notes()]

    def grouped(self, runs: Frame, notes: list[str]) -> Frame:
        """The runs of each job in order; the components of a heterogeneous one are one run."""
        parts = runs["id"].str.extract(HETEROGENEOUS)
        runs = runs.assign(id=parts["job"].fillna(runs["id"]), part=parts["component"].fillna("0"))
        place = ["cluster", "id"]
        # Numbers are given again after some years; a row without a user is of the last one.
        users = pd.Series(self.rows.texts("User"), index=self.rows.lines)[runs.index]
        runs["user_of"] = (
            users.mask(users == "").groupby([runs[c] for c in place]).ffill().fillna("")
        )
        key = [*place, "user_of"]
        runs["key"] = runs.groupby(key, sort=False).ngroup()
        runs["part"] = runs.groupby([*key, "part"], sort=False).ngroup()
        runs["begin"] = runs["started"].fillna(0.0)
        # The line decides last, so that runs with the same times keep the order of the file.
        runs = runs.sort_index().sort_values(["key", "part", "submitted", "begin"], kind="stable")
        runs["run"] = runs.groupby("part").cumcount()
        several = runs.groupby("key")["part"].transform("nunique") > 1
        if several.any():
            notes.append(
                f"heterogeneous jobs: {runs.loc[several, 'key'].nunique()}; the GPUs of their "
                "components are added, for as long as their work needs"
            )
            together = combined(runs[several], ["key", "run"], "sum")
            runs = pd.concat([runs[~several], together]).sort_values(["key", "run"], kind="stable")
        return runs.drop(columns=["cluster", "user_of", "part", "begin", "run"])


def _held(row: Mapping[str, str]) -> tuple[int, bool, set[str], tuple[str, ...]]:
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
            return each.gpus * (nodes or 1), each.is_share, set(), () if nodes else (column,)
    return 0, False, {name for each in found.values() for name in each.others}, ()


def _nodes(row: Mapping[str, str], found: Mapping[str, Resources]) -> int | None:
    """Nodes of a job, of one of which a column names the GPUs; None if the row does not say."""
    for name in NODES:
        if re.fullmatch(r"[1-9]\d*", row.get(name, "")):
            return int(row[name])
    return next((each.nodes for each in found.values() if each.nodes), None)


def _cut(column: str) -> MalformedError:
    return MalformedError(
        f"{column} is cut off (+): print it with sacct --parsable2, or wider: {column}%80"
    )


def _uncut(text: str) -> str:
    """A state, whole: a narrow column may show its beginning."""
    state = text.upper().split(maxsplit=1)[0] if text.strip() else ""
    if not state.endswith(CUT):
        return text
    whole = [name for name in CUT_STATES if name.startswith(state[:-1])]
    if len({name in GO_ON for name in whole}) > 1:
        raise _cut("State")
    return whole[0] if whole and whole[0] in GO_ON else text


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


SLURM = table_trace(
    "slurm",
    "Slurm accounting (sacct)",
    TableFormat(
        rows=_rows,
        is_dated=True,
        joins=True,
        labels={"user": "User", "partition": "Partition", "qos": "QOS"},
    ),
    _SacctReader,
    options=SlurmOptions,
    looks="output of Slurm's sacct",
    finds=_is_sacct,
)
