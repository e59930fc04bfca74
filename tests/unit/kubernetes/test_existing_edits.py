"""What owners do to jobs of other kinds that were admitted: none of it stops the controller."""

from __future__ import annotations

import json
import logging
import time
from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.acting import Switch, action_word, described
from oasis.kubernetes.api.resources import Objects
from oasis.kubernetes.cluster.pods import claimed, claims_of
from oasis.kubernetes.control.checkpoint import Checkpoint
from oasis.kubernetes.control.memory import awake
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import StatusWriter, status_of
from oasis.kubernetes.objects.existing import (
    JOB,
    JOBSET,
    JOBSET_NAME,
    REPLICATED_JOB,
    ExistingKind,
    items_of,
    job_items,
)
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.test_existing_jobs import job, jobset, pod, read

SETTINGS = ControllerSettings(slot_seconds=60.0, ps_share=Fraction(1, 4))
NODE = {
    "metadata": {
        "name": "n0",
        "uid": "n0",
        "labels": {names.HOSTNAME: "n0", names.NODE_ROLE: "both"},
    },
    "spec": {},
    "status": {
        "allocatable": {"cpu": "64", "memory": "100Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def stored(found: dict[str, Any], version: int = 1) -> dict[str, Any]:
    """An object as the API server gives it."""
    found["metadata"] |= {
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 1,
        "labels": {names.SCHEDULED: "true"},
    }
    return found


def cluster(**items: list[dict[str, Any]]) -> dict[str, list[Any]]:
    kinds = ("pods", "oasisjobs", "jobs", "jobsets", "trainjobs")
    return {"nodes": [NODE], **{kind: [] for kind in kinds}, **items}


def at_work(seen: dict[str, list[Any]]) -> Reconciler:
    """A controller that has decided once on what is there."""
    checkpoint = Checkpoint(Objects(FakeConnection()), "ns", "c")  # type: ignore[arg-type]
    clock = SlotClock(60.0, 0.0, time.time() - 1)
    reconciler = Reconciler(FIFO(), SETTINGS, clock, checkpoint, Metrics(), seen)
    assert reconciler.begin_slot_if_due(time.time(), seen)
    return reconciler


def woken(seen: dict[str, list[Any]]) -> Reconciler:
    """A controller that finds no checkpoint."""
    return awake(Objects(FakeConnection()), FIFO, SETTINGS, Metrics(), seen)  # type: ignore[arg-type]


def words(reconciler: Reconciler, seen: dict[str, list[Any]]) -> list[tuple[str, str]]:
    made = [described(action) for action in reconciler.steps(seen, time.time()).actions]
    return [(each["action"], each["job"]) for each in made]


# -- deleted, or switched by others --------------------------------------------------------------


def test_of_a_job_that_was_deleted_within_the_slot_no_pods_are_made() -> None:
    seen = cluster(jobs=[stored(job(2))])
    reconciler = at_work(seen)
    assert words(reconciler, seen) == [("resume", "ns/job/job-u")]
    assert words(reconciler, cluster()) == []
    reconciler.note("u", {}, time.time())
    assert reconciler.meter.working("u") == frozenset()
    assert words(reconciler, seen) == [("resume", "ns/job/job-u")], "its label was set again"


def act(reconciler: Reconciler, seen: dict[str, list[Any]]) -> list[str]:
    """Do what is wanted to the one object; the words for it."""
    actions = reconciler.steps(seen, time.time()).actions
    for action in actions:
        assert isinstance(action, Switch)
        found = seen[action.kind.where.plural]
        found[0] = {**found[0], "spec": {**found[0]["spec"], "suspend": action.suspend}}
    reconciler.did(actions, [], time.time())
    return [action_word(action) for action in actions]


def switched(found: dict[str, Any], suspend: bool) -> dict[str, Any]:
    """The object, after another has suspended or resumed it."""
    return {**found, "spec": {**found["spec"], "suspend": suspend}}


@pytest.mark.parametrize("kind", [JOB, JOBSET])
def test_what_another_controller_switches_too_is_left_alone_until_an_edit(
    kind: ExistingKind,
) -> None:
    found = stored(job(2) if kind is JOB else jobset(SERVERS="s"))
    seen = cluster(**{kind.where.plural: [found]})
    reconciler = at_work(seen)
    assert act(reconciler, seen) == ["resume"]
    seen[kind.where.plural] = [switched(found, True)]
    for suspend in (False, True, False):
        assert act(reconciler, seen) == []
        seen[kind.where.plural] = [switched(found, suspend)]
    job_status = reconciler.statuses["u"]
    assert job_status.phase == "Invalid"
    said = "spec.suspend: expected to be changed here alone, and another suspended it"
    assert (job_status.said("Valid") or {})["message"].startswith(said)
    assert ("Warning", "Invalid") in {(each[0], each[1]) for each in job_status.news}
    found["metadata"]["annotations"][names.WORK] = '{"workerSeconds": 90}'
    seen[kind.where.plural] = [found]
    reconciler.clock = SlotClock(60.0, 0.0, reconciler.clock.epoch - 60.0)
    assert reconciler.begin_slot_if_due(time.time(), seen)
    assert act(reconciler, seen) == ["resume"]


def test_an_object_is_suspended_and_resumed_no_more_than_once_a_slot() -> None:
    """Pods that never are those of the plan would otherwise be begun anew at every look."""
    found = stored(job(2))
    found["spec"]["suspend"] = False
    seen = cluster(jobs=[found])
    reconciler = at_work(seen)
    stray = pod("stray", "n0", "Running")
    stray["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": "u", "controller": True}]
    stray["metadata"]["annotations"][names.NODE] = stray["spec"]["nodeName"] = "n9"
    done = []
    for _ in range(6):
        seen["pods"] = [stray] if not seen["jobs"][0]["spec"]["suspend"] else []
        done += act(reconciler, seen)
    assert done == ["suspend", "resume"]
    reconciler.clock = SlotClock(60.0, 0.0, reconciler.clock.epoch - 60.0)
    assert reconciler.begin_slot_if_due(time.time(), seen)
    assert act(reconciler, seen) == ["suspend"]


# -- edited annotations --------------------------------------------------------------------------


def test_who_is_worker_stays_as_it_was_read_until_the_object_is_read_again() -> None:
    found = stored(jobset(SERVERS="s"))
    reconciler = at_work(cluster(jobsets=[found]))
    assert read(found, JOBSET).part_names == ("w", "s")
    assert read(job()).part_names == ("", None)
    edited = deepcopy(found)
    edited["metadata"]["annotations"][names.SERVERS] = "bogus"
    assert words(reconciler, cluster(jobsets=[edited])) == [("resume", "ns/jobset/job-u")]
    reconciler.note("u", {}, time.time())
    reconciler.clock = SlotClock(60.0, 0.0, reconciler.clock.epoch - 60.0)
    assert reconciler.begin_slot_if_due(time.time(), cluster(jobsets=[edited]))
    assert reconciler.statuses["u"].phase == "Invalid"
    assert words(reconciler, cluster(jobsets=[edited])) == []


def test_a_replicated_job_that_is_gone_has_no_pods() -> None:
    found = stored(jobset(SERVERS="s"))
    reconciler = at_work(cluster(jobsets=[found]))
    edited = deepcopy(found)
    edited["spec"]["suspend"] = False
    del edited["spec"]["replicatedJobs"][0]
    running = pod("p", "n0", "Running", labels={JOBSET_NAME: "job-u", REPLICATED_JOB: "w"})
    running["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": "x", "controller": True}]
    seen = cluster(jobsets=[edited], pods=[running])
    assert words(reconciler, seen) == [("suspend", "ns/jobset/job-u")]


@pytest.mark.parametrize(
    ("name", "value"),
    [("WORK", "[" * 100_000), ("UTILITY", "[" * 100_000), ("MAXIMUM", "9" * 5_000)],
)
def test_annotations_of_any_size_are_refused_and_not_choked_on(name: str, value: str) -> None:
    seen = cluster(jobs=[stored(job(2, **{"MINIMUM": "1", "MAXIMUM": "2", name: value}))])
    assert at_work(seen).statuses["u"].phase == "Invalid"


@pytest.mark.parametrize("status", ["{", "[" * 100_000, '{"conditions": ["Placed"]}'], ids=len)
def test_a_status_that_we_cannot_have_written_counts_for_nothing(
    status: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = stored(job(2, STATUS=status))
    with caplog.at_level(logging.WARNING, "oasis.kubernetes"):
        assert status_of(found, JOB) == {}
    (said,) = caplog.messages
    assert said.startswith(f"ns/job/job-u: {names.STATUS} is not as we wrote it: ")
    seen = cluster(jobs=[found])
    reconciler = woken(seen)
    assert reconciler.begin_slot_if_due(time.time(), seen)
    assert words(reconciler, seen) == [("resume", "ns/job/job-u")]


def test_a_status_as_we_write_it_is_read_as_it_was_written() -> None:
    seen = cluster(jobs=[stored(job(2))])
    reconciler = at_work(seen)
    reconciler.clock = SlotClock(60.0, 0.0, reconciler.clock.epoch - 60.0)
    assert reconciler.begin_slot_if_due(time.time(), seen)
    written = reconciler.statuses["u"].body()["metadata"]["annotations"]
    assert json.loads(written[names.STATUS])["phase"] == "Starting"
    found = stored(job(2))
    found["metadata"]["annotations"] |= written
    assert status_of(found, JOB) == reconciler.statuses["u"].status
    assert StatusWriter(found, reconciler.clock, JOB).written == reconciler.statuses["u"].status


def test_an_annotation_does_not_move_the_slots_of_the_cluster() -> None:
    told = {
        "phase": "Waiting",
        "arrivalSlot": 999_999_999,
        "conditions": [
            {
                "type": "Admitted",
                "status": "True",
                "reason": "Admitted",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    seen = cluster(jobs=[stored(job(2, STATUS=json.dumps(told)))])
    reconciler = woken(seen)
    assert reconciler.clock.slot(time.time()) == 0
    assert reconciler.begin_slot_if_due(time.time(), seen)
    assert [entry.arrived for entry in reconciler.driver.entries.values()] == [0]
    ours = {"metadata": {}, "status": {"arrivalSlot": 7}}
    assert reconciler.clock.slot(time.time()) == 0
    ours["metadata"] = {"name": "o", "namespace": "ns", "uid": "o"}
    assert woken(cluster(oasisjobs=[ours])).clock.slot(time.time()) == 8


# -- children ------------------------------------------------------------------------------------


def test_a_child_job_with_our_label_leaves_its_pods_to_its_jobset() -> None:
    parent = stored(jobset(SERVERS="s"))
    parent["metadata"]["name"] = "train"
    child = stored(job(2, uid="child"), 3)
    owner = {"kind": "JobSet", "uid": "u", "name": "train", "controller": True}
    child["metadata"]["ownerReferences"] = [owner]
    child["spec"]["suspend"] = False
    made_by = {"kind": "Job", "uid": "child", "name": "train-w-0", "controller": True}
    running = pod(
        "p",
        "n0",
        "Running",
        labels={JOBSET_NAME: "train", REPLICATED_JOB: "w"},
        ownerReferences=[made_by],
    )
    seen = cluster(jobs=[child], jobsets=[parent], pods=[running])
    assert items_of(seen, JOB) == []
    assert job_items(seen) == [(JOBSET, parent)]
    assert claimed(running, claims_of(seen)) == "u"
    reconciler = at_work(seen)
    assert reconciler.statuses.keys() == {"u"}
    assert ("suspend", "ns/job/job-child") not in words(reconciler, seen)
