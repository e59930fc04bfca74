"""The state of a solve, from which a result follows whatever ends the solve."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from oasis.certify.verify import HasSchedules, verify
from oasis.model.decision import Decision
from oasis.model.errors import SolverError
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.model.summary import Facts, Summarised
from oasis.online.oasis import OASiS
from oasis.simulator import Policy, simulate
from oasis.simulator.result import Run
from oasis.solvers import PROOF, TRUST, SolveProgress, Status, relative_gap
from oasis.solvers.budget import Budget, OutOfTimeError
from offline.model.arrays import OfflineArrays
from offline.result import Milestone, OfflineResult

LOGGER = logging.getLogger(__name__)

# Bounds come from sums of floats, which end a little too low now and then: 2e-10 of the value was
# seen. What results state is larger by this (relative).
OUTWARD = 9e-10

RESOLUTION = 0.01  # of the elapsed time: how close together two milestones may be


class Phase(StrEnum):
    """Phases of a solve as users see them; docs/cli.md has a line on each.

    A phase gets the credit for the schedules that are found in it and the bounds that it proves.

    Examples
    --------
    >>> from offline import Phase
    >>> print(Phase.CONFIGURATION_LP)
    configuration LP
    """

    TRIVIAL = "every job at its best"
    ONLINE = "OASiS"
    WARM_START = "warm start"
    COMPACT = "compact MILP"
    ENUMERATION = "enumeration"
    DENSITY = "insertion by density"
    WINDOWS = "ruin and recreate in windows"
    CONFIGURATION_LP = "configuration LP"
    CUTS_IN_SLOTS = "cuts on single slots"
    MIX = "mix of two searches"
    CUTTING_PLANES = "cutting planes"
    PERIODS = "periods of the horizon"
    MASTER_IN_FRACTIONS = "master, counts in fractions"
    MASTER_WITH_WHOLE_PS = "master, whole parameter servers"
    MASTER_IN_WHOLE_COUNTS = "master, whole counts"
    CUTS_AROUND_PLAN = "cuts around the plan"
    PLANS = "plans that fit"
    REPLANNING = "plans close to the schedules"


EXACT = (Phase.TRIVIAL, Phase.ENUMERATION)  # whose bounds are sums of utilities, rounded once


class SolveState:
    """State of a solve: the best schedules, the upper bound, who found them, and their history."""

    def __init__(
        self,
        instance: Instance,
        budget: Budget,
        on_progress: Callable[[SolveProgress], None] | None = None,
    ) -> None:
        self.instance, self.budget = instance, budget
        self.phase: str = Phase.TRIVIAL
        self.history: list[Milestone] = []
        self.notes: dict[str, Any] = {}
        self._spent: list[float] = []  # what of the budget was spent at each
        self.on_progress = on_progress
        self._reported: float | None = None
        # each replaced whole, so that Ctrl-C never finds one half changed
        self._best: tuple[float | None, Mapping[str, Schedule], str] = (None, {}, "")
        self._proof = (math.inf, "")

    @property
    def incumbent(self) -> float | None:
        return self._best[0]

    @property
    def schedules(self) -> Mapping[str, Schedule]:
        return self._best[1]

    @property
    def found_by(self) -> str:
        """The phase in which `schedules` were found."""
        return self._best[2]

    @property
    def bound(self) -> float:
        return self._proof[0]

    @property
    def gap(self) -> float:
        """Relative gap of incumbent and bound; infinite without an incumbent."""
        return relative_gap(self.incumbent, self.bound)

    @property
    def is_proven(self) -> bool:
        """Whether the gap between incumbent and bound is closed."""
        known = self.incumbent
        return known is not None and self.bound - known <= PROOF * abs(known)

    def enter(self, phase: str) -> None:
        """Begin a phase: a `Phase`, unless a tool outside the package drives the solve."""
        self.phase = phase
        LOGGER.info("phase: %s", phase)
        self._report()

    def record_solution(
        self,
        found: HasSchedules | Mapping[str, Schedule],
        by: str | None = None,
        worth: float | None = None,
    ) -> float:
        """Record what this phase or `by` has found, if it is better; return what it is worth.

        It is verified here, unless the caller has done so and gives `worth`.
        """
        worth = verify(self.instance, found) if worth is None else worth
        if self.incumbent is None or worth > self.incumbent:
            schedules = found if isinstance(found, Mapping) else found.schedules
            self._best = (worth, schedules, self.phase if by is None else by)
            LOGGER.info("incumbent %g by %s", worth, self._best[2])
            self._check()
            self._note()
        return worth

    def record_bound(self, bound: float, by: str | None = None) -> None:
        """Record a bound, proved by the current phase or `by`."""
        if bound < self.bound:
            self._proof = (bound, self.phase if by is None else by)
            LOGGER.info("bound %g by %s", *self._proof)
            self._check()
            self._note()

    def record_progress(self, progress: SolveProgress) -> None:
        """Record a running solver's bound, and report its value, which is no incumbent yet."""
        # The time of a report depends on the machine: a result that must repeat leaves it out.
        if self.budget.is_repeatable:
            self._report()
            return
        known = self._value()
        if progress.incumbent is not None and (known is None or progress.incumbent > known):
            self._reported = progress.incumbent
            self._note()
        self.record_bound(progress.bound)

    def withdraw(self) -> None:
        """Forget reported solutions that turned out to violate a constraint."""
        self._reported, known = None, self.incumbent
        self.history = [
            milestone
            if milestone.objective is None or (known is not None and milestone.objective <= known)
            else replace(milestone, objective=known)
            for milestone in self.history
        ]

    def record_solver_bound(self, progress: SolveProgress) -> None:
        """As `record_progress`, with the bound alone, where the solver solves a relaxation."""
        if not self.budget.is_repeatable:
            self.record_bound(progress.bound)

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Suppress `OutOfTimeError` in the block, and note which step it has skipped."""
        try:
            yield
        except OutOfTimeError as late:
            if late.args:
                self.notes["skipped"] = str(late)
                LOGGER.info("skipped: %s", late)

    def result(self, status: Status, method: str, parameters: Mapping[str, Any]) -> OfflineResult:
        """Build the result; a time limit with a closed gap counts as a proof."""
        _, schedules, found_by = self._best
        bound, proved_by = min(self._proof, (trivial_bound(self.instance), Phase.TRIVIAL.value))
        # Once more at the end, whatever each step has verified: this number is what is stated.
        objective = verify(self.instance, schedules)
        LOGGER.info("schedules verified: worth %g", objective)
        # The limit came between the last improvement and the next check of the gap.
        if status is self.budget.status and bound - objective <= PROOF * abs(objective):
            status = Status.OPTIMAL
        return OfflineResult(
            status=status,
            objective=objective,
            upper_bound=max(bound if proved_by in EXACT else bound * (1 + OUTWARD), objective),
            schedules=schedules,
            method=method,
            seconds=self.budget.seconds,
            parameters=dict(parameters),
            objective_by=str(found_by),
            bound_by=str(proved_by),
            history=tuple(self.history),
        )

    def _check(self) -> None:
        known, (bound, by) = self.incumbent, self._proof
        if known is not None and bound < known - TRUST * abs(known):
            text = f"{by or 'the solver'} claims the bound {bound:.9g}"
            raise SolverError(f"{text}; a schedule is worth {known:.9g}")

    def _shown_bound(self) -> float:
        """Return the bound, but not below the incumbent, as results and progress state it."""
        return max(self.bound, -math.inf if self.incumbent is None else self.incumbent)

    def _value(self) -> float | None:
        known = [value for value in (self.incumbent, self._reported) if value is not None]
        return max(known, default=None)

    def _note(self) -> None:
        """Add the present value and bound to the history, and report them."""
        budget = self.budget
        budget.stopping.note(self._value(), self.bound, budget.meter.read(), self.incumbent)
        now = budget.elapsed
        # Solvers report by the thousand; on a logarithmic scale of time nothing is lost.
        if len(self.history) > 1 and now - self._spent[-2] < RESOLUTION * now:
            self.history.pop()
            self._spent.pop()
        self._spent.append(now)
        self.history.append(Milestone(self.budget.seconds, self._value(), self._shown_bound()))
        self._report()

    def _report(self) -> None:
        if self.on_progress is not None:
            value, now = self._value(), self.budget.seconds
            bound = self._shown_bound()
            gap = relative_gap(value, bound)
            self.on_progress(SolveProgress(now, value, bound, gap, self.phase))


def trivial_bound(problem: Instance | OfflineArrays) -> float:
    """Sum of the utilities of all jobs, each alone at its earliest completion: the first bound."""
    jobs, seconds = problem.jobs, problem.slot_seconds
    shortest = [min(form.shortest_duration(seconds) for form in job.in_forms) for job in jobs]
    return math.fsum(float(job.utility(n - 1)) for job, n in zip(jobs, shortest, strict=True))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OnlinePrices(Summarised):
    """Prices and schedules that an online run passes to a column generation.

    Parameters
    ----------
    worker, ps : (T, H, R) and (T, K, R) float arrays
        OASiS's final prices, utility per unit of resource.
    schedules : mapping of str to Schedule
        The schedules that OASiS has admitted at these prices, by job id.

    Examples
    --------
    >>> import numpy as np
    >>> from offline import OnlinePrices
    >>> OnlinePrices(np.zeros((8, 2, 5)), np.zeros((8, 1, 5)), {}).worker.shape
    (8, 2, 5)
    """

    worker: FloatArray
    ps: FloatArray
    schedules: Mapping[str, Schedule]

    def summary(self) -> tuple[str, Facts]:
        """Shapes of the prices, and how many jobs were admitted at them."""
        shapes = [("worker", str(self.worker.shape)), ("ps", str(self.ps.shape))]
        return "OnlinePrices", [*shapes, ("admitted", f"{len(self.schedules)} jobs")]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WarmStart(Summarised):
    """Start of a solve.

    Parameters
    ----------
    schedules : mapping of str to Schedule
        A feasible solution by job id; the result is never worse.
    prices : OnlinePrices, optional
        Prices of an online run of the same instance. A method that starts from prices makes this
        run itself if they are missing.
    source : Phase
        The phase to which a result ascribes `schedules`.
    value : float, optional
        Total utility of `schedules`, where `oasis.verify` has computed it already; a solve verifies
        schedules without one before it begins, and all schedules when it ends.

    Examples
    --------
    >>> import oasis
    >>> from offline import WarmStart, solve
    >>> instance = oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=2, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance, scale=0.5))
    >>> result = solve(instance, warm_start=WarmStart(run.schedules))
    >>> result.objective >= run.total_utility
    True
    """

    schedules: Mapping[str, Schedule]
    prices: OnlinePrices | None = None
    source: Phase = Phase.WARM_START
    value: float | None = None

    def summary(self) -> tuple[str, Facts]:
        """Number and origin of the schedules, and whether there are prices."""
        prices = "none" if self.prices is None else "given"
        schedules = ("schedules", str(len(self.schedules)))
        return "WarmStart", [schedules, ("from", str(self.source)), ("prices", prices)]


Start = WarmStart | Mapping[str, Schedule] | None


def warm_start_of(warm: Start, state: SolveState, *, needs_prices: bool) -> WarmStart:
    """Return `warm` as a `WarmStart`; run OASiS if it is None, or lacks prices that are needed."""
    instance = state.instance
    if warm is None:
        return decide(state, lambda: OASiS.from_instance(instance))[1]
    start = warm if isinstance(warm, WarmStart) else WarmStart(warm)
    if start.prices is not None or not needs_prices:
        return start
    _, online = decide(SolveState(instance, Budget()), lambda: OASiS.from_instance(instance))
    return replace(start, prices=online.prices)


def decide(
    state: SolveState,
    make: Callable[[], Policy],
    on_decision: Callable[[Decision], None] | None = None,
    phase: Phase = Phase.ONLINE,
) -> tuple[Run, WarmStart]:
    """Run the policy from `make` online; record its schedules in `state`, return run and start."""
    state.enter(phase)
    state.record_bound(trivial_bound(state.instance), Phase.TRIVIAL)
    decided: dict[str, Schedule] = {}

    def note(decision: Decision) -> None:
        if decision.schedule is not None:
            decided[decision.job_id] = decision.schedule
        if on_decision is not None:
            on_decision(decision)

    try:
        policy = make()
        run = simulate(state.instance, policy, on_decision=note)
        worth = state.record_solution(run)
    except KeyboardInterrupt:
        state.record_solution(decided)
        raise
    prices = None
    if isinstance(policy, OASiS):
        prices = OnlinePrices(policy.ledger.worker_prices, policy.ledger.ps_prices, run.schedules)
    return run, WarmStart(run.schedules, prices, phase, worth)


def conclude(
    state: SolveState, work: Callable[[], Status], method: str, parameters: Mapping[str, Any]
) -> OfflineResult:
    """Call `work`, which solves and reports to `state`; return the result, whatever ends it."""
    try:
        state.record_bound(trivial_bound(state.instance), Phase.TRIVIAL)
        status = None
        with state.in_time():
            status = work()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    status = status or state.budget.status
    return state.result(status, method, {**parameters, **state.notes})
