"""A HiGHS solve in a thread of its own."""

from __future__ import annotations

import atexit
import math
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import highspy
import numpy as np

from oasis.model.errors import SolverError
from oasis.model.rounding import FloatArray
from oasis.solvers import Solution, SolveProgress, Status, relative_gap
from oasis.solvers.answers import accept, bound_correction
from oasis.solvers.budget import Budget


class Exchange(Protocol):
    """Gives better solutions to a running solve and receives those that the solve finds."""

    def better(self, objective: float) -> Mapping[str, float] | None:
        """Return variables by name of a solution better than `objective`; None if there is none.

        Called in the solver's own thread, so that it only looks at what is at hand. A solution that
        breaks a row is ignored by the solver.
        """
        ...

    def record(self, values: Mapping[str, float]) -> None:
        """Receive a better solution that the solver has found; called in the calling thread."""
        ...


# Short enough for Ctrl-C to feel immediate, long enough to cost nothing beside a solve.
POLL_SECONDS = 0.1
GRACE_SECONDS = 2.0  # for HiGHS to hear that it should stop
EXIT_SECONDS = 10.0  # the same at the end of the program

_RUNNING: weakref.WeakSet[RunningSolve] = weakref.WeakSet()


@atexit.register
def _wait_for_all() -> None:
    """Stop all solves at exit: a thread that Python ends inside HiGHS aborts the process."""
    for run in list(_RUNNING):
        run._stop.set()
    for run in list(_RUNNING):
        run._thread.join(EXIT_SECONDS)


