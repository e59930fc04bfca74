"""``python -m tests.kubernetes.benchmarks.boundary``: one boundary of recourse on a large cluster.

Nodes of eight GPUs, live jobs of 4 to 48 workers, and a moment in which many more arrive. The
driver asks the policy as the controller does, without a cluster. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import oasis
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts
from oasis.kubernetes.cluster.nodes import places_of, site_of
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from tests.unit.kubernetes.played import SLOT, job, node, pods

CLOCK = SlotClock(SLOT)
LOOKAHEAD = 500  # slots, as `oasis kubernetes run` has it


def jobs(count: int, seed: int, prefix: str) -> Iterator[JobSpec]:
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
        made["metadata"] |= {"uid": f"{prefix}{k}", "generation": 1}
        yield parse_job(made, CLOCK, DEFAULT_RESOURCES)


def main() -> None:
    """Print one line for a boundary at which nothing arrives, and one for the crowded one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--live", type=int, default=500)
    parser.add_argument("--arrivals", type=int, default=100)
    parser.add_argument("--commitment", default="none")
    given: Any = parser.parse_args()
    nodes = {f"m{k}": node(f"m{k}", "worker", 8) for k in range(given.nodes)}
    places = places_of(nodes.values(), None)
    site = site_of(places, nodes, {}, DEFAULT_RESOURCES, CLOCK.work_seconds, None)
    policy = oasis.Recourse.rolling(LOOKAHEAD, given.commitment, keep_admitted=True)
    driver: Driver[JobSpec] = Driver(policy, site)
    specs = {spec.uid: spec for spec in jobs(given.live, 1, "live")}
    done: dict[str, float] = {}
    for slot, what in enumerate(("first", "quiet", "crowded")):
        if what == "crowded":
            specs |= {spec.uid: spec for spec in jobs(given.arrivals, 2, "new")}
        live, wall, begin = len(driver.entries), time.perf_counter(), time.process_time()
        decided = driver.boundary(slot, Facts(specs, dict(done)))
        seconds, wall = time.process_time() - begin, time.perf_counter() - wall
        line = f"{what}: {live} live jobs, {len(driver.entries)} after it, {seconds:.2f} s of the"
        line += f" processor, {wall:.2f} s, {len(decided.rejected)} rejected"
        sys.stdout.write(line + "\n")
        for uid in decided.rejected:
            del specs[uid]
        for uid, entry in driver.by_uid.items():
            done[uid] = entry.done + min(entry.allocation.worker_count, entry.remaining)


if __name__ == "__main__":
    main()
