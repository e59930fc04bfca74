"""The working plan of recourse: changes and their undoing, and what makes one plan better."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.cluster import Server
from oasis.model.job import Job
from oasis.online.prices import PriceBounds
from oasis.online.recourse.live_job import LiveJob, grid_of
from oasis.online.recourse.params import RecourseParams
from oasis.online.recourse.planner import (
    ruin_and_recreate,
    start_over,
)
from oasis.online.recourse.working_plan import NEXT_TO_NOTHING, WorkingPlan, prefer_early
from oasis.online.search import Search
from tests import builders
from tests.strategies import fewer

CLUSTER = builders.cluster(gpus=2.0, servers=2)
FLAT = RecourseParams(discount=1.0)
HORIZON = 6


def job(name: str, slots: int, value: float, latest: int = 99, workers: int = 4) -> Job:
    """Needs `workers` GPUs for `slots` slots; worth `value` up to delay `latest`."""
    return builders.job(name, 0, slots, value, latest, workers)


def plan_of(
    *jobs: Job,
    params: RecourseParams = FLAT,
    bounds: PriceBounds | None = None,
    rolling: bool = False,
    insert: bool = True,
) -> WorkingPlan:
    plan = WorkingPlan(CLUSTER, HORIZON, params, rolling)
    if bounds is not None:
        plan.set_prices(bounds)
    for key, made in enumerate(jobs):
        plan.live[key] = LiveJob.of(key, made, CLUSTER, HORIZON, grid_of(CLUSTER), 0.0)
        if insert:
            plan.insert(plan.live[key])
    return plan


def completions(plan: WorkingPlan) -> list[int | None]:
    return [live.schedule.completion if live.schedule else None for live in plan.live.values()]


def test_preferences_grow_by_the_slot_and_are_the_same_on_every_server() -> None:
    plan = plan_of(params=RecourseParams(growth=0.5))
    prices = plan.ledger.worker_prices[:, :, 0]
    assert prices[:, 0] == pytest.approx(NEXT_TO_NOTHING / 4 * (1 + 0.5 * np.arange(HORIZON)))
    assert np.array_equal(prices[:, 0], prices[:, 1])
    prefer_early(plan.ledger, growth=0.0)
    assert len(np.unique(plan.ledger.worker_prices)) == 1


def test_a_promised_job_is_planned_at_any_price() -> None:
    past = [job("cheap", 4, 1.0), job("dear", 1, 20.0)]
    bounds = PriceBounds.from_jobs(past, CLUSTER, HORIZON)
    plan = plan_of(job("a", 5, 10.0), job("b", 1, 0.01), bounds=bounds)
    plan.live[1].promise = 5
    assert plan.insert(plan.live[1])
    assert plan.standing[0] == 1


def test_a_plan_that_rolls_reaches_as_far_ahead_as_before() -> None:
    """After three slots the plan ends at 9 if it rolls; without rolling nothing is left there."""
    long = job("long", HORIZON, 5.0)
    for rolling, found in ((True, HORIZON + 2), (False, None)):
        plan = plan_of(rolling=rolling)
        plan.advance(3)
        late = replace(long, arrival=3)
        plan.live[0] = LiveJob.of(0, late, CLUSTER, 20, grid_of(CLUSTER), 0.0)
        plan.insert(plan.live[0])
        assert completions(plan) == [found]


@pytest.mark.parametrize(("first", "windows"), [(1, [1, 2, 4, 5]), (2, [2, 4, 5]), (8, [5])])
def test_the_window_is_widened_until_a_job_fits(
    first: int, windows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two GPUs are free all the time, one on each server; a worker that needs two fits in slot 5.

    How much is free in all says that the worker could run at once, so windows grow from there.
    """
    cluster = replace(CLUSTER, worker_servers=(Server("w", {"gpu": 3.0}, 2),))
    monkeypatch.setattr(sys.modules[__name__], "CLUSTER", cluster)
    looked_at: list[int] = []
    earliest = Search.earliest

    def noted(search: Search, until: int) -> object:
        looked_at.append(until)
        return earliest(search, until)

    wide = replace(job("a", 5, 5.0, workers=2), worker={"gpu": 2.0})
    single = replace(job("b", 1, 3.0, workers=1), worker={"gpu": 2.0})
    params = replace(FLAT, first_window=first, widening=2)
    plan = plan_of(wide, params=params)
    assert completions(plan) == [4]
    monkeypatch.setattr(Search, "earliest", noted)
    plan.live[1] = LiveJob.of(1, single, cluster, HORIZON, grid_of(cluster), 0.0)
    plan.insert(plan.live[1])
    assert completions(plan) == [4, 5]
    assert looked_at == windows
    assert plan.insertions == 2  # one a job, however many windows were looked at


def test_starting_over_is_undone_if_it_is_worse() -> None:
    """By density the short one goes first, and then the long, worth more, has no room."""
    plan = plan_of(job("long", 6, 5.0), job("short", 1, 1.0), insert=False)
    plan.insert(plan.live[0])
    used = plan.ledger.worker_used
    assert plan.density(plan.live[1]) > plan.density(plan.live[0])
    assert not start_over(plan)
    assert plan.value == 5.0
    assert np.array_equal(plan.ledger.worker_used, used)


@fewer(4)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_no_round_makes_a_plan_worse_and_its_ledger_is_what_it_plans(
    seed: int, lengths: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    made = (job(f"j{k}", slots, float(rng.integers(1, 9))) for k, slots in enumerate(lengths))
    plan = plan_of(*made)
    before = plan.standing
    for _ in range(3):
        ruin_and_recreate(plan, rng)
        assert plan.standing >= before
        before = plan.standing
    used = np.zeros_like(plan.ledger.worker_used)
    for live in plan.planned():
        assert live.schedule is not None
        for slot, server, count in live.schedule.workers.tolist():
            used[slot, server] += count
    assert np.array_equal(plan.ledger.worker_used, used)


def test_starting_over_plans_the_densest_first_until_it_is_told_to_stop() -> None:
    plan = plan_of(job("poor", 3, 1.0), job("rich", 3, 9.0), job("middle", 3, 4.0), insert=False)
    asked = iter([False, False, True])
    assert start_over(plan, lambda: next(asked))
    assert completions(plan) == [None, 2, 5]
    assert plan.standing == (0, 13.0)
    assert [live.job.id for live in plan.unplanned()] == ["poor"]
