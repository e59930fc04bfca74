"""What goes wrong with one job is told on that job; the controller and the other jobs go on."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from baselines import FIFO
from experiments.evaluation.policies import POLICIES
from oasis.driver import driver
from oasis.driver.driver import LONGEST_WAIT
from oasis.kubernetes import acting as reconcile
from oasis.kubernetes.control import job_reader, statuses
from oasis.scheduling import Plan, View
from tests.unit.kubernetes.played import SLOT, Played, failing, job, node, policy, rigid, window

MESSAGE = "arrive once more"


def sees_bad(view: Any) -> bool:
    return any(job.id == "ns/bad" for job in view.jobs())


# -- owners who act at a bad moment ----------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    "change", ["nothing", "deleted", "edited", "done and deleted", "made again"]
)
def test_what_owners_do_while_no_controller_is_there_is_as_if_one_had_been(
    name: str, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The other jobs do not arrive anew: they hold the same pods in the same slots."""
    ran = []
    for restarted in (True, False):
        played = Played(policy(name))
        played.submit(rigid("kept", 3, 6))
        other = played.submit(rigid("other", 2, 3 if change.startswith("done") else 5))
        played.submit(job("long", slots=20.0, initial=2))
        played.run(3)
        if change == "edited":
            played.edit(other, work={"workerSeconds": 2 * SLOT * 8})
        elif change != "nothing":
            played.delete(other)
        if change == "made again":
            played.submit(rigid("other", 1, 3))
        if restarted:
            played.restart()
            played.settle()
        held = []
        for _ in range(16):
            played.run(1)
            held.append(sorted(played.pods))
        ran.append((held, {uid: played.status(uid) for uid in played.jobs}))
        assert {played.phase(uid) for uid in played.jobs} <= {"Completed", "Rejected", "GivenUp"}
    assert ran[0] == ran[1]
    assert MESSAGE not in caplog.text


# -- a policy that fails ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_a_job_with_which_the_policy_fails_is_told_and_the_others_do_not_notice(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What the policy did before it failed is undone: all is as if the job had never come."""
    ends = []
    for bad in (True, False):
        played = Played(failing(policy(name), sees_bad))
        uids = [played.submit(rigid("a", 2, 6)), played.submit(job("b", slots=9.0, initial=2))]
        played.run(2)
        uids.append(played.submit(rigid("c", 2, 2)))
        odd = played.submit(rigid("bad", 2, 2)) if bad else ""
        uids.append(played.submit(job("d", slots=4.0, maximum=4)))
        held = []
        for _ in range(18):
            played.run(1)
            held.append(sorted(played.pods))
        ends.append((held, [played.status(uid)["completionSlot"] for uid in uids]))
        if bad:
            assert played.phase(odd) == "Failed"
            said = played.said(odd, "Valid")
            assert said is not None
            assert said[:2] == ("False", "Error")
            assert "KeyError: 'not like this', when planning it" in said[2]
            assert played.measured("oasis_job_errors_total", doing="planning") == 1
            assert played.measured("oasis_policy_errors_total") == 0
            assert "Traceback" in caplog.text
    assert ends[0] == ends[1]


@pytest.mark.parametrize("name", ["fifo", "drf", "dragon", "recourse"])
def test_a_policy_that_fails_without_any_job_keeps_the_last_plan_and_is_asked_later(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[float] = []

    def broken(view: Any) -> bool:
        if 2 <= view.now < 10 and view.now not in asked:
            asked.append(view.now)
        return 2 <= view.now < 10

    played = Played(failing(policy(name), broken, RuntimeError))
    long, short = played.submit(rigid("long", 4, 14)), played.submit(rigid("short", 2, 3))
    played.run(2)
    before = set(played.pods)
    late = played.submit(rigid("late", 2, 2))
    for _ in range(8):
        played.step()
        assert set(played.pods) == before, "the last plan is kept"
        for uid in (long, short, late):
            said = played.said(uid, "Stalled")
            assert said is not None
            assert said[:2] == ("True", "PolicyError")
            assert f"policy {name} fails: RuntimeError: not like this" in said[2]
        assert played.measured("oasis_plan_stalled") == 1
    assert asked == [2.0, 3.0, 5.0, 9.0]
    assert played.measured("oasis_policy_errors_total") == len(asked)
    assert caplog.text.count("Traceback") == len(asked)
    played.restart()  # it is asked again at once
    played.run(10)
    assert {played.phase(uid) for uid in (long, short, late)} == {"Completed"}
    assert played.measured("oasis_plan_stalled") == 0
    for uid in (long, short, late):
        assert played.said(uid, "Stalled") is None
    assert played.measured("oasis_job_errors_total", doing="planning") == 0


def test_the_policy_is_asked_at_least_now_and_then() -> None:
    asked: list[int] = []

    def broken(view: Any) -> bool:
        if view.now not in asked:
            asked.append(int(view.now))
        return True

    played = Played(failing(policy("fifo"), broken))
    played.submit(rigid("j", 1, 1))
    played.run(400)
    gaps = [later - sooner for sooner, later in itertools.pairwise(asked)]
    assert gaps == [1, 2, 4, 8, 16, 32] + [LONGEST_WAIT] * (len(gaps) - 6)
    assert len(gaps) > 8


def test_a_window_that_went_while_the_policy_fails_is_no_longer_waited_for() -> None:
    played = Played(failing(policy("fifo"), lambda view: view.now >= 4))
    played.windows = [window("firmware", 2, 9, nodes=["n0", "n1"])]
    uid = played.submit(rigid("j", 4, 20))
    played.run(4)
    assert played.placed(uid)[1] == "waits for maintenance window firmware"
    played.windows = [window("other", 2, 9, nodes=["p0"])]
    played.run(1)
    assert played.said(uid, "Stalled") is not None
    assert "maintenance window" not in played.placed(uid)[1]


# -- what else may go wrong with one job -----------------------------------------------------------


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
    assert MESSAGE in caplog.text
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
