"""Properties of recourse on every instance, however it commits and whatever rule admits jobs."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Constant, Instance, LearnedPrices, LiveScheduler, PriceBounds, Recourse
from oasis.online.ledger import Ledger
from oasis.online.recourse import (
    AdmissionRule,
    AtLearnedPrices,
    AtPrices,
    Commitment,
    RecourseParams,
    Replanner,
    SampledFutures,
    planner,
)
from oasis.online.recourse.live_job import grid_of, on_grid
from oasis.online.recourse.planner import ruin_and_recreate
from oasis.online.search import Search
from oasis.online.server_group import ServerGroup
from oasis.testing import crowded_instances
from tests.strategies import all_instances, fewer, of

ALL = st.one_of(all_instances(), crowded_instances())


def past_of(instance):
    """Two past days with the jobs of `instance`, as if OASiS's first prices were learned."""
    bounds = PriceBounds.from_instance(instance, min_utility_fraction=0.5)
    size = (instance.horizon, 1)
    jobs = tuple(replace(job, id=f"past-{job.id}") for job in instance.jobs)
    return LearnedPrices(
        instance.cluster.resources,
        instance.slot_seconds,
        np.full(instance.horizon, 2.0),
        np.tile(bounds.worker.lower, size),
        np.tile(bounds.ps.lower, size),
        bounds,
        jobs,
    )


# Commitment, and the rule of admission from what is known of past days.
WAYS: dict[str, tuple[Commitment, Callable[[LearnedPrices], AdmissionRule | None]]] = {
    "none": ("none", lambda _: None),
    "start": ("start", lambda _: None),
    "futures so far": ("arrival", lambda _: SampledFutures(samples=3)),
    "futures of past days": ("arrival", lambda past: SampledFutures(past, samples=3)),
    "learned prices": ("arrival", lambda past: AtLearnedPrices(past, 0.6)),
    "prices": ("arrival", lambda _: AtPrices()),
}
every_way = pytest.mark.parametrize("way", WAYS)


def planner_of(instance, way, rounds=2):
    commitment, rule = WAYS[way]
    return Replanner(
        instance.cluster,
        instance.horizon,
        commitment=commitment,
        params=RecourseParams(rounds=rounds),
        admission=rule(past_of(instance)),
    )


def policy_of(instance, way, rounds=2, seed=0):
    commitment, rule = WAYS[way]
    return Recourse(commitment, rounds=rounds, seed=seed, admission=rule(past_of(instance)))


def replayed(instance, planner, watch=False):
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


@every_way
@fewer(10)
@given(instance=ALL, rounds=of(0, 2), together=st.booleans())
def test_what_was_executed_is_feasible_and_every_promise_is_kept(way, instance, rounds, together):
    """Also where many newcomers of one moment are decided on together."""
    with mock.patch.object(planner, "ONE_BY_ONE", 0 if together else planner.ONE_BY_ONE):
        made = planner_of(instance, way, rounds)
        promises = replayed(instance, made)
        run = oasis.simulate(instance, policy_of(instance, way, rounds))
    assert made.record.broken == run.report["broken_promises"] == []
    oasis.verify(instance, run)
    completed = {d.job_id: d.completion for d in run.decisions if d.completion is not None}
    assert all(completed[name] <= promise for name, promise in promises.items())  # type: ignore[operator]
    if WAYS[way][0] == "arrival":
        assert set(promises) == set(completed)


@fewer(10)
@given(ALL)
def test_without_commitment_the_value_of_the_plan_never_falls_at_an_arrival(
    instance,
):
    replayed(instance, Replanner(instance.cluster, instance.horizon), watch=True)


