"""The process that solves the compact model beside the decomposition (`offline.both.helper`).

It reads the problem from its standard input, one line of JSON, then better schedules that others
have found, a line each, and writes what it learns as lines of JSON to its standard output. It ends
when its input does, however the process that started it ended.
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

from oasis.certify.verify import verify
from oasis.model.errors import OasisError
from oasis.model.instance_file import instance_from_dict
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.solvers import SolveProgress
from oasis.solvers.budget import Budget
from offline.model.milp import MILP
from offline.model.params import CompactParams
from offline.state import SolveState
from offline.warm_start import WarmStart

OTHERS = "another process"  # found what this one was told of
SAID_BEFORE = 1e-9  # relative: a bound that is lower by less than this is not sent


class Child:
    """Solves one problem, and writes a message whenever it learns something.

    Parameters
    ----------
    problem : mapping
        Its "instance", and the "schedules", "params" and "seed" to start with, as plain data.
    """

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.instance = instance_from_dict(problem["instance"])
        self.start = WarmStart(schedules_by_job(problem["schedules"]))
        self.params = CompactParams.from_dict(problem["params"])
        self.seed = int(problem["seed"])
        self.state = SolveState(Budget(), self._report)
        self.state.budget.stopping.listen = self._listen
        self.news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._bound, self._schedules = float("inf"), self.start.schedules

    def run(self) -> None:
        """Solve the compact model; the last message has the status, or what went wrong."""
        known = self.start.schedules
        try:
            self.state.found(verify(self.instance, known), known, self.start.source)
            status = MILP.run(self.instance, self.start, self.state, self.params, self.seed)
        except OasisError as error:
            say({"error": f"{type(error).__name__}: {error}"})
            return
        self._report()
        say({"status": str(status)})

    def _listen(self) -> None:
        """Take up the schedules that others have found since the last call."""
        while not self.news.empty():
            schedules = schedules_by_job(json.loads(self.news.get())["schedules"])
            value = verify(self.instance, schedules)
            if value > (self.state.incumbent or 0.0):
                self._schedules = schedules  # who has told of them knows them
                self.state.found(value, schedules, OTHERS)

    def _report(self, _: SolveProgress | None = None) -> None:
        """Write a message for a lower bound, and one for better schedules."""
        bound, schedules = self.state.bound, self.state.schedules
        if bound < self._bound * (1 - SAID_BEFORE):
            self._bound = bound
            say({"bound": bound})
        if schedules is not self._schedules:
            self._schedules = schedules
            say({"schedules": plain(schedules)})


def plain(schedules: Mapping[str, Schedule]) -> list[dict[str, Any]]:
    """Schedules as `schedules_by_job` reads them."""
    return [schedule.to_dict() for schedule in schedules.values()]


def say(message: Mapping[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _end_with_input(news: queue.SimpleQueue[str]) -> None:
    """Keep what comes, and end the process once the program that started it has closed the pipe.

    HiGHS is not asked to stop, because it does not look for that in every part of a solve.
    """
    for line in sys.stdin:
        news.put(line)
    os._exit(0)


def main() -> None:
    """Solve the problem of the first line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it decides
    child = Child(json.loads(sys.stdin.readline()))
    given = (child.news,)
    threading.Thread(target=_end_with_input, args=given, name="input", daemon=True).start()
    try:
        child.run()
        sys.stdout.flush()
    except BrokenPipeError:  # nobody listens any more
        pass
    os._exit(0)
