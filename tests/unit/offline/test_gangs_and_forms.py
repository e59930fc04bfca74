"""Offline optima of jobs with a minimum of workers, in several forms, without parameter servers.

The optimum is that of an enumeration which shares nothing with the methods.
"""

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import count, islice
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Form, Instance, OASiS, Recourse, Schedule
from oasis.model.instance_file import instance_to_dict
from oasis.model.schedule import committed
from oasis.solvers import Status
from oasis.solvers.budget import Budget, WorkCounter
from offline import OnlinePrices, WarmStart, configuration_bound, learn_prices, solve
from offline.benders.master import CountModel
from offline.benders.slot_model import SlotModel
from offline.column_generation.pricing import price
from offline.column_generation.restricted_master import Column, Grouping, RestrictedMaster
from offline.enumeration import fitting_counts
from offline.heuristics.best_solution import BestSolution, PartialSolution
from offline.heuristics.recombination import recombine
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import GROUPS, OfflineArrays
from offline.model.milp import CompactModel
from offline.params import ConfigurationParams
from offline.processes import Message, ProcessTask
from offline.state import Phase, SolveState
from offline.tasks import Child
from tests.oracle import kinds
from tests.oracle.tiny import seeded, tiny_instance
from tests.unit.offline.test_benders import SMALL, Patience, hurried, unaided


def gangs(seed):
    """A tiny instance in which most jobs have a minimum above 1."""
    instance = tiny_instance(seeded(seed), jobs=3, horizon=4)
    rng = np.random.default_rng(seed)
    jobs = tuple(
        replace(job, min_workers=int(rng.integers(min(2, job.chunks), job.chunks + 1)))
        for job in instance.jobs
    )
    return replace(instance, jobs=jobs)


def alone(seed):
    """All-reduce, on a cluster that hosts no parameter server at all."""
    instance = gangs(seed)
    jobs = tuple(
        replace(job, worker={**job.worker, "bandwidth_gbps": 0.0}, ps={}, gradient_mb=0.0)
        for job in instance.jobs
    )
    return replace(instance, cluster=replace(instance.cluster, ps_servers=()), jobs=jobs)


# Instances by seed, and how many by day and by night.
DRAWN: dict[str, tuple[Callable[[int], Instance], int, int]] = {
    "gangs": (gangs, 40, 100),
    "alone": (alone, 20, 100),
    "forms": (kinds.instance, 50, 150),
}
every = pytest.mark.parametrize("name", DRAWN)


@cache
def solved(name, number):
    """Instances with a gang or with several forms, and their optima."""
    made = map(DRAWN[name][0], count())
    telling = (
        one for one in made if any(j.min_workers > 1 or len(j.in_forms) > 1 for j in one.jobs)
    )
    return [(one, kinds.optimum(one)) for one in islice(telling, number)]


def from_nothing(instance):
    """No schedules and no prices: a method has to find everything itself."""
    worker, ps = (
        np.zeros((instance.horizon, *capacity.shape))
        for capacity in (instance.cluster.worker_capacity, instance.cluster.ps_capacity)
    )
    return WarmStart({}, OnlinePrices(worker, ps, {}))


METHODS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "bruteforce": ("bruteforce", None),
    "milp": ("milp", None),
    "benders": ("benders", None),
    "benders with masters in fractions": ("benders", {"whole_size": 0}),
    "colgen": ("colgen", None),
}


@every
@pytest.mark.parametrize("how", METHODS)
def test_every_method_agrees_with_the_enumeration(name, how, pytestconfig):
    """All but column generation prove it; that bounds it, and finds it nearly always."""
    method, params = METHODS[how]
    missed, number = 0, DRAWN[name][1 + bool(pytestconfig.getoption("--nightly"))]
    for instance, exact in solved(name, number):
        limit = 0.3 if method == "colgen" else 60.0
        given = {"warm_start": from_nothing(instance), "params": params}
        found = solve(instance, method, work_limit=limit, **given)
        assert oasis.verify(instance, found) == found.objective
        assert found.upper_bound >= exact * (1 - 1e-9)
        if method == "colgen":
            assert 0.6 * exact <= found.objective <= exact * (1 + 1e-6)
            missed += found.objective < exact * (1 - 1e-6)
        else:
            assert found.objective == pytest.approx(exact, rel=1e-6)
            assert found.status is Status.OPTIMAL
    assert missed <= number // 50


