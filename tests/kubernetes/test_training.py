"""``make kubernetes-train``: a training that is shrunk and grown, and has the right weights.

`oasis kubernetes run` schedules two OasisJobs on nodes whose pods are processes. Each trains with
NumPy on a parameter server. The second one is worth more: the first one makes way, and goes on from
its checkpoint.
"""

from __future__ import annotations

import math
import re
import sys

import numpy as np

from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.kubernetes.adapter import wait_phases
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.processes.nodes import ProcessNodes
from tests.kubernetes.scene import Scene
from tests.kubernetes.training_jobs import (
    Training,
    add_machines,
    reasons,
    regression_weights,
    start_controller,
)
from tests.kubernetes.trainings import regression

CLOCK = SlotClock(slot_seconds=5.0, startup_seconds=3.0)
PROGRAM = [sys.executable, "-m", "tests.kubernetes.trainings.regression"]
SPEC = {"network": {}, "resizePolicy": "restart", "gracePeriodSeconds": 5}
RIVAL = {"kind": "sigmoid", "priority": 100, "decayPerSecond": 0.01, "targetSeconds": 120}


def test_a_training_makes_way_and_goes_on_from_its_checkpoint(
    cluster: Cluster, process_nodes: ProcessNodes
) -> None:
    nodes, scene = process_nodes, Scene(cluster.plane, cluster.namespace, CLOCK)
    add_machines(scene, nodes, 1, 1)
    training = Training(scene, nodes, PROGRAM, SPEC, servers=True)
    first, first_steps = training.job("first", (1, 2), 12)
    rival, rival_steps = training.job("rival", (1, 1), 2, utility=RIVAL)
    controller = start_controller(scene, nodes, "--policy", "recourse")
    scene.submit(first)
    try:
        until(lambda: "progress" in scene.statuses()["first"], "it is known")
        until(lambda: scene.statuses()["first"]["progress"]["percent"] >= 20, "it trains")
        scene.submit(rival)
        wait_phases(scene, {"first": "Completed", "rival": "Completed"}, 120.0)
    finally:
        print(controller.read_text(), nodes.logs())  # noqa: T201 (shown if it fails)
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
