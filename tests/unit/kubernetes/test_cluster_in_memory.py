"""What a controller decides on a cluster in memory, beside the rows of scenarios.yaml; its meter,
and what goes wrong with one job: that is told on it, and the others go on."""

from __future__ import annotations

import json
import logging
from collections import Counter
from itertools import product
from typing import Any

import pytest

from baselines import FIFO
from oasis.driver import driver
from oasis.kubernetes import acting as reconcile
from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import WINDOWS, Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control import job_reader, statuses
from oasis.kubernetes.control.meter import WorkMeter
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.windows import Windows
from oasis.kubernetes.objects.existing import JOB, status_of
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.schema import schema_of
from oasis.model.errors import InstanceError
from oasis.scheduling import Plan, View
from oasis.scheduling.policy import Site
from tests.unit.kubernetes.fake_api import FakeConnection, writer
from tests.unit.kubernetes.played import (
    SLOT,
    Played,
    job,
    node,
    policy,
    rigid,
    utility_class,
    window,
)
from tests.unit.kubernetes.test_existing_jobs import ROWS, batch_job, read


@pytest.mark.parametrize(
    ("name", "value"),
    [("UTILITY", "[" * 100_000), ("MAXIMUM", "9" * 5_000), ("WORK", "[" * 100_000)],
)
def test_annotations_of_any_size_are_refused_and_not_choked_on(name: str, value: str) -> None:
    played = Played(policy("fifo"))
    uid = played.submit_batch(batch_job(2, MINIMUM="1", MAXIMUM="2"), slots=4.0)
    played.batch[uid]["metadata"]["annotations"][getattr(names, name)] = value
    played.run(1)
    assert played.phase(uid) == "Invalid"


