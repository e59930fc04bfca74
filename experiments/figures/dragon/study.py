"""The simulated study of the DRAGON paper: 100 jobs on 32 GPUs at different intensities."""

from __future__ import annotations

import numpy as np

from experiments.figures.dragon.models import MODELS, RESTART, SIMULATED, document, job, speedup
from oasis.simulator import ElasticWorkload, elastic_from_dict

JOBS = 100
LEAST, MOST = 2, 8  # workers
LONGEST_GAP, SHORTEST_GAP = 400.0, 62.0  # seconds, published
INTENSITIES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)


def gap(intensity: float) -> float:
    """Mean seconds between two arrivals.

    "Intensity" is not defined in the paper, and neither is how long jobs run. Read: the load that
    is offered, GPU time asked for over GPU time there is. It grows as one over the gap, so that 4
    at the shortest gap of 62 s makes 0.62 at the longest of 400 s, near the 0.5 of the axis, where
    the gap is kept at 400 s.

    Examples
    --------
    >>> [gap(intensity) for intensity in (0.5, 1.0, 4.0)]
    [400.0, 248.0, 62.0]
    """
    return min(LONGEST_GAP, SHORTEST_GAP * INTENSITIES[-1] / intensity)


def mean_run() -> float:
    """Mean seconds for which a job runs with the workers that it asks for, from that reading.

    The middle of three even draws from 2 to 8 has mean 5, so that the load is
    ``5 * mean_run / (32 * gap)``.

    Examples
    --------
    >>> round(mean_run(), 1)
    1587.2
    """
    gpus = SIMULATED.machines * SIMULATED.gpus
    return INTENSITIES[-1] * gpus * SHORTEST_GAP / ((LEAST + MOST) / 2)


def study(intensity: float, seed: int, *, rigid: bool = False) -> ElasticWorkload:
    """Jobs as a Poisson process; fewest, asked and most workers are drawn from 2 to 8.

    The models are drawn alike, and the running times are exponential, cut to between a tenth and
    five times their mean.

    Examples
    --------
    >>> made = study(2.0, 0)
    >>> len(made.workload.jobs), made.workload.site.totals("worker")
    (100, (32.0,))
    """
    rng = np.random.default_rng([2, seed])  # the same jobs at every intensity
    arrivals = np.cumsum(rng.exponential(1.0, JOBS)) * gap(intensity)
    letters = rng.choice(sorted(MODELS), JOBS)
    counts = np.sort(rng.integers(LEAST, MOST + 1, (JOBS, 3)), axis=1)
    runs = np.clip(rng.exponential(1.0, JOBS), 0.1, 5.0) * mean_run()
    restart = float(rng.uniform(*RESTART))
    made = []
    for k, (letter, (least, asked, most)) in enumerate(
        zip(letters.tolist(), counts.tolist(), strict=True)
    ):
        model = MODELS[letter]
        rate = model.throughput[0] * speedup(model, most)[asked - 1]
        workers = (least, asked, most)
        made.append(job(f"job{k}", letter, float(arrivals[k]), float(runs[k]) * rate, workers))
    return elastic_from_dict(document(SIMULATED, made, restart, rigid=rigid))
