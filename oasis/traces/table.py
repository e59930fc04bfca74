"""A trace's file as a frame of texts: a row is used, or it is counted with the reason why not."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import nan
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np

from oasis.extras import require
from oasis.model import file_kinds
from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.summary import how_many

LINES_LOOKED_AT = 200  # to tell what a file is
LONGEST_RECORD = 1000  # lines between two quotes
COMMENT = re.compile(r"#|(?i:sep=.\s*\Z)")  # before a header; Excel is told the sign of columns
ROW_END = "\x1e"  # a sign that no cell has: ASCII's record separator
Frame = Any  # of pandas, which is imported where a trace is read
Mask = np.ndarray[Any, Any]


class _Pandas:
    def __getattr__(self, name: str) -> Any:
        require("reading a trace", "pandas")
        return getattr(import_module("pandas"), name)


pd: Any = _Pandas()  # `import oasis` needs NumPy alone


@dataclass(frozen=True, slots=True)
class TraceSource:
    """The text of a trace file: name, path, and lines without line ends or trailing blank lines."""

    name: str
    lines: tuple[str, ...]
    path: str = field(default="FILE", compare=False, repr=False)

    @property
    def first(self) -> int:
        """Number of blank or comment lines before the first line of the table."""
        lines = enumerate(self.lines)
        return next((k for k, line in lines if line.strip() and not COMMENT.match(line)), 0)

    @property
    def header(self) -> str:
        """The first line that is neither blank nor a comment; empty if there is none."""
        return self.lines[self.first] if self.lines else ""

    def kind(self) -> file_kinds.FileKind | None:
        """Kind of the file, as `oasis.model.file_kinds.kind_of` recognises it."""
        # The first lines tell, but for JSON: a million rows are not put together to look at them.
        is_json = self.header.lstrip().startswith(("{", "["))
        count = None if is_json else self.first + LINES_LOOKED_AT
        return file_kinds.kind_of("\n".join(self.lines[:count]))

    def document(self) -> Any:
        """Parse the file as JSON; the error names the line and the column of the fault."""
        try:
            return json.loads("\n".join(self.lines))
        except ValueError as error:
            raise InstanceError("", f"expected JSON: {error}") from None

    def records(self) -> list[Any] | None:
        """Records of a JSON list, or of lines of JSON objects; None if there are none."""
        begin = self.header.lstrip()[:1]
        entries: list[Any] = self.document() if begin == "[" else []
        for number, line in enumerate(self.lines if begin == "{" else (), start=1):
            try:
                entries += [json.loads(line)] if line.strip() else []
            except ValueError as error:
                if not entries:
                    return None
                raise InstanceError(f"row {number}", f"expected a JSON object: {error}") from None
        return entries or None


def read_source(path: str | os.PathLike[str]) -> TraceSource:
    """Read a trace, compressed or not; ``-`` is standard input."""
    if re.match(r"(?i)[a-z][a-z0-9+.-]+:/", str(path)):
        raise InstanceError("", "expected a file, got a URL: download it first, or pipe it in as -")
    content = file_kinds.read_content(path, parquet=True)
    is_parquet = file_kinds.is_parquet(content)
    return source_of(path, _table_of_parquet(content) if is_parquet else content)


def _table_of_parquet(content: bytes) -> bytes:
    """Convert a Parquet file to CSV, in UTF-8; a line break in a cell becomes a blank."""
    try:
        require("a Parquet file", "pyarrow", "pandas")
        # Whole numbers stay such beside missing ones: a float has 16 digits.
        frame = pd.read_parquet(io.BytesIO(content), dtype_backend="numpy_nullable")
    except ModuleNotFoundError as error:
        raise InstanceError("", str(error)) from None
    except (ValueError, OSError) as error:  # what pyarrow says may have several lines
        detail = " ".join(f"{error}".split())
        raise InstanceError("", f"expected a whole Parquet file ({detail})") from None
    is_named = any(frame.index.names)  # such as the names of the jobs: columns like others
    rows: str = frame.to_csv(index=is_named, lineterminator=ROW_END)
    # A cell may hold lines of text; a row has one.
    return rows.replace("\r", " ").replace("\n", " ").replace(ROW_END, "\n").encode()


def source_of(path: str | os.PathLike[str], content: bytes) -> TraceSource:
    """Split `content`, which was read from the file `path`, into lines."""
    name = "standard input" if str(path) == file_kinds.STANDARD_INPUT else Path(path).name
    # A byte that is not UTF-8 becomes \\xNN, so that names which differ still do.
    text = content.decode("utf-8-sig", errors="backslashreplace")
    # `splitlines` would also break lines at form feeds and other signs that names may hold.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return TraceSource(name, tuple(lines), str(path))


# --- faults ---------------------------------------------------------------------------------------

REPEATED_ROW, STEP, PART = "repeated row", "step of a job", "part of a job"
EARLIER_RUN = "run of a job that has not ended"
NO_JOBS = ("blank row", "repeated header", REPEATED_ROW, STEP, PART, EARLIER_RUN)  # are no jobs
NOT_ENDED, NEVER_RAN, NEVER_SCHEDULED = "has not ended", "never ran", "never scheduled"
SOUND = (*NO_JOBS, NOT_ENDED, NEVER_RAN, NEVER_SCHEDULED)  # rows without a fault
WRONG_NUMBER = "wrong number of columns"
# `float` alone would read 1_000, nan and digits of other scripts too.
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST = 2.0**53  # of a number: every integer up to here is a float
COLUMN = "column "  # before the name of a column in errors: options may have the same names
ROW, ENTRY = "row", "entry"  # of a table, of a JSON document
MOST_KINDS = 3  # of faults, in an error message
MISSING = re.compile(r"(?i)(?:none|null|\(null\)|nan|nat|n/?a|unknown|invalid|-)?")


class MalformedError(Exception):
    """A row that cannot be used: a kind of fault, an example of it, and what was expected."""

    def __init__(self, kind: str, example: str = "", expected: str = "") -> None:
        super().__init__(f"{kind}: {example}" if example else kind)
        self.kind, self.example, self.expected = kind, example, expected


def notes_of(instance: Instance) -> list[str]:
    """Notes on how the trace of `instance` was read, which affect what the numbers mean."""
    report = instance.metadata.get("notes", {})
    return [note for notes in report.values() for note in notes]


def malformed_sentences(report: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each kind of fault in `report`: file -> kind -> count, first row.

    Examples
    --------
    >>> from oasis.traces import malformed_sentences
    >>> malformed_sentences({"jobs": {"bad duration": {"count": 2, "first_row": 7}}})
    ['jobs: 2 malformed rows (bad duration), first at line 7']
    """
    sentences = []
    for name, kinds in report.items():
        for kind, row in kinds.items():
            unit, where = (ENTRY, ENTRY) if "first_entry" in row else (ROW, "line")
            rows = how_many(row["count"], unit if kind in SOUND else f"malformed {unit}")
            sentences.append(f"{name}: {rows} ({kind}), first at {where} {row[f'first_{unit}']}")
    return sentences


