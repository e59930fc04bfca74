"""Reading the table of a trace: a row is used, or it is counted with the reason why not."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from oasis.model.errors import InstanceError
from oasis.model.extras import require
from oasis.model.file_kinds import (
    PARQUET,
    STANDARD_INPUT,
    FileKind,
    binary_kind,
    kind_of,
    read_content,
)
from oasis.model.instance import Instance

if TYPE_CHECKING:
    from oasis.traces.times import TraceTimes

LINES_LOOKED_AT = 200  # to tell what a file is
PARQUET_ROWS = 100_000  # that are read at once
ROW_END = "\x1e"  # a sign that no cell has: ASCII's record separator


@dataclass(frozen=True, slots=True)
class TraceSource:
    """A trace that has been read.

    Parameters
    ----------
    name : str
        Name of the file, without its directory; ``standard input`` for ``-``.
    lines : tuple of str
        Its lines without their ends; blank ones at its end are left out.
    path : str
        Path as the caller named it.
    """

    name: str
    lines: tuple[str, ...]
    path: str = field(default="FILE", compare=False, repr=False)

    @property
    def first(self) -> int:
        """Number of leading blank lines."""
        return next((k for k, line in enumerate(self.lines) if line.strip()), 0)

    @property
    def header(self) -> str:
        """The first line that is not blank, empty if there is none."""
        return self.lines[self.first] if self.lines else ""

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)

    def kind(self) -> FileKind | None:
        """Kind of the file, as `oasis.model.file_kinds.kind_of` recognises it."""
        # The first lines tell, but for JSON: a million rows are not put together to look at them.
        is_json = self.header.lstrip().startswith(("{", "["))
        begin = self.lines[: self.first + LINES_LOOKED_AT]
        return kind_of(self.text if is_json else "\n".join(begin))


def read_source(path: str | os.PathLike[str]) -> TraceSource:
    r"""Read a trace.

    Compressed with gzip, bzip2, xz or zstd or not, with Unix's or Windows's line ends, with or
    without a byte order mark. A byte that is not UTF-8 becomes ``\xNN``, so that names which differ
    still do; in a number it spoils its own row alone.

    Parameters
    ----------
    path : path
        The file; ``-`` stands for standard input.

    Raises
    ------
    InstanceError
        If a compressed file is damaged or incomplete, or the file is not text.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> from oasis.traces.table import read_source
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.csv.gz")
    ...     _ = path.write_bytes(gzip.compress(b"id,gpus\r\na,4\r\n\r\n"))
    ...     read_source(path)
    TraceSource(name='jobs.csv.gz', lines=('id,gpus', 'a,4'))
    """
    return source_of(path, read_trace(path))


def read_trace(path: str | os.PathLike[str]) -> bytes:
    """The content of a trace, which may also be a Parquet file; errors are those of `read_source`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.csv")
    ...     _ = path.write_text("id,gpus")
    ...     read_trace(path)
    b'id,gpus'
    """
    content = read_content(path, also=(PARQUET,))
    return csv_of_parquet(content) if binary_kind(content) == PARQUET else content


def csv_of_parquet(content: bytes) -> bytes:
    """The rows of a Parquet file as a table with commas between.

    Raises
    ------
    InstanceError
        If the file is damaged, or a package that reads it is not installed.
    """
    try:
        require("a Parquet file", "pyarrow", "pandas")
    except ModuleNotFoundError as error:
        raise InstanceError("", str(error)) from None
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    text = io.StringIO()
    try:
        file = parquet.ParquetFile(arrow.BufferReader(content))
        index = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        ranges = [  # an index of numbers in a row is not in the columns
            (entry["name"], range(entry["start"], entry["stop"], entry["step"]))
            for entry in index
            if isinstance(entry, dict) and entry["name"] not in (None, *file.schema_arrow.names)
        ]
        begin = 0
        # Part by part, so that the table is in memory but once.
        for number, part in enumerate(file.iter_batches(PARQUET_ROWS)):
            # What pandas had as its index, such as the names of the jobs, is a column like others.
            # Whole numbers stay such beside missing ones: a float has 16 digits.
            frame = part.to_pandas(ignore_metadata=True, integer_object_nulls=True)
            for name, values in ranges:
                frame.insert(0, name, values[begin : begin + len(frame)])
            begin += len(frame)
            rows = frame.to_csv(index=False, header=number == 0, lineterminator=ROW_END)
            # A cell may hold lines of text; a row has one.
            text.write(rows.replace("\r", " ").replace("\n", " ").replace(ROW_END, "\n"))
    except (arrow.ArrowException, OSError) as error:
        # What pyarrow says may have several lines.
        detail = " ".join(f"{error}".split())
        raise InstanceError("", f"expected a whole Parquet file ({detail})") from None
    return text.getvalue().encode()


def source_of(path: str | os.PathLike[str], content: bytes) -> TraceSource:
    r"""The lines of `content`, which was read from `path`.

    Examples
    --------
    >>> source_of("jobs.csv", b"id,gpus\r\na,4\n")
    TraceSource(name='jobs.csv', lines=('id,gpus', 'a,4'))
    """
    name = "standard input" if str(path) == STANDARD_INPUT else Path(path).name
    text = content.decode("utf-8-sig", errors="backslashreplace")
    # `splitlines` would also break lines at form feeds and other signs that names may hold.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return TraceSource(name, tuple(lines), str(path))


Row = TypeVar("Row")
Rows = Iterable[tuple[int, Mapping[str, str]]]
REPEATED_ROW, STEP = "repeated row", "step of a job"
EARLIER_RUN = "run of a job that has not ended"
NO_JOBS = ("blank row", "repeated header", REPEATED_ROW, STEP, EARLIER_RUN)  # are no jobs
NOT_ENDED, NEVER_RAN, NEVER_SCHEDULED = "has not ended", "never ran", "never scheduled"
SOUND = (*NO_JOBS, NOT_ENDED, NEVER_RAN, NEVER_SCHEDULED)  # rows without a fault
# `float` alone would read 1_000, nan and digits of other scripts too.
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST = 2.0**53  # of a number: every integer up to here is a float
COLUMN = "column "  # before the name of a column in errors: options may have the same names


class MalformedError(Exception):
    """Raised for a row that cannot be used.

    Parameters
    ----------
    kind : str
        The kind of fault; rows with one kind are counted together.
    example : str
        What was found in this row; that of the first row stands for all of the kind.
    expected : str
        What was expected, for a file that is refused.
    """

    def __init__(self, kind: str, example: str = "", expected: str = "") -> None:
        super().__init__(f"{kind}: {example}" if example else kind)
        self.kind, self.example, self.expected = kind, example, expected


ROW, ENTRY = "row", "entry"


@dataclass(slots=True)
class TraceTable(Generic[Row]):
    """The rows of a file and the faults found in it.

    Parameters
    ----------
    rows : list
        What the parser made of each good row, in the order of the file.
    malformed : dict
        Kind of fault -> ``{"count": n, "first_row": line}``; line 1 is the header. In a JSON
        document it is ``"first_entry"``, and the first entry is 1.
    notes : list of str
        Notes on how the rows were read, which affect what the numbers mean.
    clock : TraceTimes or None
        Reader of the times of the file.
    unit : {"row", "entry"}
        Word for one record of the file.
    """

    rows: list[Row] = field(default_factory=list)
    malformed: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    clock: TraceTimes | None = None
    unit: str = ROW
    _names: dict[str, str] = field(default_factory=dict, repr=False)  # kind -> with its example
    _expected: dict[str, str] = field(default_factory=dict, repr=False)

    def reject(self, fault: str | MalformedError, line: int) -> None:
        """Count the row at `line` as one with this kind of fault."""
        if isinstance(fault, str):
            fault = MalformedError(fault)
        name = self._names.setdefault(fault.kind, str(fault))
        self._expected.setdefault(name, fault.expected)
        first = {"count": 0, f"first_{self.unit}": line}
        self.malformed.setdefault(name, first)["count"] += 1

    def expected(self, kinds: Iterable[str]) -> str:
        """Expected values in place of these kinds of faults, keys of `malformed`."""
        known = [f"{kind}: {self._expected[kind]}" for kind in kinds if self._expected.get(kind)]
        return f"; expected instead of {', of '.join(known)}" if known else ""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Rule by which a line is split into cells.

    Parameters
    ----------
    header : sequence of str
        The names of the columns.
    first : int
        Lines before the first row of values.
    split : callable
        Makes cells of a line.
    """

    header: Sequence[str]
    first: int
    split: Callable[[str], list[str]]


