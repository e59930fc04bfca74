"""What Dorm's MILPs take: ``nice -n 10 python -m tests.benchmarks.dorm docs/benchmarks/dorm.csv``.

Whole runs of `calibrated` instances with the default limits of Dorm's solver; the file is the table
of the page (docs/benchmarks/simulator).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import oasis
from baselines import Dorm
from tests.benchmarks.streams import calibrated

SLOTS, SERVERS = 300, 50
RUNS = tuple((jobs, seed) for jobs in (100, 400) for seed in (1, 2, 3))
COLUMNS = ("jobs", "seed", "run (s)", "MILPs", "proven", "stopped by the node limit", "fell back")
COLUMNS = (*COLUMNS, "saw some of the jobs", "slowest decision (s)", "total utility")


def row(jobs: int, seed: int) -> tuple[str, ...]:
    """One run."""
    instance = calibrated(SLOTS, SERVERS, jobs, seed)
    begin = perf_counter()
    run = oasis.simulate(instance, Dorm())
    seconds = perf_counter() - begin
    oasis.verify(instance, run)
    kinds = ("milps", "optimal", "node_limit", "fell_back", "restricted")
    counts = (str(run.report[kind]) for kind in kinds)
    slowest = max(run.decision_seconds)
    return (
        *(str(jobs), str(seed), f"{seconds:.1f}", *counts),
        *(f"{slowest:.2f}", f"{run.total_utility:.1f}"),
    )


def rows() -> Iterator[tuple[str, ...]]:
    """All runs."""
    yield from (row(jobs, seed) for jobs, seed in RUNS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, metavar="FILE.csv", help="write the table here")
    path = parser.parse_args().file
    found = list(rows())
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *found])


if __name__ == "__main__":
    main()
