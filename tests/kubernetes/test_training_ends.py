"""How a real training ends: it says so itself, later than was estimated, or fails too often."""

from __future__ import annotations

import sys
from typing import Any

from oasis.kubernetes.api.resources import PODS
from oasis.kubernetes.cluster.pods import is_working
from oasis.kubernetes.names import JOB_NAME, NODE_ROLE, TASK
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.kubernetes.adapter import wait_phases
from tests.kubernetes.cluster import GPU, Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.processes.nodes import ProcessNodes
from tests.kubernetes.scene import Scene, told
from tests.kubernetes.training_jobs import ROOM, Training, add_machines, reasons, start_controller

CLOCK = SlotClock(slot_seconds=4.0, startup_seconds=2.0)
PROGRAM = [sys.executable, "-m", "tests.kubernetes.trainings.regression"]
SPEC = {"network": {}, "resizePolicy": "restart", "completion": "chief", "gracePeriodSeconds": 5}


def workers(scene: Scene, name: str) -> list[dict[str, Any]]:
    """Worker pods of a job."""
    pods = scene.admin.list_all(PODS, scene.namespace)[0]
    labels = [(pod, pod["metadata"].get("labels") or {}) for pod in pods]
    return [pod for pod, at in labels if (at.get(JOB_NAME), at.get(TASK)) == (name, "worker")]


def test_a_training_ends_when_its_chief_does(cluster: Cluster, process_nodes: ProcessNodes) -> None:
    nodes, scene = process_nodes, Scene(cluster.plane, cluster.namespace, CLOCK)
    add_machines(scene, nodes, 1, 1)
    nodes.add("gpu-fast", {**ROOM, GPU: "2"}, {NODE_ROLE: "worker", "gpu": "a100"})
    training = Training(scene, nodes, PROGRAM, SPEC, servers=True)
    longer, steps = training.job("longer", (2, 2), 6)
    longer["spec"]["work"]["workerSeconds"] /= 3  # its owner takes it for shorter than it is
    longer["spec"]["workers"]["template"]["spec"]["nodeSelector"] = {"gpu": "a100"}
    broken, _ = Training(scene, nodes, PROGRAM, SPEC, servers=True, env={"PAUSE": "-1"}).job(
        "broken", (1, 1), 6, backoffLimit=2
    )
    controller = start_controller(scene, nodes, "--policy", "fifo")
    phases = {"longer": [""], "broken": [""]}

    def is_over() -> bool:
        for name, found in phases.items():
            before = workers(scene, name)
            found.append(scene.phases()[name])
            if found[-1] == "Running" != found[-2]:
                assert all(map(is_working, workers(scene, name))), (name, before)
        return phases["longer"][-1] == "Completed" and phases["broken"][-1] == "Failed"

    try:
        for made in (longer, broken):
            scene.submit(made)
        until(lambda: "progress" in scene.statuses()["longer"], "it is known")
        until(lambda: "Underestimated" in told(scene.statuses()["longer"]), "used up", 90.0)
        placed = {pod["spec"]["nodeName"] for pod in workers(scene, "longer")}
        assert placed == {"gpu-fast"}
        until(is_over, "one has completed, one has failed", 90.0)
    finally:
        print(controller.read_text(), nodes.logs())  # noqa: T201 (shown if it fails)
    training.check_weights("longer", steps)
    assert scene.statuses()["longer"]["progress"]["percent"] == 100
    assert reasons(scene, "longer") >= {"Admitted", "Underestimated", "WorkDone"}
    assert "Running" not in phases["broken"], "it never was ready"
    failed = told(scene.statuses()["broken"])["Complete"]
    assert (failed["status"], failed["reason"]) == ("False", "BackoffLimitExceeded")
    assert "3 failures" in failed["message"]
    assert "ended with exit code 1" in failed["message"]
    wait_phases(scene, {"longer": "Completed", "broken": "Failed"})
    until(lambda: not workers(scene, "broken"), "nothing of it runs on")
