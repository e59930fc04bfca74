"""What goes wrong with one job is told on that job; the controller and the other jobs go on."""

from __future__ import annotations

from typing import Any

import pytest

from baselines import FIFO
from oasis.driver import driver
from oasis.kubernetes import acting as reconcile
from oasis.kubernetes.control import job_reader, statuses
from oasis.scheduling import Plan, View
from tests.unit.kubernetes.played import Played, job, node, policy, rigid


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
        """Fail when one of the arguments has to do with the job of that name."""
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
    """It holds what cannot be written down, and fails as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down, self.stream = False, iter(range(10**9))

    def decide(self, view: View) -> Plan:
        next(self.stream)
        if self.is_down:
            raise RuntimeError("out of order")
        return super().decide(view)


def test_a_policy_that_cannot_be_written_down_and_fails_on_new_machines_loses_no_job() -> None:
    """Its live jobs are about to arrive once more; the checkpoint has them nevertheless."""
    made: list[Fragile] = []
    played = Played(lambda: made.append(Fragile()) or made[-1])  # type: ignore[func-returns-value]
    uid = played.submit(job("a", slots=80.0))
    played.run(3)
    before = played.reconciler.driver.by_uid[uid]
    played.restart()
    assert not played.reconciler.driver.jobs  # all live jobs arrive once more
    played.step()
    after = played.reconciler.driver.by_uid[uid]
    assert (after.arrived, after.admitted) == (before.arrived, True)
    assert after.done >= before.done > 0
    made[-1].is_down = True
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
