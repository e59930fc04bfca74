"""Properties of recourse on every instance and at every level of commitment."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Constant, Instance, PriceBounds, Recourse
from oasis.model.schedule import Schedule
from oasis.online.ledger import Ledger
from oasis.online.recourse import Commitment, RecourseParams, Replanner
from oasis.online.recourse.live_job import grid_of, on_grid
from oasis.online.recourse.planner import ruin_and_recreate
from oasis.online.search import Search
from tests.strategies import all_instances, crowded_instances, fewer, of

COMMITMENTS: tuple[Commitment, ...] = ("none", "start", "arrival")


def replayed(instance: Instance, planner: Replanner, watch: bool = False) -> dict[str, object]:
    """Drive a planner through the arrivals of `instance`; promises made, by job."""
    promises: dict[str, object] = {}
    jobs = dict(enumerate(instance.jobs_by_arrival()))
    for now in range(instance.horizon):
        planner.advance(now)
        for key, live in list(planner.plan.live.items()):
            if live.remaining == 0:
                planner.finish(key)
        new = {key: job for key, job in jobs.items() if job.arrival == now}
        before = planner.plan.value
        if new:
            planner.replan(new)
        if watch:
            assert planner.plan.value >= before * (1 - 1e-12)
        for live in planner.plan.live.values():
            if live.promise is not None:
                assert promises.setdefault(live.job.id, live.promise) == live.promise
                assert live.schedule is not None
                assert live.schedule.completion <= live.promise
    return promises


@fewer(10)
@given(st.one_of(all_instances(), crowded_instances()), of(*COMMITMENTS), of(0, 2))
def test_what_was_executed_is_feasible(
    instance: Instance, commitment: Commitment, rounds: int
) -> None:
    result = oasis.simulate(instance, Recourse(commitment, rounds=rounds))
    oasis.verify(instance, result)


@fewer(10)
@given(st.one_of(all_instances(), crowded_instances()), of("start", "arrival"))
def test_every_promise_is_kept(instance: Instance, commitment: Commitment) -> None:
    planner = Replanner(instance.cluster, instance.horizon, commitment=commitment)
    promises = replayed(instance, planner)
    assert planner.record.broken == []
    result = oasis.simulate(instance, Recourse(commitment))
    completed = {d.job_id: d.completion for d in result.decisions}
    for name, promise in promises.items():
        completion = completed[name]
        assert completion is not None
        assert completion <= promise  # type: ignore[operator]
    if commitment == "arrival":
        assert set(promises) | {n for n, c in completed.items() if c is None} == set(completed)


@fewer(10)
@given(st.one_of(all_instances(), crowded_instances()))
def test_without_commitment_the_value_of_the_plan_never_falls_at_an_arrival(
    instance: Instance,
) -> None:
    replayed(instance, Replanner(instance.cluster, instance.horizon), watch=True)


@fewer(10)
@given(all_instances(), of(*COMMITMENTS), st.data())
def test_later_arrivals_change_nothing_before_them(
    instance: Instance, commitment: Commitment, data: st.DataObject
) -> None:
    """Non-anticipation: up to the first arrival that differs, the same is executed."""
    jobs = instance.jobs_by_arrival()
    cut = data.draw(st.integers(0, len(jobs) - 1))
    others = [replace(job, utility=Constant(1e6)) for job in reversed(jobs[cut:])]
    others = [replace(job, arrival=jobs[cut].arrival) for job in others]
    until = jobs[cut].arrival

    def executed(future: list[oasis.Job]) -> list[list[list[int]]]:
        known = Instance(instance.horizon, instance.cluster, (*jobs[:cut], *future))
        seen: list[list[list[int]]] = []
        planner = Replanner(known.cluster, known.horizon, commitment=commitment)
        arrivals = dict(enumerate(known.jobs_by_arrival()))
        for now in range(until):
            planner.advance(now)
            for key, live in list(planner.plan.live.items()):
                if live.remaining == 0:
                    planner.finish(key)
            new = {key: job for key, job in arrivals.items() if job.arrival == now}
            if new:
                planner.replan(new)
            for key, live in planner.plan.live.items():
                rows = live.schedule.workers if live.schedule else np.zeros((0, 3), int)
                seen.append([[key], *rows[rows[:, 0] == now].tolist()])
        return seen

    assert executed(jobs[cut:]) == executed([]) == executed(others)


@fewer(20)
@given(st.one_of(all_instances(), crowded_instances()), st.integers(0, 2**32 - 1))
def test_more_rounds_never_make_the_first_plan_worse(instance: Instance, seed: int) -> None:
    jobs = {k: replace(job, arrival=0) for k, job in enumerate(instance.jobs)}
    values = []
    for rounds in (0, 1, 2, 5):
        params = RecourseParams(rounds=rounds)
        planner = Replanner(instance.cluster, instance.horizon, params=params, seed=seed)
        planner.replan(jobs)
        values.append(planner.plan.value)
    assert values == sorted(values)


@fewer(10)
@given(crowded_instances(), of(*COMMITMENTS))
def test_the_same_input_gives_the_same_bytes(instance: Instance, commitment: Commitment) -> None:
    one, other = (
        oasis.simulate(instance, Recourse(commitment, seed=5)).to_dict() for _ in range(2)
    )
    for result in (one, other):
        del result["decision_seconds"]
    assert json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@fewer(10)
@given(st.one_of(all_instances(), crowded_instances()), st.randoms(use_true_random=False))
def test_a_release_undoes_a_commit_to_the_last_bit_in_any_order(
    instance: Instance, random: object
) -> None:
    bounds = PriceBounds.from_instance(instance, min_utility_fraction=0.0)
    ledger = Ledger.idle(instance.cluster, instance.horizon, bounds)
    grid = grid_of(instance.cluster)
    states, held = [contents(ledger)], []
    for job in instance.jobs_by_arrival():
        given_job = on_grid(job, grid)
        search = Search(given_job, ledger)
        split = search.cheapest()
        if split is not None:
            schedule = search.schedule(split)
            ledger.commit(given_job, schedule, bounds)
            held.append((given_job, schedule))
            states.append(contents(ledger))
    for given_job, schedule in reversed(held):
        assert contents(ledger) == states.pop()
        ledger.release(given_job, schedule, bounds)
    assert contents(ledger) == states.pop()
    for given_job, schedule in held:
        ledger.commit(given_job, schedule, bounds)
    random.shuffle(held)  # type: ignore[attr-defined]
    for given_job, schedule in held:
        ledger.release(given_job, schedule, bounds)
    assert not ledger.worker_used.any()
    assert not ledger.ps_used.any()
    assert not ledger.changes.any()


@fewer(10)
@given(crowded_instances(), st.integers(0, 2**32 - 1))
def test_a_round_that_is_undone_leaves_no_trace(instance: Instance, seed: int) -> None:
    planner = Replanner(instance.cluster, instance.horizon, params=RecourseParams(rounds=0))
    planner.replan({k: replace(job, arrival=0) for k, job in enumerate(instance.jobs)})
    plan, rng = planner.plan, np.random.default_rng(seed)
    for _ in range(5):
        before, ledger = schedules(planner), contents(plan.ledger)
        if not ruin_and_recreate(plan, rng):
            assert schedules(planner) == before
            assert contents(plan.ledger) == ledger


def contents(ledger: Ledger) -> tuple[bytes, ...]:
    """Everything in a ledger, server by server."""
    arrays = (ledger.worker_used, ledger.ps_used, ledger.worker_prices, ledger.ps_prices)
    return (*(array.tobytes() for array in arrays), ledger.changes.tobytes())


def schedules(planner: Replanner) -> dict[int, Schedule | None]:
    return {key: live.schedule for key, live in planner.plan.live.items()}
