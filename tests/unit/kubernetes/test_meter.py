"""Work is never counted for longer than the pods were seen to run."""

from __future__ import annotations

from collections import Counter
from itertools import product

from oasis.kubernetes.control.meter import WorkMeter
from oasis.kubernetes.objects.oasis_job import SlotClock

Event = tuple[
    int, str | None
]  # from when on these do work, in the order of the calls; None: a slot ends


def by_hand(events: list[Event]) -> tuple[list[Counter[str]], int]:
    """Seconds of each worker in each slot, and idle ones: from what was known as each passed."""
    slots, idle = [Counter[str]() for _ in range(3)], 0
    for second in range(max(at for at, _ in events)):
        first = next(k for k, (at, _) in enumerate(events) if at > second)
        told = [workers for _, workers in events[:first]]
        known = [workers for workers in told if workers is not None]
        slots[told.count(None)].update(known[-1] if known else "")
        idle += any(known) and not known[-1] and any(workers for _, workers in events[first:])
    return slots, idle


def test_each_second_is_counted_once_also_where_notes_come_out_of_order() -> None:
    """A worker-slot, the most of a slot, is six of its ten seconds. Each short history is tried."""
    notes = list(product((3, 10, 12), ("", "a", "ab")))
    for one, two, three, four in product([(2, "b"), (8, "ab")], notes, notes, notes):
        events: list[Event] = [one, two, (10, None), three, four, (20, None)]
        meter, found = WorkMeter(SlotClock(slot_seconds=10.0, startup_seconds=4.0)), []
        for at, workers in events:
            if workers is None:
                found.append(meter.close(float(at))["j"])
            else:
                meter.note("j", workers, float(at))
        slots, idle = by_hand(events)
        most = [sum(min(6, seconds) for seconds in slot.values()) / 6 for slot in slots]
        assert [*found, 0.0] == most, events
        assert meter.idle("j")[0] == idle, events


def test_what_was_broken_and_is_whole_again_is_told() -> None:
    meter = WorkMeter(SlotClock(slot_seconds=10.0))
    meter.note("j", ["a"], 0.0)
    meter.note("j", [], 3.0)
    meter.note("j", ["b"], 7.5)
    assert meter.idle("j") == (4.5, 4.5)
    assert meter.close(10.0) == {"j": 0.55}
    meter.note("j", [], 12.0)
    meter.note("j", ["c"], 13.0)
    assert meter.idle("j") == (5.5, 1.0)
    assert meter.idle("nobody") == (0.0, 0.0)


def test_a_worker_that_the_plan_took_away_earns_nothing_in_the_slot() -> None:
    """It may run a little longer; what is noted is that it ceased when the slot began."""
    meter = WorkMeter(SlotClock(slot_seconds=10.0, startup_seconds=9.0))
    meter.note("j", ["a", "b"], 0.0)
    assert meter.close(10.0) == {"j": 2.0}
    meter.note("j", ["a"], 10.0)
    assert meter.close(20.0) == {"j": 1.0}
