"""A second process beside a solve: its start, its end, and the messages between the two."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from oasis.certify.verify import verify
from oasis.model.errors import InstanceError, SolverError, VerificationError
from oasis.model.instance import Instance
from oasis.model.instance_file import instance_to_dict
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.solvers import Status
from offline.params import Params
from offline.state import Phase, SolveState

Message = Mapping[str, Any]
KINDS = ("schedules", "bound", "cuts", "plan", "status", "error")


class Partner:
    """The other process, as either of the two sees it."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._takers: dict[str, Callable[[Message], None]] = {}
        self._waiting: dict[str, list[Message]] = {}

    def tell(self, message: Message) -> None:
        """Send a message."""
        self._send(line(message))

    def on(self, kind: str, take: Callable[[Message], None]) -> None:
        """Let `take` have all messages of a kind, those first that have come before."""
        self._takers[kind] = take
        for message in self._waiting.pop(kind, ()):
            take(message)

    def pass_on(self, message: Message) -> None:
        """Give a message to the receiver of its kind, now or when it registers."""
        kind = next(iter(message), "")
        if kind in self._takers:
            self._takers[kind](message)
        else:
            # The other process may speak before the searches here exist.
            self._waiting.setdefault(kind, []).append(message)


def line(message: Message) -> str:
    """Encode a message for the pipe."""
    return json.dumps(message) + "\n"


def plain(schedules: Mapping[str, Schedule]) -> list[dict[str, Any]]:
    """Schedules as `oasis.model.schedule.schedules_by_job` reads them."""
    return [schedule.to_dict() for schedule in schedules.values()]


LOGGER = logging.getLogger(__name__)

CHILD = "from offline.tasks import main; main()"
EXIT_SECONDS = 5.0  # for a process that was killed to be gone
TOLD_BEFORE = 1e-5  # relative: a bound that is lower by less than this is not sent


@dataclass(frozen=True, slots=True)
class ProcessTask:
    """The task of a helper process."""

    name: str
    phase: Phase
    params: Params
    seed: int
    prices: tuple[FloatArray, FloatArray] | None = None

    @property
    def failure(self) -> str:
        """The name under which a result says why the process failed, if it did."""
        return f"{self.name.replace(' ', '_')}_failed"


