"""U, L, eta and alpha of (22)-(26) on an instance small enough for pencil and paper.

Four slots. Worker servers have 16 CPUs and 20 Gbit/s in all, the parameter-server host 10 and 20.

| job | W | worker (cpu, Gbit/s) | PS (cpu, Gbit/s) | best, smallest utility |
|-----|---|----------------------|------------------|------------------------|
| a   | 3 | 4, 2                 | 5, 4             | 8, 8                   |
| b   | 2 | 2, 0                 | none needed      | 6, 3                   |
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oasis import Cluster, Constant, Deadline, Instance, Job, Piecewise, Server, Sigmoid
from oasis.online.oasis import OASiS
from oasis.online.prices import PriceBounds, PriceFunction
from tests import builders

CLUSTER = builders.cluster(
    servers=2,
    worker={"cpu": 8.0, "bandwidth_gbps": 10.0},
    ps={"cpu": 10.0, "bandwidth_gbps": 20.0},
)
A = builders.job(
    "a",
    chunks=2,
    minibatch_time=1.5,
    worker={"cpu": 4.0, "bandwidth_gbps": 2.0},
    ps={"cpu": 5.0, "bandwidth_gbps": 4.0},
    utility=Constant(8.0),
)
B = builders.job(
    "b",
    1,
    minibatch_time=2.0,
    worker={"cpu": 2.0},
    ps={"cpu": 100.0},
    utility=Piecewise((1.0, 2.0), (6.0, 3.0)),
)
INSTANCE = Instance(4, CLUSTER, (A, B))


def bounds(*jobs: Job, on: Cluster = CLUSTER, horizon: int = 4, **options: Any) -> PriceBounds:
    return PriceBounds.from_jobs(jobs, on, horizon, **options)


def test_normalised_bounds_by_hand():
    """Demands as shares of the group's total: a asks for 1/4 + 1/10, b for 1/8; C = 2."""
    found = PriceBounds.from_instance(INSTANCE)
    assert found.worker.eta == pytest.approx(4 * 2 / (2 * 0.125))  # max of 8 / 1.05 and 8 / 0.25
    lower = min(8 / (3 * 0.35), 3 / (2 * 0.125)) / (4 * 32)
    assert found.worker.lower == pytest.approx([lower / 16, lower / 20])
    assert found.worker.upper == pytest.approx([6 / 2, 8 / 2])
    assert found.ps.eta == pytest.approx(4 * 2 / (3 * 0.7))
    assert found.ps.lower == pytest.approx([0.25 / 10, 0.25 / 20])
    assert found.ps.upper == pytest.approx([8 / 5, 8 / 4])
    assert found.alpha == pytest.approx(math.log((8 / 0.1) / lower))
    assert found.alpha == pytest.approx(math.log(1344))
    assert (found.normalize, found.min_utility_fraction) == (True, 0.7)


def test_printed_bounds_by_hand():
    """Raw units, CPUs plus Gbit/s: a asks for 3 * 6 = 18 of 4 * 36, b for 2 * 2."""
    found = PriceBounds.from_instance(INSTANCE, normalize=False)
    assert found.worker.eta == pytest.approx(144 / 4)
    assert found.worker.lower == pytest.approx([8 / 18 / 144] * 2)
    assert found.worker.upper == pytest.approx([3.0, 4.0])
    assert found.ps.eta == pytest.approx(120 / 27)
    assert found.ps.lower == pytest.approx([1 / 60] * 2)
    assert found.ps.upper == pytest.approx([1.6, 2.0])
    assert found.alpha == pytest.approx(math.log(4.0 * 18 * 144 / 8))


def test_price_of_usage_beyond_capacity_is_upper():
    """The tolerance of rounding may fill a server by a billionth too much."""
    price = PriceBounds.from_instance(INSTANCE).worker
    assert price(np.array([9.0, 11.0]), np.array([8.0, 10.0])) == pytest.approx(price.upper)


@pytest.mark.parametrize(
    "job",
    [
        replace(B, id="long", minibatch_time=10.0),
        replace(B, id="late", arrival=3),
        replace(B, id="void", utility=Constant(0.0)),
        replace(B, id="past", utility=Deadline(5.0, 0.0)),
    ],
    ids=lambda job: job.id,
)
def test_jobs_that_cannot_finish_or_are_worth_nothing_are_left_out(job):
    assert bounds(A, B, job).to_dict() == bounds(A, B).to_dict()
    alone = bounds(job)
    assert alone.alpha == 1.0
    assert (alone.worker.lower == 0).all()


def test_floor_takes_the_smallest_utility_that_counts():
    """0.003 is less than a thousandth of 6: it defines L only without a floor."""
    cheap = replace(B, utility=Piecewise((1.0, 2.0), (6.0, 0.003)))
    level = [bounds(cheap, min_utility_fraction=f).worker.lower[0] for f in (1e-3, 0.0, 0.5)]
    assert level[0] / level[1] == pytest.approx(6 / 0.003)
    assert level[2] == level[0]
    assert bounds(B, min_utility_fraction=0.5).worker.lower[0] == pytest.approx(level[0] / 2)
    assert bounds(B, min_utility_fraction=0.51).worker.lower[0] == pytest.approx(level[0])


