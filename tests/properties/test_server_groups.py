"""Identical servers given as a group, against the same servers written out one by one."""

import tracemalloc
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Cluster, OASiS, Server
from oasis.testing import clusters, instances
from tests.strategies import all_instances, schedulers

ARRAYS = ("worker_used", "ps_used", "worker_prices", "ps_prices")


def written_out(cluster):
    groups = [
        tuple(
            Server(name.replace("#", "_"), server.capacity)
            for server in group
            for name in server.ids
        )
        for group in (cluster.worker_servers, cluster.ps_servers)
    ]
    return Cluster(cluster.resources, *groups, cluster.slot_seconds)


def grouped_instances():
    return st.one_of(all_instances(), instances(most_jobs=8, most_work=40, cluster=clusters(9)))


def check_columns(ledger):
    """Columns cover the servers in order, and those of several servers are idle and in no other."""
    for group, capacity in (
        (ledger.worker, ledger.cluster.worker_capacity),
        (ledger.ps, ledger.cluster.ps_capacity),
    ):
        assert group.server.tolist() == [0, *np.cumsum(group.copies)[:-1].tolist()]
        assert group.copies.sum() == len(capacity)
        assert (np.repeat(group.capacity.T, group.copies, axis=0) == capacity).all()
        assert not group.used[:, :, group.copies > 1].any()


def same_decision(grouped, plain):
    """All but the names of the servers."""
    assert grouped.admitted == plain.admitted
    assert (grouped.payoff, grouped.utility, grouped.cost) == (
        plain.payoff,
        plain.utility,
        plain.cost,
    )
    assert grouped.schedule == plain.schedule
    assert grouped.reason == plain.reason
    assert (grouped.rejection is None) == (plain.rejection is None)
    if grouped.rejection is not None and plain.rejection is not None:
        one, other = grouped.rejection, plain.rejection
        assert one.smallest_utility == other.smallest_utility
        assert one.utility_factor == other.utility_factor
        if one.bottleneck is not None and other.bottleneck is not None:
            names = tuple(name.replace("#", "_") for name in one.bottleneck.servers)
            assert replace(one.bottleneck, servers=names) == other.bottleneck


@given(grouped_instances(), schedulers())
def test_groups_decide_as_the_same_servers_one_by_one(instance, make):
    """Admission, payoff, schedule by index of the server, reason and prices, to the last bit."""
    grouped, plain = make(instance), make(replace(instance, cluster=written_out(instance.cluster)))
    for job in instance.jobs_by_arrival():
        same_decision(grouped.submit(job), plain.submit(job))
        for name in ARRAYS:
            one, other = (getattr(scheduler.ledger, name) for scheduler in (grouped, plain))
            np.testing.assert_array_equal(one, other)
        assert grouped.ledger.changes.tolist() == plain.ledger.changes.tolist()
        check_columns(grouped.ledger)
        check_columns(plain.ledger)


def regrouped(instance, sizes):
    """The first machines of both groups, each now `sizes[k]` times."""
    cluster = instance.cluster
    parts = [
        tuple(replace(s, count=n) for s, n in zip(group, sizes, strict=False))
        for group in (cluster.worker_servers, cluster.ps_servers)
    ]
    return replace(instance, cluster=Cluster(cluster.resources, *parts, cluster.slot_seconds))


def large(count, jobs=40, horizon=100):
    """Ten kinds of machine in each group, `count` of them all told, and calibrated jobs."""
    instance = oasis.generate(jobs=jobs, worker_servers=5, ps_servers=5, horizon=horizon)
    instance = regrouped(instance, (count // 10,) * 5)
    return OASiS.from_instance(instance), instance.jobs_by_arrival()


def test_ten_thousand_servers_in_groups_take_the_memory_of_those_in_use():
    tracemalloc.start()
    try:
        scheduler, jobs = large(10_000)
        one_array = 8 * scheduler.horizon * 10_000 * len(scheduler.cluster.resources)
        tracemalloc.reset_peak()
        assert scheduler.ledger.nbytes < one_array / 100
        before = tracemalloc.get_traced_memory()[0]
        for job in jobs:
            scheduler.submit(job)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert sum(decision.admitted for decision in scheduler.decisions) == len(jobs)
    assert scheduler.ledger.nbytes < one_array / 2
    assert peak < one_array
    check_columns(scheduler.ledger)
