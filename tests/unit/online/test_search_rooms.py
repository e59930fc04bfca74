"""The room that a search has looked up is what its schedule is filled into."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.online.search import Search
from oasis.online.server_group import ServerGroup
from tests.strategies import fewer


@fewer(10)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_a_schedule_is_that_of_a_search_that_knows_nothing(seed: int, copies: int) -> None:
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
def test_what_is_free_may_be_given_and_may_be_more_than_is_asked_for(
    free: list[int], units: int, more: int
) -> None:
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
