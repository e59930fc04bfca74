"""What a worker does: one cell at a time, on one thread, an error being a result like any other."""

from __future__ import annotations

import json
import os
import signal
import threading
import traceback
from time import perf_counter, sleep

from threadpoolctl import threadpool_limits

from experiments.evaluation.policies import entry_of
from experiments.sweep.cells import Cell
from experiments.sweep.fingerprint import fingerprint
from experiments.sweep.store import DONE, FAILED, CellResult
from experiments.sweep.task import MEASURED, Figures
from oasis.version import __version__

WATCH_SECONDS = 0.5

_ONE_AT_A_TIME = threading.Lock()  # a Dask worker may have threads: they would share its clock
_watching = False


def execute(cell: Cell) -> CellResult:
    """Do the task of `cell`; what goes wrong is recorded, not raised."""
    with _ONE_AT_A_TIME, threadpool_limits(limits=1):
        begin = perf_counter()
        try:
            figures = _figures(cell)
        except Exception as error:  # noqa: BLE001 - the other cells go on
            return failure(error)
        return CellResult(DONE, figures | {f"{MEASURED}cell_seconds": perf_counter() - begin})


def failure(error: BaseException) -> CellResult:
    """Record of a cell that `error` ended."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return CellResult(FAILED, {}, text, "".join(traceback.format_exception(error)))


def execute_for(driver: int, cell: Cell) -> CellResult:
    """Do the same in a process that belongs to the process `driver`, and ends with it."""
    global _watching  # noqa: PLW0603
    if not _watching:
        _watching = True
        for ending in (signal.SIGINT, signal.SIGTERM):  # they are for the driver to handle
            signal.signal(ending, signal.SIG_IGN)
        threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
    return execute(cell)


def _end_with(driver: int) -> None:
    while os.getppid() == driver:
        sleep(WATCH_SECONDS)
    os._exit(1)


def _figures(cell: Cell) -> Figures:
    here = fingerprint(cell.task.function)
    if here != cell.code:
        raise RuntimeError(
            f"the worker runs other code than the sweep: {__version__} {here}, "
            f"expected {cell.identity['version']} {cell.code}"
        )
    if cell.policy is not None:
        found = [
            (one["of"], one["sha256"]) for one in entry_of(cell.policy).files(cell.policy_options)
        ]
        if found != [(one["of"], one["sha256"]) for one in cell.files]:
            raise RuntimeError(
                f"the worker has other files of {cell.policy} than the sweep: got {found}"
            )
    figures = cell.task.function(cell.make_case())
    json.dumps(figures)  # a task that returns anything but plain data fails here, by name
    return figures
