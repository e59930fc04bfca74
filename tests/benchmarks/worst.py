"""The worst cases of policies on four jobs, for docs/worst-cases.

    python -m tests.benchmarks.worst docs/benchmarks/worst.csv docs/benchmarks/worst

The second argument is a folder for the instances, one a row. The same seed gives the same rows.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import oasis
from experiments.evaluation.policies import entry_of
from oasis import Space, worst_case

ROWS = (
    ("OASiS, floor 0.7 (default)", "oasis", {}),
    ("OASiS, floor 0.3", "oasis", {"min_utility_fraction": 0.3}),
    ("OASiS, no floor (as printed)", "oasis", {"min_utility_fraction": 0.0}),
    ("recourse, promises at arrival", "recourse", {"commitment": "arrival"}),
    ("recourse, no promises", "recourse", {}),
    ("FIFO", "fifo", {}),
    ("SRTF", "srtf", {}),
    ("DRF", "drf", {}),
)
COLUMNS = ("policy", "ratio", "earned", "optimum", "bound", "instances", "instance")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("csv", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--evaluations", type=int, default=400)
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    with given.csv.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for number, (name, policy, options) in enumerate(ROWS, start=1):
            entry = entry_of(policy)
            worst = worst_case(
                lambda instance, entry=entry, options=options: entry.make(instance, options),
                Space(),
                evaluations=given.evaluations,
            )
            path = given.folder / f"{number}-{policy}.json"
            oasis.write(worst.instance, path)
            bound = worst.result.corrected_ratio_bound
            writer.writerow(
                [
                    name,
                    "unbounded" if worst.ratio == math.inf else f"{worst.ratio:.6g}",
                    f"{worst.result.online_utility:.6g}",
                    f"{worst.result.offline_objective:.6g}",
                    "" if bound is None else f"{bound:.6g}",
                    worst.evaluations,
                    path.name,
                ]
            )
            file.flush()
            print(name, worst, flush=True)


if __name__ == "__main__":
    main()
