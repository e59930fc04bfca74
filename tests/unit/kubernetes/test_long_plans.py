"""While a plan is made in a thread, the controller goes on with the plan before it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes.control.planning import answer_in_thread
from oasis.scheduling.policy import Plan, View
from tests.unit.kubernetes.played import Played, job, job_of, node, rigid

LONG = 30.0  # seconds, which no test takes


class Slow(FIFO):
    """First come, first served; its decisions take as long as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go, self.is_asked, self.fault = threading.Event(), threading.Event(), False
        self.may_go.set()

    def decide(self, view: View) -> Plan:
        self.is_asked.set()
        assert self.may_go.wait(LONG)
        if self.fault:
            raise SystemError("not of any job")
        return super().decide(view)


class InThread(Played):
    """Slots whose plans are made in a thread."""

    def __init__(self, policy: Slow, **settings: Any) -> None:
        self.slow, self.ended = policy, threading.Event()
        super().__init__(lambda: policy, **settings)

    def begin(self) -> bool:
        """Begin a slot whose plan takes long; whether it was made at once."""
        self.slow.may_go.clear()
        self.slow.is_asked.clear()
        self.ended.clear()
        self.slot += 1
        made = self.reconciler.plan_if_due(self.now(), self.seen, 0.0, self.ended.set)
        assert self.slow.is_asked.wait(LONG)
        return made

    def end(self) -> None:
        self.slow.may_go.set()
        assert self.ended.wait(LONG)
        assert self.reconciler.plan_if_due(self.now(), self.seen, 0.0, self.ended.set)
        self.settle()


@pytest.fixture
def played() -> InThread:
    return InThread(Slow())


def test_what_happens_while_a_plan_is_made_is_acted_on(played: InThread) -> None:
    first = played.submit(rigid("first", 4, 40))
    second = played.submit(rigid("second", 2, 40))
    played.step()
    late = played.submit(rigid("late", 2, 40))
    assert not played.begin()
    reconciler = played.reconciler
    assert (reconciler.slot, played.slot) == (0, 1)
    # a pod fails, an owner deletes a job, a status is to be told
    name = next(name for name, pod in played.pods.items() if job_of(pod) == first)
    played.pods[name] = {**played.pods[name], "status": {"phase": "Failed"}}
    going = {**played.jobs[second]["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    played.jobs[second] = {**played.jobs[second], "metadata": going}
    played.settle()
    assert played.pods[name]["status"]["phase"] == "Running", "the failed pod was made anew"
    assert not any(job_of(pod) == second for pod in played.pods.values()), "evicted"
    assert played.workers(late) == 0, "not planned yet"
    assert not reconciler.plan_if_due(played.now(), played.seen, 0.0, played.ended.set)
    played.end()
    assert reconciler.slot == 1
    assert (played.workers(first), played.workers(late)) == (4, 2)
    assert played.phase(late) == "Running"


def test_a_job_that_fails_while_it_is_planned_stays_failed(played: InThread) -> None:
    bad = played.submit(job("bad", slots=1.0, minimum=4, maximum=4))
    played.jobs[bad]["spec"]["backoffLimit"] = 0
    played.step()
    played.begin()  # by now its work is done, and the plan that is made says so
    name = next(iter(played.pods))
    state = {"terminated": {"exitCode": 1}}
    failed = {"phase": "Failed", "containerStatuses": [{"name": "train", "state": state}]}
    played.pods[name] = {**played.pods[name], "status": failed}
    played.settle()
    assert played.phase(bad) == "Failed"
    played.end()
    played.run(2)
    assert played.phase(bad) == "Failed"
    assert not played.pods


def test_a_plan_of_several_slots_is_acted_on_and_the_present_slot_begins_after_it(
    played: InThread,
) -> None:
    uid = played.submit(rigid("first", 4, 40))
    played.begin()
    played.slot += 3
    assert played.reconciler.next_boundary <= played.now()
    played.end()
    assert (played.reconciler.slot, played.workers(uid)) == (0, 4)
    played.step()
    assert (played.reconciler.slot, played.workers(uid)) == (4, 4)


def test_new_machines_are_planned_at_once_and_no_pod_is_deleted_meanwhile(
    played: InThread,
) -> None:
    uid = played.submit(rigid("first", 4, 40))
    played.step()
    pods: Mapping[str, Any] = dict(played.pods)
    played.nodes.append(node("n9", "worker", 4))
    played.slot += 1
    assert played.reconciler.plan_if_due(played.now(), played.seen, 0.0, played.ended.set)
    played.settle()
    assert played.workers(uid) == 4
    assert len(pods) == len(played.pods)


def test_what_is_raised_in_the_thread_is_raised_where_the_answer_is_taken_in() -> None:
    answered: Future[int] = Future()
    answer_in_thread(lambda: 1 // 0, answered, lambda: None, LONG)
    with pytest.raises(ZeroDivisionError):
        answered.result()


def test_an_error_of_the_policy_is_told_as_without_a_thread(played: InThread) -> None:
    uid = played.submit(rigid("first", 4, 40))
    played.step()
    played.submit(rigid("other", 4, 40))
    played.begin()
    played.slow.fault = True
    played.end()
    assert "SystemError" in str(played.said(uid, "Stalled")) or "not of any job" in str(
        played.status(uid)
    )
    assert played.workers(uid) == 4, "the last plan is kept"
