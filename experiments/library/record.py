"""What the library knows of one instance: a row of its table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from typing import Any, Self

from experiments.library.packing import digest
from oasis.model.errors import OasisError, SolverError, VerificationError
from oasis.solvers import PROOF, relative_gap

DIGITS = 9  # after the point, of values and bounds
BETTER = 1e-9  # relative: by how much a value or a bound must be better to replace another
OPTIMAL, OPEN = "optimal", "open"


@dataclass(frozen=True, slots=True)
class Record:
    """The best schedules and the best bound that are known of an instance.

    Parameters
    ----------
    name : str
        Of the instance.
    family : str
        Of the instance.
    fingerprint : str
        First 16 digits of the digest of the instance (`instance_digest`).
    value : float
        Total utility of the stored schedules, rounded to nine digits after the point.
    bound : float
        No schedules are worth more; rounded up to as many digits.
    value_by, bound_by : str
        How each was found or proved.
    value_date, bound_date : str
        When, as in 2026-01-31.
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
        """Relative gap between value and bound."""
        return relative_gap(self.value, self.bound)

    @property
    def proof(self) -> str:
        """Whether the value is proven ``optimal``, or the question is ``open``."""
        return OPTIMAL if self.gap <= PROOF else OPEN

    def to_row(self) -> dict[str, str]:
        """The row of the table: text by column, with a check sum of all the others."""
        row = {name: str(value) for name, value in asdict(self).items()}
        row |= {name: f"{row_value:.{DIGITS}f}" for name, row_value in self._numbers().items()}
        row = {**row, "gap_percent": f"{100 * self.gap:.4f}", "proof": self.proof}
        return {**{name: row[name] for name in COLUMNS[:-1]}, COLUMNS[-1]: _sum_of(row)}

    @classmethod
    def from_row(cls, row: Mapping[str, str]) -> Self:
        """Read a row.

        Raises
        ------
        OasisError
            If a column is missing or is no number, or the row is not what its check sum is of.
        VerificationError
            If its bound lies below its value, or it claims a proof that it does not have.
        """
        where = row.get("name") or "a row without a name"
        if set(row) != set(COLUMNS) or None in row.values():
            raise OasisError(f"{where}: expected the columns {', '.join(COLUMNS)}")
        try:
            known: dict[str, Any] = {field.name: row[field.name] for field in fields(cls)}
            known |= {name: float(row[name]) for name in ("value", "bound")}
            for name in ("value_date", "bound_date"):
                date.fromisoformat(row[name])
        except ValueError as error:
            raise OasisError(f"{where}: {error}") from None
        record = cls(**known)
        if row["proof"] != record.proof:
            text = f"{where}: proof: states {row['proof']}, recomputed {record.proof}"
            raise VerificationError("proof", text)
        if row != record.to_row():
            raise OasisError(
                f"{where}: the row has changed since it was written: its check differs"
            )
        return record

    def improved(self, other: Record) -> Record:
        """The same record, with what is better in another one of its instance.

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
            raise OasisError(f"{self.name}: expected another record of it, got {other.name}")
        best = self
        if other.value > self.value + BETTER * abs(self.value):
            best = _with(best, other, "value", "value_by", "value_date", "schedules")
        if other.is_refuted_by(best.value):
            raise SolverError(
                f"{self.name}: {other.bound_by} claims the bound {other.bound:.9g}; "
                f"a schedule is worth {best.value:.9g}"
            )
        is_tighter = other.bound < self.bound - BETTER * abs(self.bound)
        if is_tighter or self.is_refuted_by(best.value):
            best = _with(best, other, "bound", "bound_by", "bound_date")
        return best

    def is_refuted_by(self, value: float) -> bool:
        """Whether verified schedules of that value are worth more than the bound."""
        return self.bound < value - BETTER * abs(value)

    def _numbers(self) -> dict[str, float]:
        return {"value": self.value, "bound": self.bound}


COLUMNS = (
    *("name", "family", "value", "bound", "gap_percent", "proof"),
    *("value_by", "value_date", "bound_by", "bound_date", "fingerprint", "schedules", "check"),
)


def rounded(value: float) -> float:
    """A value as the table has it."""
    return round(value, DIGITS)


def rounded_up(bound: float) -> float:
    """A bound as the table has it."""
    near = round(bound, DIGITS)
    return near if near >= bound else round(near + 10.0**-DIGITS, DIGITS)


def _with(record: Record, other: Record, *names: str) -> Record:
    changes: dict[str, Any] = {name: getattr(other, name) for name in names}
    value = changes.get("value", record.value)
    # both are rounded, so that a bound may lie below an equal value by their last digits
    changes["bound"] = max(changes.get("bound", record.bound), value)
    return replace(record, **changes)


def _sum_of(row: Mapping[str, str]) -> str:
    return digest("\n".join(row[name] for name in COLUMNS[:-1]).encode())
