"""Pricing with classes of servers gives what pricing server by server gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from offline.column_generation.pricing import MergedServers, empty, merged, price
from offline.column_generation.restricted_master import Grouping
from offline.model.arrays import OfflineArrays
from tests.strategies import all_instances, fewer

INSTANCE = oasis.generate("calibrated", jobs=8, worker_servers=5, ps_servers=4, horizon=8, seed=2)
ARRAYS = OfflineArrays.of(INSTANCE)


def assert_same_payoffs(instance: oasis.Instance, classes: int, seed: int) -> None:
    """At random prices of classes, some of them 0."""
    arrays = OfflineArrays.of(instance)
    grouping = Grouping.of(arrays, classes)
    rng = np.random.default_rng(seed)
    most = max(float(job.utility(0)) for job in instance.jobs) if instance.jobs else 1.0
    duals = most * rng.random(grouping.size) * (rng.random(grouping.size) < 0.7)
    by_class, by_server = merged(grouping, duals), empty(arrays, *grouping.prices(duals))
    for index, job in enumerate(instance.jobs):
        payoff, schedule = price(job, by_class)
        assert payoff == pytest.approx(price(job, by_server)[0], rel=1e-9, abs=1e-9 * most)
        if schedule is not None:
            oasis.verify(instance, {job.id: schedule})
            rows, shares = grouping.usage(index, schedule)
            worth = arrays.utility(index, schedule.completion)
            assert payoff == pytest.approx(worth - duals[rows] @ shares, rel=1e-9, abs=1e-9 * most)


@given(all_instances(most_servers=4), st.integers(1, 4), st.integers(0, 10**6))
@fewer(2)
def test_payoffs_are_those_of_single_servers_at_the_same_prices(
    instance: oasis.Instance, classes: int, seed: int
) -> None:
    assert_same_payoffs(instance, classes, seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_so_they_are_where_one_server_is_not_enough(classes: int, seed: int) -> None:
    instance = oasis.generate(
        "calibrated", jobs=20, worker_servers=3, ps_servers=3, horizon=12, seed=seed
    )
    assert_same_payoffs(instance, classes, seed)


def test_a_dear_class_is_filled_last_and_its_first_server_first() -> None:
    grouping = Grouping.of(ARRAYS, 2)
    shape = (ARRAYS.horizon, *grouping.worker.total.shape)
    duals = np.zeros(shape)
    duals[:, 0] = 1.0
    group = MergedServers.of(grouping.worker, duals.ravel())
    demand = ARRAYS.worker.demand[0]
    free, dear = (np.flatnonzero(grouping.worker.member == k) for k in (1, 0))
    room = ARRAYS.worker.units(0, 100)
    number = int(room[free].sum()) + 1
    _, servers, counts = group.fill(demand, np.array([0]), np.array([number]))
    first = next(k for k in dear.tolist() if room[k] > 0)
    assert dict(zip(servers.tolist(), counts.tolist(), strict=True)) == {
        **{k: int(room[k]) for k in free.tolist() if room[k] > 0},
        first: 1,
    }
