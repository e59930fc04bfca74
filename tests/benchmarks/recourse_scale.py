"""Decisions of recourse on large instances: time of each, utility, and the rival RRH.

``python -m tests.benchmarks.recourse_scale --jobs 1000 --servers 1000 --horizon 300``

Times are of the processor, not of the clock, so that other programs do not count.
"""

from __future__ import annotations

import argparse
import sys
from time import process_time
from typing import Any

import numpy as np

import oasis
from baselines import RRH
from oasis.online.recourse.policy import Recourse
from oasis.scheduling.policy import Plan, View

TOLD_EVERY = 25  # decisions


class Timed(Recourse):
    """Recourse that takes the processor time of its decisions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seconds: list[float] = []

    def decide(self, view: View) -> Plan:
        begin = process_time()
        plan = super().decide(view)
        if view.arrived:
            self.seconds.append(process_time() - begin)
            if len(self.seconds) % TOLD_EVERY == 0 and self.planner is not None:
                live = len(self.planner.plan.live)
                report(f"  slot {view.now:g}: {sum(self.seconds):.0f} s so far, {live} live jobs")
        return plan


def main() -> None:
    """Run and print one line of figures for recourse, and one for RRH if it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=400)
    parser.add_argument("--servers", type=int, default=50, help="of each group")
    parser.add_argument("--horizon", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--preset", default="calibrated")
    parser.add_argument("--rrh", action="store_true", help="run RRH too")
    given = parser.parse_args()
    instance = oasis.generate(
        given.preset,
        jobs=given.jobs,
        worker_servers=given.servers,
        ps_servers=given.servers,
        horizon=given.horizon,
        seed=given.seed,
    )
    policy = Timed(rounds=given.rounds)
    begin = process_time()
    run = oasis.simulate(instance, policy)
    whole = process_time() - begin
    oasis.verify(instance, run)
    assert policy.planner is not None
    times = np.array(policy.seconds)
    report(
        f"recourse {run.total_utility:.0f}, {whole:.0f} s, {len(times)} decisions: "
        f"median {np.median(times):.3f} s, p99 {np.quantile(times, 0.99):.3f} s, "
        f"max {times.max():.3f} s, {policy.planner.plan.insertions} insertions"
    )
    if given.rrh:
        rival = oasis.simulate(instance, RRH())
        report(
            f"RRH {rival.total_utility:.0f}, ratio {run.total_utility / rival.total_utility:.2f}"
        )


def report(line: str) -> None:
    """Print a line at once, also where output goes to a file."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
