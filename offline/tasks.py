"""The second process of a solve (`offline.processes`).

It reads its task from its standard input, one line of JSON, then what the first process learns, a
line each, and writes what it learns itself as lines of JSON to its standard output
(`offline.processes`). It ends when its input does, however the process that started it
ended.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oasis.certify.verify import verify
from oasis.model.errors import OasisError
from oasis.model.groups import GROUPS
from oasis.model.instance import Instance
from oasis.model.instance_file import instance_from_dict
from oasis.model.rounding import FloatArray
from oasis.model.schedule import schedules_by_job
from oasis.solvers.budget import Budget, OutOfTimeError
from offline.benders.solve import Benders
from offline.column_generation.solve import Configuration
from offline.problem import Method, OfflineProblem
from offline.processes import Partner, StateExchange
from offline.state import OnlinePrices, SolveState, WarmStart

OTHERS = "another process"  # found what this one was told of
SAID_BEFORE = 1e-9  # relative: a bound that is lower by less than this is not sent

TASKS: Mapping[str, type[Method[Any]]] = {
    "heuristics": Configuration,
    "schedule search": Benders,
}


class Child:
    """Works on one task, and writes a message whenever it learns something."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.instance = instance_from_dict(problem["instance"])
        schedules, prices = schedules_by_job(problem["schedules"]), None
        if problem.get("prices") is not None:
            prices = OnlinePrices(*read_prices(problem["prices"], self.instance), schedules)
        self.start = WarmStart(schedules, prices)
        self.method = TASKS[problem["task"]](problem["params"])
        self.seed, self.bound = int(problem["seed"]), float(problem.get("bound", "inf"))
        self.state, self.partner = SolveState(Budget(problem.get("seconds"))), Partner(say)
        known = schedules, self.bound
        exchange = StateExchange(
            self.partner, self.instance, self.state, known, OTHERS, SAID_BEFORE
        )
        self.report = self.state.on_progress = exchange.report
        self.state.budget.stopping.listen = self.partner.listen

    def run(self) -> None:
        """Do the work; the last message has the status, or what went wrong."""
        known = self.start.schedules
        try:
            self.state.found(verify(self.instance, known), known, self.start.source)
            self.state.proved(self.bound, OTHERS)
            problem = OfflineProblem(self.instance, self.start, self.state)
            rng = np.random.default_rng(self.seed)
            status = self.method.assist(problem, self.state.budget, rng, self.partner)
        except OutOfTimeError:
            status = self.state.budget.status
        except OasisError as error:
            self.report()  # schedules that refute a bound are what it is about
            self.partner.tell({"error": f"{type(error).__name__}: {error}"})
            return
        self.report()
        self.partner.tell({"status": str(status)})


def read_prices(arrays: Sequence[Any], instance: Instance) -> tuple[FloatArray, FloatArray]:
    """Prices (T, H, R) and (T, K, R) from their lists, which tell no R where a group is empty."""
    shapes = (group.capacity(instance.cluster).shape for group in GROUPS)
    worker, ps = (
        np.array(rows, dtype=np.float64).reshape(instance.horizon, *shape)
        for rows, shape in zip(arrays, shapes, strict=True)
    )
    return worker, ps


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _end_with_input(inbox: queue.SimpleQueue[str]) -> None:
    """Keep what comes, and end the process once the program that started it has closed the pipe."""
    for text in sys.stdin:
        inbox.put(text)
    os._exit(0)


def main() -> None:
    """Work on the task of the first line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it decides
    child = Child(json.loads(sys.stdin.readline()))
    arguments = (child.partner.inbox,)
    threading.Thread(target=_end_with_input, args=arguments, name="input", daemon=True).start()
    try:
        child.run()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has ended
        pass
    os._exit(0)
