"""The library on disk: one table, and one packed file of schedules for each instance."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Self

from experiments.evaluation.provenance import instance_digest
from experiments.library.families import PROBLEMS, problem_named
from oasis.certify.verify import verify
from oasis.model.errors import InputError, SolverError, VerificationError
from oasis.model.files import naming, write_bytes, write_text
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.solvers import PROOF, relative_gap

# The files come with the package: packed once, and read seldom.
PRESET = 9 | lzma.PRESET_EXTREME
SHOWN = 16  # hexadecimal digits of a digest: 64 bits


def pack(schedules: Mapping[str, Schedule]) -> bytes:
    """Compress schedules to bytes, which are the same for the same schedules."""
    plain = [schedules[job].to_dict() for job in sorted(schedules)]
    text = json.dumps(plain, separators=(",", ":"))
    return lzma.compress(text.encode(), preset=PRESET)


def unpack(content: bytes) -> dict[str, Schedule]:
    """Decompress the schedules of `pack`, by job id."""
    try:
        plain = json.loads(lzma.decompress(content))
    except (lzma.LZMAError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError("", f"expected schedules, packed with xz: {error}") from None
    return schedules_by_job(plain)


def digest(content: bytes) -> str:
    """Return the first 16 digits of the SHA-256 of `content`."""
    return hashlib.sha256(content).hexdigest()[:SHOWN]


DIGITS = 9  # after the point, of values and bounds
BETTER = 1e-9  # relative: by how much a value or a bound must be better to replace another
OPTIMAL, OPEN = "optimal", "open"


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """The best schedules and the best bound that are known of an instance.

    Parameters
    ----------
    name : str
        Name of the instance.
    family : str
        Family of the instance.
    fingerprint : str
        First 16 digits of the digest of the instance (`instance_digest`).
    value : float
        Total utility of the stored schedules, rounded to nine digits after the point.
    bound : float
        No schedules are worth more; rounded up to as many digits.
    value_by, bound_by : str
        Methods that found the value and proved the bound.
    value_date, bound_date : str
        Dates of both, such as 2026-01-31.
    schedules : str
        Digest of the file of the stored schedules.

    Raises
    ------
    VerificationError
        If the bound lies below the value.
    """

    name: str
    family: str
    fingerprint: str
    value: float
    bound: float
    value_by: str
    value_date: str
    bound_by: str
    bound_date: str
    schedules: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.bound >= self.value):
            text = f"expected value <= bound, got {self.value!r} and {self.bound!r}"
            raise VerificationError(self.name, text)

    @property
    def gap(self) -> float:
        """Relative gap between the value and the bound."""
        return relative_gap(self.value, self.bound)

    @property
    def proof(self) -> str:
        """``optimal`` if the bound proves the value, otherwise ``open``."""
        return OPTIMAL if self.gap <= PROOF else OPEN

    def to_row(self) -> dict[str, str]:
        """Return the row of the table as text by column, with a check sum of the other columns."""
        row = {name: str(value) for name, value in asdict(self).items()}
        row |= {name: f"{getattr(self, name):.{DIGITS}f}" for name in NUMBERS}
        row = {**row, "gap_percent": f"{100 * self.gap:.4f}", "proof": self.proof}
        row = {name: row[name] for name in COLUMNS[:-1]}
        return {**row, COLUMNS[-1]: digest("\n".join(row.values()).encode())}

    @classmethod
    def from_row(cls, row: Mapping[str, str]) -> Self:
        """Read a row of the table; raise an error if its check sum differs."""
        where = row.get("name") or "a row without a name"
        if set(row) != set(COLUMNS) or None in row.values():
            raise InputError(where, f"expected the columns {', '.join(COLUMNS)}")
        try:
            values: dict[str, Any] = {field.name: row[field.name] for field in fields(cls)}
            values |= {name: float(row[name]) for name in NUMBERS}
            for name in ("value_date", "bound_date"):
                date.fromisoformat(row[name])
        except ValueError as error:
            raise InputError(where, f"{error}") from None
        record = cls(**values)
        if row != record.to_row():
            raise InputError(where, "the row has changed since it was written: its check differs")
        return record

    def improved(self, other: LibraryEntry) -> LibraryEntry:
        """Return the entry with the better value and bound of this one and `other`.

        Neither is ever replaced by a worse one, but for a bound of this record that the other's
        schedules refute: verified schedules count more than a bound.

        Raises
        ------
        OasisError
            If they are of different instances.
        SolverError
            If the other's bound lies below this record's value.
        """
        if (self.name, self.fingerprint) != (other.name, other.fingerprint):
            raise InputError(self.name, f"expected another record of it, got {other.name}")
        best = self
        if other.value > self.value + BETTER * abs(self.value):
            best = _with(best, other, "value", "value_by", "value_date", "schedules")
        if other.is_refuted_by(best.value):
            claim = f"{self.name}: {other.bound_by} claims the bound {other.bound:.9g}"
            raise SolverError(f"{claim}; a schedule is worth {best.value:.9g}")
        is_tighter = other.bound < self.bound - BETTER * abs(self.bound)
        if is_tighter or self.is_refuted_by(best.value):
            best = _with(best, other, "bound", "bound_by", "bound_date")
        return best

    def is_refuted_by(self, value: float) -> bool:
        """Return whether verified schedules of that value exceed the bound."""
        return self.bound < value - BETTER * abs(value)


NUMBERS = ("value", "bound")
COLUMNS = (
    *("name", "family", "value", "bound", "gap_percent", "proof"),
    *("value_by", "value_date", "bound_by", "bound_date", "fingerprint", "schedules", "check"),
)


def rounded(value: float) -> float:
    """Round a value as the table does."""
    return round(value, DIGITS)


def _with(record: LibraryEntry, other: LibraryEntry, *names: str) -> LibraryEntry:
    """Copy entries `names` of `other` into `record`; the bound never falls below the value."""
    changes: dict[str, Any] = {name: getattr(other, name) for name in names}
    value = changes.get("value", record.value)
    # both are rounded, so that a bound may lie below an equal value by their last digits
    changes["bound"] = max(changes.get("bound", record.bound), value)
    return replace(record, **changes)


SHIPPED = Path(__file__).parent / "data"
TABLE = "table.csv"


@dataclass(frozen=True, slots=True)
class Library:
    """The instances with their best known values and bounds.

    Parameters
    ----------
    directory : Path
        Where table and schedules lie; by default those that come with the package.

    Examples
    --------
    >>> from experiments.library import Library
    >>> library = Library()
    >>> record = library.records()["testbed-t10-w7-p2-j12-mixed-s4"]
    >>> library.verify(record) == record.value <= record.bound
    True
    """

    directory: Path = SHIPPED

    @property
    def table(self) -> Path:
        """Path of the CSV file of the table."""
        return self.directory / TABLE

    def records(self) -> dict[str, LibraryEntry]:
        """Return the rows of the table by name, in the order of the families.

        Raises
        ------
        OasisError
            If the table is missing, a row has changed since it was written, or names no instance.
        VerificationError
            If a row's bound lies below its value.
        """
        with naming(self.table):
            text = self.table.read_text(encoding="utf-8")
        records: dict[str, LibraryEntry] = {}
        for row in csv.DictReader(io.StringIO(text)):
            record = LibraryEntry.from_row(row)
            if problem_named(record.name).family != record.family or record.name in records:
                raise InputError(record.name, "expected one row, in its family")
            records[record.name] = record
        return {name: records[name] for name in PROBLEMS if name in records}

    def find(self, name: str) -> LibraryEntry | None:
        """Return the row of an instance; None if it has no row yet."""
        return self.records().get(name) if self.table.exists() else None

    def instance(self, record: LibraryEntry) -> Instance:
        """Generate the instance of an entry, and check its fingerprint.

        Raises
        ------
        OasisError
            If it is another: the generator or NumPy has changed.
        """
        instance = problem_named(record.name).instance()
        if fingerprint(instance) != record.fingerprint:
            expected = f"expected an instance with the fingerprint {record.fingerprint}"
            raise InputError(record.name, f"{expected}, generated {fingerprint(instance)}")
        return instance

    def schedules(self, record: LibraryEntry) -> dict[str, Schedule]:
        """Read the stored schedules, by job id.

        Raises
        ------
        OasisError
            If the file is missing, or is not the one that the record names.
        """
        path = self._file(record)
        with naming(path):
            content = path.read_bytes()
        if digest(content) != record.schedules:
            raise InputError(path.name, "has changed since it was written: its digest differs")
        return unpack(content)

    def verify(self, record: LibraryEntry, instance: Instance | None = None) -> float:
        """Verify the stored schedules on the generated instance, and return their value.

        Raises
        ------
        VerificationError
            If they break a constraint, or are worth something else.
        """
        instance = self.instance(record) if instance is None else instance
        value = rounded(verify(instance, self.schedules(record)))
        if abs(value - record.value) > VALUE_TOLERANCE * abs(record.value):
            text = f"{record.name} states {record.value!r}, recomputed {value!r}"
            raise VerificationError("value", text)
        return record.value

    def put(self, record: LibraryEntry, schedules: Mapping[str, Schedule] | None = None) -> None:
        """Write the row of an instance, and its schedules if they are given.

        The row is written after the schedules and names them, so that a process that is killed at
        any moment leaves a table that is whole and schedules for every row of it.
        """
        before = self.records() if self.table.exists() else {}
        (self.directory / "schedules").mkdir(parents=True, exist_ok=True)
        if schedules is not None:
            # Durable, and under a name of its own: the row that the table has now keeps its file.
            write_bytes(self._file(record), pack(schedules), durable=True)
        after = before | {record.name: record}
        stream = io.StringIO()
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(after[name].to_row() for name in PROBLEMS if name in after)
        write_text(self.table, stream.getvalue())
        former = before.get(record.name)
        if former is not None and former.schedules != record.schedules:
            # The former file goes last, when no row names it any more.
            self._file(former).unlink(missing_ok=True)

    def _file(self, record: LibraryEntry) -> Path:
        return self.directory / "schedules" / f"{record.name}.{record.schedules}.xz"


VALUE_TOLERANCE = 1e-9  # relative: exponentials differ in their last digits between machines


def fingerprint(instance: Instance) -> str:
    """Return the first 16 digits of an instance's digest."""
    return instance_digest(instance)[:SHOWN]