def read_table(
    source: TraceSource,
    columns: Sequence[str],
    parse: Callable[[int, Mapping[str, str]], Row],
    key: str | None = None,
    *,
    layout: RowLayout | None = None,
    clock: TraceTimes | None = None,
    time: str = "",
    allow_malformed: bool = False,
) -> TraceTable[Row]:
    """Parse a table whose header names at least `columns`, in any order.

    Parameters
    ----------
    source : TraceSource
        The lines, as `read_source` gives them.
    columns : sequence of str
        Columns that must be there; the others are there for `parse` too.
    parse : callable
        Takes the line number and the cells by column; raises `MalformedError` for a bad row.
    key : str, optional
        Column that must be filled, and differently in every row.
    layout : RowLayout, optional
        How lines are split; by default at commas, with quotes, below a header.
    clock : TraceTimes, optional
        What `parse` reads times with; it is shown the column `time` before the first row is parsed.
    time : str
        A column of times.
    allow_malformed : bool
        Whether more than half of the rows may be malformed.

    Raises
    ------
    InstanceError
        Naming the column that the header lacks or repeats, or if more than half of the rows are
        malformed.
    """
    if layout is None:
        layout = RowLayout(csv_cells(source.header), source.first + 1, csv_cells)
    _check_header(layout.header, columns, source.name)
    table: TraceTable[Row] = TraceTable()
    if clock is not None:
        clock.look_at(row[time] for _, row in _split_rows(source, layout, None))
        table.clock = clock
    # Row by row: of a million rows, no more is kept than what `parse` makes of them.
    parse_rows(table, _split_rows(source, layout, table), parse, key)
    check_usable(table, source.name, allow_malformed=allow_malformed)
    return table


