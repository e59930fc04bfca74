"""Two controllers on one cluster: neither takes the rights, the jobs or the pods of the other."""

from __future__ import annotations

import json
import logging
from collections import Counter
from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import OASIS_JOBS, Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.control.writer import ClusterWriter
from oasis.kubernetes.objects.existing import JOB, content_version, controller_of, without_others
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.played import Played, job
from tests.unit.kubernetes.test_errors_of_one_job import rigid
from tests.unit.kubernetes.test_jobs_of_any_shape import policy

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
    assert content_version(noted(status), JOB) == content_version(noted("{}"), JOB)


def test_another_controller_is_named_once_for_each_job(caplog: pytest.LogCaptureFixture) -> None:
    settings = ControllerSettings(namespace="one", slot_seconds=60.0)
    made = Controller(Objects(FakeConnection()), FIFO, settings, "one")  # type: ignore[arg-type]
    store = made.stores[names.PLURAL]
    store.replace([of(TWO)], 9)
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
    made.reconciler.begin_slot_if_due(made.now(), seen)
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
    writers, jobs = [], []
    for name in (ONE, TWO):
        store = ObjectStore()
        store.replace([of(None)], 7)
        stores = {names.PLURAL: store}
        objects = Objects(api)  # type: ignore[arg-type]
        writers.append((ClusterWriter(objects, ObjectStore(), 1, Metrics(), stores), store))
        jobs.append(StatusWriter(of(None), SlotClock(60.0)))
        jobs[-1].status["controller"] = name
    for (writer, _), made in zip(writers, jobs, strict=True):
        writer.write_statuses([made])
    assert [made.is_claimed for made in jobs] == [True, False]
    # the watch tells the second one; it is not written over
    writers[1][1].put({**of(ONE), "metadata": {**of(ONE)["metadata"], "resourceVersion": "8"}})
    writers[1][0].write_statuses([jobs[1]])
    for writer, _ in writers:
        writer.close()
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
