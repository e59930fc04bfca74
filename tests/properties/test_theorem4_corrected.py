"""The corrected Theorem 4 (docs/theory): OPT <= D_0 + alpha_x P + G on every finite run."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Piecewise, Run
from oasis.testing import small_instances
from offline import solve
from tests.oracle import kinds
from tests.oracle.reference_search import textbook
from tests.strategies import Maker, all_instances, bare, fewer, more, of, schedulers

RELATIVE = 1e-9

anything = st.one_of(all_instances(), bare(all_instances()), kinds.instances())
small = st.one_of(small_instances(), bare(small_instances()), kinds.instances())


def at_most(bound):
    return bound * (1 + RELATIVE) + 1e-12


def run_of(instance, make):
    run = oasis.simulate(instance, make(instance))
    return run, oasis.certify(instance, run)


def two_alpha_form(certificate):
    """2 alpha_x P + 2 G."""
    if certificate.online_utility == 0:
        return 2 * certificate.payoff_gap
    log_product = certificate.log_alpha_x + math.log(certificate.online_utility)
    product = math.exp(log_product) if log_product < 700 else math.inf
    return 2 * product + 2 * certificate.payoff_gap


@more(2)
@given(anything, schedulers())
def test_dual_value_of_the_final_prices_is_within_the_corrected_bound(instance, make):
    """The proof bounds D at the final prices; OPT only follows by weak duality."""
    scheduler = make(instance)
    certificate = oasis.certify(instance, oasis.simulate(instance, scheduler))
    ledger = scheduler.ledger
    dual = oasis.dual_bound(instance, ledger.worker_prices, ledger.ps_prices)
    assert dual <= at_most(certificate.upper_bound)


@given(small, schedulers(floors=(0.0, 1e-3, 0.3)))
def test_the_optimum_is_within_the_corrected_bound_and_within_two_alpha_x(instance, make):
    """The latter up to what the floor gives away, phi sum_i (best utility of i).

    OPT <= 2 alpha_x P + 2 G + that; without a floor, D_0 <= OPT / 2.
    """
    _, certificate = run_of(instance, make)
    given_away = make.options["min_utility_fraction"] * math.fsum(
        max(float(form.utility(_first(form, instance))) for form in job.in_forms)
        for job in instance.jobs
    )
    optimum = solve(instance, method="bruteforce").objective
    assert optimum <= at_most(certificate.upper_bound)
    assert optimum <= at_most(two_alpha_form(certificate) + given_away)


def _first(form, instance):
    return form.shortest_duration(instance.slot_seconds) - 1


def falling(job, values):
    return replace(job, utility=Piecewise(tuple(map(float, range(len(values)))), tuple(values)))


@fewer(2)
@given(small_instances(), of(1e-3, 0.3, 0.7), st.data())
def test_a_floor_costs_at_most_that_part_of_what_all_jobs_are_worth(instance, floor, data):
    """Proposition 8: OPT <= OPT_phi + phi sum_i (most utility of i)."""
    later = st.lists(of(1.0, 0.6, 0.25, 0.05), min_size=2, max_size=2)
    worth = [[1.0, *sorted(data.draw(later), reverse=True)] for _ in instance.jobs]
    optima = [
        solve(
            replace(instance, jobs=tuple(map(falling, instance.jobs, values))), method="bruteforce"
        ).objective
        for values in (worth, [[v if v >= floor else 0.0 for v in each] for each in worth])
    ]
    assert optima[1] <= at_most(optima[0])
    assert optima[0] <= at_most(optima[1] + floor * len(worth))


@more(2)
@given(anything, schedulers())
def test_certificate_is_what_its_formula_says(instance, make):
    assert_is_the_formula(instance, make)


@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_so_it_is_for_all_forms_of_jobs(floor):
    for seed in range(100):
        instance = kinds.instance(seed)
        certificate = assert_is_the_formula(instance, Maker({"min_utility_fraction": floor}))
        assert kinds.optimum(instance) <= at_most(certificate.upper_bound), seed


def assert_is_the_formula(instance, make):
    """alpha_x, D_0 and G once more, row by row from the committed schedules."""
    run, certificate = run_of(instance, make)
    cluster, horizon = instance.cluster, instance.horizon
    log_alpha_x, initial, final = 0.0, 0.0, []
    for group, price, capacity in (
        ("worker", run.bounds.worker, cluster.worker_capacity),
        ("ps", run.bounds.ps, cluster.ps_capacity),
    ):
        used = np.zeros((horizon, *capacity.shape))
        for job_id, schedule in run.schedules.items():
            rows = schedule.workers if group == "worker" else schedule.ps
            for t, s, n in rows.tolist():
                for r, name in enumerate(cluster.resources):
                    form = _job(instance, job_id).in_form(schedule.form)
                    added = n * getattr(form, group).get(name, 0.0)
                    used[t, s, r] += added
                    rate = price.log_ratio[r]
                    x = rate * added / capacity[s, r] if added else 0.0
                    if x > 0:
                        step = math.log(rate) + x + math.log(-math.expm1(-x)) - math.log(x)
                        log_alpha_x = max(log_alpha_x, step)
        shares = np.divide(used, capacity, out=np.ones_like(used), where=capacity > 0)
        final.append(np.exp(price.log_lower + price.log_ratio * np.minimum(1.0, shares)))
        initial += horizon * float((np.exp(price.log_lower) * capacity).sum())
    assert certificate.log_alpha_x == pytest.approx(log_alpha_x, rel=1e-9, abs=1e-12)
    assert certificate.initial_dual == pytest.approx(initial, rel=1e-9)
    market = {
        "cluster": cluster,
        "horizon": horizon,
        "worker_prices": final[0],
        "ps_prices": final[1],
        "worker_used": np.zeros_like(final[0]),
        "ps_used": np.zeros_like(final[1]),
    }
    payoff = {decision.job_id: decision.payoff for decision in run.decisions}
    gap = math.fsum(
        max(0.0, *(textbook({"job": form, **market}) - payoff[job.id] for form in job.in_forms))
        for job in instance.jobs
    )
    assert certificate.payoff_gap == pytest.approx(gap, rel=1e-9, abs=1e-9)
    assert certificate.online_utility == run.total_utility
    assert certificate.alpha == run.bounds.alpha
    return certificate


def test_policies_without_prices_have_no_certificate():
    instance = oasis.generate("testbed", jobs=1, seed=1)
    run = Run("fifo", {}, (), None, (), None, "0")
    with pytest.raises(ValueError, match="policy 'fifo' has no prices"):
        oasis.certify(instance, run)


def _job(instance, job_id):
    return next(job for job in instance.jobs if job.id == job_id)
