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
from collections.abc import Mapping
from typing import Any

import numpy as np

from oasis.certify.verify import verify
from oasis.model.errors import OasisError
from oasis.model.instance_file import instance_from_dict
from oasis.model.schedule import schedules_by_job
from oasis.solvers import SolveProgress
from oasis.solvers.budget import Budget, OutOfTimeError
from offline.benders.solve import Benders
from offline.column_generation.solve import Configuration
from offline.problem import Method, OfflineProblem
from offline.processes import Message, Partner, plain
from offline.state import OnlinePrices, SolveState, WarmStart, read_prices

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
        self.seed = int(problem["seed"])
        self.state = SolveState(Budget(problem.get("seconds")), self._report)
        self.state.budget.stopping.listen = self._listen
        self.news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.partner = Partner(say)
        self.partner.on("schedules", self._take_schedules)
        self.partner.on("bound", self._take_bound)
        self._bound, self._schedules = float(problem.get("bound", "inf")), self.start.schedules

    def run(self) -> None:
        """Do the work; the last message has the status, or what went wrong."""
        known = self.start.schedules
        try:
            self.state.found(verify(self.instance, known), known, self.start.source)
            self.state.proved(self._bound, OTHERS)
            problem = OfflineProblem(self.instance, self.start, self.state)
            rng = np.random.default_rng(self.seed)
            status = self.method.assist(problem, self.state.budget, rng, self.partner)
        except OutOfTimeError:
            status = self.state.budget.status
        except OasisError as error:
            self._report()  # schedules that refute a bound are what it is about
            self.partner.tell({"error": f"{type(error).__name__}: {error}"})
            return
        self._report()
        self.partner.tell({"status": str(status)})

    def _listen(self) -> None:
        """Take over what others have learnt since the last call."""
        while not self.news.empty():
            self.partner.pass_on(json.loads(self.news.get()))

    def _take_schedules(self, message: Message) -> None:
        schedules = schedules_by_job(message["schedules"])
        value = verify(self.instance, schedules)
        if value > (self.state.incumbent or 0.0):
            self._schedules = schedules  # the process that reported them has them
            self.state.found(value, schedules, OTHERS)

    def _take_bound(self, message: Message) -> None:
        self._bound = min(self._bound, message["bound"])
        self.state.proved(message["bound"], OTHERS)

    def _report(self, _: SolveProgress | None = None) -> None:
        """Write a message for a lower bound, and one for better schedules."""
        bound, schedules = self.state.bound, self.state.schedules
        if bound < self._bound * (1 - SAID_BEFORE):
            self._bound = bound
            self.partner.tell({"bound": bound})
        if schedules is not self._schedules:
            self._schedules = schedules
            self.partner.tell({"schedules": plain(schedules), "by": self.state.found_by})


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _end_with_input(news: queue.SimpleQueue[str]) -> None:
    """Keep what comes, and end the process once the program that started it has closed the pipe."""
    for text in sys.stdin:
        news.put(text)
    os._exit(0)


def main() -> None:
    """Work on the task of the first line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it decides
    child = Child(json.loads(sys.stdin.readline()))
    given = (child.news,)
    threading.Thread(target=_end_with_input, args=given, name="input", daemon=True).start()
    try:
        child.run()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has ended
        pass
    os._exit(0)
