"""Nightly: JAX, PyTorch and TensorFlow train in pods that are processes.

They need the extra `frameworks` and a C compiler. Each does what
`tests.kubernetes.trainings.regression` does, and has to end with its weights.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.instance_objects import Slots
from tests.kubernetes.processes.nodes import ProcessNodes
from tests.kubernetes.scene import Scene
from tests.kubernetes.training_jobs import Training, add_machines, controlled, reasons
from tests.kubernetes.trainings import regression

pytestmark = pytest.mark.nightly
CLOCK = Slots(slot_seconds=20.0, startup_seconds=12.0)
PATIENCE = 150.0  # seconds, of which a busy machine may take four times as many
# The sooner the better, so that a job has all the workers that it can use.
SOON = {"kind": "sigmoid", "priority": 10, "decayPerSecond": 0.005, "targetSeconds": 600}
RIVAL = {**SOON, "priority": 100}
# An urgent job gets room after a slot, and what stays idle for one is given away.
DRAGON = ("--policy", "dragon", "--set", "dragon.urgent_after=15", "--set", "dragon.idle_after=15")
SOURCE = Path(__file__).parent / "processes/podnet.c"
TENSORFLOW = {"TF_CPP_MIN_LOG_LEVEL": "2", "TF_NUM_INTRAOP_THREADS": "1"}
CHIEF = {"completion": "chief", "gracePeriodSeconds": 5}
Make = Callable[..., Training]


@pytest.fixture
def scene(cluster: Cluster) -> Scene:
    return Scene(cluster.plane, cluster.namespace, CLOCK)


@pytest.fixture
def training(scene: Scene, process_nodes: ProcessNodes) -> Make:
    """Makes trainings with a framework that is installed; their servers listen as pods do."""

    def make(module: str, words: list[str], spec: dict[str, Any], **more: Any) -> Training:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'oasis-scheduler[frameworks]'")
        if which("cc") is None:
            pytest.skip("servers of frameworks listen on all addresses: that needs a C compiler")
        library = process_nodes.directory / "podnet.so"
        build = ("cc", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl")
        subprocess.run(build, check=True)
        *options, program = words
        command = [sys.executable, *options, "-m", f"tests.kubernetes.trainings.{program}"]
        env = {"LD_PRELOAD": str(library), **more.pop("env", {})}
        return Training(scene, process_nodes, command, {**CHIEF, **spec}, env=env, **more)

    return make


def sleeper(scene: Scene, name: str, workers: int, slots: int, **spec: Any) -> dict[str, Any]:
    seconds = workers * slots * scene.clock.work_seconds
    made = scene.elastic(name, workers, workers, seconds, **spec)
    (container,) = made["spec"]["workers"]["template"]["spec"]["containers"]
    container["command"] = ["sleep", f"{slots * scene.clock.slot_seconds:g}"]
    return made


def run(
    scene: Scene,
    nodes: ProcessNodes,
    job: dict[str, Any],
    rival: dict[str, Any],
    *words: str,
    percent: float = 5,
) -> None:
    """The job trains, the rival comes when so much of that is done, and both complete."""
    job["spec"]["workers"]["initial"] = job["spec"]["workers"]["maximum"]
    name = job["metadata"]["name"]
    with controlled(scene, nodes, *words):
        scene.submit(job)
        until(lambda: "progress" in scene.statuses()[name], "it is known")
        until(lambda: progress(scene, name) >= percent, "it trains", PATIENCE)
        scene.submit(rival)
        wait_completed(scene, name, "rival")
    ended = scene.statuses()[name]
    assert 0 < ended["utility"] <= 10
    assert ended["progress"]["percent"] == 100


def wait_completed(scene: Scene, *names: str) -> None:
    def are_over() -> bool:
        phases = scene.phases()
        assert "Failed" not in phases.values(), scene.statuses()
        return all(phases[name] == "Completed" for name in names)

    until(are_over, f"{names} complete", PATIENCE)


def progress(scene: Scene, name: str) -> float:
    found = scene.statuses()[name]
    assert found.get("phase") != "Failed", found
    return float(found["progress"]["percent"])


def gangs(log: str, what: str) -> tuple[list[int], list[int]]:
    """Size of the gang at each of its starts, and the step it started from."""
    found = re.findall(rf"(\d+) {what} from step (\d+)", log)
    return [int(count) for count, _ in found], [int(step) for _, step in found]


def test_jax_is_shrunk_and_grown(scene: Scene, process_nodes: ProcessNodes, training: Make) -> None:
    add_machines(scene, process_nodes, 1, 1, 1, 1)
    spec = {"network": {"framework": "jax"}, "resizePolicy": "restart"}
    jax = training("jax", ["jax_regression"], spec)
    job, steps = jax.job("jax", (2, 4), 14, utility=SOON)
    rival = sleeper(scene, "rival", 2, 2, utility=RIVAL)
    run(scene, process_nodes, job, rival, "--policy", "recourse", percent=20)
    jax.check_weights("jax", steps)
    counts, begun = gangs(process_nodes.logs("jax-worker-0"), "processes")
    assert counts[:2] == [4, 2]
    assert counts[2] > 2, "it grows as far as what is left needs"
    assert begun[0] == 0 < begun[1] < begun[2]
    assert scene.statuses()["jax"]["resizes"]["restarts"] == len(counts) - 1
    assert reasons(scene, "jax") >= {"Admitted", "Planned", "WorkDone"}


def test_torchrun_goes_on_with_those_who_are_there(
    scene: Scene, process_nodes: ProcessNodes, training: Make
) -> None:
    add_machines(scene, process_nodes, 4)
    # Whoever leaves is noticed soon, and whoever comes is not waited for.
    hurry = {"PET_RDZV_CONF": "last_call_timeout=4,keep_alive_interval=1,read_timeout=30"}
    torch = training(
        "torch",
        ["-m", "torch.distributed.run", "torch_regression"],
        {"network": {"framework": "torch"}, "resizePolicy": "elastic"},
        env=hurry,
    )
    job, steps = torch.job("torch", (2, 4), 16)
    run(scene, process_nodes, job, sleeper(scene, "rival", 2, 1), *DRAGON)
    torch.check_weights("torch", steps)
    log = process_nodes.logs("torch-worker-0")
    counts, begun = gangs(log, "processes")
    assert log.count("torch-worker-0-") == 1, "the first worker stays"
    assert 4 in counts[counts.index(2) :], "two go, and come again"
    assert begun == sorted(begun)
    assert counts[-1] == 4
    assert scene.statuses()["torch"]["resizes"]["restarts"] == 0


def test_workers_of_a_sparse_tensorflow_cluster_come_and_go(
    scene: Scene, process_nodes: ProcessNodes, training: Make
) -> None:
    add_machines(scene, process_nodes, 3)
    spec = {"network": {"framework": "tensorflow"}, "resizePolicy": "elastic"}
    sparse = training("tensorflow", ["tensorflow_sparse"], spec, servers=True, env=TENSORFLOW)
    job, steps = sparse.job("tf", (1, 3), 18)
    run(scene, process_nodes, job, sleeper(scene, "rival", 2, 1), *DRAGON)
    with np.load(sparse.file("tf")) as found:
        assert found["step"] == steps
        np.testing.assert_allclose(found["weights"], regression.truth(), atol=0.2)
    starts = re.findall(r"worker (\d) from step (\d+)", process_nodes.logs("tf-worker"))
    assert [index for index, _ in starts].count("0") == 1, "the others go on without it"
    assert len(starts) > 3, "one that left comes again"
    assert process_nodes.logs("tf-ps").count("serving") == 1
    assert any(0 < int(step) < steps for index, step in starts if index != "0")


def test_dragon_scales_tensorflow(
    scene: Scene, process_nodes: ProcessNodes, training: Make
) -> None:
    """One GPU is given to an urgent job, and taken back when it has been idle for a while."""
    add_machines(scene, process_nodes, 3)
    spec = {"network": {"framework": "tensorflow"}, "resizePolicy": "restart"}
    servers = training("tensorflow", ["tensorflow_regression"], spec, servers=True, env=TENSORFLOW)
    job, steps = servers.job("tf", (2, 3), 12)
    run(scene, process_nodes, job, sleeper(scene, "rival", 1, 1), *DRAGON)
    servers.check_weights("tf", steps)
    counts, begun = gangs(process_nodes.logs("tf-worker-0"), "workers")
    assert counts == [2, 1, 2], "beside the chief"
    assert begun[0] == 0 < begun[1] < begun[2]
    assert scene.statuses()["tf"]["resizes"]["restarts"] == 2
    assert reasons(scene, "tf") >= {"Admitted", "Planned", "WorkDone"}


def test_specon_moves_a_training_whose_loss_has_converged(
    cluster: Cluster, process_nodes: ProcessNodes, training: Make
) -> None:
    """Of three jobs on its node one has converged: it goes to the other, where there are two."""
    # What still learns stays where it is, and so does what tells nothing of itself.
    scene = Scene(cluster.plane, cluster.namespace, Slots(slot_seconds=10.0))
    add_machines(scene, process_nodes, 3, 3)
    torch = training("torch", ["torch_regression"], {"network": {"framework": "torch"}})
    rates = {"converges": 0.01, "learns": 0.0002}
    trainings = {
        name: replace(torch, scene=scene, env={**torch.env, "RATE": str(rate)})
        for name, rate in rates.items()
    }
    steps, options = {}, ("--set", "specon.interval=10", "--set", "specon.alpha=0.02")
    with controlled(scene, process_nodes, "--policy", "specon", *options):
        for name in ("converges", "b", "learns", "d", "e"):  # in turn on two nodes
            if name in trainings:
                made, steps[name] = trainings[name].job(name, (1, 1), 13)
            else:
                made = sleeper(scene, name, 1, 60)
            scene.submit(made)
        until(lambda: scene.statuses().keys() >= rates.keys(), "they are there")
        wait_completed(scene, *rates)
    for name, made in trainings.items():
        made.check_weights(name, steps[name], rates[name])
    _, begun = gangs(process_nodes.logs("converges-"), "processes")
    assert len(begun) == 2, "once"
    assert 0 == begun[0] < begun[1]
    assert gangs(process_nodes.logs("learns-"), "processes") == ([1], [0])
    resized = {name for name, one in scene.statuses().items() if "resizes" in one}
    assert resized == {"converges"}
    assert scene.statuses()["converges"]["resizes"]["restarts"] == 1