# --- rows -----------------------------------------------------------------------------------------


def numbers(texts: Iterable[str | None]) -> FloatArray:
    """Convert texts to floats; NaN for texts that are no numbers."""
    is_number = NUMBER.fullmatch
    return np.array([float(t) if t and is_number(t) else nan for t in texts], dtype=float)


class Rows:
    """Rows of a file as columns of texts, with faults; rows with the same line are of one job."""

    def __init__(
        self,
        cells: Frame,
        name: str,
        unit: str = ROW,
        faults: Iterable[tuple[int, MalformedError]] = (),
    ) -> None:
        self.cells, self.name, self.unit = cells, name, unit
        self.lines = cells.index.to_numpy()
        self.notes: list[str] = []
        self.fault = np.full(len(cells), None, dtype=object)  # the first one of each row
        self._counted = list(faults)  # what was counted, with its line
        if not len(cells):
            self.check_usable(0)

    def texts(self, column: str | None) -> Frame:
        """The cells of a column; empty texts if there is no such column."""
        if column in self.cells:
            return self.cells[column]
        return pd.Series("", index=self.cells.index, dtype=object)

    def missing(self, column: str | None, *, zero: bool = False) -> Mask:
        """Mask of the cells of a column without a value; with `zero`, 0 counts as no value."""
        texts = self.texts(column)
        nothing = [
            t for t in texts.unique() if MISSING.fullmatch(t) or (zero and t in ("0", "0.0"))
        ]
        return np.asarray(texts.isin(nothing), dtype=bool)

    @property
    def is_good(self) -> Mask:
        """Mask of the rows in which no fault was found yet."""
        return np.asarray(pd.isna(self.fault), dtype=bool)

    def reject(self, bad: Any, fault: str | MalformedError) -> None:
        """Record this fault for the rows in the mask `bad` that have no fault yet."""
        places = np.asarray(bad, dtype=bool)
        if places.any():
            error = MalformedError(fault) if isinstance(fault, str) else fault
            self.fault[places & self.is_good] = error

    def convert(
        self, keys: Iterable[Any], read: Callable[[Any], Any], where: Any = True, empty: Any = None
    ) -> list[Any]:
        """Return `read(key)` by key; if that fails `empty`, and a fault on good rows in `where`."""
        known: dict[Any, Any] = {None: empty}
        faults: dict[Any, MalformedError] = {}
        keys = list(keys)
        for key in dict.fromkeys(keys):
            try:
                known[key] = read(key) if key is not None else empty
            except MalformedError as fault:
                known[key], faults[key] = empty, fault
        for k in np.flatnonzero(where & self.is_good).tolist() if faults else ():
            self.fault[k] = faults.get(keys[k])
        return [known[key] for key in keys]

    def number(self, column: str, minimum: float = 0.0, *, whole: bool = False) -> Any:
        """Numbers >= `minimum` in a column; other cells are NaN and their rows are rejected."""
        values = numbers(self.texts(column))
        bad = ~((values >= minimum) & (values <= LARGEST))
        bad |= whole & (np.where(bad, 0.0, values) % 1 != 0)
        what = f"a{' whole' if whole else ''} number >= {minimum:g}"
        self.reject(bad, MalformedError(f"bad {column}", expected=what))
        return np.where(bad, nan, values)

    def unique(self, key: str) -> None:
        """Reject rows whose `key` is empty, or repeats the key of an earlier good row."""
        names = self.cells[key]
        self.reject(names == "", f"no {key}")
        earliest = names[self.is_good].drop_duplicates()
        first = names.map(pd.Series(earliest.index, index=earliest))
        self.reject(first.to_numpy(float) < self.lines, f"repeated {key}")

    def settle(self) -> Mask:
        """Count the faulty rows by kind of fault; return a mask of the rows without a fault."""
        faults = pd.Series(self.fault, index=self.lines).dropna()
        first = faults[~faults.index.duplicated()]
        self._counted += zip(first.index.tolist(), first, strict=True)
        return np.asarray(~np.isin(self.lines, first.index), dtype=bool)

    def count(self, lines: Iterable[int], fault: str) -> None:
        """Count rows at these lines as having this fault."""
        self._counted += [(int(line), MalformedError(fault)) for line in lines]

    def note(self, text: str, count: Any) -> None:
        """Add the note "text: count", unless `count` is 0 or empty."""
        self.notes += [f"{text}: {count}"] if count else []

    def _kinds(self) -> list[tuple[int, int, MalformedError]]:
        """Return (rows, first line, first fault) of each kind of fault, by first line."""
        kinds: dict[str, tuple[int, int, MalformedError]] = {}
        for line, fault in sorted(self._counted, key=lambda entry: entry[0]):
            count, begin, first = kinds.get(fault.kind, (0, line, fault))
            kinds[fault.kind] = (count + 1, begin, first)
        return list(kinds.values())

    @property
    def malformed(self) -> dict[str, dict[str, int]]:
        """Kind of fault -> number of rows, and the first one (its line, or entry from 1)."""
        return {
            str(fault): {"count": count, f"first_{self.unit}": line}
            for count, line, fault in self._kinds()
        }

    def check_usable(self, good: int, *, allow_malformed: bool = False) -> None:
        """Refuse a file with no usable row, or with more faults than `good` rows."""
        every = sorted(self._kinds(), key=lambda kind: -kind[0])
        faults = [kind for kind in every if kind[2].kind not in SOUND]
        count = sum(kind[0] for kind in faults)
        # More bad rows than good ones are a sign of another format or of a wrong option.
        if (good and (allow_malformed or count <= good)) or not every:
            return
        named = faults or every
        shown = named[:MOST_KINDS]
        kinds = [
            f"{fault}{f' ({how_many(n, self.unit)})' if len(named) > 1 else ''}"
            for n, _, fault in shown
        ]
        if len(named) > MOST_KINDS:
            kinds.append(how_many(len(named) - MOST_KINDS, "other kind"))
        total = sum(kind[0] for kind in every)
        many = f"{how_many(0, self.unit).removeprefix('0 ')} of {self.name}"
        what = f"none of the {total} {many} can be used"
        if good:
            what = f"{count} of the {count + good} {many} cannot be used"
            what += f"; --allow-malformed goes on with the other {good}"
        known = [f"{f}: {f.expected}" for _, _, f in shown if f.expected]
        expected = f"; expected instead of {', of '.join(known)}" if known else ""
        first = min(line for _, line, _ in named)
        raise InstanceError(f"{self.unit} {first}", f"{'; '.join(kinds)}; {what}{expected}")


