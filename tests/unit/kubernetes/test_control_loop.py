"""Controllers that wait for machines, share a cluster, or plan in a thread."""

from __future__ import annotations

import json
import logging
import math
import queue
import time
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import OASIS_JOBS, Objects
from oasis.kubernetes.control.controller import AGAIN, Controller
from oasis.kubernetes.control.machines import Machines
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.names import NODE_ROLE
from oasis.kubernetes.objects.existing import JOB, controller_of, version_of, without_others
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.unit.kubernetes.fake_api import FakeConnection, controller, store, writer
from tests.unit.kubernetes.played import (
    CLOCK,
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
        self.lease._renewed = math.inf
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


def cpus(machines: Machines) -> list[float]:
    return [m.amounts[machines.site.resources.index("cpu")] for m in machines.site.machines]


def test_what_others_take_counts_where_it_was_missed_and_what_they_give_back_everywhere() -> None:
    machines = Machines.of(cluster(BOTH, pods=[foreign("x", "a", cpu="2")]), SETTINGS, CLOCK)
    assert cpus(machines) == [62.0, 64.0]
    for there, short, left in (
        ([foreign("y", "a", cpu="2")], "ab", [62.0, 64.0]),
        ([foreign("y", "a", cpu="3"), foreign("z", "b", cpu="1")], "", [62.0, 64.0]),
        ([foreign("y", "a", cpu="3"), foreign("z", "b", cpu="1")], "a", [61.0, 64.0]),
        ([foreign("y", "a", cpu="1")], "", [63.0, 64.0]),
        ([], "", [64.0, 64.0]),
    ):
        found = machines.resized(cluster(BOTH, pods=there), set(short))
        assert cpus(found) == left
        assert (found is machines) == (left == [62.0, 64.0])
        assert cpus(found.resized(cluster(BOTH), set())) == [64.0, 64.0]


# -- two controllers -------------------------------------------------------------------------------


ONE, TWO = "one/oasis-scheduler", "two/oasis-scheduler"


def of(controller: str | None, name: str = "j") -> dict[str, Any]:
    made = job(name)
    made["metadata"] |= {"uid": name, "resourceVersion": "7"}
    return made if controller is None else {**made, "status": {"controller": controller}}


def noted(status: str) -> dict[str, Any]:
    notes = {names.STATUS: status}
    meta = {"name": "b", "namespace": "ns", "uid": "b", "annotations": notes}
    return {"metadata": meta, "spec": {"template": {"spec": {}}}}


def test_a_job_of_another_controller_is_not_seen_and_its_name_is_known() -> None:
    seen = {
        names.PLURAL: [of(None, "new"), of(ONE, "mine"), of(TWO, "theirs")],
        "jobs": [noted(json.dumps({"controller": TWO}))],
        "pods": ["p"],
    }
    ours, others = without_others(seen, ONE)
    assert [o["metadata"]["name"] for o in ours[names.PLURAL]] == ["new", "mine"]
    assert (ours["jobs"], ours["pods"]) == ([], ["p"])
    assert others == {"theirs": ("ns/theirs", TWO), "b": ("ns/job/b", TWO)}


@pytest.mark.parametrize("status", ["", "{", "[]", '{"controller": 3}', "[" * 100_000])
def test_an_annotation_that_makes_no_sense_names_no_controller(status: str) -> None:
    assert controller_of(noted(status), JOB) is None
    assert version_of(noted(status), JOB) == version_of(noted("{}"), JOB)


def test_a_job_stays_that_of_its_controller_whatever_else_its_status_says() -> None:
    status = json.dumps({"controller": TWO, "phase": "Odd", "workers": -1, "ofALaterVersion": 1})
    assert controller_of(noted(status), JOB) == TWO


def test_another_controller_is_named_once_for_each_job(caplog: pytest.LogCaptureFixture) -> None:
    made = controller(namespace="one")
    made.stores[names.PLURAL].replace([of(TWO)], 9)
    for _ in range(3):
        assert made._seen()[names.PLURAL] == []
    told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert [line.partition(";")[0] for line in told] == [
        f"ns/j: left alone, the controller {TWO} schedules it"
    ]


def test_the_pods_of_a_job_that_went_to_another_controller_are_not_touched() -> None:
    made = Played(policy("fifo"))
    uid = made.submit(job("j", slots=40.0, minimum=3, maximum=3))
    made.run(2)
    assert made.status(uid)["controller"] == made.settings.controller
    made.jobs[uid]["status"] = {"controller": TWO}
    pods = set(made.pods)
    seen, _ = without_others(made.seen(), made.settings.controller)
    made.slot += 1
    made.reconciler.plan_if_due(made.now(), lambda: seen)
    assert made.reconciler.steps(seen, made.now()).actions == []
    assert (set(made.pods), made.reconciler.driver.by_uid) == (pods, {})


class Versioned(FakeConnection):
    """Patches that name a version are refused if the object has another one."""

    def request(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        wanted = (given.get("body") or {}).get("metadata", {}).get("resourceVersion")
        found = self.objects.get(path.removesuffix("/status"), {"metadata": {}})["metadata"]
        if method == "PATCH" and wanted not in (None, found.get("resourceVersion")):
            raise ApiError(method, path, 409, "Conflict", "the object has been modified")
        return super().request(method, path.removesuffix("/status"), **given)


def test_of_two_controllers_that_meet_a_new_job_one_gets_it() -> None:
    api = Versioned()
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


# -- plans that take long --------------------------------------------------------------------------


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
    played.begin_slowly(None)
    played.slot += 1
    turn()
    played.decide(None)
    turn()
    assert timeouts == [AGAIN, 0.0]
    assert played.workers(uid) == 4
