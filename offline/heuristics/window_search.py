"""Ruin and recreate on the whole instance, in windows of time and without prices.

All jobs are known, each from its arrival on. The plan begins with insertion in order of density,
utility at the earliest completion per worker-slot and dominant share; then, again and again, some
jobs that run about one slot leave, and they and some that arrive about it come back in noisy order
of density, each where it completes first. The plan and its changes are those of recourse
(`oasis.online.recourse`), so a step costs the insertion of a few jobs, whatever the instance.

References
----------
Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, Record breaking optimization results using the ruin
and recreate principle, J. Computational Physics 159(2), 2000.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.online.recourse.live_job import LiveJob, grid_of
from oasis.online.recourse.params import RecourseParams
from oasis.online.recourse.planner import start_over
from oasis.online.recourse.working_plan import WorkingPlan
from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution, PartialSolution, is_better
from offline.model.arrays import OfflineArrays
from offline.state import Phase

# Share of the total utility that a step may lose at first, by a factor of e less likely than one
# that loses nothing.
TEMPERATURE = 2e-4
# Most jobs that leave in a step, and most of the others that try to join: drawn from 1 to this.
MOST_LEAVING = MOST_JOINING = 10
NOISE = 0.5  # deviation of the normal variable whose exponential multiplies a job's density
# A window lies at the arrival of a job that does not run, or up to one slot less than this later;
# jobs that join arrive within the same distance of it.
SPREAD = 6
LEAST_UTILITY = 1e-3  # of a job's best: completions worth less are not looked for
PATIENCE = 10  # steps for each job without a better plan, after which the first search ends
# A better plan is verified after so many steps, not at once: verification costs as much as several.
STEPS_BETWEEN_OFFERS = 200

# Work of one insertion, in units of about a second, measured.
INSERTION_WORK, INSERTION_WORK_PER_SERVER = 3e-4, 8e-6

PLAN_SECONDS_PER_PRICE = 5e-8  # of an empty plan, measured


def insertion_work(arrays: OfflineArrays) -> float:
    """Work of inserting one job into a plan on this cluster."""
    servers = len(arrays.worker.capacity) + len(arrays.ps.capacity)
    return INSERTION_WORK + INSERTION_WORK_PER_SERVER * servers


class WindowSearch:
    """Ruin and recreate over plans of all jobs; a later `search` goes on with the plan."""

    def __init__(
        self,
        arrays: OfflineArrays,
        best: BestSolution,
        rng: np.random.Generator,
    ) -> None:
        self.arrays, self.best, self.rng = arrays, best, rng
        budget = best.state.budget
        budget.need(PLAN_SECONDS_PER_PRICE * arrays.prices, "a plan to search from")
        cluster, horizon, floor = arrays.cluster, arrays.horizon, LEAST_UTILITY
        # Offline, utility at the end of the horizon counts as much as now.
        steering = RecourseParams(discount=1.0, min_utility_fraction=floor)
        self._plan = WorkingPlan(cluster, horizon, steering)
        grid = grid_of(cluster)
        for key, job in enumerate(budget.over(arrays.jobs)):
            self._plan.live[key] = LiveJob.of(key, job, cluster, horizon, grid, floor)
        self._density = {live.key: self._plan.density(live) for live in self._plan.live.values()}
        self._worthy = [live for live in self._plan.live.values() if self._density[live.key] > 0]
        self._work = insertion_work(arrays)

    def start(self, budget: Budget) -> None:
        """Insert by density, then search; do nothing if no time or nothing to gain is left."""
        if budget.passed or self.best.is_proven:
            return
        self.best.state.enter(Phase.DENSITY)
        self.insert_by_density(budget)
        self.best.state.enter(Phase.WINDOWS)
        self.search(budget, PATIENCE * len(self._worthy))

    def insert_by_density(self, budget: Budget) -> None:
        """Plan jobs from nothing, the densest first, until the budget is spent; offer the plan."""
        charged = self._plan.insertions

        def is_over() -> bool:
            nonlocal charged
            budget.charge(self._work * (self._plan.insertions - charged))
            charged = self._plan.insertions
            return budget.passed

        start_over(self._plan, is_over)
        budget.charge(self._work * (self._plan.insertions - charged))
        self._offer(self._snapshot())

    def search(self, budget: Budget, patience: int | None = None) -> bool:
        """Improve the best solution until a limit, or `patience` idle steps; False without jobs."""
        self._take_over()
        value = highest = self._plan.value
        best, steps, last = self._snapshot(), 0, 0
        while self._worthy and not (budget.passed or self.best.is_proven):
            if patience is not None and steps - last >= patience:
                break
            share_left = 0.0 if budget.limit is None else budget.left / max(budget.limit, 1e-300)
            value += self._step(TEMPERATURE * highest * share_left, budget)
            steps += 1
            if is_better(value, highest):
                highest, best, last = value, self._snapshot(), steps
            if steps % STEPS_BETWEEN_OFFERS == 0:
                self._offer(best)
        self._offer(best)
        return bool(self._worthy)

    def _step(self, heat: float, budget: Budget) -> float:
        """Ruin and recreate once; return the change in value. `heat`: utility to lose at ease."""
        plan = self._plan
        planned = [live for live in self._worthy if live.schedule is not None]
        others = [live for live in self._worthy if live.schedule is None]
        leaving, joining = self._choose(planned, others)
        mark, before = plan.mark, plan.insertions
        lost = math.fsum(live.value for live in leaving)
        for live in leaving:
            plan.remove(live)
        back = leaving + joining
        noise = np.exp(self.rng.normal(0.0, NOISE, len(back)))
        keys = noise * [self._density[live.key] for live in back]
        for at in np.argsort(-keys, kind="stable").tolist():
            plan.insert(back[at])
        budget.charge(self._work * (plan.insertions - before))
        gain = math.fsum(live.value for live in back) - lost
        # Simulated annealing: small losses early on lead out of local optima.
        if gain >= 0 or self.rng.random() < math.exp(gain / max(heat, 1e-300)):
            plan.keep()
            return gain
        plan.undo(mark)
        return 0.0

    def _choose(
        self, planned: list[LiveJob], others: list[LiveJob]
    ) -> tuple[list[LiveJob], list[LiveJob]]:
        """Draw jobs to remove, which run near a slot, and jobs to add, which arrive near it."""
        rng = self.rng
        # A window where a job is left out is one in which something can be gained.
        pivot = others[int(rng.integers(len(others)))] if others else None
        slot = int(rng.integers(self.arrays.horizon))
        if pivot is not None:
            slot = pivot.job.arrival + int(rng.integers(SPREAD))
        places = [live.schedule for live in planned if live.schedule is not None]
        starts, completions = np.array([(s.start, s.completion) for s in places]).reshape(-1, 2).T
        apart = np.maximum(0, np.maximum(starts - slot, slot - completions))
        # Equally near jobs come in random order.
        apart = apart + rng.random(len(planned))
        late = np.abs(np.array([live.job.arrival for live in others]) - slot)
        late = late + SPREAD * rng.random(len(others))
        return (
            self._nearest(planned, apart, MOST_LEAVING),
            self._nearest(others, late, MOST_JOINING),
        )

    def _nearest(self, jobs: Sequence[LiveJob], distance: FloatArray, most: int) -> list[LiveJob]:
        number = min(len(jobs), int(self.rng.integers(1, most + 1)))
        return [jobs[at] for at in np.argsort(distance, kind="stable")[:number].tolist()]

    def _snapshot(self) -> dict[str, Schedule]:
        planned = self._plan.planned()
        return {live.job.id: live.schedule for live in planned if live.schedule is not None}

    def _offer(self, schedules: dict[str, Schedule]) -> None:
        self.best.offer(PartialSolution(self.arrays, schedules))

    def _take_over(self) -> None:
        """Replace the plan by the best solution, if that is better."""
        if not is_better(self.best.value, self._plan.value):
            return
        known = self.best.solution.schedules
        for live in self._plan.planned():
            self._plan.remove(live)
        for live in self._worthy:
            if live.key in known:
                self._plan.put(live, known[live.key])
        self._plan.keep()