@every_way
@fewer(10)
@given(instance=all_instances(), data=st.data())
def test_later_arrivals_change_nothing_before_them(way, instance, data):
    """Up to the first arrival that differs, the same is executed; futures come from the past."""
    jobs = instance.jobs_by_arrival()
    cut = data.draw(st.integers(0, len(jobs) - 1))
    others = [replace(job, utility=Constant(1e6)) for job in reversed(jobs[cut:])]
    others = [replace(job, arrival=jobs[cut].arrival) for job in others]
    until = jobs[cut].arrival

    def executed(future):
        known = Instance(instance.horizon, instance.cluster, (*jobs[:cut], *future))
        seen: list[list[list[int]]] = []
        planner = planner_of(replace(known, jobs=jobs), way)
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
@given(ALL, st.integers(0, 2**32 - 1))
def test_more_rounds_never_make_the_first_plan_worse(instance, seed):
    jobs = {k: replace(job, arrival=0) for k, job in enumerate(instance.jobs)}
    values = []
    for rounds in (0, 1, 2, 5):
        params = RecourseParams(rounds=rounds)
        planner = Replanner(instance.cluster, instance.horizon, params=params, seed=seed)
        planner.replan(jobs)
        values.append(planner.plan.value)
    assert values == sorted(values)


@every_way
@fewer(10)
@given(instance=crowded_instances())
def test_the_same_input_gives_the_same_bytes(way, instance):
    found = []
    for _ in range(2):
        result = oasis.simulate(instance, policy_of(instance, way, seed=5)).to_dict()
        del result["decision_seconds"]
        found.append(json.dumps(result, sort_keys=True))
    assert found[0] == found[1]


@fewer(10)
@given(ALL, st.randoms(use_true_random=False))
def test_a_release_undoes_a_commit_to_the_last_bit_in_any_order(instance, random):
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
def test_a_round_that_is_undone_leaves_no_trace(instance, seed):
    planner = Replanner(instance.cluster, instance.horizon, params=RecourseParams(rounds=0))
    planner.replan({k: replace(job, arrival=0) for k, job in enumerate(instance.jobs)})
    plan, rng = planner.plan, np.random.default_rng(seed)
    for _ in range(5):
        before, ledger = schedules(planner), contents(plan.ledger)
        if not ruin_and_recreate(plan, rng):
            assert schedules(planner) == before
            assert contents(plan.ledger) == ledger


def contents(ledger):
    """Everything in a ledger, server by server."""
    arrays = (ledger.worker_used, ledger.ps_used, ledger.worker_prices, ledger.ps_prices)
    return (*(array.tobytes() for array in arrays), ledger.changes.tobytes())


def schedules(planner):
    return {key: live.schedule for key, live in planner.plan.live.items()}


# -- rules of admission ----------------------------------------------------------------------------


@fewer(25)
@given(crowded_instances(), of("futures so far", "futures of past days"))
def test_weighing_futures_leaves_no_trace_in_the_plan(instance, way):
    planner = planner_of(instance, way)
    admission = planner.admission
    assert admission is not None
    accepts = admission.accepts

    def watched(live, plan):
        before = contents(planner.plan.ledger)
        schedules = {key: job.schedule for key, job in planner.plan.live.items()}
        answer = accepts(live, plan)  # type: ignore[arg-type]
        assert contents(planner.plan.ledger) == before
        assert {key: job.schedule for key, job in planner.plan.live.items()} == schedules
        return answer

    admission.accepts = watched  # type: ignore[method-assign]
    replayed(instance, planner)


@fewer(25)
@given(crowded_instances())
def test_what_costs_more_at_learned_prices_than_it_is_worth_is_refused(instance):
    """Oracle: with prices beyond every utility nobody is admitted; with none everybody who fits."""
    past = past_of(instance)
    dear = replace(past, worker=past.worker * 0 + 1e12, ps=past.ps * 0 + 1e12)
    run = oasis.simulate(instance, Recourse("arrival", prices=dear, admission="learned"))
    demanding = {job.id for job in instance.jobs if any(job.worker.values())}
    assert not demanding & set(run.schedules)


