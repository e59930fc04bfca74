"""Properties of live schedulers under any calls."""

from __future__ import annotations

import json
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Deadline, Instance, Job, LiveScheduler, OASiS, Recourse
from oasis.online.ledger import Ledger
from oasis.online.recourse import AtPrices, Commitment, RecourseParams
from oasis.online.recourse.live_job import grid_of, on_grid
from oasis.online.search import Search
from tests.live import (
    CLUSTER,
    KINDS,
    LOOKAHEAD,
    TROUBLES,
    Drill,
    extent,
    frozen,
    past_bounds,
    random_job,
)
from tests.strategies import fewer, of

seeds = st.integers(0, 2**32 - 1)
kinds = of(*KINDS)


@fewer(10)
@given(kinds, seeds, st.integers(1, 60))
def test_what_was_executed_in_any_window_is_feasible(kind: str, seed: int, steps: int) -> None:
    drill = Drill(KINDS[kind](), seed, (*TROUBLES, "reserve")).run(steps)
    drill.verify()
    now = drill.scheduler.now
    for first in range(0, now, 5):
        drill.verify(first, min(first + 5, now))


@fewer(10)
@given(seeds, st.integers(1, 50))
def test_without_commitment_the_value_of_the_plan_never_falls_at_an_arrival(
    seed: int, steps: int
) -> None:
    scheduler = KINDS["none"]()
    submit = scheduler.submit

    def watched(job: Job) -> oasis.Decision:
        plan = scheduler.policy.planner.plan  # type: ignore[attr-defined]
        before = plan.value
        decision = submit(job)
        assert plan.value >= before * (1 - 1e-12)
        return decision

    scheduler.submit = watched  # type: ignore[method-assign]
    Drill(scheduler, seed).run(steps)


@fewer(10)
@given(of("start", "arrival", "oasis"), seeds)
def test_every_promise_is_kept_or_reported(kind: str, seed: int) -> None:
    calm = Drill(KINDS[kind](), seed, troubles=("cancel", "finish", "restore")).run(50)
    assert not calm.broken
    rough = Drill(KINDS[kind](), seed).run(50)
    for drill in (calm, rough):
        ended = set(drill.promises) - set(drill.scheduler.jobs) - drill.touched
        for name in ended - drill.broken:
            assert drill.completed[name] <= drill.promises[name]
        if kind == "arrival":
            waiting = set(drill.scheduler.jobs) - set(drill.promises)
            assert not waiting
    assert rough.scheduler.totals.broken_promises == len(rough.broken)


@pytest.mark.parametrize("kind", KINDS)
@fewer(25)
@given(seed=seeds, stops=st.sets(st.integers(0, 40)))
def test_a_scheduler_that_was_saved_and_loaded_goes_on_bit_for_bit(
    kind: str, seed: int, stops: set[int]
) -> None:
    whole, stopped = (Drill(KINDS[kind](), seed) for _ in range(2))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for step in range(40):
            if step in stops:
                stopped.scheduler.save(directory / "saved")
                stopped.scheduler = LiveScheduler.load(directory / "saved")
            whole.step()
            stopped.step()
        assert json.dumps(whole.answers) == json.dumps(stopped.answers)
        assert frozen(whole.scheduler, directory) == frozen(stopped.scheduler, directory)


@pytest.mark.parametrize("kind", KINDS)
@fewer(25)
@given(seed=seeds, steps=st.integers(0, 30))
def test_a_quote_is_what_submit_then_answers_and_changes_nothing(
    kind: str, seed: int, steps: int
) -> None:
    scheduler = Drill(KINDS[kind](), seed).run(steps).scheduler
    job = random_job(np.random.default_rng(seed), "new", scheduler.now)
    with tempfile.TemporaryDirectory() as name:
        before = frozen(scheduler, Path(name))
        quote = scheduler.quote(job)
        assert frozen(scheduler, Path(name)) == before
    planned = {job_id: s.completion for job_id, s in scheduler.plan().items()}
    decision = scheduler.submit(job)
    assert quote.decision.to_dict() == decision.to_dict()
    assert quote.change == scheduler.last_change
    after = {job_id: s.completion for job_id, s in scheduler.plan().items()}
    for delay in quote.change.delayed:
        assert (planned[delay.job_id], after[delay.job_id]) == (delay.before, delay.after)
        assert delay.after > delay.before
    lost = {job_id for job_id in planned if job_id not in after}
    assert lost <= set(quote.change.displaced) | set(quote.change.given_up)


@pytest.mark.parametrize("kind", KINDS)
@fewer(25)
@given(seed=seeds, later=of(1, 1000))
def test_what_is_decided_does_not_depend_on_how_long_it_has_run(
    kind: str, seed: int, later: int
) -> None:
    """The same arrivals some slots later get the same answers some slots later."""
    found = []
    for begin in (0, later):
        scheduler, rng = KINDS[kind](), np.random.default_rng(seed)
        answers = []
        for slot in range(10):
            scheduler.advance(begin + slot)
            for _ in range(int(rng.integers(0, 3))):
                job = random_job(rng, f"j{scheduler.calls}", begin + slot)
                decision = scheduler.submit(job)
                end = decision.completion
                answers.append((decision.admitted, None if end is None else end - begin))
        found.append((answers, scheduler.totals))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_bounded(kind: str) -> None:
    """After so long that every server has its column, only the live jobs differ."""
    drill = Drill(KINDS[kind](), 5, rate=1.5)
    early = late = 0
    for step in range(300):
        drill.step()
        drill.answers.clear()
        size = extent(drill.scheduler)
        if 100 <= step < 200:
            early = max(early, size)
        late = max(late, size) if step >= 250 else 0
        most = 2 * LOOKAHEAD + 1  # slots that a job may stay
        recent = [j for j in drill.jobs.values() if j.arrival > drill.scheduler.now - most]
        assert len(drill.scheduler.jobs) <= len(recent)
    assert drill.scheduler.now > 10 * LOOKAHEAD
    assert late <= 1.5 * early


def before_the_end(seed: int, horizon: int) -> Instance:
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


def executed(scheduler: LiveScheduler, instance: Instance) -> dict[str, list[list[int]]]:
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
    seed: int, commitment: Commitment
) -> None:
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
    seed: int,
) -> None:
    instance = before_the_end(seed, 7)
    bounds = past_bounds()
    run = oasis.simulate(instance, OASiS(CLUSTER, 7, bounds))
    expected = {name: s.workers.tolist() for name, s in run.schedules.items()}
    assert executed(LiveScheduler.oasis(CLUSTER, 7, bounds), instance) == expected


@fewer(2)
@given(seeds, st.booleans())
def test_a_ledger_that_rolls_is_a_window_of_one_that_does_not(seed: int, priced: bool) -> None:
    """Oracle: a ledger long enough for everything."""
    rng = np.random.default_rng(seed)
    bounds = past_bounds()
    grid, size, slots = grid_of(CLUSTER), 6, 30
    whole, window = Ledger.idle(CLUSTER, slots, bounds), Ledger.idle(CLUSTER, size, bounds)
    charged = bounds if priced else None
    for k in range(12):
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
        window.roll(min(window.origin + int(rng.integers(0, 8)), slots - size), charged)
        rows = slice(window.origin, window.end)
        differs = whole.changes[rows].copy()
        differs[0] = False
        for name in ("worker_used", "ps_used", "worker_prices", "ps_prices"):
            assert np.array_equal(getattr(window, name), getattr(whole, name)[rows]), name
        assert window.changes.tolist() == differs.tolist()
