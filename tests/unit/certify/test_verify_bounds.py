"""A stated upper bound may be below what a schedule earns by rounding alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import oasis
from oasis import Cluster, Constant, Instance, Job, Schedule, Server, VerificationError

CLUSTER = Cluster(
    ("cpu",), (Server("w", {"cpu": 2.0}),), (Server("p", {"cpu": 1.0}),), slot_seconds=1.0
)
JOB = Job(
    id="a",
    arrival=0,
    epochs=1,
    chunks=1,
    minibatches=1,
    minibatch_time=1.0,
    gradient_mb=0.0,
    worker={"cpu": 1.0},
    ps={},
    utility=Constant(1000.0),
)
INSTANCE = Instance(2, CLUSTER, (JOB,))
SCHEDULES = {"a": Schedule("a", [[0, 0, 1]], [])}


@pytest.mark.parametrize("bound", [None, 1000.0, 1500.0, 1e9, 1000.0 * (1 - 1e-9)])
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
