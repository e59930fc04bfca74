"""JSON documents as traces: a list of jobs, numbered from 1."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from oasis.model.errors import InstanceError
from oasis.traces.table import MalformedError, TraceSource, TraceTable


def parse_document(source: TraceSource) -> Any:
    """The document of a trace.

    Raises
    ------
    InstanceError
        If it is no JSON, with the line and the column of the fault.
    """
    try:
        return json.loads(source.text)
    except ValueError as error:
        raise InstanceError("", f"expected JSON: {error}") from None


def numbered(
    jobs: Any, where: str, key: str, table: TraceTable[Any]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The entries of a list of jobs with their numbers; the name under `key` becomes a text.

    An entry that is no object is counted in `table` as one that cannot be used.

    Raises
    ------
    InstanceError
        If it is no list, or an empty one.

    Examples
    --------
    >>> table = TraceTable(unit="entry")
    >>> list(numbered([{"id": 7}, {}, None], "jobs", "id", table)), table.malformed
    ([(1, {'id': '7'}), (2, {'id': ''})], {'not an object': {'count': 1, 'first_entry': 3}})
    """
    if not isinstance(jobs, list):
        raise InstanceError(where, f"expected a list of jobs, got {jobs!r:.60}")
    if not jobs:
        raise InstanceError(where, "expected at least one job, got an empty list")
    for number, job in enumerate(jobs, start=1):
        if not isinstance(job, dict):
            table.reject(MalformedError("not an object", expected="a job as a JSON object"), number)
            continue
        name = job.get(key)
        yield number, {**job, key: str(name) if isinstance(name, (str, int)) else ""}


def cell(job: Mapping[str, Any], key: str) -> str:
    """An entry of a job as a cell of a table; empty if it is not there or null.

    Raises
    ------
    MalformedError
        If it is a list, an object or a truth value.
    """
    value = job.get(key)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise MalformedError(f"bad {key}", expected="a text or a number")
    return str(value)
