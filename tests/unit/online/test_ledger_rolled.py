"""A ledger that begins at a later slot: rows and calendar slots, idle slots at its end."""

from __future__ import annotations

import numpy as np
import pytest

from oasis import Schedule
from oasis.online.ledger import Ledger
from tests.unit.online.test_ledger import BOUNDS, CLUSTER, HORIZON, JOB, PRICE, differing

LONG = Schedule(
    "a", [[t, 0, 1] for t in (1, 2, 3, 5)] + [[3, 1, 1]], [[t, 1, 1] for t in (2, 3, 5)]
)


def rolled(*origins: int) -> Ledger:
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    ledger.commit(JOB, LONG, BOUNDS)
    for origin in origins:
        ledger.roll(origin, BOUNDS)
    return ledger


def by_calendar(ledger: Ledger) -> dict[int, tuple[list[float], list[float]]]:
    """CPUs used on worker servers and hosts, in each slot in which any are."""
    workers, ps = ledger.worker_used[:, :, 0], ledger.ps_used[:, :, 0]
    return {
        ledger.origin + row: (workers[row].tolist(), ps[row].tolist())
        for row in range(HORIZON)
        if workers[row].any() or ps[row].any()
    }


@pytest.mark.parametrize("origins", [(2,), (1, 2), (0, 2), (1, 1, 2, 2)])
def test_rolling_in_steps_is_rolling_at_once(origins: tuple[int, ...]) -> None:
    ledger = rolled(*origins)
    assert (ledger.origin, ledger.end, ledger.horizon) == (2, 2 + HORIZON, HORIZON)
    assert by_calendar(ledger) == {
        2: ([2.0, 0.0, 0.0], [0.0, 3.0]),
        3: ([2.0, 2.0, 0.0], [0.0, 3.0]),
        5: ([2.0, 0.0, 0.0], [0.0, 3.0]),
    }
    assert differing(ledger) == [1, 2, 3, 4]  # slots 3, 4, 5 and 6


def test_prices_of_both_groups_follow_what_is_used_and_new_slots_are_idle() -> None:
    ledger = rolled(3)
    for prices, used, capacity in (
        (ledger.worker_prices, ledger.worker_used, CLUSTER.worker_capacity),
        (ledger.ps_prices, ledger.ps_used, CLUSTER.ps_capacity),
    ):
        np.testing.assert_allclose(prices, PRICE(used, np.broadcast_to(capacity, prices.shape)))


def test_runs_are_asked_for_by_calendar_and_answered_by_row() -> None:
    ledger = rolled(2)
    starts, lengths = ledger.runs(2, ledger.end)
    assert (starts.tolist(), lengths.tolist()) == ([0, 1, 2, 3, 4], [1, 1, 1, 1, 3])
    starts, lengths = ledger.runs(2, 4)
    assert (starts.tolist(), lengths.tolist()) == ([0, 1], [1, 1])
    starts, lengths = ledger.runs(6, 8)
    assert (starts.tolist(), lengths.tolist()) == ([4], [2])


def test_commits_and_releases_after_rolling_mark_what_differs() -> None:
    ledger = rolled(4)
    before = by_calendar(ledger)
    late = Schedule("a", [[7, 2, 1], [8, 2, 1]], [[8, 0, 1]])
    ledger.commit(JOB, late, BOUNDS)
    assert by_calendar(ledger) == before | {
        7: ([0.0, 0.0, 2.0], [0.0, 0.0]),
        8: ([0.0, 0.0, 2.0], [3.0, 0.0]),
    }
    assert differing(ledger) == [1, 2, 3, 4, 5]  # slots 5 to 9
    ledger.release(JOB, late, BOUNDS)
    assert by_calendar(ledger) == before
    assert differing(ledger) == [1, 2]


def test_what_is_used_in_the_last_slot_differs_from_the_idle_slots_that_come() -> None:
    last = Schedule("a", [[HORIZON - 1, 0, 1]], [])
    for schedule, rows in ((last, [HORIZON - 2, HORIZON - 1]), (LONG, [1, 2, 3, 4, 5])):
        ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
        ledger.commit(JOB, schedule, BOUNDS)
        ledger.roll(1, BOUNDS)
        steps = [
            row
            for row in range(1, HORIZON)
            if (ledger.worker_used[row] != ledger.worker_used[row - 1]).any()
            or (ledger.ps_used[row] != ledger.ps_used[row - 1]).any()
        ]
        assert differing(ledger) == steps == rows


@pytest.mark.parametrize("origin", [1, 0, -1])
def test_a_ledger_does_not_roll_back(origin: int) -> None:
    """What went is gone: the origin moved without the contents."""
    ledger = rolled(2)
    before = by_calendar(ledger)
    with pytest.raises(ValueError, match=rf"^origin: expected slot 2 or .*, got {origin}$"):
        ledger.roll(origin, BOUNDS)
    assert (ledger.origin, by_calendar(ledger)) == (2, before)
    ledger.roll(2, BOUNDS)
    assert (ledger.origin, by_calendar(ledger)) == (2, before)


def test_without_bounds_prices_stay_with_their_rows() -> None:
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    for group in (ledger.worker, ledger.ps):
        group.price[:] = np.arange(HORIZON)[None, :, None]
    ledger.commit(JOB, LONG, None)
    ledger.roll(3, None)
    ledger.release(JOB, Schedule("a", [[5, 0, 1]], [[5, 1, 1]]), None)
    for prices in (ledger.worker_prices, ledger.ps_prices):
        assert (prices == np.arange(HORIZON)[:, None, None]).all()
    assert by_calendar(ledger) == {3: ([2.0, 2.0, 0.0], [0.0, 3.0])}
