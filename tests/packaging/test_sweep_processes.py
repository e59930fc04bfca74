"""Sweeps in processes of their own: killed, interrupted, and on a real Dask cluster."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psutil
import pyarrow as pa
import pytest
from pyarrow import parquet

from experiments.sweep import Dask, expand, run_sweep
from oasis.model.errors import OasisError
from tests.packaging.commands import BLOCK
from tests.sweeping import FATES, small

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120.0
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "PYTHONWARNINGS": "",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
}

GRID = """
seeds = {count = 4}

[[instances]]
preset = "calibrated"
jobs = [40, 50]
worker_servers = 10
ps_servers = 10
horizon = 60

[[policies]]
name = ["oasis", "rrh"]
"""
CELLS = 16


def start(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT,
        env=ENVIRONMENT | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def sweep(grid: Path, output: Path, *more: object) -> subprocess.Popen[str]:
    return start("experiments.cli", "sweep", grid, "-o", output, "--json", *more)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=2 * PATIENCE_SECONDS)
    assert process.returncode == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = monotonic() + PATIENCE_SECONDS
    while not condition():
        assert process.poll() is None, process.communicate()
        assert monotonic() < end
        sleep(0.02)


def records(output: Path) -> list[Path]:
    return list(output.with_name(f"{output.name}.cells").glob("*.json"))


def content(output: Path) -> pa.Table:
    table = parquet.read_table(output)
    return table.select([name for name in table.column_names if not name.startswith("measured.")])


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grid") / "grid.toml"
    path.write_text(GRID, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(grid: Path) -> pa.Table:
    """Content of a sweep that ran through."""
    output = grid.with_name("whole.parquet")
    document = finished(sweep(grid, output))
    assert (document["cells"], document["failed"], document["kept"]) == (CELLS, 0, 0)
    return content(output)


def test_killed_sweep_continues_and_ends_with_the_same_content(
    grid: Path, whole: pa.Table, tmp_path: Path
) -> None:
    output = tmp_path / "killed.parquet"
    process = sweep(grid, output, "--processes", 2)
    wait_for(lambda: len(records(output)) >= 5, process)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert len(workers) >= 2
    gone, alive = psutil.wait_procs(workers, timeout=10)
    for worker in alive:
        worker.kill()
    assert (len(gone), alive) == (len(workers), [])
    process.communicate()

    kept = {path: path.stat().st_mtime_ns for path in records(output)}
    assert 5 <= len(kept) < CELLS
    assert not output.exists()
    document = finished(sweep(grid, output, "--processes", 1))
    assert document["kept"] == len(kept)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert content(output).equals(whole)


@pytest.mark.parametrize(
    ("ending", "send"),
    [
        pytest.param(signal.SIGINT, os.killpg, id="Ctrl-C at a terminal: all its processes"),
        pytest.param(signal.SIGINT, os.kill, id="SIGINT, the driver", marks=pytest.mark.nightly),
        pytest.param(signal.SIGTERM, os.kill, id="SIGTERM, the driver"),
        pytest.param(signal.SIGTERM, os.killpg, id="SIGTERM, all its processes"),
    ],
)
def test_ctrl_c_and_sigterm_say_what_is_kept_and_leave_no_process(
    grid: Path, tmp_path: Path, send: Callable[[int, int], None], ending: int
) -> None:
    output = tmp_path / "interrupted.parquet"
    process = sweep(grid, output, "--processes", 2)
    wait_for(lambda: len(records(output)) >= 3, process)
    workers = psutil.Process(process.pid).children(recursive=True)
    send(process.pid, ending)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out) == (130, "")
    kept = f"{len(records(output))} of {CELLS} cells are recorded"
    lines = [line for line in err.splitlines() if not line.endswith(f" of {CELLS} cells")]
    assert lines == [f"oasis: interrupted; {kept}, the same command goes on from there"]
    assert psutil.wait_procs(workers, timeout=PATIENCE_SECONDS)[1] == []


# --- Dask -------------------------------------------------------------------------------------


@contextmanager
def running(*arguments: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process, ended with its own children at the end."""
    process = start(*arguments, **environment)
    try:
        yield process
    finally:
        children = psutil.Process(process.pid).children(recursive=True)
        for one in (process, *children):  # a nanny would start its worker anew
            one.kill()
        process.communicate()
        psutil.wait_procs(children, timeout=PATIENCE_SECONDS)


PLACE = ("--host", "127.0.0.1", "--no-dashboard")


@contextmanager
def scheduling(folder: Path) -> Iterator[str]:
    """Address of a scheduler without workers."""
    file = folder / "scheduler.json"
    with running("dask", "scheduler", *PLACE, "--port", 0, "--scheduler-file", file) as scheduler:
        wait_for(lambda: file.exists() and file.read_text(encoding="utf-8") != "", scheduler)
        yield json.loads(file.read_text(encoding="utf-8"))["address"]


