"""Both schedulers of the SpeCon paper on one workload, as rows of plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from baselines import FIFO, SpeCon
from experiments.figures.rows import Row, interval
from experiments.figures.specon.pool import pooled_mean
from oasis.scheduling import Policy
from oasis.simulator import ElasticWorkload, replay

DEFAULT, SPECON, CLUSTER = "default", "specon", "specon (cluster)"
CLUSTER_FLAT = "specon (cluster), flat tail"
# The policy and the bend of the evaluation function: as for Fig. 5, whose page says what they are.
CHOICES: Mapping[str, tuple[Callable[..., Policy], float]] = {
    DEFAULT: (lambda **_: FIFO(placement="round-robin"), 1.0),
    SPECON: (SpeCon, 1.0),
    CLUSTER: (lambda **options: SpeCon(counted="cluster", **options), 1.0),
    CLUSTER_FLAT: (lambda **options: SpeCon(counted="cluster", **options), 2.0),
}


def measure(made: ElasticWorkload, choice: str, **options: float) -> Row:
    """Mean completion time, makespan and moves; and the completion time of each job.

    Beside them, the mean if all workers were one pool that is shared evenly (`pooled_mean`).

    Examples
    --------
    >>> from experiments.figures.specon.models import fixed_schedule
    >>> row = measure(fixed_schedule(0), DEFAULT)
    >>> row["moves"], row["makespan"] > 950.0
    (0, True)
    """
    outcome = replay(made.workload, CHOICES[choice][0](**options), **made.options)
    times = [job.end - job.arrival for job in outcome.jobs if job.end is not None]
    asked = [(job.arrival, job.work) for job in made.workload.jobs]
    return {
        "mean": math.fsum(times) / len(times),
        "pooled": pooled_mean(asked, len(made.workload.site.machines)),
        "makespan": max(job.end for job in outcome.jobs if job.end is not None),
        "moves": sum(job.migrations for job in outcome.jobs),
        **{f"job{k}": time for k, time in enumerate(times, start=1)},
    }


def gains(part: Sequence[Row], base: Sequence[Row], jobs: int) -> Row:
    """What the runs of `part` gain over those of `base`, seed by seed, with intervals.

    The part of the jobs that complete sooner, by how much the mean is lower, the largest reduction
    of one job, and by how much the makespan is lower.
    """
    pairs = list(zip(part, base, strict=True))
    each = [
        [1.0 - own[f"job{k}"] / other[f"job{k}"] for k in range(1, jobs + 1)]
        for own, other in pairs
    ]
    row = interval([sum(gain > 0 for gain in some) / jobs for some in each], "reduced")
    row |= interval([1.0 - own["mean"] / other["mean"] for own, other in pairs], "overall")
    row |= interval([max(some) for some in each], "best")
    row |= interval(
        [1.0 - own["makespan"] / other["makespan"] for own, other in pairs], "makespan_gain"
    )
    row["better"] = sum(own["mean"] < other["mean"] for own, other in pairs)
    return row
