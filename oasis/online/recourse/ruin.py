"""Better plans: from nothing in order of density, and by ruin and recreate."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from oasis.online.recourse.live_job import LiveJob
from oasis.online.recourse.working_plan import WorkingPlan


def by_density(plan: WorkingPlan, jobs: Iterable[LiveJob]) -> list[LiveJob]:
    """Promised jobs first, then the densest; equals in order of arrival."""
    return sorted(jobs, key=lambda live: (live.promise is None, -plan.density(live), live.key))


def start_over(plan: WorkingPlan, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Plan all live jobs anew in order of density; undone if that is worse.

    Once `is_over` says so, which is asked before each job, the others stay unplanned.
    """
    before, mark = plan.standing, plan.mark
    for live in plan.planned():
        plan.remove(live)
    for live in by_density(plan, plan.live.values()):
        if is_over():
            break
        plan.insert(live)
    return keep_if_no_worse(plan, before, mark)


def ruin_and_recreate(plan: WorkingPlan, rng: np.random.Generator) -> bool:
    """Some planned jobs leave and come back with some others, in noisy order of density.

    Undone if the plan is then worse. Plans as good are kept: they lead on to others.
    """
    params = plan.params
    planned, others = plan.planned(), plan.unplanned()
    before, mark = plan.standing, plan.mark
    leaving = draw(planned, params.most_leaving, rng)
    joining = draw(others, params.most_joining, rng)
    for live in leaving:
        plan.remove(live)
    back = leaving + joining
    noise = np.exp(rng.normal(0.0, params.noise, len(back))).tolist()
    keys = {live.key: plan.density(live) * factor for live, factor in zip(back, noise, strict=True)}
    for live in sorted(back, key=lambda live: (-keys[live.key], live.key)):
        plan.insert(live)
    return keep_if_no_worse(plan, before, mark)


def keep_if_no_worse(plan: WorkingPlan, before: tuple[int, float], mark: int) -> bool:
    """Undo the changes since `mark` if the plan is worse than it was; whether they stay."""
    if plan.standing >= before:
        return True
    plan.undo(mark)
    return False


def draw(jobs: list[LiveJob], most: int, rng: np.random.Generator) -> list[LiveJob]:
    """One to `most` of `jobs` at random."""
    if not jobs:
        return []
    number = min(len(jobs), int(rng.integers(1, most + 1)))
    return [jobs[at] for at in rng.choice(len(jobs), number, replace=False).tolist()]
