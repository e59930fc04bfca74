"""The models over schedules: what fits, capacity rows, and the way between values and schedules."""

from __future__ import annotations

from itertools import product

import numpy as np
import pulp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.model import rounding
from oasis.solvers.budget import Budget, OutOfTimeError
from offline import solve
from offline.benders.master import CountModel
from offline.enumeration import fitting_counts
from offline.model.arrays import GROUPS, OfflineArrays, units_that_fit
from offline.model.capacities import limits_of_server
from offline.model.milp import CompactModel, compact_size
from offline.model.schedule_model import ScheduleModel
from offline.model.variables import variables_of
from offline.params import EnumerationParams
from tests import builders
from tests.strategies import all_instances, fewer, levels, of, small_instances


@given(all_instances())
@fewer(2)
def test_arrays_say_what_the_instance_says(instance: oasis.Instance) -> None:
    arrays, cluster = OfflineArrays.of(instance), instance.cluster
    for name, capacity in zip(GROUPS, (cluster.worker_capacity, cluster.ps_capacity), strict=True):
        group = arrays.group(name)
        assert (group.capacity == capacity).all()
        for k, job in enumerate(instance.jobs):
            demand = getattr(job, name)
            assert group.demand[k].tolist() == [demand.get(r, 0.0) for r in cluster.resources]
    part = arrays.part([len(instance.jobs) - 1])
    assert part.jobs == instance.jobs[-1:]
    assert (part.worker.demand == arrays.worker.demand[-1:]).all()
    completion = instance.horizon - 1
    job = instance.jobs[-1]
    assert arrays.utility(len(instance.jobs) - 1, completion) == float(
        job.utility(completion - job.arrival)
    )


@given(
    levels((2, 3, 2), (0.0, 1.0, 2.0, 0.3, 7.0)),
    levels((3, 2), (0.0, 1.0, 0.1, 2.5)),
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
)
def test_units_that_fit_are_the_most_whose_use_fits(capacity, demand, most) -> None:
    units = units_that_fit(capacity, demand, np.array(most))
    assert units.shape == (3, 2, 3)
    for i, t, s in product(range(3), range(2), range(3)):
        count = int(units[i, t, s])

        def holds(n: int, i: int = i, t: int = t, s: int = s) -> bool:
            pairs = zip(demand[i], capacity[t, s], strict=True)
            return all(rounding.fits(n * asked, limit) for asked, limit in pairs)

        assert count <= most[i]
        assert holds(count)
        assert count == most[i] or not holds(count + 1)


@given(
    levels((2,), (1.0, 2.0, 0.3, 7.0)),
    levels((2, 2), (0.0, 1.0, 0.1, 2.5)),
)
def test_capacity_rows_accept_exactly_what_fits(capacity, demand) -> None:
    problem = pulp.LpProblem("rows", pulp.LpMaximize)
    units = [problem.add_variable(f"n_{i}", 0, 4, pulp.LpInteger) for i in range(2)]
    limits = limits_of_server(capacity, list(zip(demand, units, strict=True)))
    rows = [limit.row() for limit in limits]
    for counts in product(range(5), repeat=2):
        used = np.array(counts) @ demand
        values = dict(zip(units, counts, strict=True))
        sums = [sum(c * values[v] for v, c in row.items()) for row in rows]
        kept = all(total <= row.getUb() for total, row in zip(sums, rows, strict=True))
        assert kept == all(map(rounding.fits, used.tolist(), capacity.tolist()))


@given(small_instances(), of(False, True))
@fewer(3)
def test_schedules_survive_the_way_through_the_variables(
    instance: oasis.Instance, are_merged: bool
) -> None:
    """Counts are those of schedules on one server; what comes back completes when it did."""
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    arrays = OfflineArrays.of(instance)
    model = CountModel(arrays) if are_merged else ScheduleModel(arrays, "test")
    assert model.schedules_of({}) == {}
    found = model.schedules_of(model.values_of(run.schedules))
    for name, schedule in found.items():
        assert schedule.completion <= run.schedules[name].completion
        work = sum(schedule.workers[:, 2].tolist())
        assert work == next(j for j in instance.jobs if j.id == name).work(instance.slot_seconds)
    if not are_merged:
        assert oasis.verify(instance, found) >= run.total_utility * (1 - 1e-9)


@given(all_instances())
@fewer(3)
def test_jobs_without_variables_can_be_worth_nothing(instance: oasis.Instance) -> None:
    arrays, problem = OfflineArrays.of(instance), pulp.LpProblem("test", pulp.LpMaximize)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    for k, job in enumerate(instance.jobs):
        made = variables_of(arrays, k, 0, problem)
        if made is None:
            assert job.id not in run.schedules
        else:
            assert made.slots[0] == job.arrival
            assert all(value > 0 for value in made.utility.values())
            assert min(made.done) >= job.arrival
            assert made.completed.keys() == made.done.keys()


@given(all_instances())
@fewer(3)
def test_a_job_has_completed_from_its_completion_on(instance: oasis.Instance) -> None:
    model = CountModel(OfflineArrays.of(instance))
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    values = model.values_of(run.schedules)
    for c in model.jobs:
        schedule = run.schedules.get(c.job.id)
        completion = instance.horizon if schedule is None else schedule.completion
        for slot, variable in c.completed.items():
            assert values.get(variable.name, 0.0) == (slot >= completion)


def test_a_job_longer_than_any_array_is_left_out_of_every_method() -> None:
    jobs = (builders.job("a"), builders.job("b", minibatch_time=1e30))
    given = builders.instance(*jobs, horizon=3)
    for method in ("milp", "benders", "colgen"):
        assert oasis.solve(given, method=method).objective == 1.0


def test_a_model_that_takes_too_long_to_build_is_given_up() -> None:
    instance = oasis.generate("testbed", jobs=3, seed=1)
    with pytest.raises(OutOfTimeError):
        CompactModel(OfflineArrays.of(instance), Budget(0.0))


def test_size_counts_slots_from_arrival_times_servers() -> None:
    instance = oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=1, horizon=6, seed=1)
    slots = sum(6 - job.arrival for job in instance.jobs)
    assert compact_size(OfflineArrays.of(instance)) == 3 * slots


@given(small_instances())
@fewer(3)
def test_counts_that_fit_are_closed_downwards_and_placed_as_counted(
    instance: oasis.Instance,
) -> None:
    most = [min(job.chunks, 3) for job in instance.jobs]
    fitting = fitting_counts(instance.jobs, most, instance.cluster)
    assert (0,) * len(most) in fitting
    for counts, placement in fitting.items():
        assert tuple(map(sum, placement.workers)) == counts
        needed = [int(j.ps_needed(n)) for j, n in zip(instance.jobs, counts, strict=True)]
        assert list(map(sum, placement.ps)) == needed
        for i, n in enumerate(counts):
            assert n == 0 or (*counts[:i], n - 1, *counts[i + 1 :]) in fitting


def test_an_instance_too_large_to_enumerate_is_refused_by_its_steps() -> None:
    tiny = oasis.generate("testbed", jobs=2, worker_servers=1, ps_servers=1, horizon=3, seed=3)
    with pytest.raises(ValueError, match=r"too large for brute force: \d+ steps, at most 1; use"):
        solve(tiny, "bruteforce", params=EnumerationParams(max_steps=1))
    best = solve(tiny, "bruteforce").objective
    assert solve(tiny, "milp", time_limit=None).objective == pytest.approx(best, rel=1e-6)
