"""Theorem 2: what OASiS commits is feasible, and the dual bounds the offline optimum."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.testing import small_instances
from offline import solve
from tests.oracle import kinds
from tests.oracle.reference_search import textbook
from tests.strategies import all_instances, bare, fewer, more, prices, schedulers

anything = st.one_of(all_instances(), bare(all_instances()), kinds.instances())
small = st.one_of(small_instances(), bare(small_instances()), kinds.instances())


def at_most(bound):
    return bound + 1e-9 * max(1.0, abs(bound))


def earned(instance, scheduler):
    """What a run earns, and its final prices."""
    run = oasis.simulate(instance, scheduler)
    return run.total_utility, scheduler.ledger.worker_prices, scheduler.ledger.ps_prices


@more(2)
@given(anything, schedulers())
def test_a_run_keeps_every_constraint_and_admits_what_has_a_positive_payoff(instance, make):
    run = oasis.simulate(instance, make(instance))
    assert oasis.verify(instance, run) == pytest.approx(run.total_utility, rel=1e-12)
    assert [d.job_id for d in run.decisions] == [job.id for job in instance.jobs_by_arrival()]
    for decision in run.decisions:
        assert decision.admitted == (decision.payoff > 0) == (decision.schedule is not None)
        assert decision.admitted == (decision.reason is None)
        if decision.admitted:
            assert decision.payoff == pytest.approx(decision.utility - decision.cost, abs=1e-12)


@given(small, st.data())
def test_weak_duality_at_any_prices(instance, data):
    worker_prices, ps_prices = data.draw(prices(instance))
    optimum = solve(instance, method="bruteforce").objective
    assert optimum <= at_most(oasis.dual_bound(instance, worker_prices, ps_prices))


@fewer(2)
@given(anything, schedulers())
def test_weak_duality_against_the_milp(instance, make):
    optimum = solve(instance, method="milp").objective
    utility, worker_prices, ps_prices = earned(instance, make(instance))
    assert utility <= at_most(optimum)
    assert optimum <= at_most(oasis.dual_bound(instance, worker_prices, ps_prices))
    zero = np.zeros_like(worker_prices), np.zeros_like(ps_prices)
    assert optimum <= at_most(oasis.dual_bound(instance, *zero))


@given(anything, st.data())
def test_dual_bound_is_rent_plus_payoffs_on_the_empty_cluster(instance, data):
    assert_is_dual(instance, *data.draw(prices(instance)))


def test_so_it_is_for_all_forms_of_jobs_around_the_final_prices():
    for seed in range(50):
        instance = kinds.instance(seed)
        _, *final = earned(instance, oasis.OASiS.from_instance(instance, min_utility_fraction=0.0))
        optimum = kinds.optimum(instance)
        for factor in (0.0, 1.0, 3.0):
            p, q = (factor * each for each in final)
            assert_is_dual(instance, p, q)
            assert optimum <= at_most(oasis.dual_bound(instance, p, q)), seed


def assert_is_dual(instance, p, q):
    """(19) with mu_i from the textbook search: the bound is not merely valid, it is D(p, q)."""
    cluster = instance.cluster
    rent = (p * cluster.worker_capacity).sum() + (q * cluster.ps_capacity).sum()
    market = {
        "cluster": cluster,
        "horizon": instance.horizon,
        "worker_prices": p,
        "ps_prices": q,
        "worker_used": np.zeros_like(p),
        "ps_used": np.zeros_like(q),
    }
    payoffs = math.fsum(
        max(textbook({"job": form, **market}) for form in job.in_forms) for job in instance.jobs
    )
    expected = pytest.approx(rent + payoffs, rel=1e-9, abs=1e-9)
    assert oasis.dual_bound(instance, p, q) == expected
