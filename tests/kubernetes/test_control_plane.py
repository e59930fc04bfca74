"""The control plane of the tests: its log, what was built, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.kubernetes.cluster import Cluster, pod, room
from tests.kubernetes.controlplane.guardian import processes_in, started
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.processes.nodes import ProcessNodes

ROOT = Path(__file__).resolve().parents[2]


def test_default_run_collects_no_kubernetes_test():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/paper", "tests/kubernetes"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "tests/paper/" in done.stdout
    assert "tests/kubernetes/" not in done.stdout


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Directory in which control planes work, here and in processes that are started."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    monkeypatch.undo()
    tempfile.tempdir = None


@pytest.fixture
def elsewhere(scratch, controlplane_binary):
    """A control plane in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.kubernetes.controlplane", "--nodes", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_owner_that_is_ended_takes_its_control_plane_along(ending, elsewhere, scratch):
    about = json.loads(elsewhere.stdout.readline())
    assert Path(about["directory"]).is_dir()
    assert all(started(pid) for pid in about["pids"].values())
    elsewhere.send_signal(ending)
    until(lambda: not processes_in(scratch), "no process is left")
    until(lambda: not list(scratch.iterdir()), "no file is left")
    assert not any(started(pid) for pid in about["pids"].values())


STUBBORN = "trap '' TERM; setsid sh -c 'echo $$ > inner; sleep 600' & sleep 600"


@pytest.mark.usefixtures("namespaces")
def test_nothing_runs_on_after_the_nodes(cluster: Cluster) -> None:
    """Pods as processes: nor what one has started in a session of its own."""
    with ProcessNodes(cluster.plane) as nodes:
        nodes.add("machine", room(4), {})
        body = pod("one", 1)
        body["spec"]["containers"][0]["command"] = ["sh", "-c", STUBBORN]
        cluster.create(body)
        (inner,) = until(lambda: list(nodes.directory.glob("*/inner")), "it runs")
        assert processes_in(inner.parent)
    assert not processes_in(inner.parent)
    assert not nodes.directory.exists()
