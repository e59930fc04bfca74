"""Parts of the column generation: rows by class, the restricted master, pricing, the centre."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.column_generation.bound import configuration_bound
from offline.column_generation.generation import ColumnGeneration
from offline.column_generation.pricing import (
    FIRST_SMOOTHING,
    MOST_SMOOTHING,
    StabilityCentre,
    empty,
    price,
    pricing_work,
)
from offline.column_generation.restricted_master import (
    Column,
    Grouping,
    GroupRows,
    RestrictedMaster,
    columns_of,
    levels,
    similar,
)
from offline.model.arrays import GroupArrays, OfflineArrays
from offline.params import ColumnGenerationParams
from offline.state import SolveState, decide
from tests.strategies import all_instances, fewer

INSTANCE = oasis.generate("calibrated", jobs=8, worker_servers=5, ps_servers=4, horizon=8, seed=2)
ARRAYS = OfflineArrays.of(INSTANCE)
RUN, START = decide(INSTANCE, SolveState(Budget()), lambda: oasis.OASiS.from_instance(INSTANCE))
PARAMS = ColumnGenerationParams()


@given(all_instances(most_servers=4), st.integers(1, 4))
@fewer(3)
def test_usage_of_a_class_is_the_share_of_all_its_servers(
    instance: oasis.Instance, classes: int
) -> None:
    arrays = OfflineArrays.of(instance)
    grouping = Grouping.of(arrays, classes)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    total = np.zeros(grouping.size)
    duals = np.random.default_rng(0).random(grouping.size)
    worker, ps = grouping.prices(duals)
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


def test_a_group_without_servers_has_no_rows() -> None:
    assert GroupRows(3, np.zeros((0, 2)), np.zeros(0, np.int64)).size == 0


def test_prices_and_dual_values_undo_each_other() -> None:
    grouping = Grouping.of(ARRAYS, 2)
    duals = np.random.default_rng(1).random(grouping.size)
    worker, ps = grouping.prices(duals)
    has_any = np.concatenate(
        [
            np.tile(rows.total > 0, (ARRAYS.horizon, 1, 1)).ravel()
            for rows in (grouping.worker, grouping.ps)
        ]
    )
    np.testing.assert_allclose(grouping.duals(worker, ps), np.where(has_any, duals, 0.0))


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


def test_a_price_of_nothing_buys_the_earliest_completion() -> None:
    free = empty(ARRAYS, *(np.zeros_like(p) for p in (START.prices.worker, START.prices.ps)))
    for job in INSTANCE.jobs:
        payoff, schedule = price(job, free)
        duration = job.shortest_duration(INSTANCE.slot_seconds)
        assert payoff <= float(job.utility(duration - 1)) * (1 + 1e-9)
        assert (schedule is None) == (payoff == 0.0)
    assert pricing_work(ARRAYS) > 0


def test_the_centre_moves_to_better_prices_and_smooths_by_the_subgradient() -> None:
    centre = StabilityCentre(START.prices.worker, START.prices.ps)
    centre.restart()
    assert (centre.bound, centre.smoothing) == (math.inf, FIRST_SMOOTHING)
    centre.adapt(is_idle=False, is_beyond=True)
    higher = centre.smoothing
    assert higher > FIRST_SMOOTHING
    for _ in range(100):
        centre.adapt(is_idle=False, is_beyond=True)
    assert centre.smoothing <= MOST_SMOOTHING
    for _ in range(100):
        centre.adapt(is_idle=False, is_beyond=False)
    assert centre.smoothing == 0.0
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
