"""The upper price U is never below the lower price L, and what nobody can buy has no range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oasis import Cluster, Constant, Job, Server
from oasis.online.prices import PriceBounds, PriceFunction
from tests import builders

ONE = {"cpu": 1.0, "bandwidth_gbps": 1.0}
CLUSTER = builders.cluster(worker=ONE, ps=ONE)
JOB = builders.job(
    "a",
    worker={"cpu": 0.5, "bandwidth_gbps": 0.25},
    ps={"cpu": 0.25, "bandwidth_gbps": 0.25},
    utility=Constant(1.0),
)


def bounds(*jobs: Job, cluster: Cluster = CLUSTER) -> PriceBounds:
    return PriceBounds.from_jobs(jobs, cluster, 1)


def test_job_that_is_larger_than_the_cluster_does_not_take_upper_below_lower() -> None:
    """Its load is 200 of a supply of 2: U = 1 / 100, but L = 1 / (4 eta 200) = 1 / 8."""
    huge = {"cpu": 100.0, "bandwidth_gbps": 100.0}
    found = bounds(replace(JOB, worker=huge, ps=huge))
    assert found.worker.eta == pytest.approx(0.01)
    assert found.worker.lower == pytest.approx([1 / 8, 1 / 8])
    assert found.worker.log_ratio.tolist() == [0.0, 0.0]
    assert found.worker.upper.tolist() == found.worker.lower.tolist()
    assert found.alpha == 1.0


def test_resource_that_the_group_does_not_have_has_no_range_of_prices() -> None:
    bare = replace(CLUSTER, worker_servers=(Server("w", {"cpu": 1.0}),))
    found = bounds(JOB, cluster=bare)
    assert found.worker.log_ratio[1] == 0.0
    assert np.isneginf(found.worker.log_lower[1])
    assert found.scaled(5.0).worker.log_ratio[1] == 0.0


def test_price_function_holds_floats_that_cannot_be_changed() -> None:
    price = PriceFunction(np.zeros(2, dtype=int), [1, 2], 1.0)  # type: ignore[arg-type]
    for values in (price.log_lower, price.log_ratio):
        assert values.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0


def test_price_functions_are_told_apart_by_identity_because_arrays_have_no_truth() -> None:
    one, same = (PriceFunction(np.zeros(2), np.ones(2), 1.0) for _ in range(2))
    assert one == one  # noqa: PLR0124
    assert one != same
    assert len({one, same}) == 2


def test_job_that_asks_for_nothing_that_is_there_defines_no_price() -> None:
    """A load of nothing would make eta infinite and L nothing."""
    cluster = Cluster(
        ("cpu", "bandwidth_gbps", "gpu"),
        (Server("w", {"cpu": 1.0, "bandwidth_gbps": 1.0}),),
        CLUSTER.ps_servers,
        1.0,
    )
    elsewhere = replace(JOB, id="b", worker={"gpu": 1.0}, ps={})
    both = PriceBounds.from_jobs((elsewhere, JOB), cluster, 1).worker
    alone = PriceBounds.from_jobs((JOB,), cluster, 1).worker
    assert both.to_dict() == alone.to_dict()
    assert np.isfinite(both.eta)


def test_bounds_count_work_in_slots_of_the_cluster() -> None:
    """8 Gbit there and back at 1 Gbit/s take 16 s: two slots of 8 s, or one of 16 s."""
    amounts = {"cpu": 0.5, "bandwidth_gbps": 1.0}
    job = replace(JOB, gradient_mb=1000.0, minibatch_time=0.0, worker=amounts, ps=amounts)
    etas = {}
    for seconds in (8.0, 16.0):
        cluster = replace(CLUSTER, slot_seconds=seconds)
        etas[seconds] = PriceBounds.from_jobs((job,), cluster, 4).worker.eta
    assert etas[8.0] == pytest.approx(4 * 2 / (2 * 1.5))
    assert etas[16.0] == pytest.approx(4 * 2 / (1 * 1.5))


def test_price_is_the_exponential_up_to_e_to_the_709_and_never_infinite() -> None:
    price = PriceFunction(np.array([708.9, 709.5, 0.0]), np.array([0.0, 0.0, 5000.0]), 1.0)
    assert price.lower[0] == np.exp(708.9)
    assert price.lower[1] == price.upper[2] == np.exp(709.0)
    assert np.isfinite(price.upper).all()


@pytest.mark.parametrize("eta", [2.5, np.nan])
def test_price_function_is_written_with_nulls_and_read_again(eta: float) -> None:
    price = PriceFunction(np.array([0.5, -np.inf]), np.array([1.5, 0.0]), eta)
    data = price.to_dict()
    assert data == {
        "log_lower": [0.5, None],
        "log_ratio": [1.5, 0.0],
        "eta": None if np.isnan(eta) else eta,
    }
    again = PriceFunction.from_dict(data)
    assert again.log_lower.tolist() == [0.5, -np.inf]
    assert again.log_ratio.tolist() == [1.5, 0.0]
    assert again.eta == eta or np.isnan([again.eta, eta]).all()
    assert again.to_dict() == data
