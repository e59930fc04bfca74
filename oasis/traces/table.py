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
        # Whole numbers stay such beside missing ones: a float has 16 digits.
        frame = pd.read_parquet(io.BytesIO(content), dtype_backend="numpy_nullable")
    except ModuleNotFoundError as error:
        raise InstanceError("", str(error)) from None
    except (ValueError, OSError) as error:  # what pyarrow says may have several lines
        detail = " ".join(f"{error}".split())
        raise InstanceError("", f"expected a whole Parquet file ({detail})") from None
    if any(frame.index.names):  # such as the names of the jobs: columns like others
        frame = frame.reset_index()
    rows: str = frame.to_csv(index=False, lineterminator=ROW_END)
    # A cell may hold lines of text; a row has one.
    return rows.replace("\r", " ").replace("\n", " ").replace(ROW_END, "\n").encode()


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
MISSING = re.compile(r"(?i)(?:none|null|\(null\)|nan|nat|n/?a|unknown|invalid|-)?")


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

    @property
    def malformed(self) -> dict[str, dict[str, int]]:
        """Kind of fault -> how many rows, and the first line or entry, which is 1."""
        ordered = sorted(self._found.values(), key=lambda found: found[1])
        return {str(f): {"count": n, f"first_{self.unit}": line} for n, line, f in ordered}

    def check_usable(self, good: int, name: str, *, allow_malformed: bool = False) -> None:
        """Refuse a file with no usable row, or with less than half of its rows usable.

        Rows without a fault that are no job, such as those of jobs that have not ended, do not
        count. With `allow_malformed`, one of the `good` rows is enough.
        """
        every = sorted(self._found.values(), key=lambda found: (-found[0], found[1]))
        faults = [found for found in every if found[2].kind not in SOUND]
        count = sum(found[0] for found in faults)
        # More bad rows than good ones are a sign of another format or of a wrong option.
        if (good and (allow_malformed or count <= good)) or not every:
            return
        named = faults or every
        kinds = [
            f"{fault}{f' ({_rows(n, self.unit)})' if len(named) > 1 else ''}"
            for n, _, fault in named[:MOST_KINDS]
        ]
        others = len(named) - MOST_KINDS
        more = f"; {others} other kind{'' if others == 1 else 's'}" if others > 0 else ""
        many = _many(self.unit)
        what = f"none of the {sum(n for n, _, _ in every)} {many} of {name} can be used"
        if good:
            what = f"{count} of the {count + good} {many} of {name} cannot be used"
            what += f"; --allow-malformed goes on with the other {good}"
        known = [f"{f}: {f.expected}" for _, _, f in named[:MOST_KINDS] if f.expected]
        expected = f"; expected instead of {', of '.join(known)}" if known else ""
        first = min(line for _, line, _ in named)
        raise InstanceError(f"{self.unit} {first}", f"{'; '.join(kinds)}{more}; {what}{expected}")


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
    sentences = []
    for name, kinds in report.items():
        for kind, found in kinds.items():
            unit, where = (ENTRY, ENTRY) if "first_entry" in found else (ROW, "line")
            rows = _rows(found["count"], unit if kind in SOUND else f"malformed {unit}")
            first = found[f"first_{unit}"]
            sentences.append(f"{name}: {rows} ({kind}), first at {where} {first}")
    return sentences


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
    fault: str = ""  # of a line with more cells than columns


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
    header, names = list(layout.header), list(dict.fromkeys(wanted))
    check_header(header, names, source.name)
    places = [header.index(name) for name in names]
    rows, lines = [], []
    end, total = layout.first, len(source.lines)
    while end < total:
        line, text = end + 1, source.lines[end]
        end += 1
        cells = layout.split(text)
        if layout.delimiter and text.count('"') % 2:
            cells, end = _record(source, layout, end) or (cells, end)
        if len(cells) == len(header) and any(cells) and cells != header and "\0" not in text:
            rows.append([cells[place] for place in places])
            lines.append(line)
            continue
        # Philly's file has its header a second time, in the middle.
        fault = "repeated header" if cells == header else "wrong number of columns"
        fault = "NUL byte" if "\0" in text else fault if any(cells) else "blank row"
        faults.add(layout.fault if layout.fault and len(cells) > len(header) else fault, line)
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
    """Rows of a file as columns of texts, and the first fault of each.

    Rows with one line, or entry, are of one job: a fault of one of them is a fault of all.
    """

    def __init__(self, cells: Frame, faults: Faults) -> None:
        self.cells, self.faults = cells, faults
        self.lines = cells.index.to_numpy()
        self._fault = np.full(len(cells), None, dtype=object)

    def texts(self, column: str | None) -> list[str]:
        """The cells of a column, empty ones if there is no such."""
        if column not in self.cells:
            return [""] * len(self.cells)
        found: list[str] = self.cells[column].tolist()
        return found

    def missing(self, column: str | None) -> Mask:
        """Whether each cell of a column says nothing."""
        if column not in self.cells:
            return np.full(len(self.cells), True)
        return np.array([bool(MISSING.fullmatch(text)) for text in self.texts(column)], dtype=bool)

    @property
    def is_good(self) -> Mask:
        """Whether no fault was found in each row yet."""
        return np.asarray(pd.isna(self._fault), dtype=bool)

    def reject(self, bad: Any, fault: str | MalformedError) -> None:
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

    def each(self, keys: Sequence[Any], read: Callable[[Any], Any], where: Mask) -> list[Any]:
        """What `read` makes of each key, which is read once; None where it is malformed.

        The good rows `where` it is malformed have that fault.
        """
        known: dict[Any, Any] = {}
        for key in dict.fromkeys(keys):
            try:
                known[key] = read(key)
            except MalformedError as fault:
                known[key] = fault
        found = [known[key] for key in keys]
        for k in np.flatnonzero(where & self.is_good).tolist():
            if isinstance(found[k], MalformedError):
                self._fault[k] = found[k]
        return [None if isinstance(value, MalformedError) else value for value in found]

    def number(self, column: str, name: str, minimum: float = 0.0, *, whole: bool = False) -> Any:
        """Numbers >= `minimum` in a column, which errors call `name`; NaN where there is none."""
        values = numbers(self.texts(column))
        bad = ~((values >= minimum) & (values <= LARGEST)) | (whole & (values % 1 != 0))
        what = f"a{' whole' if whole else ''} number >= {minimum:g}"
        self.reject(bad, MalformedError(f"bad {name}", expected=what))
        return np.where(bad, nan, values)

    def settle(self, key: str | None = None) -> Mask:
        """Count the rows with a fault, and those whose `key` is empty or that of an earlier row.

        Only a row that can be used takes its name: a good row after a bad one of its name counts.
        """
        if key is not None:
            names = self.cells[key]
            self._fault[(names == "").to_numpy(bool)] = MalformedError(f"no {key}")
            taken = names[self.is_good & ~names.where(self.is_good).duplicated().to_numpy(bool)]
            first = dict(zip(taken, taken.index, strict=True))
            later = [first.get(n, k) < k for n, k in zip(names, self.lines.tolist(), strict=True)]
            self._fault[np.array(later, dtype=bool)] = MalformedError(f"repeated {key}")
        found = pd.Series(self._fault, index=self.lines).groupby(level=0).first()
        for line, fault in found.dropna().items():
            self.faults.add(fault, int(line))
        return np.asarray(~np.isin(self.lines, found.dropna().index), dtype=bool)