def rows_of(
    source: TraceSource,
    header: Sequence[str],
    first: int,
    wanted: Iterable[str],
    delimiter: str | None = None,
    *,
    quotes: bool = False,
    split: Callable[[str], list[str]] | None = None,
    faults: tuple[str, str] = (WRONG_NUMBER, WRONG_NUMBER),  # too few cells, too many
    comment: str = "\n",
) -> Rows:
    """Split lines from `first` on, at `delimiter` or blanks; keep the columns in `wanted`."""
    header, names = list(header), list(dict.fromkeys(wanted))
    for name in names:
        if (count := header.count(name)) != 1:
            shown = ",".join(header)[:200]
            expected = f"expected this column once in the header of {source.name}: {shown}"
            raise InstanceError(f"{COLUMN}{name}", f"{expected}; got {count or 'none'}")
    places = [header.index(name) for name in names]
    rows, lines, rejected = [], [], []
    size, end, total = len(header), first, len(source.lines)
    while end < total:
        text, line, count = source.lines[end], end + 1, 1
        if quotes and '"' in text:  # a record goes on over lines until they are closed
            cells, count = _record(source.lines, end, delimiter or "", size)
        else:
            cells = split(text) if split else text.split(delimiter)
        end += count
        if len(cells) == size + 1 and not cells[-1].strip():  # sacct --parsable ends so
            cells.pop()
        # A million rows have few owners and sizes: each such text is kept once.
        values = [intern(cells[k].strip()) for k in places] if len(cells) == size else names
        if values != names and "\0" not in text and any(map(str.strip, cells)):
            rows.append(values)
            lines.append(line)
        elif not text.lstrip().startswith(comment):
            # Philly's file has its header a second time, in the middle.
            fault = "repeated header" if len(cells) == size else faults[len(cells) > size]
            fault = fault if any(map(str.strip, cells)) else "blank row"
            rejected.append((line, MalformedError("NUL byte" if "\0" in text else fault)))
    frame = pd.DataFrame(rows, index=lines, columns=names, dtype=object)
    return Rows(frame, source.name, ROW, rejected)


