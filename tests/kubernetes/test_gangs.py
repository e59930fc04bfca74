"""Why a gang needs a planner: on the default scheduler, two gangs that come together block."""

from __future__ import annotations

import time

import pytest
from kubernetes.dynamic.exceptions import UnprocessibleEntityError

from tests.kubernetes.cluster import GATE, pod
from tests.kubernetes.controlplane.waiting import until

NODES = ("node-0", "node-1", "node-2")
GPUS = 4
GANG = 8  # pods of one GPU: two thirds of the three nodes
SETTLED = 5.0  # seconds without a change; binding a pod takes a tenth of one


def gang(name: str, *, gated: bool) -> list[dict]:
    return [pod(f"{name}-{number}", 1, gated=gated) for number in range(GANG)]


def alternately(*gangs: list[dict]) -> list[dict]:
    return [body for pair in zip(*gangs, strict=True) for body in pair]


def running_of(cluster, name: str) -> int:
    return sum(pod_name.startswith(name) for pod_name in cluster.running())


def test_plain_pods_of_two_gangs_created_alternately_deadlock(cluster):
    cluster.add_nodes(*NODES, gpus=GPUS)
    # One pod at a time while there is room: pods that the scheduler first saw without a machine
    # are tried again in an order of its own, and one gang could come whole by luck.
    pods = alternately(gang("a", gated=False), gang("b", gated=False))
    room = len(NODES) * GPUS
    for body in pods[:room]:
        cluster.create(body)
        until(lambda name=body["metadata"]["name"]: name in cluster.running(), f"{body} runs")
    cluster.create(*pods[room:])
    deadline = time.monotonic() + SETTLED
    while time.monotonic() < deadline:
        held = running_of(cluster, "a"), running_of(cluster, "b")
        assert sum(held) == len(NODES) * GPUS, "every GPU is held"
        assert max(held) < GANG, "and yet no gang is whole"
        time.sleep(0.5)


def test_gangs_behind_gates_run_one_after_the_other(cluster):
    cluster.add_nodes(*NODES, gpus=GPUS)
    cluster.create(*alternately(gang("a", gated=True), gang("b", gated=True)))
    slots = [node for node in NODES for _ in range(GPUS)]
    for turn, waiting in (("a", "b"), ("b", None)):
        names = [f"{turn}-{number}" for number in range(GANG)]
        for name, node in zip(names, slots, strict=False):
            cluster.place(name, node)
        assert list(cluster.wait_running(*names).values()) == slots[:GANG]
        if waiting:
            held = [p for n, p in cluster.read().items() if n.startswith(waiting)]
            assert [p["spec"]["schedulingGates"] for p in held] == [[{"name": GATE}]] * GANG
        for name in names:
            cluster.delete(name, grace=0)


def test_opened_gate_binds_to_the_named_node_and_stays_open(cluster):
    cluster.add_nodes(*NODES, gpus=GPUS)
    cluster.create(pod("one", 1, gated=True))
    time.sleep(1.0)
    assert "nodeName" not in cluster.read()["one"]["spec"], "the scheduler leaves gated pods alone"
    cluster.place("one", "node-2")
    assert cluster.wait_running("one") == {"one": "node-2"}
    with pytest.raises(UnprocessibleEntityError):
        cluster.place("one", "node-1")  # its test of the gate fails: the gate has gone


@pytest.mark.parametrize(
    "change",
    [
        {"op": "replace", "path": "/spec/nodeSelector", "value": {"kubernetes.io/hostname": "x"}},
        {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]},
    ],
    ids=["the node cannot be changed", "the gate cannot come back"],
)
def test_placement_is_final(change, cluster):
    cluster.add_nodes(NODES[0], gpus=GPUS)
    cluster.create(pod("one", 1, gated=True))
    cluster.place("one", NODES[0])
    with pytest.raises(UnprocessibleEntityError):
        cluster.pods.patch(
            body=[change],
            name="one",
            namespace=cluster.namespace,
            content_type="application/json-patch+json",
        )


def test_pod_of_the_full_node_waits_until_there_is_room(cluster):
    cluster.add_nodes(NODES[0], gpus=GPUS)
    cluster.create(pod("first", GPUS), pod("second", 1, gated=True))
    cluster.wait_running("first")
    cluster.place("second", NODES[0])
    time.sleep(1.0)
    assert cluster.running() == {"first": NODES[0]}
    cluster.delete("first", grace=0)
    cluster.wait_running("second")
