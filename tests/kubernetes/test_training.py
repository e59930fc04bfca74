"""``make kubernetes-train``: trainings that are shrunk and grown, end later than said, or fail.

`oasis kubernetes run` schedules OasisJobs on nodes whose pods are processes. Each trains with NumPy
on a parameter server, and ends with the right weights.
"""

from __future__ import annotations

import math
import re
import sys

import numpy as np
import pytest

from tests.kubernetes.cluster import Cluster, Object, condition, is_running, told
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.instance_objects import Slots
from tests.kubernetes.names import GPU, JOB_NAME, NODE_ROLE, TASK
from tests.kubernetes.processes.nodes import ProcessNodes
from tests.kubernetes.scene import Scene
from tests.kubernetes.training_jobs import (
    ROOM,
    Training,
    add_machines,
    controlled,
    reasons,
    regression_weights,
)
from tests.kubernetes.trainings import regression

CLOCK = Slots(slot_seconds=5.0, startup_seconds=3.0)
PROGRAM = [sys.executable, "-m", "tests.kubernetes.trainings.regression"]
SPEC = {"network": {}, "resizePolicy": "restart", "gracePeriodSeconds": 5}
RIVAL = {"kind": "sigmoid", "priority": 100, "decayPerSecond": 0.01, "targetSeconds": 120}


@pytest.fixture
def scene(cluster: Cluster, process_nodes: ProcessNodes) -> Scene:
    found = Scene(cluster.plane, cluster.namespace, CLOCK)
    add_machines(found, process_nodes, 1, 1)
    return found


def test_a_training_makes_way_and_goes_on_from_its_checkpoint(
    scene: Scene, process_nodes: ProcessNodes
) -> None:
    nodes = process_nodes
    training = Training(scene, nodes, PROGRAM, SPEC, servers=True)
    first, first_steps = training.job("first", (1, 2), 12)
    rival, rival_steps = training.job("rival", (1, 1), 2, utility=RIVAL)
    with controlled(scene, nodes, "--policy", "recourse"):
        scene.submit(first)
        until(lambda: "progress" in scene.statuses()["first"], "it is known")
        until(lambda: scene.statuses()["first"]["progress"]["percent"] >= 20, "it trains")
        scene.submit(rival)
        scene.wait({"first": "Completed", "rival": "Completed"}, 120.0)
    training.check_weights("first", first_steps)
    training.check_weights("rival", rival_steps)
    np.testing.assert_allclose(regression_weights(first_steps), regression.truth(), atol=0.1)

    gangs = re.findall(r"serving (\d) workers from step (\d+)", nodes.logs("first-ps-0"))
    saved = re.findall(r"saved step (\d+)", nodes.logs("first-ps-0"))
    # Once what is left is little, one worker does it: a fourth gang may come.
    assert [int(workers) for workers, _ in gangs][:3] == [2, 1, 2]
    begun = [step for _, step in gangs]
    assert begun == ["0", *saved][: len(begun)], "each began where the last one ended"
    assert int(saved[0]) > 0

    status = scene.statuses()
    assert status["first"]["utility"] == 10
    assert status["first"]["resizes"]["restarts"] == len(gangs) - 1
    assert status["first"]["progress"]["percent"] == 100
    slots = status["rival"]["completionSlot"] - status["rival"]["arrivalSlot"]
    worth = 100 / (1 + math.exp(0.01 * (slots * CLOCK.slot_seconds - 120)))
    assert math.isclose(status["rival"]["utility"], worth, rel_tol=1e-6)
    assert status["rival"]["completionSlot"] < status["first"]["completionSlot"]
    for name in ("first", "rival"):
        assert reasons(scene, name) == {"Admitted", "Planned", "WorkDone"}


def workers(scene: Scene, name: str) -> list[Object]:
    at = f"{JOB_NAME}={name},{TASK}=worker"
    return scene.api.items("pods", scene.namespace, labelSelector=at)


def is_ready(pod: Object) -> bool:
    return is_running(pod) and condition(pod, "Ready").get("status") == "True"


def test_a_training_ends_when_its_chief_does(scene: Scene, process_nodes: ProcessNodes) -> None:
    """Later than was estimated; another one fails too often."""
    nodes, spec = process_nodes, {**SPEC, "completion": "chief"}
    nodes.add("gpu-fast", {**ROOM, GPU: "2"}, {NODE_ROLE: "worker", "gpu": "a100"})
    training = Training(scene, nodes, PROGRAM, spec, servers=True)
    longer, steps = training.job("longer", (2, 2), 6)
    longer["spec"]["work"]["workerSeconds"] /= 3  # its owner takes it for shorter than it is
    longer["spec"]["workers"]["template"]["spec"]["nodeSelector"] = {"gpu": "a100"}
    broken, _ = Training(scene, nodes, PROGRAM, spec, servers=True, env={"PAUSE": "-1"}).job(
        "broken", (1, 1), 6, backoffLimit=2
    )
    phases = {"longer": [""], "broken": [""]}

    def is_over() -> bool:
        for name, found in phases.items():
            found.append(scene.phases()[name])
            if found[-1] == "Running" != found[-2]:
                assert all(map(is_ready, workers(scene, name))), name
        return phases["longer"][-1] == "Completed" and phases["broken"][-1] == "Failed"

    with controlled(scene, nodes, "--policy", "fifo"):
        for made in (longer, broken):
            scene.submit(made)
        until(lambda: "progress" in scene.statuses()["longer"], "it is known")
        until(lambda: "Underestimated" in told(scene.statuses()["longer"]), "used up", 90.0)
        placed = {pod["spec"]["nodeName"] for pod in workers(scene, "longer")}
        assert placed == {"gpu-fast"}
        until(is_over, "one has completed, one has failed", 90.0)
    training.check_weights("longer", steps)
    assert scene.statuses()["longer"]["progress"]["percent"] == 100
    assert reasons(scene, "longer") >= {"Admitted", "Underestimated", "WorkDone"}
    assert "Running" not in phases["broken"], "it never was ready"
    failed = told(scene.statuses()["broken"])["Complete"]
    assert (failed["status"], failed["reason"]) == ("False", "BackoffLimitExceeded")
    assert "3 failures" in failed["message"]
    assert "ended with exit code 1" in failed["message"]
    scene.wait({"longer": "Completed", "broken": "Failed"})
    until(lambda: not workers(scene, "broken"), "nothing of it runs on")
