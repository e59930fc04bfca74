"""Nightly: JAX trains as an OasisJob whose pods are processes.

It needs the extra `frameworks` and a C compiler. It does what
`tests.kubernetes.trainings.regression` does, and has to end with its weights.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.kubernetes.adapter import elastic, wait_phases
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.processes.nodes import ProcessNodes
from tests.kubernetes.scene import Scene
from tests.kubernetes.training_jobs import Training, add_machines, start_controller

pytestmark = pytest.mark.nightly
CLOCK = SlotClock(slot_seconds=20.0, startup_seconds=12.0)
RECOURSE = ("--policy", "recourse")
RIVAL = {"kind": "sigmoid", "priority": 100, "decayPerSecond": 0.005, "targetSeconds": 600}
SOURCE = Path(__file__).parent / "processes/podnet.c"
Make = Callable[..., Training]


@pytest.fixture
def scene(process_nodes: ProcessNodes, cluster: Cluster) -> Scene:
    found = Scene(cluster.plane, cluster.namespace, CLOCK)
    add_machines(found, process_nodes, gpus=4)
    return found


@pytest.fixture
def training(scene: Scene, process_nodes: ProcessNodes) -> Make:
    """Makes trainings with a framework that is installed; their servers listen as pods do."""

    def make(module: str, words: list[str], network: dict[str, Any], **more: Any) -> Training:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'oasis-scheduler[frameworks]'")
        if which("cc") is None:
            pytest.skip("servers of frameworks listen on all addresses: that needs a C compiler")
        library = process_nodes.directory / "podnet.so"
        build = ("cc", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl")
        subprocess.run(build, check=True)
        spec = {"network": network, "gracePeriodSeconds": 5, **more.pop("spec", {})}
        command = [sys.executable, "-m", *words]
        env = {"LD_PRELOAD": str(library)}
        return Training(scene, process_nodes, command, spec, env=env, **more)

    return make


def sleeper(scene: Scene, workers: int, slots: int) -> dict[str, Any]:
    """A job that is worth more than the trainings, and does nothing for so many slots."""
    seconds = workers * slots * scene.clock.work_seconds
    made = elastic(scene, "rival", workers, workers, seconds, utility=RIVAL)
    (container,) = made["spec"]["workers"]["template"]["spec"]["containers"]
    container["command"] = ["sleep", f"{slots * scene.clock.slot_seconds:g}"]
    return made


def run(scene: Scene, nodes: ProcessNodes, job: dict[str, Any], rival: dict[str, Any]) -> None:
    """The job trains, the rival comes when a fifth of that is done, and both complete."""
    controller = start_controller(scene, nodes, *RECOURSE)
    scene.submit(job)
    name = job["metadata"]["name"]
    try:
        until(lambda: "progress" in scene.statuses()[name], "it is known")
        until(lambda: scene.statuses()[name]["progress"]["percent"] >= 20, "it trains", 120.0)
        scene.submit(rival)
        wait_phases(scene, {name: "Completed", "rival": "Completed"}, 400.0)
    finally:
        print(controller.read_text(), nodes.logs())  # noqa: T201 (shown if it fails)


def gangs(log: str, what: str) -> tuple[list[int], list[int]]:
    """How many there were each time that a gang began, and from which steps."""
    found = re.findall(rf"(\d+) {what} from step (\d+)", log)
    return [int(count) for count, _ in found], [int(step) for _, step in found]


def test_jax_is_shrunk_and_grown(scene: Scene, process_nodes: ProcessNodes, training: Make) -> None:
    jax = training(
        "jax",
        ["tests.kubernetes.trainings.jax_regression"],
        {"framework": "jax"},
        spec={"resizePolicy": "restart"},
    )
    job, steps = jax.job("jax", (2, 4), 16)
    run(scene, process_nodes, job, sleeper(scene, 2, 2))
    jax.check_weights("jax", steps)
    counts, begun = gangs(process_nodes.logs("jax-worker-0"), "processes")
    assert counts[:2] == [4, 2]
    assert counts[2] > 2, "it grows as far as what is left needs"
    assert begun[0] == 0 < begun[1] < begun[2]
