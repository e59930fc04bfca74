"""Learning from past days: averages checked by hand, and days that do not go together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import oasis
from oasis import Cluster, Constant, Instance, Job, PriceBounds, Server
from oasis.solvers import Status
from offline import configuration_bound
from offline.learning import group_prices, learn_prices, widest_bounds
from tests import builders

CLUSTER = builders.cluster(gpus=1.0, servers=2)


def job(name: str, arrival: int, value: float, latest: int = 0) -> Job:
    """Needs both GPUs for one slot."""
    return builders.job(name, arrival, 1, value, latest, workers=2)


def contested(high: float, low: float, slot: int, horizon: int = 4) -> Instance:
    """Two jobs want both GPUs in `slot` and no other; the optimal dual value is `low` to `high`."""
    return Instance(horizon, CLUSTER, (job("a", slot, high), job("b", slot, low)))


def test_prices_are_the_dual_values_averaged_by_slot_of_the_day_by_hand() -> None:
    """Equal values leave one dual: 6 for two GPUs in slot 1 of the first day, 10 in slot 3.

    A day has two slots, so slots 1 and 3 are the same slot of the day, and both files have two
    days each. Its price is (3 + 0 + 0 + 5) / 4 for one GPU, and the other slot is free.
    """
    learned = learn_prices([contested(6, 6, 1), contested(10, 10, 3)], slots_per_day=2)
    assert learned.days.tolist() == [4.0, 4.0]
    assert learned.worker.ravel() == pytest.approx([0.0, 2.0])
    assert learned.ps.ravel().tolist() == [0.0, 0.0]
    assert [(past.id, past.arrival) for past in learned.jobs] == [
        ("a", 1), ("b", 1), ("a", 1), ("b", 1),
    ]  # fmt: skip


def test_prices_of_one_day_are_those_that_prove_its_bound() -> None:
    """All capacity costs the same at the mean prices as at the duals of each server."""
    instance = oasis.generate("testbed", jobs=8, seed=3)
    found = configuration_bound(instance)
    learned = learn_prices([instance])
    for name, prices in (("worker", found.worker_prices), ("ps", found.ps_prices)):
        capacity = getattr(instance.cluster, f"{name}_capacity")
        cost = (getattr(learned, name) * capacity.sum(axis=0)).sum(axis=1)
        assert cost == pytest.approx((prices * capacity).sum(axis=(1, 2)))
        assert cost.sum() > 0


def test_a_slot_that_only_some_days_have_is_averaged_over_those() -> None:
    learned = learn_prices([contested(6, 6, 1, horizon=2), contested(8, 8, 3, horizon=4)])
    assert learned.days.tolist() == [2.0, 2.0, 1.0, 1.0]
    assert learned.worker.ravel() == pytest.approx([0.0, 1.5, 0.0, 4.0])


def test_prices_of_a_group_weigh_servers_by_capacity() -> None:
    prices, capacity = np.array([[[1.0, 5.0], [4.0, 7.0]]]), np.array([[3.0, 0.0], [1.0, 0.0]])
    assert group_prices(prices, capacity).tolist() == [[1.75, 0.0]]


def test_bounds_are_the_smallest_lower_and_the_largest_upper_of_the_days() -> None:
    past = [oasis.generate("testbed", jobs=5, seed=seed) for seed in (1, 2, 3)]
    each = [PriceBounds.from_instance(day) for day in past]
    for learned in (widest_bounds(each), learn_prices(past).bounds):
        for name in ("worker", "ps"):
            days = [getattr(bounds, name) for bounds in each]
            both = getattr(learned, name)
            assert both.lower == pytest.approx(np.min([day.lower for day in days], axis=0))
            assert both.upper == pytest.approx(np.max([day.upper for day in days], axis=0))


def test_a_day_without_jobs_teaches_that_resources_are_free() -> None:
    learned = learn_prices([Instance(3, CLUSTER, ())])
    assert not learned.worker.any()
    assert learned.jobs == ()
    assert np.isneginf(learned.bounds.worker.log_lower).all()


def test_a_resource_that_one_day_does_not_price_takes_the_bounds_of_the_other() -> None:
    empty, busy = Instance(4, CLUSTER, ()), contested(6, 2, 1)
    assert learn_prices([empty, busy]).bounds.worker.lower == pytest.approx(
        PriceBounds.from_instance(busy).worker.lower
    )


def test_days_that_do_not_go_together_are_refused_by_number() -> None:
    day = contested(1, 1, 0)
    slower = replace(day, cluster=replace(CLUSTER, slot_seconds=2.0))
    with pytest.raises(oasis.InstanceError, match=r"past\[1\].slot_seconds: expected 1, got 2"):
        learn_prices([day, slower])
    other = Cluster(("cpu",), (Server("w", {"cpu": 1.0}),), (Server("p", {"cpu": 1.0}),), 1.0)
    with pytest.raises(oasis.InstanceError, match=r"past\[1\].resources: expected \['gpu'\]"):
        learn_prices([day, Instance(4, other, ())])
    with pytest.raises(ValueError, match="past: expected at least one instance"):
        learn_prices([])
    with pytest.raises(oasis.InstanceError, match="slots_per_day: expected an integer >= 1"):
        learn_prices([day], slots_per_day=0)


def test_constant_utility_prices_nothing_where_there_is_room() -> None:
    patient = replace(job("a", 0, 5.0), utility=Constant(5.0))
    assert not learn_prices([Instance(4, CLUSTER, (patient,))]).worker.any()


def test_criteria_end_the_search_for_prices() -> None:
    day = oasis.generate("testbed", jobs=6, seed=1)
    exact, rough = learn_prices([day]), learn_prices([day], gap=math.inf)
    assert not np.array_equal(exact.worker, rough.worker)
    patient = learn_prices([day], no_improvement=math.inf)
    assert np.array_equal(exact.worker, patient.worker)
    assert configuration_bound(day, gap=math.inf).status is Status.GAP_LIMIT
    assert configuration_bound(day, no_improvement=0.0).status is Status.NO_IMPROVEMENT
    with pytest.raises(ValueError, match=r"^gap: expected a share >= 0"):
        learn_prices([day], gap=-1.0)