def csv_rows(
    source: TraceSource,
    wanted: Iterable[str],
    header: Sequence[str] = (),
    delimiter: str = ",",
) -> Rows:
    """Read `wanted` columns of a table; a `header` is given if the file may have none."""
    first_line = csv_cells(source.header, delimiter)
    header = list(header) or first_line
    first = source.first + (header[:1] == first_line[:1])
    return rows_of(source, header, first, wanted, delimiter, quotes=True)


def csv_cells(text: str, delimiter: str = ",") -> list[str]:
    """Split a CSV line at a delimiter of one character; quotes enclose cells."""
    return _record((text,), 0, delimiter)[0]


def _record(
    lines: Sequence[str], line: int, delimiter: str, size: int = 0
) -> tuple[list[str], int]:
    """Return the cells and the number of lines of the CSV record that begins at `line`."""
    for strict, last in ((True, line + LONGEST_RECORD), (False, line + 1)):
        reader = csv.reader(
            (f"{text}\n" for text in lines[line:last]), delimiter=delimiter, strict=strict
        )
        try:
            cells = [cell.strip() for cell in next(reader, [])]
        except csv.Error:
            continue
        if len(cells) == size or not strict:
            return cells, reader.line_num
    return [lines[line]], 1  # one cell, which the number of columns then refuses


def entry_rows(
    source: TraceSource,
    jobs: Any,
    where: str,
    read: Callable[[Mapping[str, Any]], Iterable[Mapping[str, str]]],
) -> Rows:
    """Apply `read` to each object in the list `jobs`; rows are numbered by object, from 1."""
    if not isinstance(jobs, list) or not jobs:
        got = "an empty list" if jobs == [] else f"{jobs!r:.60}"
        raise InstanceError(where, f"expected a list of at least one job, got {got}")
    rows, lines, faults = [], [], []
    for number, job in enumerate(jobs, start=1):
        fault = MalformedError("not an object", expected="a job as a JSON object")
        try:
            entries = list(read(job)) if isinstance(job, dict) else []
        except MalformedError as error:
            entries, fault = [], error
        faults += [] if entries else [(number, fault)]
        rows += entries
        lines += [number] * len(entries)
    return Rows(pd.DataFrame(rows, index=lines, dtype=object), source.name, ENTRY, faults)


def cell(job: Mapping[str, Any], key: str) -> str:
    """Return an entry of a job as text: empty if missing or null, JSON if it is an object."""
    value = job.get(key)
    if value is None:
        return ""
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise MalformedError(f"bad {key}", expected="a text or a number")
    return str(value)
