"""A job that comes in the middle of a slot begins there, where the next plan leaves it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kubernetes.played import EPOCH, SLOT, Played, job
from tests.unit.kubernetes.test_errors_of_one_job import rigid
from tests.unit.kubernetes.test_jobs_of_any_shape import policy


class InMid(Played):
    """Time passes in parts of slots."""

    part = 0.0  # of the slot that has passed

    def now(self) -> float:
        return EPOCH + (max(0, self.slot) + self.part) * SLOT

    def step(self) -> None:
        self.part = 0.0
        super().step()

    def at(self, part: float) -> None:
        """Go on to this part of the slot, and begin what can begin."""
        self.part = part
        for _ in range(2):  # a new job is claimed in one turn, and begins in the next
            self.reconciler.start_between(self.now(), self.seen, 30.0, lambda: None)
            self.settle()


@pytest.fixture(params=["recourse", "fifo", "srtf"])
def played(request: Any) -> InMid:
    return InMid(policy(request.param))


def test_a_job_begins_at_its_arrival_and_stays_where_it_is(played: InMid) -> None:
    first = played.submit(rigid("first", 4, 8))
    played.step()
    second = played.submit(rigid("second", 4, 2))
    played.at(0.5)
    assert played.workers(second) == 4
    assert played.phase(second) == "Running"
    assert (played.said(second, "Placed") or ("", ""))[1] == "BetweenSlots"
    pods, is_staying = dict(played.pods), second in played.reconciler.between.staying
    assert is_staying or played.reconciler.driver.policy.name == "recourse"  # which moves the first
    played.step()
    if is_staying:
        assert played.pods.keys() == pods.keys()
        assert all(played.pods[name] is pod for name, pod in pods.items()), "no pod was made anew"
    entry = played.reconciler.driver.by_uid[second]
    assert entry.done == 0.0, "the policy knows nothing of it"
    assert played.reconciler.done[second] == pytest.approx(2.0)
    assert played.status(second)["progress"]["workerSeconds"] == pytest.approx(2.0 * SLOT)
    played.step()
    assert played.phase(second) == "Running"
    assert played.reconciler.done[second] == pytest.approx(6.0)
    played.step()
    assert played.phase(second) == "Completed"
    assert played.status(second)["completionSlot"] == 2
    assert played.phase(first) == "Running"


def test_a_job_that_is_done_before_the_boundary_completes(played: InMid) -> None:
    played.submit(rigid("first", 4, 8))
    played.step()
    short = played.submit(job("short", slots=1.0, minimum=4, maximum=4))
    played.at(0.25)
    assert played.workers(short) == 4
    played.step()
    assert played.phase(short) == "Completed"
    assert played.workers(short) == 0
    played.run(3)
    assert played.phase(short) == "Completed"
    assert not [uid for uid in played.reconciler.driver.by_uid if uid == short]


def test_what_does_not_fit_waits_for_the_boundary(played: InMid) -> None:
    first = played.submit(rigid("first", 6, 3))
    played.step()
    second = played.submit(rigid("second", 4, 2))
    played.at(0.5)
    assert (played.workers(first), played.workers(second)) == (6, 0)
    played.delete(second)
    played.at(0.6)
    played.run(4)
    assert played.phase(first) == "Completed"


def test_a_job_of_the_next_plan_gets_the_machines_of_one_that_is_not_in_it() -> None:
    played = InMid(policy("recourse"))
    played.submit(rigid("first", 4, 8))
    played.step()
    cheap = rigid("cheap", 4, 6)
    cheap["spec"]["utility"]["value"] = 1
    dear = rigid("dear", 4, 6)
    for one, value in ((cheap, 1), (dear, 1000)):
        one["spec"]["utility"] = {
            "kind": "sigmoid",
            "priority": value,
            "decayPerSecond": 0.1,
            "targetSeconds": 6 * SLOT,
        }
    low = played.submit(cheap)
    played.at(0.2)
    assert played.workers(low) == 4
    high = played.submit(dear)
    played.at(0.6)
    assert (played.workers(low), played.workers(high)) == (0, 4)
    played.step()
    assert (played.workers(low), played.workers(high)) == (0, 4)


def test_what_the_plan_moves_at_the_boundary_leaves_in_time_for_others() -> None:
    played = InMid(policy("recourse"))
    first = played.submit(rigid("first", 4, 8))
    played.step()
    held = {name: pod["spec"]["nodeName"] for name, pod in played.pods.items()}
    made = rigid("second", 4, 2)
    made["spec"]["gracePeriodSeconds"] = 20
    second = played.submit(made)
    played.at(0.1)
    assert played.workers(second) == 4
    played.at(0.6)
    assert played.workers(second) == 4
    played.at(0.7)  # 18 seconds are left
    assert played.workers(second) == 0
    assert (played.said(second, "Placed") or ("", ""))[:2] == ("False", "BetweenSlots")
    assert {n: pod["spec"]["nodeName"] for n, pod in played.pods.items()} == held
    played.step()
    assert (played.workers(first), played.workers(second)) == (4, 4)


def test_a_job_that_would_have_to_leave_soon_does_not_begin() -> None:
    played = InMid(policy("recourse"))
    played.submit(rigid("first", 4, 8))
    played.step()
    made = rigid("second", 4, 2)
    made["spec"]["gracePeriodSeconds"] = 45
    second = played.submit(made)
    played.at(0.1)
    assert played.workers(second) == 0
    played.step()
    assert played.workers(second) == 4


def test_a_takeover_between_boundaries_costs_no_more_than_what_was_early(played: InMid) -> None:
    played.submit(rigid("first", 4, 8))
    played.step()
    second = played.submit(rigid("second", 4, 2))
    played.at(0.5)
    played.restart()
    played.settle()
    played.step()
    assert played.workers(second) == 4
    played.run(3)
    assert played.phase(second) == "Completed"


def test_a_job_begins_once_it_is_claimed_so_that_the_plan_is_that_without_jobs_of_others() -> None:
    played = InMid(policy("fifo"))
    played.submit(rigid("old", 2, 8))
    played.step()
    theirs, *ours = (played.submit(rigid(f"new-{k}", 1, 4)) for k in range(3))
    played.part = 0.3
    played.reconciler.start_between(played.now(), played.seen, 30.0, lambda: None)
    played.delete(theirs)  # another controller was faster, and it is not seen any more
    played.at(0.4)
    assert [played.workers(uid) for uid in ours] == [1, 1]
    before = set(played.pods)
    played.step()
    assert set(played.pods) == before, "no pod was made anew"


def test_a_job_that_began_early_may_be_deleted_before_the_boundary(played: InMid) -> None:
    played.submit(rigid("first", 4, 8))
    played.step()
    second = played.submit(rigid("second", 4, 2))
    played.at(0.3)
    assert played.workers(second) == 4
    played.delete(second)
    third = played.submit(rigid("third", 4, 2))
    played.at(0.5)
    assert played.workers(third) == 4
    played.step()
    assert played.workers(third) == 4
