"""The forms in which Slurm's ``sacct`` prints: columns with a delimiter, of fixed width, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from oasis.model.errors import InstanceError
from oasis.traces.source import Source
from oasis.traces.table import COLUMN, Layout, MalformedError, csv_cells

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


def is_json(source: Source) -> bool:
    """Whether this is what ``sacct --json`` prints."""
    return source.header.lstrip().startswith("{")


def layout_of(source: Source, columns: str = "", delimiter: str = "") -> Layout:
    """How the lines of `source` are split into columns.

    Parameters
    ----------
    source : Source
        What sacct printed, but for JSON.
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
    >>> from oasis.traces.source import Source
    >>> layout = layout_of(Source("jobs.txt", ("JobID;Submit;State", "7;2024-03-01;FAILED")))
    >>> layout.header, layout.split("7;2024-03-01;FAILED")
    (['JobID', 'Submit', 'State'], ['7', '2024-03-01', 'FAILED'])
    """
    if columns:
        names = [name.strip() for name in columns.split(",")]
        between = delimiter or "|"
        return Layout(names, 0, lambda text: _cells(text, between, len(names)))
    header = source.header
    if len(source.lines) > 1 and RULE.fullmatch(source.lines[1]) and not delimiter:
        spans = [found.span() for found in re.finditer(r"-+", source.lines[1])]
        return Layout(_fixed(header, spans), 2, lambda text: _fixed(text, spans))
    if not KNOWN & set(re.findall(r"\w+", header)):
        _refuse_without_header(source)
    if not delimiter:
        delimiter = _delimiter(header.replace('"', ""))
    names = _split(header, delimiter)
    if not names[-1]:  # sacct --parsable ends each line with the delimiter
        names.pop()
    return Layout(names, 1, lambda text: _cells(text, delimiter, len(names)))


def _refuse_without_header(source: Source) -> None:
    if ROW.fullmatch(source.header.strip()):
        expected = "expected the names of the columns, got a row of values"
        how = "print it without --noheader, or name the columns with --columns"
        raise InstanceError("row 1", f"{expected} ({source.header.strip():.40}); {how}")


def _delimiter(header: str) -> str:
    """What stands between the names of the columns."""
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
    if delimiter == ",":
        return csv_cells(text)
    return [cell.strip() for cell in text.split(delimiter)]


def _cells(text: str, delimiter: str, count: int) -> list[str]:
    cells = _split(text, delimiter)
    if len(cells) == count + 1 and not cells[-1]:
        cells.pop()
    if len(cells) > count:
        raise MalformedError(f"more cells than columns: is {delimiter!r} in a cell? {PARSABLE}")
    return cells


def _fixed(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    return [text[begin:end].strip() for begin, end in spans]


def one_of(columns: Sequence[str], header: Sequence[str], file: str, also: str = "") -> str:
    """The first of `columns` that is in `header`; an error names all, and what else will do."""
    for name in columns:
        if name in header:
            return name
    others = " or ".join(filter(None, (*columns[1:], also)))
    expected = f"expected this column{' or ' if others else ''}{others} in {file}"
    found = ", ".join(header)[:200] or "none"
    raise InstanceError(f"{COLUMN}{columns[0]}", f"{expected}, which has: {found}")


# --- JSON -----------------------------------------------------------------------------------------


def json_rows(source: Source) -> list[tuple[int, Mapping[str, str]]]:
    """The jobs that ``sacct --json`` prints, as rows with sacct's columns, numbered from 1.

    Raises
    ------
    InstanceError
        If it is no such document.

    Examples
    --------
    >>> from oasis.traces.source import Source
    >>> job = '{"job_id": 7, "time": {"submission": 1709280000, "elapsed": 60}, "tres": {}}'
    >>> rows = json_rows(Source("jobs.json", ('{"jobs": [' + job + "]}",)))
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
    rows: list[tuple[int, Mapping[str, str]]] = []
    for number, job in enumerate(jobs, start=1):
        if not isinstance(job, dict) or "job_id" not in job:
            raise InstanceError(f"jobs[{number - 1}]", "expected a job with a job_id")
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
        "Partition": str(job.get("partition") or ""),
        "QOS": str(job.get("qos") or ""),
        "AllocTRES": _json_tres(tres.get("allocated")),
        "ReqTRES": _json_tres(tres.get("requested")),
        "AllocNodes": _number(job.get("allocation_nodes")),
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
