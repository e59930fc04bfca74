"""Amounts that are counted together, and shared parts of gang controllers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from baselines.fair_shares import Pools
from oasis.scheduling.site import Machine, Site

BOTH, WORKER, PS = frozenset({"worker", "ps"}), frozenset({"worker"}), frozenset({"ps"})
hosts = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from([BOTH, WORKER, PS])), min_size=1, max_size=5
)


@given(hosts)
def test_no_machine_is_counted_twice(machines: list[tuple[int, frozenset[str]]]) -> None:
    made = tuple(Machine(f"m{k}", (float(n),), h) for k, (n, h) in enumerate(machines))
    site = Site(("gpu",), made)
    pools = Pools(site)
    assert pools.totals.sum() == sum(n for n, _ in machines)
    apart = all(len(h) == 1 for _, h in machines)
    assert len(pools.totals) == (2 if apart else 1)
    assert pools.place("ps", 0) == (1 if apart else 0)


def test_sums_of_what_is_free() -> None:
    site = Site(("gpu", "cpu"), (Machine("a", (4.0, 8.0), WORKER), Machine("b", (0.0, 6.0), PS)))
    pools = Pools(site)
    assert pools.totals.tolist() == [4.0, 8.0, 0.0, 6.0]
    assert np.array_equal(pools.sums([(1.0, 2.0), (0.0, 3.0)]), [1.0, 2.0, 0.0, 3.0])
    assert [pools.place("worker", 1), pools.place("ps", 1)] == [1, 3]
