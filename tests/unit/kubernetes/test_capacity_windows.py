"""Maintenance windows, as a controller reads them, keeps to them, and tells."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from experiments.evaluation.live import cluster_policy
from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import WINDOWS, Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.windows import Windows
from oasis.kubernetes.control.writer import ClusterWriter
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.played import SLOT, Played, at, job
from tests.unit.kubernetes.test_jobs_of_any_shape import policy


def window(name: str, begin: float, end: float, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"begin": at(begin), "end": at(end), **spec}}


class Planned(Played):
    """A cluster with capacity windows."""

    told: tuple[str, ...] = ()  # the window of each write of conditions

    def step(self) -> None:
        super().step()
        for found, conditions in self.reconciler.windows.told(self.seen(), self.now()):
            found["status"] = {"conditions": conditions}
            self.told += (found["metadata"]["name"],)

    def accepted(self, k: int = 0) -> tuple[str, str, str]:
        """Status, reason and message of the only condition of a window."""
        (found,) = self.windows[k]["status"]["conditions"]
        return found["status"], found["reason"], found["message"]

    def on(self, name: str) -> int:
        """Pods of ours on a node."""
        return sum(pod["spec"].get("nodeName") == name for pod in self.pods.values())


def planned(which: str, *windows: dict[str, Any], **settings: Any) -> Planned:
    made = Planned(policy(which), **settings)
    made.windows = list(windows)
    return made


def test_what_becomes_of_a_window_stands_on_it() -> None:
    made = planned("fifo", window("firmware", 4, 2, nodes=["n1"]))
    made.run(2)
    status, reason, message = made.accepted()
    assert (status, reason) == ("False", "Invalid")
    assert message == f"spec.end: expected a time after begin, got '{at(2)}'; nothing of it is done"
    made.windows[0] |= {"spec": {"begin": at(4), "end": at(6), "nodes": ["n1"]}}
    made.windows[0]["metadata"] |= {"generation": 2}
    made.run(3)
    kept = f"keeps node n1 from {at(4)} until {at(6)}"
    assert made.accepted() == ("True", "Accepted", kept)
    assert made.windows[0]["status"]["conditions"][0]["observedGeneration"] == 2
    made.restart()
    made.run(3)
    assert made.accepted() == ("True", "Over", f"it ended at {at(6)}")
    assert made.told == ("firmware",) * 3, "nothing is written that is there"


@pytest.mark.parametrize(
    ("spec", "condition"),
    [
        (
            {"nodes": ["n1", "n7"]},
            ("True", "Partly", "expected nodes with a role, found none of n7"),
        ),
        (
            {"nodes": ["n7"]},
            ("False", "NoNode", "expected nodes with a role, found none of n7; nothing of it is"),
        ),
        ({"nodeSelector": {"rack": ""}}, ("False", "NoNode", "no node with a role has its labels")),
        (
            {"nodeSelector": {names.HOSTNAME: "n0"}, "repeat": "weekly"},
            ("True", "Accepted", f"keeps node n0 from {at(2)} until {at(6)}, and every week from"),
        ),
    ],
)
def test_a_window_says_what_is_kept(spec: dict[str, Any], condition: tuple[str, str, str]) -> None:
    made = planned("fifo", window("w", 2, 6, **spec))
    made.run(2)
    *head, message = made.accepted()
    assert (tuple(head), message[: len(condition[2])]) == (condition[:2], condition[2])


def test_of_two_controllers_the_one_with_the_nodes_tells() -> None:
    """Each of two has one node, and a window is for the node of the second."""
    both = [planned("fifo", name=name) for name in ("one", "two")]
    both[0].nodes, both[1].nodes = ([each, made.nodes[2]] for each, made in zip(
        both[0].nodes[:2], both, strict=True
    ))  # fmt: skip
    shared = [window("w", 2, 6, nodes=["n1"])]
    for made in both:
        made.restart()
        made.windows = shared
    both[0].run(1)
    assert both[0].accepted()[1] == "NoNode", "somebody has to say it"
    both[1].run(1)
    assert [c["reason"] for c in shared[0]["status"]["conditions"]] == ["NoNode", "Accepted"]
    both[0].run(2)
    both[1].run(1)
    assert both[0].accepted()[1] == "Accepted"
    assert (both[0].told, both[1].told) == (("w", "w"), ("w",))


def test_conditions_are_written_on_a_window_that_is_as_it_was_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection, store = FakeConnection(), ObjectStore()
    writer = ClusterWriter(
        Objects(connection),
        ObjectStore(),
        2,
        Metrics(),
        {WINDOWS.plural: store},  # type: ignore[arg-type]
    )
    found = {"metadata": {"name": "w", "resourceVersion": "7", "uid": "u"}, "spec": {}}
    writer.write_windows([(found, [{"type": "Accepted"}])])
    assert connection.asked == [("PATCH", f"{WINDOWS.path(name='w')}/status")]
    (kept,) = store.items()
    assert kept["status"] == {"conditions": [{"type": "Accepted"}]}

    def refuse(status: int) -> Callable[..., Any]:
        def answer(method: str, path: str, **_: Any) -> Any:
            raise ApiError(method, path, status, "No", "not you")

        return answer

    with caplog.at_level(logging.WARNING, "oasis.kubernetes"):
        for status in (409, 403, 403):  # another controller wrote; rights of an older version
            connection.request = refuse(status)  # type: ignore[method-assign]
            writer = ClusterWriter(Objects(connection), ObjectStore(), 2, Metrics())  # type: ignore[arg-type]
            for _ in range(2):
                writer.write_windows([(found, [])])
    assert [each.getMessage().count("403") for each in caplog.records] == [1, 1]


def test_a_promise_that_a_late_window_breaks_is_told_before_it_is_due() -> None:
    make = cluster_policy("recourse", {"commitment": "arrival"}, lookahead=40)
    made = Planned(make)
    urgent = job("long", slots=48.0)
    urgent["spec"]["utility"] = {"kind": "deadline", "value": 9, "deadlineSeconds": 9 * SLOT}
    uid = made.submit(urgent)
    made.run(2)
    promised = made.status(uid)["promisedSlot"]
    made.windows = [window("demo", 2, 12, nodes=["n0", "n1"])]
    made.run(2)
    assert made.slot < promised
    late = made.said(uid, "Late")
    assert late == ("True", "PromiseBroken", "its promised completion cannot be kept")
    assert made.placed(uid)[0] == "Maintenance"
    assert made.measured("oasis_promises_broken_total") == 1


def test_of_a_window_that_makes_no_sense_nothing_is_done_which_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = planned("fifo", window("firmware", 2, 1, nodes=["n1"]))
    made.submit(job("long", slots=500.0))
    with caplog.at_level(logging.WARNING, "oasis.kubernetes"):
        made.run(4)
    assert caplog.text.count("nothing of it is done") == 1
    assert made.on("n1") == 4


def test_windows_are_rounded_outwards_to_slots_and_repeat() -> None:
    made = planned("fifo")
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
