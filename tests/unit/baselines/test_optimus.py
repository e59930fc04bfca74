"""Optimus, branch by branch, on cases worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from baselines.optimus import LINEAR, Optimus, fit, speed_of, work_to_converge
from oasis.scheduling import TrainingCurve
from oasis.simulator import (
    Engine,
    Observation,
)
from tests.unit.baselines.controllers import engine, job, workers, workload


def policy(**options):
    return Optimus(1.0, **options)


# -- the speed model -------------------------------------------------------------------------------


def test_with_one_number_of_workers_alone_speed_is_linear():
    assert fit({(1, 1): 1.0, (1, 2): 3.0}, "sync") == LINEAR
    assert speed_of(LINEAR, (7, 2), "sync") == pytest.approx(7.0)


def test_nothing_takes_no_time():
    assert speed_of((0.0,) * 5, (1, 1), "sync") == math.inf


def test_the_loss_tells_when_a_job_will_have_converged():
    done = [float(k) for k in range(1, 30)]
    curve = [1.0 / (0.5 * k + 1.0) + 0.1 for k in done]
    # in units of the largest loss L: b0 = 0.5 L, b1 = L, and it falls by b0 / (b0 k + b1)^2
    largest = max(curve)
    slope, begin = 0.5 * largest, largest
    expected = (math.sqrt(slope / 0.001) - begin) / slope
    assert work_to_converge(done, curve, 0.001) == pytest.approx(expected, rel=0.05)
    assert work_to_converge(done, curve, 0.5) == done[-1]  # it has converged
    assert work_to_converge(done, [2.0] * len(done), 0.001) == done[-1]


# -- learning --------------------------------------------------------------------------------------


def test_losses_say_what_is_left_where_they_are_asked():
    """The loss is flat long before the work is done: the job counts as converged."""
    curve = TrainingCurve(tuple((k / 50, 1.0 / (1.0 + 2 * k) + 0.01) for k in range(51)))
    flat = replace(job("flat", most=4, work=9000.0), curve=curve)
    other = job("other", most=4, work=4000.0)
    look = Observation(10.0)
    by_work = engine(policy(), flat, other, until=300.0, gpus=(4,), observation=look)
    assert workers(by_work) == {"flat": {0: 2}, "other": {0: 2}}
    optimus = policy(convergence=0.01)
    by_loss = engine(optimus, flat, other, until=300.0, gpus=(4,), observation=look)
    assert workers(by_loss) == {"flat": {0: 1}, "other": {0: 3}}
    unseen = engine(policy(convergence=0.01), flat, other, until=300.0, gpus=(4,))
    assert workers(unseen) == {"flat": {0: 2}, "other": {0: 2}}


# -- intervals and places --------------------------------------------------------------------------


def test_who_has_no_scipy_hears_of_it_before_the_run(monkeypatch):
    monkeypatch.setattr("oasis.model.extras.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"Optimus needs scipy: pip install .*\[sweep\]"):
        Engine(workload(job("a")), policy())
