"""Amounts that are counted together, and shared parts of gang controllers."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.fair_shares import Pools
from baselines.gangs import GangController
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.placement import OneNode
from oasis.scheduling.site import Machine, Site
from oasis.simulator.run import replay
from oasis.simulator.workload import Workload

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


class Whoever(GangController):
    """Launches whoever fits, in order of arrival."""

    name, parameters = "whoever", MappingProxyType({})

    def decide(self, view):
        self._begin(view)
        self._queue.launch_all(lambda job: (job.index,), self._launch, set())
        return self._plan


def gang(name: str, workers: int, arrival: float = 0.0) -> PolicyJob:
    return PolicyJob(
        name, arrival, 6.0, ((0, 1),), min_workers=workers, initial_workers=workers, max_workers=9
    )


@pytest.mark.parametrize(("gpus", "start"), [(4.0, 2.0), (5.0, 0.0)])
def test_a_gang_starts_whole_or_waits(gpus: float, start: float) -> None:
    site = Site(("gpu",), (Machine("n0", (gpus,)),))
    outcome = replay(Workload.of(site, [gang("a", 3), gang("b", 2)]), Whoever(OneNode))
    assert [job.start for job in outcome.jobs] == [0.0, start]


def test_a_request_that_no_empty_cluster_holds_shrinks() -> None:
    site = Site(("gpu",), (Machine("n0", (4.0,)),))
    job = PolicyJob("a", 0.0, 8.0, ((0, 1),), min_workers=1, initial_workers=7, max_workers=9)
    assert replay(Workload.of(site, [job]), Whoever(OneNode)).completions == [2.0]
