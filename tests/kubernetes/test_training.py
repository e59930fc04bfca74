"""``make kubernetes-train``: a training that is shrunk and grown, and has the right weights.

`oasis kubernetes run` schedules two OasisJobs on nodes whose pods are processes. Each trains with
NumPy on a parameter server. The second one is worth more: the first one makes way, and goes on from
its checkpoint.
"""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from oasis.kubernetes.api.resources import EVENTS
from oasis.kubernetes.names import BANDWIDTH, KIND, NODE_ROLE
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.kubernetes.adapter import elastic, wait_phases
from tests.kubernetes.cluster import GPU, Cluster
from tests.kubernetes.controlplane.access import apply
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.processes.nodes import ProcessNodes
from tests.kubernetes.scene import SYSTEM, Scene
from tests.kubernetes.trainings import regression

ROOT = Path(__file__).parents[2]
CLOCK = SlotClock(slot_seconds=5.0, startup_seconds=3.0)
PAUSE = 0.05  # seconds that a part of a step takes
PROGRAM = [sys.executable, "-m", "tests.kubernetes.trainings.regression"]
READY = "/var/run/ready"
RIVAL = {"kind": "sigmoid", "priority": 100, "decayPerSecond": 0.01, "targetSeconds": 120}


def regression_weights(steps: int) -> np.ndarray[Any, Any]:
    """What the parameter server has after so many steps, by the whole minibatch of each at once."""
    weights = np.zeros(regression.SIZE)
    for step in range(steps):
        parts = [regression.data(step, part) for part in range(regression.PARTS)]
        features, targets = (np.concatenate(each) for each in zip(*parts, strict=True))
        slope = features.T @ (features @ weights - targets)
        weights -= 2 * regression.RATE * slope / len(targets)
    return weights


def training(
    scene: Scene, nodes: ProcessNodes, name: str, workers: int, slots: int, **spec: Any
) -> tuple[dict[str, Any], int]:
    """A job of 1 to `workers` workers that trains for so many worker-slots; and its steps."""
    steps = round(slots * CLOCK.slot_seconds / (regression.PARTS * PAUSE))
    seconds = slots * CLOCK.work_seconds
    given = {
        **{"PYTHONPATH": ROOT, "OMP_NUM_THREADS": 1, "CHECKPOINT": nodes.directory / f"{name}.npz"},
        **{"STEPS": steps, "WORK": seconds, "PAUSE": PAUSE, "READY": READY},
    }
    made = elastic(scene, name, 1, workers, seconds, **spec)
    made["spec"] |= {"network": {}, "resizePolicy": "restart", "gracePeriodSeconds": 5}
    env = [{"name": key, "value": str(value)} for key, value in given.items()]
    bandwidth = ({BANDWIDTH: "1G", GPU: "1"}, {BANDWIDTH: "4G"})
    templates = [
        {"spec": {"containers": [{"name": "train", "image": "none", "command": PROGRAM}]}}
        for _ in bandwidth
    ]
    for template, limits in zip(templates, bandwidth, strict=True):
        resources = {"requests": {"cpu": "1"}, "limits": limits}
        template["spec"]["containers"][0] |= {"env": env, "resources": resources}
    # Work is counted while a gang is ready: not while its processes start.
    probe = {"exec": {"command": ["test", "-f", READY]}, "periodSeconds": 1}
    templates[0]["spec"]["containers"][0]["readinessProbe"] = probe
    made["spec"]["workers"]["template"] = templates[0]
    made["spec"]["parameterServers"] = {"template": templates[1]}
    return made, steps


def start_controller(scene: Scene, nodes: ProcessNodes) -> Path:
    """`oasis kubernetes run`, as its owner starts it; its log."""
    words = [
        *(sys.executable, "-m", "experiments.cli", "kubernetes", "run", "--policy", "recourse"),
        *("--slot-seconds", "5", "--startup-seconds", "3", "--system-namespace", SYSTEM),
        *("--controller-name", scene.namespace, "--namespace", scene.namespace),
        *("--kubeconfig", str(scene.account.kubeconfig())),
    ]
    log = nodes.directory / "controller.log"
    nodes.guardian.start(words, log, {**os.environ, "PYTHONPATH": str(ROOT)})
    return log


def reasons(scene: Scene, name: str) -> set[str]:
    """Of the events of a job; its Service has others, as nobody can route to 127.x.y.z."""
    found, _ = scene.admin.list_all(EVENTS, scene.namespace)
    job = (KIND, name)
    objects = [(event["involvedObject"], event["reason"]) for event in found]
    return {reason for about, reason in objects if (about["kind"], about["name"]) == job}


def test_a_training_makes_way_and_goes_on_from_its_checkpoint(
    cluster: Cluster, process_nodes: ProcessNodes
) -> None:
    nodes, scene = process_nodes, Scene(cluster.plane, cluster.namespace, CLOCK)
    apply(cluster.plane.client, cluster.report_rights())
    room = {"cpu": "8", "memory": "32Gi", BANDWIDTH: "20G"}
    for name in ("gpu-0", "gpu-1"):
        nodes.add(name, {**room, GPU: "1"}, {NODE_ROLE: "worker"})
    nodes.add("cpu-0", room, {NODE_ROLE: "ps"})
    first, first_steps = training(scene, nodes, "first", 2, 12)
    rival, rival_steps = training(scene, nodes, "rival", 1, 2, utility=RIVAL)
    controller = start_controller(scene, nodes)
    scene.submit(first)
    try:
        until(lambda: "progress" in scene.statuses()["first"], "it is known")
        until(lambda: scene.statuses()["first"]["progress"]["percent"] >= 20, "it trains")
        scene.submit(rival)
        wait_phases(scene, {"first": "Completed", "rival": "Completed"}, 120.0)
    finally:
        print(controller.read_text(), nodes.logs())  # noqa: T201 (shown if it fails)
    for name, steps in (("first", first_steps), ("rival", rival_steps)):
        with np.load(nodes.directory / f"{name}.npz") as found:
            assert found["step"] == steps
            np.testing.assert_allclose(found["weights"], regression_weights(steps), rtol=1e-9)
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
