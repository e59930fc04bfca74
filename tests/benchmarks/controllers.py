"""Speed of the Kubernetes controllers: ``python -m tests.benchmarks.controllers``.

10,000 elastic jobs on 64 machines of 8 GPUs through each controller, at three loads, with costs of
changes and the speed model of the workload. Process time of the whole run, simulator included; 500
jobs/s are asked for, 2,000 are the aim.
"""

import argparse
from time import process_time

import baselines
from oasis.simulator import generate_elastic, replay

GAPS = (8.0, 4.0, 2.0)  # seconds between two arrivals: a lightly used, a full, an overfull cluster
ROW = "{:>18}  {:>7}  {:>8}  {:>9}  {:>8}  {:>9}  {:>8}"
HEADINGS = ("controller", "gap (s)", "jobs/s", "GPU use", "calls", "mean (s)", "resizes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", default=",".join(baselines.CONTROLLERS))
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--gaps", default=",".join(map(str, GAPS)))
    arguments = parser.parse_args()
    print(ROW.format(*HEADINGS))
    for gap in map(float, arguments.gaps.split(",")):
        made = generate_elastic(jobs=arguments.jobs, machines=64, gpus=8, mean_gap=gap, seed=1)
        for name in arguments.policies.split(","):
            begin = process_time()
            outcome = replay(made.workload, baselines.make(name), **made.options)
            rate = arguments.jobs / (process_time() - begin)
            resizes = sum(job.resizes for job in outcome.jobs)
            use, mean = outcome.use["gpu"], outcome.mean_completion
            shown = (f"{gap:g}", f"{rate:.0f}", f"{use:.2f}", outcome.calls, f"{mean:.0f}", resizes)
            print(ROW.format(name, *shown), flush=True)


if __name__ == "__main__":
    main()
