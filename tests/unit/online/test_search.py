"""The search for one job: what it has looked up, on a ledger that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Cluster, Constant, Job, Piecewise, Server
from oasis.online.dp.lagrangian import Split
from oasis.online.ledger import Ledger
from oasis.online.search import Search
from oasis.online.server_group import ServerGroup
from tests import builders
from tests.strategies import fewer

BANDWIDTH = "bandwidth_gbps"
CLUSTER = Cluster(
    ("cpu", BANDWIDTH),
    (Server("w0", {"cpu": 2.0, BANDWIDTH: 9.0}), Server("w1", {"cpu": 1.0, BANDWIDTH: 9.0})),
    (Server("p", {"cpu": 2.0, BANDWIDTH: 9.0}),),
    1.0,
)
# two chunks of 1.5 worker-slots each: three in all; a whole chunk in a slot needs two workers
JOB = builders.job(
    "a", 1, chunks=2, minibatch_time=1.5, worker={"cpu": 1.0}, utility=Constant(10.0)
)
HORIZON = 4


def ledger(cpu: Any = 1.0, used: Any = 0.0, ps_cpu: Any = 0.0, ps_used: Any = 0.0) -> Ledger:
    """CPU prices and used CPUs by slot and server, (T, 2) and (T, 1); bandwidth is free."""
    tables = []
    for values, servers in ((cpu, 2), (ps_cpu, 1), (used, 2), (ps_used, 1)):
        table = np.zeros((HORIZON, servers, 2))
        table[:, :, 0] = values
        tables.append(table)
    return Ledger.of_arrays(CLUSTER, *tables)


def counts(split: Split | None) -> list[int]:
    assert split is not None
    return split.counts[: split.completion + 1].tolist()


def with_ps(share: float) -> Job:
    """A worker sends at `share` of what a parameter server takes."""
    return replace(JOB, worker={"cpu": 1.0, BANDWIDTH: share}, ps={"cpu": 1.0, BANDWIDTH: 1.0})


def test_room_and_costs_are_the_same_whatever_was_looked_up_before():
    """A search that has looked as far as slot 3 answers for earlier slots from what it knows."""
    busy = ledger(cpu=[[1.0], [3.0], [2.0], [2.0]], used=[[2.0, 0], [0, 0], [0, 1.0], [0, 1.0]])
    for job in (
        JOB,
        with_ps(1.0),
        replace(JOB, utility=Piecewise((0.0, 1.0, 2.0), (90.0, 60.0, 0.0))),
    ):
        for slots in ((3, 1, 2), (1, 3, 2), (2, 3, 1)):
            search = Search(job, busy)
            rooms = {slot: search.room_until(slot) for slot in slots}
            assert rooms == {slot: Search(job, busy).room_until(slot) for slot in slots}
            found, fresh = search.best(), Search(job, busy).best()
            assert counts(found) == counts(fresh)
            assert search.smallest_factor() == Search(job, busy).smallest_factor()
            assert counts(search.cheapest()) == counts(Search(job, busy).cheapest())


@fewer(10)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_a_schedule_is_that_of_a_search_that_knows_nothing(seed, copies):
    """Servers that are still columns of several, and slots in the middle of runs, among them."""
    instance = oasis.generate(
        "calibrated",
        jobs=6,
        worker_servers=4 * copies,
        ps_servers=3 * copies,
        horizon=12,
        seed=seed,
    )
    scheduler = oasis.OASiS.from_instance(instance, min_utility_fraction=0.0)
    for job in instance.jobs_by_arrival():
        for find in (Search.best, Search.cheapest, lambda s: s.earliest(instance.horizon - 1)):
            search = Search(job, scheduler.ledger)
            split = find(search)
            if split is not None:
                fresh = Search(job, scheduler.ledger)
                assert search.schedule(split) == fresh.schedule(split)
        scheduler.submit(job)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(1, 20), st.integers(0, 5))
def test_what_is_free_may_be_given_and_may_be_more_than_is_asked_for(free, units, more):
    capacity = np.array([free], dtype=float)
    used = np.zeros((1, 1, len(free)))
    price = np.arange(len(free), dtype=float)[None, None] % 3
    servers = np.arange(len(free))
    group = ServerGroup(capacity, used, price, servers, np.full(len(free), 1))
    demand, slots, wanted = np.ones(1), np.zeros(1, dtype=np.int64), np.array([units])
    if sum(free) < units:
        return
    fills = [
        group.fill(demand, slots, wanted, group.fits(demand, slots, most))
        for most in (units, units + more)
    ]
    for one, other in zip(*fills, strict=True):
        assert one.tolist() == other.tolist()
