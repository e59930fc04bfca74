"""Slurm's accounting, as ``sacct`` prints it (docs/traces)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.traces import table
from oasis.traces.gres import Resources, resources_of
from oasis.traces.job_table import combined
from oasis.traces.plain_instance import known_trace
from oasis.traces.plain_job import FACTS, STATES, UNENDED
from oasis.traces.table import Frame, MalformedError, Rows, TraceSource, pd

KNOWN = frozenset(FACTS["slurm"]["known"])  # columns that tell a header from a row of values
NAMES = ("JobID", "JobIDRaw")
DURATIONS = ("ElapsedRaw", "Elapsed")  # both say the same; the first one in plain seconds
# What was allocated goes before what was asked for, and sums over all nodes before those of one.
RESOURCES = ("AllocTRES", "AllocGRES", "ReqTRES", "ReqGRES", "TresPerNode")  # preferred in order
PER_NODE = ("ReqGRES", "TresPerNode")
NODES = ("AllocNodes", "NNodes")
PARSABLE = "print it with sacct --parsable2"
BESIDE = f"cells do not stand below the names of their columns; {PARSABLE}"
CUT = "+"  # ends a cell that is too narrow for its value
CUT_STATES = (*STATES, "REQUEUED", "RESIZING")  # a narrow column shows their beginning
ID = r"\d+(?:_\d+|_\[[^\]]*\]|\+\d+)?(?:\.\w+)?"
ROW = re.compile(rf"{ID}\W.*")  # how a row of values begins
# Of a file without a header: a job, then some cell with a date of Slurm's.
LINE = re.compile(rf"{ID}\|.*\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d")
RULE = re.compile(r"-+(?: +-+)*\s*")  # below the header of columns of fixed width
HETEROGENEOUS = r"(?P<job>.+)\+(?P<component>\d+)\Z"  # 838+0 and 838+1 are components of 838


def _text_rows(source: TraceSource, columns: str, delimiter: str) -> Rows:
    """Read sacct's text output; `columns` are the column names of a file without a header."""
    header, below = source.header, source.first + 1
    spans: Sequence[tuple[int, int]] = ()
    rule = "".join(source.lines[below : below + 1])
    if columns:
        known = {name.lower(): name for name in KNOWN}  # sacct takes them in any letters
        header = ",".join(known.get(name.strip().lower(), name) for name in columns.split(","))
        names, delimiter, below = header.split(","), delimiter or "|", 0
    elif RULE.fullmatch(rule) and not delimiter:
        spans = tuple(match.span() for match in re.finditer(r"-+", rule))
        names, below = _fixed(header, spans), below + 1
    elif not KNOWN & set(re.findall(r"\w+", header)) and ROW.fullmatch(header.strip()):
        expected = "expected the names of the columns, got a row of values"
        how = "print it without --noheader, or name the columns with --columns"
        raise InstanceError("row 1", f"{expected} ({header.strip():.40}); {how}")
    else:
        delimiter = delimiter or _delimiter(header.replace('"', ""))
        names = [name.strip(' "') for name in header.split(delimiter)]
        names = names if names[-1] else names[:-1]  # --parsable ends each line with the delimiter
    # Quotes are written by other programs than sacct.
    has_quotes = len(delimiter) == 1 and (delimiter == "," or '"' in header) and not columns
    place = f"in {source.name}, which has: {', '.join(names)[:200] or 'none'}"
    has_run = {"Start", "End"} <= set(names)
    for wanted in (NAMES, ("Submit",), () if has_run else (*DURATIONS, "Start and End"), RESOURCES):
        if wanted and not set(wanted) & set(names):
            expected = " or ".join(("expected this column", *wanted[1:]))
            raise InstanceError(f"{table.COLUMN}{wanted[0]}", f"{expected} {place}")
    fault = f"more cells than columns: is {delimiter!r} in a cell? {PARSABLE}"
    split: Any = partial(_fixed, spans=spans) if spans else None
    return table.rows_of(
        source,
        [name.strip() for name in names],
        below,
        [name for name in names if name in KNOWN],
        delimiter,
        quotes=has_quotes,
        split=split,
        faults=(table.WRONG_NUMBER, BESIDE if spans else fault),
    )


def _delimiter(header: str) -> str:
    """Return the sign between column names; refuse a header with several such signs."""
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


