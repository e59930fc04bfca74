"""The testbed and the training jobs of the SpeCon paper, as elastic workloads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.figures.specon.published import EARLY_PROGRESS, SAVING_AT_MOST
from oasis.simulator import ElasticWorkload, elastic_from_dict

CORES, MEMORY = 16, 64.0  # of a worker (section VI-A)
# "resources are fully occupied by each model without competitions" (section III-A)
JOB_CORES = 16.0
LOOK = 5.0  # seconds between two values of the evaluation function in the log: ours
PIECES = 64  # of a training curve
GAP = 50.0  # seconds between two jobs of the fixed schedule (section VI-B)

# Calibrated on the default scheduler alone, so that over 20 seeds it has its published mean
# completion time and makespan: the median work of a VAE job, in seconds on its own, and the
# standard deviation of its logarithm (docs: figures-specon).
WORK, SPREAD = 183.0, 0.36
# The same for jobs of all models, by the default scheduler's mean and makespan of Fig. 7.
MIXED_WORK, MIXED_SPREAD = 181.0, 0.39
# Table II. Of RNN and dynamic RNN no curve is published: these two numbers are ours.
EARLY = {**EARLY_PROGRESS, "RNN": 0.80, "Dynamic RNN": 0.95}
MODELS = tuple(EARLY)


def overhead(seed: int, point: int = 0) -> float:
    """Seconds that saving a container and resuming it take together, drawn.

    "All less than 5 seconds and consistent with a standard deviation value of 1.43" (Fig. 2): times
    that are even between 0 and 5 s have a standard deviation of 1.44 s.

    Parameters
    ----------
    seed : int
        Of the run.
    point : int
        Which of the measurements of Figs. 2 and 3; 0 for whole schedules, in which it is the same
        for each move.

    Examples
    --------
    >>> overhead(0), overhead(0, point=1)
    (3.125, 4.166)
    """
    drawn = np.random.default_rng([7, seed, point]).uniform(0.0, SAVING_AT_MOST)
    return round(float(drawn), 3)


def progress(share: float, rate: float, bend: float) -> float:
    """Part of the whole reduction after `share` of the work, 1 at its end.

    Examples
    --------
    >>> [round(progress(share, 5.0, 1.0), 3) for share in (0.0, 0.2, 1.0)]
    [0.0, 0.636, 1.0]
    """
    return math.expm1(-rate * share**bend) / math.expm1(-rate)


def pace(early: float, bend: float) -> float:
    """The rate with which a part `early` of the reduction is made in the first fifth.

    Examples
    --------
    >>> [round(progress(0.2, pace(0.65, bend), bend), 6) for bend in (1.0, 2.0)]
    [0.65, 0.65]
    """
    low, high = 1e-6, 1e3
    while high - low > 1e-9:
        middle = (low + high) / 2
        if progress(0.2, middle, bend) < early:
            low = middle
        else:
            high = middle
    return low


def curve(model: str, bend: float = 1.0, floor: float = 0.0) -> list[list[float]]:
    """The evaluation function of `model`, from 1 to `floor`, as pairs of share and value.

    One of its points is published, Fig. 1 itself is not readable. An exponential goes through it
    with ``bend=1``; with ``bend=2`` the curve is steeper before and flatter after it. What is left
    of the first value at the end is not published.

    Examples
    --------
    >>> points = curve("VAE")
    >>> points[0], points[-1]
    ([0.0, 1.0], [1.0, 0.0])
    """
    rate = pace(EARLY[model], bend)
    shares = [k / PIECES for k in range(PIECES + 1)]
    return [[share, 1.0 - (1.0 - floor) * progress(share, rate, bend)] for share in shares]


def drawn_work(seed: int, work: float = WORK, spread: float = SPREAD) -> list[float]:
    """Work of the 20 jobs of the fixed schedule, in seconds on their own.

    Examples
    --------
    >>> len(drawn_work(0))
    20
    """
    rng = np.random.default_rng([5, seed])
    found: list[float] = (work * np.exp(spread * rng.standard_normal(20))).tolist()
    return found


def fixed_schedule(
    seed: int,
    *,
    work: float = WORK,
    spread: float = SPREAD,
    bend: float = 1.0,
    floor: float = 0.0,
    look: float = LOOK,
) -> ElasticWorkload:
    """The fixed schedule of section VI-B: VAE jobs, one every 50 seconds, on four workers.

    Were all jobs alike, the two schedulers would not differ: each worker gets a job every 200 s,
    and there are never three on one. But the published completion times differ widely, so that the
    work of the jobs is drawn here: its logarithm is normal.

    Parameters
    ----------
    seed : int
        Of the work and of the overhead of moving a container.
    work, spread : float
        Median work in seconds, and the standard deviation of its logarithm.
    bend, floor : float
        Of the evaluation function, see `curve`.
    look : float
        Seconds between two values of the evaluation function in the log.

    Examples
    --------
    >>> made = fixed_schedule(0)
    >>> len(made.workload.jobs), made.workload.jobs[19].arrival
    (20, 950.0)
    """
    shown = curve("VAE", bend, floor)
    amounts = enumerate(drawn_work(seed, work, spread))
    jobs = [job_of(k, GAP * k, amount, shown) for k, amount in amounts]
    return on_workers(jobs, costs=overhead(seed), look=look)


def random_schedule(
    seed: int,
    *,
    jobs: int,
    window: float,
    workers: int = 4,
    models: Sequence[str] = MODELS,
    work: float = MIXED_WORK,
    spread: float = MIXED_SPREAD,
    bend: float = 1.0,
) -> ElasticWorkload:
    """A random schedule of section VI-C: the times of arrival are drawn evenly from a window.

    Jobs are numbered in order of arrival. Their models are drawn alike, and their work as in
    `fixed_schedule`; on which of the two platforms a job runs changes nothing here.

    Parameters
    ----------
    seed : int
        Of arrivals, models and work, and of the overhead of moving a container.
    jobs, workers : int
        How many of each.
    window : float
        Seconds in which all arrive.
    models : sequence of str
        To draw from.
    work, spread, bend : float
        As for `fixed_schedule`.

    Examples
    --------
    >>> made = random_schedule(0, jobs=30, window=600.0)
    >>> len(made.workload.jobs), made.workload.jobs[-1].arrival < 600.0
    (30, True)
    """
    rng = np.random.default_rng([6, seed])
    arrivals = np.sort(rng.uniform(0.0, window, jobs)).round(1).tolist()
    names = rng.choice(list(models), jobs).tolist()
    seconds = (work * np.exp(spread * rng.standard_normal(jobs))).tolist()
    rows = zip(arrivals, names, seconds, strict=True)
    made = [job_of(k, at, amount, curve(name, bend)) for k, (at, name, amount) in enumerate(rows)]
    return on_workers(made, workers, costs=overhead(seed))


def on_workers(
    jobs: Sequence[dict[str, Any]], workers: int = 4, *, costs: float, look: float = LOOK
) -> ElasticWorkload:
    """Jobs on so many workers of the testbed.

    Parameters
    ----------
    jobs : sequence of dict
        As `job_of` makes them.
    workers : int
        How many.
    costs : float
        Seconds that it takes to save a container and to resume it, half of them each.
    look : float
        Seconds between two values of the evaluation function in the log.

    Examples
    --------
    >>> [machine.cpu_cores for machine in fixed_schedule(0).workload.site.machines]
    [16.0, 16.0, 16.0, 16.0]
    """
    machine = {"id": "worker", "capacity": {"memory_gb": MEMORY}, "cpu_cores": CORES}
    return elastic_from_dict(
        {
            "format": "oasis-elastic-workload",
            "version": 1,
            "resources": ["memory_gb"],
            "machines": [machine | {"count": workers}],
            "costs": dict.fromkeys(("save", "migrate", "resume"), costs / 2),
            "observation": {"interval": look},
            "jobs": list(jobs),
        }
    )


def job_of(k: int, arrival: float, work: float, shown: list[list[float]]) -> dict[str, Any]:
    """One container, as files of elastic jobs have it.

    Examples
    --------
    >>> job_of(0, 5.0, 60.0, curve("GRU"))["id"]
    'job1'
    """
    return {
        "id": f"job{k + 1}",
        "arrival": arrival,
        "work": round(work, 3),
        "workers": {"min": 1, "initial": 1, "max": 1},
        "worker": {},
        "worker_cpu": JOB_CORES,
        "curve": shown,
    }
