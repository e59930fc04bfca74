"""Executors of cells: the cores of this machine, or a Dask cluster."""

from __future__ import annotations

import json
import os
import signal
import threading
import traceback
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import resource_tracker
from time import monotonic, perf_counter, sleep
from typing import Any, TypeAlias

import joblib
from threadpoolctl import threadpool_limits

from experiments.evaluation.policies import entry_of
from experiments.sweep.cells import Cell
from experiments.sweep.store import DONE, FAILED, CellResult
from experiments.sweep.tasks import MEASURED, fingerprint
from oasis.model.errors import InputError, OasisError
from oasis.model.instance import Instance
from oasis.scheduling.site import site_of
from oasis.version import __version__

# A killed driver cannot report it, but its children get another parent: they look twice a second.
WATCH_SECONDS = 0.5
ENDINGS = (signal.SIGINT, signal.SIGTERM)  # they are for the driver to handle

_ONE_AT_A_TIME = threading.Lock()  # a Dask worker may have threads: they would share its clock
_watching = False


def execute(cell: Cell) -> CellResult:
    """Do the task of `cell` and return its record, which says so if it failed."""
    # The cells fill the cores; threads of NumPy beside them would only disturb measured times.
    with _ONE_AT_A_TIME, threadpool_limits(limits=1):
        begin = perf_counter()
        try:
            check_code(cell)
            figures = cell.task.function(cell.make_case())
            json.dumps(figures)  # a task that returns anything but plain data fails here, by name
        except Exception as error:  # noqa: BLE001 - the other cells go on
            return failure(error)
        return CellResult(DONE, figures | {f"{MEASURED}cell_seconds": perf_counter() - begin})


