"""Reading the CSV file of a trace: a row is used, or it is counted with the fault it has."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Generic, TypeVar

from oasis.model.errors import InstanceError
from oasis.model.instance import Instance

Row = TypeVar("Row")


class MalformedError(Exception):
    """Raised for a row that cannot be used; the message names the kind of fault."""


@dataclass(slots=True)
class Table(Generic[Row]):
    """The rows of a file and the faults found in it.

    Parameters
    ----------
    rows : list
        What the parser made of each good row, in the order of the file.
    malformed : dict
        Kind of fault -> ``{"count": n, "first_row": line}``; line 1 is the header.
    """

    rows: list[Row] = field(default_factory=list)
    malformed: dict[str, dict[str, int]] = field(default_factory=dict)

    def reject(self, kind: str, line: int) -> None:
        """Count the row at `line` as one with a fault of this `kind`."""
        self.malformed.setdefault(kind, {"count": 0, "first_row": line})["count"] += 1


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    parse: Callable[[int, Mapping[str, str]], Row],
    key: str | None = None,
) -> Table[Row]:
    """Parse a CSV file whose header names at least `columns`, in any order.

    Parameters
    ----------
    parse : callable
        Takes the line number and the cells by column; raises `MalformedError` for a bad row.
    key : str, optional
        Column that must be filled, and differently in every row.

    Raises
    ------
    InstanceError
        Naming the column that the header lacks or repeats.
    OSError
        If the file cannot be read.
    """
    table: Table[Row] = Table()
    seen = {""}
    # Line by line, so that a stray quote or byte spoils only its own row.
    with Path(path).open(encoding="utf-8-sig", errors="replace") as stream:
        header = _cells(stream.readline())
        _check_header(header, columns, Path(path).name)
        for line, text in enumerate(stream, start=2):
            try:
                row = _by_column(_cells(text), header)
                if key is not None and row[key] in seen:
                    table.reject(f"repeated {key}" if row[key] else f"no {key}", line)
                    continue
                table.rows.append(parse(line, row))
                seen.add(row.get(key or "", ""))
            except MalformedError as fault:
                table.reject(str(fault), line)
    return table


def real(text: str, column: str, minimum: float = 0.0) -> float:
    """Finite number >= `minimum` in a cell of `column`."""
    try:
        value = float(text)
    except ValueError:
        raise MalformedError(f"bad {column}") from None
    if not isfinite(value) or value < minimum:
        raise MalformedError(f"bad {column}")
    return value


def whole(text: str, column: str, minimum: int = 0) -> int:
    """Whole number >= `minimum` in a cell of `column`."""
    value = real(text, column, minimum)
    if value != int(value):
        raise MalformedError(f"bad {column}")
    return int(value)


def malformed_lines(instance: Instance) -> list[str]:
    """One sentence for each kind of malformed row that the import of `instance` met.

    Examples
    --------
    >>> import oasis
    >>> from oasis.traces import malformed_lines
    >>> malformed_lines(oasis.generate("testbed", jobs=3, seed=1))  # not from a trace
    []
    """
    return malformed_sentences(instance.metadata.get("malformed", {}))


def malformed_sentences(report: Mapping[str, Any]) -> list[str]:
    """One sentence for each entry of `report`: file -> kind of fault -> count and first row.

    Examples
    --------
    >>> from oasis.traces import malformed_sentences
    >>> malformed_sentences({"jobs": {"bad duration": {"count": 2, "first_row": 7}}})
    ['jobs: 2 malformed rows (bad duration), first at line 7']
    """
    return [
        f"{name}: {found['count']} malformed row{'s' if found['count'] > 1 else ''}"
        f" ({kind}), first at line {found['first_row']}"
        for name, kinds in report.items()
        for kind, found in kinds.items()
    ]


def read_header(path: str | os.PathLike[str]) -> list[str]:
    """The cells of the first line of a CSV file."""
    with Path(path).open(encoding="utf-8-sig", errors="replace") as stream:
        return _cells(stream.readline())


def _cells(text: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([text.rstrip("\r\n")]), [])]
    except csv.Error:
        return [text]


def _by_column(cells: list[str], header: list[str]) -> dict[str, str]:
    if not any(cells):
        raise MalformedError("blank row")
    if cells == header:
        raise MalformedError("repeated header")
    if len(cells) != len(header):
        raise MalformedError("wrong number of columns")
    return dict(zip(header, cells, strict=True))


def _check_header(header: list[str], columns: Sequence[str], file: str) -> None:
    for name in columns:
        if header.count(name) != 1:
            found = ",".join(header)[:200]
            raise InstanceError(name, f"expected this column once in the header of {file}: {found}")
