"""Every offline method of `offline.METHODS`, against each other and against all that is feasible.

A new method joins these tests by its name alone. One that may end without a proof on a tiny
instance is listed in `INEXACT`; all others must prove its optimum.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import baselines
import oasis
from oasis import Server
from oasis.model.schedule import committed
from oasis.solvers import TRUST, Status
from oasis.testing import small_instances
from offline import METHODS, solve
from offline.column_generation.bound import configuration_bound
from tests.oracle.tiny import seeded, tiny_instance
from tests.strategies import all_instances, bare, fewer, prices

INEXACT = {"colgen"}  # closes the gap of the configuration LP only by luck
NAMED = [method for method in METHODS if method != "auto"]  # which only chooses among them
EXACT = [method for method in NAMED if method not in INEXACT]
LIMITED = [method for method in NAMED if method != "bruteforce"]  # which takes no time limit
TIMED = ["auto", *LIMITED]
WORK = 0.1  # for a method that may not end by itself
PROOF = 1e-6
DIGITS = 1e-9

SEEDS = st.integers(0, 10**6)
small = small_instances()


def limit(method):
    """Arguments of `solve` for a method: work where it may not end by itself, else no limit."""
    return {"work_limit": WORK} if method in INEXACT else {"time_limit": None}


def enumerated(instance):
    """The optimum, if the instance is small enough."""
    try:
        return solve(instance, "bruteforce").objective
    except ValueError:
        assume(False)
        raise


def assert_encloses(instance, result, optimum):
    """The interval holds, and a claim of optimality is true."""
    assert oasis.verify(instance, result) == result.objective
    assert result.objective <= optimum * (1 + PROOF) + DIGITS
    assert result.upper_bound >= optimum * (1 - TRUST) - DIGITS
    if result.status is Status.OPTIMAL:
        assert result.objective == pytest.approx(optimum, rel=PROOF, abs=DIGITS)
        assert result.upper_bound == pytest.approx(optimum, rel=TRUST, abs=DIGITS)


# --- the methods agree ------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@given(st.one_of(SEEDS.map(lambda seed: tiny_instance(seeded(seed))), small, small, bare(small)))
def test_every_method_encloses_the_enumerated_optimum(method, instance):
    result = solve(instance, method, **limit(method))
    assert_encloses(instance, result, enumerated(instance))
    assert result.status is Status.OPTIMAL or method in INEXACT


# --- what must not matter ---------------------------------------------------------------------


def shuffled_servers(instance, rng):
    cluster = instance.cluster
    workers, ps = (
        tuple(servers[k] for k in rng.permutation(len(servers)))
        for servers in (cluster.worker_servers, cluster.ps_servers)
    )
    return replace(instance, cluster=replace(cluster, worker_servers=workers, ps_servers=ps))


def split_groups(instance, rng):
    """Identical servers as several entries instead of one with a count."""

    def split(servers):
        made: list[Server] = []
        for server in servers:
            left = server.count
            while left:
                part = int(rng.integers(1, left + 1))
                made.append(replace(server, id=f"{server.id}.{left}", count=part))
                left -= part
        return tuple(made)

    cluster = instance.cluster
    workers, ps = split(cluster.worker_servers), split(cluster.ps_servers)
    return replace(instance, cluster=replace(cluster, worker_servers=workers, ps_servers=ps))


def shuffled_jobs(instance, rng):
    order = rng.permutation(len(instance.jobs))
    return replace(instance, jobs=tuple(instance.jobs[k] for k in order))


def rewritten(instance, seed):
    """The same instance with its servers split and in another order, and its jobs."""
    rng = np.random.default_rng(seed)
    for change in (split_groups, shuffled_servers, shuffled_jobs):
        instance = change(instance, rng)
    return instance


@pytest.mark.parametrize("method", EXACT)
@given(all_instances(most_servers=3), SEEDS)
@fewer(4)
def test_optimum_does_not_depend_on_how_the_instance_is_written(method, instance, seed):
    both = (instance, rewritten(instance, seed))
    try:
        results = [solve(written, method, time_limit=None) for written in both]
    except ValueError:
        assume(False)
        raise
    assert [result.status for result in results] == [Status.OPTIMAL] * 2
    one, same = (result.objective for result in results)
    assert same == pytest.approx(one, rel=PROOF, abs=DIGITS)


# --- a limit is no proof ----------------------------------------------------------------------


@cache
def congested(seed):
    """An instance that takes HiGHS a second or more, and its optimum."""
    instance = oasis.generate("testbed", ps_servers=4, seed=seed)
    proven = solve(instance, "milp", time_limit=None)
    assert proven.status is Status.OPTIMAL
    return instance, proven.objective


# seed 0 is the shipped example, about two seconds
NIGHTLY = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 12)]


@pytest.mark.parametrize("seed", [0, *NIGHTLY])
@pytest.mark.parametrize("method", LIMITED)
def test_a_time_limit_never_makes_a_false_optimum(method, seed):
    instance, optimum = congested(seed)
    for seconds in (0.0, 0.05, 0.3):
        for warm_start in (None, {}):
            result = solve(instance, method, time_limit=seconds, warm_start=warm_start)
            assert_encloses(instance, result, optimum)


@pytest.mark.parametrize("method", LIMITED)
@given(SEEDS, st.sampled_from([0.0, 0.001, 0.003, 0.01]))
@fewer(2)
def test_a_tiny_limit_never_makes_a_false_optimum(method, seed, seconds):
    instance = tiny_instance(seeded(seed))
    result = solve(instance, method, time_limit=seconds, warm_start={})
    assert_encloses(instance, result, enumerated(instance))


# --- nothing known is lost --------------------------------------------------------------------


def online_value(instance):
    return oasis.simulate(instance, oasis.OASiS.from_instance(instance)).total_utility


@cache
def busy(seed):
    """An instance that the decomposition gets, OASiS's value, and schedules worth more."""
    sizes = {"jobs": 20, "worker_servers": 6, "ps_servers": 6, "horizon": 15}
    instance = oasis.generate("calibrated", **sizes, seed=seed)
    better = solve(instance, "colgen", work_limit=0.5)
    return instance, online_value(instance), better


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("method", TIMED)
def test_a_time_limit_never_loses_what_is_known(method, seconds):
    instance, online, better = busy(0)
    assert better.objective > online > 0
    result = solve(instance, method, time_limit=seconds)
    assert result.method == ("benders" if method == "auto" else method)
    assert result.objective >= online * (1 - DIGITS)
    started = solve(instance, method, time_limit=seconds, warm_start=better.schedules)
    assert started.objective >= better.objective * (1 - DIGITS)


