"""Controllers that wait for machines, share a cluster, or plan in a thread."""

from __future__ import annotations

import json
import logging
import math
import queue
import threading
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.api.resources import OASIS_JOBS, Objects
from oasis.kubernetes.cluster.nodes import Machines
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.controller import AGAIN, Controller
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.names import NODE_ROLE
from oasis.kubernetes.objects.existing import JOB, controller_of, version_of
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from tests.unit.kubernetes.fake_api import FakeConnection, controller, store, writer
from tests.unit.kubernetes.played import (
    EPOCH,
    Played,
    foreign,
    job,
    merged,
    node,
    policy,
    rigid,
)
from tests.unit.kubernetes.test_scenarios import Scenario

# -- machines --------------------------------------------------------------------------------------


BOTH = [node("a", "worker", 8), node("b", "ps", 8)]


def cluster(nodes: list[Any]) -> dict[str, list[Any]]:
    return {**Played(FIFO).found(), "nodes": nodes}


class Seeing(Controller):
    """A controller that holds the lease and sees what the test says, turn by turn."""

    def __init__(self) -> None:
        objects, settings = Objects(FakeConnection()), ControllerSettings(slot_seconds=60.0)  # type: ignore[arg-type]
        super().__init__(objects, FIFO, settings, "one", now=lambda: EPOCH)
        self.lease._renewed = math.inf
        self.sees = cluster(BOTH)
        for watcher in self.watchers:
            watcher.synced.set()

    def _seen(self) -> Seen:
        return Seen(self.sees)

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
    assert [place.id for place in reconciler.machines.places] == ["a", "b"]
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
    monkeypatch.setattr(controller, "_seen", lambda: looked.append(clock[0]) or Seen(cluster([])))
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


def test_what_others_take_counts_where_it_was_missed_and_what_they_give_back_everywhere() -> None:
    def cpus(machines: Machines) -> list[float]:
        return [m.amounts[machines.site.resources.index("cpu")] for m in machines.site.machines]

    def beside(**cpus_on: str) -> Seen:
        pods = [foreign(f"on-{name}", name, cpu=cpu) for name, cpu in cpus_on.items()]
        return Seen({**cluster(BOTH), "pods": pods})

    machines = Machines.of(beside(a="2"), DEFAULT_RESOURCES, None, 60.0)
    assert cpus(machines) == [62.0, 64.0]
    for there, short, left in (
        (beside(a="2"), "ab", [62.0, 64.0]),
        (beside(a="3", b="1"), "", [62.0, 64.0]),
        (beside(a="3", b="1"), "a", [61.0, 64.0]),
        (beside(a="1"), "", [63.0, 64.0]),
        (beside(), "", [64.0, 64.0]),
    ):
        found = machines.resized(there, set(short))
        assert cpus(found) == left
        assert (found is machines) == (left == [62.0, 64.0])
        assert cpus(found.resized(beside(), set())) == [64.0, 64.0]


# -- two controllers -------------------------------------------------------------------------------


ONE, TWO = "one/oasis-scheduler", "two/oasis-scheduler"


def of(controller: str | None, name: str = "j") -> dict[str, Any]:
    made = job(name)
    made["metadata"] |= {"uid": name, "resourceVersion": "7"}
    return made if controller is None else {**made, "status": {"controller": controller}}


def noted(status: str) -> dict[str, Any]:
    notes = {names.STATUS: status}
    meta = {"name": "b", "namespace": "ns", "uid": "b", "resourceVersion": "7"}
    return {"metadata": meta | {"annotations": notes}, "spec": {"template": {"spec": {}}}}


@pytest.mark.parametrize("status", ["", "{", "[]", '{"controller": 3}', "[" * 100_000], ids=len)
def test_an_annotation_that_makes_no_sense_names_no_controller_and_any_other_does(
    status: str,
) -> None:
    assert controller_of(noted(status), JOB) is None
    assert version_of(noted(status), JOB) == version_of(noted("{}"), JOB)
    odd = {"controller": TWO, "phase": "Odd", "workers": -1, "ofALaterVersion": 1}
    assert controller_of(noted(json.dumps(odd)), JOB) == TWO


