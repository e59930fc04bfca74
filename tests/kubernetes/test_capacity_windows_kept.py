"""A maintenance window and a reservation on a real control plane, and a change of controllers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import oasis
from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import PODS, WINDOWS
from oasis.kubernetes.cluster.nodes import has_ended
from oasis.kubernetes.objects.conditions import time_text
from tests.kubernetes.adapter import CLOCK, call, elastic, running_workers
from tests.kubernetes.cluster import GPU, Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene


@pytest.fixture
def scene(cluster: Cluster) -> Iterator[Scene]:
    found = Scene(cluster.plane, cluster.namespace, CLOCK)
    for name, role, gpus in (("n0", "worker", 4), ("n1", "worker", 4), ("p0", "ps", 0)):
        room = {GPU: str(gpus), "cpu": "96", "memory": "1Ti"}
        cluster.plane.nodes.add(name, room, {names.NODE_ROLE: role})
    cluster.plane.nodes.wait_ready("n0", "n1", "p0")
    yield found
    for item in found.admin.list_all(WINDOWS)[0]:
        found.admin.delete(WINDOWS, item)


def declare(scene: Scene, name: str, **spec: Any) -> None:
    body = {"apiVersion": names.API_VERSION, "kind": names.WINDOW_KIND, "metadata": {"name": name}}
    scene.admin.connection.request("POST", WINDOWS.path(), body={**body, "spec": spec})


def on_nodes(scene: Scene) -> dict[str, int]:
    """Pods of ours on each node, also those that are ending."""
    found: dict[str, int] = {}
    for pod in scene.admin.list_all(PODS, scene.namespace)[0]:
        node = pod["spec"].get("nodeName")
        if node and not has_ended(pod):
            found[node] = found.get(node, 0) + 1
    return found


def planner() -> oasis.Recourse:
    return oasis.Recourse.rolling(80, rounds=3, keep_admitted=True)


def explained(scene: Scene, name: str) -> str:
    return " ".join(call(scene, "explain", name, "-n", scene.namespace).split())


def test_no_pod_is_there_when_a_window_begins_and_jobs_are_told(scene: Scene) -> None:
    now = int(time.time())
    begin, end = now + 36, now + 50
    during = {"begin": time_text(begin), "end": time_text(end)}
    with pytest.raises(ApiError, match="end: expected a time after begin"):
        declare(scene, "wrong", begin=during["end"], end=during["begin"], nodes=["n1"])
    declare(scene, "firmware", **during, nodes=["n1"])
    declare(scene, "demo", **during, nodes=["n0"], reserve={"resources": {GPU: "2"}})
    leaves = f"as maintenance window firmware begins at {during['begin']}"
    waits = f"which keeps node n1 until {during['end']}"
    with scene.controller(planner):
        scene.submit(elastic(scene, "long", 2, 8, 600.0))
        until(lambda: running_workers(scene) == {"long": 8}, "it has both nodes", 6.0)
        until(lambda: leaves in explained(scene, "long"), "it is told that it leaves n1", 10.0)
    with scene.controller(planner, identity="two"):
        time.sleep(max(0.0, begin - time.time()))
        scene.submit(elastic(scene, "gang", 3, 3, 100.0))
        while time.time() < end - 1:
            held = on_nodes(scene)
            assert held.get("n1", 0) == 0
            assert held.get("n0", 0) <= 2
            if time.time() > begin + 5:
                assert running_workers(scene) == {"long": 2}, "it goes on beside the windows"
                assert waits in explained(scene, "gang") or "reservation demo" in explained(
                    scene, "gang"
                )
            time.sleep(0.5)
        until(lambda: on_nodes(scene).get("n1", 0) > 0, "the node is back", 15.0)
        until(lambda: sum(running_workers(scene).values()) > 2, "and used", 15.0)
