"""A second process for a solve: its start, its end, and the messages between the two.

A message is its kind and what it tells, pickled: both ends run the same code.
"""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import IO, Any

from oasis.certify.verify import verify
from oasis.model.errors import InstanceError, SolverError, VerificationError
from oasis.model.instance_file import instance_to_dict
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.solvers import SolveProgress, Status
from offline.params import Params
from offline.state import Phase, SolveState

Message = tuple[str, Any]  # "schedules", "bound", "cuts", "status", "error" or "ended"


class Partner:
    """The connection to the other process, at either end: messages received and sent."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.is_over = False  # it is not heard any more
        self._takers: dict[str, Callable[[Any], None]] = {}
        self._waiting: dict[str, list[Any]] = {}

    def tell(self, kind: str, content: object) -> None:
        """Send a message."""
        self._send((kind, content))

    def on(self, kind: str, take: Callable[[Any], None]) -> None:
        """Register `take` as the receiver of a kind of message, also of those received before."""
        self._takers[kind] = take
        for content in self._waiting.pop(kind, ()):
            take(content)

    def hear(self, source: IO[bytes]) -> None:
        """Read messages from `source` into the inbox until the other process ends; in a thread."""
        try:
            while True:
                self.inbox.put(pickle.load(source))
        except EOFError:
            self.inbox.put(("ended", None))
        except Exception as error:  # noqa: BLE001 (pickle may raise any, by what the bytes are)
            # The other process was killed in the middle of a message, or something was printed.
            self.inbox.put(("error", f"expected a message: {error}"))

    def listen(self) -> None:
        """Pass the messages in the inbox to their receivers."""
        while not (self.is_over or self.inbox.empty()):
            self.pass_on(self.inbox.get())

    def pass_on(self, message: Message) -> None:
        """Pass a message to the receiver of its kind, or store it until one is registered."""
        kind, content = message
        if kind in self._takers:
            self._takers[kind](content)
        else:
            # The other process may speak before the searches here exist.
            self._waiting.setdefault(kind, []).append(content)


def write(message: object, sink: IO[bytes]) -> None:
    """Pickle a message into a pipe, whose other end reads it with `pickle.load`."""
    pickle.dump(message, sink)
    sink.flush()


CLEARLY = 1e-5  # relative: a bound that is lower by less is not told, unless it is the proof


class StateExchange:
    """Exchange of schedules and bounds with another process, which has `known` at the start."""

    def __init__(
        self,
        partner: Partner,
        state: SolveState,
        known: tuple[Mapping[str, Schedule], float],
        by: str,
    ) -> None:
        self.partner, self.state, self._by = partner, state, by
        self._sent, self._sent_bound = known
        partner.on("schedules", self._take_schedules)
        partner.on("bound", self._take_bound)

    def report(self, _: SolveProgress | None = None) -> None:
        """Send the bound if it fell clearly, and schedules that the other process lacks."""
        state = self.state
        if state.bound < self._sent_bound * (1 if state.is_proven else 1 - CLEARLY):
            self._sent_bound = state.bound
            self.partner.tell("bound", state.bound)
        # Identity, not value: schedules are replaced as a whole, and comparing them takes long.
        if state.schedules is not self._sent:
            self._sent = state.schedules
            self.partner.tell("schedules", (state.schedules, state.found_by))

    def _take_schedules(self, content: tuple[Mapping[str, Schedule], str]) -> None:
        state, (schedules, by) = self.state, content
        try:
            worth = verify(state.instance, schedules)
        except VerificationError as error:
            raise SolverError(f"the second process found infeasible schedules: {error}") from error
        if worth > (state.incumbent or 0.0):
            self._sent = schedules  # the other process has them
            state.record_solution(schedules, by, worth)

    def _take_bound(self, bound: float) -> None:
        self._sent_bound = min(self._sent_bound, bound)  # it knows
        self.state.record_bound(bound, self._by)


LOGGER = logging.getLogger(__name__)

CHILD = "from offline.tasks import main; main()"
EXIT_SECONDS = 5.0  # for a process that was killed to be gone


@dataclass(frozen=True, slots=True)
class ProcessTask:
    """The task of a helper process, and the solve's state when it starts."""

    name: str
    phase: Phase
    params: Params
    seed: int
    prices: tuple[FloatArray, FloatArray] | None = None
    instance: Mapping[str, Any] = field(default_factory=dict)
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    bound: float = math.inf
    seconds: float | None = None

    @property
    def failure(self) -> str:
        """The name under which a result reports why the process failed."""
        return f"{self.name.replace(' ', '_')}_failed"