def test_another_controller_is_named_once_for_each_job_and_the_job_not_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = controller(namespace="one")
    mine = made.settings.controller
    made.stores[names.PLURAL].replace([of(None, "new"), of(mine, "mine"), of(TWO)], 9)
    made.stores["jobs"].replace([noted(json.dumps({"controller": TWO}))], 9)
    for _ in range(3):
        seen = made._seen()
        assert [item["metadata"]["name"] for _, item in seen.jobs] == ["new", "mine"]
    told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert [line.partition(";")[0] for line in told] == [
        f"{name}: left alone, the controller {TWO} schedules it" for name in ("ns/j", "ns/job/b")
    ]


def test_of_two_controllers_that_meet_a_new_job_one_gets_it() -> None:
    api = FakeConnection()
    api.objects[OASIS_JOBS.path("ns", "j")] = of(None)
    seen = store(of(None))
    clerks = [writer(api, **{names.PLURAL: each}) for each in (store(of(None)), seen)]
    jobs = [StatusWriter(of(None), SlotClock(60.0)) for _ in clerks]
    for clerk, made, name in zip(clerks, jobs, (ONE, TWO), strict=True):
        made.status["controller"] = name
        clerk.write_statuses([made])
    assert [made.is_claimed for made in jobs] == [True, False]
    # the watch tells the second one; it is not written over
    seen.put(merged(of(ONE), {"metadata": {"resourceVersion": "8"}}))
    clerks[1].write_statuses([jobs[1]])
    for clerk in clerks:
        clerk.close()
    assert api.objects[OASIS_JOBS.path("ns", "j")]["status"]["controller"] == ONE
    assert not jobs[1].is_claimed


@pytest.mark.parametrize("name", ["fifo", "oasis", "recourse", "dorm"])
def test_two_controllers_that_share_nodes_let_each_other_work(name: str) -> None:
    """Each counts the pods of the other as pods of others, and is told what these give back."""
    one, two = Played(policy(name)), Played(policy("srtf"), namespace="other", name="other")
    jobs = [
        (made, made.submit(rigid(f"{k}{made is two}", 3, 2)))
        for k in range(4)
        for made in (one, two)
    ]
    there: dict[str, Any] = {}
    for slot in range(30):
        for made in (one, two):
            made.pods = there  # both see all pods
            made.step()
            there = made.pods
        used = Counter(
            pod["spec"]["nodeName"] for pod in there.values() if "nodeName" in pod["spec"]
        )
        assert all(count <= 4 for count in used.values()), slot
    assert {made.phase(uid) for made, uid in jobs} == {"Completed"}
    for made in (one, two):
        assert made.measured("oasis_policy_errors_total") == 0
    assert not there


def test_the_loop_waits_for_a_question_that_outlasts_its_slot(
    caplog: pytest.LogCaptureFixture,
) -> None:
    played = Scenario("fifo", {"steps": [{"begin slowly": None}]}, caplog)
    controller, timeouts = Seeing(), []

    def get(timeout: float) -> None:
        timeouts.append(timeout)
        raise queue.Empty

    def turn() -> None:
        controller.reconciler = played.reconciler
        controller._turn()

    controller.lease._renewed, controller._now = -math.inf, played.now
    controller._news = SimpleNamespace(get=get)  # type: ignore[assignment]
    played.step()
    uid = played.submit(rigid("late", 4, 4))
    played.claim()
    played.settle()
    played.slot -= 1  # it is asked for between the boundaries
    played.do_begin_slowly(None)
    played.slot += 1
    turn()
    played.do_decide(None)
    turn()
    assert timeouts == [AGAIN, 0.0]
    assert played.workers(uid) == 4


def test_a_turn_does_not_wait_for_a_plan_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, played, may_go = Seeing(), Played(FIFO), threading.Event()
    played.submit(rigid("j", 2, 2))
    controller.sees = {**cluster(BOTH), names.PLURAL: list(played.jobs.values())}
    decide = FIFO.decide

    def decide_slowly(policy: FIFO, view: Any) -> Any:
        assert may_go.wait(10.0)
        return decide(policy, view)

    monkeypatch.setattr(FIFO, "decide", decide_slowly)
    reconciler = controller.turn()
    assert reconciler is not None
    planning = reconciler.planning
    assert planning is not None, "it is still being made"
    assert reconciler.slot is None
    may_go.set()
    planning.answered.result(10.0)
    controller.turn("plan")
    assert (reconciler.planning, reconciler.slot) == (None, 0)
