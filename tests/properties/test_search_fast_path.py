"""The fast search through the public interface: degenerate markets, long streams, memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import oasis
from oasis import (
    Cluster,
    Constant,
    Deadline,
    Instance,
    Job,
    OASiS,
    Piecewise,
    Server,
    Sigmoid,
    Utility,
)
from oasis.online.ledger import Ledger
from oasis.online.search import Search
from tests.oracle.reference_search import Question
from tests.oracle.textbook_split import costs
from tests.properties.test_theorem1_optimality import (
    assert_cost_and_breakdown,
    assert_within_what_is_left,
)
from tests.strategies import Maker, Market, all_instances, schedulers

ROOT = Path(__file__).resolve().parents[2]
RESOURCES = ("gpu", "cpu", "bandwidth_gbps")
Rng = np.random.Generator


# -- degenerate markets ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Twist:
    """A change that makes a market degenerate."""

    name: str
    demands: tuple[float, ...] = (0.0, 0.5, 1.0, 1.3)
    capacities: tuple[float, ...] = (0.0, 2.0, 3.0, 6.5)
    shares: tuple[float, ...] = (0.0, 0.0, 0.25, 0.7, 1.0)
    prices: tuple[float, ...] = (0.0, 0.25, 1.0, 1.0, 2.0)
    bandwidths: tuple[tuple[float, float], ...] = ((0.0, 0.0), (0.0, 1.0), (0.4, 1.0), (1.0, 3.0))
    slots_left: int | None = None


TWISTS = (
    Twist("no twist"),
    Twist("zero demand", demands=(0.0,), bandwidths=((0.0, 0.0),)),
    Twist("zero capacity", capacities=(0.0, 0.0, 2.0)),
    Twist("b = B", bandwidths=((1.0, 1.0), (0.1, 0.1))),
    Twist("b close to 0", bandwidths=((1e-12, 1.0), (1e-9, 1.0), (1e-30, 5.0), (1e-30, 1e-30))),
    Twist("underflowed prices", prices=(0.0, 5e-324, 1e-310, 1e-300)),
    Twist("tied prices", prices=(1.0,), shares=(0.0,)),
    Twist("full servers", shares=(1.0, 1.0, 1.0, 0.5)),
    Twist("one slot left", slots_left=1),
)
COUNTED = 250  # markets a twist


def a_utility(rng: Rng) -> Utility:
    value = float(rng.choice([1.0, 3.7, 10.0, 100.0]))
    kinds = (
        Constant(value),
        Deadline(value, float(rng.integers(0, 6))),
        Sigmoid(value, float(rng.choice([0.01, 0.5, 6.0, 800.0])), float(rng.choice([1, 2.5, 15]))),
        Piecewise((0.0, 2.0), (value, value / 3)),
    )
    return kinds[rng.integers(len(kinds))]


def draw(rng: Rng, twist: Twist) -> Market:
    horizon = int(rng.integers(1, 9))
    servers = [
        tuple(
            Server(
                f"{group}{k}", dict(zip(RESOURCES, rng.choice(twist.capacities, 3), strict=True))
            )
            for k in range(int(rng.integers(1, 5)))
        )
        for group in "wp"
    ]
    cluster = Cluster(RESOURCES, *servers, 1.0)
    b, per_ps = twist.bandwidths[rng.integers(len(twist.bandwidths))]
    demands = [
        dict(zip(RESOURCES, (*rng.choice(twist.demands, 2), bandwidth), strict=True))
        for bandwidth in (b, per_ps)
    ]
    left = twist.slots_left
    job = Job(
        id="j",
        arrival=horizon - left if left else int(rng.integers(0, horizon)),
        epochs=int(rng.integers(1, 4)),
        chunks=int(rng.integers(1, 9)),
        minibatches=int(rng.integers(1, 3)),
        minibatch_time=float(rng.choice([0.1, 1 / 3, 0.5, 1.0])),
        gradient_mb=0.0,
        worker=demands[0],
        ps=demands[1],
        utility=a_utility(rng),
    )
    price, used = [], []
    for capacity in (cluster.worker_capacity, cluster.ps_capacity):
        shape = (horizon, *capacity.shape)
        tables = [rng.choice(options, shape) for options in (twist.prices, twist.shares)]
        if rng.random() < 0.5:  # slots alike, but for one
            other = int(rng.integers(horizon))
            for table in tables:
                table[np.arange(horizon) != other] = table[0]
        price.append(tables[0])
        used.append(tables[1] * capacity)
    return Market(job, cluster, horizon, *price, *used)


def reference(market: Market) -> tuple[float, int | None]:
    """Best payoff and its earliest completion slot by the recurrence; 0 and None if none pays."""
    question = Question(**market.arguments)
    most = min(market.job.chunks, question.work)
    table = np.array(
        [[question.slot_cost(t, n) for n in range(most + 1)] for t in range(len(question.slots))]
    )
    worth = np.array([question.utility(t) for t in range(len(table))])
    payoff = np.where(worth > 0, worth - costs(table, question.work), -np.inf)
    at = int(payoff.argmax())
    return (float(payoff[at]), market.job.arrival + at) if payoff[at] > 0 else (0.0, None)


def check(market: Market) -> bool:
    """Payoff, completion, cost and feasibility; whether there is a schedule."""
    payoff, completion = reference(market)
    found = oasis.best_schedule(**market.arguments)
    assert found.payoff == pytest.approx(payoff, rel=0, abs=1e-9 * max(1.0, payoff))
    if found.schedule is None:
        return False
    assert_cost_and_breakdown(market, found, found.schedule)
    assert_within_what_is_left(market, found, found.schedule)
    assert found.schedule.worker_slots == Question(**market.arguments).work
    assert completion is not None
    assert found.completion == found.schedule.completion <= completion
    return True


@pytest.mark.parametrize("twist", TWISTS, ids=lambda twist: twist.name)
def test_payoff_equals_the_reference_on_degenerate_markets(twist: Twist) -> None:
    made = sum(check(draw(np.random.default_rng([17, i]), twist)) for i in range(COUNTED))
    assert made > 0


@pytest.mark.parametrize("twist", TWISTS, ids=lambda twist: twist.name)
def test_room_counts_workers_with_their_parameter_servers(twist: Twist) -> None:
    for i in range(40):
        market = draw(np.random.default_rng([19, i]), twist)
        question = Question(**market.arguments)
        most = min(market.job.chunks, question.work)
        fits = [
            max(n for n in range(most + 1) if question.slot_cost(t, n) < np.inf)
            for t in range(len(question.slots))
        ]
        arrays = (market.worker_prices, market.ps_prices, market.worker_used, market.ps_used)
        found = Search(market.job, Ledger.of_arrays(market.cluster, *arrays))
        rooms = [found.room_until(slot) for slot in range(market.job.arrival, market.horizon)]
        assert rooms == np.cumsum(fits).tolist()


# -- streams ---------------------------------------------------------------------------------------


def market_of(scheduler: OASiS, job: Job) -> Market:
    ledger = scheduler.ledger
    arrays = (ledger.worker_prices, ledger.ps_prices, ledger.worker_used, ledger.ps_used)
    return Market(job, scheduler.cluster, scheduler.horizon, *arrays)


@given(all_instances(), schedulers())
def test_the_ledger_gives_the_search_what_its_arrays_give(instance: Instance, make: Maker) -> None:
    """Runs, columns and kept prices against the same amounts as plain arrays."""
    scheduler = make(instance)
    for job in instance.jobs_by_arrival():
        market = market_of(scheduler, job)
        plain = oasis.best_schedule(
            **market.arguments,
            granularity=scheduler.granularity,
            min_utility_fraction=scheduler.bounds.min_utility_fraction,
        )
        decision = scheduler.submit(job)
        assert (decision.payoff, decision.cost) == (plain.payoff, plain.cost)
        assert decision.schedule == plain.schedule
        assert decision.reason == plain.reason
        assert decision.rejection == plain.rejection


def check_changes(scheduler: OASiS) -> None:
    """The slots that differ from the one before it, by comparing everything."""
    ledger = scheduler.ledger
    differs = np.zeros(scheduler.horizon, dtype=bool)
    for used in (ledger.worker_used, ledger.ps_used):
        differs[1:] |= (used[1:] != used[:-1]).any(axis=(1, 2))
    assert ledger.changes.tolist() == differs.tolist()


@given(all_instances(), schedulers())
def test_changes_mark_every_slot_that_differs(instance: Instance, make: Maker) -> None:
    scheduler = make(instance)
    check_changes(scheduler)
    for job in instance.jobs_by_arrival():
        scheduler.submit(job)
        check_changes(scheduler)


# -- memory ----------------------------------------------------------------------------------------


def one_array(scheduler: OASiS) -> int:
    """Bytes of one (T, H + K, R) float64 array."""
    cluster = scheduler.cluster
    servers = len(cluster.worker_capacity) + len(cluster.ps_capacity)
    return 8 * scheduler.horizon * servers * len(cluster.resources)


@pytest.mark.parametrize("servers", [6, 20])
@pytest.mark.parametrize("horizon", [12, 40])
def test_ledger_is_at_most_four_arrays(horizon: int, servers: int) -> None:
    """At the start and after a stream, with the five resources of the presets."""
    instance = oasis.generate(
        "calibrated", jobs=60, worker_servers=servers, ps_servers=servers, horizon=horizon
    )
    scheduler = OASiS.from_instance(instance)
    assert scheduler.ledger.nbytes <= 4 * one_array(scheduler)
    for job in instance.jobs_by_arrival():
        scheduler.submit(job)
    assert sum(decision.admitted for decision in scheduler.decisions) > 0
    assert scheduler.ledger.nbytes <= 4 * one_array(scheduler)
