"""A job that comes in the middle of a slot begins there, where the next plan leaves it."""

from __future__ import annotations

import json
import math
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from experiments.evaluation.live import cluster_policy
from oasis.driver.policy_state import plain_value
from oasis.kubernetes.api.connection import ApiError
from tests.unit.kubernetes.played import EPOCH, SLOT, Played, job
from tests.unit.kubernetes.test_errors_of_one_job import rigid
from tests.unit.kubernetes.test_existing_jobs import job as batch_job
from tests.unit.kubernetes.test_jobs_of_any_shape import past, policy


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


@pytest.fixture(params=["oasis", "fifo", "srtf"])
def played(request: Any) -> InMid:
    return InMid(policy(request.param))


def test_a_job_whose_machines_are_in_use_until_the_boundary_begins_there() -> None:
    played = InMid(policy("recourse"))
    first = played.submit(rigid("first", 4, 8))
    played.step()
    held = {name: pod["spec"]["nodeName"] for name, pod in played.pods.items()}
    second = played.submit(rigid("second", 4, 2))
    played.at(0.1)
    assert played.workers(second) == 0
    played.step()
    assert (played.workers(first), played.workers(second)) == (4, 4)
    moved = {pod["spec"]["nodeName"] for name, pod in played.pods.items() if "first" in name}
    assert not moved & set(held.values()), "the plan has moved the first"


def test_no_pod_is_made_before_the_checkpoint_has_its_early_start(monkeypatch: Any) -> None:
    played = InMid(policy("fifo"))
    played.step()
    uid, checkpoint = played.submit(rigid("job", 4, 4)), played.reconciler._checkpoint
    with monkeypatch.context() as patched:
        refused = ApiError("PUT", "checkpoint", 500, "InternalError", "no space left")
        patched.setattr(checkpoint, "write", Mock(side_effect=refused))
        with pytest.raises(ApiError):
            played.at(0.5)
        played.settle()
        assert played.workers(uid) == 0
    lags = played.measured("oasis_boundary_lag_seconds_count")
    assert not played.reconciler.begin_slot_if_due(played.now(), played.seen())
    played.settle()
    assert played.workers(uid) == 4
    assert played.measured("oasis_boundary_lag_seconds_count") == lags, "no boundary was late"
    assert plain_value(checkpoint.read()["held"])[0].spec.uid == uid


def test_after_a_takeover_a_boundary_that_was_missed_counts_what_began_early() -> None:
    played = InMid(policy("fifo"))
    played.step()
    job = played.submit(rigid("job", 4, 4))
    played.at(0.5)
    played.slot, played.part = 2, 0.5
    played.restart()
    played.reconciler.begin_slot_if_due(played.now(), played.seen())
    played.settle()
    assert played.reconciler.done[job] == pytest.approx(6.0, abs=5 / SLOT)
    assert played.workers(job) == 4


@pytest.mark.parametrize("played", ["recourse", "fifo", "srtf"], indirect=True)
def test_after_a_takeover_no_job_that_the_policy_lets_wait_begins(played: InMid) -> None:
    jobs = [played.submit(rigid(*each)) for each in (("a", 6, 2), ("b", 4, 4), ("c", 2, 9))]
    played.run(2)
    played.at(0.5)
    before = [played.workers(uid) for uid in jobs]
    played.restart()
    played.settle()
    played.at(0.6)
    assert [played.workers(uid) for uid in jobs] == before
    new = played.submit(rigid("new", 1, 1))
    played.at(0.7)
    assert [played.workers(uid) for uid in jobs] == before
    assert played.workers(new) == (sum(before) < 8), "what came since begins"


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


# -- jobs of other kinds -------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, 12])
@pytest.mark.parametrize("kind", ["OasisJob", "Job"])
def test_what_ended_is_told_whatever_comes_before_the_boundary(kind: str, seconds: int) -> None:
    played = InMid(policy("srtf"))
    played.step()
    if kind == "Job":
        done = played.submit_batch(batch_job(4), slots=80.0)
    else:
        made = rigid("done", 4, 20)
        made["spec"]["completion"] = "chief"
        done = played.submit(made)
    played.at(0.2)
    assert played.workers(done) == 4
    played.part += seconds / SLOT
    played.succeed(done)
    played.at(0.6)
    short = played.submit(rigid("short", 8, 1))
    played.at(0.9)
    played.step()
    assert played.phase(done) == "Completed"
    assert (played.workers(done), played.workers(short)) == (0, 8)
    played.run(3)
    assert (played.workers(done), played.phase(short)) == (0, "Completed")
    assert done not in played.reconciler.driver.by_uid


@pytest.mark.parametrize("is_early", [True, False])
def test_a_batch_job_that_ends_before_a_takeover_completes(is_early: bool) -> None:
    played = InMid(policy("fifo"))
    if is_early:
        played.step()
    done = played.submit_batch(batch_job(4), slots=80.0)
    played.at(0.2) if is_early else played.step()
    assert played.workers(done) == 4
    played.part = 0.5
    played.succeed(done)
    played.restart()
    played.settle()
    played.submit(rigid("other", 4, 1))
    played.at(0.6)
    played.step()
    assert played.phase(done) == "Completed"


