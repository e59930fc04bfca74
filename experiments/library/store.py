"""The library on disk: one table, and one packed file of schedules for each instance."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.evaluation.provenance import instance_digest
from experiments.library.families import PROBLEMS, problem_named
from experiments.library.packing import SHOWN, digest, packed, unpacked
from experiments.library.record import COLUMNS, Record, rounded
from oasis.certify.verify import verify
from oasis.model.errors import OasisError, VerificationError
from oasis.model.files import naming, write_bytes, write_text
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule

SHIPPED = Path(__file__).parent / "data"
TABLE = "table.csv"


@dataclass(frozen=True, slots=True)
class Library:
    """The instances with what is known of them.

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
        """The file of the table."""
        return self.directory / TABLE

    def records(self) -> dict[str, Record]:
        """The rows of the table by name, in the order of the families.

        Raises
        ------
        OasisError
            If the table is missing, a row has changed since it was written, or names no instance.
        VerificationError
            If a row's bound lies below its value.
        """
        with naming(self.table):
            text = self.table.read_text(encoding="utf-8")
        found: dict[str, Record] = {}
        for row in csv.DictReader(io.StringIO(text)):
            record = Record.from_row(row)
            if problem_named(record.name).family != record.family or record.name in found:
                raise OasisError(f"{record.name}: expected one row, in its family")
            found[record.name] = record
        return {name: found[name] for name in PROBLEMS if name in found}

    def find(self, name: str) -> Record | None:
        """The row of an instance; None if nothing is known of it yet."""
        return self.records().get(name) if self.table.exists() else None

    def instance(self, record: Record) -> Instance:
        """Generate the instance, and check that it is the one that the record is of.

        Raises
        ------
        OasisError
            If it is another: the generator or NumPy has changed.
        """
        instance = problem_named(record.name).instance()
        if fingerprint(instance) != record.fingerprint:
            raise OasisError(
                f"{record.name}: expected an instance with the fingerprint {record.fingerprint}, "
                f"generated {fingerprint(instance)}"
            )
        return instance

    def schedules(self, record: Record) -> dict[str, Schedule]:
        """The stored schedules by job id.

        Raises
        ------
        OasisError
            If the file is missing, or is not the one that the record names.
        """
        path = self._file(record)
        with naming(path):
            content = path.read_bytes()
        if digest(content) != record.schedules:
            raise OasisError(f"{path.name}: has changed since it was written: its digest differs")
        return unpacked(content)

    def verify(self, record: Record, instance: Instance | None = None) -> float:
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

    def put(self, record: Record, schedules: Mapping[str, Schedule] | None = None) -> None:
        """Write a row, and the schedules if they are new.

        The row is written after the schedules and names them, so that a process that is killed at
        any moment leaves a table that is whole and schedules for every row of it.
        """
        before = self.records() if self.table.exists() else {}
        (self.directory / "schedules").mkdir(parents=True, exist_ok=True)
        if schedules is not None:
            write_bytes(self._file(record), packed(schedules), durable=True)
        after = before | {record.name: record}
        write_text(self.table, _table(after[name] for name in PROBLEMS if name in after))
        former = before.get(record.name)
        if former is not None and former.schedules != record.schedules:
            self._file(former).unlink(missing_ok=True)

    def tidy(self) -> list[str]:
        """Remove files of schedules that no row names: a process that was killed may leave some."""
        named = {self._file(record) for record in self.records().values()}
        stray = [path for path in self._files() if path not in named]
        for path in stray:
            path.unlink()
        return [path.name for path in stray]

    def _files(self) -> list[Path]:
        return sorted((self.directory / "schedules").glob("*.xz"))

    def _file(self, record: Record) -> Path:
        return self.directory / "schedules" / f"{record.name}.{record.schedules}.xz"


VALUE_TOLERANCE = 1e-9  # relative: exponentials differ in their last digits between machines


def fingerprint(instance: Instance) -> str:
    """The first 16 digits of the digest of an instance."""
    return instance_digest(instance)[:SHOWN]


def _table(records: Iterable[Record]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(record.to_row() for record in records)
    return stream.getvalue()
