"""Exact offline solve by logic-based Benders decomposition: how many, then where.

The master (`offline.benders.master`) chooses completions and the workers and parameter servers of
each job in each slot; the subproblem places the counts of one slot on the servers. Counts that
cannot be placed give a cut from the patterns of single servers, which holds in every slot
(`offline.benders.cuts`), or, where patterns fit fractionally, are forbidden in theirs. The master's
bound holds throughout; a plan whose slots can all be placed is worth what the master says.

Counts are fractions at first, which is a relaxation too: completions decide most of the bound.
While a master is solved, schedules close to the plan before are looked for
(`offline.benders.primal`).

References
----------
Hooker and Ottosson, Logic-based Benders decomposition, Mathematical Programming 96, 2003.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pulp

from oasis.model.instance import Instance
from oasis.model.schedule import Schedule
from oasis.solvers import Progress, Solution, Status, highs
from oasis.solvers.budget import Budget, limits
from oasis.solvers.relaxation import Relaxation
from offline.benders.master import CountModel
from offline.benders.primal import Settling, close_plan
from offline.benders.separation import Separation
from offline.column_generation.bound import columns_of, configuration_bound
from offline.heuristics.fix_and_optimise import FIRST, reoptimise
from offline.heuristics.insertion import Incumbent, guide_of, insert_in_orders
from offline.heuristics.partial_solution import Occupancy
from offline.heuristics.ruin_and_recreate import search
from offline.result import OfflineResult
from offline.state import Standing, concluded
from offline.warm_start import begin

PRICES_SHARE, SEARCH_SHARE = 0.05, 0.03  # of the time left
ROOT_SHARE, MASTER_SHARE, REFINE_SHARE = 0.1, 0.5, 0.2
SETTLE_SHARE = 0.4
PATIENCE, STALL = 4, 3e-4  # rounds of cuts that lower the bound by less than this are the last
MASTER_GAP = 0.3  # of what is between bound and schedules, for the first master; then halved
SLOW = 0.01  # of the open interval: a master that lowers the bound by less ends its level
ROUNDS, STILL = 6, 1e-5  # of cuts around a plan that leave its value where it is
LAST, TOO_LATE = 0.6, 0.2  # of the limit left: for the last master, for another plan
PATCH_SECONDS = 3.0  # of neighbourhoods between two looks at the master
PAYS = 0.02  # of the open interval: neighbourhoods that close so much go on, master or not
WINDOW = 2  # slots that a job may be later than planned
SMALL = 300  # slots over all jobs: few enough to try whole counts at once
WHOLE_SHARE, WHOLE_SECONDS = 0.3, 60.0  # for that
SEARCH_SECONDS = 5.0  # at most, also without a time limit

FRACTIONS, WHOLE = pulp.LpContinuous, pulp.LpInteger
UNFINISHED = Solution(Status.INTERRUPTED, None, math.inf, math.inf, {})
LEVELS = (
    ("master, counts in fractions", FRACTIONS, FRACTIONS),
    ("master, whole parameter servers", FRACTIONS, WHOLE),
    ("master, whole counts", WHOLE, WHOLE),
)


def solve_benders(
    instance: Instance,
    time_limit: float | None = 60.0,
    warm_start: Mapping[str, Schedule] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    seed: int = 0,
    work_limit: float | None = None,
) -> OfflineResult:
    """Solve the offline problem by logic-based Benders decomposition; see `offline.solve`.

    The result is never worse than `warm_start`, or than OASiS's own schedule without one.
    Without a time limit it ends only with a proof.

    Raises
    ------
    VerificationError
        If `warm_start` breaks a constraint.
    SolverError
        If the solver fails, or a bound is below a verified schedule.
    """
    budget = Budget.of(time_limit, work_limit)
    standing = Standing(budget, on_progress)
    parameters: dict[str, Any] = {
        **limits(time_limit, work_limit),
        "seed": seed,
        "solver": highs.version(),
    }

    def work() -> Status:
        begin(instance, standing, warm_start)
        incumbent = Incumbent(Occupancy(instance, standing.schedules), standing)
        run = _Decomposition(instance, incumbent, budget, np.random.default_rng(seed))
        run.prepare()
        run.cut_the_relaxation()
        if run.model.size <= SMALL:
            run.try_whole()
        while not run.is_done:
            run.cycle()
        return run.status

    return concluded(instance, standing, work, "benders", parameters)


class _Decomposition:
    """State of a solve."""

    def __init__(
        self,
        instance: Instance,
        incumbent: Incumbent,
        budget: Budget,
        rng: np.random.Generator,
    ) -> None:
        self.instance, self.incumbent = instance, incumbent
        self.standing, self.budget, self.rng = incumbent.standing, budget, rng
        self.model = CountModel(instance)
        self.separation = Separation(self.model)
        self._level = 0
        self._tolerance = MASTER_GAP
        self._near: list[pulp.LpConstraint] = []
        self._wanted: list[int] = []
        self._size = FIRST

    @property
    def is_done(self) -> bool:
        """Whether there is no time left, or nothing left to prove."""
        return self.budget.passed or self.incumbent.is_proven

    @property
    def status(self) -> Status:
        """Why the solve ends now."""
        return Status.OPTIMAL if self.incumbent.is_proven else self.budget.status

    def prepare(self) -> None:
        """Prices of the configuration LP, and what simple heuristics find with them."""
        self.standing.proved(self.model.trivial_bound, "every job at its best")
        self.standing.enter("configuration LP")
        columns = columns_of(self.instance, self.incumbent.best.by_id)
        part = self.budget.share(PRICES_SHARE)
        bound = configuration_bound(self.instance, part, columns, self.standing, 1e-3)
        if bound.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.guide = guide_of(self.instance, bound)
        self.settling = Settling(self.model, self.separation, self.incumbent, self.guide, self.rng)
        part = self.budget.share(SEARCH_SHARE).within(SEARCH_SECONDS)
        self.standing.enter("insertion at the LP's prices")
        insert_in_orders(self.instance, self.guide, self.incumbent, self.rng, part)
        self.standing.enter("ruin and recreate")
        search(self.incumbent.best, self.guide, self.rng, part, self.incumbent)

    def cut_the_relaxation(self) -> None:
        """Solve the master's relaxation and cut off what cannot be placed, again and again."""
        self.standing.enter("cutting planes")
        budget = self.budget.share(ROOT_SHARE)
        relaxation = Relaxation(self.model.problem)
        bounds: list[float] = []
        while not (budget.passed or self.incumbent.is_proven):
            solution = relaxation.solve(budget)
            if solution is None:
                return
            self.standing.proved(solution.bound * (1 + 1e-9))
            bounds.append(solution.bound)
            if len(bounds) > PATIENCE and bounds[-1 - PATIENCE] - bounds[-1] < STALL * bounds[-1]:
                return
            rows = self.separation.cut(solution.values, budget)
            if not rows:
                return
            relaxation.add(rows)

    def cycle(self) -> None:
        """The best plan of the master, and meanwhile schedules close to the plan before.

        The master has fractions, so that what its plan violates becomes cuts first. Where there
        was nothing to cut, or cuts hardly lower the bound, the next master has fewer fractions.
        """
        is_whole = self._level == len(LEVELS) - 1
        before = self.standing.bound
        is_last = self.budget.left < LAST * (self.budget.limit or 0.0)
        part = self.budget.share(1.0 if is_last else MASTER_SHARE)
        with self._start(0.0 if is_whole else self._tolerance, part) as master:
            if self._near and self.budget.left > TOO_LATE * (self.budget.limit or 0.0):
                self.settle()
            pays = True
            while (pays or self._is_awaited(master)) and not self.is_done:
                self._note(master)
                pays = self.look_around(self.budget.within(PATCH_SECONDS)) > PAYS
            solution = self._finish(master)
        if self.is_done or not solution.values:
            return
        if is_whole:
            self._place(solution, self.budget.share(SETTLE_SHARE))
            return
        self._tolerance /= 2
        plan = self.model.completions(solution.values)
        self._wanted = [self.model.index[name] for name in plan]
        self._near = self.model.near(plan, WINDOW)
        cuts = self.refine(solution, self.budget.share(REFINE_SHARE)) or self.settle()
        lowered = before - self.standing.bound
        is_slow = lowered < SLOW * (before - self.incumbent.best.value)
        if cuts and not (is_slow and solution.status is Status.OPTIMAL):
            return
        if solution.status is Status.OPTIMAL:
            self._level += 1
        self._tolerance = 0.0

    def settle(self) -> int:
        """Schedules close to the last plan; the number of cuts that came of it."""
        self.standing.enter("plans that fit")
        near, self._near = self._near, []
        return self.settling.settle(near, self.budget.share(SETTLE_SHARE))

    def try_whole(self) -> None:
        """The best plans of whole counts, one after the other, while that is quick."""
        budget = self.budget.share(WHOLE_SHARE).within(WHOLE_SECONDS)
        self._level = len(LEVELS) - 1
        while not (budget.passed or self.is_done):
            with self._start(0.0, budget) as master:
                solution = self._finish(master)
            if not self.is_done and solution.values:
                self._place(solution, budget)
        self._level = 0

    def _place(self, solution: Solution, budget: Budget) -> None:
        """Place a plan of whole counts; what does not fit will not come again."""
        plan = self.model.schedules_of(solution.values)
        for misfit in self.settling.place(plan, budget, math.inf):
            what = (misfit.group, misfit.counts, misfit.slots, budget)
            if not self.separation.cut_off(*what) and solution.status is Status.OPTIMAL:
                self.separation.forbid(*what)

    def look_around(self, budget: Budget) -> float:
        """Neighbourhoods of the best schedules; the share of the open interval that they closed."""
        self.standing.enter("neighbourhood search")
        best, keep = self.incumbent.best, self.incumbent
        self._size = reoptimise(best, self.guide, self.rng, budget, keep, self._wanted, self._size)
        return (keep.best.value - best.value) / max(self.standing.bound - best.value, 1e-300)

    def refine(self, solution: Solution, budget: Budget) -> int:
        """Cut off what violates cuts close to the last plan, counts in fractions; how many."""
        self.standing.enter("cuts around the plan")
        self.model.require(FRACTIONS, FRACTIONS)
        bounds = [math.inf] * ROUNDS
        cuts = 0
        while not budget.passed:
            rows = self.separation.cut(solution.values, budget)
            cuts += len(rows)
            if not rows or bounds[-1] >= (1 - STILL) * bounds[-ROUNDS] < math.inf:
                break
            solution = close_plan(self.model, self._near, budget)
            bounds.append(solution.bound)
        return cuts

    def _start(self, tolerance: float, budget: Budget) -> highs.Run:
        """The master as a MILP; `tolerance` is the share of the open interval that may remain."""
        phase, *kinds = LEVELS[self._level]
        self.standing.enter(phase)
        self.model.require(*kinds)
        known = self.incumbent.best
        return highs.start(
            self.model.problem,
            budget=budget,
            gap=tolerance * max(0.0, self.standing.bound - known.value),
            warm_start=self.model.values_of(known.by_id),
        )

    def _finish(self, master: highs.Run) -> Solution:
        """Its solution; its bound is one of the instance."""
        phase, *_ = LEVELS[self._level]
        self.standing.enter(phase)
        is_stopped = self.is_done
        if is_stopped:
            master.stop()
            if self.budget.is_repeatable:  # how far it came depends on the machine
                return UNFINISHED
        solution = master.finish(self.standing.saw_bound)
        self.standing.proved(solution.bound)
        if solution.status is Status.INTERRUPTED and not is_stopped:
            raise KeyboardInterrupt
        return solution

    def _is_awaited(self, master: highs.Run) -> bool:
        """Whether to go on beside a master that still runs."""
        return not (master.is_done or self.budget.is_repeatable)

    def _note(self, master: highs.Run) -> None:
        """What a master that still runs has proved; how far it came depends on the machine."""
        if master.progress is not None and not self.budget.is_repeatable:
            self.standing.proved(master.progress.bound, LEVELS[self._level][0])
