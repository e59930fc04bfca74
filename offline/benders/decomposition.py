"""The loop of the decomposition: masters in turn, with cuts and schedules in between.

Counts are fractions at first, which is a relaxation too: completions decide most of the bound.
While a master is solved, schedules are looked for, close to the plan before or to the best ones:
in a second process if there is one (`offline.benders.solve`), here otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pulp

from oasis.model.errors import SolverError
from oasis.solvers import Solution, Status, highs
from oasis.solvers.arrays import Limits
from oasis.solvers.budget import Budget
from oasis.solvers.lp import Relaxation
from oasis.solvers.running import RunningSolve
from offline.benders.master import CountModel
from offline.benders.primal import PlanLimits, PrimalHeuristic, close_plan
from offline.benders.replanning import Replanning
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution, DualValues
from offline.heuristics.recombination import Alternation
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import OfflineArrays
from offline.params import BendersParams
from offline.periods import PeriodBound
from offline.processes import Helper
from offline.state import Phase

FIRST_TURN = 3.0  # of a search, in seconds or units of work


class Parts(NamedTuple):
    """Objects shared by the masters and the search for schedules."""

    model: CountModel
    separation: Separation
    primal: PrimalHeuristic
    replanning: Replanning | None
    searches: Alternation
    best: BestSolution

    @classmethod
    def of(
        cls,
        arrays: OfflineArrays,
        duals: DualValues,
        best: BestSolution,
        windows: WindowSearch,
        rng: np.random.Generator,
        params: BendersParams,
    ) -> Parts:
        """Make the parts for a problem; `best` has the schedules to start from, `duals` prices."""
        model = CountModel(arrays, best.state.budget)
        separation = Separation(model)
        shared = model, separation, best, duals, rng
        primal = PrimalHeuristic(*shared)
        searches: list[tuple[Phase, Callable[[Budget], bool]]]
        searches = [(Phase.WINDOWS, windows.search)]
        replanning = None
        if model.size > params.whole_size:
            replanning = Replanning(model, separation, primal, best, duals, rng, params.span)
            searches.insert(0, (Phase.REPLANNING, replanning.search))
        turns = Alternation(searches, best, FIRST_TURN)
        return cls(model, separation, primal, replanning, turns, best)


# Cutting planes on the relaxation before any master: share of what is left, rounds over which the
# bound must fall, and by how much, relatively, to go on; the same share for periods.
ROOT_SHARE = 0.1
ROOT_ROUNDS = 4
ROOT_PROGRESS = 3e-4
PERIODS_SHARE = 0.15
# Shares of what is left for one master, and for schedules close to a plan.
MASTER_SHARE = 0.5
PRIMAL_SHARE = 0.4
# A master that lowers the bound by less than this share of the open interval ends its level.
SLOW = 0.01
# Share of the open interval at which the first master may stop, halved after each: early masters
# are there for their plans, whose cuts the next one has.
FIRST_GAP = 0.3
# With less than this share of the limit left, a master gets all of it.
LAST_SHARE = 0.6
# Share of what is left for cuts around the last plan; rounds of these over which the plan's value
# must fall; and by how much, relatively, to go on.
REFINE_SHARE = 0.2
REFINE_ROUNDS = 6
REFINE_PROGRESS = 1e-5
# No schedules close to a plan with less than this share of the limit left: other searches find
# more.
PRIMAL_UNTIL = 0.2
# Share of what is left for whole counts before any other master, and most seconds for that, or
# units of work.
WHOLE_SHARE = 0.3
WHOLE_LIMIT = 60.0

REFUTED = 1e-5  # relative; an allowance for what HiGHS forgives in rows
SAFETY = 1e-9  # relative, on top of a relaxation's bound, for rounding in sums
UNFINISHED = Solution(Status.INTERRUPTED, None, math.inf, math.inf, {})


class MasterLevel(NamedTuple):
    """Integrality of a master: PuLP's categories of worker and parameter-server counts."""

    phase: Phase
    workers: str
    ps: str


LEVELS = (
    MasterLevel(Phase.MASTER_IN_FRACTIONS, pulp.LpContinuous, pulp.LpContinuous),
    MasterLevel(Phase.MASTER_WITH_WHOLE_PS, pulp.LpContinuous, pulp.LpInteger),
    MasterLevel(Phase.MASTER_IN_WHOLE_COUNTS, pulp.LpInteger, pulp.LpInteger),
)


