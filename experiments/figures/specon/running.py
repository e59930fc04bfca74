"""Both schedulers of the SpeCon paper on one draw, as rows of plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from baselines import FIFO, SpeCon
from experiments.figures.figure import Row, fraction, interval
from experiments.figures.specon.draws import Draw
from experiments.figures.specon.models import FLAT_TAIL, LOOK
from experiments.figures.specon.pool import pooled_mean
from oasis.scheduling import Policy
from oasis.simulator import replay


@dataclass(frozen=True, slots=True)
class Choice:
    """A reading of what the paper leaves open.

    Parameters
    ----------
    rebalancing : {"always", "converged"}
        When Algorithm 3 runs: always, as printed, or once all containers have converged.
    counted : {"worker", "cluster"}
        Where line 15 of Algorithm 1 counts containers that still make progress.
    bend, floor : float
        Of the evaluation functions, see `models.curve`.
    look : float
        Seconds between two values of an evaluation function in the log.
    """

    rebalancing: str = "always"
    counted: str = "worker"
    bend: float = FLAT_TAIL
    floor: float = 0.0
    look: float = LOOK


DEFAULT, SPECON = "default", "specon"
WAITS, CLUSTER = "specon, waits for all", "specon, cluster"
EXPONENTIAL = "specon, exponential"
# Both schedulers begin with the same placement in turn; the default one then moves nothing,
# whatever the evaluation functions are.
CHOICES: Mapping[str, Choice | None] = {
    DEFAULT: None,
    SPECON: Choice(),
    WAITS: Choice("converged"),
    CLUSTER: Choice(counted="cluster"),
    EXPONENTIAL: Choice(bend=1.0),
}


def policy_of(choice: Choice | None, alpha: float = 0.01, interval: float = 30.0) -> Policy:
    """The scheduler of a choice; None: the default one.

    Examples
    --------
    >>> policy_of(Choice("converged"), alpha=0.05).parameters["rebalancing"]
    'converged'
    """
    if choice is None:
        return FIFO(placement="round-robin")
    return SpeCon(alpha, interval, counted=choice.counted, rebalancing=choice.rebalancing)


def shape_of(choice: Choice | None) -> dict[str, float]:
    """Of the evaluation functions: the options of `Draw.workload`.

    Examples
    --------
    >>> shape_of(Choice(bend=1.0))
    {'bend': 1.0, 'floor': 0.0, 'look': 5.0}
    """
    shown = asdict(choice or Choice())
    return {name: shown[name] for name in ("bend", "floor", "look")}


def measure(draw: Draw, number: int, workers: int, choice: Choice | None, **options: float) -> Row:
    """Mean completion time, makespan and moves; and the completion time of each job.

    Beside them, the mean if all workers were one pool that is shared evenly (`pooled_mean`).

    Parameters
    ----------
    draw : Draw
        The jobs.
    number : int
        Which draw it is.
    workers : int
        How many.
    choice : Choice or None
        A reading of SpeCon; None: the default scheduler.
    **options : float
        ``alpha`` and ``interval`` of SpeCon.

    Examples
    --------
    >>> from experiments.figures.specon.draws import as_published
    >>> row = measure(as_published("5", 0), 0, 4, None)
    >>> row["moves"], round(row["mean"], 1)
    (0, 275.2)
    """
    made = draw.workload(workers, number, **shape_of(choice))
    outcome = replay(made.workload, policy_of(choice, **options), **made.options)
    assert not outcome.unfinished, "the mean would be one of the finished jobs only"
    times = [job.end - job.arrival for job in outcome.jobs if job.end is not None]
    asked = zip(draw.arrivals, draw.work, strict=True)
    return {
        "mean": math.fsum(times) / len(times),
        "pooled": pooled_mean(asked, workers, draw.loss),
        "makespan": max(job.end for job in outcome.jobs if job.end is not None),
        "moves": sum(job.migrations for job in outcome.jobs),
        **{f"job{k}": time for k, time in enumerate(times, start=1)},
    }


def gains(part: Sequence[Row], base: Sequence[Row], jobs: int) -> Row:
    """What the runs of `part` gain over those of `base`, draw by draw, with intervals.

    The part of the jobs that complete sooner; by how much the mean is lower, on average and, as the
    ends of `one_draw`, in the middle 95 % of the draws; the largest reduction of one job; and by
    how much the makespan is lower.
    """
    pairs = list(zip(part, base, strict=True))
    each = [
        [1.0 - own[f"job{k}"] / other[f"job{k}"] for k in range(1, jobs + 1)]
        for own, other in pairs
    ]
    overall = [1.0 - own["mean"] / other["mean"] for own, other in pairs]
    row = fraction([sum(gain > 1e-9 for gain in some) / jobs for some in each], "reduced")
    row |= interval(overall, "overall")
    low, high = np.quantile(overall, (0.025, 0.975)).tolist()
    row |= {"one_draw_low": low, "one_draw_high": high}
    row |= interval([max(some) for some in each], "best")
    row |= interval(
        [1.0 - own["makespan"] / other["makespan"] for own, other in pairs], "makespan_gain"
    )
    row["better"] = sum(gain > 0 for gain in overall)
    return row
