"""Theorem 1: Algorithm 2 finds the best schedule of one job, by three independent oracles."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import oasis
from oasis import BestSchedule, Constant, Instance, Schedule
from tests.oracle.reference_search import (
    Question,
    brute_force,
    printed,
    ps_for,
    textbook,
    textbook_payoffs,
)
from tests.strategies import (
    Maker,
    Market,
    all_instances,
    calm_markets,
    fewer,
    generous_markets,
    markets,
    more,
    of,
    rugged_market,
    rugged_markets,
    schedulers,
)

KINDS = {
    "any": markets(),
    "larger jobs": markets(most_slots=8, most_work=40, most_servers=4),
    "slots and servers that repeat": calm_markets(),
}
answerable = st.one_of(generous_markets(most_work=20), calm_markets(), rugged_markets())


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def search(market: Market, granularity: str = "worker-slot", fraction: float = 0.0) -> BestSchedule:
    return oasis.best_schedule(
        **market.arguments, granularity=granularity, min_utility_fraction=fraction
    )


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), fraction=of(0.0, 1e-3, 0.3))
def test_payoff_equals_the_textbook_dynamic_programme(
    kind: str, data: st.DataObject, fraction: float
) -> None:
    market = data.draw(KINDS[kind])
    found = search(market, fraction=fraction)
    assert found.payoff == close(textbook(market.arguments, fraction))


@more(10)
@given(rugged_markets(), of(0.0, 0.3))
def test_payoff_equals_the_textbook_where_slot_costs_are_rugged(
    market: Market, fraction: float
) -> None:
    found = search(market, "worker-slot", fraction)
    assert found.payoff == close(textbook(market.arguments, fraction))


@more(2)
@given(rugged_markets(), of(0.0, 0.3))
def test_chunk_payoff_equals_the_printed_one_where_slot_costs_are_rugged(
    market: Market, fraction: float
) -> None:
    found = search(market, "chunk", fraction)
    assert found.payoff == close(printed(market.arguments, fraction))


@fewer(2)
@given(all_instances(), schedulers())
def test_every_decision_of_oasis_has_the_textbook_payoff(instance: Instance, make: Maker) -> None:
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


@given(st.one_of(markets(most_work=20), calm_markets()), of(0.0, 1e-3, 0.3))
def test_chunk_payoff_equals_the_printed_dynamic_programme(market: Market, fraction: float) -> None:
    """And worker-slots are never worse than chunks."""
    chunks = search(market, "chunk", fraction).payoff
    assert chunks == close(printed(market.arguments, fraction))
    assert search(market, fraction=fraction).payoff >= chunks - 1e-9 * max(1.0, chunks)


@fewer(2)
@given(markets(most_slots=3, most_work=3))
def test_payoff_equals_brute_force_over_all_placements(market: Market) -> None:
    assert search(market).payoff == close(brute_force(market.arguments))


@given(answerable, of("worker-slot", "chunk"))
def test_a_schedule_is_what_is_said_of_it(market: Market, granularity: str) -> None:
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


def assert_cost_and_breakdown(market: Market, found: BestSchedule, schedule: Schedule) -> None:
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


def assert_within_what_is_left(market: Market, found: BestSchedule, schedule: Schedule) -> None:
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


@given(st.one_of(generous_markets(most_servers=3), calm_markets(), rugged_markets()))
def test_cheaper_server_is_never_left_idle(market: Market) -> None:
    """COST_t, lines 23 and 28: no unit runs while a cheaper server has room in that slot."""
    found = search(market)
    assume(found.schedule is not None)
    question = Question(**market.arguments)
    for rows, fits, costs in (
        (found.schedule.workers, question.worker_rooms, question.worker_costs),
        (found.schedule.ps, question.ps_rooms, question.ps_costs),
    ):
        taken = {(t - market.job.arrival, s): n for t, s, n in rows.tolist()}
        for t, server in taken:
            for other, cost in enumerate(costs[t]):
                if cost < costs[t][server] - 1e-12:
                    assert taken.get((t, other), 0) == fits[t][other]


@more(2)
@example(rugged_market(124))  # the later of two equal completions has the better bound
@example(rugged_market(162))
@example(rugged_market(641))
@given(st.one_of(rugged_markets(), calm_markets()))
def test_equal_payoff_completes_earliest(market: Market) -> None:
    """Ties are the rule for a job that does not mind when it completes."""
    value = Constant(float(market.job.utility(0)))
    market = replace(market, job=replace(market.job, utility=value))
    found = search(market)
    assume(found.schedule is not None)
    payoffs = textbook_payoffs(market.arguments)
    best = max(payoffs)
    earliest = next(t for t, payoff in enumerate(payoffs) if payoff >= best - 1e-11 * (1 + best))
    assert found.completion == market.job.arrival + earliest


@given(st.one_of(markets(), rugged_markets()), of(0.0, 0.25, 1.0))
def test_payoff_never_rises_with_prices_or_usage(market: Market, rise: float) -> None:
    dearer = replace(
        market,
        worker_prices=market.worker_prices + rise,
        ps_prices=market.ps_prices * (1 + rise),
    )
    empty = replace(
        market,
        worker_used=np.zeros_like(market.worker_used),
        ps_used=np.zeros_like(market.ps_used),
    )
    most, payoff, least = (search(one).payoff for one in (empty, market, dearer))
    assert least <= payoff + 1e-9 * max(1.0, payoff)
    assert payoff <= most + 1e-9 * max(1.0, most)
