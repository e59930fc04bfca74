"""Prices (22)-(26): monotone, between L and U, and independent of units where normalised."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Cluster, Instance, Job, OASiS, PriceBounds, Server
from oasis.testing import instances
from tests.oracle import kinds
from tests.strategies import RESOURCES, all_instances, of

SHARES = np.linspace(0.0, 1.0, 33)


def bounds_of(instance, normalize, fraction, scale):
    bounds = PriceBounds.from_instance(instance, normalize=normalize, min_utility_fraction=fraction)
    return bounds.scaled(scale)


options = (of(True, False), of(1e-3, 0.0, 0.3), of(1.0, 0.2, 5.0))


@given(all_instances(), *options)
def test_prices_rise_with_usage_from_lower_to_upper(instance, normalize, fraction, scale):
    bounds = bounds_of(instance, normalize, fraction, scale)
    cluster = instance.cluster
    for price, capacity in (
        (bounds.worker, cluster.worker_capacity),
        (bounds.ps, cluster.ps_capacity),
    ):
        assert (price.log_ratio >= 0).all()
        assert (price.upper >= price.lower).all()
        used = SHARES[:, None, None] * capacity
        prices = price(used, np.broadcast_to(capacity, used.shape))
        assert (np.diff(prices, axis=0) >= -1e-12 * prices[1:]).all()
        assert (prices >= price.lower * (1 - 1e-12)).all()
        assert (prices <= price.upper * (1 + 1e-12)).all()
        room = capacity > 0
        shape = room.shape
        np.testing.assert_allclose(prices[0][room], np.broadcast_to(price.lower, shape)[room])
        np.testing.assert_allclose(prices[-1][room], np.broadcast_to(price.upper, shape)[room])


@given(all_instances(), *options[:2], of(0.2, 0.5, 1.0, 3.0, 10.0))
def test_scaling_moves_the_upper_bound_and_keeps_the_lower(instance, normalize, fraction, scale):
    """Fig. 6; U never falls below L."""
    bounds = bounds_of(instance, normalize, fraction, 1.0)
    changed = bounds.scaled(scale)
    for one, other in ((bounds.worker, changed.worker), (bounds.ps, changed.ps)):
        assert (one.log_lower == other.log_lower).all()
        free = one.log_ratio == 0
        expected = np.maximum(0.0, one.log_ratio[~free] + np.log(scale))
        np.testing.assert_allclose(other.log_ratio[~free], expected)
        assert (other.log_ratio[free] == 0).all()
    assert changed.alpha == max(1.0, changed.worker.log_ratio.max(), changed.ps.log_ratio.max())


@given(all_instances(), *options)
def test_bounds_survive_plain_data_bit_for_bit(instance, normalize, fraction, scale):
    bounds = bounds_of(instance, normalize, fraction, scale)
    again = PriceBounds.from_dict(bounds.to_dict())
    assert again.to_dict() == bounds.to_dict()
    for group in ("worker", "ps"):
        one, other = getattr(bounds, group), getattr(again, group)
        assert (one.log_lower == other.log_lower).all()
        assert (one.log_ratio == other.log_ratio).all()
        assert one.eta == other.eta or np.isnan([one.eta, other.eta]).all()


@given(instances(), of(True, False))
def test_order_of_the_jobs_does_not_matter(instance, normalize):
    turned = Instance(instance.horizon, instance.cluster, instance.jobs[::-1])
    one, other = (PriceBounds.from_instance(i, normalize=normalize) for i in (instance, turned))
    assert one.to_dict() == other.to_dict()


def rescaled(instance, resource, factor):
    """The same problem with `resource` counted in units `factor` times smaller."""

    def amounts(vector):
        return {n: v * factor if n == resource else v for n, v in vector.items()}

    def machines(servers):
        return tuple(replace(s, capacity=amounts(s.capacity)) for s in servers)

    def job(one):
        return replace(one, worker=amounts(one.worker), ps=amounts(one.ps))

    old = instance.cluster
    cluster = Cluster(
        old.resources, machines(old.worker_servers), machines(old.ps_servers), old.slot_seconds
    )
    return Instance(instance.horizon, cluster, tuple(job(one) for one in instance.jobs))


@given(all_instances(), of("gpu", "cpu"), st.integers(-20, 20), of("worker-slot", "chunk"))
def test_units_do_not_matter_where_prices_are_normalised(instance, resource, exponent, granularity):
    """Powers of two, so that amounts scale exactly; never bandwidth, which carries the gradients.

    Prices are exponentials of logarithms, so that the same payoff may differ in its last bits.
    Decisions agree until two schedules tie up to these bits.
    """
    other = rescaled(instance, resource, 2.0**exponent)
    schedulers = [OASiS.from_instance(i, granularity=granularity) for i in (instance, other)]
    one, two = (scheduler.bounds for scheduler in schedulers)
    assert two.alpha == pytest.approx(one.alpha, rel=1e-9)
    r = RESOURCES.index(resource)
    for a, b in ((one.worker, two.worker), (one.ps, two.ps)):
        shift = np.zeros(len(RESOURCES))
        shift[r] = -exponent * np.log(2.0)
        np.testing.assert_allclose(b.log_lower, a.log_lower + shift, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(b.log_ratio, a.log_ratio, rtol=1e-9, atol=1e-9)
    pairs = zip(instance.jobs_by_arrival(), other.jobs_by_arrival(), strict=True)
    for jobs in pairs:
        a, b = (s.submit(job) for s, job in zip(schedulers, jobs, strict=True))
        assert a.payoff == pytest.approx(b.payoff, rel=1e-9, abs=1e-9)
        if a.schedule != b.schedule:
            break  # a tie: equal payoff, and from here on different ledgers
        assert (a.admitted, a.completion) == (b.admitted, b.completion)


# -- jobs in several forms


@pytest.mark.parametrize("normalize", [True, False])
def test_prices_are_those_of_an_instance_where_each_form_is_a_job(normalize):
    """(23)-(26) range over all schedules: without a floor it does not matter whose they are."""
    left_out = 0
    for seed in range(150):
        given = kinds.instance(seed)
        forms = [
            replace(form, id=f"{job.id}-{k}")
            for job in given.jobs
            for k, form in enumerate(job.in_forms)
            if given.cluster.unmet(form) is None
        ]
        left_out += len(forms) < sum(len(job.in_forms) for job in given.jobs)
        alike = replace(given, jobs=tuple(forms))
        one, other = (
            PriceBounds.from_instance(each, min_utility_fraction=0.0, normalize=normalize)
            for each in (given, alike)
        )
        assert json.dumps(one.to_dict()) == json.dumps(other.to_dict()), seed
    assert left_out > 20


def test_the_floor_is_a_share_of_the_best_of_all_forms_that_can_run():
    """A form below it is as if it were not there; a form that no machine admits sets no floor."""
    machine = Server("w", {"gpu": 4.0}, labels={"gpu": "a100"})
    cluster = Cluster(("gpu",), (machine,), (), slot_seconds=1.0)
    slow, fast = oasis.Form(minibatch_time=4.0), oasis.Form(minibatch_time=1.0)
    elsewhere = oasis.Form(minibatch_time=0.25, requires={"gpu": ["h100"]})
    worth = oasis.Piecewise((0.0, 1.0, 3.0, 4.0), (80.0, 10.0, 4.0, 3.0))
    job = Job("j", 0, 1, 2, 2, 1.0, 0.0, {"gpu": 1.0}, {}, worth, forms=(slow, fast))

    def bounds(*forms):
        given = Instance(20, cluster, (replace(job, forms=forms),))
        return PriceBounds.from_instance(given, min_utility_fraction=0.5)

    assert bounds(slow, fast).to_dict() == bounds(fast).to_dict() != bounds(slow).to_dict()
    assert bounds(elsewhere, fast).to_dict() == bounds(fast).to_dict()