class RunningSolve:
    """A solve in a thread of its own, so that the calling thread can do other work and hear Ctrl-C.

    Leaving a ``with`` block stops it.
    """

    def __init__(
        self,
        highs: highspy.Highs,
        scale: float,
        read: Callable[[], Solution],
        worst: float,
        budget: Budget,
        check_work: float,  # between two of HiGHS's checks whether it should stop
        *,
        is_whole_problem: bool = False,  # what it proves counts for the criteria of the budget
        exchange: Exchange | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self.progress: SolveProgress | None = None
        self._highs, self._scale, self._read, self._worst = highs, scale, read, worst
        self._dropped = bound_correction(highs)
        self._budget, self._check_work = budget, check_work
        self._checks = 0
        self._is_spent = False
        # Where work counts, HiGHS's own checks look at the criteria, at the same points each
        # time; where seconds count, the calling thread does (`_is_over`).
        self._notes = is_whole_problem and budget.is_repeatable
        self._began = budget.meter.read()
        # HiGHS's checks come at the same points each time,
        # so work is limited by their number.
        self._most_checks = math.inf
        if budget.is_repeatable:
            self._most_checks = (
                budget.left if is_whole_problem else budget.left_without_report
            ) / check_work
        self._stop = threading.Event()
        self._done = threading.Event()
        self._failure: BaseException | None = None
        self._outcome: highspy.HighsStatus | None = None
        highs.cbMipInterrupt.subscribe(self._watch_mip)
        highs.cbSimplexInterrupt.subscribe(self._watch)
        highs.cbIpmInterrupt.subscribe(self._watch)
        self._exchange, self._names = exchange, names
        self._solution: FloatArray | None = None
        # What comes from another process comes at another moment
        # each time: it would make runs differ.
        if exchange is not None and not budget.is_repeatable:
            highs.cbMipUserSolution.subscribe(self._take)
            highs.cbMipImprovingSolution.subscribe(self._give)
        # Python hears Ctrl-C only between its own steps in the
        # main thread, which HiGHS would block.
        self._thread = threading.Thread(target=self._work, name="HiGHS", daemon=True)
        _RUNNING.add(self)
        self._thread.start()

    def __enter__(self) -> RunningSolve:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def is_done(self) -> bool:
        """Whether `finish` would return immediately."""
        return self._done.is_set()

    def wait(self) -> bool:
        """Wait `POLL_SECONDS` at most for the end; return whether `finish` would return at once."""
        return self._done.wait(POLL_SECONDS)

    def stop(self) -> None:
        """Ask HiGHS to end and wait for it, at most two seconds."""
        self._stop.set()
        self._done.wait(GRACE_SECONDS)

    def finish(self, on_progress: Callable[[SolveProgress], None] | None = None) -> Solution:
        """Wait for the end and return the solution as `solve` does; after `stop`, at once."""
        # HiGHS did not hear of the stop in time: it still writes, so nothing may be read from it.
        if self._stop.is_set() and not self.is_done:
            return self._abandon()
        is_interrupted = False
        try:
            self._report(on_progress)
        except KeyboardInterrupt:
            is_interrupted = True
            self.stop()
            if not self.is_done:
                return self._abandon()
        except BaseException:
            self.stop()
            raise
        if not self.is_done:  # a criterion was met, and HiGHS has not heard of it
            return replace(self._abandon(), status=self._budget.status)
        self._highs.clearCallbacks()
        if self._failure is not None:
            raise SolverError(f"HiGHS failed: {self._failure}") from self._failure
        accept(self._outcome, "failed")
        solution = self._read()
        self._budget.charge(self._checks * self._check_work)
        is_ended = self._is_spent and solution.status is Status.INTERRUPTED
        if is_ended or solution.status is Status.TIME_LIMIT:
            solution = replace(solution, status=self._budget.status)
        # also where HiGHS was done before it heard of it: a caller with more to solve must stop
        return replace(solution, status=Status.INTERRUPTED) if is_interrupted else solution

    def _watch(self, event: Any) -> None:
        self._checks += 1
        if self._checks > self._most_checks or (
            self._notes and self._budget.stopping.check(self._now) is not None
        ):
            self._is_spent = True
        event.data_in.user_interrupt = self._is_spent or self._stop.is_set()

    @property
    def _now(self) -> float:
        """What the budget's meter would read if the work of this solve were charged now."""
        return self._began + self._checks * self._check_work

    def _watch_mip(self, event: Any) -> None:
        self._watch(event)
        out = event.data_out
        incumbent = out.mip_primal_bound / self._scale
        objective = incumbent if math.isfinite(incumbent) else None
        bound = (out.mip_dual_bound + self._dropped) / self._scale
        if self._notes and math.isfinite(bound):
            self._budget.stopping.note(objective, bound, self._now)
        self.progress = SolveProgress(
            out.running_time, objective, bound, relative_gap(objective, bound)
        )

    def _take(self, event: Any) -> None:
        """Callback: give HiGHS a solution of the exchange that is better than its own, if any."""
        assert self._exchange is not None
        known = event.data_out.mip_primal_bound / self._scale
        values = self._exchange.better(known if math.isfinite(known) else -math.inf)
        if values is not None:
            event.data_in.setSolution(np.array([values.get(name, 0.0) for name in self._names]))

    def _give(self, event: Any) -> None:
        """Callback: store a solution that HiGHS has found, for the calling thread."""
        # A copy: what a callback is shown is HiGHS's own and is valid only until this returns.
        self._solution = np.array(event.data_out.mip_solution)

    def _pass_on(self) -> None:
        """Give the exchange the solution that `_give` stored, if there is a new one."""
        solution, self._solution = self._solution, None
        if solution is not None and self._exchange is not None:
            self._exchange.record(dict(zip(self._names, solution.tolist(), strict=True)))

    def _work(self) -> None:
        try:
            self._outcome = self._highs.run()
            self._highs.resetGlobalScheduler(False)
        except BaseException as error:  # noqa: BLE001 - handed to the calling thread
            self._failure = error
        finally:
            self._done.set()

    def _report(self, on_progress: Callable[[SolveProgress], None] | None) -> None:
        """Until the end: report progress and hand on solutions; stop HiGHS if a limit is met."""
        last = None
        while not self._done.wait(POLL_SECONDS):
            if on_progress is not None and self.progress is not None and self.progress != last:
                last = self.progress
                on_progress(last)
            self._pass_on()
            if self._is_over():
                self._is_spent = True
                self.stop()
                return

    def _is_over(self) -> bool:
        """Return whether a criterion, or with work limits only a deadline, ends the solve."""
        budget = self._budget
        if budget.is_repeatable:
            return budget.stopping.is_late
        return budget.stopping.check(budget.meter.read()) is not None

    def _abandon(self) -> Solution:
        """Return the last bound that HiGHS reported, without a solution: it still runs."""
        bound = self.progress.bound if self.progress is not None else self._worst
        return Solution(Status.INTERRUPTED, None, bound, math.inf, {})
