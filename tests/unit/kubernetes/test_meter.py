"""Work is never counted for longer than pods were seen to run, and starts are measured."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

import oasis
from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.control.machines import StartUps
from oasis.kubernetes.control.meter import WorkMeter
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.kubernetes.demo import report

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


def test_a_worker_that_the_plan_took_away_earns_nothing_in_the_slot() -> None:
    """It may run a little longer; what is noted is that it ceased when the slot began."""
    meter = WorkMeter(SlotClock(slot_seconds=10.0, startup_seconds=9.0))
    meter.note("j", ["a", "b"], 0.0)
    assert meter.close(10.0) == {"j": 2.0}
    meter.note("j", ["a"], 10.0)
    assert meter.close(20.0) == {"j": 1.0}


CLOCK = SlotClock(slot_seconds=60.0, startup_seconds=15.0, epoch=1000.0)


def pod(uid: str, slot: str | None, ready: bool = True) -> dict[str, Any]:
    notes = {} if slot is None else {names.SLOT: slot}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": {"uid": uid, "annotations": notes}, "status": status}


def noted(metrics: Metrics) -> tuple[float | None, float | None]:
    value = metrics.registry.get_sample_value
    return value("oasis_startup_seconds_sum"), value("oasis_startup_seconds_count")


def test_each_worker_is_noted_once_from_the_beginning_of_its_slot() -> None:
    metrics = Metrics()
    there = [pod("old", "0"), pod("starting", "1", ready=False)]
    starts = StartUps(CLOCK, metrics, there)
    pods = [*there, pod("new", "2"), pod("ps", "2"), pod("other", None), pod("odd", "-1")]
    working = {"old", "starting", "new", "other", "odd"}  # no parameter server is a worker
    starts.note(pods, {"old"}, at=1120.0)
    assert noted(metrics) == (0.0, 0.0), "it worked before anybody looked"
    starts.note(pods, working, at=1130.0)
    assert noted(metrics) == (70.0 + 10.0, 2.0)
    starts.note(pods, working - {"new"}, at=1140.0)
    starts.note(pods, working, at=1150.0)
    assert noted(metrics) == (80.0, 2.0), "its node was not ready for a while"
    starts.forget_others([pod("another", "2")])
    starts.note([pod("new", "3")], {"new"}, at=1185.0)
    assert noted(metrics) == (85.0, 3.0)


@pytest.mark.parametrize("slot", ["", "-1", "1.5", "x", "9", "9" * 9, "9" * 400, "9" * 5000])
def test_an_annotation_that_is_no_slot_up_to_now_is_not_measured(slot: str) -> None:
    metrics = Metrics()
    starts = StartUps(CLOCK, metrics, ())
    starts.note([pod("p", slot)], {"p"}, at=1130.0)
    assert noted(metrics) == (0.0, 0.0)


def test_the_demonstration_fails_where_the_cluster_differs_and_where_it_is_late(
    capsys: pytest.CaptureFixture[str],
) -> None:
    instance = oasis.generate("testbed", jobs=8, seed=1)
    decisions = oasis.simulate(instance, FIFO()).decisions
    done = {d.job_id: d.completion for d in decisions}
    first = min((name for name in done if done[name] is not None), key=lambda name: done[name])
    (other, *_) = (name for name in done if done[name] is None)
    there, last = done[first], instance.horizon
    assert there is not None
    assert there + 2 < last
    for change, code, said in (
        ({}, 0, ""),
        ({first: there + 1}, 0, ""),
        ({other: last}, 0, ""),  # no slot of the horizon
        (
            {first: there + 2},
            1,
            f"{first} completed in slot {there + 2}: expected slot {there + 1}",
        ),
        ({other: last - 1}, 1, "1 jobs completed on one side only"),
    ):
        statuses: dict[str, dict[str, Any]] = {
            name: {"phase": "Waiting"}
            if slot is None
            else {"phase": "Completed", "completionSlot": slot, "utility": 1.0}
            for name, slot in {**done, **change}.items()
        }
        assert report(statuses, instance, "fifo", CLOCK, start_up=10.0) == code
        assert said in "".join(capsys.readouterr())
