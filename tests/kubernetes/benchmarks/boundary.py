"""``python -m tests.kubernetes.benchmarks.boundary``: one boundary of recourse on a large cluster.

Nodes of eight GPUs, live jobs of 4 to 48 workers, and a moment in which many more arrive. The whole
boundary is that of the controller on objects in memory: jobs are read, the plan is made in its
thread, statuses and checkpoint are written. Meanwhile pods of a job are evicted, again and again,
and the controller says what is to be made in their place.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import oasis
from tests.unit.kubernetes.played import SLOT, Played, job, node, pods

LOOKAHEAD = 500  # slots, as `oasis kubernetes run` has it


def jobs(count: int, seed: int, prefix: str) -> Iterator[dict[str, Any]]:
    """Gangs and elastic jobs, some in a hurry."""
    rng = random.Random(seed)
    for k in range(count):
        most = rng.choice((4, 8, 16, 24, 32, 48))
        made = job(
            f"{prefix}{k}",
            slots=rng.uniform(5, 60) * most,
            minimum=rng.choice((1, 1, most)),
            maximum=most,
            template=pods(cpu="4", gpu=str(rng.choice((1, 1, 1, 2)))),
        )
        made["spec"]["utility"] = {
            "kind": "sigmoid",
            "priority": rng.uniform(1, 100),
            "decayPerSecond": rng.choice((0.01, 0.1, 0.5)) / SLOT,
            "targetSeconds": SLOT * rng.uniform(10, 100),
        }
        yield made


class Crowd(Played):
    """A large cluster; its boundaries are timed."""

    def __init__(self, policy: Any, nodes: int) -> None:
        super().__init__(lambda: policy)
        self.nodes = [node(f"m{k}", "worker", 8) for k in range(nodes)]
        self.restart()

    def boundary(self, what: str) -> dict[str, Any]:
        self.slot += 1
        reconciler = self.reconciler
        live, before = len(reconciler.driver.jobs), self.measured("oasis_policy_seconds_sum")
        made, wall, longest = threading.Event(), time.perf_counter(), 0.0
        turns = evicted = answered = 0
        while not reconciler.plan_if_due(self.now(), self.seen, 0.0, made.set):
            turn = time.perf_counter()
            if self.pods:  # somebody drains one
                del self.pods[next(iter(self.pods))]
                evicted += 1
            seen, turns = self.seen(), turns + 1
            answered = len(reconciler.steps(seen, self.now()).actions)
            took = time.perf_counter() - turn
            longest = max(longest, took)
            made.wait(max(0.02, took))  # as the controller does
        wall = time.perf_counter() - wall
        policy = self.measured("oasis_policy_seconds_sum") - before
        written = sum(job.status != job.written for job in reconciler.statuses.values())
        return {
            "boundary": what,
            "live jobs": f"{live} to {len(reconciler.driver.jobs)}",
            "seconds": f"{wall:.2f}",
            "policy": f"{policy / wall:.0%}",
            "statuses to write": written,
            "turns meanwhile": turns,
            "longest turn (s)": f"{longest:.2f}",
            "pods evicted": evicted,
            "writes asked for": answered,
        }

    def settle(self) -> None:
        """Carry out what is wanted, and write the statuses; as `Played` does, for many pods."""
        for _ in range(2):
            for action in self.reconciler.steps(self.seen(), self.now()).actions:
                self._carry_out(action)
        seen = self.seen()
        for uid in seen.pods:
            self.reconciler.note(uid, seen, self.now())
        for status in self.reconciler.statuses.values():
            status.written = dict(status.status)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--live", type=int, default=500)
    parser.add_argument("--arrivals", type=int, default=100)
    parser.add_argument("--commitment", default="none")
    parser.add_argument("--csv", type=Path, help="also write the rows to this file")
    given: Any = parser.parse_args()
    rows = []
    policy = oasis.Recourse.rolling(LOOKAHEAD, given.commitment, keep_admitted=True)
    played = Crowd(policy, given.nodes)
    for made in jobs(given.live, 1, "live"):
        played.submit(made)
    for what in ("first", "quiet", "crowded"):
        if what == "crowded":
            for made in jobs(given.arrivals, 2, "new"):
                played.submit(made)
        rows.append(played.boundary(what))
        sys.stdout.write(", ".join(f"{name}: {value}" for name, value in rows[-1].items()) + "\n")
        played.settle()
    if given.csv:
        pd.DataFrame(rows).to_csv(given.csv, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
