"""Bounds on the free capacity of all servers together, and searches that end by them."""

from __future__ import annotations

import numpy as np
import pytest

import oasis
from oasis.model.job import Job
from oasis.model.rounding import floor, floor_counts, payoff_noise
from oasis.model.schedule import Schedule
from oasis.online.dp import smallest_cost
from oasis.online.recourse.params import RecourseParams
from oasis.online.recourse.working_plan import WorkingPlan
from oasis.online.search import Search


def crowded(seed: int) -> tuple[oasis.Instance, WorkingPlan, list[tuple[Job, Schedule]]]:
    """A plan in which jobs were put at the earliest completion, and some taken out again."""
    instance = oasis.generate(
        "calibrated", jobs=30, worker_servers=20, ps_servers=20, horizon=25, seed=seed
    )
    plan = WorkingPlan(instance.cluster, instance.horizon, RecourseParams())
    held = []
    for job in instance.jobs:
        search = Search(job, plan.ledger)
        split = search.earliest(instance.horizon - 1) if search.soonest() is not None else None
        if split is not None:
            held.append((job, search.schedule(split)))
            plan.ledger.commit(*held[-1], None)
    for job, schedule in held[::3]:
        plan.ledger.release(job, schedule, None)
    return instance, plan, held


@pytest.mark.parametrize("seed", range(6))
def test_no_more_fits_than_is_quickly_known(seed):
    instance, plan, held = crowded(seed)
    assert len(held) >= 3
    for job in instance.jobs:
        search = Search(job, plan.ledger)
        starts, _ = plan.ledger.runs(job.arrival, instance.horizon)
        fit, _, _ = search._free_capacity(starts)
        assert (search._at_most(starts) >= fit).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_count_of_what_is_spare_follows_commits_rolls_and_lost_servers(seed):
    instance, plan, _ = crowded(seed)
    ledger = plan.ledger
    ledger.roll(3, None)
    ledger.worker.set_capacity(0, np.zeros(len(instance.cluster.resources)))
    ledger.roll(5, None)
    for group in (ledger.worker, ledger.ps):
        kept = group.spare
        assert kept is not None
        group.count_spare()
        assert group.spare is not None
        totals = group.capacity @ group.copies
        assert (np.abs(kept - group.spare) <= 1e-9 * totals[:, None]).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_earliest_completion_is_what_the_whole_search_finds(seed):
    instance, plan, _ = crowded(seed)
    found = 0
    for job in instance.jobs:
        search = Search(job, plan.ledger)
        whole, soonest = search.best(), search.soonest()
        if whole is None:
            assert soonest is None or search.earliest(instance.horizon - 1) is None
            continue
        assert soonest is not None
        assert soonest - job.arrival <= whole.completion  # a split counts slots from the arrival
        split = search.earliest(instance.horizon - 1)
        assert split is not None
        assert split.completion == whole.completion
        # At prices next to nothing, costs that differ by what rounds in the utility are equal: of
        # the whole table of costs, too.
        rows, lengths = search._rows_that_count
        slots = np.clip(whole.completion + 1 - lengths.cumsum() + lengths, 0, lengths)
        noise = payoff_noise(search.most_worth)
        cheapest = smallest_cost(rows[slots > 0], slots[slots > 0], search.work, noise)
        assert cheapest is not None
        assert split.counts.tolist() == cheapest.counts.tolist()
        cost = float(search.utility[whole.completion]) - whole.payoff
        assert -split.payoff == pytest.approx(cost, rel=1e-9, abs=noise)
        if whole.completion > 0:
            assert search.earliest(job.arrival + whole.completion - 1) is None
        found += 1
    assert found >= 3


def test_counts_are_rounded_down_as_ever():
    given = np.array([-3.2, -1e-12, 0.0, 0.9999999999, 0.99, 1.0, 2.9999999999, 1e9, 3e9 + 0.7])
    expected = np.maximum(floor(given), 0.0)
    assert floor_counts(given.copy()).tolist() == expected.tolist()
