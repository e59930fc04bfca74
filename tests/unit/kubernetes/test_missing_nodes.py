"""Machines that are missing, come or change: the controller waits and says once what for."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes.api.resources import Objects
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.machines import Machines
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.names import NODE_ROLE
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.played import EPOCH, Played, merged, node
from tests.unit.kubernetes.test_objects import CLOCK

SHARE = Fraction(1, 4)
SETTINGS = ControllerSettings(slot_seconds=60.0, ps_share=SHARE)
BOTH = [node("a", "worker", 8), node("b", "ps", 8)]


def cluster(nodes: list[Any], **more: list[Any]) -> dict[str, list[Any]]:
    return {**Played(FIFO).seen(), "nodes": nodes, **more}


class Seeing(Controller):
    """A controller that holds the lease and sees what the test says, turn by turn."""

    def __init__(self) -> None:
        objects, settings = Objects(FakeConnection()), ControllerSettings(slot_seconds=60.0)  # type: ignore[arg-type]
        super().__init__(objects, FIFO, settings, "one", now=lambda: EPOCH)
        lease = {"is_held": True, "failure": None, "trouble": None, "other": ""}
        self.lease: Any = SimpleNamespace(**lease, left=lambda: 9.0)
        self.sees = cluster(BOTH)
        for watcher in self.watchers:
            watcher.synced.set()

    def _seen(self) -> Mapping[str, list[Any]]:
        return self.sees

    def turn(self, kind: str = "nodes") -> Reconciler | None:
        self._news.put((EPOCH, kind, "ADDED", None))
        self._turn()
        return self.reconciler


def test_the_controller_begins_when_a_node_takes_workers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "oasis.kubernetes")
    controller = Seeing()
    controller.sees["nodes"] = []
    assert controller.turn() is None
    controller.sees["nodes"] = [node("a", "ps", 8)]
    assert controller.turn() is None
    assert controller.turn() is None
    controller.sees["nodes"] = [BOTH[0], node("b", "gpu", 8)]
    assert controller.turn() is None
    controller.sees["nodes"] = BOTH
    reconciler = controller.turn()
    assert reconciler is not None
    assert [place.id for place in reconciler.places] == ["a", "b"]
    label = f"label {NODE_ROLE}"
    assert [record.message for record in caplog.records][:3] == [
        f"nodes: expected one with the {label}=worker, found none; waiting for it",
        f"node b: metadata.labels.{NODE_ROLE}: expected one of worker, ps, both, got 'gpu'; "
        "waiting for it",
        "serving policy fifo on 2 nodes",
    ]


def test_missing_nodes_are_looked_for_again_when_one_changes_and_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller, clock = Seeing(), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    looked: list[float] = []
    monkeypatch.setattr(controller, "_seen", lambda: looked.append(clock[0]) or cluster([]))
    for kind, seconds in (("pods", 0.0), ("pods", 1.0), ("nodes", 1.0), ("pods", 4.0)):
        clock[0] += seconds
        controller.turn(kind)
    assert looked == [100.0, 102.0]
    clock[0] += 1.0
    controller.turn("pods")
    assert looked == [100.0, 102.0, 107.0]


def test_an_error_of_the_controller_is_logged_and_it_goes_on_from_the_checkpoint(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    controller, pauses = Seeing(), []
    controller.sees["nodes"] = BOTH
    monkeypatch.setattr(controller.stopping, "wait", pauses.append)
    real = Reconciler.steps
    monkeypatch.setattr(Reconciler, "steps", lambda *_: 1 / 0)
    for _ in range(9):
        assert controller.turn() is None
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert controller.metrics.failures._value.get() == 9.0
    assert caplog.text.count("ZeroDivisionError") == 9
    monkeypatch.setattr(Reconciler, "steps", real)
    assert controller.turn() is not None
    monkeypatch.setattr(Reconciler, "steps", lambda *_: 1 / 0)
    controller.turn()
    assert pauses[-1] == 0.5
    controller._errors = 5000  # a day and more of errors in a row
    controller.turn()
    assert pauses[-1] == max(pauses)


def test_a_node_more_is_growth_and_a_node_less_is_a_loss() -> None:
    before = cluster(BOTH)
    machines = Machines.of(before, SETTINGS, CLOCK)
    assert not machines.have_grown(before, SHARE)
    assert machines.lost(before) == frozenset()
    assert machines.have_grown(cluster([*BOTH, node("c", "ps", 8)]), SHARE)
    less = cluster(BOTH[:1])
    assert not machines.have_grown(less, SHARE)
    assert machines.lost(less) == {1}
    away = [{"unschedulable": True}]
    for key in ("not-ready", "unreachable", "memory-pressure"):
        away.append({"taints": [{"key": f"node.kubernetes.io/{key}", "effect": "NoSchedule"}]})
    lost = [machines.lost(cluster([merged(BOTH[0], {"spec": s}), BOTH[1]])) for s in away]
    assert lost == [{0}, {0}, {0}, set()], "away is what the control plane calls away"


def foreign(name: str, cpu: str, on: str) -> dict[str, Any]:
    asked = {"resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": on, "containers": [asked]}
    return {"metadata": {"name": name, "uid": name}, "spec": spec}


def cpus(machines: Machines) -> list[float]:
    return [m.amounts[machines.site.resources.index("cpu")] for m in machines.site.machines]


def test_what_others_take_counts_where_it_was_missed_and_what_they_give_back_everywhere() -> None:
    machines = Machines.of(cluster(BOTH, pods=[foreign("x", "2", "a")]), SETTINGS, CLOCK)
    assert cpus(machines) == [62.0, 64.0]
    for there, short, left in (
        ([foreign("y", "2", "a")], "ab", [62.0, 64.0]),
        ([foreign("y", "3", "a"), foreign("z", "1", "b")], "", [62.0, 64.0]),
        ([foreign("y", "3", "a"), foreign("z", "1", "b")], "a", [61.0, 64.0]),
        ([foreign("y", "1", "a")], "", [63.0, 64.0]),
        ([], "", [64.0, 64.0]),
    ):
        found = machines.resized(cluster(BOTH, pods=there), SETTINGS, set(short))
        assert cpus(found) == left
        assert (found is machines) == (left == [62.0, 64.0])
        assert cpus(found.resized(cluster(BOTH), SETTINGS, set())) == [64.0, 64.0]