class Helper:
    """Works on a task in a process of its own; a context manager."""

    def __init__(self, instance: Instance, state: SolveState, task: ProcessTask) -> None:
        self.instance, self.state, self.task = instance, state, task
        self.process: subprocess.Popen[str] | None = None
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.partner = Partner(self._send)
        takers = {
            "schedules": self._take_schedules,
            "bound": self._take_bound,
            "status": self._take_status,
            "error": self._take_error,
            "ended": self._take_end,
        }
        for kind, take in takers.items():
            self.partner.on(kind, take)
        self._threads: list[threading.Thread] = []
        self._told: Mapping[str, Schedule] = {}
        self._told_bound = math.inf
        self._is_over = False

    @property
    def is_working(self) -> bool:
        """Whether its process still runs."""
        return self.process is not None and not self._is_over

    def __enter__(self) -> Helper:
        self.state.budget.stopping.listen = self.listen
        if not self.state.is_proven:
            self._start()
        return self

    def __exit__(self, *error: object) -> None:
        self.state.budget.stopping.listen = None
        self.close()

    def listen(self) -> None:
        """Read what the process has sent since the last call, and send it what is new here."""
        if self._is_over or self.process is None:
            return
        while not (self._is_over or self._messages.empty()):
            self.partner.pass_on(self._messages.get())
        if self.state.is_proven:
            self.state.budget.stopping.end(Status.OPTIMAL)
            return
        # Identity, not value: schedules are replaced as a whole, and comparing them takes long.
        if self.state.schedules is not self._told:
            self._told = self.state.schedules
            self.partner.tell({"schedules": plain(self._told)})
        if self.state.bound < self._told_bound * (1 - TOLD_BEFORE):
            self._told_bound = self.state.bound
            self.partner.tell({"bound": self._told_bound})

    def close(self) -> None:
        """End the process, if there is one; afterwards there is none."""
        self._is_over = True
        process = self.process
        if process is None:
            return
        # It has nothing to save: what it found was sent at once.
        process.kill()
        process.wait(EXIT_SECONDS)
        self._outbox.put(None)
        for thread in self._threads:
            thread.join(EXIT_SECONDS)
        for pipe in (process.stdin, process.stdout):
            # closing writes what is still in the buffer, which has no reader any more
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()

    def _start(self) -> None:
        try:
            problem = self._problem()
            process = self.process = _started()
        except (InstanceError, OSError) as error:  # no file can hold a utility; no memory
            self._fail(str(error))
            return
        LOGGER.info("a process joins, task: %s, process %d", self.task.name, process.pid)
        self.state.notes["processes"] = 2
        self._outbox.put(problem)
        for work, other in ((_tell, self._outbox), (_hear, self._messages)):
            given = process, other
            thread = threading.Thread(target=work, args=given, name=self.task.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _problem(self) -> str:
        """The first line that the process reads."""
        self._told, self._told_bound = self.state.schedules, self.state.bound
        budget, task = self.state.budget, self.task
        # not `budget.left`, which calls `listen`, and that is what this is called by
        left = None if budget.limit is None else max(0.0, budget.limit - budget.elapsed)
        problem = {
            "task": task.name,
            "instance": instance_to_dict(replace(self.instance, metadata={})),
            "schedules": plain(self._told),
            "params": task.params.to_dict(),
            "seed": task.seed,
            "bound": self._told_bound,
            "seconds": left,
            "prices": None if task.prices is None else [table.tolist() for table in task.prices],
        }
        return line(problem)

    def _send(self, text: str) -> None:
        """Write a line to the process, unless the process has ended."""
        if self.is_working:
            self._outbox.put(text)

    def _take_schedules(self, message: Message) -> None:
        state = self.state
        found = schedules_by_job(message["schedules"])
        try:
            state.found(verify(self.instance, found), found, message.get("by", self.task.phase))
        except VerificationError as error:
            raise SolverError(f"the second process found infeasible schedules: {error}") from error
        if state.schedules is found:
            self._told = found  # it knows

    def _take_bound(self, message: Message) -> None:
        self._told_bound = min(self._told_bound, message["bound"])  # it knows
        self.state.proved(message["bound"], self.task.phase)

    def _take_status(self, message: Message) -> None:
        LOGGER.info("the process ended its task, %s: %s", self.task.name, message["status"])
        self._is_over = True

    def _take_error(self, message: Message) -> None:
        self._fail(message["error"])

    def _take_end(self, _: Message) -> None:
        assert self.process is not None
        self._fail(f"its process ended with {self.process.wait(EXIT_SECONDS)}")

    def _fail(self, reason: str) -> None:
        """Report that the helper process failed; the solve continues without it."""
        self._is_over = True
        self.state.notes[self.task.failure] = reason
        LOGGER.warning(
            "the solve goes on without its second process, %s: %s", self.task.name, reason
        )


def _started() -> subprocess.Popen[str]:
    """Start the process: it imports from where this one does, and does not hear of Ctrl-C."""
    places = [os.path.abspath(place) for place in sys.path]
    return subprocess.Popen(
        # -P: a file in the working directory must not take the place of a module.
        [sys.executable, "-P", "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        start_new_session=True,
    )


def _tell(process: subprocess.Popen[str], outbox: queue.SimpleQueue[str | None]) -> None:
    """Write each line to the process until there are no more, in a thread."""
    assert process.stdin is not None
    try:
        for text in iter(outbox.get, None):
            process.stdin.write(text)
            process.stdin.flush()
    except BrokenPipeError:  # it ended before it had read everything; its exit code will be told
        pass


def _hear(process: subprocess.Popen[str], messages: queue.SimpleQueue[Message]) -> None:
    """Pass on each message until the process ends, in a thread."""
    assert process.stdout is not None
    for text in process.stdout:
        if not text.endswith("\n"):  # it was killed in the middle of a message
            break
        messages.put(_message(text))
    messages.put({"ended": True})


def _message(text: str) -> Message:
    """Parse a line; an error message if it does not follow the protocol."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    is_known = isinstance(found, dict) and next(iter(found), None) in KINDS
    return found if is_known else {"error": f"expected a message, got {text!r}"}


def has_second_core() -> bool:
    """Return whether a second process probably gets its own core."""
    # One that another process started with `multiprocessing`, such as a worker of a sweep, shares
    # the cores with its siblings. A program that contains the interpreter cannot start another.
    affinity = getattr(os, "sched_getaffinity", None)
    cores = os.cpu_count() or 1 if affinity is None else len(affinity(0))
    return cores > 1 and multiprocessing.parent_process() is None and bool(sys.executable)