def _fixed(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Split a line at `spans`, counted in bytes (sacct) or in characters (other programs)."""
    encoded = text.encode()
    if all(encoded[end : end + 1] in (b"", b" ") for _, end in spans):
        return [encoded[begin:end].decode(errors="replace").strip() for begin, end in spans]
    if all(text[end : end + 1] in ("", " ") for _, end in spans):
        return [text[begin:end].strip() for begin, end in spans]
    return [text] * (len(spans) + 1)  # too many: that is the fault of such a line


def _json_row(job: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one row, with sacct's columns, for a job that ``sacct --json`` printed."""
    if "job_id" not in job:
        raise MalformedError("not an object with a job_id")
    row = {
        column: next(filter(None, (_json_cell(job, place) for place in places)), "")
        for column, places in FACTS["slurm"]["json"].items()
    }
    name, task = _json_cell(job, "job_id"), _json_cell(job, "array.task_id", zero="0")
    if het := _json_cell(job, "het.job_id"):
        name = f"{het}+{_json_cell(job, 'het.job_offset', zero='0') or 0}"
    elif task and (array := _json_cell(job, "array.job_id")):
        name = f"{array}_{task}"
    return [{"JobID": name, **row}]


def _json_cell(value: Any, place: str, zero: str = "") -> str:
    """Return the entry at a dotted `place` as text: empty if unset, `zero` if it is 0."""
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return ",".join(
            f"{'/'.join(str(e[key]) for key in ('type', 'name') if e.get(key))}"
            f"={_json_cell(e, 'count', zero='0')}"
            for e in value
        )
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None or isinstance(value, bool):
        return ""
    return str(value) if value else zero


def _read(source: TraceSource, options: Any) -> Rows:
    """Read the rows of jobs in sacct's output; rows of job steps are left out."""
    if source.header.lstrip().startswith("{"):
        document = source.document()
        rows = table.entry_rows(source, document.get("jobs"), "jobs", _json_row)
    else:
        rows = _text_rows(source, options.columns, options.delimiter)
    name = next(name for name in NAMES if name in rows.cells)
    # A step repeats the resources of its job, which would be counted twice. Steps are as many as
    # jobs, and are part of what was read: there is nothing to report of them.
    steps = rows.cells[name].str.contains(".", regex=False).to_numpy(bool)
    if steps.all():
        rows.reject(steps, table.STEP)
    else:
        rows.cells, rows.fault = rows.cells[~steps], rows.fault[~steps]
        rows.lines = rows.cells.index.to_numpy()
    cells = rows.cells = rows.cells.copy()
    rows.reject(cells[name] == "", f"no {name}")
    # Two names that are cut off alike would become one job.
    for column in (name, "Submit", "Start", "End", *DURATIONS):
        rows.reject(rows.texts(column).str.endswith(CUT), _cut(column))
    # Reports of periods that overlap hold the jobs of both periods twice.
    rows.reject(cells.duplicated(), table.REPEATED_ROW)
    cells["State"] = rows.convert(rows.texts("State"), _uncut, empty="")
    took = [column for column in DURATIONS if column in cells]
    if len(took) > 1:
        cells[took[0]] = cells[took[0]].mask(rows.missing(took[0]), cells[took[1]])
    if took and "Start" not in cells:
        rows.reject(rows.missing(took[0]), "no duration")
    cells["held"] = list(zip(*map(rows.texts, (*RESOURCES, *NODES)), strict=True))
    return rows


def _cut(column: str) -> MalformedError:
    return MalformedError(
        f"{column} is cut off (+): print it with sacct --parsable2, or wider: {column}%80"
    )


def _uncut(text: str) -> str:
    """Return the state, completed if it was cut off (+) and its job has not ended."""
    state = next(iter(text.upper().split(maxsplit=1)), "")
    begin = state.removesuffix(CUT)
    whole = [name for name in CUT_STATES if begin != state and name.startswith(begin)]
    unended = {STATES.get(name) in UNENDED for name in whole}
    if len(unended) > 1:
        raise _cut("State")
    return whole[0] if True in unended else text


def _gpus(key: tuple[str, ...]) -> tuple[int, bool, Sequence[str], Sequence[str]]:
    """Return a row's GPUs, if in parts, other resources, column if it counts one node's GPUs."""
    row = dict(zip((*RESOURCES, *NODES), key, strict=True))
    lists: list[Resources] = []
    for column in RESOURCES:
        if row[column].endswith(CUT):
            raise _cut(column)
        lists.append(resources := resources_of(row[column]))
        if resources.gpus:
            counts = [int(row[name]) for name in NODES if re.fullmatch(r"[1-9]\d*", row[name])]
            nodes: int | None = 1
            if column in PER_NODE or resources.is_per_node:
                nodes = next((n for n in (*counts, *(entry.nodes for entry in lists)) if n), None)
            return resources.gpus * (nodes or 1), resources.is_share, (), () if nodes else (column,)
    return 0, False, sorted({name for entry in lists for name in entry.others}), ()


def _check(rows: Rows, jobs: dict[str, Any], options: Any) -> None:
    """Add notes on resources that were not read as GPUs; refuse a file without any GPUs."""
    ended = jobs["has_ended"] & rows.is_good
    requests = [jobs["request"][k] for k in np.flatnonzero(ended).tolist()]
    others, one_node = (Counter(name for row in requests for name in row[k]) for k in (2, 3))
    ran = ended & (jobs["duration"] > 0)
    has_gpus = jobs["gpus"] > 0
    if options.min_gpus and ran.any() and not (has_gpus & ran).any():
        present = [column for column in RESOURCES if column in rows.cells]
        named = f"; they name {', '.join(sorted(others))}" if others else ""
        expected = f"expected gres/gpu in some row, got none in {', '.join(present)}"
        raise InstanceError(f"{table.COLUMN}{present[0]}", f"{expected}{named}")
    rows.note("rows of jobs without GPUs", np.sum(ran & ~has_gpus))
    rows.notes += [
        f"{name} is not read as GPUs (rows that name it and no GPU: {count})"
        for name, count in sorted(others.items())
    ]
    columns = " and ".join(column for column in RESOURCES if one_node[column])
    named = "names the GPUs of one node; rows without a number of nodes (NNodes), read as one node"
    rows.note(f"{columns} {named}", one_node.total())
    jobs |= {"cluster": rows.texts("Cluster"), "user_of": rows.texts("User")}


def _joined(runs: Frame, rows: Rows) -> Frame:
    """Return sorted runs with a `key` of their job; components of heterogeneous jobs are merged."""
    parts = runs["id"].str.extract(HETEROGENEOUS)
    runs = runs.assign(id=parts["job"].fillna(runs["id"]), part=parts["component"].fillna("0"))
    # Numbers are given again after some years; a row without a user is of the last one.
    users = runs["user_of"].mask(runs["user_of"] == "")
    runs["user_of"] = users.groupby([runs["cluster"], runs["id"]]).ffill().fillna("")
    key = ["cluster", "id", "user_of"]
    runs["key"] = runs.groupby(key, sort=False).ngroup()
    runs["part"] = runs.groupby([*key, "part"], sort=False).ngroup()
    # The line decides last, so that runs with the same times keep the order of the file.
    order = ["key", "part", "submitted", "started"]
    runs = runs.sort_index().sort_values(order, kind="stable", na_position="first")
    runs["run"] = runs.groupby("part").cumcount()
    several = runs.groupby("key")["part"].transform("nunique") > 1
    if several.any():
        rows.notes.append(
            f"heterogeneous jobs: {runs.loc[several, 'key'].nunique()}; the GPUs of their "
            "components are added, for as long as their work needs"
        )
        together = combined(runs[several], ["key", "run"], "sum")
        runs = pd.concat([runs[~several], together]).sort_values(["key", "run"], kind="stable")
    return runs


def _is_sacct(header: str) -> bool:
    """Whether this line is sacct's own header or row, not made by a program that uses its names."""
    names = re.findall(r"\w+", header)
    has_more = any(name in names for name in ("Submit", "State", *DURATIONS))
    cells = [cell.strip(' "') for cell in re.split(r"[,;|\t]", header)]
    has_space = len(cells) > 1 and any(" " in cell for cell in cells)  # its own have none
    has_gpus = re.search(r"(?i)gpu", header) and not re.search(r"(?i)[TG]RES", header)
    is_own = set(NAMES) & set(names) and has_more and not (has_space or has_gpus)
    return bool(is_own) or LINE.match(header) is not None


SLURM = known_trace("slurm", finds=_is_sacct, read=_read, gpus=_gpus, joins=_joined, check=_check)
