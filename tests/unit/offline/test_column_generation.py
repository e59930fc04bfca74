"""Bounds while and after a solve: intervals that contain the optimum, whatever stops it."""

import math
from dataclasses import replace
from functools import cache
from itertools import count

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oasis
from oasis import Constant
from oasis.solvers import SolveProgress, Status
from oasis.solvers.budget import Budget
from offline import solve
from offline.column_generation.bound import configuration_bound
from offline.state import SolveState
from tests.oracle.tiny import seeded, tiny_instance
from tests.strategies import fewer


@pytest.mark.parametrize("seed", range(60))
def test_bound_is_at_least_the_enumerated_optimum(seed):
    instance = tiny_instance(seeded(seed))
    optimum = solve(instance, "bruteforce").objective
    result = configuration_bound(instance)
    assert result.status is Status.OPTIMAL
    assert result.bound >= optimum - 1e-9 * max(1.0, optimum)
    assert result.value <= result.bound + 1e-9 * max(1.0, result.bound)
    for iterate in result.rounds:
        assert iterate.dual >= result.value - 1e-6 * max(1.0, result.value)


@cache
def solved_to_the_end():
    instance = oasis.generate(jobs=12, worker_servers=4, ps_servers=4, horizon=10, seed=2)
    return instance, configuration_bound(instance)


@pytest.mark.parametrize("rounds", [1, 4, 12])
def test_time_limit_keeps_the_best_bound_and_claims_no_proof(rounds):
    """A clock that runs out after some prices were tried."""
    instance, full = solved_to_the_end()
    seen: list[SolveProgress] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "left", property(lambda _: 0.0 if len(seen) >= rounds else 60.0))
        early = configuration_bound(instance, on_progress=seen.append)
    assert early.status is Status.TIME_LIMIT
    assert len(early.rounds) < len(full.rounds)
    assert math.inf > early.bound > full.bound * (1 + 1e-6)
    assert early.bound == min(iterate.dual for iterate in early.rounds)
    independent = oasis.dual_bound(instance, early.worker_prices, early.ps_prices)
    assert independent == pytest.approx(early.bound, rel=1e-9)


def test_interrupt_ends_with_the_interval_so_far():
    instance = oasis.generate(jobs=12, worker_servers=4, ps_servers=4, horizon=10, seed=2)
    calls = []

    def interrupt(progress):
        calls.append(progress)
        if len(calls) == 3:
            raise KeyboardInterrupt

    result = configuration_bound(instance, on_progress=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.bound == calls[-1].bound


def test_identical_servers_share_their_prices_and_lose_nothing():
    instance = oasis.generate("testbed", seed=3)
    result = configuration_bound(instance)
    assert result.status is Status.OPTIMAL
    kinds = np.unique(instance.cluster.worker_capacity, axis=0, return_inverse=True)[1].ravel()
    for kind in range(kinds.max() + 1):
        prices = result.worker_prices[:, kinds == kind]
        np.testing.assert_allclose(prices, prices[:, :1].repeat(prices.shape[1], axis=1))


# -- any stop --------------------------------------------------------------------------------------

SEEDS = st.integers(0, 10**6)


@given(SEEDS, st.integers(2, 20))
@fewer(3)
def test_any_stop_leaves_a_valid_bound(seed, moment):
    """Valid is what is at least the optimum; `moment` counts looks at the clock."""
    instance = tiny_instance(seeded(seed))
    optimum = solve(instance, "bruteforce").objective
    looks = count(1)
    with pytest.MonkeyPatch.context() as patch:
        left = property(lambda _: 0.0 if next(looks) >= moment else 60.0)
        patch.setattr(Budget, "left", left)
        early = configuration_bound(instance)
    assert early.bound >= optimum * (1 - 1e-9)
    for iterate in early.rounds:
        assert iterate.dual >= optimum * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_never_worse_than_oasis_and_reports_only_improvements(seed):
    instance = oasis.generate(jobs=12, worker_servers=5, ps_servers=5, horizon=10, seed=seed)
    online = oasis.simulate(instance, oasis.OASiS.from_instance(instance)).total_utility
    seen: list[SolveProgress] = []
    result = solve(instance, "colgen", work_limit=1.0, on_progress=seen.append)
    assert result.objective >= online
    assert [p.bound for p in seen] == sorted((p.bound for p in seen), reverse=True)
    found = [p.incumbent for p in seen if p.incumbent is not None]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(result.objective)


def test_interrupt_leaves_the_interval_so_far():
    instance = oasis.generate(jobs=12, worker_servers=5, ps_servers=5, horizon=10, seed=1)
    calls: list[SolveProgress] = []

    def interrupt(progress):
        calls.append(progress)
        if len(calls) == 6:
            raise KeyboardInterrupt

    result = solve(instance, "colgen", work_limit=30.0, on_progress=interrupt)
    assert len(calls) == 6
    assert result.status is Status.INTERRUPTED
    assert oasis.verify(instance, result) == result.objective == calls[-1].incumbent
    assert result.objective < result.upper_bound == calls[-1].bound


METHODS = ("bruteforce", "milp", "benders", "colgen")


def assert_no_bound_is_below_a_schedule(instance):
    """Whichever method found the schedule, and wherever the bound is shown."""
    seen: list[SolveProgress] = []
    results = [
        solve(instance, method, work_limit=0.3, on_progress=seen.append) for method in METHODS
    ]
    best = max(oasis.verify(instance, result) for result in results)
    for result in results:
        assert result.upper_bound >= best
        for milestone in result.history:
            assert milestone.objective is None or milestone.upper_bound >= milestone.objective
    for progress in seen:
        assert progress.incumbent is None or progress.bound >= progress.incumbent


@given(SEEDS)
@fewer(5)
def test_no_bound_is_below_a_schedule_of_any_method(seed):
    assert_no_bound_is_below_a_schedule(tiny_instance(seeded(seed)))


@given(SEEDS, st.sampled_from([1e-6, 1e-7, 1e-8, 1e-9, 2e-10, 1e-10]))
@example(54627, 1e-9)  # the bound of the compact model was below the enumerated optimum
@fewer(5)
def test_nor_of_schedules_that_are_worth_almost_the_same(seed, hair):
    """A solve ends with a proof once a millionth is left, so what it found may not be the best."""
    instance = tiny_instance(seeded(seed))
    jobs = tuple(
        replace(job, utility=Constant(7.0 * (1 + k * hair))) for k, job in enumerate(instance.jobs)
    )
    assert_no_bound_is_below_a_schedule(replace(instance, jobs=jobs))


@pytest.mark.parametrize("below", [1e-10, 0.9e-5])
def test_a_bound_below_its_own_schedules_is_shown_as_their_value(below):
    instance = oasis.generate("testbed", jobs=4, seed=3)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    seen: list[SolveProgress] = []
    state = SolveState(instance, Budget(), seen.append)
    state.enter("LP")
    state.record_solution(run.schedules)
    state.record_bound(run.total_utility * (1 - below))
    result = state.result(Status.TIME_LIMIT, "m", {})
    assert result.upper_bound >= result.objective
    assert seen[-1].bound == result.history[-1].upper_bound == run.total_utility
