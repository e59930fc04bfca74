"""A trace's file as a frame of texts: a row is used, or it is counted with the reason why not."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

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
from oasis.model.rounding import FloatArray

LINES_LOOKED_AT = 200  # to tell what a file is
PARQUET_ROWS = 100_000  # that are read at once
LONGEST_RECORD = 1000  # lines between two quotes
ROW_END = "\x1e"  # a sign that no cell has: ASCII's record separator
Frame = Any  # of pandas, which is imported where a trace is read
Objects = np.ndarray[Any, Any]
Mask = np.ndarray[Any, Any]


class _Pandas:
    def __getattr__(self, name: str) -> Any:
        require("reading a trace", "pandas")
        return getattr(import_module("pandas"), name)


pd: Any = _Pandas()  # `import oasis` needs NumPy alone


@dataclass(frozen=True, slots=True)
class TraceSource:
    """The lines of a trace without their ends, the name of its file, and the path as it was given.

    Blank lines at the end are left out. The name of ``-`` is ``standard input``.
    """

    name: str
    lines: tuple[str, ...]
    path: str = field(default="FILE", compare=False, repr=False)

    @property
    def first(self) -> int:
        """Number of leading lines that are blank or, before a table, comments."""
        lines = enumerate(self.lines)
        return next((k for k, line in lines if line.strip() and not _is_comment(line)), 0)

    @property
    def header(self) -> str:
        """The first of the other lines, empty if there is none."""
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


def _is_comment(line: str) -> bool:
    """Whether a line before the header is a comment, or tells Excel the sign between columns."""
    return line.startswith("#") or re.fullmatch(r"(?i)sep=.\s*", line) is not None


def read_source(path: str | os.PathLike[str]) -> TraceSource:
    r"""Read a trace, compressed or not; ``-`` is standard input.

    A byte that is not UTF-8 becomes ``\xNN``, so that names which differ still do.
    """
    return source_of(path, read_trace(path))


def read_trace(path: str | os.PathLike[str]) -> bytes:
    """The content of a trace; a Parquet file as a table with commas."""
    if re.match(r"(?i)[a-z][a-z0-9+.-]+:/", str(path)):
        raise InstanceError("", "expected a file, got a URL: download it first, or pipe it in as -")
    content = read_content(path, also=(PARQUET,))
    return csv_of_parquet(content) if binary_kind(content) == PARQUET else content


def csv_of_parquet(content: bytes) -> bytes:
    """The rows of a Parquet file as a table with commas between."""
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
    """The lines of `content`, which was read from `path`."""
    name = "standard input" if str(path) == STANDARD_INPUT else Path(path).name
    text = content.decode("utf-8-sig", errors="backslashreplace")
    # `splitlines` would also break lines at form feeds and other signs that names may hold.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return TraceSource(name, tuple(lines), str(path))


# --- faults ---------------------------------------------------------------------------------------

REPEATED_ROW, STEP = "repeated row", "step of a job"
EARLIER_RUN = "run of a job that has not ended"
NO_JOBS = ("blank row", "repeated header", REPEATED_ROW, STEP, EARLIER_RUN)  # are no jobs
NOT_ENDED, NEVER_RAN, NEVER_SCHEDULED = "has not ended", "never ran", "never scheduled"
SOUND = (*NO_JOBS, NOT_ENDED, NEVER_RAN, NEVER_SCHEDULED)  # rows without a fault
# `float` alone would read 1_000, nan and digits of other scripts too.
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST = 2.0**53  # of a number: every integer up to here is a float
COLUMN = "column "  # before the name of a column in errors: options may have the same names
ROW, ENTRY = "row", "entry"  # of a table, of a JSON document
MOST_KINDS = 3  # of faults, in an error message


class MalformedError(Exception):
    """A row that cannot be used: a kind of fault, what was found there, and what was expected.

    Rows with one kind are counted together; the example of the first stands for all of them.
    """

    def __init__(self, kind: str, example: str = "", expected: str = "") -> None:
        super().__init__(f"{kind}: {example}" if example else kind)
        self.kind, self.example, self.expected = kind, example, expected


class Faults:
    """The rows of a file that cannot be used, by kind of fault."""

    def __init__(self, unit: str = ROW) -> None:
        self.unit = unit
        self._found: dict[str, tuple[int, int, MalformedError]] = {}

    def add(self, fault: str | MalformedError, line: int) -> None:
        """Count the row at `line` as one with this fault."""
        if isinstance(fault, str):
            fault = MalformedError(fault)
        count, first, shown = self._found.get(fault.kind, (0, line, fault))
        self._found[fault.kind] = (count + 1, *((line, fault) if line < first else (first, shown)))

    def drop(self, kind: str) -> None:
        """Forget the rows of a kind of fault."""
        self._found.pop(kind, None)

    @property
    def malformed(self) -> dict[str, dict[str, int]]:
        """Kind of fault -> how many rows, and the first line or entry, which is 1."""
        ordered = sorted(self._found.values(), key=lambda found: found[1])
        return {str(f): {"count": n, f"first_{self.unit}": line} for n, line, f in ordered}

    def expected(self, kinds: Iterable[str]) -> str:
        """Expected values in place of these kinds of faults, keys of `malformed`."""
        said = {str(fault): fault.expected for _, _, fault in self._found.values()}
        known = [f"{kind}: {said[kind]}" for kind in kinds if said[kind]]
        return f"; expected instead of {', of '.join(known)}" if known else ""

    def check_usable(self, good: int, name: str, *, allow_malformed: bool = False) -> None:
        """Refuse a file with no usable row, or with less than half of its rows usable.

        Rows without a fault that are no job, such as those of jobs that have not ended, do not
        count. With `allow_malformed`, one of the `good` rows is enough.
        """
        malformed = self.malformed
        faults = {kind: found for kind, found in malformed.items() if kind not in SOUND}
        count = sum(found["count"] for found in faults.values())
        # More bad rows than good ones are a sign of another format or of a wrong option.
        if (good and (allow_malformed or count <= good)) or not malformed:
            return
        named = sorted((faults or malformed).items(), key=lambda entry: -entry[1]["count"])
        first = min(found[f"first_{self.unit}"] for _, found in named)
        kinds = "; ".join(
            kind if len(named) == 1 else f"{kind} ({_rows(found['count'], self.unit)})"
            for kind, found in named[:MOST_KINDS]
        )
        others = len(named) - MOST_KINDS
        more = f"; {others} other kind{'' if others == 1 else 's'}" if others > 0 else ""
        many = _many(self.unit)
        if good:
            what = f"{count} of the {count + good} {many} of {name} cannot be used"
            what += f"; --allow-malformed goes on with the other {good}"
        else:
            rejected = sum(found["count"] for found in malformed.values())
            what = f"none of the {rejected} {many} of {name} can be used"
        expected = self.expected(kind for kind, _ in named[:MOST_KINDS])
        raise InstanceError(f"{self.unit} {first}", f"{kinds}{more}; {what}{expected}")


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
    """Notes on how the trace of `instance` was read, which affect what the numbers mean."""
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


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How a line is split into cells: the columns, the lines before the first row, and a rule.

    Where cells may have quotes, a record goes on over lines until its quotes are closed.
    """

    header: Sequence[str]
    first: int
    split: Callable[[str], list[str]]
    delimiter: str = ""  # where cells may have quotes


