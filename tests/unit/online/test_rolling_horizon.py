"""A live scheduler whose horizon rolls, and its ledger, against the simulator and a long ledger."""

from dataclasses import fields, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Deadline, Instance, Job, LiveScheduler, OASiS, Recourse
from oasis.online.ledger import Ledger
from oasis.online.recourse import AtPrices, RecourseParams
from oasis.online.recourse.live_job import grid_of, on_grid
from oasis.online.search import Search
from tests.live import CLUSTER, past_bounds, random_job
from tests.strategies import fewer, of

seeds = st.integers(0, 2**32 - 1)


def before_the_end(seed, horizon):
    """Jobs that are worth nothing after the horizon, with demands on the grid."""
    rng = np.random.default_rng(seed)
    grid = grid_of(CLUSTER)
    jobs = []
    for k in range(int(rng.integers(1, 9))):
        made = random_job(rng, f"j{k}", int(rng.integers(horizon)))
        latest = float(min(rng.integers(1, horizon), horizon - 1 - made.arrival))
        exact = on_grid(replace(made, utility=Deadline(float(rng.integers(1, 30)), latest)), grid)
        jobs.append(Job(**{f.name: getattr(exact, f.name) for f in fields(Job) if f.init}))
    return Instance(horizon, CLUSTER, tuple(jobs))


def executed(scheduler, instance):
    """Rows that were executed of each job that completed."""
    rows: dict[str, list[list[int]]] = {}
    done: set[str] = set()
    for now in range(instance.horizon + 1):
        done |= {entry.job_id for entry in scheduler.advance(now).completed}
        for job in instance.jobs:
            if job.arrival == now:
                scheduler.submit(job)
        for name, schedule in scheduler.plan(1).items():
            rows.setdefault(name, []).extend(schedule.workers.tolist())
    return {name: rows[name] for name in rows if name in done}


@fewer(10)
@given(seeds, of("none", "start", "arrival"))
def test_recourse_on_a_rolling_horizon_is_recourse_where_nothing_is_worth_waiting_for_the_end(
    seed, commitment
):
    """Oracle: the simulator's, with a fixed horizon. Jobs of a slot arrive in order of the file."""
    instance = before_the_end(seed, 7)
    jobs = instance.jobs_by_arrival()
    alone = [job for job in jobs if [other.arrival for other in jobs].count(job.arrival) == 1]
    instance = replace(instance, jobs=tuple(alone))  # the simulator plans once for all of a slot
    params = RecourseParams(rounds=2, growth=0.0)
    bounds = past_bounds(min_utility_fraction=0.6) if commitment == "arrival" else None
    rule = AtPrices(bounds, 0.6) if bounds is not None else None
    run = oasis.simulate(instance, Recourse(commitment, params=params, admission=rule, seed=3))
    live = LiveScheduler.recourse(
        CLUSTER, 7, commitment, params=params, bounds=bounds, min_utility_fraction=0.6, seed=3
    )
    expected = {name: s.workers.tolist() for name, s in run.schedules.items()}
    assert executed(live, instance) == expected


@fewer(10)
@given(seeds)
def test_oasis_on_a_rolling_horizon_is_oasis_where_nothing_is_worth_waiting_for_the_end(
    seed,
):
    instance = before_the_end(seed, 7)
    bounds = past_bounds()
    run = oasis.simulate(instance, OASiS(CLUSTER, 7, bounds))
    expected = {name: s.workers.tolist() for name, s in run.schedules.items()}
    assert executed(LiveScheduler.oasis(CLUSTER, 7, bounds), instance) == expected


@fewer(2)
@given(seeds, st.booleans())
def test_a_ledger_that_rolls_is_a_window_of_one_that_does_not(seed, priced):
    """Oracle: a ledger long enough for everything."""
    rng = np.random.default_rng(seed)
    bounds = past_bounds()
    grid, size, slots = grid_of(CLUSTER), 6, 30
    whole, window = Ledger.idle(CLUSTER, slots, bounds), Ledger.idle(CLUSTER, size, bounds)
    charged = bounds if priced else None
    for k in range(20):
        job = on_grid(random_job(rng, f"j{k}", window.origin), grid)
        search = Search(job, window)
        split = search.cheapest()
        if split is not None:
            schedule = search.schedule(split)
            whole.commit(job, schedule, charged)
            window.commit(job, schedule, charged)
            if rng.random() < 0.3:
                whole.release(job, schedule, charged)
                window.release(job, schedule, charged)
        passed = int(rng.choice([0, 1, 1, 2, 7]))  # more than the window is long, at times
        window.roll(min(window.origin + passed, slots - size), charged)
        rows = slice(window.origin, window.end)
        differs = whole.changes[rows].copy()
        differs[0] = False
        for name in ("worker_used", "ps_used", "worker_prices", "ps_prices"):
            assert np.array_equal(getattr(window, name), getattr(whole, name)[rows]), name
        assert window.changes.tolist() == differs.tolist()