def test_lower_bound_is_kept_as_a_logarithm_where_it_underflows():
    """A critical sigmoid is e^-1782 at the horizon; L is 0.0, its logarithm is not."""
    critical = replace(A, utility=Sigmoid(1.0, 6.0, 3.0))
    found = PriceBounds.from_jobs((critical,), CLUSTER, 301, min_utility_fraction=0.0).worker
    assert found.lower.tolist() == [0.0, 0.0]
    assert -1800 < found.log_lower[0] < -1780
    assert found.upper[0] == pytest.approx(1 / (1 + math.exp(-12)) / 4)
    assert found(np.array([8.0, 0.0]), np.array([8.0, 10.0]))[0] == pytest.approx(found.upper[0])


def test_scale_must_be_positive_and_the_floor_a_fraction():
    for factor in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"factor: expected a finite number > 0, got"):
            bounds(A).scaled(factor)
    for fraction in (-0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match="min_utility_fraction: expected 0 <= phi < 1"):
            bounds(A, min_utility_fraction=fraction)


def test_the_largest_value_for_the_least_demand_is_no_crash():
    """Prices between 1 and 1e60 a unit; still nobody pays more than the job is worth."""
    tiny = replace(B, worker={"cpu": 1e-30}, utility=Constant(1e30))
    scheduler = OASiS(CLUSTER, 4, bounds(tiny))
    assert scheduler.submit(tiny).admitted


def test_bounds_of_no_jobs_say_that_nothing_is_known():
    with pytest.raises(ValueError, match=r"^jobs: expected at least one job$"):
        PriceBounds.from_jobs([], CLUSTER, 4)
    bounds = PriceBounds.from_jobs([], CLUSTER, 4, may_know_nothing=True)
    assert not bounds.worker.upper.any()
    hopeless = replace(A, arrival=3, epochs=999)
    assert PriceBounds.from_jobs([hopeless], CLUSTER, 4).to_dict() == bounds.to_dict()
    assert PriceBounds.from_instance(Instance(4, CLUSTER, ())).to_dict() == bounds.to_dict()


UNIT = {"cpu": 1.0, "bandwidth_gbps": 1.0}
ONE = builders.cluster(worker=UNIT, ps=UNIT)
SMALL = builders.job(
    "a",
    worker={"cpu": 0.5, "bandwidth_gbps": 0.25},
    ps={"cpu": 0.25, "bandwidth_gbps": 0.25},
    utility=Constant(1.0),
)


def test_job_that_is_larger_than_the_cluster_does_not_take_upper_below_lower():
    """Its load is 200 of a supply of 2: U = 1 / 100, but L = 1 / (4 eta 200) = 1 / 8."""
    huge = {"cpu": 100.0, "bandwidth_gbps": 100.0}
    found = bounds(replace(SMALL, worker=huge, ps=huge), on=ONE, horizon=1)
    assert found.worker.eta == pytest.approx(0.01)
    assert found.worker.lower == pytest.approx([1 / 8, 1 / 8])
    assert found.worker.log_ratio.tolist() == [0.0, 0.0]
    assert found.worker.upper.tolist() == found.worker.lower.tolist()
    assert found.alpha == 1.0


def test_resource_that_the_group_does_not_have_has_no_range_of_prices():
    bare = replace(ONE, worker_servers=(Server("w", {"cpu": 1.0}),))
    found = bounds(SMALL, on=bare, horizon=1)
    assert found.worker.log_ratio[1] == 0.0
    assert np.isneginf(found.worker.log_lower[1])
    assert found.scaled(5.0).worker.log_ratio[1] == 0.0


def test_price_function_holds_floats_that_cannot_be_changed():
    price = PriceFunction(np.zeros(2, dtype=int), [1, 2], 1.0)
    for values in (price.log_lower, price.log_ratio):
        assert values.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0


def test_job_that_asks_for_nothing_that_is_there_defines_no_price():
    """A load of nothing would make eta infinite and L nothing."""
    cluster = Cluster(
        ("cpu", "bandwidth_gbps", "gpu"),
        (Server("w", {"cpu": 1.0, "bandwidth_gbps": 1.0}),),
        ONE.ps_servers,
        1.0,
    )
    elsewhere = replace(SMALL, id="b", worker={"gpu": 1.0}, ps={})
    both, alone = (bounds(*jobs, on=cluster).worker for jobs in ((elsewhere, SMALL), (SMALL,)))
    assert both.to_dict() == alone.to_dict()
    assert np.isfinite(both.eta)


def test_bounds_count_work_in_slots_of_the_cluster():
    """8 Gbit there and back at 1 Gbit/s take 16 s: two slots of 8 s, or one of 16 s."""
    amounts = {"cpu": 0.5, "bandwidth_gbps": 1.0}
    job = replace(SMALL, gradient_mb=1000.0, minibatch_time=0.0, worker=amounts, ps=amounts)
    etas = {}
    for seconds in (8.0, 16.0):
        cluster = replace(ONE, slot_seconds=seconds)
        etas[seconds] = PriceBounds.from_jobs((job,), cluster, 4).worker.eta
    assert etas[8.0] == pytest.approx(4 * 2 / (2 * 1.5))
    assert etas[16.0] == pytest.approx(4 * 2 / (1 * 1.5))


@pytest.mark.parametrize("eta", [2.5, np.nan])
def test_price_function_is_written_with_nulls_and_read_again(eta):
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