def csv_layout(source: TraceSource, delimiter: str = ",") -> RowLayout:
    """The layout of a table with this sign between columns, below a header."""

    def split(text: str) -> list[str]:
        if '"' in text:
            return csv_cells(text, delimiter)
        return [cell.strip() for cell in text.split(delimiter)]

    return RowLayout(split(source.header), source.first + 1, split, delimiter)


def csv_cells(text: str, delimiter: str = ",", *, strict: bool = False) -> list[str]:
    """The cells between delimiters of one character; quotes have a meaning."""
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
        return [cell.strip() for cell in next(rows, [])]
    except csv.Error:
        # One cell, which the number of columns then refuses in its own row.
        return [text]


def cells_of(
    source: TraceSource, layout: RowLayout, wanted: Iterable[str], faults: Faults
) -> Frame:
    """The `wanted` columns as texts, a row for each line that is split well; the others' faults."""
    header = list(layout.header)
    names = list(dict.fromkeys(wanted))
    check_header(header, names, source.name)
    places = [header.index(name) for name in names]
    rows, lines = [], []
    end, total = layout.first, len(source.lines)
    while end < total:
        line, text = end + 1, source.lines[end]
        end += 1
        try:
            cells = layout.split(text)
            if layout.delimiter and text.count('"') % 2:
                cells, end = _record(source, layout, end) or (cells, end)
            _check_cells(cells, header, text)
        except MalformedError as fault:
            faults.add(fault, line)
            continue
        rows.append([cells[place] for place in places])
        lines.append(line)
    return pd.DataFrame(rows, index=lines, columns=names, dtype=object)


