"""A training process as a pod would run it: linear regression by gradient descent with NumPy.

It reads what it was given from the annotations of its pod, trains, and writes after each epoch how
many worker-seconds of its job are done.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from kubernetes import client, config

from oasis.kubernetes.names import NODE, PLAN, PROGRESS

EPOCHS = 10


def main(kubeconfig: str, namespace: str, pod: str, worker_seconds: float) -> None:
    """Train for `EPOCHS` epochs, which together are `worker_seconds` of work."""
    given = json.loads(Path(kubeconfig).read_text())
    api = client.CoreV1Api(config.new_client_from_config_dict(given))
    notes = api.read_namespaced_pod(pod, namespace).metadata.annotations
    print(f"placed on {notes[NODE]} by plan {notes[PLAN]}", flush=True)  # noqa: T201
    rng = np.random.default_rng(0)
    features = rng.normal(size=(512, 8))
    truth = rng.normal(size=8)
    targets, weights = features @ truth, np.zeros(8)
    for epoch in range(1, EPOCHS + 1):
        for rows in np.array_split(rng.permutation(512), 8):
            error = features[rows] @ weights - targets[rows]
            weights -= 0.1 * features[rows].T @ error / len(rows)
        done = {PROGRESS: f"{worker_seconds * epoch / EPOCHS:.3f}"}
        api.patch_namespaced_pod(pod, namespace, {"metadata": {"annotations": done}})
    loss = float(np.mean((features @ weights - targets) ** 2))
    print(f"loss {loss:.6f}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
