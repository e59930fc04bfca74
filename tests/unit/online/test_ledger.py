"""The ledger: where neighbouring slots differ, and that it is what was committed to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oasis import Cluster, Constant, Schedule, Server
from oasis.online.ledger import Ledger
from oasis.online.prices import PriceBounds, PriceFunction
from tests import builders

CLUSTER = Cluster(
    ("cpu", "gpu"),
    (Server("w", {"cpu": 8.0, "gpu": 4.0}, 3),),
    (Server("p", {"cpu": 6.0, "gpu": 1.0}, 2),),
    1.0,
)
PRICE = PriceFunction(np.log([1.0, 2.0]), np.array([2.0, 1.0]), 1.0)
BOUNDS = PriceBounds(PRICE, PRICE, True, 0.0)
JOB = builders.job(
    "a", workers=9, worker={"cpu": 2.0, "gpu": 1.0}, ps={"cpu": 3.0}, utility=Constant(1.0)
)
HORIZON = 7


def contents(changed: str | None = None, at: tuple[int, ...] = ()) -> list[np.ndarray[Any, Any]]:
    """Prices and used amounts that are the same in all slots but for one entry from a slot on."""
    shapes = {"worker_prices": 3, "ps_prices": 2, "worker_used": 3, "ps_used": 2}
    arrays = {name: np.ones((HORIZON, servers, 2)) for name, servers in shapes.items()}
    if changed:
        slot, *entry = at
        arrays[changed][(slice(slot, None), *entry)] += 0.5
    return list(arrays.values())


def differing(ledger: Ledger) -> list[int]:
    return np.flatnonzero(ledger.changes).tolist()


@pytest.mark.parametrize("name", ["worker_prices", "ps_prices", "worker_used", "ps_used"])
@pytest.mark.parametrize("slot", [1, 3, HORIZON - 1])
@pytest.mark.parametrize(("server", "resource"), [(0, 0), (1, 1), (0, 1)])
def test_slot_differs_where_one_entry_differs_from_the_slot_before(
    name: str, slot: int, server: int, resource: int
) -> None:
    ledger = Ledger.of_arrays(CLUSTER, *contents(name, (slot, server, resource)))
    assert differing(ledger) == [slot]


def test_slots_that_are_all_equal_form_one_run() -> None:
    ledger = Ledger.of_arrays(CLUSTER, *contents())
    assert differing(ledger) == []
    starts, lengths = ledger.runs(0, HORIZON)
    assert (starts.tolist(), lengths.tolist()) == ([0], [HORIZON])


@pytest.mark.parametrize(
    ("first", "end", "starts", "lengths"),
    [
        (0, 7, [0, 2, 5], [2, 3, 2]),
        (1, 7, [1, 2, 5], [1, 3, 2]),
        (2, 5, [2], [3]),
        (3, 6, [3, 5], [2, 1]),
        (6, 7, [6], [1]),
    ],
)
def test_runs_are_cut_at_the_slots_asked_for(
    first: int, end: int, starts: list[int], lengths: list[int]
) -> None:
    ledger = Ledger.of_arrays(CLUSTER, *contents())
    ledger.changes[[2, 5]] = True
    found = ledger.runs(first, end)
    assert (found[0].tolist(), found[1].tolist()) == (starts, lengths)
    assert differing(ledger) == [2, 5]  # asking changes nothing


def random_schedule(rng: np.random.Generator) -> Schedule:
    """Up to one worker for each slot and worker server, and one PS likewise."""
    workers = [[t, s, 1] for t in range(HORIZON) for s in range(3) if rng.random() < 0.2]
    ps = [[t, s, 1] for t in range(HORIZON) for s in range(2) if rng.random() < 0.2]
    return Schedule("a", workers or [[int(rng.integers(HORIZON)), 0, 1]], ps)


def within_workers(schedule: Schedule) -> bool:
    """Return whether parameter servers run only between the first and the last worker."""
    slots = schedule.ps[:, 0]
    return bool(((slots >= schedule.start) & (slots <= schedule.completion)).all())


@pytest.mark.parametrize("seed", range(60))
def test_after_every_commit_slots_differ_where_what_is_committed_differs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    used = {"workers": np.zeros((HORIZON, 3, 2)), "ps": np.zeros((HORIZON, 2, 2))}
    demand = {"workers": [2.0, 1.0], "ps": [3.0, 0.0]}
    for _ in range(2):
        schedule = random_schedule(rng)
        if not within_workers(schedule):
            schedule = Schedule("a", schedule.workers, [])
        ledger.commit(JOB, schedule, BOUNDS)
        for name, amounts in used.items():
            for slot, server, count in getattr(schedule, name).tolist():
                amounts[slot, server] += count * np.array(demand[name])
        np.testing.assert_array_equal(ledger.worker_used, used["workers"])
        np.testing.assert_array_equal(ledger.ps_used, used["ps"])
        expected = [
            t
            for t in range(1, HORIZON)
            if any((amounts[t] != amounts[t - 1]).any() for amounts in used.values())
        ]
        assert differing(ledger) == expected
        for prices, amounts, capacity in (
            (ledger.worker_prices, used["workers"], CLUSTER.worker_capacity),
            (ledger.ps_prices, used["ps"], CLUSTER.ps_capacity),
        ):
            np.testing.assert_allclose(
                prices, PRICE(amounts, np.broadcast_to(capacity, prices.shape))
            )


def test_idle_ledger_has_the_lower_prices_and_nothing_used() -> None:
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    assert ledger.horizon == HORIZON
    assert differing(ledger) == []
    for used, prices, servers in (
        (ledger.worker_used, ledger.worker_prices, 3),
        (ledger.ps_used, ledger.ps_prices, 2),
    ):
        assert used.shape == prices.shape == (HORIZON, servers, 2)
        assert not used.any()
        np.testing.assert_allclose(prices, np.broadcast_to([1.0, 2.0], prices.shape))


def test_copies_of_what_is_used_do_not_change_the_ledger() -> None:
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    for array in (ledger.worker_used, ledger.ps_used, ledger.worker_prices, ledger.ps_prices):
        array[:] = -1.0
    assert (ledger.worker_used >= 0).all()
    assert (ledger.ps_prices >= 0).all()


def test_horizon_of_one_slot_has_one_run_before_and_after_a_commit() -> None:
    ledger = Ledger.idle(CLUSTER, 1, BOUNDS)
    ledger.commit(JOB, Schedule("a", [[0, 1, 2]], [[0, 0, 1]]), BOUNDS)
    assert differing(ledger) == []
    assert [runs.tolist() for runs in ledger.runs(0, 1)] == [[0], [1]]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("gone", [1, 3, HORIZON - 1, HORIZON, HORIZON + 2])
def test_rolled_ledger_keeps_what_is_committed_and_where_slots_differ(seed: int, gone: int) -> None:
    rng = np.random.default_rng(seed)
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    schedule = random_schedule(rng)
    ledger.commit(JOB, Schedule("a", schedule.workers, []), BOUNDS)
    before = ledger.worker_used
    ledger.roll(gone, BOUNDS)
    expected = np.zeros_like(before)
    expected[: max(HORIZON - gone, 0)] = before[gone:]
    np.testing.assert_array_equal(ledger.worker_used, expected)
    steps = (expected[1:] != expected[:-1]).any(axis=(1, 2))
    assert differing(ledger) == (1 + np.flatnonzero(steps)).tolist()
    prices = ledger.worker_prices
    np.testing.assert_allclose(
        prices, PRICE(expected, np.broadcast_to(CLUSTER.worker_capacity, prices.shape))
    )
    again = Schedule("a", [[gone, 0, 1], [gone + 1, 0, 1]], [])
    ledger.commit(JOB, again, BOUNDS)  # slots are still those of the calendar
    expected[:2, 0] += np.array([2.0, 1.0])
    np.testing.assert_array_equal(ledger.worker_used, expected)
    ledger.release(JOB, again, BOUNDS)
    expected[:2, 0] -= np.array([2.0, 1.0])
    np.testing.assert_array_equal(ledger.worker_used, expected)
    assert differing(ledger) == (1 + np.flatnonzero(steps)).tolist()
