"""The second process of a solve (`offline.processes`).

It reads its task from its standard input, then what the first process learns, and writes what it
learns itself to its standard output. It ends when its input does, however the process that started
it ended.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import IO, Any

import numpy as np

from oasis.model.errors import OasisError
from oasis.model.instance_file import instance_from_dict
from oasis.solvers.budget import Budget, OutOfTimeError
from offline.benders.solve import Benders
from offline.column_generation.solve import Configuration
from offline.problem import Method, OfflineProblem
from offline.processes import Message, Partner, ProcessTask, StateExchange, write
from offline.state import OnlinePrices, SolveState, WarmStart

OTHERS = "another process"  # found what this one was told of

TASKS: Mapping[str, type[Method[Any]]] = {
    "heuristics": Configuration,
    "schedule search": Benders,
}


class Child:
    """The second process's work on one task; it sends messages with what it finds."""

    def __init__(self, task: ProcessTask, send: Callable[[Message], None]) -> None:
        prices = None if task.prices is None else OnlinePrices(*task.prices, task.schedules)
        self.start, self.bound = WarmStart(task.schedules, prices), task.bound
        self.method, self.seed = TASKS[task.name](task.params), task.seed
        self.partner = Partner(send)
        self.state = SolveState(instance_from_dict(task.instance), Budget(task.seconds))
        known = task.schedules, task.bound
        exchange = StateExchange(self.partner, self.state, known, OTHERS)
        self.report = self.state.on_progress = exchange.report
        self.state.budget.stopping.listen = self.partner.listen

    def run(self) -> None:
        """Work on the task; send the status or the error as the last message."""
        try:
            self.state.record_solution(self.start.schedules, self.start.source)
            self.state.record_bound(self.bound, OTHERS)
            problem = OfflineProblem(self.start, self.state)
            rng = np.random.default_rng(self.seed)
            status = self.method.assist(problem, self.state.budget, rng, self.partner)
        except OutOfTimeError:
            status = self.state.budget.status
        except OasisError as error:
            self.report()  # schedules that refute a bound are what it is about
            self.partner.tell("error", f"{type(error).__name__}: {error}")
            return
        self.report()
        self.partner.tell("status", str(status))


def _hear(partner: Partner, source: IO[bytes]) -> None:
    """Read messages until the other end of the pipe is closed, then end this process."""
    partner.hear(source)
    os._exit(0)


def main() -> None:
    """Read a task from standard input, and work on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it decides
    # What solvers print goes elsewhere: messages are alone in their pipe.
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    child = Child(pickle.load(sys.stdin.buffer), partial(write, sink=sink))
    arguments = (child.partner, sys.stdin.buffer)
    threading.Thread(target=_hear, args=arguments, name="input", daemon=True).start()
    with suppress(BrokenPipeError):  # the reader has ended
        child.run()
    os._exit(0)