class Decomposition:
    """A solve by Benders decomposition: masters in turn, cuts, and searches for schedules."""

    def __init__(self, parts: Parts, params: BendersParams, stop: Budget) -> None:
        self.parts, self.params, self.budget = parts, params, stop
        self.model, self.separation, self.primal = parts.model, parts.separation, parts.primal
        self.best, self.replanning = parts.best, parts.replanning
        self.state = self.best.state
        self._helper: Helper | None = None
        self._level = 0
        self._tolerance = FIRST_GAP
        self._near: Limits = {}
        self._least_bounds = [math.inf] * len(LEVELS)

    @property
    def is_done(self) -> bool:
        """Whether the budget is spent or the optimum is proven."""
        return self.budget.passed or self.best.is_proven

    def run(self, helper: Helper | None = None) -> Status:
        """Solve and return why it ended; `helper` is a second process that finds schedules."""
        self._helper = helper
        if helper is not None:
            self.separation.share(helper.partner)
        # A small problem is tried whole, a long one in periods; between them the relaxation says
        # where jobs complete, which is the first neighbourhood.
        if self.replanning is None:
            self.cut_the_relaxation()
            self.try_whole()
        elif not self.replanning.is_whole:
            self.bound_by_periods()
        else:
            relaxed = self.cut_the_relaxation()
            around = self.model.around(relaxed, self.params.window)
            self.replanning.begin(self.model.completing(around))
        while not self.is_done:
            self.cycle()
        return Status.OPTIMAL if self.best.is_proven else self.budget.status

    @property
    def _is_helped(self) -> bool:
        """Whether another process searches for schedules."""
        return self._helper is not None and self._helper.is_working

    def cut_the_relaxation(self) -> Mapping[str, float]:
        """Add violated cuts to the master's relaxation; return its last solution, or {}."""
        self.state.enter(Phase.CUTTING_PLANES)
        budget = self.budget.share(ROOT_SHARE)
        relaxation = Relaxation(self.model.read())
        bounds: list[float] = []
        values: Mapping[str, float] = {}
        while not (budget.passed or self.best.is_proven):
            solution = relaxation.solve(budget)
            if solution is None:
                break
            values = solution.values
            self.state.record_bound(solution.bound * (1 + SAFETY))
            bounds.append(solution.bound)
            if len(bounds) > ROOT_ROUNDS:
                progress = bounds[-1 - ROOT_ROUNDS] - bounds[-1]
                # Cutting planes tail off: the same time in a master then gains more.
                if progress < ROOT_PROGRESS * bounds[-1]:
                    break
            rows = self.separation.cut(values, budget)
            if not rows:
                break
            relaxation.add(self.model.rows(rows))
        return values

    def bound_by_periods(self) -> None:
        """Lower the bound of a long horizon by rounds over periods, until they do not pay."""
        periods = PeriodBound(self.model, self.separation, self.best, self.params.period)
        periods.relax(self.budget.share(PERIODS_SHARE))
        while not (self.is_done or periods.is_settled):
            before = self.budget.elapsed
            periods.round(self.budget)
            if not self._is_helped:
                self._take_a_turn(self.budget.within(self.budget.elapsed - before))

    def cycle(self) -> None:
        """Solve one master, search for schedules meanwhile, and add cuts that its plan violates."""
        is_last_level = self._level == len(LEVELS) - 1
        before = self.state.bound
        solution = self._master_and_meanwhile(0.0 if is_last_level else self._tolerance)
        if self.is_done or not solution.values:
            return
        if is_last_level:
            self._place(solution, self.budget.share(PRIMAL_SHARE))
            return
        self._tolerance /= 2
        plan = self.model.completions(solution.values)
        self._near = self.model.near(plan, self.params.window)
        refining = self.budget.share(REFINE_SHARE)
        # Only a plan that breaks no cut in fractions is worth whole counts.
        cuts = self.refine(solution, refining) or self.search_near_plan()
        lowered = before - self.state.bound
        is_slow = lowered < SLOW * (before - self.best.value)
        if cuts and not (is_slow and solution.status is Status.OPTIMAL):
            return
        if solution.status is Status.OPTIMAL:
            self._level += 1
        self._tolerance = 0.0

    def _master_and_meanwhile(self, tolerance: float) -> Solution:
        """Solve a master (`tolerance` as in `_start`) beside searches; return its solution."""
        limit = self.budget.limit or 0.0
        is_last = self.budget.left < LAST_SHARE * limit
        part = self.budget.share(1.0 if is_last else MASTER_SHARE)
        with self._start(tolerance, part) as master:
            while self._is_helped and not (self.is_done or master.wait()):
                self._note(master)
            if self._is_helped:
                return self._finish(master)
            if self._near and self.budget.left > PRIMAL_UNTIL * limit:
                self.search_near_plan()
            pays = True
            while (pays or self._is_awaited(master)) and not self.is_done:
                self._note(master)
                pays = self.look_around() > self.params.pays
            before = self.budget.elapsed
            solution = self._finish(master)
        # Where work counts, no search ran beside the master: it gets as much work now.
        if self.budget.is_repeatable and self.replanning is not None:
            self._take_a_turn(self.budget.within(self.budget.elapsed - before))
        return solution

    def _take_a_turn(self, budget: Budget) -> None:
        """Search for schedules until `budget` is spent, to make up for none during a master."""
        while not (budget.passed or self.is_done):
            self.look_around()

    def search_near_plan(self) -> int:
        """Look for schedules close to the last plan; return the number of cuts found on the way."""
        if self._is_helped or self.replanning is not None:
            return 0
        near, self._near = self._near, {}
        self.state.enter(Phase.PLANS)
        budget = self.budget.share(PRIMAL_SHARE)
        return self.primal.search(near, budget)

    def try_whole(self) -> None:
        """Solve masters in whole counts and place their plans, within a share of the budget."""
        budget = self.budget.share(WHOLE_SHARE).within(WHOLE_LIMIT)
        self._level = len(LEVELS) - 1
        while not (budget.passed or self.is_done):
            with self._start(0.0, budget) as master:
                solution = self._finish(master)
            if not self.is_done and solution.values:
                self._place(solution, budget)
        self._level = 0

    def _place(self, solution: Solution, budget: Budget) -> None:
        """Place a master's plan of whole counts; cut off or forbid counts that do not fit."""
        plan = self.model.schedules_of(solution.values)
        slots = range(self.model.arrays.horizon)
        misfits = self.primal.place(plan, budget, math.inf)
        for misfit in misfits:
            group, counts = misfit.group, misfit.counts
            is_cut = self.separation.cut_off(group, counts, slots, budget)
            # Before the optimum is proven another plan comes anyway; proofs of misfits are
            # expensive.
            if not is_cut and solution.status is Status.OPTIMAL:
                self.separation.forbid(group, counts, misfit.slots, budget)
        if misfits and self.replanning is not None:
            self.primal.place(plan, budget)

    def look_around(self) -> float:
        """Search for better schedules once; return the share of the gap that this closed."""
        self.best.catch_up()
        before = self.best.value
        self.parts.searches.search(self.budget.within(self.params.patch_limit))
        return (self.best.value - before) / max(self.state.bound - before, 1e-300)

    def refine(self, solution: Solution, budget: Budget) -> int:
        """Solve for plans in fractions near the last one, adding cuts; return how many cuts."""
        self.state.enter(Phase.CUTS_AROUND_PLAN)
        self.model.require(pulp.LpContinuous, pulp.LpContinuous)
        bounds = [math.inf] * REFINE_ROUNDS
        cuts = 0
        while not budget.passed:
            rows = self.separation.cut(solution.values, budget)
            cuts += len(rows)
            least = (1 - REFINE_PROGRESS) * bounds[-REFINE_ROUNDS]
            if not rows or bounds[-1] >= least < math.inf:
                break
            solution = close_plan(self.model, self._near, budget.within(PlanLimits().limit))
            bounds.append(solution.bound)
        return cuts

    def _start(self, tolerance: float, budget: Budget) -> RunningSolve:
        """Start the master as a MILP; it may stop at the share `tolerance` of the open gap."""
        level = LEVELS[self._level]
        self.state.enter(level.phase)
        self.best.catch_up()
        self.model.require(level.workers, level.ps)
        return highs.start(
            self.model.read(),
            budget=budget,
            # In utility: an early master only has to find a plan whose cuts are new.
            gap=tolerance * max(0.0, self.state.bound - self.best.value),
            warm_start=self.model.values_of(self.best.solution.by_id),
            is_relaxation=True,
        )

    def _finish(self, master: RunningSolve) -> Solution:
        """Await the master, or stop it if the solve is over; record and return the outcome."""
        self.state.enter(LEVELS[self._level].phase)
        is_stopped = self.is_done
        if is_stopped:
            master.stop()
            if self.budget.is_repeatable:  # how far it came depends on the machine
                return UNFINISHED
        solution = master.finish(self.state.record_solver_bound)
        self._check(solution)
        self.state.record_bound(solution.bound)
        if solution.status is Status.INTERRUPTED and not is_stopped:
            raise KeyboardInterrupt
        return solution

    def _check(self, solution: Solution) -> None:
        """Raise `SolverError` if a plan is worth more than an earlier master's proven bound."""
        least = min(self._least_bounds[: self._level + 1])
        if solution.objective is not None and solution.objective > least * (1 + REFUTED):
            text = f"a plan is worth {solution.objective:.12g}"
            raise SolverError(f"HiGHS proved {least:.12g} for a master of which {text}")
        self._least_bounds[self._level] = min(self._least_bounds[self._level], solution.bound)

    def _is_awaited(self, master: RunningSolve) -> bool:
        """Return whether to search until the master ends; never where work is limited."""
        return not (master.is_done or self.budget.is_repeatable)

    def _note(self, master: RunningSolve) -> None:
        """Record the bound of a running master, unless the solve is limited in work."""
        if master.progress is not None and not self.budget.is_repeatable:
            self.state.record_bound(master.progress.bound, LEVELS[self._level].phase)
