"""Prices with predictions: the bound of Proposition 19 (docs/theory), however wrong they are."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import InputError, OASiS, OwnPrices, PriceBounds
from oasis.certify.certificate import _log_alpha_x, initial_dual
from oasis.certify.duality import empty_payoff
from oasis.model.groups import GROUPS
from oasis.model.schedule import committed
from oasis.online.own_prices import Blend, blended
from offline import solve
from tests.strategies import all_instances, fewer, of


@fewer(2)
@given(all_instances(), of(0.0, 0.3, 0.6, 0.9), st.integers(0, 999), of(0.01, 1.0, 100.0))
def test_no_schedule_earns_more_than_the_bound_with_any_prediction(instance, trust, seed, level):
    bounds, rng = PriceBounds.from_instance(instance), np.random.default_rng(seed)
    predicted = rng.exponential(level, (2, len(instance.cluster.resources)))
    blends = [Blend(group.of(bounds), q, trust) for group, q in zip(GROUPS, predicted, strict=True)]
    own = OwnPrices(blends[0], blends[1], bounds.min_utility_fraction)
    run = oasis.simulate(instance, OASiS(instance.cluster, instance.horizon, own))
    used = committed(instance, run.schedules)
    prices = [
        group.of(bounds)(amounts, np.broadcast_to(group.capacity(instance.cluster), amounts.shape))
        for group, amounts in zip(GROUPS, used, strict=True)
    ]
    payoffs = {decision.job_id: decision.payoff for decision in run.decisions}
    gap = math.fsum(
        max(
            0.0,
            max(empty_payoff(instance, form, *prices) for form in job.in_forms) - payoffs[job.id],
        )
        for job in instance.jobs
    )
    log_alpha = _log_alpha_x(instance, run, bounds)
    alpha = math.exp(log_alpha) if log_alpha < 700 else math.inf
    earned = run.total_utility
    growth = alpha / (1 - trust) * earned if earned else 0.0
    bound = initial_dual(instance, bounds) + growth + gap
    assert solve(instance).objective <= bound * (1 + 1e-9) + 1e-12


def test_no_trust_is_the_paper_and_full_trust_the_learned_price():
    past = [oasis.generate("testbed", jobs=4, seed=seed) for seed in (1, 2)]
    learned = oasis.learn_prices(past)
    instance = oasis.generate("testbed", jobs=6, seed=3)
    zero, paper = (
        oasis.simulate(instance, OASiS.from_instance(instance, bounds=learned, **options))
        for options in ({"trust": 0.0}, {})
    )
    assert zero.decisions == paper.decisions
    alone = OASiS.from_instance(instance, bounds=learned, trust=1.0)
    mean = learned.worker.mean(axis=0)
    has = instance.cluster.worker_capacity > 0
    assert np.allclose(alone.ledger.worker_prices[0][has], np.broadcast_to(mean, has.shape)[has])
    assert alone.parameters["trust"] == 1.0


def test_a_trust_beyond_one_is_refused():
    learned = oasis.learn_prices([oasis.generate("testbed", jobs=2, seed=1)])
    with pytest.raises(InputError, match="trust: expected a weight from 0 to 1"):
        blended(learned.bounds, learned, 1.5)
