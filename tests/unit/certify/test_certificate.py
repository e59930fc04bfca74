"""Certificates whose numbers vanish or overflow, and the dual bound (19) on paper and textbook."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import oasis
from oasis import Cluster, Constant, Instance, Piecewise, Server
from oasis.certify.certificate import Certificate, _log_growth
from oasis.certify.duality import empty_payoff
from oasis.model.groups import TaskGroup
from tests import builders
from tests.oracle.reference_search import textbook
from tests.strategies import rugged_markets

LARGEST = math.exp(708.9)


@pytest.mark.parametrize(
    ("log_alpha_x", "utility", "bound", "ratio"),
    [
        (math.log(3.0), 10.0, 5.0 + 3.0 * 10.0 + 7.0, 4.2),
        (math.log(3.0), 0.5, 5.0 + 1.5 + 7.0, 27.0),
        (math.log(3.0), 0.0, 12.0, None),
        (708.9, 1.0, LARGEST, LARGEST),
        (708.0, 4.0, math.inf, None),
        (709.0, 1.0, math.inf, None),
        (709.9, 1.0, math.inf, None),
        (1e6, 1.0, math.inf, None),
        (720.0, 1e-20, math.exp(720.0 - 20 * math.log(10.0)), None),  # e^720 is no float
    ],
)
def test_bound_is_initial_dual_plus_alpha_x_times_utility_plus_gap(
    log_alpha_x, utility, bound, ratio
):
    made = Certificate(2.0, log_alpha_x, 5.0, 7.0, utility)
    assert made.upper_bound == pytest.approx(bound, rel=1e-9)
    assert made.ratio_bound == (None if ratio is None else pytest.approx(ratio))


def test_growth_of_a_step_too_large_for_the_exponential_is_a_finite_logarithm():
    log_ratio = np.array([2000.0])
    whole = oasis.Schedule("a", workers=[[0, 0, 1]], ps=[])  # all that its server has, at once
    found = _log_growth(builders.cluster(1.0), TaskGroup.WORKER, builders.job(), whole, log_ratio)
    assert found == pytest.approx(2000.0)


# -- the dual bound --------------------------------------------------------------------------------

BANDWIDTH = "bandwidth_gbps"
W0, W1, P = (
    Server(name, {"cpu": cpus, BANDWIDTH: 9.0}) for name, cpus in (("w0", 2), ("w1", 1), ("p", 4))
)
CLUSTER = Cluster(("cpu", BANDWIDTH), (W0, W1), (P,), 1.0)
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


def test_dual_bound_is_the_rent_of_all_servers_plus_what_jobs_gain():
    """Three worker-slots at once in slot 0 cost 1 + 4 + 4; split as 1 + 2 they cost 1 + 2 + 2."""
    assert payoff() == max(50.0 - 9.0, 45.0 - 5.0) == 41.0
    assert oasis.dual_bound(Instance(2, CLUSTER, (JOB,)), WORKER, PS) == RENT + 41.0


@given(rugged_markets())
def test_a_payoff_is_that_of_the_textbook_where_parameter_servers_come_in_steps(market):
    instance = Instance(market.horizon, market.cluster, (market.job,))
    prices = market.worker_prices, market.ps_prices
    used = {"worker_used": np.zeros_like(prices[0]), "ps_used": np.zeros_like(prices[1])}
    found = max(0.0, empty_payoff(instance, market.job, *prices))
    assert found == pytest.approx(textbook(market.arguments | used), rel=1e-9, abs=1e-9)


def test_a_loss_is_told_and_a_job_without_room_for_its_work_has_no_payoff():
    assert payoff(utility=Constant(3.0)) == 3.0 - 5.0
    assert payoff(epochs=2) == 45.0 - (1.0 + 4.0 + 4.0 + 2.0 + 2.0 + 8.0)
    assert payoff(epochs=3) == -math.inf
    assert payoff(chunks=1, epochs=3) == -math.inf
    assert payoff(minibatch_time=1e30) == -math.inf  # no table is as long as its work
    assert payoff(worker={"cpu": 3.0}) == -math.inf
    alone = Instance(2, CLUSTER, (replace(JOB, epochs=3),))
    assert oasis.dual_bound(alone, WORKER, PS) == RENT


@pytest.mark.parametrize("group", ["worker_prices", "ps_prices"])
def test_what_is_no_price_of_each_slot_and_server_is_refused(group):
    prices = {"worker_prices": WORKER, "ps_prices": PS}
    for value in (-1e-9, -1.0, math.nan, math.inf):
        wrong = prices[group].copy()
        wrong[1, 0, 1] = value
        with pytest.raises(ValueError, match=f"{group}: expected non-negative finite prices"):
            oasis.dual_bound(Instance(2, CLUSTER, (JOB,)), **(prices | {group: wrong}))
    expected = rf"{group}: expected shape \(2, \d, 2\), got \(1, \d, 2\)"
    with pytest.raises(ValueError, match=expected):
        oasis.dual_bound(Instance(2, CLUSTER, (JOB,)), **(prices | {group: prices[group][:1]}))
