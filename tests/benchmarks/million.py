"""A million jobs from a table, under FIFO and EASY: ``python -m tests.benchmarks.million``.

Writes a table of jobs whose sizes and durations are as those of GPU clusters, and replays it with
``oasis replay`` on 512 GPUs; prints the time of the command, its processor time and its peak of
memory. The aim is five minutes and 4 GB on two cores. ``--load`` above 1 makes the line grow to the
end; `tests/unit/baselines/test_queues.py` counts what a long line costs.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

GPUS = 512


def write_table(path, jobs, load, seed=1):
    """A table of `jobs` that want `load` times what the cluster has."""
    draw = np.random.default_rng(seed)
    gpus = draw.choice([1, 2, 4, 8, 16, 32], size=jobs, p=[0.6, 0.12, 0.12, 0.1, 0.04, 0.02])
    seconds = np.clip(np.exp(draw.normal(6.5, 1.8, size=jobs)), 10, 30 * 86400).round()
    gap = (gpus * seconds).mean() / (GPUS * load)
    submitted = np.cumsum(draw.exponential(gap, size=jobs)).astype(int)
    with path.open("w", encoding="utf-8") as stream:
        stream.write("id,submitted,duration,gpus\n")
        for row in zip(range(jobs), submitted, seconds, gpus, strict=True):
            stream.write("job{},{},{:.0f},{}\n".format(*row))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--policies", default="fifo,easy")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "jobs.csv")
        write_table(path, given.jobs, given.load)
        command = ["-m", "oasis", "replay", str(path), "--servers", str(GPUS // 8)]
        begin = perf_counter()
        subprocess.run([sys.executable, *command, "--policies", given.policies], check=True)
        took = perf_counter() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime
    memory = used.ru_maxrss / 2**20
    print(f"{given.jobs} jobs: {took:.0f} s, {processor:.0f} s of a processor, {memory:.2f} GB")


if __name__ == "__main__":
    main()
