"""Work is never counted for longer than pods were seen to run, and starts are measured."""

from __future__ import annotations

from collections import Counter
from itertools import product

from baselines import FIFO
from oasis.kubernetes.cluster.pods import by_job
from oasis.kubernetes.control.meter import WorkMeter
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.unit.kubernetes.played import Played, job

Event = tuple[
    int, str | None
]  # from when on these do work, in the order of the calls; None: a slot ends


def by_hand(events: list[Event]) -> list[Counter[str]]:
    """Seconds of each worker in each slot, from what was known as each passed."""
    slots = [Counter[str]() for _ in range(3)]
    for second in range(max(at for at, _ in events)):
        first = next(k for k, (at, _) in enumerate(events) if at > second)
        told = [workers for _, workers in events[:first]]
        known = [workers for workers in told if workers is not None]
        slots[told.count(None)].update(known[-1] if known else "")
    return slots


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
        most = [sum(min(6, seconds) for seconds in slot.values()) / 6 for slot in by_hand(events)]
        assert [*found, 0.0] == most, events


def test_a_start_up_is_measured_once_from_the_beginning_of_its_slot() -> None:
    made = Played(FIFO)
    made.opens = lambda pod: False
    uid = made.submit(job("a", slots=80.0))
    made.step()
    made.opens, made.late = lambda pod: True, 20.0
    for pod in made.pods.values():
        ready = {"type": "Ready", "status": "True"}
        pod["status"] = {"phase": "Running", "conditions": [ready]}
    made.reconciler.note(uid, by_job(made.seen())[uid], made.now())
    measured = ("oasis_startup_seconds_sum", "oasis_startup_seconds_count")
    assert [made.measured(name) for name in measured] == [20.0, 1.0]
    made.late = 0.0
    made.run(2)
    made.restart()
    made.run(2)
    assert [made.measured(name) for name in measured] == [20.0, 1.0]