def failure(error: BaseException) -> CellResult:
    """Return the record of a cell whose task raised `error`."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return CellResult(FAILED, {}, text, "".join(traceback.format_exception(error)))


def execute_for(driver: int, folder: str, cell: Cell) -> tuple[Cell, CellResult]:
    """Execute a cell in `folder`, in a worker that exits once process `driver` has ended."""
    global _watching  # noqa: PLW0603
    if not _watching:
        _watching = True
        for ending in ENDINGS:
            signal.signal(ending, signal.SIG_IGN)
        if hasattr(signal, "pthread_sigmask"):  # a task's own processes begin with none blocked
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
        threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
    os.chdir(folder)  # joblib keeps its processes, and files of a cell are named from here
    return cell, execute(cell)


def _end_with(driver: int) -> None:
    while os.getppid() == driver:
        sleep(WATCH_SECONDS)
    # A thread cannot end its process otherwise, and nobody is left to take the result.
    os._exit(1)


def check_code(cell: Cell) -> None:
    """Raise an error unless this process has the code and files that the cell was made with."""
    # A Dask worker has its own copy of the package, perhaps an older one.
    own_code = fingerprint(cell.task.function)
    if own_code != cell.code:
        expected = f"expected {cell.identity['version']} {cell.code}"
        other = f"the worker runs other code than the sweep: {__version__} {own_code}"
        raise RuntimeError(f"{other}, {expected}")
    files = [] if cell.policy is None else entry_of(cell.policy).files(cell.policy_options)
    digests = [(one["of"], one["sha256"]) for one in files]
    if digests != [(one["of"], one["sha256"]) for one in cell.files]:
        other = f"the worker has other files of {cell.policy} than the sweep"
        raise RuntimeError(f"{other}: got {digests}")


def rehearse(cells: Sequence[Cell]) -> None:
    """Prepare the work of `cells` without doing it, so that a lack of packages shows now."""
    for cell in cells:
        check_code(cell)
        for name in cell.task.modules:
            import_module(name)
        if cell.policy is not None:
            instance = cell.source.make(cell.seed)
            if isinstance(instance, Instance):
                site = site_of(instance.cluster, instance.horizon)
            else:
                site = instance.workload.site
            cell.make_policy(instance).reset(site)


def check_cluster(address: str, seconds: float) -> None:
    """Raise `InputError` unless a Dask scheduler answers at `address` in `seconds`."""
    # A client of Dask that finds none takes its time to close and prints a traceback.
    from distributed.utils import LoopRunner  # noqa: PLC0415 (needs an extra)

    expected = f"expected a Dask scheduler at {address}"
    begin = monotonic()
    try:
        # In a thread of its own, because an event loop may run here already, as in Jupyter.
        LoopRunner().run_sync(_find_scheduler, address, callback_timeout=seconds)
    except (OSError, ValueError) as error:  # says what is wrong with the address, or nothing
        is_late = monotonic() - begin >= seconds
        why = f", no answer in {seconds:g} s" if is_late else f": {error}"
        raise InputError("scheduler", expected + why) from None
    except Exception as error:  # noqa: BLE001 - whatever a stranger's answer makes of Dask's reader
        kind = type(error).__name__.strip("_")
        expected += f", something else answers there ({kind})"
        raise InputError("scheduler", expected) from None


async def _find_scheduler(address: str) -> None:
    from distributed.core import rpc  # noqa: PLC0415 (needs an extra)
    from distributed.security import Security  # noqa: PLC0415

    security = Security().get_connection_args("client")
    async with rpc(address, connection_args=security) as scheduler:
        identity = await scheduler.identity()
    if identity["type"] != "Scheduler":
        raise InputError("", f"got a {identity['type']}")


LOST = CellResult(
    FAILED, {}, "WorkerDied: the worker process ended before the cell did, every time"
)


@dataclass(frozen=True, slots=True)
class Here:
    """Executor that runs cells one by one in this process, for very short tasks."""

    def run(self, cells: Sequence[Cell]) -> Generator[tuple[Cell, CellResult]]:
        """Run `cells` and yield each with its record."""
        for cell in cells:
            yield cell, execute(cell)


@dataclass(frozen=True, slots=True)
class Local:
    """Executor that runs cells in worker processes of this machine, through joblib.

    Parameters
    ----------
    jobs : int
        Number of processes; -1 for one per core.
    """

    jobs: int = -1

    def run(self, cells: Sequence[Cell]) -> Generator[tuple[Cell, CellResult]]:
        """Run `cells` and yield each with its record; a cell that kills its worker fails alone."""
        # joblib then gives up all cells in flight and does not say whose worker it was, so each of
        # them is run once more, alone.
        remaining = {cell.key: cell for cell in cells}
        while remaining:
            started: list[Cell] = []
            try:
                for cell, record in _parallel(self.jobs, list(remaining.values()), started):
                    del remaining[cell.key]
                    yield cell, record
            except BrokenProcessPool:
                for cell in started:
                    if remaining.pop(cell.key, None) is None:
                        continue
                    try:
                        ((_, record),) = _parallel(1, [cell], [])
                    except BrokenProcessPool:
                        record = LOST
                    yield cell, record


def _parallel(
    jobs: int, cells: Sequence[Cell], started: list[Cell]
) -> Generator[tuple[Cell, CellResult]]:
    """Run cells in `jobs` workers; yield each with its record; `started` gets those begun."""
    # no more than there is work for: joblib would start them all
    workers = min(joblib.cpu_count() if jobs == -1 else jobs, len(cells))

    def calls() -> Iterator[object]:
        for cell in cells:
            started.append(cell)
            yield joblib.delayed(execute_for)(os.getpid(), os.getcwd(), cell)

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        # Two at least: with one, joblib would run the cells in this process, which must survive.
        parallel = joblib.Parallel(
            n_jobs=max(2, workers),
            # As many cells in flight as run: when a worker dies, no other cell is under suspicion.
            pre_dispatch=workers,
            batch_size=1,
            # joblib would otherwise write large arrays to files that the workers share.
            max_nbytes=None,
            return_as="generator_unordered",
        )
    with _signals_held():
        results = parallel(calls())
    yield from results


@contextmanager
def _signals_held() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM inside, so that started processes inherit that; mute warnings."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started inside, this process of the standard library would leave the signals unblocked.
    resource_tracker.ensure_running()
    # A process inherits the mask: before `execute_for` it would print a traceback of its imports.
    former = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    # joblib's own tracker would warn of what an interruption leaves it to remove.
    warnings = os.environ.get("PYTHONWARNINGS")
    quiet = "ignore:resource_tracker:UserWarning"
    os.environ["PYTHONWARNINGS"] = f"{warnings},{quiet}" if warnings else quiet
    try:
        yield
    finally:
        if warnings is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = warnings
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


@dataclass(frozen=True, slots=True)
class Dask:
    """Executor that runs cells on an existing Dask cluster with this package installed.

    Parameters
    ----------
    scheduler : str
        Its address, such as ``tcp://10.0.0.1:8786``.
    connect_seconds : float
        How long to try to reach it, and for it to have a worker.
    """

    scheduler: str
    connect_seconds: float = 10.0

    def run(self, cells: Sequence[Cell]) -> Generator[tuple[Cell, CellResult]]:
        """Run `cells` and yield each with its record; a cell that kills several workers fails."""
        from distributed import Client, KilledWorker, as_completed  # noqa: PLC0415

        check_cluster(self.scheduler, self.connect_seconds)
        with Client(self.scheduler, timeout=self.connect_seconds, set_as_default=False) as client:
            self._check_workers(client, cells)
            # A pure call may be answered from the cluster's
            # memory, with times that were measured before.
            futures = {client.submit(execute, cell, pure=False): cell for cell in cells}
            for future in as_completed(list(futures), loop=client.loop):
                cell = futures.pop(future)
                if future.status == "finished":
                    yield cell, future.result()
                elif future.status != "error":
                    raise InputError("scheduler", f"the one at {self.scheduler} went away")
                elif isinstance(future.exception(), KilledWorker):
                    yield cell, LOST
                else:  # such as a worker that came later and lacks a package
                    yield cell, failure(future.exception())

    def _check_workers(self, client: Any, cells: Sequence[Cell]) -> None:
        """Raise `InputError` unless there are workers that can do every kind of cell."""
        try:
            client.wait_for_workers(1, timeout=self.connect_seconds)
        except TimeoutError:
            expected = f"expected a Dask scheduler at {self.scheduler} with workers"
            none = f"{expected}, it has none after {self.connect_seconds:g} s"
            raise InputError("scheduler", none) from None
        kinds = {(cell.task.name, cell.policy): cell for cell in cells}
        # Not as a task, which would wait behind the cells of another sweep.
        answers = client.run(rehearse, list(kinds.values()), on_error="return")
        # An error of the input is the cell's own, and is recorded when it runs.
        fine = type(None), OasisError
        lacking = [f"{name}: {one}" for name, one in answers.items() if not isinstance(one, fine)]
        if lacking:
            count = f"{len(lacking)} of {len(answers)} workers cannot do the cells"
            # A worker without the package fails fast, and would get most of the cells.
            raise InputError("scheduler", f"{count}, {' '.join(lacking[0].split())}")


# Each runs cells with different keys, and yields them with their records in any order.
Executor: TypeAlias = Here | Local | Dask
