"""Linear regression on a parameter server, by stochastic gradient descent, as pods run it.

``python -m tests.kubernetes.trainings.regression``; the environment says who is who (OASIS_TASK,
OASIS_INDEX, OASIS_HOSTS, OASIS_PS_HOSTS, OASIS_PORT), where the checkpoint is (CHECKPOINT), how
many STEPS there are, how many worker-seconds of WORK that is, how many seconds a part of a step
takes (PAUSE), which file a worker makes when it trains (READY), and how fast it learns (RATE).

The minibatch of a step is cut into parts. The server hands them out with its weights, and moves on
when it has the gradients of all of them: its weights do not depend on who computed what, so that a
test can tell whether a step was lost, or done twice, when the pods of a job were started again.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np

from deploy.reporter import report

SIZE, PARTS, ROWS = 16, 4, 8
RATE = float(os.environ.get("RATE", "0.05"))
SAVED, REPORTED = 10, 5  # every so many steps
SEED = 7
KEY = b"regression"

Array = np.ndarray[Any, np.dtype[np.float64]]


def truth() -> Array:
    return np.random.default_rng(SEED).normal(size=SIZE)


def data(step: int, part: int) -> tuple[Array, Array]:
    """Features and targets of a part of the minibatch of a step."""
    rng = np.random.default_rng((SEED, step, part))
    features = rng.normal(size=(ROWS, SIZE))
    return features, features @ truth() + 0.1 * rng.normal(size=ROWS)


class ParameterServer:
    """Weights, and how many steps they have seen; `file` remembers both."""

    def __init__(self, file: Path, steps: int) -> None:
        self.file, self.steps = file, steps
        found = np.load(file) if file.exists() else {"weights": np.zeros(SIZE), "step": 0}
        self.weights, self.step = np.array(found["weights"]), int(found["step"])
        self.open: list[int] = []  # parts that nobody computes
        self.gradients: dict[int, Array] = {}
        self.changed = threading.Condition()
        self.cut()

    def cut(self) -> None:
        """Begin a step, if there is one."""
        self.open = list(range(PARTS)) if self.step < self.steps else []
        self.gradients.clear()

    def save(self) -> None:
        with self.changed:
            written = self.file.with_suffix(".new.npz")
            np.savez(written, weights=self.weights, step=self.step)
            written.replace(self.file)

    def serve(self, worker: Connection) -> None:
        part = None
        try:
            while True:
                with self.changed:
                    self.changed.wait_for(lambda: self.open or self.step >= self.steps)
                    part = self.open.pop(0) if self.open else None
                    task = (self.step, part, self.weights)
                worker.send(task)
                gradient = worker.recv()
                with self.changed:
                    self.take(part, gradient)
        except (EOFError, OSError):  # it went: somebody else computes its part
            with self.changed:
                if part is not None:
                    self.open.append(part)
                    self.changed.notify_all()

    def take(self, part: int, gradient: Array) -> None:
        """A gradient came; after the last one of a step, move on."""
        self.gradients[part] = gradient
        if len(self.gradients) < PARTS:
            return
        mean = sum(self.gradients[k] for k in range(PARTS)) / PARTS
        self.weights, self.step = self.weights - RATE * mean, self.step + 1
        if self.step % SAVED == 0 or self.step == self.steps:
            self.save()
        self.cut()
        self.changed.notify_all()


def serve(host: str, port: int, file: Path, steps: int) -> None:
    server = ParameterServer(file, steps)

    def leave(*_: object) -> None:
        server.save()
        print(f"saved step {server.step}", flush=True)
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)
    workers = len(os.environ["OASIS_HOSTS"].split(","))
    print(f"serving {workers} workers from step {server.step}", flush=True)
    with Listener((host, port), authkey=KEY, backlog=PARTS) as listener:
        while True:
            worker = listener.accept()
            threading.Thread(target=server.serve, args=(worker,), daemon=True).start()


def connected(host: str, port: int) -> Connection:
    while True:
        try:
            return Client((host, port), authkey=KEY)
        except (OSError, EOFError):
            time.sleep(0.1)


def compute(server: Connection, pause: float, told: Callable[[int, float], None]) -> None:
    """Compute parts of steps until there are none; `told` hears of each its step and its loss."""
    while True:
        step, part, weights = server.recv()
        if part is None:
            return
        features, targets = data(step, part)
        error = features @ weights - targets
        time.sleep(pause)
        server.send(2 * features.T @ error / ROWS)
        told(step, float(np.mean(error**2)))


def work(index: int, host: str, port: int, steps: int) -> None:
    """Run as a worker; the first one also reports."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    seconds = float(os.environ["WORK"]) / steps  # of work in a step
    last = -REPORTED

    def told(step: int, loss: float | None = None) -> None:
        nonlocal last
        Path(os.environ["READY"]).touch()
        if index == 0 and (step >= last + REPORTED or step == steps):
            report(seconds * step, loss)
            last = step

    while True:
        try:
            with connected(host, port) as server:
                compute(server, float(os.environ["PAUSE"]), told)
        except (EOFError, OSError):
            continue  # the server went, and may come again
        break
    told(steps)
    print(f"worker {index} is done after step {steps}", flush=True)


def main() -> None:
    task, index = os.environ["OASIS_TASK"], int(os.environ["OASIS_INDEX"])
    host, port = os.environ["OASIS_PS_HOSTS"], int(os.environ["OASIS_PORT"])
    steps = int(os.environ["STEPS"])
    if task == "ps":
        serve(host, port, Path(os.environ["CHECKPOINT"]), steps)
    else:
        work(index, host, port, steps)


if __name__ == "__main__":
    main()
