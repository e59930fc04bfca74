"""Large neighbourhood search over counts: most completions are fixed, the master replans the rest.

Where the completions of most jobs stay, the master finds the best counts of all of them within
seconds, however full the servers are. A neighbourhood frees the completions of a few jobs; the
others may complete earlier or leave, but not complete later, and the counts of all may change in
every slot. Over a long horizon only a window of it is open: counts before and after it stay, and
so do jobs that complete after it or began before it.

A plan in fractions says which completions are worth a try, cuts around it say so more exactly. Then
schedules walk towards that plan: of the plans in whole numbers that gain enough, the one that
changes the fewest counts is placed slot by slot, because most of it has its place already.

References
----------
Shaw, Using constraint programming and local search methods to solve vehicle routing problems,
CP 1998.
Fischetti and Monaci, Proximity search for 0-1 mixed-integer convex programming, J. Heuristics
20(6), 2014: the walk.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count

import numpy as np
import pulp

from oasis.model.schedule import SLOT
from oasis.solvers import Solution, Status
from oasis.solvers.arrays import Limits, RowArrays, narrowed
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.primal import PlanLimits, PrimalHeuristic, close_plan
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution, DualValues

# For one try, of a plan in fractions, cuts and plans in whole numbers; seconds or units of work.
LIMIT = 60.0
PLAN_LIMIT = 5.0  # for the plan in fractions: what takes longer frees too many jobs
LEAST_TRIES = 3  # plans in fractions of one turn
# Jobs whose completion is free in the first neighbourhood, in the smallest, and how many more are
# free after a plan that was found or refuted.
FIRST_JOBS = 10
FEWEST_JOBS = 4
GROWTH = 1
INVITED_SHARE = 0.35  # of the free jobs that do not run yet
# A neighbourhood lies at the arrival of a job that does not run yet, or up to one slot less than
# this later.
SPREAD = 6
RANDOM_SHARE = 0.3  # probability that movable jobs are drawn at random; else they overlap in time
# Shares of the difference of bound and incumbent: that a plan must be worth more, and at which a
# plan in fractions is good enough.
LEAST_GAIN = 0.01
GAP = 0.05
WINDOW = 2  # slots that a job may complete later than in the plan in fractions
ROUNDS = 6  # of cuts around a plan, at most
FAILURES = 2  # steps that led to no better schedules, which end the walk to a plan
WHOLE_PLANS = PlanLimits(limit=2.0, patience=1, slots_at_once=25, gap=0.01)  # many slots together
# Fewer jobs are free after a plan that was neither found nor refuted; one more after one that was.
SHRINKAGE = 2
# Share of what a plan in fractions gains that the first step towards it must gain, and any step at
# most; and the factor on it after a step that led to better schedules.
AMBITION = 0.25
MOST_AMBITION = 0.6
BOLDER = 1.5
# Most seconds or units of work for the cuts around a plan.
CUTS_LIMIT = 8.0


class Replanning:
    """Large neighbourhood search over plans; it adapts the number of jobs that it frees."""

    def __init__(
        self,
        model: CountModel,
        separation: Separation,
        primal: PrimalHeuristic,
        best: BestSolution,
        duals: DualValues,
        rng: np.random.Generator,
        span: int,
    ) -> None:
        self.model, self.separation, self.primal = model, separation, primal
        self.best, self.duals, self.rng, self.span = best, duals, rng, span
        self._size = FIRST_JOBS
        self._is_new = False  # the neighbourhood has not been searched
        self._near: Limits = {}  # of the neighbourhood
        self._slots = range(model.arrays.horizon)  # whose counts may change

    def begin(self, near: Limits, slots: range | None = None) -> None:
        """Set the next neighbourhood: bounds `near`, counts fixed outside of `slots`, if given."""
        self._is_new = True
        self._slots = range(self.model.arrays.horizon) if slots is None else slots
        self._near = narrowed(near, self._outside())

    def search(self, budget: Budget) -> bool:
        """Improve the best schedules until the budget or bound is reached; False without jobs."""
        solve = self.best.state.budget
        for number in count():
            has_begun = 0 < number < LEAST_TRIES
            is_spent = budget.passed and not has_begun
            if self._is_over(solve) or is_spent or not self.model.jobs:
                break
            if not self._is_new:
                free, slots = self._choose()
                self.begin(self._limits_around(free, slots), slots)
            self._is_new = False
            # Of the solve's budget, not of this turn's: a try that is cut short was for nothing.
            self._try(solve.within(LIMIT))
        return bool(self.model.jobs)

    def _try(self, budget: Budget) -> None:
        """Plan in fractions, refine that plan, and look for schedules close to it."""
        known, gain = self.best.value, self._gain
        rows = [self.model.worth(known + gain)]
        # Fractions first: they are quick, and a neighbourhood whose relaxation gains nothing is
        # left.
        solution = self._plan(self._near, rows, budget, GAP * self._difference)
        self._adapt(solution)
        if not solution.values:
            return
        plan = self.model.completions(solution.values)
        near = narrowed(self.model.near(plan, WINDOW), self._outside())
        value = self._refine(solution, near, rows, budget)
        if value is not None and not self._is_over(budget):
            self._walk(plan, value, budget)

    def _walk(self, plan: Mapping[int, int], value: float, budget: Budget) -> None:
        """Look for better schedules in steps towards a plan worth `value`."""
        ambition, failures = AMBITION, 0
        while failures < FAILURES and not self._is_over(budget):
            before = self.best.value
            if value - before < self._gain:
                break
            near = self.model.near(plan, WINDOW, self._completions())
            self.place(narrowed(near, self._outside()), budget, ambition * (value - before))
            if self.best.value > before:
                # Large steps need plans far from what is known to fit; small ones gain little.
                ambition = min(MOST_AMBITION, ambition * BOLDER)
            else:
                ambition /= 2
                failures += 1

    def _is_over(self, budget: Budget) -> bool:
        """Return whether the budget is spent or the best schedules are proven optimal."""
        return budget.passed or self.best.is_proven

    def _completions(self) -> dict[int, int]:
        """Completions, by form, of best schedules that do not lie within the open slots."""
        return {
            form: schedule.completion
            for form, schedule in self.best.solution.by_form.items()
            if not np.isin(schedule.workers[:, SLOT], self._slots).all()
        }

    def _outside(self) -> Limits:
        """Variable bounds that fix the counts outside of the open slots to the best schedules."""
        return self.model.fixed_outside(self.model.values_of(self.best.solution.by_id), self._slots)

    def place(self, near: Limits, budget: Budget, gain: float) -> None:
        """Search whole plans within bounds `near` for schedules that gain at least `gain`."""
        gain = max(self._gain, gain)
        self.primal.search(near, budget, gain, WHOLE_PLANS, self._slots)

    @property
    def is_whole(self) -> bool:
        """Whether each neighbourhood covers the whole horizon."""
        return self.span >= self.model.arrays.horizon

    @property
    def _difference(self) -> float:
        """The difference between the bound and the value of the best schedules."""
        return max(0.0, self.best.state.bound - self.best.value)

    @property
    def _gain(self) -> float:
        """Utility by which a plan must at least exceed the best schedules."""
        return LEAST_GAIN * self._difference

    def _plan(
        self,
        near: Limits,
        rows: Sequence[RowArrays],
        budget: Budget,
        gap: float = 0.0,
    ) -> Solution:
        """Return the best plan in fractions within bounds `near` and `rows`."""
        self.model.require(pulp.LpContinuous, pulp.LpContinuous)
        return close_plan(self.model, near, budget.within(PLAN_LIMIT), rows, gap)

    def _adapt(self, solution: Solution) -> None:
        """Free more jobs next time if a plan was found or refuted, fewer otherwise."""
        if solution.values or solution.status is Status.INFEASIBLE:
            # A neighbourhood should be as large as can just be solved.
            self._size += GROWTH
        else:
            self._size = max(FEWEST_JOBS, self._size - SHRINKAGE)

    def _refine(
        self,
        solution: Solution,
        near: Limits,
        rows: Sequence[RowArrays],
        budget: Budget,
    ) -> float | None:
        """Add violated cuts near a plan; return the last plan's value, None if there is none."""
        value = solution.objective
        budget = budget.within(CUTS_LIMIT)
        for _ in range(ROUNDS):
            if budget.passed or not self.separation.cut(solution.values, budget, self._slots):
                break
            solution = self._plan(near, rows, budget)
            if not solution.values:
                return value if budget.passed else None
            value = solution.objective
        return value

    def _window(self, slot: float) -> range:
        """Return `span` slots about the given one, or the whole horizon if that is shorter."""
        horizon, span = self.model.arrays.horizon, self.span
        # A third before the slot, the rest after it: a job runs from its arrival on.
        first = min(max(0, int(slot) - span // 3), max(0, horizon - span))
        return range(first, min(horizon, first + span))

    def _limits_around(self, free: Collection[int], slots: range) -> Limits:
        """Return bounds: `free` jobs may end in the window, others by their end now or never."""
        running, completing = self.best.solution.by_form, {}
        known = self.best.solution.schedules.items()
        # Their work after the window is fixed, so they cannot complete within it.
        late = {k for k, schedule in known if schedule.completion >= slots.stop}
        for c in self.model.jobs:
            schedule = running.get(c.index)
            if c.owner in free and c.owner not in late:
                completing[c.index] = range(slots.stop)
            elif schedule is not None:
                now = schedule.completion
                completing[c.index] = range(now if c.owner in late else 0, now + 1)
        return self.model.completing(completing)

    def _choose(self) -> tuple[set[int], range]:
        """Draw the jobs to free, by index, and the slots whose counts may change."""
        rng, current = self.rng, self.best.solution
        jobs = current.arrays.jobs
        owners = dict.fromkeys(c.owner for c in self.model.jobs)
        outside = [k for k in owners if k not in current.schedules]
        invited: list[int] = []
        slot = float(rng.integers(current.arrays.horizon))
        if outside:
            chances = self.duals.chances[outside]
            # A gain needs a job that is left out, so the window is put where a valuable one
            # arrives.
            pivot = outside[int(rng.choice(len(outside), p=chances / chances.sum()))]
            slot = jobs[pivot].arrival + float(rng.integers(SPREAD))
            near = [k for k in outside if jobs[k].arrival in self._window(slot) and k != pivot]
            chances = self.duals.chances[near]
            count = min(len(near), max(1, round(INVITED_SHARE * self._size)) - 1)
            odds = chances / chances.sum() if near else None
            picked = rng.choice(len(near), count, replace=False, p=odds) if count else near[:0]
            invited = [pivot, *(near[int(k)] for k in picked)]
        slots = self._window(slot)
        known = sorted(current.schedules.items())
        inside = [k for k, schedule in known if schedule.completion in slots]
        distance = current.distances(inside, slot)
        if rng.random() < RANDOM_SHARE:
            distance = np.zeros(len(inside))  # now and then others than those that overlap in time
        order = np.lexsort((rng.random(len(inside)), distance))
        count = max(1, self._size - len(invited))
        return {*invited, *(inside[k] for k in order[:count].tolist())}, slots