# --- JSON -----------------------------------------------------------------------------------------


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


def entries_of(jobs: Any, where: str, key: str, faults: Faults) -> dict[int, Mapping[str, Any]]:
    """The objects in a list of jobs by their numbers, each with a name of its own under `key`.

    The others are counted as entries that cannot be used. Without a `key`, they need no name.
    """
    if not isinstance(jobs, list) or not jobs:
        got = "an empty list" if jobs == [] else f"{jobs!r:.60}"
        raise InstanceError(where, f"expected a list of at least one job, got {got}")
    found: dict[int, Mapping[str, Any]] = {}
    names = {""}
    for number, job in enumerate(jobs, start=1):
        name = job.get(key, "") if isinstance(job, dict) else None
        text = str(name) if isinstance(name, (str, int)) else ""
        if not isinstance(job, dict):
            faults.add(MalformedError("not an object", expected="a job as a JSON object"), number)
        elif key and text in names:
            faults.add(f"repeated {key}" if text else f"no {key}", number)
        else:
            found[number] = {**job, key: text} if key else job
            names.add(text)
    return found


def frame_of_entries(
    entries: Mapping[int, Any], read: Callable[[Any], Iterable[Mapping[str, str]]], faults: Faults
) -> Frame:
    """The rows that `read` makes of each entry, by its number."""
    rows, lines = [], []
    for number, job in entries.items():
        try:
            found = list(read(job))
        except MalformedError as fault:
            faults.add(fault, number)
            continue
        rows += found
        lines += [number] * len(found)
    return pd.DataFrame(rows, index=lines, dtype=object)


def cell(job: Mapping[str, Any], key: str) -> str:
    """An entry of a job as a cell of a table; empty if it is not there or null."""
    value = job.get(key)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise MalformedError(f"bad {key}", expected="a text or a number")
    return str(value)
