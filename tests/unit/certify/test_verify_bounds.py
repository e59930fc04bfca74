"""What a result states, recomputed: bound and objective within rounding, work by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import oasis
from oasis import Cluster, Constant, Instance, Schedule, Server, VerificationError
from tests import builders

CLUSTER = Cluster(
    ("cpu",), (Server("w", {"cpu": 2.0}),), (Server("p", {"cpu": 1.0}),), slot_seconds=1.0
)
JOB = builders.job("a", worker={"cpu": 1.0}, utility=Constant(1000.0))
INSTANCE = Instance(2, CLUSTER, (JOB,))
SCHEDULES = {"a": Schedule("a", [[0, 0, 1]], [])}


@pytest.mark.parametrize(
    "bound", [None, 1000.0, 1500.0, 1e9, 1000.0 * (1 - 1e-9), 1000.0 * (1 - 1e-6)]
)
def test_bound_that_encloses_what_is_earned_passes(bound: float | None) -> None:
    result = SimpleNamespace(schedules=SCHEDULES, upper_bound=bound, objective=1000.0)
    assert oasis.verify(INSTANCE, result) == 1000.0


@pytest.mark.parametrize("bound", [999.9, 600.0, 1.0, 0.0, -1.0])
def test_bound_below_what_is_earned_is_refused(bound: float) -> None:
    result = SimpleNamespace(schedules=SCHEDULES, upper_bound=bound)
    with pytest.raises(VerificationError, match=r"\(1\) bound: upper_bound is .* has 1000"):
        oasis.verify(INSTANCE, result)


@pytest.mark.parametrize("stated", [0.0, 999.0, 1001.0, 1000.0 * (1 + 1e-6)])
def test_objective_differs_from_what_is_earned_by_rounding_alone(stated: float) -> None:
    near = SimpleNamespace(schedules=SCHEDULES, objective=1000.0 * (1 + 1e-12))
    assert oasis.verify(INSTANCE, near) == 1000.0
    with pytest.raises(VerificationError, match=r"\(1\) objective"):
        oasis.verify(INSTANCE, SimpleNamespace(schedules=SCHEDULES, objective=stated))


def test_nothing_earned_is_stated_as_nothing() -> None:
    assert oasis.verify(INSTANCE, SimpleNamespace(schedules={}, objective=1e-13)) == 0.0
    with pytest.raises(VerificationError, match=r"\(1\) objective"):
        oasis.verify(INSTANCE, SimpleNamespace(schedules={}, objective=1e-9))


def test_even_work_that_rounding_forgives_needs_a_worker() -> None:
    hardly = Instance(2, CLUSTER, (replace(JOB, minibatch_time=1e-12),))
    assert oasis.verify(hardly, SCHEDULES) == 1000.0
    with pytest.raises(VerificationError, match=r"\(2\) training work.*0 worker-slots"):
        oasis.verify(hardly, {"a": Schedule("a", [], [])})


def test_work_is_steps_times_compute_time_and_the_transfer_of_the_gradients() -> None:
    """125 MB are 1 Gbit: out and back at 2 Gbit/s take 1 s, half a slot of 2 s.

    A minibatch so takes 0.25 + 0.5 slots, and 3 * 2 * 4 of them 18 worker-slots.
    """
    amounts = {"cpu": 1.0, "bandwidth_gbps": 2.0}
    machine = {"cpu": 2.0, "bandwidth_gbps": 4.0}
    cluster = Cluster(
        ("cpu", "bandwidth_gbps"), (Server("w", machine),), (Server("p", machine),), 2.0
    )
    job = replace(
        JOB,
        epochs=3,
        chunks=2,
        minibatches=4,
        minibatch_time=0.25,
        gradient_mb=125.0,
        worker=amounts,
        ps=amounts,
    )
    instance = Instance(10, cluster, (job,))
    busy = [[slot, 0, 2] for slot in range(9)]
    assert oasis.verify(instance, {"a": Schedule("a", busy, busy)}) == 1000.0
    fewer = [[0, 0, 1], *busy[1:]]
    with pytest.raises(VerificationError, match=r"17 worker-slots, needs 18$"):
        oasis.verify(instance, {"a": Schedule("a", fewer, fewer)})
