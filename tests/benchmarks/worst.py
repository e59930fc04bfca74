"""The worst cases of policies on four jobs, for docs/worst-cases.

    python -m tests.benchmarks.worst docs/benchmarks/worst.csv

The instances, one a row, go to docs/benchmarks/worst. The same seed gives the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import oasis
from oasis import Space, make_policy, worst_case
from tests.benchmarks.table import ROOT, main

CASES = (
    ("OASiS, floor 0.7 (default)", "oasis", {}),
    ("OASiS, floor 0.3", "oasis", {"min_utility_fraction": 0.3}),
    ("OASiS, no floor (as printed)", "oasis", {"min_utility_fraction": 0.0}),
    ("recourse, promises at arrival", "recourse", {"commitment": "arrival"}),
    ("recourse, no promises", "recourse", {}),
    ("FIFO", "fifo", {}),
    ("SRTF", "srtf", {}),
    ("DRF", "drf", {}),
)
FOLDER = ROOT / "docs/benchmarks/worst"
COLUMNS = ("policy", "ratio", "earned", "optimum", "bound", "instances", "instance")


def rows() -> Iterator[tuple[object, ...]]:
    for number, (name, policy, options) in enumerate(CASES, start=1):
        worst = worst_case(
            lambda instance, policy=policy, options=options: make_policy(
                policy, instance, **options
            ),
            Space(),
            evaluations=400,
        )
        path = FOLDER / f"{number}-{policy}.json"
        oasis.write(worst.instance, path)
        bound = worst.result.corrected_ratio_bound
        yield (
            name,
            "unbounded" if worst.ratio == math.inf else f"{worst.ratio:.6g}",
            f"{worst.result.online_utility:.6g}",
            f"{worst.result.offline_objective:.6g}",
            "" if bound is None else f"{bound:.6g}",
            worst.evaluations,
            path.name,
        )


if __name__ == "__main__":
    main(COLUMNS, rows, __doc__)
