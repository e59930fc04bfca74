"""The testbed and the training jobs of the KOD2 paper, as elastic workloads.

Published: three nodes of 10 cores and 32 GB, ten jobs, one every 30 s, one parameter server each,
four models, CIFAR-10 with 60,000 images, batch sizes 8 to 128, workers whose demands differ.
Everything else is ours: the demands, how long an image takes, the sizes of the gradients, and how
long the operator lets a job wait that holds pods but never got all of them. Calibrated on the 84 %
of Fig. 7(b): that all of the time on the network is felt, of 1, 1/2 and 1/3 what comes nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oasis.simulator import ElasticWorkload, elastic_from_dict

NODES, CORES, MEMORY = 3, 10, 32.0
JOBS, GAP = 10, 30.0
BATCHES = (8, 16, 32, 64, 128)
IMAGES = 60_000
EPOCHS = 4
LINK_GBPS = 1.0
EXPOSED = 1.0  # share of the time on the network that asynchronous training does not hide
STEP = 0.02  # seconds of a step beside its images
RESIZE = 5.0  # seconds for which a job stands still while a worker joins or leaves
PATIENCE = 3600.0  # the operator ran on for "about 30 minutes to over an hour"


@dataclass(frozen=True, slots=True)
class Network:
    """A model: seconds for an image, and the size of its gradients in MB."""

    image: float
    gradient_mb: float


# Parameters of 4 bytes: 0.3, 15, 23.5 and 6.8 million of them in the versions for CIFAR-10.
NETWORKS: Mapping[str, Network] = {
    "CNN-rand": Network(0.001, 1.2),
    "VGG-16": Network(0.003, 60.0),
    "ResNet-50": Network(0.005, 94.0),
    "ResNeXt-110": Network(0.008, 27.0),
}


def ten_jobs(
    model: str, batch: int, seed: int, *, rigid: bool = False, exposed: float = EXPOSED
) -> ElasticWorkload:
    """Ten jobs that train one model, one every 30 seconds.

    Parameters
    ----------
    model : str
        One of `NETWORKS`.
    batch : int
        Images in a step of one worker.
    seed : int
        Of the workers and of what they ask for, the same for all models and batch sizes.
    rigid : bool
        Whether each job works with exactly the workers that it asks for, as under the operator.
    exposed : float
        Share of the time on the network that is felt.

    Examples
    --------
    >>> made = ten_jobs("VGG-16", 64, 0)
    >>> len(made.workload.jobs), made.workload.jobs[9].arrival
    (10, 270.0)
    """
    rng = np.random.default_rng([7, seed])
    jobs = [_job(k, NETWORKS[model], batch, rng) for k in range(JOBS)]
    if rigid:
        jobs = [job | {"workers": job["workers"]["initial"]} for job in jobs]
    return elastic_from_dict(
        {
            "format": "oasis-elastic-workload",
            "version": 1,
            "resources": ["cpu", "memory_gb"],
            "machines": [
                {
                    "id": "node",
                    "count": NODES,
                    "capacity": {"cpu": CORES, "memory_gb": MEMORY},
                    "link_gbps": LINK_GBPS / exposed,
                }
            ],
            "costs": dict.fromkeys(("resize", "resume", "migrate"), RESIZE),
            "jobs": jobs,
        }
    )


def _job(k: int, network: Network, batch: int, rng: np.random.Generator) -> dict[str, Any]:
    step = STEP + batch * network.image
    least = int(rng.integers(1, 3))
    asked = least + int(rng.integers(1, 5))
    most = asked + int(rng.integers(0, 3))
    cores, memory = int(rng.integers(1, 4)), int(rng.integers(2, 7))
    return {
        "id": f"job{k + 1}",
        "arrival": GAP * k,
        "work": EPOCHS * IMAGES / batch * step,
        "workers": {"min": least, "initial": asked, "max": most},
        "parameter_servers": 1,
        "worker": {"cpu": cores, "memory_gb": memory},
        "ps": {"cpu": 1, "memory_gb": 2},
        "gradient_mb": network.gradient_mb,
        "step_seconds": step,
    }
