"""A training process as a pod would run it: linear regression by gradient descent with NumPy.

It reads what it was given from the annotations of its pod, trains, and reports after each epoch how
many worker-seconds of its job are done, and its loss.
"""

from __future__ import annotations

import sys

import numpy as np

from oasis.kubernetes.api.connection import Connection
from oasis.kubernetes.api.resources import PODS, Objects
from oasis.kubernetes.names import LOSS, NODE, PLAN, PROGRESS

EPOCHS = 10


def main(kubeconfig: str, namespace: str, pod: str, worker_seconds: float) -> None:
    """Train for `EPOCHS` epochs, which together are `worker_seconds` of work."""
    objects = Objects(Connection.open(kubeconfig))
    found = objects.get(PODS, pod, namespace)
    assert found is not None
    notes = found["metadata"]["annotations"]
    print(f"placed on {notes[NODE]} by plan {notes[PLAN]}", flush=True)  # noqa: T201
    rng = np.random.default_rng(0)
    features = rng.normal(size=(512, 8))
    truth = rng.normal(size=8)
    targets, weights, loss = features @ truth, np.zeros(8), 0.0
    for epoch in range(1, EPOCHS + 1):
        for rows in np.array_split(rng.permutation(512), 8):
            error = features[rows] @ weights - targets[rows]
            weights -= 0.1 * features[rows].T @ error / len(rows)
        loss = float(np.mean((features @ weights - targets) ** 2))
        told = {PROGRESS: repr(worker_seconds * epoch / EPOCHS), LOSS: repr(loss)}
        meta = {"namespace": namespace, "name": pod, "annotations": told}
        objects.merge_patch(PODS, {"metadata": meta})
    print(f"loss {loss:.6f}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
