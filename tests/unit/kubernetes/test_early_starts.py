"""A job that comes in the middle of a slot begins there, where the next plan leaves it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from experiments.evaluation.live import cluster_policy
from tests.unit.kubernetes.played import SLOT, Played, job, past
from tests.unit.kubernetes.test_existing_jobs import batch_job

LAST = 16  # slots of a stream; some jobs are never done
# Policies that decide on jobs one by one as they do on all of a slot together.
AS_AT_BOUNDARIES = ("oasis", "fifo", "las")


class Streamed(Played):
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
                    self.begin_early(part)
                else:
                    self.late = part * SLOT
                    self.settle()
                live = self.reconciler.live.values()
                self.begun |= {e.spec.uid for e in live if e.arrived > slot and e.in_force.workers}
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
            self.late = begin * SLOT
            for uid in done:
                self.ends[uid] = self.slot + begin
                self.succeed(uid)
            self.settle()

    def record(self) -> None:
        held = {
            e.spec.uid: (e.allocation, round(e.done, 6))
            for e in self.reconciler.driver.jobs.values()
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
@pytest.mark.parametrize("name", [*AS_AT_BOUNDARIES, "recourse none", "recourse arrival", "srtf"])
def test_with_jobs_of_other_kinds_only_early_ends_change_decisions(name: str, seeds: range) -> None:
    begun = sooner = 0
    for seed in seeds:
        early, without = (Streamed(name, seed, is_early).play() for is_early in (True, False))
        begun += len(early.begun)
        for uid, end in without.ends.items():
            found = early.ends.get(uid, math.inf)
            assert end >= early.told_at or found <= end + 1e-6, (seed, uid)
            sooner += found < end - 1e-6
        if name in AS_AT_BOUNDARIES:
            assert early.history[: early.told_at] == without.history[: early.told_at], seed
        for made in (early, without):
            assert not made.measured("oasis_policy_errors_total")
    assert begun > 1
    assert sooner > 0
