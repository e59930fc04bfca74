"""One controller on one workload of the DRAGON paper, as a row of plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import baselines
from experiments.figures.figure import Row
from oasis.simulator import ElasticWorkload, Outcome, replay

DEFAULT, LOCALITY, DRAGON = "kubernetes-default", "locality-aware", "dragon"
AS_CODED = "dragon (code)"  # with the choices of the public code where the text has others
POLICIES = (DEFAULT, LOCALITY, DRAGON, AS_CODED)
RIGID = (DEFAULT, LOCALITY)  # these start no job with other workers than it asks for
PARTS = ("elapsed", "running", "waiting", "scaling")


def measure(made: ElasticWorkload, policy: str) -> tuple[Row, Outcome]:
    """Means over the jobs, in seconds, of the parts of their elapsed time; and the run.

    A job that never finished makes the means infinite: the default scheduler can deadlock.

    Examples
    --------
    >>> from experiments.figures.dragon.table1 import table1
    >>> row, _ = measure(table1(), DRAGON)
    >>> row["finished"], row["elapsed"] < 900
    (12, True)
    """
    chosen = baselines.Dragon(reading="code") if policy == AS_CODED else baselines.make(policy)
    outcome = replay(made.workload, chosen, **made.options)
    jobs = outcome.jobs
    done = all(job.end is not None for job in jobs)

    def mean(values: Iterable[float]) -> float:
        return math.fsum(values) / len(jobs) if done else math.inf

    row: Row = {"policy": policy, "finished": len(outcome.completions)}
    row |= {
        "elapsed": mean(job.end - job.arrival for job in jobs if job.end is not None),
        "running": mean(job.running for job in jobs),
        "waiting": mean(job.waiting for job in jobs),
        "scaling": mean(job.overhead for job in jobs),
        "use": outcome.use["gpu"],
        "at_once": sum(job.start == job.arrival for job in jobs) / len(jobs),
        "resizes": sum(job.resizes for job in jobs),
    }
    return row, outcome


def use_by_time(outcome: Outcome, ends: Sequence[float]) -> list[float]:
    """Mean share of the GPUs in use between 0 and the first of `ends`, then up to the next, ..

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("a", 5.0, 10.0, 4)]
    >>> use_by_time(replay(rigid_workload(jobs, 1, 8), FIFO()), (10.0, 20.0, 30.0))
    [0.25, 0.25, 0.0]
    """
    total = math.fsum(machine.amounts[0] for machine in outcome.site.machines)
    steps = [(time, sum(used)) for time, used in outcome.timeline]
    spans = list(pairwise([*steps, (outcome.until, 0)]))
    shares = []
    for begin, end in pairwise((0.0, *ends)):
        area = math.fsum(
            used * max(0.0, min(after, end) - max(time, begin))
            for (time, used), (after, _) in spans
        )
        shares.append(area / (total * outcome.site.grid * (end - begin)))
    return shares


def by_policy(rows: Iterable[Row]) -> Mapping[str, list[Row]]:
    """Rows by policy, each in their order."""
    found: dict[str, list[Row]] = {policy: [] for policy in POLICIES}
    for row in rows:
        found[str(row["policy"])].append(row)
    return found
