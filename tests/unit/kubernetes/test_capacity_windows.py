"""Maintenance windows and reservations, as a controller reads them, keeps to them, and tells."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from oasis.kubernetes import names
from oasis.kubernetes.control.windows import Windows
from oasis.kubernetes.objects.capacity_window import parse_window, window_resource
from oasis.kubernetes.objects.conditions import time_text
from oasis.model.errors import InstanceError
from tests.unit.kubernetes.played import EPOCH, GPU, SLOT, Played, job, pods
from tests.unit.kubernetes.test_jobs_of_any_shape import policy


def at(slot: float) -> str:
    return time_text(EPOCH + slot * SLOT)


def window(name: str, begin: float, end: float, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"begin": at(begin), "end": at(end), **spec}}


class Planned(Played):
    """A cluster with capacity windows."""

    def __init__(self, make: Callable[[], Any], *windows: dict[str, Any], **settings: Any) -> None:
        self.windows = list(windows)
        super().__init__(make, **settings)

    def seen(self) -> dict[str, list[Any]]:
        return {**super().seen(), names.WINDOW_PLURAL: self.windows}

    def on(self, name: str) -> int:
        """Pods of ours on a node."""
        return sum(pod["spec"].get("nodeName") == name for pod in self.pods.values())

    def placed(self, uid: str) -> tuple[str, str]:
        found = self.said(uid, "Placed")
        return ("", "") if found is None else found[1:]


@pytest.mark.parametrize("name", ["recourse", "fifo", "srtf", "drf"])
@pytest.mark.parametrize("restarts", [False, True])
def test_no_pod_is_on_a_node_in_maintenance_and_it_comes_back(name: str, restarts: bool) -> None:
    made = Planned(policy(name), window("firmware", 5, 8, nodes=["n1"]))
    uids = [made.submit(job(f"j{k}", slots=200.0)) for k in range(2)]
    busy = []
    for slot in range(11):
        made.step()
        if restarts and slot in (3, 4, 6, 8):
            made.restart()
            made.settle()
        busy.append(made.on("n1"))
    # Pods end a slot before: they may need that time.
    assert busy[4:8] == [0, 0, 0, 0], busy
    assert all(busy[8:]), busy
    assert all(made.phase(uid) in ("Running", "Waiting") for uid in uids)


def test_a_job_is_told_which_window_it_waits_for_and_when_it_leaves() -> None:
    made = Planned(policy("recourse"), window("firmware", 5, 8, nodes=["n0", "n1"]))
    uid = made.submit(job("long", slots=100.0, minimum=8))
    made.run(3)
    reason, message = made.placed(uid)
    assert reason == "Planned"
    assert message == (
        f"8 workers and 0 parameter servers; leaves nodes n0, n1 by {at(4)}, as maintenance "
        f"window firmware begins at {at(5)}"
    )
    made.run(2)
    assert made.placed(uid) == (
        "Maintenance",
        f"waits for maintenance window firmware, which keeps nodes n0, n1 until {at(8)}",
    )
    assert (made.phase(uid), len(made.pods)) == ("Waiting", 0)
    made.run(4)
    assert made.placed(uid)[0] == "Planned"
    assert made.phase(uid) == "Running"


def test_fifo_begins_nothing_that_would_be_interrupted() -> None:
    made = Planned(policy("fifo"), window("firmware", 7, 8, nodes=["n0", "n1"]))
    long = made.submit(job("long", slots=60.0, minimum=8))
    made.run(2)
    assert made.workers(long) == 0
    reason, message = made.placed(long)
    assert (reason, f"keeps nodes n0, n1 from {at(7)} until {at(8)}" in message) == (
        "Maintenance", True,
    )  # fmt: skip
    made.run(7)
    assert made.workers(long) == 8


def test_a_reservation_keeps_its_part() -> None:
    kept = {"resources": {GPU: "5", "cpu": "10"}}
    made = Planned(policy("recourse"), window("demo", 2, 6, reserve=kept))
    made.submit(job("long", slots=100.0))
    free = []
    for _ in range(8):
        made.step()
        free.append((4 - made.on("n0"), 4 - made.on("n1")))
    # From the last worker node on: all four GPUs of n1, and one of n0.
    assert free[1:7] == [(1, 4)] * 5 + [(0, 0)], free


def test_what_the_pods_of_a_reservation_have_already_is_not_kept_again() -> None:
    kept = {"resources": {GPU: "4"}, "namespaces": ["serving"]}
    made = Planned(policy("recourse"), window("demo", 2, 6, nodes=["n1"], reserve=kept))
    for name, space in (("theirs", "serving"), ("others", "elsewhere")):
        made.pods[name] = {
            "metadata": {"name": name, "namespace": space, "uid": name},
            "spec": {**pods(gpu="1")["spec"], "nodeName": "n1"},
            "status": {"phase": "Running"},
        }
    made.restart()
    made.submit(job("long", slots=100.0))
    made.step()
    assert made.on("n1") == 2 + 2
    made.step()
    ((entry,),) = [made.reconciler.driver.closures.calendar.windows]
    assert dict(entry.machines)[1][0] == 3.0
    assert made.on("n1") == 2


@pytest.mark.parametrize("resources", [{GPU: "4"}, None])
def test_jobs_of_a_namespace_have_what_is_kept_for_it(resources: dict[str, str] | None) -> None:
    kept = {"namespaces": ["ours"], **({"resources": resources} if resources else {})}
    made = Planned(policy("recourse"), window("demo", 2, 30, nodes=["n1"], reserve=kept))
    first = made.submit(job("first", slots=120.0, minimum=1))
    made.run(3)
    assert (made.on("n0"), made.on("n1")) == (4, 0), "others leave it"
    later = made.submit(job("later", slots=40.0, minimum=3, maximum=4))
    own = job("own", slots=40.0, minimum=4, maximum=4)
    own["metadata"]["namespace"] = "ours"
    uid = made.submit(own)
    made.run(2)
    assert made.workers(uid) == 4
    assert made.workers(first) + made.workers(later) == made.on("n0") == 4
    assert made.on("n1") == 4


def test_a_job_is_told_that_what_it_waits_for_is_kept_for_others() -> None:
    kept = {"namespaces": ["ours"], "resources": {GPU: "4"}}
    made = Planned(policy("recourse"), window("demo", 1, 9, nodes=["n1"], reserve=kept))
    uid = made.submit(job("gang", slots=40.0, minimum=6))
    made.run(2)
    assert made.placed(uid) == (
        "Reserved",
        f"waits for reservation demo, which keeps a part of node n1 until {at(9)}",
    )


def test_a_reservation_of_more_than_there_is_is_said_and_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Planned(policy("recourse"), window("demo", 2, 6, reserve={"resources": {GPU: "16"}}))
    with caplog.at_level(logging.WARNING, "oasis.kubernetes"):
        made.run(2)
        made.windows = [window("fpga", 2, 6, reserve={"resources": {"x.org/fpga": "1"}})]
        made.run(1)
    assert "demo: the nodes have 50% of what it reserves, which is kept" in caplog.text
    assert "fpga: spec.reserve.resources.x.org/fpga: expected a resource that is" in caplog.text


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"end": at(1)}, "spec.end: expected a time after begin"),
        ({"begin": "2030-01-01"}, "spec.begin: expected a time with its zone"),
        ({"nodes": []}, "spec.nodes: expected names of nodes, or nodeSelector, or resources"),
        ({"nodeSelector": {"a": "b"}}, "spec.nodeSelector: expected none where nodes are named"),
        ({"repeat": "daily"}, "spec.repeat: expected weekly or none, got 'daily'"),
        ({"repeat": "weekly", "end": at(99999)}, "spec.end: expected less than a week after"),
        ({"reserve": {"resources": {GPU: "x"}}}, f"spec.reserve.resources.{GPU}: expected an"),
        ({"reserve": {"resources": {GPU: "0"}}}, "spec.reserve.resources: expected an amount > 0"),
        ({"reserve": {"namespaces": "abc"}}, "spec.reserve.namespaces: expected a list"),
        ({"reserve": {"queue": "x"}}, "spec.reserve.queue: unknown key"),
        ({"noticeSeconds": -1}, "spec.noticeSeconds: expected a finite number >= 0"),
    ],
)
def test_a_window_that_makes_no_sense_names_the_field_and_does_nothing(
    spec: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = window("firmware", 2, 4, nodes=["n1"])
    wrong["spec"] |= spec
    with pytest.raises(InstanceError) as error:
        parse_window(wrong)
    assert str(error.value).startswith(message)
    made = Planned(policy("fifo"), wrong)
    made.submit(job("long", slots=500.0))
    with caplog.at_level(logging.WARNING, "oasis.kubernetes"):
        made.run(4)
    assert caplog.text.count("nothing of it is done") == 1, "it is said once"
    assert made.on("n1") == 4


def test_nodes_that_are_not_there_are_said(caplog: pytest.LogCaptureFixture) -> None:
    made = Planned(
        policy("fifo"),
        window("a", 2, 4, nodes=["n1", "n7"]),
        window("b", 2, 4, nodeSelector={"rack": "9"}),
    )
    with caplog.at_level(logging.WARNING, "oasis.kubernetes"):
        made.run(2)
    assert "CapacityWindow a: expected nodes with a role, found none of n7" in caplog.text
    assert "CapacityWindow b: no node with a role has its labels" in caplog.text


def test_windows_are_rounded_outwards_to_slots_and_repeat() -> None:
    made = Planned(policy("fifo"))
    made.run(1)
    week = 7 * 86400 / SLOT

    def slots(*given: float, **spec: Any) -> list[tuple[int, int]]:
        made.windows = [window("w", *given, nodes=["n1"], **spec)]
        held = Windows(made.settings, made.reconciler.clock)
        found = held.calendar(made.seen(), made.reconciler.machines, made.now())
        return [(entry.begin, entry.end) for entry in found.windows]

    assert slots(5, 8) == [(4, 8)]
    assert slots(5.5, 8.5) == [(4, 9)]
    assert slots(5, 8, noticeSeconds=0) == [(5, 8)]
    assert slots(5, 8, noticeSeconds=61) == [(3, 8)]
    assert slots(-9, 0) == []
    repeated = slots(-9, -8, repeat="weekly")
    assert repeated[0] == (week - 10, week - 8)
    assert len(repeated) == 53


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    (version,) = window_resource()["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"]["begin"]["format"] == "date-time"
    assert [rule["message"].partition(":")[0] for rule in spec["x-kubernetes-validations"]] == [
        "end", "nodes",
    ]  # fmt: skip
