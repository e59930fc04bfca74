"""A second process that solves the compact model while the decomposition runs in this one.

The solve reads the messages of that process in its own thread, each time it checks whether it
should stop (`oasis.solvers.stopping.Stopping.check`), so no other code has to know of the process.
Schedules are verified here before they count, and better ones that are found here are sent to the
process, where HiGHS takes them up. Once the bound of one side meets the schedules of the other,
they prove each other, and the solve ends.

The process is a fresh interpreter and not a fork of this one, whose threads a fork would break, and
it does not import the program that called `solve`, as `multiprocessing` would.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from oasis.certify.verify import verify
from oasis.model.errors import InstanceError, SolverError, VerificationError
from oasis.model.instance import Instance
from oasis.model.instance_file import instance_to_dict
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.solvers import Status
from offline.both.child import plain
from offline.model.params import CompactParams
from offline.state import Phase, SolveState

LOGGER = logging.getLogger(__name__)

CHILD = "from offline.both.child import main; main()"
EXIT_SECONDS = 5.0  # for a process that was killed to be gone
ENDED = {"ended": True}  # stands after the last message of the process


class Helper:
    """Solves the compact model in a process of its own from `head_start` on; a context manager.

    Parameters
    ----------
    instance : Instance
        The problem.
    state : SolveState
        Learns what the process finds and proves; its budget is that of the solve.
    params : CompactParams
        How HiGHS solves the compact model.
    seed : int
        HiGHS's random seed.
    head_start : float
        Seconds after which the process is started, if nothing is proven by then.

    Attributes
    ----------
    process : subprocess.Popen or None
        The process, None before it is started.
    """

    def __init__(
        self,
        instance: Instance,
        state: SolveState,
        params: CompactParams,
        seed: int,
        head_start: float,
    ) -> None:
        self.instance, self.state = instance, state
        self.process: subprocess.Popen[str] | None = None
        self._params, self._seed, self._head_start = params, seed, head_start
        self._messages: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._told: Mapping[str, Schedule] = {}
        self._is_over = False

    def __enter__(self) -> Helper:
        self.state.budget.stopping.listen = self.listen
        return self

    def __exit__(self, *error: object) -> None:
        self.state.budget.stopping.listen = None
        self.close()

    def listen(self) -> None:
        """Start the process once it is time, and take up what it has said since the last call.

        Raises
        ------
        SolverError
            If its schedules break a constraint, or its bound is below verified schedules.
        """
        if self._is_over:
            return
        if self.process is None:
            if self.state.budget.elapsed >= self._head_start and not self.state.is_proven:
                self._start()
            return
        while not (self._is_over or self._messages.empty()):
            self._take(self._messages.get())
        if self.state.is_proven:
            self.state.budget.stopping.end(Status.OPTIMAL)
        elif self.state.schedules is not self._told:
            self._told = self.state.schedules
            self._outbox.put(json.dumps({"schedules": plain(self._told)}) + "\n")

    def close(self) -> None:
        """End the process, if there is one; afterwards there is none."""
        self._is_over = True
        process = self.process
        if process is None:
            return
        process.kill()
        process.wait(EXIT_SECONDS)
        self._outbox.put(None)
        for thread in self._threads:
            thread.join(EXIT_SECONDS)
        for pipe in (process.stdin, process.stdout):
            # closing writes what is still in the buffer, which nobody reads any more
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
        LOGGER.info("the compact model joins in process %d", process.pid)
        self.state.notes["processes"] = 2
        self._outbox.put(problem)
        for work, other in ((_tell, self._outbox), (_hear, self._messages)):
            given = process, other
            thread = threading.Thread(target=work, args=given, name="compact model", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _problem(self) -> str:
        """The first line that the process reads."""
        self._told = self.state.schedules
        problem = {
            "instance": instance_to_dict(replace(self.instance, metadata={})),
            "schedules": plain(self._told),
            "params": self._params.to_dict(),
            "seed": self._seed,
        }
        return json.dumps(problem) + "\n"

    def _take(self, message: Mapping[str, Any]) -> None:
        state = self.state
        if "schedules" in message:
            found = schedules_by_job(message["schedules"])
            try:
                state.found(verify(self.instance, found), found, Phase.COMPACT)
            except VerificationError as error:
                raise SolverError(f"HiGHS returned an infeasible solution: {error}") from error
            if state.schedules is found:
                self._told = found  # it knows
        elif "bound" in message:
            state.proved(message["bound"], Phase.COMPACT)
        elif "status" in message:
            LOGGER.info("the compact model ended: %s", message["status"])
            self._is_over = True
        elif "error" in message:
            self._fail(message["error"])
        else:
            assert self.process is not None
            self._fail(f"its process ended with {self.process.wait(EXIT_SECONDS)}")

    def _fail(self, reason: str) -> None:
        """Say that there is no compact model; the decomposition goes on without it."""
        self._is_over = True
        self.state.notes["compact_model_failed"] = reason
        LOGGER.warning("the compact model failed, the decomposition goes on: %s", reason)


def _started() -> subprocess.Popen[str]:
    """Start the process: it imports from where this one does, and does not hear of Ctrl-C."""
    places = [os.path.abspath(place) for place in sys.path]
    return subprocess.Popen(
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
        for line in iter(outbox.get, None):
            process.stdin.write(line)
            process.stdin.flush()
    except BrokenPipeError:  # it ended before it had read everything; its exit code will be told
        pass


def _hear(process: subprocess.Popen[str], messages: queue.SimpleQueue[Mapping[str, Any]]) -> None:
    """Pass on each message until the process ends, in a thread."""
    assert process.stdout is not None
    for line in process.stdout:
        if not line.endswith("\n"):  # it was killed in the middle of a message
            break
        messages.put(_message(line))
    messages.put(ENDED)


def _message(line: str) -> Mapping[str, Any]:
    """What a line says; an error message if it is none that we could have written."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"error": f"expected a message, got {line!r}"}
