"""Column generation at its edge, where nothing can be earned, and how it spends its time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Cluster, Instance, Job, Server
from oasis.model.utility import Utility
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline import ConfigurationParams, solve
from offline.column_generation import solve as colgen
from offline.column_generation.bound import configuration_bound
from offline.column_generation.solve import Configuration, Heuristics
from offline.problem import OfflineProblem
from offline.state import SolveState, warm_start_of

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


@pytest.mark.parametrize(
    ("limit", "helped", "seconds"),
    [(60.0, True, 36.0), (120.0, True, 40.0), (600.0, True, 150.0), (60.0, False, 15.0)],
)
def test_the_bound_gets_longer_where_schedules_are_looked_for_meanwhile(
    monkeypatch: pytest.MonkeyPatch, limit: float, helped: bool, seconds: float
) -> None:
    """A short limit would leave the LP of a long horizon far from solved."""
    given: list[float] = []

    def note(*arguments: Any) -> Any:
        given.append(arguments[4].left)
        return SimpleNamespace(status=Status.INTERRUPTED, rounds=())

    monkeypatch.setattr(colgen, "solve_configuration_lp", note)
    instance = pair(1, 1, oasis.Constant(1.0))
    clock: Any = SimpleNamespace(read=lambda: 0.0, is_repeatable=False)
    state = SolveState(Budget(limit, clock))
    start = warm_start_of(instance, None, state, needs_prices=True)
    assert start.prices is not None
    problem, rng = OfflineProblem(instance, start, state), np.random.default_rng(0)
    params = ConfigurationParams()
    heuristics = Heuristics(problem, params, state.budget, rng)
    helper: Any = SimpleNamespace() if helped else None
    found = Configuration(params)._bound_and_improve(heuristics, start.prices, helper)
    assert found is Status.INTERRUPTED
    assert given == [pytest.approx(seconds)]
