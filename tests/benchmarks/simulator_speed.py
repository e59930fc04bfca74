"""Speed and memory on a real trace: ``python -m tests.benchmarks.simulator_speed``.

FIFO over slices of 10,000 Philly jobs (of at most 8 GPUs) on 64 GPUs, and over whole virtual
clusters, beside a bare event loop that gives the same completion times (asserted). Wall clock of
the run alone: reading the trace is not part of it. The aim is 10,000 jobs/s and 300 MB.
"""

import argparse
import os
import resource
from pathlib import Path
from time import perf_counter

from baselines import FIFO, LAS, SRTF
from oasis.simulator import replay, rigid_workload
from oasis.traces import read_philly_plain
from tests.benchmarks import bare_loop

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[2] / "../shared/data"))
POLICIES = {policy.name: policy for policy in (FIFO, SRTF, LAS)}
SERVERS = {"pooled": [64], "whole": [8] * 8}
ROW = "{:>14}  {:>6}  {:9}  {:6}  {:>7}  {:>9}  {:>5}  {:>15}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", default="fifo")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--slices", type=int, default=5)
    parser.add_argument("--clusters", default="0e4a51,6214e9,11cb48,6c71a0,b436b2,ee9e8c")
    arguments = parser.parse_args()
    trace = DATA / "philly_sia.csv"
    everyone = read_philly_plain(trace, max_gpus=8)
    step = max(1, (len(everyone) - arguments.jobs) // max(1, arguments.slices - 1))
    slices = {
        f"from {number * step}": everyone[number * step :][: arguments.jobs]
        for number in range(arguments.slices)
    }
    for name in filter(None, arguments.clusters.split(",")):
        slices[name] = read_philly_plain(trace, max_gpus=8, virtual_cluster=name)
    print(
        ROW.format("jobs of", "", "placement", "policy", "jobs/s", "bare loop", "ratio", "mean (s)")
    )
    for name, jobs in slices.items():
        for placement in SERVERS:
            for policy in arguments.policies.split(","):
                measure(name, jobs, placement, policy)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def measure(name, jobs, placement, policy):
    workload = rigid_workload(jobs, 8, 8, placement)
    begin = perf_counter()
    outcome = replay(workload, POLICIES[policy]())
    rate = len(jobs) / (perf_counter() - begin)
    bare, ratio = "-", "-"
    if policy == "fifo":
        rows = [(job.submitted, job.duration, job.gpus) for job in jobs]
        begin = perf_counter()
        ends = bare_loop.fifo(rows, SERVERS[placement])
        least = len(jobs) / (perf_counter() - begin)
        assert ends == [times.end for times in outcome.jobs]
        bare, ratio = f"{least:.0f}", f"{least / rate:.1f}"
    mean = f"{outcome.mean_completion:.4f}"
    print(ROW.format(name, len(jobs), placement, policy, f"{rate:.0f}", bare, ratio, mean))


if __name__ == "__main__":
    main()
