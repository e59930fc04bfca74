"""Facts to plan with: how the control plane treats pods whose node is in trouble."""

from __future__ import annotations

import pytest

from tests.kubernetes.cluster import pod
from tests.kubernetes.controlplane.waiting import until


@pytest.fixture
def running(cluster):
    """One running pod on node-0, beside an empty node-1."""
    cluster.add_nodes("node-0", "node-1", gpus=4)
    cluster.create(pod("one", 1, gated=True))
    cluster.place("one", "node-0")
    cluster.wait_running("one")
    return cluster


def test_cordoned_node_keeps_its_pods_and_gets_no_new_ones(running):
    running.plane.nodes.cordon("node-0")
    running.create(pod("two", 1))
    assert running.wait_running("one", "two") == {"one": "node-0", "two": "node-1"}
    running.plane.nodes.uncordon("node-0")
    running.create(pod("three", 4, gated=True))
    running.place("three", "node-0")
    running.delete("one", grace=0)
    assert running.wait_running("two", "three")["three"] == "node-0"


def test_node_that_is_not_ready_loses_its_pods_and_comes_back(running):
    running.plane.nodes.break_down("node-0")
    until(lambda: "one" not in running.read(), "the pod is evicted")
    running.plane.nodes.repair("node-0")
    running.plane.nodes.wait_ready("node-0")


def test_lost_machine_keeps_its_pod_until_it_is_declared_dead(cluster):
    cluster.add_nodes("lost", losable=True)
    cluster.create(pod("one", 1))
    cluster.wait_running("one")
    cluster.add_nodes("healthy")  # where all nodes are lost, the control plane evicts nothing
    nodes = cluster.plane.nodes
    nodes.lose_machines()
    nodes.wait_lost("lost")
    until(lambda: "deletionTimestamp" in cluster.read()["one"]["metadata"], "it is evicted")
    assert cluster.read()["one"]["status"]["phase"] == "Running", "nobody is there to end it"
    nodes.declare_dead("lost")
    until(lambda: cluster.read() == {}, "the pod is forgotten", within=120)
    nodes.find_machines()
    nodes.declare_alive("lost")
    nodes.wait_ready("lost")


@pytest.mark.nightly  # a minute, and a fact of the control plane alone
def test_machine_that_comes_back_in_time_has_its_pod_ready_again(cluster):
    cluster.add_nodes("away", losable=True)
    cluster.create(pod("one", 1))
    cluster.wait_running("one")
    cluster.plane.nodes.lose_machines()
    cluster.plane.nodes.wait_lost("away")
    until(lambda: not ready(cluster, "one"), "the pod is called not ready")
    cluster.plane.nodes.find_machines()
    cluster.plane.nodes.wait_ready("away")
    assert cluster.running() == {"one": "away"}, "it was the only node: nothing is evicted"
    until(lambda: ready(cluster, "one"), "the pod says again that it is ready")


def ready(cluster, name: str) -> bool:
    conditions = cluster.read()[name]["status"]["conditions"]
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@pytest.mark.nightly  # a minute, and a fact of the control plane alone
def test_pods_of_a_deleted_node_are_collected(running):
    running.plane.nodes.delete("node-0")
    until(lambda: "one" not in running.read(), "its pod is collected", within=180)
    assert running.plane.nodes.names() == ["node-1"]


def test_pod_ends_runs_late_or_stops_late_as_its_annotations_say(cluster):
    cluster.add_nodes("node-0", gpus=4)
    for name, annotation in (
        ("good", "succeeds-after"),
        ("bad", "fails-after"),
        ("late", "starts-after"),
    ):
        cluster.create(pod(name, 1, annotations={f"oasis.test/{annotation}": "3s"}))
    cluster.create(pod("slow", 1, annotations={"oasis.test/stops-after": "3s"}))
    until(lambda: set(cluster.running()) == {"good", "bad", "slow"}, "all but the late one run")
    cluster.delete("slow")
    assert "deletionTimestamp" in cluster.read()["slow"]["metadata"]
    until(lambda: "slow" not in cluster.read(), "it stops")
    until(lambda: set(cluster.running()) == {"late"}, "the late one runs")
    phases = {name: body["status"]["phase"] for name, body in cluster.read().items()}
    assert phases == {"good": "Succeeded", "bad": "Failed", "late": "Running"}