def test_minimums_forms_and_labels_matter_in_these_instances():
    dearer, used = {"gangs": 0, "forms": 0, "labels": 0}, set()

    def without(instance, what, exact, **changes):
        first = (job.in_forms[0] if what == "labels" else job for job in instance.jobs)
        free = replace(instance, jobs=tuple(replace(job, **changes) for job in first))
        worth = solve(free, "bruteforce", warm_start={}).objective
        assert worth >= exact * (1 - 1e-9)
        dearer[what] += worth > exact * (1 + 1e-9)

    for instance, exact in solved("gangs", 40):
        without(instance, "gangs", exact, min_workers=1)
    for instance, exact in solved("forms", 50):
        one = replace(instance, jobs=tuple(job.in_forms[0] for job in instance.jobs))
        alone = solve(one, "bruteforce", warm_start={}).objective
        assert alone <= exact * (1 + 1e-9)
        dearer["forms"] += alone < exact * (1 - 1e-9)
        without(instance, "labels", alone, requires={}, ps_requires={})
        used |= {each.form for each in solve(instance, "milp", warm_start={}).schedules.values()}
    assert min(dearer.values()) > 5, dearer
    assert used == {0, 1, 2}


@every
def test_what_bounds_the_optimum_bounds_it_here_too(name):
    """From OASiS's own run, whose prices and schedules everything else begins with."""
    for instance, exact in solved(name, 20):
        scheduler = OASiS.from_instance(instance)
        run = oasis.simulate(instance, scheduler)
        ledger, found = scheduler.ledger, configuration_bound(instance)
        dual = oasis.dual_bound(instance, found.worker_prices, found.ps_prices)
        assert dual == pytest.approx(found.bound, rel=1e-9, abs=1e-12)
        final = oasis.dual_bound(instance, ledger.worker_prices, ledger.ps_prices)
        bounds = (final, dual, oasis.certify(instance, run).upper_bound)
        assert min(bounds) >= exact * (1 - 1e-9)
        planned = oasis.simulate(instance, Recourse(rounds=2))
        assert max(run.total_utility, planned.total_utility) <= exact * (1 + 1e-9)
        assert solve(instance).objective == pytest.approx(exact, rel=1e-6)


@every
def test_schedules_become_values_of_the_model_and_back_and_text(name):
    for instance, _ in solved(name, 20):
        best = solve(instance, "bruteforce", warm_start={}).schedules
        model = CompactModel(OfflineArrays.of(instance))
        values = model.values_of(best)
        for variable in model.problem.variables():
            variable.varValue = values.get(variable.name, 0.0)
        assert all(row.valid(1e-9) for row in model.problem.constraints())
        back = model.schedules_of(values)
        assert {one: run.form for one, run in back.items()} == {
            one: run.form for one, run in best.items()
        }
        oasis.verify(instance, back)
        assert pickle.loads(pickle.dumps(best)) == best


@pytest.mark.parametrize("method", ["milp", "benders", "colgen"])
def test_one_form_that_says_nothing_is_the_job_itself(method):
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


def test_forms_that_are_equal_change_nothing():
    for instance, exact in solved("forms", 20):
        jobs = tuple(
            job if len(job.in_forms) > 1 else replace(job, forms=(Form(), Form()))
            for job in instance.jobs
        )
        twice = replace(instance, jobs=jobs)
        assert solve(twice, "milp", warm_start={}).objective == pytest.approx(exact, rel=1e-6)


def test_masters_alone_find_the_optimum_of_gangs(monkeypatch):
    """Without any other search, all schedules come from plans of the master."""
    unaided(monkeypatch)
    for instance, exact in solved("gangs", 20):
        for size in (0, SMALL):
            given = {"warm_start": {}, "params": hurried(size), "on_progress": Patience()}
            found = solve(instance, "benders", time_limit=None, **given)
            assert found.status is Status.OPTIMAL
            assert found.objective == pytest.approx(exact, rel=1e-6)


def test_the_workers_of_a_slot_are_none_or_a_whole_gang():
    """The heaviest workers of a slot that fit, as the enumeration of all counts has them."""
    smaller = 0
    for seed, (instance, _) in enumerate(solved("gangs", 100)):
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
    assert smaller > 1  # the minimum keeps workers out now and then


