"""What makes no sense in the annotations of jobs of other kinds stops nobody."""

from __future__ import annotations

import json
import logging

import pytest

from oasis.kubernetes import names
from oasis.kubernetes.api.resources import Objects
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import status_of
from oasis.kubernetes.objects.existing import JOB
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.played import SLOT, Played, policy, rigid
from tests.unit.kubernetes.test_existing_jobs import job


@pytest.mark.parametrize(
    ("name", "value"),
    [("UTILITY", "[" * 100_000), ("MAXIMUM", "9" * 5_000), ("WORK", "[" * 100_000)],
)
def test_annotations_of_any_size_are_refused_and_not_choked_on(name: str, value: str) -> None:
    played = Played(policy("fifo"))
    uid = played.submit_batch(job(2, MINIMUM="1", MAXIMUM="2"), slots=4.0)
    played.batch[uid]["metadata"]["annotations"][getattr(names, name)] = value
    played.run(1)
    assert played.phase(uid) == "Invalid"


@pytest.mark.parametrize("status", ["{", "[" * 100_000, '{"conditions": ["Placed"]}'], ids=len)
def test_a_status_that_we_cannot_have_written_counts_for_nothing(
    status: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = job(2, STATUS=status)
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
    uid = played.submit_batch(job(2, STATUS=json.dumps(told)), slots=40.0)
    played.restart()
    assert played.reconciler.clock.slot(played.now()) == 0
    played.run(1)
    assert played.reconciler.driver.by_uid[uid].arrived == 0
    ours = played.submit(rigid("j", 1, 1))
    played.jobs[ours]["status"] = {"arrivalSlot": 7}
    played.objects = Objects(FakeConnection())  # type: ignore[arg-type]
    assert played.restart().clock.slot(played.now()) == 8
