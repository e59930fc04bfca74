"""Output of ``oasis sweep``: its cells, and the means over the seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experiments.cli import console
from experiments.cli.exit_codes import InterruptedWorkError
from experiments.evaluation.pairs import pairs_of_sweep, said
from oasis.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from experiments.sweep import Cell, ResultStore, SweepProgress, SweepResult


def interrupted(reached: SweepProgress | None) -> InterruptedWorkError:
    """The error of a sweep that Ctrl-C ended, saying how many cells are recorded."""
    recorded = "what was recorded before is kept"
    if reached is not None:
        recorded = f"{counted(replace(reached, failed=0))} are recorded"
    return InterruptedWorkError(f"interrupted; {recorded}, the same command goes on from there")


@contextmanager
def saying_what_is_kept(*, is_kept: bool = True) -> Iterator[list[SweepProgress]]:
    """Inside, Ctrl-C becomes an error that says what is kept, by the last of the progress given."""
    reached: list[SweepProgress] = []
    try:
        yield reached
    except KeyboardInterrupt:
        if not is_kept:
            raise InterruptedWorkError("interrupted; no run is kept") from None
        raise interrupted(reached[-1] if reached else None) from None


def counted(progress: SweepProgress) -> str:
    """How many cells are done, failed, and shared ones, such as offline solves, they wait for."""
    shared = ""
    if progress.shared_done < progress.shared_total:
        shared = f"{progress.shared_done} of {progress.shared_total} shared solves, "
    failed = f", {progress.failed} failed" if progress.failed else ""
    return f"{shared}{progress.done} of {progress.total} cells{failed}"


def list_cells(cells: Sequence[Cell], store: ResultStore, as_json: bool) -> None:
    """List the cells, each with its recorded status or ``to run``."""
    import pandas as pd  # noqa: PLC0415

    from experiments import sweep  # noqa: PLC0415
    from experiments.sweep.summary import label  # noqa: PLC0415

    records = sweep.recorded(cells, store, on_note=console.note)
    states = [records[cell.key].status if cell.key in records else "to run" for cell in cells]
    if as_json:
        listed = [{**cell.columns, "state": s} for cell, s in zip(cells, states, strict=True)]
        console.print_json({"cells": listed, "version": __version__})
        return
    frame = pd.DataFrame([cell.columns for cell in cells])
    points = frame[sweep.varying(frame)].to_dict("records")
    rows = [
        (label(point, "instance."), label(point, "policy."), str(cell.seed), state)
        for point, cell, state in zip(points, cells, states, strict=True)
    ]
    columns = (("instance", False), ("policy", False), ("seed", True), ("", False))
    console.print_rows(columns, rows, title=f"{len(cells)} cells")


def report(result: SweepResult, as_json: bool, *, is_written: bool) -> None:
    """Print the means over the seeds, and on standard error what failed."""
    from experiments import sweep  # noqa: PLC0415

    progress, headline = result.progress, result.task.headline
    pairs = pairs_of_sweep(result.frame)
    failures = result.frame[result.frame["status"] == sweep.FAILED]
    if as_json:
        document = {
            "output": str(result.output),
            "cells": progress.total,
            "failed": progress.failed,
            "kept": progress.kept,
            "summary": _plain(sweep.summarise(result.frame, headline)),
            "paired": [one.to_dict() for one in pairs],
            "failures": _plain(failures[[*sweep.varying(result.frame), "seed", "error"]]),
            "version": __version__,
        }
        console.print_json(document)
    else:
        _print(result.frame, headline)
        console.print_notes(said(pairs))
    # One line for each error, not for each cell: hundreds fail for one reason.
    for error, group in failures.groupby("error", sort=False):
        console.note(f"{len(group)} failed: {error}")
    fresh = progress.total - progress.kept
    verb = "wrote" if is_written else "could not write"
    console.note(f"{verb} {result.output}: {fresh} cells run, {progress.kept} recorded before")


def _print(frame: pd.DataFrame, headline: Sequence[str]) -> None:
    from experiments.sweep import summary as table  # noqa: PLC0415 (needs an extra)

    figures = table.shown_of(frame, headline)
    means = table.summarise(frame, figures)
    rows = table.rows_of(means, figures)
    console.print_rows(table.columns_of(figures), rows, title=table.TITLE)
    console.print_notes(table.notes_of(means, figures))


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON, None for what is missing."""
    from experiments.sweep.summary import is_missing, plain  # noqa: PLC0415 (needs an extra)

    rows = frame.to_dict("records")
    return [{name: None if is_missing(v) else plain(v) for name, v in row.items()} for row in rows]