class Helper:
    """Context manager: a second process that works on `task` and exchanges results with `state`."""

    def __init__(self, state: SolveState, task: ProcessTask) -> None:
        self.state, self.task = state, task
        self.process: subprocess.Popen[bytes] | None = None
        self._outbox: queue.SimpleQueue[ProcessTask | Message | None] = queue.SimpleQueue()
        self.partner = Partner(self._send)
        known = state.schedules, state.bound
        self._exchange = StateExchange(self.partner, state, known, task.phase)
        takers = (("status", self._take_status), ("error", self._fail), ("ended", self._take_ended))
        for kind, take in takers:
            self.partner.on(kind, take)
        self._threads: list[threading.Thread] = []

    @property
    def is_working(self) -> bool:
        """Whether the second process was started and still works on its task."""
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
        """Handle messages since the last call, and send new schedules and bounds."""
        if not self.is_working:
            return
        self.partner.listen()
        if self.state.is_proven:
            self.state.budget.stopping.end(Status.OPTIMAL)
        else:
            self._exchange.report()

    def close(self) -> None:
        """Kill the second process, if there is one, and end its threads and pipes."""
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
            task = self._with_what_is_known()
            process = self.process = _start_process()
        except (InstanceError, OSError) as error:  # no file can hold a utility; no memory
            self._fail(str(error))
            return
        LOGGER.info("a process joins, task: %s, process %d", self.task.name, process.pid)
        self.state.notes["processes"] = 2
        self._outbox.put(task)
        for work, stream in ((self._write, process.stdin), (self.partner.hear, process.stdout)):
            thread = threading.Thread(target=work, args=(stream,), name=task.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _with_what_is_known(self) -> ProcessTask:
        """Return the task with the present instance, schedules, bound and seconds left."""
        state, budget = self.state, self.state.budget
        # not `budget.left`, which calls `listen`, and that is what this is called by
        seconds = None if budget.limit is None else max(0.0, budget.limit - budget.elapsed)
        return replace(
            self.task,
            instance=instance_to_dict(replace(state.instance, metadata={})),
            schedules=state.schedules,
            bound=state.bound,
            seconds=seconds,
        )

    def _send(self, message: Message) -> None:
        """Write a message to the process, unless the process has ended."""
        if self.is_working:
            self._outbox.put(message)

    def _write(self, sink: IO[bytes]) -> None:
        """Write the queued messages into `sink` until None is in the queue; in a thread."""
        # it may end before it has read everything; its exit code will be told
        with suppress(BrokenPipeError):
            for message in iter(self._outbox.get, None):
                write(message, sink)

    def _take_status(self, status: str) -> None:
        LOGGER.info("the process ended its task, %s: %s", self.task.name, status)
        self.partner.is_over = True

    def _take_ended(self, _: None) -> None:
        assert self.process is not None
        self._fail(f"its process ended with {self.process.wait(EXIT_SECONDS)}")

    def _fail(self, reason: str) -> None:
        """Report that the helper process failed; the solve continues without it."""
        self.partner.is_over = True
        self.state.notes[self.task.failure] = reason
        LOGGER.warning(
            "the solve goes on without its second process, %s: %s", self.task.name, reason
        )


def _start_process() -> subprocess.Popen[bytes]:
    """Start the process, with the import paths of this one and out of reach of Ctrl-C."""
    # Not `concurrent.futures`: the workers that it spawns run the user's script once more, which
    # would solve again if it has no main guard.
    places = [os.path.abspath(place) for place in sys.path]
    return subprocess.Popen(
        # -P: a file in the working directory must not take the place of a module.
        [sys.executable, "-P", "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
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
