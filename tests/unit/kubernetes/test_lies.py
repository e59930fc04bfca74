"""A tenant whose jobs say what is not so gains next to nothing: its rival ends as if they did not.

The tenant's training runs as jobs one after the other, or at once; the rival has one honest job.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import oasis
from experiments.evaluation.live import cluster_policy
from oasis.kubernetes import names
from oasis.kubernetes.control.tenants import Took
from oasis.kubernetes.objects.oasis_job import SlotClock, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.online.prices import PriceBounds
from tests.unit.kubernetes.played import SLOT, Played, job, job_of, utility_class

LONG, RIVAL = 22, 20  # slots that each job of the liar, and that of the rival, takes
WORK = 8 * LONG * SLOT  # worker-seconds
FALLING = {"kind": "piecewise", "delaysSeconds": [0, 6000], "values": [60, 0]}
ALL = {"workers": {"maximum": 8}}  # a form


def typical(cluster: oasis.Cluster) -> PriceBounds:
    made, clock = job("past", slots=8.0 * RIVAL), SlotClock(SLOT)
    made["metadata"] |= {"uid": "past"}
    made["spec"]["utility"] = FALLING
    return PriceBounds.from_jobs([parse_job(made, clock, DEFAULT_RESOURCES).job], cluster, 150)


class Rivals(Played):
    """What the liar says is true where `honest`."""

    def __init__(self, policy: str, lie: str, honest: bool) -> None:
        super().__init__(cluster_policy(policy, {}, lookahead=150, horizon=None, bounds=typical))
        self.classes = [utility_class()]
        self.lie = "" if honest else lie
        self.declares: dict[str, Any] = {"work": {"workerSeconds": WORK}}
        if self.lie in ("chain", "deleted", "at once"):
            self.declares["work"] = {"workerSeconds": 1.0}
        if lie == "forms":  # the second of them is raised in each slot
            first = WORK if honest else WORK / 100
            self.declares["forms"] = [ALL, {**ALL, "work": {"workerSeconds": first}}]
        if lie == "maximum":
            self.declares["utility"] = {**FALLING, "values": [10 if honest else 100, 0]}
        self.theirs: dict[str, int] = {}  # jobs of the liar, and worker-slots of each

    def submit_own(self, name: str, slots: int, **spec: Any) -> str:
        made = job(name, slots=8.0 * slots)
        made["spec"] |= {"utility": FALLING, **spec}
        return self.submit(made)

    def submit_theirs(self) -> None:
        name = f"theirs{len(self.theirs)}"
        made = job(name)
        made["metadata"]["namespace"] = "theirs"
        made["spec"] |= {"utility": FALLING, "completion": "chief", **self.declares}
        self.theirs[self.submit(made)] = 0

    def pass_slot(self) -> None:
        """A slot passes; the liar reports, edits, and goes on with another job."""
        self.step()
        for uid in list(self.theirs):
            self.theirs[uid] += self.workers(uid) if uid in self.jobs else 0
            if self.theirs[uid] == 8 * LONG and uid in self.jobs:
                self.delete(uid) if self.lie == "deleted" else self.succeed(uid)
                self.theirs[uid] += 1
                self.submit_theirs()
            if self.lie == "report":
                for pod in self.pods.values():
                    if job_of(pod) == uid:
                        pod["metadata"]["annotations"][names.PROGRESS] = str(WORK * 79.5 / 80)
            if self.lie == "forms":
                work = WORK / 100 * 2**self.slot
                self.edit(uid, forms=[ALL, {**ALL, "work": {"workerSeconds": work}}])


def outcome(policy: str, lie: str, honest: bool) -> tuple[int, float]:
    """Slot in which the rival is done, and what it has earned by then."""
    made = Rivals(policy, lie, honest)
    made.run(1)
    made.submit_theirs()
    if lie in ("report", "forms"):
        made.pass_slot()
    uid = made.submit_own("rival", RIVAL)
    while made.phase(uid) != "Completed" and made.slot < 60:
        made.pass_slot()
    if made.lie == "forms":
        refused = [str(made.said(uid, "Placed")) for uid in made.theirs if uid in made.jobs]
        assert any("raises its work to" in message for message in refused), refused
    return made.status(uid).get("completionSlot", made.slot), made.status(uid).get("utility", 0.0)


LIES = ("chain", "deleted", "report", "forms", "maximum")
PAIRS = set(product(LIES, ("recourse", "oasis", "srtf")))
PAIRS.remove(("maximum", "recourse"))  # it charges nothing for what a job claims


@pytest.mark.parametrize(("lie", "policy"), sorted(PAIRS))
def test_the_rival_of_a_liar_ends_as_beside_an_honest_tenant(lie: str, policy: str) -> None:
    """Of a chain whose jobs declare one second each, a report ahead of its time, and the rest."""
    end, earned = outcome(policy, lie, True)
    assert end < 60
    end_now, earned_now = outcome(policy, lie, False)
    assert end_now <= 1.1 * end
    assert earned_now >= 0.9 * earned


def test_a_long_honest_job_hides_no_lies_and_short_ones_do_not_wash_them_away() -> None:
    took = Took()
    assert took.times("a") == 1.0
    took.learn("a", 1.0, 480.0)
    assert took.times("a") == pytest.approx(480.0, abs=0.1)
    for _ in range(9):
        took.learn("a", 1.0, 1.0)
    assert took.times("a") > 300
    assert took.times("b") == 1.0
    took.learn("b", 100.0, 50.0)  # who declares too much gains nothing later
    took.learn("b", 9600.0, 9600.0)
    assert took.times("b") == 1.0
    for _ in range(5):
        took.learn("b", 1.0, 480.0)
    assert took.times("b") > 30
