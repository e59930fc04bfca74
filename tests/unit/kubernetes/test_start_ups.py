"""How long workers take to start is measured once for each, and is what the simulator is told."""

from __future__ import annotations

from typing import Any

import pytest

import oasis
from baselines import FIFO
from experiments.evaluation.policies import POLICIES
from oasis.kubernetes import names
from oasis.kubernetes.control.machines import StartUps
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.kubernetes.demo import report
from tests.kubernetes.live_instance import delayed, late_jobs

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


@pytest.mark.parametrize(("measured", "part"), [(0.0, 0.0), (15.0, 0.0), (26.25, 0.25)])
def test_what_the_clock_allows_for_costs_nothing_in_the_simulator(
    measured: float, part: float
) -> None:
    costs = delayed(CLOCK, measured)
    assert (costs.start, costs.resume, costs.resize, costs.migrate) == (part,) * 4
    assert costs.save == 0.0


def test_a_job_is_late_from_the_second_slot_on() -> None:
    simulated = {"a": 2, "b": 2, "c": 2, "d": None, "e": 8}
    there = {"a": 3, "b": 4, "c": None, "d": None, "e": None}
    assert late_jobs(there, simulated, horizon=9) == {"b": (4, 2), "c": (None, 2)}
    assert late_jobs(there, simulated, horizon=10) == {"b": (4, 2), "c": (None, 2), "e": (None, 8)}


def test_the_demonstration_fails_where_the_cluster_differs_and_where_it_is_late(
    capsys: pytest.CaptureFixture[str],
) -> None:
    instance = oasis.generate("testbed", jobs=8, seed=1)
    last = instance.horizon

    def reported(policy: str, changes: dict[str, int]) -> tuple[int, str]:
        run = oasis.simulate(instance, POLICIES[policy].make(instance))
        statuses: dict[str, dict[str, Any]] = {}
        for decision in run.decisions:
            slot = changes.get(decision.job_id, decision.completion)
            done = {} if slot is None else {"completionSlot": slot, "utility": 1.0}
            statuses[decision.job_id] = {"phase": "Waiting", **done}
        code = report(statuses, instance, policy, CLOCK, start_up=10.0)
        return code, "".join(capsys.readouterr())

    decisions = oasis.simulate(instance, FIFO()).decisions
    done = {d.job_id: d.completion for d in decisions if d.completion is not None}
    first = min(done, key=lambda name: done[name])
    (other, *_) = (d.job_id for d in decisions if d.completion is None)
    assert done[first] + 2 < last
    assert reported("fifo", {})[0] == 0
    assert reported("fifo", {first: done[first] + 1})[0] == 0
    assert reported("fifo", {other: last})[0] == 0, "no slot of the horizon"
    code, said = reported("fifo", {first: done[first] + 2})
    assert code == 1
    assert f"{first} completed in slot {done[first] + 2}: expected slot {done[first] + 1}" in said
    code, said = reported("fifo", {other: last - 1})
    assert code == 1
    assert "1 jobs completed on one side only" in said
