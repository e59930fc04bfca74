"""Elastic jobs on eight machines of eight GPUs, from a trace or drawn, at a given load.

A trace says how many GPUs a job had and for how long. Added, with a seed: which of the three models
of the DRAGON paper a job trains, which gives its speed with other counts of workers, its gradients
and how its evaluation falls; and what it is worth, by the classes of section V of the OASiS paper.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.figures.dragon.models import BATCH, EXPOSED, MODELS, RESTART, speedup
from oasis.model.errors import InstanceError
from oasis.simulator import ElasticWorkload, elastic_from_dict
from oasis.traces.plain import read_plain

MACHINES, GPUS, LINK_GBPS = 8, 8, 10.0
JOBS = 40
ELASTICITY = 2  # most workers of a job, as a multiple of those that it asks for
LEAST_GPUS, MOST_GPUS = 2, 8  # distributed jobs
SHORTEST, LONGEST = 1800.0, 14400.0  # seconds that a job runs with what it asks for
CRITICAL, INSENSITIVE = 0.35, 0.10  # shares of the classes of section V
LOOK = 30.0  # seconds between two values of the evaluation function


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a trace says of a job: when it came, seconds that it ran, and its GPUs."""

    submitted: float
    duration: float
    gpus: int


def of_trace(path: str | os.PathLike[str], window: int, jobs: int = JOBS) -> list[Recorded]:
    """Window number `window` of a trace: so many distributed jobs that follow each other.

    Jobs with other counts of GPUs or other durations than those of this module are left out.

    Raises
    ------
    ValueError
        If the trace has no such window.
    """
    try:
        trace = read_plain(path)
    except InstanceError as error:
        raise ValueError(f"trace: {os.fspath(path)}: {error}") from None
    found = [
        Recorded(job.submitted, job.duration, job.gpus)
        for job in sorted(trace.jobs, key=lambda job: job.submitted)
        if LEAST_GPUS <= job.gpus <= MOST_GPUS and SHORTEST <= job.duration <= LONGEST
    ]
    if (window + 1) * jobs > len(found):
        raise ValueError(
            f"trace: expected {(window + 1) * jobs} jobs of {LEAST_GPUS} to {MOST_GPUS} GPUs that "
            f"ran {SHORTEST:g} to {LONGEST:g} s, got {len(found)}"
        )
    return found[window * jobs : (window + 1) * jobs]


def drawn(seed: int, jobs: int = JOBS) -> list[Recorded]:
    """A Poisson process of jobs of 2, 4 or 8 GPUs; the logarithms of their durations are even.

    Examples
    --------
    >>> [job.gpus for job in drawn(1, 5)]
    [8, 4, 4, 2, 4]
    """
    rng = np.random.default_rng([16, seed])
    submitted = np.cumsum(rng.exponential(1.0, jobs))
    durations = np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST), jobs))
    gpus = rng.choice((2, 4, 8), jobs, p=(0.5, 0.3, 0.2))
    rows = zip(submitted.tolist(), durations.tolist(), gpus.tolist(), strict=True)
    return [Recorded(at, seconds, count) for at, seconds, count in rows]


def at_load(recorded: Sequence[Recorded], load: float, seed: int) -> ElasticWorkload:
    """The recorded jobs as elastic ones, their gaps stretched until they offer `load`.

    The load is the GPU time asked for over the GPU time between the first and the last arrival.

    Parameters
    ----------
    recorded : sequence of Recorded
        In order of submission.
    load : float
        To be offered.
    seed : int
        Of models and utilities, which are the same at each load.

    Examples
    --------
    >>> made = at_load(drawn(1, 10), 2.0, seed=1)
    >>> last = made.workload.jobs[-1].arrival
    >>> round(sum(job.duration * job.gpus for job in drawn(1, 10)) / (64 * last), 6)
    2.0
    """
    rng = np.random.default_rng([17, seed])
    first, last = recorded[0].submitted, recorded[-1].submitted
    asked = sum(job.duration * job.gpus for job in recorded)
    stretch = asked / (MACHINES * GPUS * load) / (last - first)
    jobs = [
        _job(rng, f"j{k}", (job.submitted - first) * stretch, job) for k, job in enumerate(recorded)
    ]
    return elastic_from_dict(
        {
            "format": "oasis-elastic-workload",
            "version": 1,
            "resources": ["gpu"],
            "machines": [
                {
                    "id": "node",
                    "count": MACHINES,
                    "capacity": {"gpu": GPUS},
                    "link_gbps": LINK_GBPS / EXPOSED,
                }
            ],
            "costs": dict.fromkeys(("resume", "resize", "migrate"), sum(RESTART) / 2),
            "observation": {"interval": LOOK},
            "jobs": jobs,
        }
    )


def _job(rng: np.random.Generator, name: str, arrival: float, job: Recorded) -> dict[str, Any]:
    model = MODELS[str(rng.choice(sorted(MODELS)))]
    most = ELASTICITY * job.gpus
    speeds = speedup(model, most)
    pace = float(rng.uniform(2.0, 6.0))
    return {
        "id": f"{name}-{model.name}",
        "arrival": arrival,
        "work": job.duration * speeds[job.gpus - 1],
        "workers": {"min": 1, "initial": job.gpus, "max": most},
        "parameter_servers": 1,
        "worker": {"gpu": 1},
        "gradient_mb": model.gradient_mb,
        "step_seconds": BATCH / model.throughput[0],
        "speedup": speeds,
        "curve": [[share, float(np.exp(-pace * share))] for share in (k / 16 for k in range(17))],
        "utility": _utility(rng, job.duration),
    }


def _utility(rng: np.random.Generator, duration: float) -> dict[str, Any]:
    """A sigmoid around 1 to 3 times the duration: worth 1 to 100 (section V of the OASiS paper).

    The time over which it falls, from 73 % to 27 % of its value, is a tenth of its target for
    critical jobs and half of it for sensitive ones; insensitive ones are worth half whenever they
    end.
    """
    target = duration * float(rng.uniform(1.0, 3.0))
    kind = float(rng.random())
    fall = 0.05 if kind < CRITICAL else 0.25
    decay = 0.0 if kind >= 1.0 - INSENSITIVE else 1.0 / (fall * target)
    return {
        "kind": "sigmoid",
        "priority": float(rng.uniform(1.0, 100.0)),
        "decay": decay,
        "target": target,
    }
