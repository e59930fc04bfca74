"""Measure Dorm's MILPs: ``nice -n 10 python -m tests.benchmarks.dorm docs/benchmarks/dorm.csv``.

Whole runs of `calibrated` instances with the default limits of Dorm's solver; the file is the table
of the page (docs/benchmarks/simulator). Times are seconds of processor time, which other
work on the machine disturbs less than the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import oasis
from baselines import Dorm
from tests.benchmarks.streams import calibrated
from tests.benchmarks.table import main

SLOTS, SERVERS = 300, 50
RUNS = tuple((jobs, seed) for jobs in (100, 400) for seed in (1, 2, 3))
COLUMNS = ("jobs", "seed", "processor (s)", "MILPs", "proven", "stopped by the node limit")
COLUMNS = (*COLUMNS, "fell back", "saw some of the jobs", "total utility")


def row(jobs: int, seed: int) -> tuple[str, ...]:
    """One run."""
    instance = calibrated(SLOTS, SERVERS, jobs, seed)
    begin = process_time()
    run = oasis.simulate(instance, Dorm())
    seconds = process_time() - begin
    oasis.verify(instance, run)
    kinds = ("milps", "optimal", "node_limit", "fell_back", "restricted")
    counts = (str(run.report[kind]) for kind in kinds)
    return (str(jobs), str(seed), f"{seconds:.1f}", *counts, f"{run.total_utility:.1f}")


def rows() -> Iterator[tuple[str, ...]]:
    return (row(jobs, seed) for jobs, seed in RUNS)


if __name__ == "__main__":
    main(COLUMNS, rows, __doc__)
