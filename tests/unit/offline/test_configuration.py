"""Column generation at its edge: instances of which nothing can be earned."""

from __future__ import annotations

import pytest

import oasis
from oasis import Cluster, Instance, Job, Server
from oasis.model.utility import Utility
from oasis.solvers import Status
from offline import solve
from offline.column_generation.bound import configuration_bound

CLUSTER = Cluster(("gpu",), (Server("w", {"gpu": 1}),), (Server("p", {}),), slot_seconds=3600.0)


def pair(gpus: float, chunks: int, utility: Utility) -> Instance:
    """Two jobs that exchange no gradients, for four slots of a GPU."""
    names = ("a", "b")
    demand = {"gpu": gpus}
    jobs = tuple(Job(n, 0, 1, chunks, 1, 1.0, 0.0, demand, {}, utility) for n in names)
    return Instance(4, CLUSTER, jobs)


BARREN = {
    "no server holds a worker": pair(2, 1, oasis.Constant(10.0)),
    "no job completes in time": pair(1, 3, oasis.Deadline(1e6, 1)),
    "no job is worth anything": pair(1, 1, oasis.Constant(0.0)),
}


@pytest.mark.parametrize("instance", BARREN.values(), ids=BARREN)
def test_that_nothing_can_be_earned_is_proven_in_a_few_rounds(instance: Instance) -> None:
    bound = configuration_bound(instance)
    assert (bound.status, bound.bound) == (Status.OPTIMAL, 0.0)
    assert len(bound.rounds) <= 20
    result = solve(instance, "colgen", time_limit=None)
    assert (result.status, result.objective, result.upper_bound) == (Status.OPTIMAL, 0.0, 0.0)
    assert result.gap == 0.0
