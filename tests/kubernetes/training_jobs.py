"""OasisJobs whose pods train for real, on process nodes, under `oasis kubernetes run`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.kubernetes.cluster import report_rights
from tests.kubernetes.names import BANDWIDTH, GPU, KIND, NODE_ROLE
from tests.kubernetes.processes.nodes import ProcessNodes
from tests.kubernetes.scene import Scene
from tests.kubernetes.trainings import regression

ROOT = Path(__file__).parents[2]
READY = "/var/run/ready"
ROOM = {"cpu": "8", "memory": "32Gi", BANDWIDTH: "20G"}
PAUSE = 0.05  # seconds that a part of a step takes


@dataclass(frozen=True)
class Training:
    """A program of `tests.kubernetes.trainings`, and what its jobs have in common."""

    scene: Scene
    nodes: ProcessNodes
    command: list[str]
    spec: Mapping[str, Any]
    servers: bool = False
    env: Mapping[str, str] = field(default_factory=dict)

    def job(
        self, name: str, workers: tuple[int, int], slots: int, **spec: Any
    ) -> tuple[dict[str, Any], int]:
        """A job that trains for this many worker-slots, and its steps."""
        clock = self.scene.clock
        steps = round(slots * clock.slot_seconds / (regression.PARTS * PAUSE))
        seconds = slots * clock.work_seconds
        given = {
            "PYTHONPATH": ROOT,
            "OMP_NUM_THREADS": 1,
            "CHECKPOINT": self.file(name),
            **{"STEPS": steps, "WORK": seconds, "PAUSE": PAUSE, "READY": READY, **self.env},
        }
        env = [{"name": key, "value": str(found)} for key, found in given.items()]

        def template(limits: dict[str, str], **more: Any) -> dict[str, Any]:
            resources = {"requests": {"cpu": "1"}, "limits": limits}
            container = {"name": "train", "image": "none", "command": self.command, "env": env}
            return {"spec": {"containers": [{**container, "resources": resources, **more}]}}

        made = self.scene.elastic(name, *workers, seconds, **{**self.spec, **spec})
        # Work is counted while a gang is ready: not while its processes start.
        probe = {"exec": {"command": ["test", "-f", READY]}, "periodSeconds": 1}
        limits = {GPU: "1", **({BANDWIDTH: "1G"} if self.servers else {})}
        made["spec"]["workers"]["template"] = template(limits, readinessProbe=probe)
        if self.servers:
            made["spec"]["parameterServers"] = {"template": template({BANDWIDTH: "4G"})}
        return made, steps

    def file(self, name: str) -> Path:
        return self.nodes.directory / f"{name}.npz"

    def check_weights(self, name: str, steps: int, rate: float = regression.RATE) -> None:
        with np.load(self.file(name)) as found:
            assert found["step"] == steps
            np.testing.assert_allclose(found["weights"], regression_weights(steps, rate), rtol=1e-9)


def regression_weights(steps: int, rate: float = regression.RATE) -> np.ndarray[Any, Any]:
    """Weights after this many steps, computed by the whole minibatch of each at once."""
    weights = np.zeros(regression.SIZE)
    for step in range(steps):
        parts = [regression.data(step, part) for part in range(regression.PARTS)]
        features, targets = (np.concatenate(each) for each in zip(*parts, strict=True))
        slope = features.T @ (features @ weights - targets)
        weights -= 2 * rate * slope / len(targets)
    return weights


def add_machines(scene: Scene, nodes: ProcessNodes, *gpus: int) -> None:
    """Add nodes with these GPUs, and one for parameter servers; pods may report."""
    scene.plane.apply(report_rights(scene.namespace))
    for k, count in enumerate(gpus):
        nodes.add(f"gpu-{k}", {**ROOM, GPU: str(count)}, {NODE_ROLE: "worker"})
    nodes.add("cpu-0", ROOM, {NODE_ROLE: "ps"})


@contextmanager
def controlled(scene: Scene, nodes: ProcessNodes, *words: str) -> Iterator[None]:
    log = nodes.directory / "controller.log"
    nodes.guardian.start(scene.command(*words), log, {**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        yield
    finally:
        print(log.read_text(), nodes.logs())  # noqa: T201


def reasons(scene: Scene, name: str) -> set[str]:
    """Reasons of the events of a job, without those of its Service: 127.x.y.z is not routed."""
    ours = f"involvedObject.kind={KIND},involvedObject.name={name}"
    found = scene.api.items("events", scene.namespace, fieldSelector=ours)
    return {event["reason"] for event in found}