def working(address: str, folder: Path, **environment: str) -> Any:
    room = ("--nthreads", 1, "--memory-limit", 0, "--local-directory", folder)
    return running("dask", "worker", address, *PLACE, *room, **environment)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a scheduler with two workers, each a process."""
    folder = tmp_path_factory.mktemp("dask")
    with (
        scheduling(folder) as address,
        working(address, folder / "0"),
        working(address, folder / "1"),
    ):
        yield address


def test_dask_gives_the_content_of_a_local_sweep(
    grid: Path, whole: pa.Table, cluster: str, tmp_path: Path
) -> None:
    output = tmp_path / "dask.parquet"
    document = finished(sweep(grid, output, "--engine", "dask", "--scheduler", cluster))
    assert document["cells"] == CELLS
    assert content(output).equals(whole)


def test_dask_gives_the_whatif_of_local_processes(cluster: str, tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    rows = [f"j{k},{60 * k},{300 + 900 * (k % 4 == 0)},{2 ** (k % 4)}" for k in range(30)]
    trace.write_text("\n".join(("id,submitted,duration,gpus", *rows)) + "\n")
    command = ("whatif", trace, "--machines", "1x8", "--policies", "fifo", "--json")
    command = (*command, "--utilities", "drawn", "--loads", "1.5")
    dask = ("--engine", "dask", "--scheduler", cluster)
    here, there = (
        finished(start("experiments.cli", *command, *more)) for more in (("--processes", 2), dask)
    )
    assert there["settings"] == here["settings"]
    assert len(there["settings"]) == 2


@pytest.mark.parametrize("task", ["failing", "dying"])
def test_cell_that_fails_or_kills_its_worker_is_recorded_alike(
    cluster: str, tmp_path: Path, task: str
) -> None:
    (tmp_path / "broken").touch()
    options = {"name": task, "folder": str(tmp_path), "doomed": [0]}
    policies = [{"name": "drf"}]
    grid = small(task=options, policies=policies, instances=[{"preset": "testbed", "jobs": 3}])
    cells = expand(grid, tasks=FATES)
    here = run_sweep(cells, tmp_path / "here.parquet")
    there = run_sweep(cells, tmp_path / "there.parquet", executor=Dask(cluster))
    assert content(there.output).equals(content(here.output))
    assert there.frame["status"].tolist() == ["done", "failed"]


def refused(address: str, tmp_path: Path) -> str:
    """What a sweep says of a scheduler with two seconds to answer, within a few more."""
    begin = monotonic()
    with pytest.raises(OasisError) as caught:
        run_sweep(small(), tmp_path / "o.parquet", executor=Dask(address, 2.0))
    assert monotonic() - begin < 8.0
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"scheduler: expected a Dask scheduler at {address}")


def test_scheduler_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert refused("tcp://127.0.0.1:9", tmp_path) == ", no answer in 2 s"
    assert refused("nonsense", tmp_path).startswith(": missing port number")


def test_a_stranger_at_the_address_of_a_scheduler_is_told_as_such(tmp_path: Path) -> None:
    """Dask takes the greeting of an SSH server for the size of a message, and NumPy for memory."""

    def greet(server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:  # closed
                return
            with connection, suppress(ConnectionError):
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                connection.recv(1)  # until the other side has had enough

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=greet, args=(server,), daemon=True)
        thread.start()
        told = refused(f"tcp://127.0.0.1:{server.getsockname()[1]}", tmp_path)
        server.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE_SECONDS)
    assert told.startswith(", something else answers there (")


def test_scheduler_without_workers_is_told_as_such(tmp_path: Path) -> None:
    with scheduling(tmp_path) as address:
        assert refused(address, tmp_path) == " with workers, it has none after 2 s"


@pytest.mark.parametrize(
    ("absent", "what"), [("highspy", "solving offline"), ("joblib", "sweeping")]
)
def test_a_worker_that_lacks_a_package_is_named_before_any_cell_runs(
    tmp_path: Path, absent: str, what: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCK.format(name=absent), encoding="utf-8")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    cells = expand(small(task={"name": "ratio"}))
    with scheduling(tmp_path) as address, working(address, tmp_path / "0", PYTHONPATH=path):
        executor = Dask(address, PATIENCE_SECONDS)
        with pytest.raises(OasisError) as caught:
            run_sweep(cells, tmp_path / "o.parquet", executor=executor)
    text = str(caught.value)
    assert text.startswith("scheduler: 1 of 1 workers cannot do the cells, tcp://127.0.0.1:")
    extra = {"highspy": "solve", "joblib": "sweep"}[absent]
    assert f"{what} needs {absent}: pip install 'oasis-scheduler[{extra}]'" in text
    assert records(tmp_path / "o.parquet") == []
