"""Theorem 1: Algorithm 2 finds the best schedule of one job; recurrence and brute force agree."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import oasis
from oasis import Constant, Instance
from tests.oracle import kinds
from tests.oracle.reference_search import (
    Question,
    brute_force,
    printed,
    printed_costs,
    ps_for,
    textbook,
    textbook_costs,
    textbook_payoffs,
)
from tests.strategies import (
    TWISTS,
    all_instances,
    calm_markets,
    degenerate_markets,
    fewer,
    gang_markets,
    generous_markets,
    markets,
    more,
    of,
    rugged_market,
    rugged_markets,
    schedulers,
)

answerable = st.one_of(
    *(generous_markets(most_work=20), calm_markets(), rugged_markets()),
    *(gang_markets(calm_markets()), *map(degenerate_markets, TWISTS)),
)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def search(market, granularity="worker-slot", fraction=0.0):
    return oasis.best_schedule(
        **market.arguments, granularity=granularity, min_utility_fraction=fraction
    )


tiny = markets(most_slots=3, most_work=3)
# Markets, and how many more examples of them than of most: rugged ones are cheap and the hardest.
FAMILIES = {
    "any": (markets(most_work=20), 1),
    "larger jobs": (markets(most_slots=8, most_work=40, most_servers=4), 1),
    "slots and servers repeat": (calm_markets(), 1),
    "rugged": (rugged_markets(), 6),
    "a minimum of workers": (gang_markets(st.one_of(rugged_markets(), calm_markets())), 6),
    **{twist: (degenerate_markets(twist), 4) for twist in TWISTS},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_payoff_equals_the_textbook_and_in_chunks_the_printed_one(family):
    """And worker-slots are never worse than chunks."""
    made, factor = FAMILIES[family]

    @more(factor)
    @given(made, of(0.0, 1e-3, 0.3))
    def check(market, fraction):
        found = search(market, fraction=fraction)
        assert found.payoff == close(textbook(market.arguments, fraction))
        chunks = search(market, "chunk", fraction).payoff
        assert chunks == close(printed(market.arguments, fraction))
        assert found.payoff >= chunks - 1e-9 * max(1.0, chunks)

    check()


@pytest.mark.nightly
@given(calm_markets(most_slots=40, most_work=150))
def test_payoff_equals_the_textbook_on_long_horizons(market):
    assert search(market).payoff == close(textbook(market.arguments))


@fewer(2)
@given(all_instances(), schedulers())
def test_every_decision_of_oasis_has_the_textbook_payoff(instance, make):
    """At the prices and the usage that the ledger shows before each decision."""
    scheduler = make(instance)
    oracle = printed if make.options["granularity"] == "chunk" else textbook
    for job in instance.jobs_by_arrival():
        ledger = scheduler.ledger
        market = {
            "job": job,
            "cluster": instance.cluster,
            "horizon": instance.horizon,
            "worker_prices": ledger.worker_prices,
            "ps_prices": ledger.ps_prices,
            "worker_used": ledger.worker_used,
            "ps_used": ledger.ps_used,
        }
        expected = oracle(market, make.options["min_utility_fraction"])
        assert scheduler.submit(job).payoff == close(expected)


@fewer(2)
@given(st.one_of(tiny, gang_markets(tiny)))
def test_payoff_equals_brute_force_over_all_placements(market):
    assert search(market).payoff == close(brute_force(market.arguments))


@pytest.mark.parametrize("granularity", ["worker-slot", "chunk"])
@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_the_best_form_is_that_of_the_textbook(floor, granularity):
    """Each form as if there were no others, on the machines that admit it."""
    seen: Counter[object] = Counter()
    for seed in range(500):
        market = kinds.market(seed)
        found = search(market, granularity, floor)
        if found.schedule is None:
            seen["no label"] += str(found.reason).startswith("no machine admits it: label")
        else:
            seen[found.schedule.form] += 1
        check_form(market, found, floor, granularity)
    assert min(seen[each] for each in (0, 1, 2, "no label")) > 10, seen


def check_form(market, found, floor, granularity):
    cluster, options, least = market.cluster, [], []
    forms = [replace(market, job=form).arguments for form in market.job.in_forms]
    questions = [Question(**form) for form in forms]
    able = [k for k, form in enumerate(market.job.in_forms) if cluster.unmet(form) is None]
    first = min((-(-questions[k].work // questions[k].job.chunks) for k in able), default=1) - 1
    for k in able:
        one = questions[k]
        costs = textbook_costs(one, one.work) if granularity != "chunk" else printed_costs(one)
        for t, cost in enumerate(costs):
            worth = one.utility(t)
            least.append((cost, cost / worth if worth > 0 else math.inf))
            if worth >= floor * float(market.job.utility(first)):
                options.append((worth - cost, t, k))
    best = max([0.0, *(payoff for payoff, _, _ in options)])
    assert found.payoff == close(best)
    if found.schedule is not None:
        equal = [(t, k) for payoff, t, k in options if payoff >= best - 1e-11 * (1 + best)]
        assert (found.completion - market.job.arrival, found.schedule.form) == min(equal)
        job = market.job.in_forms[found.schedule.form]
        assert oasis.verify(Instance(market.horizon, cluster, (market.job,)), {"j": found.schedule})
        counts = np.bincount(*found.schedule.workers[:, ::2].T)
        assert all(n == 0 or job.min_workers <= n <= job.chunks for n in counts)
    smallest, factor = (min((each[i] for each in least), default=math.inf) for i in (0, 1))
    if found.schedule is None:
        assert (found.rejection is None) == (smallest == math.inf)
    if found.rejection is not None:
        assert found.rejection.smallest_utility == close(smallest)
        # Utilities are steps of a line: its floor is that of the search, a factor is not.
        if floor == 0 and found.rejection.utility_factor is not None:
            assert found.rejection.utility_factor == close(factor)


@given(answerable, of("worker-slot", "chunk"))
def test_a_schedule_is_what_is_said_of_it(market, granularity):
    found = search(market, granularity)
    if found.schedule is None:
        assert (found.payoff, found.utility, found.cost) == (0.0, 0.0, 0.0)
        assert found.completion is None
        assert found.breakdown is None
        assert found.reason
        return
    assert found.payoff > 0
    assert found.reason is None
    assert found.schedule.job_id == market.job.id
    last = max(slot for slot, _, _ in found.schedule.workers.tolist())
    assert found.completion == found.schedule.completion == last
    assert found.utility == market.job.utility(last - market.job.arrival)
    assert_cost_and_breakdown(market, found, found.schedule)
    assert_within_what_is_left(market, found, found.schedule)
    # at positive prices a spare parameter server would only cost; at zero prices none is used
    for slot in {slot for slot, _, _ in found.schedule.workers.tolist()}:
        workers, servers = (
            sum(n for t, _, n in rows.tolist() if t == slot)
            for rows in (found.schedule.workers, found.schedule.ps)
        )
        assert servers == ps_for(market.job, workers)


def assert_cost_and_breakdown(market, found, schedule):
    names = market.cluster.resources
    parts = [
        [
            [n * demand.get(name, 0.0) * prices[t, s, r] for r, name in enumerate(names)]
            for t, s, n in rows.tolist()
        ]
        for rows, demand, prices in (
            (schedule.workers, market.job.worker, market.worker_prices),
            (schedule.ps, market.job.ps, market.ps_prices),
        )
    ]
    cost = math.fsum(x for part in parts for row in part for x in row)
    assert found.cost == close(cost)
    assert found.breakdown is not None
    assert found.breakdown.total == close(cost)
    for breakdown, part in zip((found.breakdown.workers, found.breakdown.ps), parts, strict=True):
        np.testing.assert_allclose(breakdown, np.reshape(part, (-1, len(names))), atol=1e-12)
    assert found.payoff == close(found.utility - cost)


def assert_within_what_is_left(market, found, schedule):
    instance = Instance(market.horizon, market.cluster, (market.job,))
    assert oasis.verify(instance, {market.job.id: schedule}) == found.utility
    names, cluster = market.cluster.resources, market.cluster
    for rows, demand, capacity, used in (
        (schedule.workers, market.job.worker, cluster.worker_capacity, market.worker_used),
        (schedule.ps, market.job.ps, cluster.ps_capacity, market.ps_used),
    ):
        for t, s, n in rows.tolist():
            for r, name in enumerate(names):
                if demand.get(name, 0.0) > 0:
                    load = used[t, s, r] + n * demand[name]
                    assert load <= capacity[s, r] + 1e-9 * max(1.0, load)


@more(2)
@example(rugged_market(124))  # the later of two equal completions has the better bound
@example(rugged_market(162))
@example(rugged_market(641))
@given(st.one_of(rugged_markets(), calm_markets()))
def test_equal_payoff_completes_earliest(market):
    """Ties are the rule for a job that does not mind when it completes."""
    value = Constant(float(market.job.utility(0)))
    market = replace(market, job=replace(market.job, utility=value))
    found = search(market)
    assume(found.schedule is not None)
    payoffs = textbook_payoffs(market.arguments)
    best = max(payoffs)
    earliest = next(t for t, payoff in enumerate(payoffs) if payoff >= best - 1e-11 * (1 + best))
    assert found.completion == market.job.arrival + earliest
