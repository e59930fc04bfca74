"""A policy's own word for the state of a job is a condition of the object as long as it lasts."""

from __future__ import annotations

from typing import Any

import pytest

from baselines import FIFO
from baselines.kod2 import Kod2
from experiments.cli.commands.kubernetes.reading import _status_row, explained, summary
from oasis.kubernetes.api.resources import Objects
from oasis.kubernetes.control.checkpoint import Checkpoint
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.objects.conditions import IN_STATE
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.scheduling.job import PolicyJob
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.test_existing_edits import SETTINGS, cluster, job, stored
from tests.unit.kubernetes.test_objects import CLOCK

EPOCH = 1_000_000.0


class Moody(FIFO):
    """A policy with other words than KOD2's."""

    word: str | None = "scaled in"

    def state_of(self, job: PolicyJob) -> str | None:
        return self.word


def reconciler_of(
    policy: Any, seen: dict[str, list[Any]], settings: ControllerSettings = SETTINGS
) -> Reconciler:
    checkpoint = Checkpoint(Objects(FakeConnection()), "ns", "c")  # type: ignore[arg-type]
    return Reconciler(policy, settings, SlotClock(60.0, 0.0, EPOCH), checkpoint, Metrics(), seen)


def boundary(reconciler: Reconciler, slot: int, seen: dict[str, list[Any]]) -> None:
    assert reconciler.begin_slot_if_due(EPOCH + 60.0 * slot + 1.0, seen)


def state(reconciler: Reconciler, uid: str) -> dict[str, Any] | None:
    """The condition of the object with that uid, if it has one."""
    found = reconciler.statuses[uid].status.get("conditions") or ()
    return next((entry for entry in found if entry["type"] == IN_STATE), None)


def test_who_starves_by_kod2_says_so_until_it_runs() -> None:
    first, second = (stored(job(6, uid=uid)) for uid in ("a", "b"))
    seen = cluster(jobs=[first, second])
    reconciler = reconciler_of(Kod2(starve_limit=90.0), seen)
    told = []
    for slot in range(4):
        boundary(reconciler, slot, seen)
        found = state(reconciler, "b")
        told.append(None if found is None else (found["status"], found["reason"]))
        assert state(reconciler, "a") is None, "it runs, which the phase says"
    assert told == [None, None, ("True", "Starving"), ("True", "Starving")]
    item = {**second, "status": reconciler.statuses["b"].status}
    assert summary((None, item))["reasons"][IN_STATE] == "Starving"
    assert _status_row(summary((None, item)))[-1] == "Waiting Starving"
    (said,) = (entry for entry in explained((None, item)) if entry["type"] == IN_STATE)
    assert said["message"] == "the policy says that it is starving"
    assert "goes before all others" in said["advice"]
    boundary(reconciler, 4, cluster(jobs=[second]))  # the first was deleted
    assert reconciler.statuses["b"].phase == "Starting"
    assert state(reconciler, "b") is None


def test_any_policy_may_have_words_of_its_own() -> None:
    seen = cluster(jobs=[stored(job(2, uid="a"))])
    policy = Moody()
    reconciler = reconciler_of(policy, seen)
    boundary(reconciler, 0, seen)
    found = state(reconciler, "a")
    assert found is not None
    assert found["reason"] == "ScaledIn"
    for slot, word in enumerate(("running", None), start=1):  # a phase, and no word at all
        policy.word = word
        boundary(reconciler, slot, seen)
        assert state(reconciler, "a") is None


@pytest.mark.parametrize("end", ["given_up", "completed", "invalid"])
def test_it_goes_when_the_job_ends(end: str) -> None:
    made = StatusWriter({"metadata": {"name": "j", "namespace": "d"}}, CLOCK)
    made.in_state("starving", 0.0)
    assert [reason for _, reason, _, _ in made.news] == ["Starving"]
    if end == "given_up":
        made.given_up("it can earn nothing any more", 1.0)
    elif end == "invalid":
        made.invalid("workers: expected a whole number", 1.0)
    else:
        made.ended(1.0)
    assert IN_STATE not in {entry["type"] for entry in made.status.get("conditions") or ()}
