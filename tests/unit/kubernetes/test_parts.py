"""Checkpoints, leases, stores, statuses and machines, each on its own."""

from __future__ import annotations

import random
import threading
from fractions import Fraction
from typing import Any

import pytest

from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError, parsed_error
from oasis.kubernetes.api.lease import Lease
from oasis.kubernetes.api.resources import LEASES, PODS, Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.cluster.nodes import foreign_use, places_of, site_of
from oasis.kubernetes.cluster.world import Report, reported
from oasis.kubernetes.control.checkpoint import PART, Checkpoint
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.objects.conditions import decision_message
from oasis.kubernetes.objects.manifests import own
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.model.decision import Decision
from oasis.model.errors import InstanceError
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.test_objects import CLOCK

POD = {"metadata": {"name": "p", "namespace": "d", "uid": "u", "ownerReferences": []}}


def checkpoint(connection: Any) -> Checkpoint:
    return Checkpoint(Objects(connection), "system", "one")


@pytest.mark.parametrize("size", [0, 10, 2 * PART + 5])
def test_a_checkpoint_of_any_size_is_read_as_it_was_written(size: int) -> None:
    connection = FakeConnection()
    document = {"noise": random.Random(1).randbytes(size).hex()}
    checkpoint(connection).write(document)
    assert checkpoint(connection).read() == document


def test_of_two_controllers_the_second_cannot_write() -> None:
    connection = FakeConnection()
    checkpoint(connection).write({"slot": 0})
    one, other = checkpoint(connection), checkpoint(connection)
    assert one.read() == other.read()
    one.write({"slot": 1})
    with pytest.raises(ApiError, match="409 Conflict"):
        other.write({"slot": 2})
    assert checkpoint(connection).read() == {"slot": 1}


def test_a_checkpoint_without_one_of_its_parts_is_none() -> None:
    connection = FakeConnection()
    checkpoint(connection).write({"noise": random.Random(1).randbytes(2 * PART).hex()})
    parts = [path for path in connection.objects if not path.endswith("/one")]
    del connection.objects[parts[0]]
    assert checkpoint(connection).read() is None


def test_what_has_not_changed_is_not_written() -> None:
    connection = FakeConnection()
    kept = checkpoint(connection)
    kept.write({"slot": 1})
    before = len(connection.asked)
    kept.write({"slot": 1})
    assert len(connection.asked) == before


def test_a_pod_is_made_once_though_the_answer_is_lost() -> None:
    connection = FakeConnection()
    connection.lost = 1
    found = Objects(connection).create(PODS, POD)  # type: ignore[arg-type]
    assert found["metadata"]["name"] == "p"
    assert [method for method, _ in connection.asked] == ["POST", "POST", "GET"]


def test_another_object_of_the_same_name_is_an_error_and_is_not_deleted() -> None:
    connection = FakeConnection()
    objects = Objects(connection)  # type: ignore[arg-type]
    other = {"metadata": {**POD["metadata"], "uid": "v", "ownerReferences": [{"uid": "x"}]}}
    objects.create(PODS, other)
    with pytest.raises(ApiError, match="AlreadyExists"):
        objects.create(PODS, POD)
    objects.delete(PODS, POD)
    assert len(connection.objects) == 1
    objects.delete(PODS, other)
    objects.delete(PODS, other)
    assert not connection.objects


def lease(connection: Any, who: str, seconds: float) -> Lease:
    over = threading.Event()
    return Lease(connection, "system", "one", who, seconds, over, lambda _: None)


def test_a_lease_is_taken_over_only_when_it_has_run_out() -> None:
    connection = FakeConnection()
    first, second = lease(connection, "first", 1.0), lease(connection, "second", 1.0)
    first._try()
    second._try()
    assert (first.is_held, second.is_held) == (True, False)
    second._seen = second._seen[0], second._seen[1] - 0.5
    second._try()
    assert not second.is_held, "half of its time has passed"
    second._seen = second._seen[0], second._seen[1] - 1.0
    second._try()
    assert second.is_held
    found = Objects(connection).get(LEASES, "one", "system")  # type: ignore[arg-type]
    assert found is not None
    assert found["spec"]["leaseTransitions"] == 1


