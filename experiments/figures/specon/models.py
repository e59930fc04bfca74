"""The testbed and the training jobs of the SpeCon paper, as elastic workloads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.figures.specon.published import EARLY_PROGRESS, SAVING_AT_MOST
from oasis.simulator import ElasticWorkload, ScalingTable, TrainingSpeed, elastic_from_dict

CORES, MEMORY = 16, 64.0  # of a worker (section VI-A)
# "resources are fully occupied by each model without competitions" (section III-A)
JOB_CORES = 16.0
LOOK = 5.0  # seconds between two values of the evaluation function in the log: ours
PIECES = 64  # of a training curve
# "the loss reduces dramatically at the beginning of the process, then converges and becomes stable"
# (section I): a bend of 2, beside 1 for an exponential, see `curve`.
FLAT_TAIL = 2.0
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


def curve(model: str, bend: float = FLAT_TAIL, floor: float = 0.0) -> list[list[float]]:
    """The evaluation function of `model`, from 1 to `floor`, as pairs of share and value.

    One of its points is published, Fig. 1 itself is not readable. With ``bend=1`` it is an
    exponential through this point; with ``bend=2`` it falls most just before the point and is flat
    in the second half of the training. What is left of the first value at the end is not published.

    Examples
    --------
    >>> points = curve("VAE")
    >>> points[0], points[-1]
    ([0.0, 1.0], [1.0, 0.0])
    """
    rate = pace(EARLY[model], bend)
    shares = [k / PIECES for k in range(PIECES + 1)]
    return [[share, 1.0 - (1.0 - floor) * progress(share, rate, bend)] for share in shares]


def on_workers(
    jobs: Sequence[dict[str, Any]],
    workers: int = 4,
    *,
    costs: float,
    look: float = LOOK,
    loss: float = 0.0,
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
    loss : float
        What each further job on a worker costs beside its part of the cores, as in
        `oasis.simulator.ScalingTable`.

    Examples
    --------
    >>> made = on_workers([job_of(0, 5.0, 60.0, curve("GRU"))], costs=4.0)
    >>> [machine.cpu_cores for machine in made.workload.site.machines]
    [16.0, 16.0, 16.0, 16.0]
    """
    machine = {"id": "worker", "capacity": {"memory_gb": MEMORY}, "cpu_cores": CORES}
    made = elastic_from_dict(
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
    return replace(made, speed=TrainingSpeed(ScalingTable({}, sharing=loss), None))


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
