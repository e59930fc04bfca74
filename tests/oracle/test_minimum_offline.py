"""Offline optima of jobs with a minimum of workers, and what bounds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oasis
from oasis import Instance, InstanceError, Recourse
from oasis.solvers import Status
from offline import configuration_bound, solve, solve_milp
from offline.model.arrays import OfflineArrays
from offline.model.milp import CompactModel
from offline.solve import METHOD_BY_NAME
from tests.oracle.tiny import seeded, tiny_instance

HEEDING = {"milp", "bruteforce"}


def gangs(seed: int) -> Instance:
    """A tiny instance in which most jobs have a minimum above 1."""
    instance = tiny_instance(seeded(seed), jobs=3, horizon=4)
    rng = np.random.default_rng(seed)
    jobs = tuple(
        replace(job, min_workers=int(rng.integers(min(2, job.chunks), job.chunks + 1)))
        for job in instance.jobs
    )
    return replace(instance, jobs=jobs)


def with_a_gang() -> list[int]:
    return [seed for seed in range(80) if any(job.min_workers > 1 for job in gangs(seed).jobs)]


def test_the_compact_model_agrees_with_the_enumeration() -> None:
    dearer = 0
    for seed in with_a_gang():
        instance = gangs(seed)
        exact = solve(instance, "bruteforce")
        found = solve_milp(instance)
        assert found.status is Status.OPTIMAL, seed
        assert found.objective == pytest.approx(exact.objective, rel=1e-6), seed
        assert oasis.verify(instance, found) == found.objective
        assert oasis.verify(instance, exact) == exact.objective
        single = replace(instance, jobs=tuple(replace(j, min_workers=1) for j in instance.jobs))
        free = solve(single, "bruteforce").objective
        assert free >= exact.objective * (1 - 1e-9), seed
        dearer += free > exact.objective * (1 + 1e-9)
    assert dearer > 5  # a minimum costs something


def test_what_bounds_the_optimum_bounds_it_with_a_minimum_too() -> None:
    for seed in with_a_gang()[::2]:
        instance = gangs(seed)
        exact = solve(instance, "bruteforce").objective
        scheduler = oasis.OASiS.from_instance(instance)
        run = oasis.simulate(instance, scheduler)
        ledger = scheduler.ledger
        bounds = [
            oasis.dual_bound(instance, ledger.worker_prices, ledger.ps_prices),
            oasis.certify(instance, run).upper_bound,
            configuration_bound(instance).bound,
        ]
        assert min(bounds) >= exact * (1 - 1e-9), seed
        planned = oasis.simulate(instance, Recourse(rounds=2))
        assert max(run.total_utility, planned.total_utility) <= exact * (1 + 1e-9), seed


def test_schedules_become_values_of_the_model_and_back() -> None:
    for seed in with_a_gang()[:30]:
        instance = gangs(seed)
        run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
        model = CompactModel(OfflineArrays.of(instance))
        values = model.values_of(run.schedules)
        for variable in model.problem.variables():
            variable.varValue = values.get(variable.name, 0.0)
        assert all(row.valid(1e-9) for row in model.problem.constraints()), seed
        assert model.schedules_of(values).keys() == run.schedules.keys()
        oasis.verify(instance, model.schedules_of(values))


@pytest.mark.parametrize("method", METHOD_BY_NAME)
def test_a_method_heeds_a_minimum_or_refuses_it_by_name(method: str) -> None:
    instance = gangs(next(seed for seed in with_a_gang() if gangs(seed).jobs[0].min_workers > 1))
    if method in HEEDING:
        assert solve(instance, method).status is Status.OPTIMAL
        return
    with pytest.raises(InstanceError) as refused:
        solve(instance, method)
    least = instance.jobs[0].min_workers
    assert str(refused.value) == (
        f"jobs[0].min_workers: expected 1: method '{method}' counts workers from one on, "
        f"got {least} (job 'j0'); use method 'auto'"
    )
    solve(replace(instance, jobs=()), method)


def test_the_method_that_is_chosen_heeds_it() -> None:
    instance = gangs(with_a_gang()[0])
    assert solve(instance).method == "milp"
    huge = oasis.generate("calibrated", jobs=40, seed=1)
    wide = replace(huge, jobs=tuple(replace(j, min_workers=min(2, j.chunks)) for j in huge.jobs))
    assert solve(huge, time_limit=0.0).method != "milp"
    assert solve(wide, time_limit=0.0).method == "milp"
