"""A job is done when its chief says so: work is an estimate; what fails too often has failed."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.evaluation.policies import POLICIES
from oasis.kubernetes import names
from tests.unit.kubernetes.played import SLOT, Played, job_of
from tests.unit.kubernetes.test_errors_of_one_job import rigid
from tests.unit.kubernetes.test_jobs_of_any_shape import policy


class Training(Played):
    """Pods that do something: what `end`, `fail` and `report` say."""

    def of(self, uid: str) -> list[dict[str, Any]]:
        return [pod for name, pod in sorted(self.pods.items()) if job_of(pod) == uid]

    def chief(self, uid: str) -> dict[str, Any]:
        """The first worker of the plan."""
        entry = self.reconciler.driver.by_uid[uid]
        return self.pods[self.reconciler._wanted(entry, {})[0].name]

    def end(self, pod: dict[str, Any], phase: str = "Succeeded", **container: Any) -> None:
        pod["status"] = {"phase": phase, "containerStatuses": [{"name": "train", **container}]}

    def report(self, uid: str, slots: float) -> None:
        for pod in self.of(uid)[:1]:
            notes = {**pod["metadata"]["annotations"], names.PROGRESS: str(slots * SLOT)}
            pod["metadata"] = {**pod["metadata"], "annotations": notes}


def chief(name: str, workers: int, slots: int, **more: Any) -> dict[str, Any]:
    made = rigid(name, workers, slots)
    del made["spec"]["completion"]  # the default
    made["spec"] |= more
    return made


@pytest.mark.parametrize("name", POLICIES)
def test_an_estimate_that_is_too_low_kills_no_training(name: str) -> None:
    played = Training(policy(name))
    uid = played.submit(chief("j", 2, 3))
    played.run(9)
    assert played.phase(uid) == "Running"
    assert played.workers(uid) == 2, "and it goes on with what it had"
    status, reason, message = played.said(uid, "Underestimated") or ("", "", "")
    assert (status, reason) == ("True", "Underestimated")
    assert "more are expected" in message
    assert played.status(uid)["progress"]["percent"] < 100
    played.end(played.chief(uid))
    played.run(1)
    assert played.phase(uid) == "Completed"
    assert played.status(uid)["completionSlot"] == 8
    assert not played.pods


def test_the_chief_alone_decides_and_early_success_completes() -> None:
    played = Training(policy("fifo"))
    uid = played.submit(chief("j", 3, 50))
    played.run(2)
    others = [pod for pod in played.of(uid) if pod is not played.chief(uid)]
    for pod in others:
        played.end(pod)
    played.run(2)
    assert played.phase(uid) in {"Starting", "Running"}, "workers may end before their chief"
    assert len(played.of(uid)) == 3, "and are not made again"
    played.end(played.chief(uid))
    played.run(1)
    assert played.phase(uid) == "Completed"
    assert played.status(uid)["utility"] == 20


@pytest.mark.parametrize("limit", [0, 2])
def test_pods_that_fail_too_often_fail_their_job(limit: int) -> None:
    played = Training(policy("fifo"))
    uid = played.submit(chief("j", 1, 50, backoffLimit=limit))
    other = played.submit(rigid("other", 8, 2))
    state = {"terminated": {"exitCode": 3, "reason": "Error"}}
    for failures in range(limit + 1):
        played.run(1)
        assert played.phase(uid) == "Running", f"{failures} of {limit} failures"
        played.end(played.chief(uid), "Failed", state=state)
        played.settle()
    assert played.phase(uid) == "Failed"
    status, reason, message = played.said(uid, "Complete") or ("", "", "")
    assert (status, reason) == ("False", "BackoffLimitExceeded")
    assert f"{limit + 1} failures" in message
    if limit == 0:
        assert "container train ended with exit code 3 (Error)" in message
    played.restart()
    played.run(4)
    assert played.phase(uid) == "Failed", "also under the next controller"
    assert played.phase(other) == "Completed", "others have its room"
    played.edit(uid, gracePeriodSeconds=1)
    played.run(1)
    assert played.phase(uid) == "Running"
    assert played.said(uid, "Complete") is None


def test_a_gang_whose_processes_fail_together_has_failed_once() -> None:
    """Collectives take all processes with them when one ends: that is one failure, not eight."""
    played = Training(policy("fifo"))
    more = {"network": {"framework": "jax"}, "resizePolicy": "restart", "backoffLimit": 2}
    uid = played.submit(chief("j", 8, 50, **more))
    played.run(1)
    for restarts in (1, 2):
        for pod in played.of(uid):
            pod["status"] = {
                **pod["status"],
                "containerStatuses": [{"name": "train", "restartCount": restarts}],
            }
        played.run(1)
        assert played.phase(uid) == "Running"
    played.restart()
    one = played.of(uid)[3]
    one["status"] = {**one["status"], "containerStatuses": [{"name": "a", "restartCount": 3}]}
    played.run(1)
    assert played.phase(uid) == "Failed", "one failed once more than it may"
    assert "3 failures" in (played.said(uid, "Complete") or ("", "", ""))[2]


def test_restarts_of_containers_count_and_evictions_do_not() -> None:
    played = Training(policy("fifo"))
    uid = played.submit(chief("j", 1, 50, backoffLimit=4))
    played.run(1)
    for restarts in (1, 2, 3):
        pod = played.chief(uid)
        pod["status"] = {**pod["status"], "containerStatuses": [{"name": "a"}]}
        pod["status"]["containerStatuses"][0]["restartCount"] = restarts
        played.run(1)
    evicted = {"type": "DisruptionTarget", "status": "True"}
    played.chief(uid)["status"] = {"phase": "Failed", "conditions": [evicted]}
    played.run(1)
    assert played.phase(uid) == "Running"
    assert played.reconciler.patience.failures(uid, ()) == 3
    played.restart()
    assert played.reconciler.patience.failures(uid, ()) == 3, "the checkpoint knows them"


def test_work_is_what_is_reported_once_anything_is() -> None:
    played = Training(policy("fifo"))
    uid = played.submit(chief("j", 2, 10))
    played.run(3)
    assert played.status(uid)["progress"]["percent"] == 20, "by readiness, as nobody says better"
    played.report(uid, 1.0)
    played.run(1)
    assert played.status(uid)["progress"]["percent"] == 5, "it had loaded its data until now"
    played.run(3)
    assert played.status(uid)["progress"]["percent"] == 5, "a stall is no work"
    for pod in played.of(uid):  # a restart: new pods, which have not reported yet
        pod["metadata"]["annotations"].pop(names.PROGRESS, None)
    played.run(2)
    assert played.status(uid)["progress"]["percent"] == 5
    played.report(uid, 4.0)
    played.run(1)
    assert played.status(uid)["progress"]["percent"] == 20