# --- every bound against every schedule -------------------------------------------------------


def earned_by_all(instance):
    """Utility that each policy earns; every run passes the exact check."""
    policies = {name: baselines.make(name, seed=0) for name in baselines.POLICIES}
    runs = {name: oasis.simulate(instance, policy) for name, policy in policies.items()}
    runs["oasis"] = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    return {name: oasis.verify(instance, run) for name, run in runs.items()}


@given(all_instances())
@fewer(6)
def test_every_bound_is_at_least_what_any_policy_earns(instance):
    scheduler = oasis.OASiS.from_instance(instance)
    run = oasis.simulate(instance, scheduler)
    ledger = scheduler.ledger
    bounds = {
        "configuration LP": configuration_bound(instance).bound,
        "final prices": oasis.dual_bound(instance, ledger.worker_prices, ledger.ps_prices),
        "corrected Theorem 4": oasis.certify(instance, run).upper_bound,
        **{method: solve(instance, method, **limit(method)).upper_bound for method in LIMITED},
    }
    for policy, earned in earned_by_all(instance).items():
        for name, bound in bounds.items():
            assert bound >= earned * (1 - TRUST), (policy, name)


@given(all_instances(most_servers=3), st.data())
@fewer(4)
def test_configuration_bound_is_the_least_of_all_dual_bounds(instance, data):
    """The LP's value, by a primal and a dual solution that code without the search checks."""
    solved = configuration_bound(instance)
    assert solved.status is Status.OPTIMAL
    weights = np.zeros(len(instance.jobs))
    value = 0.0
    used: dict[str, list[np.ndarray]] = {"worker": [], "ps": []}
    for column, weight in zip(solved.columns, solved.weights.tolist(), strict=True):
        job = instance.jobs[column.job]
        value += weight * oasis.verify(instance, {job.id: column.schedule})
        weights[column.job] += weight
        for group, added in zip(used, committed(instance, {job.id: column.schedule}), strict=True):
            used[group].append(weight * added)
    assert (weights <= 1 + PROOF).all()
    for group, parts in used.items():
        capacity = getattr(instance.cluster, f"{group}_capacity")
        # identical servers may stand in for each other: the average over their orders is feasible
        kinds = np.unique(capacity, axis=0, return_inverse=True)[1].ravel()
        for kind in np.unique(kinds) if parts else ():
            load = sum(parts)[:, kinds == kind].sum(axis=1)
            assert (load <= capacity[kinds == kind].sum(axis=0) * (1 + PROOF) + DIGITS).all()
    least = oasis.dual_bound(instance, solved.worker_prices, solved.ps_prices)
    assert value == pytest.approx(least, rel=1e-5, abs=DIGITS)
    assert solved.bound == pytest.approx(least, rel=1e-5, abs=DIGITS)
    assert oasis.dual_bound(instance, *data.draw(prices(instance))) >= value * (1 - PROOF)
    for iterate in solved.rounds:
        assert iterate.dual >= value * (1 - PROOF) - DIGITS
