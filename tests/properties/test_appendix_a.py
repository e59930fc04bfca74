"""Appendix A: an empty cluster rejects no job it can serve, a full one admits no job.

What holds precisely. L <= f_i(latest completion that counts) / (4 T sum_h,r c), for every job i
that defines L, so a schedule that fits the empty cluster costs at most a quarter of that utility
for its workers, and as much again for its parameter servers. Hence at zero usage the payoff is at
least half the utility, provided that the utilities are above float underflow and that the job can
complete on the empty cluster in a slot that counts. At full usage of a resource its price is
U >= f_i(best) / w_i, so one worker alone costs all that the job is worth.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import OASiS, PriceBounds
from oasis.testing import instances
from tests.oracle.reference_search import textbook
from tests.strategies import fewer, of

SMALLEST = 1e-280  # utilities below it times capacities underflow


def zero_prices(instance):
    cluster, horizon = instance.cluster, instance.horizon
    arrays = {}
    for group, capacity in (("worker", cluster.worker_capacity), ("ps", cluster.ps_capacity)):
        for what in ("prices", "used"):
            arrays[f"{group}_{what}"] = np.zeros((horizon, *capacity.shape))
    return arrays


def can_be_scheduled(instance, job, fraction):
    """On the empty cluster and for nothing, does the job complete in a slot that counts?"""
    market = {"job": job, "cluster": instance.cluster, "horizon": instance.horizon}
    return textbook(market | zero_prices(instance), fraction) > SMALLEST


def smallest_counted(instance, job, fraction):
    """The smallest utility above the floor, over all completions the job could reach alone."""
    first = job.shortest_duration(instance.slot_seconds) - 1
    values = job.utility(np.arange(first, instance.horizon - job.arrival)).tolist()
    return min((v for v in values if v > 0 and v >= fraction * values[0]), default=0.0)


@given(instances(most_jobs=6), of(1e-3, 0.0, 0.3), of(True, False), of(1.0, 0.2, 5.0))
def test_empty_cluster_admits_every_job_it_can_serve(instance, fraction, normalize, scale):
    """And at a payoff of at least half the utility, whatever U/L is scaled by."""
    for job in instance.jobs:
        scheduler = OASiS.from_instance(
            instance, normalize=normalize, min_utility_fraction=fraction, scale=scale
        )
        quote = scheduler.quote(job)
        if can_be_scheduled(instance, job, fraction) and all(
            float(np.exp(other.utility.log_value(instance.horizon))) > SMALLEST
            for other in instance.jobs
        ):
            assert quote.admitted
        if quote.admitted:
            assert quote.cost <= quote.utility / 2 * (1 + 1e-9)


@given(instances(most_jobs=6), of(1e-3, 0.0, 0.3), of(True, False))
def test_initial_prices_of_each_group_are_worth_at_most_a_quarter_of_any_utility(
    instance, fraction, normalize
):
    """sum_t,h,r L1 c_h^r <= min_i f_i / 4, and the same for L2: D_0 is at most half of it."""
    bounds = PriceBounds.from_instance(instance, normalize=normalize, min_utility_fraction=fraction)
    for group, capacity in (
        ("worker", instance.cluster.worker_capacity),
        ("ps", instance.cluster.ps_capacity),
    ):
        price = getattr(bounds, group)
        total = instance.horizon * float((price.lower * capacity).sum())
        for job in instance.jobs:
            smallest = smallest_counted(instance, job, fraction)
            demand = getattr(job, group)
            relevant = any(
                demand.get(name, 0.0) > 0 and capacity[:, r].sum() > 0
                for r, name in enumerate(instance.cluster.resources)
            )
            if smallest > 0 and relevant and (group == "worker" or job.needs_ps):
                assert total <= smallest / 4 * (1 + 1e-9)


@fewer(2)
@given(instances(), of(1e-3, 0.0), of(True, False), of(1.0, 5.0), st.data())
def test_full_price_of_one_demanded_resource_deters_every_job(
    instance, fraction, normalize, scale, data
):
    """Nothing is physically taken, only one resource is priced as if it all were."""
    bounds = PriceBounds.from_instance(
        instance, normalize=normalize, min_utility_fraction=fraction
    ).scaled(scale)
    cluster = instance.cluster
    empty = zero_prices(instance)
    group = data.draw(of("worker", "ps"))
    r = data.draw(st.integers(0, len(cluster.resources) - 1))
    usage = {name: empty[f"{name}_used"].copy() for name in ("worker", "ps")}
    usage[group][:, :, r] = getattr(cluster, f"{group}_capacity")[:, r]
    prices = {
        "worker_prices": bounds.worker(
            usage["worker"], np.broadcast_to(cluster.worker_capacity, usage["worker"].shape)
        ),
        "ps_prices": bounds.ps(
            usage["ps"], np.broadcast_to(cluster.ps_capacity, usage["ps"].shape)
        ),
    }
    name = cluster.resources[r]
    for job in instance.jobs:
        if getattr(job, group).get(name, 0.0) > 0 and (group == "worker" or job.needs_ps):
            found = oasis.best_schedule(
                job,
                cluster,
                instance.horizon,
                **(empty | prices),
                min_utility_fraction=fraction,
            )
            assert found.payoff <= 1e-9 * max(1.0, float(job.utility(0)))
