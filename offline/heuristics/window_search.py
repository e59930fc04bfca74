"""Ruin and recreate on the whole instance, in windows of time and without prices.

All jobs are known, each from its arrival on. The plan begins with insertion in order of density,
utility at the earliest completion per worker-slot and dominant share; then, again and again, some
jobs that run about one slot leave, and they and some that arrive about it come back in noisy order
of density, each where it completes first. The plan and its changes are those of recourse
(`oasis.online.recourse`), so a step costs the insertion of a few jobs, whatever the instance. A job
of several forms is a live job in each of them, of which one at most is planned.

References
----------
Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, Record breaking optimization results using the ruin
and recreate principle, J. Computational Physics 159(2), 2000.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from oasis.model.job import Job
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.online.recourse.live_job import LiveJob, grid_of
from oasis.online.recourse.params import RecourseParams
from oasis.online.recourse.planner import keep_if_no_worse
from oasis.online.recourse.working_plan import WorkingPlan
from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution, PartialSolution, is_better
from offline.heuristics.params import WindowParams
from offline.model.arrays import OfflineArrays
from offline.state import Phase

# A better plan is verified after so many steps, not at once: verification costs as much as several.
STEPS_BETWEEN_OFFERS = 200

# Work of one insertion, in units of about a second, measured.
INSERTION_WORK, INSERTION_WORK_PER_SERVER = 3e-4, 8e-6


def insertion_work(arrays: OfflineArrays) -> float:
    """Work of inserting one job into a plan on this cluster."""
    servers = len(arrays.worker.capacity) + len(arrays.ps.capacity)
    return INSERTION_WORK + INSERTION_WORK_PER_SERVER * servers


@dataclass(frozen=True, slots=True)
class LiveForms:
    """A job in its forms that can be worth something.

    Parameters
    ----------
    forms : list of LiveJob
        At least one; one of them at most is planned.
    density : float
        Of the densest.
    """

    forms: list[LiveJob]
    density: float

    @property
    def job(self) -> Job:
        """The job, for what does not depend on its form."""
        return self.forms[0].job

    @property
    def planned(self) -> LiveJob | None:
        """The form that is planned, if any is."""
        return next((live for live in self.forms if live.schedule is not None), None)

    @property
    def value(self) -> float:
        """What the plan gains by the job."""
        return math.fsum(live.value for live in self.forms)

    def insert(self, plan: WorkingPlan) -> None:
        """Plan the form whose completion is worth most; of equals the earliest, or the first."""
        found = [(live, schedule) for live in self.forms if (schedule := plan.find(live))]
        if found:
            ends = [schedule.completion for _, schedule in found]
            plan.put(*found[ends.index(min(ends))])


class WindowSearch:
    """A search over plans of all jobs, which goes on where it stopped.

    Parameters
    ----------
    arrays : OfflineArrays
        The problem.
    best : BestSolution
        Where to start, and where better solutions go.
    rng : numpy.random.Generator
        Of all choices.
    params : WindowParams
        How much leaves and what is accepted.
    """

    def __init__(
        self,
        arrays: OfflineArrays,
        best: BestSolution,
        rng: np.random.Generator,
        params: WindowParams,
    ) -> None:
        self.arrays, self.best, self.rng, self.params = arrays, best, rng, params
        cluster, horizon, floor = arrays.cluster, arrays.horizon, params.min_utility_fraction
        steering = RecourseParams(discount=1.0, min_utility_fraction=floor)
        self._plan = WorkingPlan(cluster, horizon, steering)
        grid = grid_of(cluster)
        self._worthy: list[LiveForms] = []
        for keys in arrays.forms_of:
            # Each form is a job of its own here, which schedules call by its index.
            for index, key in enumerate(keys):
                one = arrays.forms[key]
                self._plan.live[key] = LiveJob.of(key, one, cluster, horizon, grid, floor, index)
            density = {key: self._plan.density(self._plan.live[key]) for key in keys}
            if max(density.values()) > 0:
                forms = [self._plan.live[key] for key in keys if density[key] > 0]
                self._worthy.append(LiveForms(forms, max(density.values())))
        self._work = insertion_work(arrays)

    def start(self, budget: Budget) -> None:
        """Insert by density, then search; do nothing if no time or nothing to gain is left."""
        if budget.passed or self.best.is_proven:
            return
        self.best.state.enter(Phase.DENSITY)
        self.insert_by_density(budget)
        self.best.state.enter(Phase.WINDOWS)
        self.search(budget, self.params.patience * len(self._worthy))

    def insert_by_density(self, budget: Budget) -> None:
        """Plan jobs from nothing, the densest first, until the budget is spent; offer the plan."""
        plan = self._plan
        before, mark = plan.standing, plan.mark
        for live in plan.planned():
            plan.remove(live)
        for job in sorted(self._worthy, key=lambda job: -job.density):
            if budget.passed:
                break
            charged = plan.insertions
            job.insert(plan)
            budget.charge(self._work * (plan.insertions - charged))
        keep_if_no_worse(plan, before, mark)
        self._offer(self._snapshot())

    def search(self, budget: Budget, patience: int | None = None) -> bool:
        """Search from the best solution until the budget or the bound is reached.

        Returns whether there is anything to try: a job that can be worth something.

        With `patience`, it also ends once that many steps have found nothing better. The
        temperature falls to 0 as the budget is spent; without a limit it is 0 throughout.
        """
        self._take_over()
        value = highest = self._plan.value
        found, steps, last = self._snapshot(), 0, 0
        while self._worthy and not (budget.passed or self.best.is_proven):
            if patience is not None and steps - last >= patience:
                break
            left = 0.0 if budget.limit is None else budget.left / max(budget.limit, 1e-300)
            value += self._step(self.params.temperature * highest * left, budget)
            steps += 1
            if is_better(value, highest):
                highest, found, last = value, self._snapshot(), steps
            if steps % STEPS_BETWEEN_OFFERS == 0:
                self._offer(found)
        self._offer(found)
        return bool(self._worthy)

    def _step(self, heat: float, budget: Budget) -> float:
        """Ruin and recreate once, and return by how much the value of the plan has changed."""
        plan, params = self._plan, self.params
        planned = [job for job in self._worthy if job.planned is not None]
        others = [job for job in self._worthy if job.planned is None]
        leaving, joining = self._chosen(planned, others)
        mark, before = plan.mark, plan.insertions
        lost = math.fsum(job.value for job in leaving)
        for live in (job.planned for job in leaving):
            assert live is not None
            plan.remove(live)
        back = leaving + joining
        noise = np.exp(self.rng.normal(0.0, params.noise, len(back)))
        keys = noise * [job.density for job in back]
        for at in np.argsort(-keys, kind="stable").tolist():
            back[at].insert(plan)
        budget.charge(self._work * (plan.insertions - before))
        gain = math.fsum(job.value for job in back) - lost
        if gain >= 0 or self.rng.random() < math.exp(gain / max(heat, 1e-300)):
            plan.keep()
            return gain
        plan.undo(mark)
        return 0.0

    def _chosen(
        self, planned: list[LiveForms], others: list[LiveForms]
    ) -> tuple[list[LiveForms], list[LiveForms]]:
        """Planned jobs that run about one slot, and others that arrive about it."""
        rng, params = self.rng, self.params
        pivot = others[int(rng.integers(len(others)))] if others else None
        slot = int(rng.integers(self.arrays.horizon))
        if pivot is not None:
            slot = pivot.job.arrival + int(rng.integers(params.spread))
        places = [live.schedule for job in planned if (live := job.planned) and live.schedule]
        starts, completions = np.array([(s.start, s.completion) for s in places]).reshape(-1, 2).T
        apart = np.maximum(0, np.maximum(starts - slot, slot - completions))
        apart = apart + rng.random(len(planned))
        late = np.abs(np.array([other.job.arrival for other in others]) - slot)
        late = late + params.spread * rng.random(len(others))
        return (
            self._nearest(planned, apart, params.most_leaving),
            self._nearest(others, late, params.most_joining),
        )

    def _nearest(
        self, jobs: Sequence[LiveForms], distance: FloatArray, most: int
    ) -> list[LiveForms]:
        number = min(len(jobs), int(self.rng.integers(1, most + 1)))
        return [jobs[at] for at in np.argsort(distance, kind="stable")[:number].tolist()]

    def _snapshot(self) -> dict[str, Schedule]:
        found = {}
        for keys in self.arrays.forms_of:
            for form, key in enumerate(keys):
                schedule = self._plan.live[key].schedule
                if schedule is not None:
                    found[schedule.job_id] = replace(schedule, form=form) if form else schedule
        return found

    def _offer(self, schedules: dict[str, Schedule]) -> None:
        self.best.offer(PartialSolution(self.arrays, schedules))

    def _take_over(self) -> None:
        """Make the best solution the plan, if it is better."""
        if not is_better(self.best.value, self._plan.value):
            return
        for live in self._plan.planned():
            self._plan.remove(live)
        worthy = {live.key: live for job in self._worthy for live in job.forms}
        for job, schedule in sorted(self.best.solution.schedules.items()):
            form = self.arrays.form_of(job, schedule)
            if form in worthy:
                self._plan.put(worthy[form], schedule)
        self._plan.keep()
