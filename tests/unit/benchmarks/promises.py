"""Measure the worth of later promises: ``python -m tests.unit.benchmarks.promises FILE.csv``.

Recourse promises on arrival, where sampled futures decide, by the slot in which a job is still
worth a share of what it is worth as planned. Utility as a share of what recourse without any
commitment earns on the same instance, mean over the instances on which the share was chosen. The
file is the table of the page (docs/recourse).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import oasis
from oasis.online.recourse import SampledFutures
from tests.benchmarks.streams import calibrated
from tests.benchmarks.table import main

SHARES = (0.6, 0.8, 0.95, None)  # none: the planned completion itself
COLUMNS = ("promised", "testbed, 12 jobs", "T = 20, 10 + 10 servers, 20 jobs", "all", "instances")


def families() -> dict[str, list[oasis.Instance]]:
    """The training instances, by the column that shows them."""
    return {
        COLUMNS[1]: [oasis.generate("testbed", seed=seed) for seed in range(100, 124)],
        COLUMNS[2]: [calibrated(20, 10, 20, seed) for seed in range(101, 111)],
    }


def earned(instance: oasis.Instance) -> list[float]:
    """Utility with each promise, as a share of that without any."""
    free = oasis.simulate(instance, oasis.Recourse("none")).total_utility
    rules = [SampledFutures(promise_share=share) for share in SHARES]
    runs = [oasis.simulate(instance, oasis.Recourse("arrival", admission=rule)) for rule in rules]
    return [run.total_utility / free for run in runs]


def rows(families: Mapping[str, Sequence[oasis.Instance]]) -> list[tuple[str, ...]]:
    """A row a promise: the mean of each family, and of all instances."""
    found = [[earned(one) for one in group] for group in families.values()]
    made = []
    for k, share in enumerate(SHARES):
        columns = [[values[k] for values in group] for group in found]
        everything = [value for column in columns for value in column]
        means = [f"{fmean(column):.3f}" for column in (*columns, everything)]
        name = "the planned completion" if share is None else f"{share:g} of what is planned"
        made.append((name, *means, str(len(everything))))
    return made


if __name__ == "__main__":
    main(COLUMNS, lambda: rows(families()), __doc__)
