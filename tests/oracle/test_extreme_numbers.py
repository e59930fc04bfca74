"""Units, prices and counts far apart: the answer must not depend on what they are measured in."""

from __future__ import annotations

import numpy as np
import pytest

import oasis
from oasis import Cluster, Constant, Instance, Job, Server
from oasis.online.dp import best_split, smallest_cost, smallest_factor
from offline import solve
from tests.oracle.textbook_split import costs


def small_unit(unit: float, jobs: int = 3, demand: float = 1.0) -> Instance:
    cluster = Cluster(("gpu",), (Server("w", {"gpu": unit}),), (Server("p", {}),), 3600.0)
    return Instance(
        1,
        cluster,
        [
            Job(f"j{k}", 0, 1, 1, 1, 1.0, 0.0, {"gpu": demand * unit}, {}, Constant(1.0))
            for k in range(jobs)
        ],
    )


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-10, 1e-30, 1e20])
@pytest.mark.parametrize("method", ["milp", "bruteforce"])
def test_optimum_does_not_depend_on_the_unit(unit: float, method: str) -> None:
    """An absolute tolerance let three jobs share a server that holds one."""
    assert solve(small_unit(unit), method=method).objective == 1.0
    assert solve(small_unit(unit, demand=1.0009), method=method).objective == 0.0


@pytest.mark.parametrize("unit", [1.0, 1e-10])
def test_server_that_is_full_holds_no_more(unit: float) -> None:
    instance = small_unit(unit)
    schedules = {job.id: oasis.Schedule(job.id, [[0, 0, 1]], []) for job in instance.jobs}
    with pytest.raises(oasis.VerificationError, match=r"\(4\)"):
        oasis.verify(instance, schedules)


def test_demand_for_a_resource_that_no_server_has_is_never_met() -> None:
    cluster = Cluster(("gpu",), (Server("w", {}),), (Server("p", {}),), 3600.0)
    job = Job("j", 0, 1, 1, 1, 1.0, 0.0, {"gpu": 1e-12}, {}, Constant(1.0))
    instance = Instance(1, cluster, [job])
    assert solve(instance, method="bruteforce").objective == 0.0
    with pytest.raises(oasis.VerificationError):
        oasis.verify(instance, {"j": oasis.Schedule("j", [[0, 0, 1]], [])})


def test_slots_beyond_reach_do_not_hide_the_cheap_ones() -> None:
    rows = np.array([1e16 * np.arange(101.0), 0.7 * np.arange(101.0)])
    split = best_split(rows, np.array([1, 1]), np.array([105.0, 105.0]), 100, 0.0)
    assert split is not None
    assert split.payoff == pytest.approx(35.0)


def test_smallest_utility_is_sharp_although_prices_span_twelve_orders() -> None:
    rng = np.random.default_rng(0)
    steps = np.ceil(np.arange(11) / 3.7)
    for _ in range(200):
        rows = np.array(
            [
                np.cumsum(np.r_[0.0, np.sort(10.0 ** rng.uniform(-2, 12, 10))])
                + steps * rng.uniform(0.5, 5)
                for _ in range(7)
            ]
        )
        demand = int(rng.integers(5, 40))
        exact = costs(rows, demand)
        split = smallest_cost(rows, np.ones(7, np.int64), demand)
        assert split is not None
        assert -split.payoff == pytest.approx(exact[-1], rel=1e-9)
        utility = np.linspace(9.0, 3.0, 7)
        factor = smallest_factor(rows, np.ones(7, np.int64), utility, demand)
        assert factor == pytest.approx((exact / utility).min(), rel=1e-9)


def test_many_more_chunks_than_fit_cost_no_memory() -> None:
    cluster = Cluster(("gpu",), (Server("w", {"gpu": 4.0}),), (Server("p", {}),), 3600.0)
    job = Job("j", 0, 1, 10**9, 1, 0.25, 0.0, {"gpu": 1.0}, {}, Constant(1.0))
    instance = Instance(10, cluster, [job])
    decision = oasis.OASiS.from_instance(instance).quote(job)
    assert decision.reason is not None
    assert decision.reason.startswith("no room")


@pytest.mark.parametrize("field", ["epochs", "chunks", "minibatches"])
def test_count_without_a_float_of_its_own_is_refused(field: str) -> None:
    counts = {"epochs": 1, "chunks": 1, "minibatches": 1} | {field: 10**400}
    with pytest.raises(oasis.InstanceError, match=field):
        Job("j", 0, *counts.values(), 1.0, 0.0, {}, {}, Constant(1.0))


def test_time_limit_counts_building_the_model() -> None:
    instance = oasis.generate("calibrated", jobs=12, worker_servers=30, ps_servers=30, horizon=60)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    result = solve(instance, method="milp", time_limit=0.0, warm_start=run.schedules)
    assert result.status == "time_limit"
    assert result.upper_bound >= result.objective == run.total_utility > 0
