"""Reading the CSV file of a trace: a row is used, or it is counted with the fault it has."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Generic, TypeVar

from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.traces.source import Source

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
    source: Source,
    columns: Sequence[str],
    parse: Callable[[int, Mapping[str, str]], Row],
    key: str | None = None,
    delimiter: str = ",",
) -> Table[Row]:
    """Parse a table whose header names at least `columns`, in any order.

    Parameters
    ----------
    source : Source
        The lines, as `read_source` gives them.
    columns : sequence of str
        Columns that must be there; the others are there for `parse` too.
    parse : callable
        Takes the line number and the cells by column; raises `MalformedError` for a bad row.
    key : str, optional
        Column that must be filled, and differently in every row.
    delimiter : str
        What stands between cells; quotes have a meaning beside commas alone.

    Raises
    ------
    InstanceError
        Naming the column that the header lacks or repeats, or if there are rows and not one of
        them is good.
    """
    table: Table[Row] = Table()
    seen = {""}
    header = _cells(source.header, delimiter)
    _check_header(header, columns, source.name)
    # Line by line, so that a stray quote or byte spoils only its own row.
    for line, text in enumerate(source.lines[1:], start=2):
        try:
            row = _by_column(_cells(text, delimiter), header)
            if key is not None and row[key] in seen:
                table.reject(f"repeated {key}" if row[key] else f"no {key}", line)
                continue
            table.rows.append(parse(line, row))
            seen.add(row.get(key or "", ""))
        except MalformedError as fault:
            table.reject(str(fault), line)
    refuse_all_malformed(table, source.name)
    return table


def refuse_all_malformed(table: Table[Row], name: str) -> None:
    """Raise `InstanceError` if there are rows and not one of them is good; `name` is the file's."""
    if table.malformed and not table.rows:
        count = sum(found["count"] for found in table.malformed.values())
        kind, first = min(table.malformed.items(), key=lambda entry: entry[1]["first_row"])
        what = f"none of the {count} rows of {name} can be used"
        raise InstanceError(f"row {first['first_row']}", f"{kind}; {what}")


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


def read_header(source: Source) -> list[str]:
    """The cells of the first line of a CSV file."""
    return _cells(source.header, ",")


def _cells(text: str, delimiter: str) -> list[str]:
    if delimiter != ",":
        return [cell.strip() for cell in text.split(delimiter)]
    try:
        return [cell.strip() for cell in next(csv.reader([text]), [])]
    except csv.Error:
        return [text]


def _by_column(cells: list[str], header: list[str]) -> dict[str, str]:
    if not any(cells):
        raise MalformedError("blank row")
    if any("\0" in cell for cell in cells):
        raise MalformedError("NUL byte")
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
