"""Many newcomers of one moment, decided on together: promises hold, and plans are no worse."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Instance, Recourse
from oasis.online.recourse import RecourseParams, Replanner, SampledFutures, planner
from oasis.online.server_group import ServerGroup
from tests.strategies import all_instances, crowded_instances, fewer
from tests.unit.online.test_admission_rules import RULES, past_of
from tests.unit.online.test_recourse_contract import replayed


@pytest.mark.parametrize("rule", RULES)
@fewer(10)
@given(instance=st.one_of(all_instances(), crowded_instances()))
def test_promises_of_newcomers_that_come_together_are_kept(rule: str, instance: Instance) -> None:
    past = past_of(instance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "ONE_BY_ONE", 0)
        made = Replanner(
            instance.cluster, instance.horizon, commitment="arrival", admission=RULES[rule](past)
        )
        replayed(instance, made)
        assert made.record.broken == []
        run = oasis.simulate(instance, Recourse("arrival", admission=RULES[rule](past)))
        again = oasis.simulate(instance, Recourse("arrival", admission=RULES[rule](past)))
    oasis.verify(instance, run)
    assert run.report["broken_promises"] == []
    assert again.decisions == run.decisions


def planned(instance: Instance, limit: int) -> float:
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


def bursts(count: int) -> list[Instance]:
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


def test_together_earns_no_less_than_one_by_one() -> None:
    # Of a single moment either may be better: futures are sampled. In sum over moments it is not.
    pairs = [(planned(each, 10**9), planned(each, 0)) for each in bursts(16)]
    alone, together = np.array(pairs).T
    assert together.sum() >= alone.sum()
    assert (together >= alone - 1e-9).mean() > 0.6


def test_few_newcomers_on_few_servers_are_decided_on_one_by_one() -> None:
    instance = bursts(2)[1]
    assert planned(instance, planner.ONE_BY_ONE) == planned(instance, 10**9)


@given(st.integers(0, 2**32 - 1))
def test_servers_that_cost_the_same_need_no_sorting(seed: int) -> None:
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
