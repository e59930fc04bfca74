"""Learning from past days: averages checked by hand, and days that do not go together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Cluster, Instance, Job, PriceBounds, Server
from oasis.solvers import Status
from offline import configuration_bound
from offline.learning import learn_prices
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


def test_bounds_are_the_smallest_lower_and_the_largest_upper_of_the_days() -> None:
    past = [oasis.generate("testbed", jobs=5, seed=seed) for seed in (1, 2, 3)]
    each = [PriceBounds.from_instance(day) for day in past]
    learned = learn_prices(past).bounds
    for name in ("worker", "ps"):
        days = [getattr(bounds, name) for bounds in each]
        both = getattr(learned, name)
        assert both.lower == pytest.approx(np.min([day.lower for day in days], axis=0))
        assert both.upper == pytest.approx(np.max([day.upper for day in days], axis=0))


def test_a_day_without_jobs_teaches_that_resources_are_free_and_no_bounds() -> None:
    empty, busy = Instance(3, CLUSTER, ()), contested(6, 2, 1)
    learned = learn_prices([empty])
    assert not learned.worker.any()
    assert learned.jobs == ()
    assert np.isneginf(learned.bounds.worker.log_lower).all()
    both = learn_prices([empty, busy]).bounds.worker.lower
    assert both == pytest.approx(PriceBounds.from_instance(busy).worker.lower)


DAY = contested(1, 1, 0)
CPU = Cluster(("cpu",), (Server("w", {"cpu": 1.0}),), (Server("p", {"cpu": 1.0}),), 1.0)


@pytest.mark.parametrize(
    ("days", "options", "says"),
    [
        (
            [DAY, replace(DAY, cluster=replace(CLUSTER, slot_seconds=2.0))],
            {},
            r"past\[1\].slot_seconds: expected 1, got 2",
        ),
        ([DAY, Instance(4, CPU, ())], {}, r"past\[1\].resources: expected \['gpu'\]"),
        ([], {}, "past: expected at least one instance"),
        ([DAY], {"slots_per_day": 0}, "slots_per_day: expected an integer >= 1"),
        ([DAY], {"gap": -1.0}, "^gap: expected a share >= 0"),
    ],
)
def test_days_that_do_not_go_together_and_bad_options_are_refused(
    days: list[Instance], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        learn_prices(days, **options)


def test_criteria_end_the_search_for_prices() -> None:
    day = oasis.generate("testbed", jobs=6, seed=1)
    exact, rough = learn_prices([day]), learn_prices([day], gap=math.inf)
    assert not np.array_equal(exact.worker, rough.worker)
    patient = learn_prices([day], no_improvement=math.inf)
    assert np.array_equal(exact.worker, patient.worker)
    assert configuration_bound(day, gap=math.inf).status is Status.GAP_LIMIT
    assert configuration_bound(day, no_improvement=0.0).status is Status.NO_IMPROVEMENT
