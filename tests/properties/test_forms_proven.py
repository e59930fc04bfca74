"""Jobs in several forms: a run of OASiS is feasible, and what it proves holds for all of them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import oasis
from oasis import Instance, OASiS, PriceBounds, Run
from oasis.model.schedule import SERVER
from oasis.online.best_schedule import found_by
from oasis.online.ledger import Ledger
from oasis.online.search import searches
from tests.oracle import kinds

CASES = range(150)
FLOORS = (0.0, 0.5)


def at_most(bound: float) -> float:
    return bound * (1 + 1e-9) + 1e-9


@cache
def solved(seed: int) -> tuple[Instance, float]:
    given = kinds.instance(seed)
    return given, kinds.optimum(given)


def decided(given: Instance, floor: float) -> tuple[OASiS, Run]:
    """Every job submitted in order of arrival."""
    scheduler = OASiS.from_instance(given, min_utility_fraction=floor)
    decisions = tuple(scheduler.submit(job) for job in given.jobs_by_arrival())
    seconds = (0.0,) * len(decisions)
    return scheduler, Run("oasis", {}, decisions, scheduler.bounds, seconds, None, "0")


@pytest.mark.parametrize("floor", FLOORS)
def test_what_is_committed_is_feasible_and_at_most_the_optimum(floor: float) -> None:
    forms, admitted = set(), 0
    for seed in CASES:
        given, optimum = solved(seed)
        _, run = decided(given, floor)
        assert oasis.verify(given, run.schedules) <= at_most(optimum), seed
        oasis.verify(given, run)
        forms |= {schedule.form for schedule in run.schedules.values()}
        admitted += run.admitted
    assert forms == {0, 1, 2}
    assert admitted > 150


@pytest.mark.parametrize("floor", FLOORS)
def test_the_optimum_is_within_the_corrected_bound(floor: float) -> None:
    """OPT <= D_0 + alpha_x P + G; without a floor OPT <= 2 alpha_x P + 2 G."""
    compared = 0
    for seed in CASES:
        given, optimum = solved(seed)
        scheduler, run = decided(given, floor)
        found = oasis.certify(given, run)
        assert optimum <= at_most(found.upper_bound), seed
        final = scheduler.ledger.worker_prices, scheduler.ledger.ps_prices
        assert oasis.dual_bound(given, *final) <= at_most(found.upper_bound), seed
        if floor == 0:
            twice = math.exp(found.log_alpha_x) * run.total_utility + found.payoff_gap
            assert optimum <= at_most(2 * twice), seed
            compared += optimum > 0
    assert floor or compared > 100


def test_the_dual_bound_is_rent_plus_the_best_payoff_of_any_form() -> None:
    """(19) exactly: payoffs on the empty cluster by the search, which enumeration has checked."""
    for seed in CASES:
        given, _ = solved(seed)
        scheduler, _ = decided(given, 0.0)
        prices = [3.0 * p for p in (scheduler.ledger.worker_prices, scheduler.ledger.ps_prices)]
        capacities = given.cluster.worker_capacity, given.cluster.ps_capacity
        rent = [float((p * c).sum()) for p, c in zip(prices, capacities, strict=True)]
        empty = [np.zeros_like(price) for price in prices]
        payoffs = [
            oasis.best_schedule(job, given.cluster, given.horizon, *prices, *empty).payoff
            for job in given.jobs
        ]
        expected = pytest.approx(math.fsum([*rent, *payoffs]), rel=1e-9)
        assert oasis.dual_bound(given, *prices) == expected, seed


@pytest.mark.parametrize("normalize", [True, False])
def test_prices_are_those_of_an_instance_where_each_form_is_a_job(normalize: bool) -> None:
    """(23)-(26) range over all schedules: without a floor it does not matter whose they are."""
    left_out = 0
    for seed in CASES:
        given, _ = solved(seed)
        forms = [
            replace(form, id=f"{job.id}-{k}")
            for job in given.jobs
            for k, form in enumerate(job.in_forms)
            if given.cluster.unmet(form) is None
        ]
        left_out += len(forms) < sum(len(job.in_forms) for job in given.jobs)
        alike = replace(given, jobs=tuple(forms))
        one, other = (
            PriceBounds.from_instance(each, min_utility_fraction=0.0, normalize=normalize)
            for each in (given, alike)
        )
        assert json.dumps(one.to_dict()) == json.dumps(other.to_dict()), seed
    assert left_out > 20


def test_the_floor_is_a_share_of_the_best_of_all_forms_that_can_run() -> None:
    """A form below it is as if it were not there; a form that no machine admits sets no floor."""
    machine = oasis.Server("w", {"gpu": 4.0}, labels={"gpu": "a100"})
    cluster = oasis.Cluster(("gpu",), (machine,), (), slot_seconds=1.0)
    slow, fast = oasis.Form(minibatch_time=4.0), oasis.Form(minibatch_time=1.0)
    elsewhere = oasis.Form(minibatch_time=0.25, requires={"gpu": ["h100"]})
    worth = oasis.Piecewise((0.0, 1.0, 3.0, 4.0), (80.0, 10.0, 4.0, 3.0))
    job = oasis.Job("j", 0, 1, 2, 2, 1.0, 0.0, {"gpu": 1.0}, {}, worth, forms=(slow, fast))

    def bounds(*forms: oasis.Form) -> PriceBounds:
        given = Instance(20, cluster, (replace(job, forms=forms),))
        return PriceBounds.from_instance(given, min_utility_fraction=0.5)

    assert bounds(slow, fast).to_dict() == bounds(fast).to_dict() != bounds(slow).to_dict()
    assert bounds(elsewhere, fast).to_dict() == bounds(fast).to_dict()


def test_machines_are_told_apart_however_a_ledger_came_about() -> None:
    """Shared columns, opened ones, arrays; rolled on, and with a machine lost."""
    placed = 0
    for seed in CASES:
        small = kinds.instance(seed)
        groups = {
            name: tuple(replace(server, count=3) for server in getattr(small.cluster, name))
            for name in ("worker_servers", "ps_servers")
        }
        given = replace(small, cluster=replace(small.cluster, **groups), horizon=small.horizon + 2)
        cluster, probe = given.cluster, replace(given.jobs[0], id="probe", arrival=1)
        scheduler, _ = decided(given, 0.0)
        ledger = scheduler.ledger
        ledger.roll(1, scheduler.bounds)
        prices, used = (
            (ledger.worker_prices, ledger.ps_prices),
            (ledger.worker_used, ledger.ps_used),
        )
        flat = replace(Ledger.of_arrays(cluster, *prices, *used), origin=1)
        found = []
        for each in (ledger, flat):
            each.worker.lose(seed % 3)
            found.append(found_by(searches(probe, each)))
        schedules = [None if best is None else best.schedule for best in found]
        assert schedules[0] == schedules[1], seed
        if schedules[0] is not None:
            placed += 1
            alone = replace(given, jobs=(probe,), horizon=ledger.end)
            assert oasis.verify(alone, {"probe": schedules[0]}) > 0
            assert seed % 3 not in schedules[0].workers[:, SERVER]
    assert placed > 80