def test_auto_chooses_by_size_with_gangs_too():
    huge = oasis.generate("calibrated", jobs=40, seed=1)
    wide = replace(huge, jobs=tuple(replace(j, min_workers=min(2, j.chunks)) for j in huge.jobs))
    assert solve(gangs(1)).method == "milp"
    assert solve(huge, time_limit=0.0).method == solve(wide, time_limit=0.0).method != "milp"


# -- heuristics ------------------------------------------------------------------------------------


def drawn(instance, rng, most=0.1):
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


def test_a_job_is_inserted_in_its_best_form():
    rng = np.random.default_rng(1)
    for instance, _ in solved("forms", 30):
        solution = drawn(instance, rng)
        assert oasis.verify(instance, solution.by_id) == pytest.approx(solution.value)
        groups = (solution.arrays.worker, solution.arrays.ps)
        given = zip(groups, solution.free(), committed(instance, solution.by_id), strict=True)
        for group, free, used in given:
            room = group.capacity[:, : group.resources] - used
            np.testing.assert_allclose(free[..., : group.resources], room, atol=1e-9)


def test_the_same_places_in_another_form_are_another_column():
    made = oasis.generate("testbed", jobs=1, seed=1)
    job = replace(made.jobs[0], forms=(Form(), Form(minibatch_time=0.01)))
    arrays = OfflineArrays.of(replace(made, jobs=(job,)))
    rows = [[job.arrival, 0, 1]], [[job.arrival, 0, 1]]
    columns = [Column.of(arrays, 0, Schedule(job.id, *rows, form)) for form in (0, 1)]
    assert RestrictedMaster(Grouping.of(arrays)).add([*columns, *columns]) == 2


def all_in_form(instance, form):
    """What OASiS does if each job has this form alone, or its last one."""
    forms = {job.id: min(form, len(job.in_forms) - 1) for job in instance.jobs}
    narrow = replace(instance, jobs=tuple(job.in_form(forms[job.id]) for job in instance.jobs))
    runs = oasis.simulate(narrow, OASiS.from_instance(narrow)).schedules
    schedules = {name: replace(run, form=forms[name]) for name, run in runs.items()}
    return PartialSolution(OfflineArrays.of(instance), schedules)


def test_a_mix_runs_a_job_in_one_form():
    mixed = 0
    for instance, exact in solved("forms", 50):
        first, second = all_in_form(instance, 0), all_in_form(instance, 1)
        mix = recombine(first, second, Budget())
        assert exact * (1 + 1e-9) >= mix.value >= max(first.value, second.value)
        assert oasis.verify(instance, mix.by_id) == pytest.approx(mix.value)
        mixed += mix.value > max(first.value, second.value)
    assert mixed > 3


def test_a_search_in_windows_chooses_forms():
    reached, forms = 0, set[int]()
    for instance, exact in solved("forms", 50):
        state = SolveState(instance, Budget())
        arrays = OfflineArrays.of(instance)
        best = BestSolution(arrays, state)
        search = WindowSearch(arrays, best, np.random.default_rng(0))
        search.start(Budget(0.05, WorkCounter()))
        assert oasis.verify(instance, best.solution.by_id) <= exact * (1 + 1e-9)
        reached += best.value >= exact * (1 - 1e-9)
        forms |= {schedule.form for schedule in best.solution.schedules.values()}
    assert reached > 41
    assert forms == {0, 1, 2}


def test_prices_are_learnt_from_days_with_forms():
    for instance, _ in solved("forms", 5):
        learned = learn_prices([instance])
        assert learned.jobs == tuple(instance.jobs_by_arrival())
        assert np.isfinite(learned.worker).all()


def test_prices_of_no_machine_reach_another_process():
    instance = oasis.generate("testbed", jobs=3, ps_servers=0, worker_servers=2, seed=1)
    scheduler = oasis.OASiS.from_instance(instance)
    run = oasis.simulate(instance, scheduler)
    prices = scheduler.ledger.worker_prices, scheduler.ledger.ps_prices
    known: Any = {"instance": instance_to_dict(instance), "schedules": run.schedules}
    known |= {"bound": run.total_utility * (1 + 1e-9), "seconds": 5.0}
    params, said = ConfigurationParams(), list[Message]()
    task = ProcessTask("heuristics", Phase.WINDOWS, params, 0, prices, **known)
    child = Child(pickle.loads(pickle.dumps(task)), said.append)
    assert child.start.prices is not None
    assert child.start.prices.ps.shape == prices[1].shape
    child.run()
    assert said[-1] == ("status", "optimal")
