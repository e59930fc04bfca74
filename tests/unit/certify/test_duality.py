"""The dual bound (19) on instances small enough for pencil and paper."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import oasis
from oasis import Cluster, Constant, Instance, Piecewise, Server
from oasis.certify.duality import empty_payoff
from tests import builders
from tests.oracle.reference_search import textbook
from tests.strategies import Market, rugged_markets

BANDWIDTH = "bandwidth_gbps"
CLUSTER = Cluster(
    ("cpu", BANDWIDTH),
    (
        Server("w0", {"cpu": 2.0, BANDWIDTH: 9.0}),
        Server("w1", {"cpu": 1.0, BANDWIDTH: 9.0}),
    ),
    (Server("p", {"cpu": 4.0, BANDWIDTH: 9.0}),),
    1.0,
)
JOB = builders.job(
    "a",
    workers=3,
    worker={"cpu": 1.0},
    ps={"cpu": 1.0},
    utility=Piecewise((0.0, 1.0), (50.0, 45.0)),
)
# CPU prices of (w0, w1) in two slots, and of p; bandwidth is free
WORKER = np.array([[[4.0, 0.0], [1.0, 0.0]], [[2.0, 0.0], [8.0, 0.0]]])
PS = np.array([[[3.0, 0.0]], [[5.0, 0.0]]])
RENT = (4.0 * 2 + 1.0 + 2.0 * 2 + 8.0) + (3.0 * 4 + 5.0 * 4)


def payoff(**changes: object) -> float:
    job = replace(JOB, **changes)  # type: ignore[arg-type]
    return empty_payoff(Instance(2, CLUSTER, (job,)), job, WORKER, PS)


def test_dual_bound_is_the_rent_of_all_servers_plus_what_jobs_gain() -> None:
    """Three worker-slots at once in slot 0 cost 1 + 4 + 4; split as 1 + 2 they cost 1 + 2 + 2."""
    assert payoff() == max(50.0 - 9.0, 45.0 - 5.0) == 41.0
    assert oasis.dual_bound(Instance(2, CLUSTER, (JOB,)), WORKER, PS) == RENT + 41.0
    jobs = (JOB, replace(JOB, id="b", utility=Constant(3.0)))
    assert oasis.dual_bound(Instance(2, CLUSTER, jobs), WORKER, PS) == RENT + 41.0
    assert oasis.dual_bound(Instance(2, CLUSTER, ()), WORKER, PS) == RENT


@given(rugged_markets())
def test_a_payoff_is_that_of_the_textbook_where_parameter_servers_come_in_steps(
    market: Market,
) -> None:
    instance = Instance(market.horizon, market.cluster, (market.job,))
    prices = market.worker_prices, market.ps_prices
    used = {"worker_used": np.zeros_like(prices[0]), "ps_used": np.zeros_like(prices[1])}
    found = max(0.0, empty_payoff(instance, market.job, *prices))
    assert found == pytest.approx(textbook(market.arguments | used), rel=1e-9, abs=1e-9)


def test_a_loss_is_no_gain_but_is_told() -> None:
    assert payoff(utility=Constant(3.0)) == 3.0 - 5.0


def test_job_without_room_for_its_work_has_no_payoff() -> None:
    assert payoff(epochs=2) == 45.0 - (1.0 + 4.0 + 4.0 + 2.0 + 2.0 + 8.0)
    assert payoff(epochs=3) == -math.inf
    assert payoff(chunks=1, epochs=3) == -math.inf
    assert payoff(minibatch_time=1e30) == -math.inf  # no table is as long as its work
    assert payoff(worker={"cpu": 3.0}) == -math.inf
    alone = Instance(2, CLUSTER, (replace(JOB, epochs=3),))
    assert oasis.dual_bound(alone, WORKER, PS) == RENT


@pytest.mark.parametrize("value", [-1e-9, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("group", ["worker_prices", "ps_prices"])
def test_what_is_no_price_is_refused_in_either_group(value: float, group: str) -> None:
    prices = {"worker_prices": WORKER.copy(), "ps_prices": PS.copy()}
    prices[group][1, 0, 1] = value
    with pytest.raises(ValueError, match=f"{group}: expected non-negative finite prices"):
        oasis.dual_bound(Instance(2, CLUSTER, (JOB,)), **prices)


@pytest.mark.parametrize("group", ["worker_prices", "ps_prices"])
def test_prices_of_another_shape_are_refused(group: str) -> None:
    prices = {"worker_prices": WORKER, "ps_prices": PS}
    expected = rf"{group}: expected shape \(2, \d, 2\), got \(1, \d, 2\)"
    with pytest.raises(ValueError, match=expected):
        oasis.dual_bound(Instance(2, CLUSTER, (JOB,)), **(prices | {group: prices[group][:1]}))
