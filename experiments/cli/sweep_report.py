"""What ``oasis sweep`` prints: its cells, and the means over the seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.cli import console
from experiments.cli.exit_codes import InterruptedWorkError
from experiments.evaluation.intervals import CUT, RANGE, scale_of
from oasis.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from experiments.sweep import Cell, Store, SweepProgress, SweepResult


def interrupted(reached: SweepProgress | None) -> InterruptedWorkError:
    """The error of a sweep that Ctrl-C ended, saying how many cells are recorded."""
    if reached is None:
        return InterruptedWorkError("interrupted")
    kept = f"{reached.done} of {reached.total} cells are recorded"
    return InterruptedWorkError(f"interrupted; {kept}, the same command goes on from there")


def list_cells(cells: Sequence[Cell], store: Store, as_json: bool) -> None:
    """List the cells, each with its recorded status or ``to run``."""
    import pandas as pd  # noqa: PLC0415

    from experiments import sweep  # noqa: PLC0415

    records = sweep.recorded(cells, store, on_note=console.note)
    states = [records[cell.key].status if cell.key in records else "to run" for cell in cells]
    if as_json:
        listed = [{**cell.columns, "state": s} for cell, s in zip(cells, states, strict=True)]
        console.print_json({"cells": listed, "version": __version__})
        return
    frame = pd.DataFrame([cell.columns for cell in cells])
    points = frame[sweep.varying(frame)].to_dict("records")
    rows = [
        (_label(point, "instance."), _label(point, "policy."), str(cell.seed), state)
        for point, cell, state in zip(points, cells, states, strict=True)
    ]
    columns = (("instance", False), ("policy", False), ("seed", True), ("", False))
    console.print_rows(columns, rows, title=f"{len(cells)} cells")


def report(result: SweepResult, as_json: bool, *, is_written: bool) -> None:
    """Print the means over the seeds, and on standard error what failed."""
    from experiments import sweep  # noqa: PLC0415

    progress = result.progress
    table = sweep.summarise(result.frame, result.task.headline)
    failures = result.frame[result.frame["status"] == sweep.FAILED]
    if as_json:
        document = {
            "output": str(result.output),
            "cells": progress.total,
            "failed": progress.failed,
            "kept": progress.kept,
            "summary": _plain(table),
            "failures": _plain(failures[[*sweep.varying(result.frame), "seed", "error"]]),
            "version": __version__,
        }
        console.print_json(document)
    else:
        _print(table, result.task.headline)
    for error, group in failures.groupby("error", sort=False):
        console.note(f"{len(group)} failed: {error}")
    fresh = progress.total - progress.kept
    verb = "wrote" if is_written else "could not write"
    console.note(f"{verb} {result.output}: {fresh} cells run, {progress.kept} recorded before")


def _print(table: pd.DataFrame, headline: Sequence[str]) -> None:
    figures = [name for name in headline if name in table]
    rows = [
        (
            _label(row, "instance."),
            _label(row, "policy."),
            f"{row['seeds']}" + (f" ({row['failed']} failed)" if row["failed"] else ""),
            *(_interval(row, name) for name in figures),
        )
        for row in table.to_dict("records")
    ]
    columns = [("instance", False), ("policy", False), ("seeds", True)]
    columns += [(name, True) for name in figures]
    console.print_rows(columns, rows, title="Mean over the seeds ± half of its 95 % interval")
    for note in _notes(table, figures):
        console.print_text(note)


def _label(row: Mapping[Any, Any], prefix: str) -> str:
    """Name a point of the grid by the parameters that vary."""
    parts = []
    for name, value in row.items():
        if name.startswith(prefix) and not _missing(value):
            short = name.removeprefix(prefix)
            text = _text(value)
            parts.append(text if short in {"preset", "file", "name"} else f"{short}={text}")
    return " ".join(parts)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    value = _python(value)
    return f"[{','.join(map(_text, value))}]" if isinstance(value, list) else str(value)


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON, None for what is missing."""
    rows = frame.to_dict("records")
    return [{name: None if _missing(v) else _python(v) for name, v in row.items()} for row in rows]


def _python(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _interval(row: Mapping[Any, Any], name: str) -> str:
    """Mean with its interval, a plus-minus where it is symmetrical; the ends in brackets else."""
    n = row[f"{name}.n"]
    if not n:
        return "-"
    ends = {
        side: None if _missing(row[f"{name}.{side}"]) else row[f"{name}.{side}"] for side in ENDS
    }
    text = console.interval({"mean": row[name], **ends})
    mark = MARKS.get(row[f"{name}.interval"], "")
    return f"{text}{mark}" + ("" if n == row["seeds"] else f" (of {n})")


ENDS = ("low", "high")
MARKS = {CUT: "*", RANGE: "**"}
NOTES = {
    CUT: "*: the interval is cut off where no value can be, so it is not symmetrical",
    RANGE: "**: smallest and largest; these seeds are too few for an interval",
}


def _notes(table: pd.DataFrame, figures: Sequence[str]) -> list[str]:
    """What the marks and the ratios in the table mean, where there are some."""
    kinds = {kind for name in figures for kind in table[f"{name}.interval"]}
    notes = [note for kind, note in NOTES.items() if kind in kinds]
    if any(scale_of(name) == "ratio" for name in figures):
        notes.append("ratios: geometric mean, interval of the logarithms")
    return notes