@pytest.mark.parametrize("status", ["{", "[" * 100_000, '{"conditions": ["Placed"]}'], ids=len)
def test_a_status_that_we_cannot_have_written_counts_for_nothing(
    status: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = batch_job(2, STATUS=status)
    with caplog.at_level(logging.WARNING, "oasis.kubernetes"):
        assert status_of(found, JOB) == {}
    (said,) = caplog.messages
    assert said.startswith(f"ns/job/job-u: {names.STATUS} is not as we wrote it: ")
    played = Played(policy("fifo"))
    uid = played.submit_batch(found, slots=40.0)
    played.restart()
    played.run(2)
    assert (played.phase(uid), played.workers(uid)) == ("Running", 2)


def test_an_annotation_does_not_move_the_slots_of_the_cluster_and_a_status_does() -> None:
    admitted = {"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""}
    told = {"phase": "Waiting", "arrivalSlot": 999_999_999}
    told["conditions"] = [{**admitted, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    played = Played(policy("fifo"))
    played.settings = ControllerSettings(slot_seconds=SLOT)  # which counts slots from now on
    uid = played.submit_batch(batch_job(2, STATUS=json.dumps(told)), slots=40.0)
    played.restart()
    assert played.reconciler.clock.slot(played.now()) == 0
    played.run(1)
    assert played.reconciler.driver.by_uid[uid].arrived == 0
    ours = played.submit(rigid("j", 1, 1))
    played.jobs[ours]["status"] = {"arrivalSlot": 7}
    played.objects = Objects(FakeConnection())  # type: ignore[arg-type]
    assert played.restart().clock.slot(played.now()) == 8


@pytest.mark.parametrize("row", ROWS["class defaults"], ids=str)
def test_a_job_that_says_less_takes_utility_and_work_of_its_class(row: dict[str, Any]) -> None:
    worth, item = {"kind": "constant", "value": 7}, batch_job()
    made = utility_class(utility=worth, work={"workerSeconds": 120}, **row["class"])
    notes = {getattr(names, key): text for key, text in row.get("notes", {}).items()}
    item["metadata"]["annotations"] = notes
    seen = Seen({"jobs": [item], names.CLASS_PLURAL: [made]})
    assert item["metadata"]["annotations"] == notes, "what was seen is not changed"
    ((_, filled),) = seen.jobs
    if row["says"] is None:
        with pytest.raises(InstanceError, match="or a UtilityClass that says it; found nothing"):
            read(filled)
        return
    value, seconds = row["says"]
    utility = json.dumps({"kind": "constant", "value": value})
    explicit = batch_job(UTILITY=utility, WORK=json.dumps({"workerSeconds": seconds}))
    assert read(filled).job == read(explicit).job


@pytest.mark.parametrize("field", ["utility", "work"])
def test_a_class_has_defaults_of_the_form_that_jobs_have(field: str) -> None:
    ours, of_class = (schema_of(kind)["spec"] for kind in (names.KIND, names.CLASS_KIND))
    assert of_class["properties"][field] == ours["properties"][field]


def test_of_two_controllers_the_one_with_the_nodes_tells() -> None:
    """Each of two has one node, and a window is for the node of the second."""
    shared, told = [window("w", 2, 6, nodes=["n1"])], []
    one, two = (Played(policy("fifo"), name=name) for name in ("one", "two"))
    for made, others in ((one, "n1"), (two, "n0")):
        made.nodes = [each for each in made.nodes if each["metadata"]["name"] != others]
        made.restart()
        made.windows = shared
    for made, slots in ((one, 1), (two, 1), (one, 2), (two, 1)):
        made.run(slots)
        told.append([each["reason"] for each in shared[0]["status"]["conditions"]])
    assert told[0] == ["NoNode"], "somebody has to say it"
    assert told[1] == ["NoNode", "Accepted"]
    assert told[2:] == [["Accepted"]] * 2
    assert (one.told["w"], two.told["w"]) == (2, 1)


def test_conditions_are_written_on_a_window_that_is_as_it_was_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection, store = FakeConnection(), ObjectStore()
    clerk = writer(connection, **{WINDOWS.plural: store})
    found = {"metadata": {"name": "w", "resourceVersion": "7", "uid": "u"}, "spec": {}}
    clerk.write_windows([(found, [{"type": "Accepted"}])])
    assert connection.asked == [("PATCH", f"{WINDOWS.path(name='w')}/status")]
    (kept,) = store.items()
    assert kept["status"] == {"conditions": [{"type": "Accepted"}]}

    with caplog.at_level(logging.WARNING, "oasis.kubernetes"):
        for status in (409, 403, 403):  # another controller wrote; rights of an older version
            why = ApiError("PATCH", "/", status, "No", "not you")
            connection.refuses = lambda *_, why=why: why  # type: ignore[misc]
            clerk = writer(connection)
            for _ in range(2):
                clerk.write_windows([(found, [])])
    assert [each.getMessage().count("403") for each in caplog.records] == [1, 1]


def test_windows_are_rounded_outwards_to_slots_and_repeat() -> None:
    made = Played(policy("fifo"))
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


# From when on these do work, in the order of the calls; None: a slot ends.
Event = tuple[int, str | None]


def by_hand(events: list[Event]) -> list[Counter[str]]:
    """Seconds of each worker in each slot, from what was known as each passed."""
    slots = [Counter[str]() for _ in range(3)]
    for second in range(max(at for at, _ in events)):
        first = next(k for k, (at, _) in enumerate(events) if at > second)
        told = [workers for _, workers in events[:first]]
        known = [workers for workers in told if workers is not None]
        slots[told.count(None)].update(known[-1] if known else "")
    return slots


def test_each_second_is_counted_once_also_where_notes_come_out_of_order() -> None:
    """A worker-slot, the most of a slot, is six of its ten seconds. Each short history is tried."""
    notes = list(product((3, 10, 12), ("", "a", "ab")))
    for one, two, three, four in product([(2, "b"), (8, "ab")], notes, notes, notes):
        events: list[Event] = [one, two, (10, None), three, four, (20, None)]
        meter, found = WorkMeter(SlotClock(slot_seconds=10.0, startup_seconds=4.0)), []
        for at, workers in events:
            if workers is None:
                found.append(meter.close(float(at))["j"])
            else:
                meter.note("j", workers, float(at))
        most = [sum(min(6, seconds) for seconds in slot.values()) / 6 for slot in by_hand(events)]
        assert [*found, 0.0] == most, events


@pytest.mark.parametrize(
    ("module", "name", "doing"),
    [
        (job_reader, "parse", "reading"),
        (reconcile.p, "pod_object", "acting on"),
        (statuses.StatusWriter, "holds", "telling of"),
    ],
)
def test_a_bug_that_one_job_meets_is_told_on_it(
    module: Any,
    name: str,
    doing: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole, on = getattr(module, name), [True]

    def buggy(*given: Any, **more: Any) -> Any:
        about = [*given, *more.values(), getattr(given[0], "name", "")]
        if on[0] and any(f"bad{end}" in repr(part) for part in about for end in ("'", "-w")):
            raise TypeError("a bug of ours")
        return whole(*given, **more)

    monkeypatch.setattr(module, name, buggy)
    played = Played(policy("fifo"))
    uids = [played.submit(rigid(each, 2, 3)) for each in ("a", "bad", "c")]
    played.run(5)
    assert [played.phase(uid) for uid in uids] == ["Completed", "Failed", "Completed"]
    assert f"TypeError: a bug of ours, when {doing} it" in str(played.said(uids[1], "Valid"))
    assert played.measured("oasis_job_errors_total", doing=doing) == 1
    assert "Traceback" in caplog.text
    assert not played.pods
    on[0] = False
    played.edit(uids[1], gracePeriodSeconds=1)
    played.run(5)
    assert played.phase(uids[1]) == "Completed"


def test_a_checkpoint_that_cannot_be_read_back_is_replaced_by_what_the_objects_say(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    played = Played(policy("fifo"))
    uid = played.submit(rigid("j", 2, 4))
    played.run(2)
    monkeypatch.setattr(driver, "restore_policy", lambda *_: 1 / 0)
    played.restart()
    assert "arrive once more" in caplog.text
    assert played.measured("oasis_failures_total") == 1
    monkeypatch.undo()
    played.run(4)
    assert played.phase(uid) == "Completed"


class Fragile(FIFO):
    """It holds what cannot be written down, and fails when it is told to or meets a job twice."""

    def __init__(self) -> None:
        super().__init__()
        self.bad, self.stream = "nothing", iter(range(10**9))

    def reset(self, site: Site) -> None:
        super().reset(site)
        self.met: set[str] = set()

    def decide(self, view: View) -> Plan:
        next(self.stream)
        arrived = {each.id for each in view.arrived}
        assert not arrived & self.met, "it has not been reset"
        self.met |= arrived
        if self.bad == "anything" or any(each.id == self.bad for each in view.jobs()):
            raise RuntimeError("out of order")
        return super().decide(view)


@pytest.fixture
def made() -> list[Fragile]:
    return []


@pytest.fixture
def fragile(made: list[Fragile]) -> Played:
    return Played(lambda: made.append(Fragile()) or made[-1])  # type: ignore[func-returns-value]


def test_a_policy_that_fails_with_a_job_is_reset_before_it_is_asked_again(
    fragile: Played, made: list[Fragile]
) -> None:
    uids = [fragile.submit(rigid("a", 2, 6))]
    fragile.run(2)
    made[-1].bad = "ns/bad"
    uids += [fragile.submit(rigid(name, 2, 2)) for name in ("bad", "c")]
    fragile.run(6)
    assert [fragile.phase(uid) for uid in uids] == ["Completed", "Failed", "Completed"]
    assert "out of order" in str(fragile.said(uids[1], "Valid"))


def test_a_policy_that_cannot_be_written_down_and_fails_on_new_machines_loses_no_job(
    fragile: Played, made: list[Fragile]
) -> None:
    """Its live jobs are about to arrive once more; the checkpoint has them nevertheless."""
    played = fragile
    uid = played.submit(job("a", slots=80.0))
    played.run(3)
    before = played.reconciler.driver.by_uid[uid]
    played.restart()
    assert not played.reconciler.driver.jobs  # all live jobs arrive once more
    played.step()
    after = played.reconciler.driver.by_uid[uid]
    assert (after.arrived, after.admitted) == (before.arrived, True)
    assert after.done >= before.done > 0
    made[-1].bad = "anything"
    played.nodes.append(node("n2", "worker", 4))
    played.step()
    assert not played.reconciler.driver.jobs
    played.restart()
    played.run(2)
    found = played.reconciler.driver.by_uid[uid]
    assert (found.arrived, found.admitted) == (before.arrived, True)
    assert found.done > 0
    played.run(25)
    assert played.phase(uid) == "Completed"