def _split_rows(source: TraceSource, layout: RowLayout, table: TraceTable[Any] | None) -> Rows:
    """The rows with their numbers; those that are none are counted in `table`, if it is given."""
    # Line by line, so that a stray quote or byte spoils only its own row.
    for line, text in enumerate(islice(source.lines, layout.first, None), start=layout.first + 1):
        try:
            yield line, _by_column(layout.split(text), layout.header)
        except MalformedError as fault:
            if table is not None:
                table.reject(fault, line)


def parse_rows(
    table: TraceTable[Row],
    rows: Rows,
    parse: Callable[[int, Mapping[str, str]], Row],
    key: str | None = None,
) -> None:
    """Add to `table` what `parse` makes of numbered `rows`; the rest is as in `read_table`."""
    seen = {""}
    for line, row in rows:
        try:
            if key is not None and row[key] in seen:
                table.reject(f"repeated {key}" if row[key] else f"no {key}", line)
                continue
            table.rows.append(parse(line, row))
            # Only a row that can be used takes its name: a
            # good row after a bad one of the same name counts.
            seen.add(row.get(key or "", ""))
        except MalformedError as fault:
            table.reject(fault, line)


MOST_KINDS = 3  # of faults, in an error message


def check_usable(table: TraceTable[Any], name: str, *, allow_malformed: bool = False) -> None:
    """Refuse a file with no usable row, or with less than half of its rows usable.

    Rows without a fault that are no job, such as those of jobs that have not ended, do not count.

    Parameters
    ----------
    table : TraceTable
        The table that was read.
    name : str
        The file's.
    allow_malformed : bool
        Whether one good row is enough.

    Raises
    ------
    InstanceError
        Naming the commonest faults, the first row with one and what would help.
    """
    faults = {kind: found for kind, found in table.malformed.items() if kind not in SOUND}
    count = sum(found["count"] for found in faults.values())
    good = len(table.rows)
    # More bad rows than good ones are a sign of another format or of a wrong option.
    if (good and (allow_malformed or count <= good)) or not table.malformed:
        return
    named = sorted((faults or table.malformed).items(), key=lambda entry: -entry[1]["count"])
    first = min(found[f"first_{table.unit}"] for _, found in named)
    kinds = "; ".join(
        kind if len(named) == 1 else f"{kind} ({_rows(found['count'], table.unit)})"
        for kind, found in named[:MOST_KINDS]
    )
    others = len(named) - MOST_KINDS
    more = f"; {others} other kind{'' if others == 1 else 's'}" if others > 0 else ""
    rejected = sum(found["count"] for found in table.malformed.values())
    if good:
        what = f"{count} of the {count + good} {_many(table.unit)} of {name} cannot be used"
        what += f"; --allow-malformed goes on with the other {good}"
    else:
        what = f"none of the {rejected} {_many(table.unit)} of {name} can be used"
    expected = table.expected(kind for kind, _ in named[:MOST_KINDS])
    raise InstanceError(f"{table.unit} {first}", f"{kinds}{more}; {what}{expected}")


