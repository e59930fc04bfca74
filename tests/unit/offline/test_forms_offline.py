"""Offline optima of jobs in several forms on machines of several kinds: one answer of all."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Form, Instance, OASiS, Schedule
from oasis.model.schedule import committed
from oasis.solvers import Status
from oasis.solvers.budget import Budget, WorkCounter
from offline import OnlinePrices, WarmStart, configuration_bound, learn_prices, solve
from offline.column_generation.pricing import price
from offline.column_generation.restricted_master import Column, Grouping, RestrictedMaster
from offline.heuristics.best_solution import BestSolution, PartialSolution
from offline.heuristics.recombination import recombine
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import GROUPS, OfflineArrays
from offline.model.milp import CompactModel
from offline.state import SolveState
from tests.oracle.forms import defined_optimum, of_kinds


def in_forms() -> list[int]:
    """Seeds of instances in which a job has several forms."""
    return [seed for seed in range(400) if any(len(j.in_forms) > 1 for j in of_kinds(seed).jobs)]


@pytest.fixture(scope="module")
def optima(pytestconfig: pytest.Config) -> dict[int, float]:
    """Optima of 50 instances by definition, by seed; each night of 150."""
    count = 150 if pytestconfig.getoption("--nightly") else 50
    return {seed: defined_optimum(of_kinds(seed)) for seed in in_forms()[:count]}


def from_nothing(instance: Instance) -> WarmStart:
    """No schedules and no prices: a method has to find everything itself."""
    worker, ps = (
        np.zeros((instance.horizon, *capacity.shape))
        for capacity in (instance.cluster.worker_capacity, instance.cluster.ps_capacity)
    )
    return WarmStart({}, OnlinePrices(worker, ps, {}))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("bruteforce", None),
        ("milp", None),
        ("benders", None),
        ("benders", {"whole_size": 0}),
        ("colgen", None),
    ],
    ids=["bruteforce", "milp", "benders", "benders with masters in fractions", "colgen"],
)
def test_every_method_agrees_with_the_definition(
    optima: dict[int, float], method: str, params: dict[str, Any] | None
) -> None:
    """All but column generation prove it; that bounds it, and finds it nearly always."""
    assert len(optima) in (50, 150)
    missed = 0
    for seed, exact in optima.items():
        instance = of_kinds(seed)
        limit = 0.3 if method == "colgen" else 60.0
        given = {"warm_start": from_nothing(instance), "params": params}
        found = solve(instance, method, work_limit=limit, **given)
        assert oasis.verify(instance, found) == found.objective, seed
        assert found.upper_bound >= exact * (1 - 1e-9), seed
        if method == "colgen":
            assert 0.98 * exact <= found.objective <= exact * (1 + 1e-6), seed
            missed += found.objective < exact * (1 - 1e-6)
        else:
            assert found.objective == pytest.approx(exact, rel=1e-6), seed
            assert found.status is Status.OPTIMAL, seed
    assert missed <= len(optima) // 50


def test_forms_and_labels_matter_in_these_instances(optima: dict[int, float]) -> None:
    dearer, used = 0, set()
    for seed, exact in optima.items():
        instance = of_kinds(seed)
        first = tuple(job.in_forms[0] for job in instance.jobs)
        anywhere = tuple(replace(job, requires={}, ps_requires={}) for job in first)
        alone, free = (
            solve(replace(instance, jobs=jobs), "bruteforce", warm_start={}).objective
            for jobs in (first, anywhere)
        )
        assert alone <= min(exact, free) * (1 + 1e-9)
        dearer += (alone < exact * (1 - 1e-9)) + (alone < free * (1 - 1e-9))
        found = solve(instance, "milp", warm_start={}).schedules
        used |= {schedule.form for schedule in found.values()}
    assert dearer > len(optima) / 3
    assert used == {0, 1, 2}


def test_what_bounds_the_optimum_bounds_it_in_all_forms(optima: dict[int, float]) -> None:
    """From OASiS's own run, whose prices and schedules everything else begins with."""
    for seed, exact in list(optima.items())[::3]:
        instance = of_kinds(seed)
        run = oasis.simulate(instance, OASiS.from_instance(instance))
        assert run.total_utility <= exact * (1 + 1e-9), seed
        found = configuration_bound(instance)
        assert found.bound >= exact * (1 - 1e-9), seed
        dual = oasis.dual_bound(instance, found.worker_prices, found.ps_prices)
        assert math.isclose(dual, found.bound, rel_tol=1e-9, abs_tol=1e-12), seed
        assert solve(instance).objective == pytest.approx(exact, rel=1e-6), seed


@pytest.mark.parametrize("method", ["milp", "benders", "colgen"])
def test_one_form_that_says_nothing_is_the_job_itself(method: str) -> None:
    """And a requirement that every machine meets is none: the same to the last bit."""
    made = oasis.generate("testbed", jobs=6, worker_servers=2, ps_servers=2, seed=4)
    servers = tuple(replace(one, labels={"gpu": "a"}) for one in made.cluster.worker_servers)
    labelled = replace(made, cluster=replace(made.cluster, worker_servers=servers))
    same = replace(labelled, jobs=tuple(replace(job, forms=(Form(),)) for job in made.jobs))
    found, again = (
        solve(one, method, work_limit=0.3, warm_start=from_nothing(one)) for one in (made, same)
    )
    assert (again.objective, again.upper_bound) == (found.objective, found.upper_bound)
    assert again.schedules == found.schedules
    required = tuple(replace(job, requires={"gpu": ["a"]}) for job in made.jobs)
    third = replace(labelled, jobs=required)
    limited = solve(third, method, work_limit=0.3, warm_start=from_nothing(third))
    assert limited.upper_bound == pytest.approx(found.upper_bound, rel=0.02)


