"""Writes that are refused and pods that never run, at random: no GPU is idle for long beside it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from experiments.evaluation.live import cluster_policy
from oasis.kubernetes.acting import Create
from tests.unit.kubernetes.played import LOOKAHEAD, SLOT, Played, job, job_of, past

TIMEOUT = 2 * SLOT
GPUS = 8
REFUSALS = 200
OVER = {"Completed", "Failed"}


class Refused(Played):
    """Jobs of 1 to 4 GPUs; causes come and go, each of one job for some slots."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.barred: dict[str, tuple[str, int]] = {}  # uid: why, and until which slot
        self.refused = 0
        options = {"rounds": 1} if name == "recourse" else {}
        made = cluster_policy(name, options, lookahead=LOOKAHEAD, bounds=past)
        super().__init__(made, pods_ready_timeout=TIMEOUT)
        self.opens = lambda pod: self.why(job_of(pod)) != "image"

    def why(self, uid: str) -> str:
        cause, until = self.barred.get(uid, ("", 0))
        return cause if self.slot < until else ""

    def refuses(self, action: Any) -> str | None:
        is_refused = isinstance(action, Create) and self.why(action.job) == "quota"
        return "create: 403 exceeded quota" if is_refused else None

    def bar(self) -> None:
        """Something now stands in the way of a random job."""
        uids = [uid for uid in self.jobs if self.phase(uid) not in OVER]
        if uids:
            cause, uid = self.rng.choice(("quota", "quota", "image")), self.rng.choice(uids)
            self.refused += 1
            self.barred[uid] = cause, self.slot + self.rng.randint(2, 12)
            if cause == "image":  # its pods end, and the new ones do not run
                self.pods = {n: pod for n, pod in self.pods.items() if job_of(pod) != uid}

    def held(self) -> dict[str, int]:
        """GPUs that the plan gives to each job."""
        live = self.reconciler.driver.by_uid
        return {uid: entry.allocation.worker_count for uid, entry in live.items()}


@pytest.mark.parametrize("name", ["fifo", "recourse", "oasis"])
def test_no_gpu_is_idle_longer_than_the_timeout_and_a_slot(name: str) -> None:
    played, k, free = Refused(name, 1), 0, 0
    idle: dict[str, int] = {}  # slots in a row for which a job holds GPUs without running on all
    while played.refused < REFUSALS:
        # There is always a job of one GPU that waits and that nothing stands in the way of.
        held = played.held()
        waiting = [uid for uid in played.jobs if not held.get(uid) and not played.why(uid)]
        for _ in range(max(0, 6 - sum(played.phase(uid) not in OVER for uid in waiting))):
            k += 1
            # Under strict FIFO a large job at the head blocks those behind it, refused or not.
            most = 1 if name == "fifo" else played.rng.choice((1, 1, 2, 4))
            made = job(f"j{k}", slots=most * played.rng.randint(2, 6), minimum=1, maximum=most)
            played.submit(made)
        played.bar()
        played.bar()
        played.step()
        held = played.held()
        short = {uid for uid, count in held.items() if played.workers(uid) < count}
        idle = {uid: idle.get(uid, 0) + 1 for uid in short}
        assert max(idle.values(), default=0) <= TIMEOUT / SLOT + 1, f"slot {played.slot}: {idle}"
        free = free + 1 if sum(held.values()) < GPUS else 0
        # OASiS rations: what no job pays for may stay free.
        assert free <= TIMEOUT / SLOT + 1 or name == "oasis", f"slot {played.slot}: {held}"
    assert sum(played.phase(uid) == "Completed" for uid in played.jobs) > 20
