"""A machine that is lost for good: its job goes on elsewhere, and no work is counted twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from baselines import FIFO
from oasis.kubernetes.names import NODE_ROLE
from tests.background import beside
from tests.kubernetes.adapter import CLOCK, delete_job, rigid, running_workers
from tests.kubernetes.cluster import Cluster, room
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene


@contextmanager
def seconds_running(scene: Scene) -> Iterator[list[float]]:
    """At most for how long, in sum, our pods have been Running; those on lost machines included."""
    total = [0.0]

    def look(over: threading.Event) -> None:
        since, before = time.time(), set[str]()
        while not over.wait(0.1):
            asked = time.time()
            now = {
                pod["metadata"]["uid"]
                for pods in scene.our_pods().values()
                for pod in pods.values()
                if pod["status"]["phase"] == "Running"
            }
            total[0] += (time.time() - since) * len(before | now)
            since, before = asked, now

    with beside(look):
        yield total


def nodes_of(scene: Scene) -> set[str]:
    """Nodes of the pods that are not being deleted."""
    return {
        pod["spec"]["nodeName"]
        for pods in scene.our_pods().values()
        for pod in pods.values()
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    }


def counted(scene: Scene) -> float:
    """Worker-seconds of the job, as its status says."""
    progress: dict[str, Any] = scene.statuses()["job"]["progress"]
    return float(progress["workerSeconds"])


def test_a_machine_that_is_lost_for_good_takes_no_job_along(cluster: Cluster) -> None:
    scene, nodes = Scene(cluster.plane, cluster.namespace, CLOCK), cluster.plane.nodes
    names = ["a-lost", "n0", "n1", "n2"]
    for name in names:  # where most nodes are lost, the control plane evicts nothing
        nodes.add(name, room(2), {NODE_ROLE: "both"}, losable=name == "a-lost")
    nodes.wait_ready(*names)
    with scene.controller(FIFO), seconds_running(scene) as most:
        scene.submit(rigid(scene, "job", workers=3, slots=1000, gracePeriodSeconds=1))
        until(lambda: running_workers(scene) == {"job": 3}, "it runs", 60.0)
        assert "a-lost" in nodes_of(scene)
        nodes.lose_machines()
        nodes.wait_lost("a-lost")
        elsewhere = {"n0", "n1", "n2"}
        until(
            lambda: nodes_of(scene) <= elsewhere and running_workers(scene) == {"job": 3}, "moved"
        )
        before = counted(scene)
        until(lambda: counted(scene) > before, "it goes on with what it had", 60.0)
        ghosts = [
            pod["metadata"]["deletionTimestamp"]
            for pods in scene.our_pods().values()
            for pod in pods.values()
            if pod["spec"].get("nodeName") == "a-lost"
        ]
        assert ghosts, "its pod is still called Running: nobody is there to end it"
        assert counted(scene) <= most[0], "never more than what ran"
        reasons = {c["reason"] for c in scene.statuses()["job"]["conditions"]}
        assert "Planned" in reasons
        nodes.declare_dead("a-lost")
        until(lambda: nodes_of(scene) <= elsewhere, "it stays elsewhere")
        delete_job(scene, "job")
        until(lambda: not scene.our_pods(), "nothing is left, of the lost machine neither", 120.0)
    nodes.find_machines()
    nodes.declare_alive("a-lost")
    nodes.wait_ready("a-lost")