def test_a_released_lease_is_free_at_once() -> None:
    connection = FakeConnection()
    first, second = lease(connection, "first", 9.0), lease(connection, "second", 9.0)
    first._try()
    first.release()
    second._try()
    assert (first.is_held, second.is_held) == (False, True)


def test_the_store_keeps_the_newest_and_forgets_what_a_list_lacks() -> None:
    def item(name: str, version: int) -> dict[str, Any]:
        return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}}

    store = ObjectStore()
    assert store.put(item("a", 5))
    assert not store.put(item("a", 4))
    store.put(item("mine", 9))
    store.replace([item("b", 7)], 8)
    assert sorted(found["metadata"]["name"] for found in store.items()) == ["b", "mine"]
    store.drop(item("b", 10))
    assert not store.put(item("b", 7)), "an answer that comes late does not bring it back"


def test_statuses_tell_news_once() -> None:
    job = StatusWriter({"metadata": {"name": "j", "namespace": "d", "generation": 2}}, CLOCK)
    job.rejected("payoff not positive: too dear", None, None, 0.0)
    job.rejected("payoff not positive: too dear", None, None, 9.0)
    assert [(kind, reason) for kind, reason, _, _ in job.news] == [("Warning", "PayoffNonPositive")]
    assert job.body()["status"]["phase"] == "Rejected"
    assert job.body()["status"]["observedGeneration"] == 2
    assert "no utility" in decision_message(Decision("j", False, reason="no room"), "no room", None)


def node(name: str, role: str | None, **status: Any) -> dict[str, Any]:
    labels = {names.HOSTNAME: name} | ({names.NODE_ROLE: role} if role else {})
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "8", "memory": "16G"}, "conditions": ready, **status},
    }


def test_nodes_become_machines_with_what_others_leave() -> None:
    nodes = {n["metadata"]["name"]: n for n in (node("w10", "worker"), node("w9", "worker"))}
    nodes |= {"x": node("x", None), "p": node("p", "ps"), "b": node("b", "both")}
    places = places_of(nodes.values(), Fraction(1, 4))
    assert [place.id for place in places] == ["b/worker", "w9", "w10", "b/ps", "p"]
    foreign = {
        "metadata": {"name": "f", "uid": "f", "labels": {names.JOB_UID: "u"}},
        "spec": {"nodeName": "w9", "containers": [{"resources": {"requests": {"cpu": "3"}}}]},
    }
    site = site_of(places, nodes, foreign_use([foreign]), DEFAULT_RESOURCES, 60.0)
    cpu = site.resources.index("cpu")
    assert [machine.amounts[cpu] for machine in site.machines] == [6.0, 5.0, 8.0, 2.0, 8.0]
    foreign["status"] = {"phase": "Succeeded"}
    assert foreign_use([foreign]) == {}


def test_the_pod_that_has_done_most_speaks_for_its_job() -> None:
    def told(**notes: str) -> dict[str, Any]:
        said = {getattr(names, key): value for key, value in notes.items()}
        return {"metadata": {"annotations": said}}

    pods = {"a": told(PROGRESS="12.5", LOSS="0.5"), "b": told(PROGRESS="13", LOSS="-2e-1")}
    assert reported({**pods, "c": {"metadata": {}}}) == Report(13.0, -0.2)
    assert reported({}) == Report(None, None)
    assert reported({"a": told(LOSS="3")}) == Report(None, 3.0)
    for text in ("nan", "low"):
        with pytest.raises(InstanceError, match=f"{names.LOSS}: expected a finite number"):
            reported({"a": told(LOSS=text)})


def test_errors_of_the_server_are_read_as_status_or_as_text() -> None:
    found = parsed_error("GET", "/x", 429, b"Too many requests", {"Retry-After": "2"})
    assert (found.status, found.retry_after, found.message) == (429, 2.0, "Too many requests")
    found = parsed_error("GET", "/x", 409, b'{"reason": "Conflict", "message": "m"}', {})
    assert str(found) == "GET /x: 409 Conflict: m"


def test_settings_and_manifests() -> None:
    with pytest.raises(InstanceError, match="slot_seconds: expected a finite number > 0"):
        ControllerSettings(slot_seconds=0)
    made = own("there", "image:1", ["--policy=fifo"])
    container = made[-1]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][-1] == "--policy=fifo"
    assert {m["metadata"].get("namespace", "there") for m in made} == {"there"}
