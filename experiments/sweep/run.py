"""Sweeps (docs/sweeps): a grid of runs on every core or a Dask cluster, resumed if interrupted."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import pandas as pd
import pyarrow as pa

from experiments.sweep.cells import Cell, SweepConfig, expand
from experiments.sweep.executors import Executor, Local
from experiments.sweep.store import (
    FAILED,
    CellResult,
    DamagedRecordError,
    ResultStore,
    tabulate,
    write_table,
)
from experiments.sweep.tasks import CellTask
from oasis.model.files import check_writable

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """Progress of a sweep, in cells.

    Parameters
    ----------
    total : int
        Number of all cells.
    done : int
        Cells with a record, failed ones included.
    failed : int
        Cells that failed.
    kept : int
        Cells that had a record before this run.
    shared_total, shared_done : int
        Shared cells that other cells need, such as offline solves, and how many are done.
    """

    total: int
    done: int = 0
    failed: int = 0
    kept: int = 0
    shared_total: int = 0
    shared_done: int = 0


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Result of a finished sweep.

    Parameters
    ----------
    output : Path
        The Parquet file.
    progress : SweepProgress
        Counts of cells.
    task : CellTask
        The task done with each cell.
    table : pyarrow.Table
        Content of the file: one row per cell, in the order of the grid.
    frame : pandas.DataFrame
        The content as a data frame.
    """

    output: Path
    progress: SweepProgress
    task: CellTask
    table: pa.Table
    frame: pd.DataFrame


class UnwrittenSweepError(OSError):
    """The Parquet file of a finished sweep could not be written; its cells stay recorded."""

    def __init__(self, error: OSError, result: SweepResult) -> None:
        super().__init__(error.errno, error.strerror, error.filename)
        self.result = result


