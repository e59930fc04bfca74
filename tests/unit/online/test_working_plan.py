"""The working plan of recourse, and the live jobs in it: what is left, what they may earn."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.cluster import Server
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.utility import Constant, Deadline, Piecewise
from oasis.online.prices import PriceBounds
from oasis.online.recourse.live_job import LEAST_SHARE, NEVER, LiveJob, dominant_share, grid_of
from oasis.online.recourse.params import RecourseParams
from oasis.online.recourse.planner import ruin_and_recreate, start_over
from oasis.online.recourse.working_plan import NEXT_TO_NOTHING, WorkingPlan, prefer_early
from oasis.online.search import Search
from oasis.testing import clusters, jobs
from tests import builders
from tests.strategies import fewer

CLUSTER = builders.cluster(gpus=2.0, servers=2)
FLAT = RecourseParams(discount=1.0)
HORIZON = 6


def all_gpus(name: str, slots: int, value: float, latest: int = 99, workers: int = 4) -> Job:
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


def test_preferences_grow_by_the_slot_and_are_the_same_on_every_server():
    plan = plan_of(params=RecourseParams(growth=0.5))
    prices = plan.ledger.worker_prices[:, :, 0]
    assert prices[:, 0] == pytest.approx(NEXT_TO_NOTHING / 4 * (1 + 0.5 * np.arange(HORIZON)))
    assert np.array_equal(prices[:, 0], prices[:, 1])
    prefer_early(plan.ledger, growth=0.0)
    assert len(np.unique(plan.ledger.worker_prices)) == 1


def test_a_promised_job_is_planned_at_any_price():
    past = [all_gpus("cheap", 4, 1.0), all_gpus("dear", 1, 20.0)]
    bounds = PriceBounds.from_jobs(past, CLUSTER, HORIZON)
    plan = plan_of(all_gpus("a", 5, 10.0), all_gpus("b", 1, 0.01), bounds=bounds)
    plan.live[1].promise = 5
    assert plan.insert(plan.live[1])
    assert plan.standing[0] == 1


def test_a_plan_that_rolls_reaches_as_far_ahead_as_before():
    """After three slots the plan ends at 9 if it rolls; without rolling nothing is left there."""
    long = all_gpus("long", HORIZON, 5.0)
    for rolling, found in ((True, HORIZON + 2), (False, None)):
        plan = plan_of(rolling=rolling)
        plan.advance(3)
        late = replace(long, arrival=3)
        plan.live[0] = LiveJob.of(0, late, CLUSTER, 20, grid_of(CLUSTER), 0.0)
        plan.insert(plan.live[0])
        assert completions(plan) == [found]


@pytest.mark.parametrize(("first", "windows"), [(1, [1, 2, 4, 5]), (2, [2, 4, 5]), (8, [5])])
def test_the_window_is_widened_until_a_job_fits(first, windows, monkeypatch):
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

    wide = replace(all_gpus("a", 5, 5.0, workers=2), worker={"gpu": 2.0})
    single = replace(all_gpus("b", 1, 3.0, workers=1), worker={"gpu": 2.0})
    params = replace(FLAT, first_window=first, widening=2)
    plan = plan_of(wide, params=params)
    assert completions(plan) == [4]
    monkeypatch.setattr(Search, "earliest", noted)
    plan.live[1] = LiveJob.of(1, single, cluster, HORIZON, grid_of(cluster), 0.0)
    plan.insert(plan.live[1])
    assert completions(plan) == [4, 5]
    assert looked_at == windows
    assert plan.insertions == 2  # one a job, however many windows were looked at


def test_starting_over_is_undone_if_it_is_worse():
    """By density the short one goes first, and then the long, worth more, has no room."""
    plan = plan_of(all_gpus("long", 6, 5.0), all_gpus("short", 1, 1.0), insert=False)
    plan.insert(plan.live[0])
    used = plan.ledger.worker_used
    assert plan.density(plan.live[1]) > plan.density(plan.live[0])
    assert not start_over(plan)
    assert plan.value == 5.0
    assert np.array_equal(plan.ledger.worker_used, used)


@fewer(4)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_no_round_makes_a_plan_worse_and_its_ledger_is_what_it_plans(seed, lengths):
    rng = np.random.default_rng(seed)
    made = (all_gpus(f"j{k}", slots, float(rng.integers(1, 9))) for k, slots in enumerate(lengths))
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


def test_starting_over_plans_the_densest_first_until_it_is_told_to_stop():
    plan = plan_of(
        all_gpus("poor", 3, 1.0), all_gpus("rich", 3, 9.0), all_gpus("middle", 3, 4.0), insert=False
    )
    asked = iter([False, False, True])
    assert start_over(plan, lambda: next(asked))
    assert completions(plan) == [None, 2, 5]
    assert plan.standing == (0, 13.0)
    assert [live.job.id for live in plan.unplanned()] == ["poor"]


OTHER = builders.cluster(
    servers=2, worker={"gpu": 4.0, "bandwidth_gbps": 8.0}, ps={"bandwidth_gbps": 8.0}
)
# 6 worker-slots, at most 3 workers at once; arrives in slot 2.
JOB = builders.job(
    "j",
    2,
    slots=2,
    workers=3,
    worker={"gpu": 1.0, "bandwidth_gbps": 1.0},
    ps={"bandwidth_gbps": 2.0},
    utility=Piecewise((0.0, 5.0), (10.0, 0.0)),
)


def live(job: Job = JOB, horizon: int = 9, floor: float = 0.0) -> LiveJob:
    return LiveJob.of(7, job, OTHER, horizon, grid_of(OTHER), floor)


def planned() -> LiveJob:
    """Three workers in slot 3, one in slot 4, two in slot 6."""
    made = live()
    rows = [[3, 0, 2], [3, 1, 1], [4, 0, 1], [6, 0, 2]]
    made.schedule = Schedule("j", rows, [[3, 0, 2], [4, 0, 1], [6, 0, 1]])
    return made


@pytest.mark.parametrize(("floor", "last"), [(0.0, 6), (0.25, 6), (0.3, 5), (0.8, 3), (1.0, 3)])
def test_completions_below_the_floor_of_the_best_possible_count_as_worthless(floor, last):
    """The best possible is 8, at delay 1: two slots are needed."""
    made = live(floor=floor)
    assert made.last == last
    assert made.utility_at(last) > 0.0
    assert not made.table[last + 1 - JOB.arrival :].any()


def test_a_job_that_cannot_be_worth_anything_has_no_last_slot():
    assert live(replace(JOB, utility=Deadline(9.0, 0.0))).last == NEVER
    assert live(replace(JOB, utility=Constant(0.0))).last == NEVER
    assert live(horizon=3).last == NEVER  # it needs two slots, one is left


@pytest.mark.parametrize(
    ("share", "latest"), [(1.0, 4), (0.7, 4), (0.66, 5), (0.34, 5), (0.33, 6), (0.01, 6)]
)
def test_the_last_slot_that_is_worth_a_share_of_what_a_completion_is_worth(share, latest):
    """Completions in slots 4, 5 and 6 are worth 6, 4 and 2."""
    assert live().latest_worth(share, 4) == latest
    assert live(replace(JOB, utility=Constant(3.0))).latest_worth(share, 4) == 8


def test_what_is_planned_before_now_is_done():
    made = planned()
    assert made.run_until(3) == 0
    assert not made.started
    assert made.run_until(5) == 4
    assert (made.done, made.remaining, made.started) == (4, 2, True)
    assert made.schedule is not None
    assert made.schedule.workers.tolist() == [[6, 0, 2]]
    assert made.schedule.ps.tolist() == [[6, 0, 1]]
    assert made.run_until(9) == 2
    assert (made.remaining, made.schedule) == (0, None)


def test_the_rest_is_measured_from_the_arrival_but_starts_now():
    made = live()
    made.remaining = 4
    rest = made.remaining_work(now=4, until=6)
    assert (rest.start, rest.work, rest.ends.first) == (4, 4, 5)
    assert rest.ends.utility.tolist() == [4.0, 2.0]
    assert rest.ends.counted.all()


def test_a_lift_makes_even_a_worthless_completion_count():
    made = live()
    assert made.remaining_work(2, 8).ends.counted.tolist() == [True, True, True, True, False, False]
    lifted = made.remaining_work(2, 8, lift=100.0).ends
    assert lifted.utility.tolist() == [108.0, 106.0, 104.0, 102.0, 100.0, 100.0]
    assert lifted.counted.all()


def test_the_share_of_a_job_is_that_of_its_scarcest_resource():
    """A worker takes 1 of 8 GPUs; the halves of its parameter server 1 of 8 Gbit/s."""
    assert dominant_share(JOB, OTHER) == 1 / 8
    assert dominant_share(replace(JOB, worker={"gpu": 3.0, "bandwidth_gbps": 1.0}), OTHER) == 3 / 8
    dear = replace(JOB, ps={"bandwidth_gbps": 1.0})  # a parameter server for every worker
    assert dominant_share(dear, OTHER) == 1 / 8
    wide = replace(JOB, worker={"bandwidth_gbps": 4.0}, ps={"bandwidth_gbps": 4.0})
    assert dominant_share(wide, OTHER) == 4 / 8
    assert dominant_share(replace(JOB, worker={}, ps={}), OTHER) == LEAST_SHARE
    unknown = replace(JOB, worker={"gpu": 1.0}, ps={"gpu": 5.0})  # no ps host has a GPU
    assert dominant_share(unknown, OTHER) == 1 / 8


@fewer(4)
@given(jobs(6), clusters(), st.sampled_from([0.0, 1e-3, 0.5]))
def test_a_live_job_is_never_smaller_than_the_job(job, cluster, floor):
    grid = grid_of(cluster)
    made = LiveJob.of(0, job, cluster, 6, grid, floor)
    assert made.remaining == job.work(cluster.slot_seconds)
    assert made.size >= LEAST_SHARE
    assert all(made.job.worker[name] >= amount for name, amount in job.worker.items())

    counted = np.flatnonzero(made.table)
    if made.last != NEVER:
        assert made.last == job.arrival + counted[-1]
