"""A second process beside a solve: its start, its end, and the messages between the two."""

from __future__ import annotations

import json
import logging
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
from oasis.solvers import SolveProgress, Status
from offline.params import Params
from offline.state import Phase, SolveState

Message = Mapping[str, Any]
KINDS = ("schedules", "bound", "cuts", "plan", "status", "error", "ended")


class Partner:
    """The other process, as either of the two sees it: what it says and what it is told."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self.inbox: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.is_over = False  # it is not heard any more
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

    def listen(self) -> None:
        """Pass on what has come since the last call."""
        while not (self.is_over or self.inbox.empty()):
            self.pass_on(_message(self.inbox.get()))

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


def _message(text: str) -> Message:
    """Parse a line; an error message if it does not follow the protocol."""
    try:
        message = json.loads(text)
    except ValueError:
        message = None
    is_known = isinstance(message, dict) and next(iter(message), None) in KINDS
    return message if is_known else {"error": f"expected a message, got {text!r}"}


def plain(schedules: Mapping[str, Schedule]) -> list[dict[str, Any]]:
    """Schedules as `oasis.model.schedule.schedules_by_job` reads them."""
    return [schedule.to_dict() for schedule in schedules.values()]


class StateExchange:
    """Schedules and bounds that two processes tell each other; each begins with the same."""

    def __init__(
        self,
        partner: Partner,
        instance: Instance,
        state: SolveState,
        known: tuple[Mapping[str, Schedule], float],
        by: str,
        least: float,
    ) -> None:
        self.partner, self.instance, self.state, self._by = partner, instance, state, by
        self._least = least  # relative: a bound that is lower by less than this is not told
        self._told, self._told_bound = known
        partner.on("schedules", self._take_schedules)
        partner.on("bound", self._take_bound)

    def report(self, _: SolveProgress | None = None) -> None:
        """Tell of a lower bound, and of better schedules."""
        state = self.state
        if state.bound < self._told_bound * (1 - self._least):
            self._told_bound = state.bound
            self.partner.tell({"bound": state.bound})
        # Identity, not value: schedules are replaced as a whole, and comparing them takes long.
        if state.schedules is not self._told:
            self._told = state.schedules
            self.partner.tell({"schedules": plain(self._told), "by": state.found_by})

    def _take_schedules(self, message: Message) -> None:
        state, schedules = self.state, schedules_by_job(message["schedules"])
        try:
            value = verify(self.instance, schedules)
        except VerificationError as error:
            raise SolverError(f"the second process found infeasible schedules: {error}") from error
        if value > (state.incumbent or 0.0):
            self._told = schedules  # the other process has them
            state.found(value, schedules, message.get("by", self._by))

    def _take_bound(self, message: Message) -> None:
        self._told_bound = min(self._told_bound, message["bound"])  # it knows
        self.state.proved(message["bound"], self._by)


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
        self._outbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.partner = Partner(self._send)
        known = state.schedules, state.bound
        self._exchange = StateExchange(
            self.partner, instance, state, known, task.phase, TOLD_BEFORE
        )
        for take in (self._take_status, self._take_error, self._take_ended):
            self.partner.on(take.__name__.removeprefix("_take_"), take)
        self._threads: list[threading.Thread] = []

    @property
    def is_working(self) -> bool:
        """Whether its process still runs."""
        return self.process is not None and not self.partner.is_over

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
        if not self.is_working:
            return
        self.partner.listen()
        if self.state.is_proven:
            self.state.budget.stopping.end(Status.OPTIMAL)
        else:
            self._exchange.report()

    def close(self) -> None:
        """End the process, if there is one; afterwards there is none."""
        self.partner.is_over = True
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
        for work in (self._write, self._read):
            thread = threading.Thread(
                target=work, args=(process,), name=self.task.name, daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _problem(self) -> str:
        """The first line that the process reads."""
        budget, task = self.state.budget, self.task
        # not `budget.left`, which calls `listen`, and that is what this is called by
        seconds = None if budget.limit is None else max(0.0, budget.limit - budget.elapsed)
        problem = {
            "task": task.name,
            "instance": instance_to_dict(replace(self.instance, metadata={})),
            "schedules": plain(self.state.schedules),
            "params": task.params.to_dict(),
            "seed": task.seed,
            "bound": self.state.bound,
            "seconds": seconds,
            "prices": None if task.prices is None else [table.tolist() for table in task.prices],
        }
        return line(problem)

    def _send(self, text: str) -> None:
        """Write a line to the process, unless the process has ended."""
        if self.is_working:
            self._outbox.put(text)

    def _write(self, process: subprocess.Popen[str]) -> None:
        """Write each line to the process until there are no more, in a thread."""
        assert process.stdin is not None
        # it may end before it has read everything; its exit code will be told
        with suppress(BrokenPipeError):
            for text in iter(self._outbox.get, None):
                process.stdin.write(text)
                process.stdin.flush()

    def _read(self, process: subprocess.Popen[str]) -> None:
        """Keep each message until the process ends, in a thread."""
        assert process.stdout is not None
        for text in process.stdout:
            if text.endswith("\n"):  # else it was killed in the middle of a message
                self.partner.inbox.put(text)
        self.partner.inbox.put(line({"ended": True}))

    def _take_status(self, message: Message) -> None:
        LOGGER.info("the process ended its task, %s: %s", self.task.name, message["status"])
        self.partner.is_over = True

    def _take_error(self, message: Message) -> None:
        self._fail(message["error"])

    def _take_ended(self, _: Message) -> None:
        assert self.process is not None
        self._fail(f"its process ended with {self.process.wait(EXIT_SECONDS)}")

    def _fail(self, reason: str) -> None:
        """Report that the helper process failed; the solve continues without it."""
        self.partner.is_over = True
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


def has_second_core() -> bool:
    """Return whether a second process probably gets its own core."""
    # One that another process started with `multiprocessing`, such as a worker of a sweep, shares
    # the cores with its siblings. A program that contains the interpreter cannot start another.
    affinity = getattr(os, "sched_getaffinity", None)
    cores = os.cpu_count() or 1 if affinity is None else len(affinity(0))
    return cores > 1 and multiprocessing.parent_process() is None and bool(sys.executable)
