"""The configuration LP against enumeration: bounds hold, and iterates never cross the LP."""

import math
from functools import cache

import numpy as np
import pytest

import oasis
from oasis.solvers import SolveProgress, Status
from oasis.solvers.budget import Budget
from offline import solve
from offline.column_generation.bound import ConfigurationBound, configuration_bound
from tests.oracle.tiny import seeded, tiny_instance

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_bound_is_at_least_the_enumerated_optimum(seed: int) -> None:
    instance = tiny_instance(seeded(seed))
    optimum = solve(instance, "bruteforce").objective
    result = configuration_bound(instance)
    assert result.status is Status.OPTIMAL
    assert result.bound >= optimum - 1e-9 * max(1.0, optimum)
    assert result.value <= result.bound + 1e-9 * max(1.0, result.bound)
    for iterate in result.rounds:
        assert iterate.dual >= result.value - 1e-6 * max(1.0, result.value)


@cache
def solved_to_the_end() -> tuple[oasis.Instance, ConfigurationBound]:
    instance = oasis.generate(jobs=12, worker_servers=4, ps_servers=4, horizon=10, seed=2)
    return instance, configuration_bound(instance)


@pytest.mark.parametrize("rounds", [1, 4, 12])
def test_time_limit_keeps_the_best_bound_and_claims_no_proof(rounds: int) -> None:
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


def test_interrupt_ends_with_the_interval_so_far() -> None:
    instance = oasis.generate(jobs=12, worker_servers=4, ps_servers=4, horizon=10, seed=2)
    calls = []

    def interrupt(progress: SolveProgress) -> None:
        calls.append(progress)
        if len(calls) == 3:
            raise KeyboardInterrupt

    result = configuration_bound(instance, on_progress=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.bound == calls[-1].bound


def test_identical_servers_share_their_prices_and_lose_nothing() -> None:
    instance = oasis.generate("testbed", seed=3)
    result = configuration_bound(instance)
    assert result.status is Status.OPTIMAL
    kinds = np.unique(instance.cluster.worker_capacity, axis=0, return_inverse=True)[1].ravel()
    for kind in range(kinds.max() + 1):
        prices = result.worker_prices[:, kinds == kind]
        np.testing.assert_allclose(prices, prices[:, :1].repeat(prices.shape[1], axis=1))