def test_forms_that_are_equal_change_nothing(optima: dict[int, float]) -> None:
    for seed, exact in list(optima.items())[:20]:
        instance = of_kinds(seed)
        jobs = tuple(
            job if len(job.in_forms) > 1 else replace(job, forms=(Form(), Form()))
            for job in instance.jobs
        )
        twice = replace(instance, jobs=jobs)
        assert solve(twice, "milp", warm_start={}).objective == pytest.approx(exact, rel=1e-6)


def test_schedules_become_values_of_the_model_and_back_and_text(optima: dict[int, float]) -> None:
    for seed in list(optima)[:40]:
        instance = of_kinds(seed)
        best = solve(instance, "bruteforce", warm_start={}).schedules
        model = CompactModel(OfflineArrays.of(instance))
        values = model.values_of(best)
        for variable in model.problem.variables():
            variable.varValue = values.get(variable.name, 0.0)
        assert all(row.valid(1e-9) for row in model.problem.constraints()), seed
        back = model.schedules_of(values)
        assert {name: run.form for name, run in back.items()} == {
            name: run.form for name, run in best.items()
        }
        oasis.verify(instance, back)
        assert pickle.loads(pickle.dumps(best)) == best


# -- heuristics ------------------------------------------------------------------------------------


def drawn(instance: Instance, rng: np.random.Generator) -> PartialSolution:
    """Jobs in random order, each where it pays best at random prices."""
    arrays = OfflineArrays.of(instance)
    solution = PartialSolution(arrays)
    prices = [
        rng.random((arrays.horizon, *arrays.group(group).priced.shape)) * 0.1 for group in GROUPS
    ]
    for k in rng.permutation(len(arrays.jobs)).tolist():
        ledger = solution.ledger(*prices)
        each = [price(form, ledger)[0] for form in arrays.jobs[k].in_forms]
        assert solution.insert(k, *prices) == (max(each) > 0)
        if k in solution.schedules:
            assert each[solution.schedules[k].form] == max(each)
    return solution


def test_a_job_is_inserted_in_its_best_form(optima: dict[int, float]) -> None:
    rng = np.random.default_rng(1)
    for seed in list(optima)[:30]:
        instance = of_kinds(seed)
        solution = drawn(instance, rng)
        assert oasis.verify(instance, solution.by_id) == pytest.approx(solution.value)
        groups = (solution.arrays.worker, solution.arrays.ps)
        given = zip(groups, solution.free(), committed(instance, solution.by_id), strict=True)
        for group, free, used in given:
            room = group.capacity[:, : group.resources] - used
            np.testing.assert_allclose(free[..., : group.resources], room, atol=1e-9)


def test_the_same_places_in_another_form_are_another_column() -> None:
    made = oasis.generate("testbed", jobs=1, seed=1)
    job = replace(made.jobs[0], forms=(Form(), Form(minibatch_time=0.01)))
    arrays = OfflineArrays.of(replace(made, jobs=(job,)))
    rows = [[job.arrival, 0, 1]], [[job.arrival, 0, 1]]
    columns = [Column.of(arrays, 0, Schedule(job.id, *rows, form)) for form in (0, 1)]
    assert RestrictedMaster(Grouping.of(arrays)).add([*columns, *columns]) == 2


def test_a_mix_runs_a_job_in_one_form(optima: dict[int, float]) -> None:
    rng, changed = np.random.default_rng(2), 0
    for seed in list(optima)[:50]:
        instance = of_kinds(seed)
        first, second = drawn(instance, rng), drawn(instance, rng)
        both = first.schedules.keys() & second.schedules.keys()
        changed += any(first.schedules[k].form != second.schedules[k].form for k in both)
        mix = recombine(first, second, Budget())
        assert mix.value >= max(first.value, second.value)
        assert oasis.verify(instance, mix.by_id) == pytest.approx(mix.value)
    assert changed > 3


def test_a_search_in_windows_chooses_forms(optima: dict[int, float]) -> None:
    reached, forms = 0, set[int]()
    for seed, exact in list(optima.items())[:50]:
        instance, state = of_kinds(seed), SolveState(Budget())
        arrays = OfflineArrays.of(instance)
        best = BestSolution(PartialSolution(arrays), state, partial(oasis.verify, instance))
        search = WindowSearch(arrays, best, np.random.default_rng(0))
        search.start(Budget(0.05, WorkCounter()))
        assert oasis.verify(instance, best.solution.by_id) <= exact * (1 + 1e-9)
        reached += best.value >= exact * (1 - 1e-9)
        forms |= {schedule.form for schedule in best.solution.schedules.values()}
    assert reached > 41
    assert forms == {0, 1, 2}


def test_prices_are_learnt_from_days_with_forms(optima: dict[int, float]) -> None:
    for seed in list(optima)[:5]:
        instance = of_kinds(seed)
        learned = learn_prices([instance])
        assert learned.jobs == tuple(instance.jobs_by_arrival())
        assert np.isfinite(learned.worker).all()
