"""Results of a sweep: a small record for each finished cell, and one Parquet file at the end.

A record is written the moment its cell is finished, in one step, under the hash of all that the
cell follows from. So an interrupted sweep loses no finished cell, and a changed configuration
finds exactly the cells that it still contains.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from experiments.sweep.tasks import MEASURED
from oasis.model.errors import InputError, OasisError
from oasis.model.files import save_state, saved_state, write_bytes
from oasis.version import __version__

if TYPE_CHECKING:
    from experiments.sweep.cells import Cell


DONE, FAILED = "done", "failed"


@dataclass(frozen=True, slots=True)
class CellResult:
    """Record of a cell: its figures or, if it failed, the error."""

    status: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    traceback: str | None = None


CELL = "cell of a sweep"  # kind of file


class DamagedRecordError(OasisError):
    """A record is incomplete, or has been changed since it was written."""


class ResultStore:
    """A directory with one record for each finished cell."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    @classmethod
    def beside(cls, output: str | os.PathLike[str]) -> ResultStore:
        """Return the store of a sweep whose result file is `output`."""
        path = Path(output)
        return cls(path.with_name(f"{path.name}.cells"))

    def path(self, key: str) -> Path:
        """Path of the record with this key."""
        return self.directory / f"{key}.json"

    def prepare(self) -> None:
        """Create the directory, so that a missing permission is reported before the work."""
        self.directory.mkdir(exist_ok=True)

    def save(self, key: str, identity: Mapping[str, Any], record: CellResult) -> None:
        """Write the record of a cell as a whole or not at all."""
        self.prepare()
        save_state(self.path(key), CELL, {"cell": dict(identity), **asdict(record)})

    def load(self, key: str, identity: Mapping[str, Any]) -> CellResult | None:
        """Return the record of a cell, or None; raise `DamagedRecordError` if it is damaged."""
        path = self.path(key)
        try:
            state = saved_state(path, CELL)
        except FileNotFoundError:
            return None
        # Somebody may have edited it, or a disk may have lost a part: the cell is run again then.
        except InputError:
            raise DamagedRecordError(f"{path}: damaged record") from None
        # The name of a file is a hash of its identity, and somebody may have renamed it.
        if state.pop("cell") != dict(identity):
            raise DamagedRecordError(f"{path}: record of something else")
        return CellResult(**state)


def tabulate(cells: Sequence[Cell], records: Mapping[str, CellResult]) -> pa.Table:
    """Return a row for each of `cells`: parameters, status, figures, measured times last."""
    rows = [(cell, records[cell.key]) for cell in cells]
    parameters = [cell.columns for cell, _ in rows]
    states = [
        {"version": __version__, "code": cell.code, "status": record.status, "error": record.error}
        for cell, record in rows
    ]
    figures = [record.figures for _, record in rows]
    columns: dict[str, pa.Array] = {}
    for part in (parameters, states, figures):
        names = dict.fromkeys(name for row in part for name in row)  # as they first appear
        for name in sorted(names, key=lambda name: name.startswith(MEASURED)):
            columns[name] = pa.array([row.get(name) for row in part])
    return pa.table(columns)


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a Parquet file as a whole or not at all."""
    buffer = io.BytesIO()
    # To memory first, because the library writes files piece by piece.
    parquet.write_table(table, buffer)
    write_bytes(path, buffer.getvalue())


def read_frame(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the Parquet file of a sweep as a data frame, one row per cell."""
    return pd.read_parquet(path)


def repeatable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `frame` without measured times, in which runs of the same sweep differ."""
    return frame[[name for name in frame.columns if not name.startswith(MEASURED)]]