def real(text: str, column: str, minimum: float = 0.0) -> float:
    """Finite number >= `minimum` in a cell of `column`."""
    value = float(text) if NUMBER.fullmatch(text) else inf
    if not minimum <= value <= LARGEST:
        raise MalformedError(f"bad {column}", expected=f"a number >= {minimum:g}")
    return value


def whole(text: str, column: str, minimum: int = 0) -> int:
    """Whole number >= `minimum` in a cell of `column`."""
    value = float(text) if NUMBER.fullmatch(text) else inf
    if not minimum <= value <= LARGEST or value != int(value):
        raise MalformedError(f"bad {column}", expected=f"a whole number >= {minimum}")
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


def notes_of(instance: Instance) -> list[str]:
    """Notes on how the trace of `instance` was read, which affect what the numbers mean.

    Examples
    --------
    >>> import oasis
    >>> from oasis.traces.table import notes_of
    >>> notes_of(oasis.generate("testbed", jobs=3, seed=1))
    []
    """
    report = instance.metadata.get("notes", {})
    return [note for notes in report.values() for note in notes]


def malformed_sentences(report: Mapping[str, Any]) -> list[str]:
    """One sentence for each entry of `report`: file -> kind of fault -> count and first row.

    Examples
    --------
    >>> from oasis.traces import malformed_sentences
    >>> malformed_sentences({"jobs": {"bad duration": {"count": 2, "first_row": 7}}})
    ['jobs: 2 malformed rows (bad duration), first at line 7']
    """
    return [
        _sentence(name, kind, found)
        for name, kinds in report.items()
        for kind, found in kinds.items()
    ]


def _sentence(name: str, kind: str, found: Mapping[str, int]) -> str:
    sound = "" if kind in SOUND else "malformed "
    if "first_entry" in found:
        rows, where = _rows(found["count"], f"{sound}{ENTRY}"), f"entry {found['first_entry']}"
    else:
        rows, where = _rows(found["count"], f"{sound}{ROW}"), f"line {found['first_row']}"
    return f"{name}: {rows} ({kind}), first at {where}"


def _rows(count: int, unit: str) -> str:
    return f"{count} {unit if count == 1 else _many(unit)}"


def _many(unit: str) -> str:
    return f"{unit.removesuffix('y')}ies" if unit.endswith("y") else f"{unit}s"


def read_header(source: TraceSource) -> list[str]:
    """The cells of the first line of a CSV file."""
    return csv_cells(source.header)


def csv_cells(text: str, delimiter: str = ",") -> list[str]:
    """The cells between delimiters of one character; quotes have a meaning."""
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:
        # One cell, which the number of columns then refuses in its own row.
        return [text]


def _by_column(cells: list[str], header: Sequence[str]) -> dict[str, str]:
    if not any(cells):
        raise MalformedError("blank row")
    if any("\0" in cell for cell in cells):
        raise MalformedError("NUL byte")
    # Philly's file has its header a second time, in the middle.
    if cells == list(header):
        raise MalformedError("repeated header")
    if len(cells) != len(header):
        raise MalformedError("wrong number of columns")
    return dict(zip(header, cells, strict=True))


def _check_header(header: Sequence[str], columns: Sequence[str], file: str) -> None:
    for name in columns:
        if header.count(name) != 1:
            found = ",".join(header)[:200]
            expected = f"expected this column once in the header of {file}: {found}"
            for delimiter in ";\t|" if len(header) == 1 else "":
                if name in csv_cells(found, delimiter):
                    expected += f"; expected commas between columns, got {delimiter!r}"
            raise InstanceError(f"{COLUMN}{name}", expected)
