"""The ledger: where neighbouring slots differ, and that it is what was committed to it."""

from __future__ import annotations

import numpy as np
import pytest

from oasis import Constant, Schedule
from oasis.online.ledger import Ledger
from oasis.online.prices import PriceBounds, PriceFunction
from tests import builders

CLUSTER = builders.cluster(servers=3, worker={"cpu": 8.0, "gpu": 4.0}, ps={"cpu": 6.0, "gpu": 1.0})
PRICE = PriceFunction(np.log([1.0, 2.0]), np.array([2.0, 1.0]), 1.0)
BOUNDS = PriceBounds(PRICE, PRICE, True, 0.0)
JOB = builders.job(
    "a", workers=9, worker={"cpu": 2.0, "gpu": 1.0}, ps={"cpu": 3.0}, utility=Constant(1.0)
)
HORIZON = 7


def differing(ledger: Ledger) -> list[int]:
    return np.flatnonzero(ledger.changes).tolist()


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
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    ledger.changes[[2, 5]] = True
    found = ledger.runs(first, end)
    assert (found[0].tolist(), found[1].tolist()) == (starts, lengths)
    assert differing(ledger) == [2, 5]  # asking changes nothing


def test_copies_of_what_is_used_do_not_change_the_ledger() -> None:
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    for array in (ledger.worker_used, ledger.ps_used, ledger.worker_prices, ledger.ps_prices):
        array[:] = -1.0
    assert (ledger.worker_used >= 0).all()
    assert (ledger.ps_prices >= 0).all()


@pytest.mark.parametrize("origin", [1, 0, -1])
def test_a_ledger_does_not_roll_back(origin: int) -> None:
    """What went is gone: the origin moved without the contents."""
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    ledger.commit(JOB, Schedule("a", [[3, 0, 1], [5, 1, 1]], []), BOUNDS)
    ledger.roll(2, BOUNDS)
    before = ledger.worker_used
    with pytest.raises(ValueError, match=rf"^origin: expected slot 2 or .*, got {origin}$"):
        ledger.roll(origin, BOUNDS)
    ledger.roll(2, BOUNDS)
    assert ledger.origin == 2
    np.testing.assert_array_equal(ledger.worker_used, before)
