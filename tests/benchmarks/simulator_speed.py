"""Speed and memory of the simulator on real traces: ``python tests/benchmarks/simulator_speed.py``.

FIFO over slices of 10,000 Philly jobs (of at most 8 GPUs) on 64 GPUs, in order of submission, the
engine alone: reading the trace is not part of the time, which is that of
the processor. The aim is 10,000 jobs/s and 300 MB.
"""

import argparse
import os
import resource
from pathlib import Path
from time import process_time

from baselines import FIFO, LAS, SRTF
from oasis.simulator import replay, rigid_workload
from oasis.traces import read_philly_plain

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[2] / "../shared/data"))
POLICIES = {policy.name: policy for policy in (FIFO, SRTF, LAS)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", default="fifo")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--slices", type=int, default=4)
    arguments = parser.parse_args()
    everyone = read_philly_plain(DATA / "philly_sia.csv", max_gpus=8)
    step = max(1, (len(everyone) - arguments.jobs) // max(1, arguments.slices - 1))
    print("first  placement  policy  jobs/s  mean completion (s)")
    for number in range(arguments.slices):
        first = number * step
        jobs = everyone[first : first + arguments.jobs]
        for placement in ("pooled", "whole"):
            workload = rigid_workload(jobs, 8, 8, placement)
            for name in arguments.policies.split(","):
                begin = process_time()
                outcome = replay(workload, POLICIES[name]())
                rate = len(jobs) / (process_time() - begin)
                mean = outcome.mean_completion
                print(f"{first:5}  {placement:9}  {name:6}  {rate:6.0f}  {mean:.1f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