def test_a_live_scheduler_with_learned_prices_goes_on_after_a_restart(tmp_path):
    instance = oasis.generate("testbed", jobs=4, seed=4)
    past = past_of(oasis.generate("testbed", jobs=4, seed=5))
    path = f"{tmp_path}/saved"
    for admission in ("futures", "learned", "oasis"):
        whole, stopped = (
            LiveScheduler.recourse(
                instance.cluster, 10, "arrival", prices=past, admission=admission
            )
            for _ in range(2)
        )
        for job in instance.jobs_by_arrival():
            stopped.save(path)
            stopped = LiveScheduler.load(path)
            answers = []
            for scheduler in (whole, stopped):
                scheduler.advance(job.arrival)
                quote = scheduler.quote(job)
                answers.append(scheduler.submit(job).to_dict())
                assert quote.decision.to_dict() == answers[-1]
            assert answers[0] == answers[1]


# -- many newcomers of one moment ------------------------------------------------------------------


def planned(instance, limit):
    """Utility of the plan when all jobs of `instance` have come at one moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "ONE_BY_ONE", limit)
        rule, params = SampledFutures(samples=4), RecourseParams(rounds=3, tries=5)
        made = Replanner(
            instance.cluster, instance.horizon, commitment="arrival", params=params, admission=rule
        )
        made.replan(dict(enumerate(instance.jobs)))
    lives = [live for live in made.plan.planned() if live.schedule is not None]
    return math.fsum(live.utility_at(live.schedule.completion) for live in lives if live.schedule)


def bursts(count):
    """Random instances, of few jobs and of many, all of whose jobs come in slot 0."""
    made = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        jobs, servers, horizon = (int(rng.integers(*ends)) for ends in ((3, 12), (1, 4), (6, 12)))
        if seed % 2:
            found = oasis.generate("testbed", jobs=jobs, seed=seed)
        else:
            sizes = {"worker_servers": servers, "ps_servers": servers, "horizon": horizon}
            found = oasis.generate("calibrated", jobs=jobs, seed=seed, **sizes)
        jobs_now = tuple(replace(job, arrival=0) for job in found.jobs)
        made.append(replace(found, jobs=jobs_now))
    return made


def test_together_earns_no_less_than_one_by_one():
    # Of a single moment either may be better: futures are sampled. In sum over moments it is not.
    pairs = [(planned(each, 10**9), planned(each, 0)) for each in bursts(16)]
    alone, together = np.array(pairs).T
    assert together.sum() >= alone.sum()
    assert (together >= alone - 1e-9).mean() > 0.6


def test_few_newcomers_on_few_servers_are_decided_on_one_by_one():
    instance = bursts(2)[1]
    assert planned(instance, planner.ONE_BY_ONE) == planned(instance, 10**9)


@given(st.integers(0, 2**32 - 1))
def test_servers_that_cost_the_same_need_no_sorting(seed):
    rng = np.random.default_rng(seed)
    resources, slots, columns = (int(rng.integers(1, most)) for most in (4, 5, 7))
    capacity = rng.integers(0, 9, (resources, columns)).astype(float)
    used = rng.integers(0, 5, (resources, slots, columns)).astype(float)
    price = np.repeat(rng.random((resources, slots, 1)), columns, axis=2)
    copies = np.ones(columns, dtype=np.int64)
    if rng.random() < 0.5:  # columns of several servers are idle
        copies, used = rng.integers(1, 4, columns), np.zeros_like(used)
    first = np.cumsum(copies) - copies
    one = ServerGroup(capacity, used, price, first, copies)
    even = replace(one, is_even=True)
    demand, rows = rng.integers(0, 3, resources).astype(float), np.arange(slots)
    fits = one.fits(demand, rows, 5)
    room = one.on_columns(fits)
    for most in range(1 + int(room.sum(axis=1).max())):
        expected = one.total_costs(demand, rows, room, most)
        np.testing.assert_array_equal(even.total_costs(demand, rows, room, most), expected)
    units = rng.integers(1, 1 + np.maximum(1, room.sum(axis=1)).astype(int))
    units = np.minimum(units, room.sum(axis=1).astype(int))
    asked = units > 0
    if asked.any():
        args = demand, rows[asked], units[asked], fits[asked]
        for found, wanted in zip(even.fill(*args), one.fill(*args), strict=True):
            np.testing.assert_array_equal(found, wanted)