def run_sweep(
    config: SweepConfig | Sequence[Cell],
    output: str | os.PathLike[str],
    *,
    base: Path | None = None,
    tasks: Mapping[str, CellTask] | None = None,
    executor: Executor | None = None,
    retry_failed: bool = False,
    on_progress: Callable[[SweepProgress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> SweepResult:
    """Run the cells of `config` without a record, write the result, and return it.

    Parameters
    ----------
    config : SweepConfig or sequence of Cell
        The grid, or the cells that `expand` has made of it.
    output : path
        Parquet file to write; the records of the cells are kept in ``output.cells`` beside it.
    base : Path, optional
        Folder that names of files in `config` are relative to; default the working directory.
    tasks : mapping of str to CellTask, optional
        What `config` may ask for, functions in importable modules; default `TASKS`.
    executor : Local or Dask, optional
        Where to run; default `Local()`, every core of this machine.
    retry_failed : bool
        Run the cells again that are recorded as failed.
    on_progress, on_note : callable, optional
        Called after each cell; called with what the user should know.

    Returns
    -------
    SweepResult
        Its rows do not depend on the executor or on interruptions, apart from measured times.

    Raises
    ------
    OasisError
        If `config` asks for what does not exist, or a cluster cannot be reached.
    OSError
        If `output` cannot be written, before any cell is run.
    UnwrittenSweepError
        If that shows only when all cells have been run.

    Examples
    --------
    >>> import tempfile
    >>> from experiments.sweep import sweep_config
    >>> config = sweep_config({
    ...     "instances": [{"preset": "testbed", "jobs": 3}],
    ...     "policies": [{"name": ["fifo", "drf"]}],
    ... })
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     result = run_sweep(config, f"{directory}/sweep.parquet")
    >>> result.frame[["policy.name", "admitted"]].values.tolist()
    [['fifo', 3], ['drf', 3]]
    """
    path = Path(output)
    # Before anything is run: hours later would be too late.
    check_writable(path)
    if path.exists() and not path.is_file():  # the records would be beside a device
        raise OSError(errno.EINVAL, "expected a regular file", str(path))
    cells = expand(config, base=base, tasks=tasks) if isinstance(config, SweepConfig) else config
    work = _Work(ResultStore.beside(path), executor or Local(), retry_failed, on_progress, on_note)
    try:
        records = work.records_of(cells)
    except KeyboardInterrupt:
        work.count_again(cells)
        raise
    table = tabulate(cells, records)
    result = SweepResult(path, work.progress, cells[0].task, table, table.to_pandas())
    try:
        write_table(table, path)
    except OSError as error:
        raise UnwrittenSweepError(error, result) from None
    return result


@dataclass
class _Work:
    """Runs cells that have no record yet, first the shared cells that others need."""

    store: ResultStore | None  # without one, nothing is recorded
    executor: Executor
    retry_failed: bool
    report: Callable[[SweepProgress], None] | None
    note: Callable[[str], None] | None
    shared: dict[str, Cell] = field(default_factory=dict)
    records: dict[str, CellResult] = field(default_factory=dict)
    supply: dict[str, CellResult] = field(default_factory=dict)  # of the shared cells
    progress: SweepProgress = field(default_factory=lambda: SweepProgress(0))

    def records_of(self, cells: Sequence[Cell]) -> dict[str, CellResult]:
        """Run `cells` without a record; return the records of all `cells` by key."""
        records = self.records = self._stored_results(cells)
        remaining = {cell.key: cell for cell in cells if cell.key not in records}
        self.shared = {cell.key: cell for one in remaining.values() if (cell := one.shared_cell)}
        self.supply = self._stored_results(list(self.shared.values()))
        self.progress = SweepProgress(len(records) + len(remaining), kept=len(records))
        self._tell()
        LOGGER.info("%d cells, %d recorded before", self.progress.total, len(records))
        # Before hours of work, not after them, it must show that records can be written.
        if remaining and self.store is not None:
            self.store.prepare()
        # Shared cells come first: the others wait for their figures.
        for cell, record in self._run([c for k, c in self.shared.items() if k not in self.supply]):
            self.supply[cell.key] = record
            self._tell()
        ready, lost = _supply_shared(remaining.values(), self.supply)
        for cell, record in chain(self._saved(lost), self._run(ready)):
            records[cell.key] = record
            self._tell()
        return records

    def count_again(self, cells: Sequence[Cell]) -> None:
        """Count the records anew: an interruption may fall between a record and its report."""
        assert self.store is not None
        self.progress = replace(self.progress, total=len({cell.key for cell in cells}))
        self.records = recorded(cells, self.store)
        self.supply = recorded(self.shared.values(), self.store)
        self._tell()

    def _tell(self) -> None:
        self.progress = replace(
            self.progress,
            done=len(self.records),
            failed=sum(record.status == FAILED for record in self.records.values()),
            shared_total=len(self.shared),
            shared_done=len(self.supply),
        )
        if self.report is not None:
            self.report(self.progress)

    def _stored_results(self, cells: Sequence[Cell]) -> dict[str, CellResult]:
        """Return stored records by key, without failed ones if they are to be retried."""
        if self.store is None:
            return {}
        records = recorded(cells, self.store, on_note=self.note)
        if self.retry_failed:
            return {key: record for key, record in records.items() if record.status != FAILED}
        return records

    def _run(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, CellResult]]:
        if cells:
            # Closed also after Ctrl-C, so that no worker continues cells that are no longer wanted.
            with closing(self.executor.run(cells)) as finished:
                yield from self._saved(finished)

    def _saved(self, pairs: Iterable[tuple[Cell, CellResult]]) -> Iterator[tuple[Cell, CellResult]]:
        """Save each record before yielding it with its cell."""
        for cell, record in pairs:
            # Saved before it is reported: no cell counts as done that a crash could still lose.
            if self.store is not None:
                self.store.save(cell.key, cell.identity, record)
            LOGGER.info("%s, seed %d: %s", cell.policy, cell.seed, record.error or record.status)
            LOGGER.debug("that was the cell %s", cell.columns)
            yield cell, record


def _supply_shared(
    cells: Iterable[Cell], shared: Mapping[str, CellResult]
) -> tuple[list[Cell], list[tuple[Cell, CellResult]]]:
    """Return cells with figures of their shared cells, and cells whose shared cell failed."""
    ready, lost = [], []
    for cell in cells:
        record = None if cell.shared_cell is None else shared[cell.shared_cell.key]
        if record is not None and record.status == FAILED:
            lost.append((cell, record))
        else:
            ready.append(cell if record is None else replace(cell, shared=record.figures))
    return ready, lost


def run_until_interrupted(
    cells: Sequence[Cell],
    executor: Executor,
    store: ResultStore | None,
    on_progress: Callable[[SweepProgress], None],
    on_note: Callable[[str], None],
) -> dict[str, CellResult]:
    """Run `cells`; return records by key, after Ctrl-C those so far unless none is of a policy."""
    work = _Work(store, executor, False, on_progress, on_note)
    try:
        return work.records_of(cells)
    except KeyboardInterrupt:
        if not any(cell.policy is not None and cell.key in work.records for cell in cells):
            raise
        return work.records


def recorded(
    cells: Iterable[Cell], store: ResultStore, *, on_note: Callable[[str], None] | None = None
) -> dict[str, CellResult]:
    """Return the records of `cells` in `store` by key; damaged ones are noted and left out."""
    records = {}
    for cell in cells:
        try:
            record = store.load(cell.key, cell.identity)
        except DamagedRecordError as error:
            if on_note is not None:
                on_note(f"{error}; the cell is run again")
            continue
        if record is not None:
            records[cell.key] = record
    return records
