"""JSON documents as traces: a list of jobs, numbered from 1."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from oasis.model.errors import InstanceError
from oasis.traces.table import Faults, Frame, MalformedError, TraceSource, pd


def parse_document(source: TraceSource) -> Any:
    """The document of a trace; the error has the line and the column of the fault."""
    try:
        return json.loads(source.text)
    except ValueError as error:
        raise InstanceError("", f"expected JSON: {error}") from None


def records_of(source: TraceSource) -> list[Any] | None:
    """The records of a JSON list, or of lines of JSON objects; None if the file is neither."""
    begin = source.header.lstrip()[:1]
    if begin == "[":
        document = parse_document(source)
        return document if isinstance(document, list) else None
    if begin != "{":
        return None
    found = []
    for number, line in enumerate(source.lines, start=1):
        try:
            if line.strip():
                found.append(json.loads(line))
        except ValueError as error:
            if not found:
                return None
            raise InstanceError(f"row {number}", f"expected a JSON object: {error}") from None
    return found


def numbered(
    jobs: Any, where: str, key: str, faults: Faults
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The entries of a list of jobs with their numbers; the name under `key` becomes a text.

    An entry that is no object is counted as one that cannot be used.
    """
    if not isinstance(jobs, list):
        raise InstanceError(where, f"expected a list of jobs, got {jobs!r:.60}")
    if not jobs:
        raise InstanceError(where, "expected at least one job, got an empty list")
    for number, job in enumerate(jobs, start=1):
        if not isinstance(job, dict):
            faults.add(MalformedError("not an object", expected="a job as a JSON object"), number)
            continue
        name = job.get(key)
        yield number, {**job, key: str(name) if isinstance(name, (str, int)) else ""}


def records_frame(records: list[Any], header: list[str], faults: Faults) -> Frame:
    """The records as texts, an entry for each; a value that is an object stays JSON."""
    entries = [(k, row) for k, row in numbered(records, "", header[0], faults)]
    texts = [
        {
            name: json.dumps(value) if isinstance(value := row.get(name), dict) else cell(row, name)
            for name in header
        }
        for _, row in entries
    ]
    return pd.DataFrame(texts, index=[k for k, _ in entries], columns=header, dtype=object)


def check_name(name: str, known: Collection[str], key: str) -> None:
    """Refuse an entry without a name, or with one that is taken."""
    if not name or name in known:
        raise MalformedError(f"repeated {key}" if name else f"no {key}")


def cell(job: Mapping[str, Any], key: str) -> str:
    """An entry of a job as a cell of a table; empty if it is not there or null."""
    value = job.get(key)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise MalformedError(f"bad {key}", expected="a text or a number")
    return str(value)
