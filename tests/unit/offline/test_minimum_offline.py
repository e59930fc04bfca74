"""Offline optima of jobs with a minimum of workers, and what bounds them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Instance, Recourse
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline import configuration_bound, solve
from offline.benders.master import CountModel
from offline.benders.slot_model import SlotModel
from offline.enumeration import fitting_counts
from offline.model.arrays import GROUPS, OfflineArrays
from offline.model.milp import CompactModel
from tests.oracle.tiny import seeded, tiny_instance
from tests.unit.offline.test_benders import SMALL, Patience, hurried, unaided


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


@pytest.fixture(scope="module")
def optima() -> dict[int, float]:
    """Optima of a hundred instances by enumeration, by seed."""
    seeds = [seed for seed in range(200) if any(job.min_workers > 1 for job in gangs(seed).jobs)]
    return {seed: solve(gangs(seed), "bruteforce").objective for seed in seeds[:100]}


def test_the_compact_model_agrees_with_the_enumeration() -> None:
    dearer = 0
    for seed in with_a_gang():
        instance = gangs(seed)
        exact = solve(instance, "bruteforce")
        found = solve(instance, "milp")
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


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("milp", None),
        ("benders", None),
        ("benders", {"whole_size": 0}),
        ("colgen", None),
    ],
    ids=["milp", "benders", "benders with masters in fractions", "colgen"],
)
def test_every_method_agrees_with_the_enumeration(
    optima: dict[int, float],
    method: str,
    params: dict[str, Any] | None,
    pytestconfig: pytest.Config,
) -> None:
    """The compact model and the decomposition prove it, column generation finds and bounds it.

    Of 40 instances by day, of all by night.
    """
    assert len(optima) == 100
    count = 100 if pytestconfig.getoption("--nightly") else 40
    for seed, exact in list(optima.items())[:count]:
        instance = gangs(seed)
        found = solve(
            instance, method, work_limit=0.3 if method == "colgen" else 60.0, params=params
        )
        assert oasis.verify(instance, found) == found.objective, seed
        assert found.objective == pytest.approx(exact, rel=1e-6), seed
        assert found.upper_bound >= exact * (1 - 1e-9), seed
        if method != "colgen":
            assert found.status is Status.OPTIMAL, seed


@pytest.mark.parametrize("method", ["milp", "benders", "colgen"])
def test_every_method_takes_gangs_without_parameter_servers(method: str) -> None:
    """All-reduce on a cluster that hosts no parameter server at all."""
    for seed in with_a_gang()[::4]:
        instance = gangs(seed)
        jobs = tuple(
            replace(job, worker={**job.worker, "bandwidth_gbps": 0.0}, ps={}, gradient_mb=0.0)
            for job in instance.jobs
        )
        alone = replace(instance, cluster=replace(instance.cluster, ps_servers=()), jobs=jobs)
        exact = solve(alone, "bruteforce").objective
        found = solve(alone, method, work_limit=0.3 if method == "colgen" else 60.0)
        assert oasis.verify(alone, found) == pytest.approx(exact, rel=1e-6), seed
        assert found.upper_bound >= exact * (1 - 1e-9), seed


def test_masters_alone_find_the_optimum_of_gangs(
    optima: dict[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any other search, all schedules come from plans of the master."""
    unaided(monkeypatch)
    for seed, exact in list(optima.items())[:20]:
        for size in (0, SMALL):
            given = {"warm_start": {}, "params": hurried(size), "on_progress": Patience()}
            found = solve(gangs(seed), "benders", time_limit=None, **given)
            assert found.status is Status.OPTIMAL, seed
            assert found.objective == pytest.approx(exact, rel=1e-6), seed


def test_the_workers_of_a_slot_are_none_or_a_whole_gang(optima: dict[int, float]) -> None:
    """The heaviest workers of a slot that fit, as the enumeration of all counts has them."""
    smaller = 0
    for seed in optima:
        instance = gangs(seed)
        model = CountModel(OfflineArrays.of(instance))
        if not model.jobs:
            continue
        slots, rng = SlotModel(model), np.random.default_rng(seed)
        least = np.array([c.job.min_workers for c in model.jobs], dtype=np.int64)
        most = slots.at_least(np.array([c.parallel for c in model.jobs], dtype=np.int64))
        weights = rng.uniform(0.5, 1.5, len(most))
        fitting = fitting_counts([c.job for c in model.jobs], most.tolist(), instance.cluster)
        rows = np.array(list(fitting), dtype=np.int64).reshape(-1, len(most))
        allowed = rows[((rows == 0) | (rows >= least)).all(axis=1)]
        units = slots.best(most, weights, slots.empty(), Budget(), 0.0)
        assert units is not None
        workers = units["worker"].sum(axis=1)
        assert ((workers == 0) | (workers >= least)).all(), seed
        assert weights @ workers == pytest.approx((allowed @ weights).max()), seed
        smaller += (rows @ weights).max() > weights @ workers + 1e-9
        for row in rows:
            units = {group: np.zeros((len(most), 1), np.int64) for group in GROUPS}
            units["worker"][:, 0], units["ps"][:, 0] = row, slots.ps_of(row)
            kept = slots.consistent(units)["worker"][:, 0]
            assert kept.tolist() == np.where(row >= least, row, 0).tolist()
    assert smaller > 2  # the minimum keeps workers out now and then


def test_auto_chooses_by_size_with_gangs_too() -> None:
    huge = oasis.generate("calibrated", jobs=40, seed=1)
    wide = replace(huge, jobs=tuple(replace(j, min_workers=min(2, j.chunks)) for j in huge.jobs))
    assert solve(gangs(with_a_gang()[0])).method == "milp"
    assert solve(huge, time_limit=0.0).method == solve(wide, time_limit=0.0).method != "milp"
