"""JSON documents as traces: a list of jobs, numbered from 1."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from oasis.model.errors import InstanceError
from oasis.traces.table import MalformedError, TraceSource


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


def numbered(jobs: Any, where: str, key: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The entries of a list of jobs with their numbers; the name under `key` becomes a text.

    Raises
    ------
    InstanceError
        If it is no list, or an entry is no object.

    Examples
    --------
    >>> list(numbered([{"id": 7}, {}], "jobs", "id"))
    [(1, {'id': '7'}), (2, {'id': ''})]
    """
    if not isinstance(jobs, list):
        raise InstanceError(where, f"expected a list of jobs, got {jobs!r:.60}")
    for number, job in enumerate(jobs, start=1):
        if not isinstance(job, dict):
            raise InstanceError(f"{where}[{number - 1}]", f"expected an object, got {job!r:.60}")
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
