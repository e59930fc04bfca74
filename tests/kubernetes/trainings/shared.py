"""Shared parts of the trainings: steps, a checkpoint, readiness, reports.

They train what `regression` trains, on the same minibatches, so that all of them end with the same
weights. The environment is that of `regression`, and what the framework itself reads.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from deploy.reporter import report
from tests.kubernetes.trainings.regression import PARTS, SIZE, data

SAVED = 5  # every so many steps
STEPS, PAUSE = int(os.environ["STEPS"]), float(os.environ["PAUSE"])
FILE = Path(os.environ["CHECKPOINT"])

Array = np.ndarray[Any, np.dtype[np.float64]]


def begin() -> tuple[Array, int]:
    """Weights and step of the last checkpoint. From now on SIGTERM ends the process at once."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    if not FILE.exists():
        return np.zeros(SIZE), 0
    with np.load(FILE) as found:
        return found["weights"], int(found["step"])


def minibatch(step: int, rank: int, world: int) -> tuple[Array, Array]:
    """The part of one of `world` processes; it takes as long as in `regression`."""
    parts = [data(step, part) for part in range(PARTS) if part % world == rank]
    time.sleep(PAUSE * len(parts))
    features, targets = zip(*parts, strict=True) if parts else ([np.empty((0, SIZE))], [[]])
    return np.concatenate(features), np.concatenate(targets)


def ready() -> None:
    Path(os.environ["READY"]).touch()


def serve(target: str) -> None:
    """Serve until the process is ended; a server's own `join` would not let Python hear SIGTERM."""
    ready()
    print("serving", target, flush=True)
    while True:
        signal.pause()


def note(weights: Array, step: int, loss: float) -> None:
    """Let the first process write a checkpoint and a report after this many steps."""
    if step % SAVED and step != STEPS:
        return
    written = FILE.with_suffix(".new.npz")
    np.savez(written, weights=weights, step=step)
    written.replace(FILE)
    report(float(os.environ["WORK"]) * step / STEPS, loss)
