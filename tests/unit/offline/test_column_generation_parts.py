"""Parts of the column generation: rows by class, the restricted master, pricing, its time."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.model.utility import Utility
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline import ConfigurationParams, solve
from offline.column_generation import solve as colgen
from offline.column_generation.bound import configuration_bound
from offline.column_generation.generation import ColumnGeneration
from offline.column_generation.pricing import (
    FIRST_SMOOTHING,
    MOST_SMOOTHING,
    StabilityCentre,
    empty,
    merged,
    price,
)
from offline.column_generation.restricted_master import (
    Column,
    Grouping,
    RestrictedMaster,
    columns_of,
    levels,
    similar,
)
from offline.column_generation.solve import Configuration
from offline.model.arrays import GroupArrays, OfflineArrays
from offline.params import ColumnGenerationParams
from offline.state import SolveState, decide
from tests import builders
from tests.strategies import all_instances, fewer

INSTANCE = oasis.generate("calibrated", jobs=8, worker_servers=5, ps_servers=4, horizon=8, seed=2)
ARRAYS = OfflineArrays.of(INSTANCE)
RUN, START = decide(INSTANCE, SolveState(Budget()), lambda: oasis.OASiS.from_instance(INSTANCE))
PARAMS = ColumnGenerationParams()


@given(all_instances(most_servers=4), st.integers(1, 4))
@fewer(3)
def test_usage_of_a_class_is_the_share_of_all_its_servers_and_costs_what_prices_say(
    instance: oasis.Instance, classes: int
) -> None:
    arrays = OfflineArrays.of(instance)
    grouping = Grouping.of(arrays, classes)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    total = np.zeros(grouping.size)
    duals = np.random.default_rng(0).random(grouping.size)
    worker, ps = grouping.prices(duals)
    is_there = [
        np.tile(rows.total > 0, (arrays.horizon, 1, 1)) for rows in (grouping.worker, grouping.ps)
    ]
    has_any = np.concatenate([part.ravel() for part in is_there])
    np.testing.assert_allclose(grouping.duals(worker, ps), np.where(has_any, duals, 0.0))
    cost = 0.0
    for k, job in enumerate(instance.jobs):
        if job.id in run.schedules:
            schedule = run.schedules[job.id]
            rows, shares = grouping.usage(k, schedule)
            total[rows] += shares
            for prices, table, demand in (
                (worker, schedule.workers, arrays.worker.demand[k]),
                (ps, schedule.ps, arrays.ps.demand[k]),
            ):
                cost += sum(n * float(prices[t, s] @ demand) for t, s, n in table.tolist())
    assert (total <= 1 + 1e-9).all()  # feasible schedules satisfy the rows of every grouping
    assert total @ duals == pytest.approx(cost)  # and cost what their rows say


def test_groupings_get_finer_and_end_with_identical_servers() -> None:
    sizes = [grouping.size for grouping in levels(ARRAYS, (1, 2))]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == Grouping.of(ARRAYS).size
    assert similar(ARRAYS.worker, 1).max() == 0
    # They have equal parts of the first resource, but not of the others.
    two = GroupArrays(np.array([[3.0, 1.0, 2.0], [3.0, 2.0, 1.0]]), np.zeros((0, 3)), 3)
    assert similar(two, 2).max() == 1


def test_the_master_is_worth_the_best_mix_of_its_columns() -> None:
    columns = columns_of(ARRAYS, RUN.schedules)
    master = RestrictedMaster(Grouping.of(ARRAYS))
    assert master.add(columns) == len(columns)
    assert master.add(columns) == 0
    solution = master.solve(Budget())
    assert solution is not None
    assert solution.value == pytest.approx(RUN.total_utility)  # they fit together
    assert solution.value == pytest.approx(solution.duals.sum() + solution.payoffs.sum())
    master.keep_best(solution, 0)
    assert not master.columns
    assert Column.of(ARRAYS, columns[0].job, columns[0].schedule).key == columns[0].key


def test_the_centre_moves_to_better_prices_and_smooths_by_the_subgradient() -> None:
    centre = StabilityCentre(START.prices.worker, START.prices.ps)
    centre.restart()
    assert (centre.bound, centre.smoothing) == (math.inf, FIRST_SMOOTHING)
    for is_beyond, end in ((True, MOST_SMOOTHING), (False, 0.0)):
        seen = [centre.smoothing]
        for _ in range(100):
            centre.adapt(is_idle=False, is_beyond=is_beyond)
            seen.append(centre.smoothing)
        assert seen == sorted(seen, reverse=not is_beyond)
        assert seen[1] != seen[0]
        assert seen[-1] == pytest.approx(end)
    centre.move((START.prices.worker * 2, START.prices.ps), 5.0)
    assert centre.bound == 5.0


def test_a_generation_ends_with_the_lp_solved_from_any_prices() -> None:
    bounds = []
    for factor in (1.0, 0.0, 100.0):
        state = SolveState(Budget())
        generation = ColumnGeneration(ARRAYS, Budget(), state, PARAMS)
        prices = type(START.prices)(START.prices.worker * factor, START.prices.ps * factor, {})
        generation.run(prices, ())
        assert generation.status is Status.OPTIMAL
        assert generation.centre.bound == state.bound
        bounds.append(generation.centre.bound)
    assert bounds == pytest.approx([configuration_bound(INSTANCE).bound] * 3, rel=1e-5)


# -- classes of servers ----------------------------------------------------------------------------


@given(all_instances(most_servers=4), st.integers(1, 4), st.integers(0, 10**6))
@fewer(2)
def test_payoffs_are_those_of_single_servers_at_the_same_prices(
    instance: oasis.Instance, classes: int, seed: int
) -> None:
    """At random prices of classes, some of them 0."""
    arrays = OfflineArrays.of(instance)
    grouping = Grouping.of(arrays, classes)
    rng = np.random.default_rng(seed)
    most = max(float(job.utility(0)) for job in instance.jobs)
    duals = most * rng.random(grouping.size) * (rng.random(grouping.size) < 0.7)
    by_class, by_server = merged(grouping, duals), empty(arrays, *grouping.prices(duals))
    for index, job in enumerate(instance.jobs):
        payoff, schedule = price(job, by_class)
        assert payoff == pytest.approx(price(job, by_server)[0], rel=1e-9, abs=1e-9 * most)
        if schedule is not None:
            oasis.verify(instance, {job.id: schedule})
            rows, shares = grouping.usage(index, schedule)
            worth = arrays.utility(index, schedule.completion)
            assert payoff == pytest.approx(worth - duals[rows] @ shares, rel=1e-9, abs=1e-9 * most)


# -- the method ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demand", "chunks", "utility"),
    [
        (5, 1, oasis.Constant(10.0)),  # no server holds a worker
        (4, 3, oasis.Deadline(1e6, 1)),  # no job completes in time
        (4, 1, oasis.Constant(0.0)),  # no job is worth anything
    ],
)
def test_that_nothing_can_be_earned_is_proven_in_a_few_rounds(
    demand: int, chunks: int, utility: Utility
) -> None:
    changes = {"worker": {"gpu": demand}, "chunks": chunks, "utility": utility}
    instance = builders.instance(*(builders.job(name, **changes) for name in "ab"), horizon=4)
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
    params, clock = ConfigurationParams(), SimpleNamespace(read=lambda: 0.0, is_repeatable=False)
    stop = Budget(limit, clock)  # type: ignore[arg-type]
    problem = SimpleNamespace(instance=INSTANCE)
    state = SolveState(stop)
    run: Any = SimpleNamespace(
        params=params, stop=stop, state=state, arrays=ARRAYS, problem=problem
    )
    helper: Any = SimpleNamespace() if helped else None
    found = Configuration(params)._bound_and_improve(run, START.prices, helper)
    assert found is Status.INTERRUPTED
    assert given == [pytest.approx(seconds)]
