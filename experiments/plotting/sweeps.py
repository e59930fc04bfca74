"""The table of a sweep: read it, and draw its means and its pairs of policies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from experiments.evaluation.pairs import pairs_of_sweep
from experiments.plotting.comparison import Points, means_page
from oasis.model.errors import InputError
from oasis.model.extras import require
from oasis.model.file_kinds import MAGIC

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


NEEDED = ("policy.name", "seed", "task.name", "status", "error", "version")


def is_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a Parquet file, by name or first bytes."""
    file = Path(path)
    if file.suffix.lower() == ".parquet":
        return True
    if not file.is_file():
        return False
    with file.open("rb") as begin:
        return begin.read(len(MAGIC)) == MAGIC


def read_sweep(path: str | os.PathLike[str]) -> pa.Table:
    """Read the table that a sweep has written."""
    require("reports of sweeps", "pandas", "pyarrow")
    import pyarrow as pa  # noqa: PLC0415 (needs an extra)
    from pyarrow import parquet  # noqa: PLC0415

    content = Path(path).read_bytes()
    try:
        table = parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError):
        raise InputError("", "expected a Parquet file as `oasis sweep` writes it") from None
    for name in NEEDED:
        if name not in table.column_names:
            raise InputError("", f"expected the table of `oasis sweep`, it has no column {name}")
    if not table.num_rows:
        raise InputError("", "expected the table of `oasis sweep`, it has no rows")
    return table


def means_of(frame: pd.DataFrame) -> tuple[list[str], pd.DataFrame]:
    """The figures that a page shows of a sweep, and their means."""
    from experiments.sweep import TASKS, summarise  # noqa: PLC0415
    from experiments.sweep.summary import shown_of  # noqa: PLC0415

    task = TASKS.get(frame["task.name"].iloc[0], TASKS["run"])
    figures = shown_of(frame, task.headline)
    return figures, summarise(frame, figures)


def sweep_page(frame: pd.DataFrame) -> Figure:
    """The means of each figure, and by how much the first policy beats the others."""
    from experiments.sweep.summary import PROVEN, interval_in, label  # noqa: PLC0415

    figures, means = means_of(frame)
    if not figures:
        raise InputError("", "expected a sweep with total_utility, there is nothing to draw")
    rows = means.to_dict("records")
    # Points of one policy alone do not repeat its name.
    is_one = len({label(row, "policy.") for row in rows}) == 1
    parts = ("instance.",) if is_one and len(rows) > 1 else ("policy.", "instance.")
    names = [label(row, *parts) for row in rows]
    drawn: dict[str, Points] = {
        figure: [(name, interval_in(row, figure)) for name, row in zip(names, rows, strict=True)]
        for figure in figures
        if figure != PROVEN
    }
    return means_page(drawn, pairs_of_sweep(frame))
