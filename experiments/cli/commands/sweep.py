"""``oasis sweep``: a grid of runs, on all cores or on a Dask cluster."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli import console
from experiments.cli.exit_codes import DONE, FAILED_CELLS
from experiments.cli.files import TABLE, reading, written
from experiments.cli.options import (
    AsJson,
    Workers,
    known,
    naming_flags,
)
from experiments.cli.progress import Pace
from experiments.cli.sweep_report import counted, list_cells, report, saying_what_is_kept
from oasis.model.errors import InputError, located_at
from oasis.model.file_kinds import STANDARD_INPUT

if TYPE_CHECKING:
    from experiments.sweep import Cell, Executor, SweepProgress


Show = Callable[["SweepProgress"], None]


@contextmanager
def sweep_progress(reached: list[SweepProgress] | None = None) -> Iterator[Show]:
    """Callback that shows how many cells are done, and adds that to `reached`.

    Off a terminal it writes lines as cells are done, the rarer the longer it takes.
    """
    states = [] if reached is None else reached
    pace, task = Pace(), None
    with console.progress_bar() as bar:

        def show(progress: SweepProgress) -> None:
            nonlocal task
            states.append(progress)
            if bar.disable:
                # The end needs no line: the table follows.
                if progress.done < progress.total and pace.is_due():
                    console.note(f"{pace.elapsed:7.1f} s  {counted(progress)}")
                return
            done = progress.done + progress.shared_done
            if task is None:  # what was kept says nothing about the speed
                total = progress.total + progress.shared_total
                task = bar.add_task("", total=total, completed=done)
            bar.update(task, completed=done, description=counted(progress))

        yield show


def command(
    *,
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The grid (TOML).")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Parquet file. [default: CONFIG with .parquet]",
        ),
        written(TABLE, lambda path, arguments: (path or _table_beside(arguments["config"]),)),
    ] = None,
    workers: Workers,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed cells again.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the cells and what is recorded of them.")
    ] = False,
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
    path = output or _table_beside(config)
    with saying_what_is_kept() as reached:
        from experiments import sweep  # noqa: PLC0415 (needs an extra; Ctrl-C may come meanwhile)

        cells = _cells(config, output)
        where = engine_of(workers)
        if dry_run:
            list_cells(cells, sweep.ResultStore.beside(path), as_json)
            return DONE
        try:
            with quiet(), sweep_progress(reached) as show, naming_flags(("scheduler",)):
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


def _table_beside(config: Path) -> Path:
    return config.with_suffix(".parquet")


def engine_of(workers: Workers) -> Executor:
    """Return the executor that the options select."""
    from experiments import sweep  # noqa: PLC0415

    processes, scheduler = workers.processes, workers.scheduler
    if known(workers.engine, ("local", "dask"), "--engine") == "local":
        if scheduler is not None:
            raise InputError("--scheduler", "expected --engine dask with it")
        return sweep.Local(-1 if processes is None else processes)
    if scheduler is None:
        raise InputError(
            "--scheduler", "expected the address of a Dask scheduler with --engine dask"
        )
    import distributed  # noqa: F401, PLC0415 (needs an extra; it sets the levels of its loggers)

    # A scheduler that goes away is said in one line below, not in Dask's traceback.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL + 1)
    if processes is not None:
        raise InputError(
            "--processes", "expected --engine local with it; Dask uses all its workers"
        )
    return sweep.Dask(scheduler)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress joblib's messages about its processes; the records list lost cells."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"joblib\b")
        yield
