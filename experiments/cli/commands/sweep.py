"""``oasis sweep``: a grid of runs, on all cores or on a Dask cluster."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli import console
from experiments.cli.exit_codes import DONE, FAILED_CELLS, InterruptedWorkError
from experiments.cli.files import TABLE, reading
from experiments.cli.options import AsJson, Workers, naming_flags
from experiments.cli.progress import progress
from experiments.cli.results import deliver
from experiments.evaluation.pairs import pairs_of_sweep, said
from oasis.model.errors import InputError, located_at
from oasis.model.file_kinds import STANDARD_INPUT
from oasis.model.summary import how_many
from oasis.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from experiments.sweep import Cell, Executor, ResultStore, SweepProgress, SweepResult


ENDING = ".parquet"  # of the table of a sweep


@contextmanager
def sweep_progress(
    reached: list[SweepProgress] | None = None,
) -> Iterator[Callable[[SweepProgress], None]]:
    """Yield a function that shows how many cells are done, and adds that to `reached`."""
    with progress() as show_text, warnings.catch_warnings(), naming_flags(("scheduler",)):
        # Joblib's messages about its processes; the records list lost cells.
        warnings.filterwarnings("ignore", module=r"joblib\b")

        def show(cells: SweepProgress) -> None:
            if reached is not None:
                reached.append(cells)
            if cells.done < cells.total:  # the end needs no line: the table follows
                done, total = cells.done + cells.shared_done, cells.total + cells.shared_total
                show_text(counted(cells), done, total)

        yield show


def command(
    *,
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The grid (TOML).")],
    output: Annotated[
        Path | None,
        "Parquet file. [default: CONFIG with .parquet]",
        replace(TABLE, files=lambda path, given: (path or given["config"].with_suffix(ENDING),)),
    ] = None,
    workers: Workers,
    retry_failed: Annotated[bool, "Run failed cells again."] = False,
    dry_run: Annotated[bool, "List the cells and what is recorded of them."] = False,
    as_json: AsJson = False,
) -> int:
    """Run every instance of a grid with every policy and every seed.

    A list of values is an axis of the grid:

        seeds = {first = 0, count = 5}
        task = {name = "ratio", time_limit = 10.0}   # default: {name = "run"}

        [[instances]]
        preset = "testbed"
        jobs = [6, 12]

        [[instances]]
        file = "mine.json"

        [[policies]]
        name = "oasis"
        scale = [0.5, 1.0, 2.0]

        [[policies]]
        name = ["fifo", "drf"]

    Each finished cell is recorded at once in OUTPUT.cells: the same command goes on where an
    interrupted one stopped, by Ctrl-C or SIGTERM. At the end all rows are in one Parquet file, and
    the means over the seeds are printed with their 95 % confidence intervals. Exit code 4: some
    cells failed.

    Example: oasis sweep grid.toml -o grid.parquet
    """
    path = output or config.with_suffix(ENDING)
    with saying_what_is_kept() as reached:
        from experiments import sweep  # noqa: PLC0415 (needs an extra; Ctrl-C may come meanwhile)

        cells = _cells(config, output)
        where = engine_of(workers)
        if dry_run:
            list_cells(cells, sweep.ResultStore.beside(path), as_json)
            return DONE
        try:
            with sweep_progress(reached) as show:
                result = sweep.run_sweep(
                    cells,
                    path,
                    executor=where,
                    retry_failed=retry_failed,
                    on_progress=show,
                    on_note=console.note,
                )
        except sweep.UnwrittenSweepError as error:
            report(error.result, as_json, is_written=False)
            raise
        report(result, as_json, is_written=True)
    return FAILED_CELLS if result.progress.failed else DONE


def _cells(config: Path, output: Path | None) -> Sequence[Cell]:
    from experiments import sweep  # noqa: PLC0415 (needs an extra)

    if str(config) == STANDARD_INPUT and output is None:
        raise InputError("-o", "expected a name for the table, CONFIG is standard input")
    with located_at(source=config):
        grid = sweep.read_config(config)
        for name in (name for axes in grid.instances for name in axes.get("file", ())):
            reading(config.parent / name)
        return sweep.expand(grid, base=config.parent)


def engine_of(workers: Workers) -> Executor:
    """Return the executor that the options select."""
    from experiments import sweep  # noqa: PLC0415

    processes, scheduler = workers.processes, workers.scheduler
    if workers.engine == "local":
        if scheduler is not None:
            raise InputError("--scheduler", "expected --engine dask with it")
        return sweep.Local(-1 if processes is None else processes)
    if scheduler is None:
        expected = "expected the address of a Dask scheduler with --engine dask"
        raise InputError("--scheduler", expected)
    import distributed  # noqa: F401, PLC0415 (needs an extra; it sets the levels of its loggers)

    # A scheduler that goes away is said in one line below, not in Dask's traceback.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL + 1)
    if processes is not None:
        expected = "expected --engine local with it; Dask uses all its workers"
        raise InputError("--processes", expected)
    return sweep.Dask(scheduler)


@contextmanager
def saying_what_is_kept(*, is_kept: bool = True) -> Iterator[list[SweepProgress]]:
    """Yield a list for progress; Ctrl-C becomes an error that says what of it is recorded."""
    reached: list[SweepProgress] = []
    try:
        yield reached
    except KeyboardInterrupt:
        kept = "what was recorded before is kept"
        if reached:
            kept = f"{counted(replace(reached[-1], failed=0))} are recorded"
        kept = f"{kept}, the same command goes on from there" if is_kept else "no run is kept"
        raise InterruptedWorkError(f"interrupted; {kept}") from None


def counted(cells: SweepProgress) -> str:
    """Return in words how many cells and shared solves are done, and how many cells failed."""
    shared = ""
    if cells.shared_done < cells.shared_total:
        shared = f"{cells.shared_done} of {cells.shared_total} shared solves, "
    failed = f", {cells.failed} failed" if cells.failed else ""
    return f"{shared}{cells.done} of {cells.total} cells{failed}"


def list_cells(cells: Sequence[Cell], store: ResultStore, as_json: bool) -> None:
    """Print the cells, each with its recorded status or ``to run``."""
    import pandas as pd  # noqa: PLC0415

    from experiments import sweep  # noqa: PLC0415
    from experiments.sweep.summary import label  # noqa: PLC0415

    records = sweep.recorded(cells, store, on_note=console.note)
    states = [records[cell.key].status if cell.key in records else "to run" for cell in cells]
    listed = [{**cell.columns, "state": s} for cell, s in zip(cells, states, strict=True)]
    frame = pd.DataFrame([cell.columns for cell in cells])
    points = frame[sweep.varying(frame)].to_dict("records")
    rows = [
        (label(point, "instance."), label(point, "policy."), str(cell.seed), state)
        for point, cell, state in zip(points, cells, states, strict=True)
    ]
    columns = console.headings("instance", "policy", ">seed", "")
    show = partial(console.print_rows, columns, rows, title=f"{len(cells)} cells")
    deliver({"cells": listed, "version": __version__}, show, as_json=as_json)


def report(result: SweepResult, as_json: bool, *, is_written: bool) -> None:
    """Print means over the seeds; on standard error failures, and if the file `is_written`."""
    from experiments import sweep  # noqa: PLC0415
    from experiments.sweep import summary as table  # noqa: PLC0415 (needs an extra)

    counts, headline = result.progress, result.task.headline
    pairs = pairs_of_sweep(result.frame)
    failures = result.frame[result.frame["status"] == sweep.FAILED]

    def document() -> dict[str, Any]:
        return {
            "output": str(result.output),
            "cells": counts.total,
            "failed": counts.failed,
            "kept": counts.kept,
            "summary": _plain(sweep.summarise(result.frame, headline)),
            "paired": [one.to_dict() for one in pairs],
            "failures": _plain(failures[[*sweep.varying(result.frame), "seed", "error"]]),
            "version": __version__,
        }

    def show() -> None:
        figures = table.shown_of(result.frame, headline)
        means = table.summarise(result.frame, figures)
        rows = table.rows_of(means, figures)
        console.print_rows(table.columns_of(figures), rows, title=table.TITLE)
        console.print_notes([*table.notes_of(means, figures), *said(pairs)])

    deliver(document, show, as_json=as_json)
    # One line for each error, not for each cell: hundreds fail for one reason.
    for error, group in failures.groupby("error", sort=False):
        console.note(f"{len(group)} failed: {error}")
    run = how_many(counts.total - counts.kept, "cell")
    verb = "wrote" if is_written else "could not write"
    console.note(f"{verb} {result.output}: {run} run, {counts.kept} recorded before")


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table for JSON, with None for what is missing."""
    from experiments.sweep.summary import is_missing, plain  # noqa: PLC0415 (needs an extra)

    rows = frame.to_dict("records")
    return [{name: None if is_missing(v) else plain(v) for name, v in row.items()} for row in rows]
