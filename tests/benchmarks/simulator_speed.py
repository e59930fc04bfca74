"""Speed and memory on a real trace: ``python -m tests.benchmarks.simulator_speed``.

FIFO over slices of 10,000 Philly jobs (of at most 8 GPUs) on 64 GPUs, and over whole virtual
clusters, beside a bare event loop that gives the same completion times (asserted). Wall clock of
the run alone: reading the trace is not part of it. The aim is 10,000 jobs/s and 300 MB.
docs/benchmarks/simulator.csv is the table of the page.
"""

import resource
from time import perf_counter

from baselines import FIFO
from oasis.simulator import replay, rigid_workload
from oasis.traces import read_plain
from tests.benchmarks import bare_loop
from tests.benchmarks.table import main
from tests.benchmarks.traces import DATA
from tests.philly_shape import philly_jobs

SERVERS = {"pooled": [64], "whole": [8] * 8}
CLUSTERS = ("6214e9", "11cb48", "6c71a0", "b436b2", "ee9e8c", "0e4a51")
COLUMNS = ("jobs of", "jobs", "placement", "policy", "jobs/s", "bare loop", "ratio")
COLUMNS = (*COLUMNS, "mean completion (s)")


def chosen(trace, jobs=10_000, slices=5, clusters=CLUSTERS):
    """Slices of the trace and virtual clusters, by name."""
    everyone = read_plain(trace, max_gpus=8, format="philly").jobs if slices else []
    step = max(1, (len(everyone) - jobs) // max(1, slices - 1))
    found = {f"from {k * step}": everyone[k * step :][:jobs] for k in range(slices)}
    for name in clusters:
        found[name] = [job for job in philly_jobs(trace, name) if job.gpus <= 8]
    return found


def rows():
    for name, jobs in chosen(DATA / "philly_sia.csv").items():
        for placement in SERVERS:
            yield measure(name, jobs, placement)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def measure(name, jobs, placement):
    workload = rigid_workload(jobs, 8, 8, placement)
    begin = perf_counter()
    outcome = replay(workload, FIFO())
    rate = len(jobs) / (perf_counter() - begin)
    given = [(job.submitted, job.duration, job.gpus) for job in jobs]
    begin = perf_counter()
    ends = bare_loop.fifo(given, SERVERS[placement])
    least = len(jobs) / (perf_counter() - begin)
    assert ends == [times.end for times in outcome.jobs]
    speeds = f"{rate:.0f}", f"{least:.0f}", f"{least / rate:.1f}"
    return (name, len(jobs), placement, "fifo", *speeds, f"{outcome.mean_completion:.4f}")


if __name__ == "__main__":
    main(COLUMNS, rows, __doc__)
