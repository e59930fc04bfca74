"""Random elastic jobs, of models whose throughput was published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oasis.model.errors import InputError
from oasis.simulator.elastic import FORMAT, VERSION, ElasticWorkload, elastic_from_dict


@dataclass(frozen=True, slots=True)
class Model:
    """A model that is trained.

    Parameters
    ----------
    name : str
        Its name.
    throughput : tuple of float
        Images per second with 1, 2, 3 and 4 workers.
    gradient_mb : float
        Size of its gradients: parameters of 4 bytes.
    """

    name: str
    throughput: tuple[float, ...]
    gradient_mb: float


# Throughput as printed by the DRAGON paper (Table 2); the sizes are those of the models.
MODELS = (
    Model("inception-v3", (92.12, 154.14, 192.01, 280.79), 95.0),
    Model("resnet-50", (115.06, 176.65, 277.37, 346.51), 102.0),
    Model("alexnet", (38.09, 59.10, 77.76, 97.69), 244.0),
)
BATCH = 32  # images in a step of one worker
SHORTEST, LONGEST = 300.0, 7200.0  # seconds of work for one worker


def generate_elastic(
    *,
    jobs: int = 12,
    machines: int = 2,
    gpus: int = 4,
    mean_gap: float = 120.0,
    resize_seconds: float = 50.0,
    seed: int = 0,
) -> ElasticWorkload:
    """Elastic jobs on machines that are alike, arriving at random.

    Jobs arrive as a Poisson process. Each trains one of three models, drawn alike, with at least
    one and at most two to four workers of one GPU each and one parameter server; its work is drawn
    so that its logarithm is uniform. A start takes half as long as a resize. The machines have 4
    cores and 16 GB for each GPU and a link of 10 Gb/s.

    Parameters
    ----------
    jobs, machines, gpus : int
        How many jobs and machines, and GPUs on each machine.
    mean_gap : float
        Mean time between two arrivals, seconds.
    resize_seconds : float
        Time without work when a job is resized, moved or resumed.
    seed : int
        Seed; the same seed gives the same workload.

    Examples
    --------
    >>> made = generate_elastic(jobs=5, seed=3)
    >>> len(made.workload.jobs), made.workload.site.totals("worker")
    (5, (8.0, 128.0))
    """
    for name, value in (("jobs", jobs), ("machines", machines), ("gpus", gpus)):
        if value < 1:
            raise InputError(name, "expected at least 1", value)
    if not mean_gap >= 0:
        raise InputError("mean_gap", "expected a time >= 0", mean_gap)
    # One generator in a fixed order of draws: the seed stands for the whole workload.
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(mean_gap, jobs)).round(3).tolist()
    return elastic_from_dict(
        {
            "format": FORMAT,
            "version": VERSION,
            "resources": ["gpu", "memory_gb"],
            "machines": [
                {
                    "id": "node",
                    "count": machines,
                    "capacity": {"gpu": gpus, "memory_gb": 16 * gpus},
                    "cpu_cores": 4 * gpus,
                    "link_gbps": 10.0,
                }
            ],
            "costs": {
                "start": resize_seconds / 2,
                **dict.fromkeys(("resume", "resize", "migrate"), resize_seconds),
            },
            "observation": {"interval": 30.0, "noise": 0.005, "seed": seed},
            "jobs": [_job(rng, f"j{k}", arrival, gpus) for k, arrival in enumerate(arrivals)],
        }
    )


def _job(rng: np.random.Generator, name: str, arrival: float, gpus: int) -> dict[str, Any]:
    model = MODELS[rng.integers(len(MODELS))]
    # No more workers than were measured, nor than one machine has GPUs.
    most = min(int(rng.integers(2, len(model.throughput) + 1)), max(1, gpus))
    # Log-uniform, as durations on clusters spread over orders of magnitude.
    work = float(np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST))))
    pace = float(rng.uniform(2.0, 6.0))
    return {
        "id": f"{name}-{model.name}",
        "arrival": arrival,
        "work": round(work, 3),
        "workers": {"min": 1, "initial": int(rng.integers(1, most + 1)), "max": most},
        "parameter_servers": 1,
        "worker": {"gpu": 1, "memory_gb": 8},
        "ps": {"memory_gb": 4},
        "worker_cpu": 3.0,
        "ps_cpu": 1.0,
        "gradient_mb": model.gradient_mb,
        "step_seconds": round(BATCH / model.throughput[0], 4),
        "speedup": [round(rate / model.throughput[0], 4) for rate in model.throughput],
        "curve": [
            [share, round(float(np.exp(-pace * share)), 4)] for share in (0, 0.1, 0.25, 0.5, 1)
        ],
    }