def _record(source: TraceSource, layout: RowLayout, end: int) -> tuple[list[str], int] | None:
    """The cells of a record that goes on over lines, and the last one; None: a stray quote."""
    text = source.lines[end - 1]
    for last in range(end, min(len(source.lines), end + LONGEST_RECORD)):
        text += f"\n{source.lines[last]}"
        if source.lines[last].count('"') % 2:
            cells = csv_cells(text, layout.delimiter, strict=True)
            return (cells, last + 1) if len(cells) == len(layout.header) else None
    return None


def _check_cells(cells: list[str], header: list[str], text: str) -> None:
    if not any(cells):
        raise MalformedError("blank row")
    if "\0" in text:
        raise MalformedError("NUL byte")
    # Philly's file has its header a second time, in the middle.
    if cells == header:
        raise MalformedError("repeated header")
    if len(cells) != len(header):
        raise MalformedError("wrong number of columns")


def check_header(header: Sequence[str], columns: Iterable[str], file: str) -> None:
    """Refuse a header that lacks one of these columns, or has it twice."""
    for name in columns:
        if header.count(name) != 1:
            found = ",".join(header)[:200]
            expected = f"expected this column once in the header of {file}: {found}"
            for delimiter in ";\t|" if len(header) == 1 else "":
                if name in csv_cells(found, delimiter):
                    expected += f"; expected commas between columns, got {delimiter!r}"
            raise InstanceError(f"{COLUMN}{name}", expected)


def numbers(texts: Sequence[str]) -> FloatArray:
    """The texts that are numbers; NaN for the others."""
    is_number = NUMBER.fullmatch
    return np.array([float(text) if is_number(text) else nan for text in texts], dtype=float)


class Rows:
    """Rows of a file as columns of texts, and the first fault of each."""

    def __init__(self, cells: Frame, faults: Faults) -> None:
        self.cells, self.faults = cells, faults
        self.lines = cells.index.to_numpy()
        self._fault = np.full(len(cells), None, dtype=object)

    def texts(self, column: str) -> list[str]:
        """The cells of a column."""
        found: list[str] = self.cells[column].tolist()
        return found

    @property
    def is_good(self) -> Mask:
        """Whether no fault was found in each row yet."""
        return np.array([fault is None for fault in self._fault], dtype=bool)

    def reject(self, bad: Mask, fault: str | MalformedError) -> None:
        """Give the `bad` rows this fault, but for those that have one."""
        found = MalformedError(fault) if isinstance(fault, str) else fault
        self._fault[np.asarray(bad, dtype=bool) & self.is_good] = found

    def some(
        self,
        read: Callable[..., tuple[FloatArray, Objects]],
        texts: Sequence[str],
        where: Mask,
        *more: str,
    ) -> FloatArray:
        """Values of a column of times or durations in some of the good rows, NaN in the others.

        `read` takes the texts and `more`; its faults become those of the rows.
        """
        place = np.flatnonzero(where & self.is_good)
        values = np.full(len(texts), nan)
        values[place], self._fault[place] = read([texts[k] for k in place.tolist()], *more)
        return values

    def each(self, texts: Sequence[str], read: Callable[[str], Any]) -> Objects:
        """What `read` makes of each text, which is read once; None where it is malformed."""
        known: dict[str, tuple[Any, MalformedError | None]] = {}
        good = self.is_good
        for k, text in enumerate(texts):
            if text not in known:
                try:
                    known[text] = (read(text), None)
                except MalformedError as fault:
                    known[text] = (None, fault)
            if good[k]:
                self._fault[k] = known[text][1]
        values = np.empty(len(texts), dtype=object)
        values[:] = [known[text][0] for text in texts]
        return values

    def number(self, column: str, name: str, minimum: float = 0.0, *, whole: bool = False) -> Any:
        """Numbers >= `minimum` in a column, which errors call `name`; NaN where there is none."""
        values = numbers(self.texts(column))
        values[~((values >= minimum) & (values <= LARGEST))] = inf
        bad = np.isinf(values) | (whole & (np.floor(values) != values))
        what = f"a{' whole' if whole else ''} number >= {minimum:g}"
        self.reject(bad, MalformedError(f"bad {name}", expected=what))
        values[bad] = nan
        return values

    def settle(self, key: str | None = None) -> Mask:
        """Count the rows with a fault, and those whose `key` is empty or that of an earlier row.

        Only a row that can be used takes its name: a good row after a bad one of its name counts.
        """
        if key is not None:
            seen: set[Hashable] = {""}
            for k, (name, good) in enumerate(zip(self.texts(key), self.is_good, strict=True)):
                if name in seen:
                    self._fault[k] = MalformedError(f"repeated {key}" if name else f"no {key}")
                elif good:
                    seen.add(name)
        good = self.is_good
        for k in np.flatnonzero(~good).tolist():
            self.faults.add(self._fault[k], int(self.lines[k]))
        return good