LAST = 16  # slots of a stream; some jobs are never done


class Streamed(InMid):
    """Jobs of both kinds that come at any time, `early` or from boundaries on."""

    def __init__(self, name: str, seed: int, early: bool) -> None:
        name, _, commitment = name.partition(" ")
        options = {"rounds": 1, "commitment": commitment} if commitment else {}
        super().__init__(cluster_policy(name, options, lookahead=LAST, bounds=past))
        self.early, self.history, self.ends = early, [], {}  # type: ignore[var-annotated]
        self.left: dict[str, float] = {}  # worker-slots of a Job until its pods succeed
        self.begun: set[str] = set()  # jobs that began before a boundary
        self.told_at = LAST  # the first boundary that told the policy of the end of one of them
        draw = np.random.default_rng(seed)
        self.come: list[tuple[float, str, dict[str, Any]]] = []
        for k, at in enumerate(np.sort(draw.random(int(draw.integers(2, 6))) * 4.0)):
            self.come.append((float(at), *self.drawn(draw, f"j{k}")))

    def drawn(self, draw: Any, name: str) -> tuple[str, dict[str, Any]]:
        """The kind of a random job, and what makes it."""
        workers, slots = int(draw.integers(1, 6)), float(draw.integers(1, 12))
        least = workers if draw.random() < 0.6 else int(draw.integers(1, workers + 1))
        utility = {
            "kind": "sigmoid",
            "priority": float(draw.integers(1, 50)),
            "decayPerSecond": 0.05,
            "targetSeconds": float(draw.integers(1, 8)) * SLOT,
        }
        grace = int(draw.choice([0, 20]))
        if draw.random() < 0.5:
            made = job(name, slots=slots, minimum=least, maximum=workers)
            made["spec"] |= {"utility": utility, "gracePeriodSeconds": grace}
            return "OasisJob", made
        bounds = {} if least == workers else {"MINIMUM": str(least), "MAXIMUM": str(workers)}
        made = batch_job(workers, uid=name, UTILITY=json.dumps(utility), **bounds)
        self.left[name] = slots * float(draw.uniform(0.85, 1.15))  # the owner guessed
        return "Job", {"made": made, "slots": slots, "grace": grace}

    def play(self) -> Streamed:
        for slot in range(LAST):
            self.step()
            self.record()
            # The controller looks twice a second; what leaves early does so in the last 20 seconds.
            moments = {0.7, 0.95, *(at - slot for at, *_ in self.come if slot < at < slot + 1)}
            before = 0.0
            for part in sorted(moments):
                self.work(before, part)
                self.submit_until(slot + part)
                if self.early:
                    self.at(part)
                else:
                    self.part = part
                    self.settle()
                self.begun |= self.reconciler.between.held.keys()
                before = part
            self.work(before, 1.0)
        return self

    def submit_until(self, at: float) -> None:
        while self.come and self.come[0][0] <= at:
            _, kind, made = self.come.pop(0)
            if kind == "Job":
                self.submit_batch(**made)
            else:
                self.submit(made)

    def work(self, begin: float, end: float) -> None:
        """The pods of Jobs train until they have done their work; each end is a moment."""
        while True:
            rest = {
                uid: self.left[uid] / workers
                for uid in self.batch
                if uid not in self.ends and (workers := self.workers(uid))
            }
            part = min([end - begin, *rest.values()])
            for uid in rest:
                self.left[uid] -= part * self.workers(uid)
            begin += part
            done = [uid for uid in rest if self.left[uid] <= 1e-9]
            if not done:
                break
            self.part = begin
            for uid in done:
                self.ends[uid] = self.slot + begin
                self.succeed(uid)
            self.settle()

    def record(self) -> None:
        """What the policy has decided in this slot."""
        held = {
            e.spec.uid: (e.allocation, round(e.done, 6))
            for e in self.reconciler.driver.entries.values()
        }
        self.history.append(held)
        for uid in (*self.jobs, *self.batch):
            if self.phase(uid) == "Completed":
                self.ends.setdefault(uid, float(self.status(uid)["completionSlot"]))
                assert uid not in self.reconciler.driver.by_uid
                if uid in self.begun:
                    self.told_at = min(self.told_at, self.slot)


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 200), marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("name", ["recourse none", "recourse arrival", "oasis", "fifo", "srtf"])
def test_with_jobs_of_other_kinds_only_early_ends_change_decisions(name: str, seeds: range) -> None:
    begun = sooner = 0
    for seed in seeds:
        early, without = (Streamed(name, seed, is_early).play() for is_early in (True, False))
        begun += len(early.begun)
        for uid, end in without.ends.items():
            found = early.ends.get(uid, math.inf)
            assert end >= early.told_at or found <= end + 1e-6, (seed, uid)
            sooner += found < end - 1e-6
        assert early.history[: early.told_at] == without.history[: early.told_at], seed
        for made in (early, without):
            assert not made.measured("oasis_policy_errors_total")
    assert begun > 1
    assert sooner > 0
