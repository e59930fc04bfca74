"""ElasticFlow and Optimus on cases worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from baselines.elasticflow import TOO_LATE, Claim, ElasticFlow, FreeSlots, Size
from baselines.optimus import LINEAR, Optimus, fit, speed_of, work_to_converge
from oasis.model.utility import Constant, Deadline, Sigmoid
from oasis.scheduling import TrainingCurve, View
from oasis.simulator import Engine, Observation
from tests.unit.baselines.controllers import engine, job, workers, workload

CONCAVE = (1.0, 1.5, 1.75, 2.0)  # the scaling of the example in the paper


def due(name, work, deadline, most=4, arrival=0.0, speedup=(), **more):
    made = job(name, most=most, arrival=arrival, work=work, **more)
    return replace(made, utility=Deadline(1.0, deadline), speedup=speedup)


def policy(**options):
    return ElasticFlow(1.0, **options)


def test_the_example_of_the_paper():
    """Of four GPUs three are taken in the first slot: two are not enough for C, four are."""
    sizes = tuple(Size(n, 0, n, CONCAVE[n - 1], ((0, n),)) for n in (1, 2, 4))
    slots = FreeSlots({0: 4}, 1.0)
    slots.take(0, Size(3, 0, 3.0, 3.0, ((0, 3),)))
    assert slots.minimum_share(Claim(0, sizes, 3.0, 2.0)) == [1, 3]
    assert slots.minimum_share(Claim(0, sizes, 2.5, 2.0)) == [1, 2]
    assert slots.minimum_share(Claim(0, sizes, 3.1, 2.0)) is None


def test_a_job_that_fits_nowhere_is_not_looked_for_until_a_deadline_far_away():
    """Two GPUs at least, where there is one: all slots of a million years would take days."""
    sizes = tuple(Size(n, 0, n, float(n), ((0, n),)) for n in (2, 4))
    assert FreeSlots({0: 1}, 60.0).minimum_share(Claim(0, sizes, 6000.0, 3e13)) is None


def test_a_job_that_was_admitted_is_never_turned_away():
    """On a cluster it arrives once more when another controller takes over."""
    made = policy()
    work = workload(due("a", 1000.0, 1.0))
    run = Engine(work, made)
    view = View(run.state, "elasticflow", True)
    run.state.jobs[0] = run._enter(work.jobs[0])
    view.arrived.append(work.jobs[0])
    assert made.decide(view).rejected == {0: TOO_LATE}

    class Again(View):
        def was_admitted(self, job):
            return True

    made.reset(work.site)
    again = Again(run.state, "elasticflow", True)
    again.arrived.append(work.jobs[0])
    plan = made.decide(again)
    assert (plan.rejected, plan.changes[0].worker_count) == ({}, 4)


@pytest.mark.parametrize(
    ("utility", "worth", "expected"),
    [
        (Deadline(5.0, 90.0), 0.5, 100.0),
        (Sigmoid(10.0, 1.0, 90.0), 0.5, 100.0),
        (Sigmoid(10.0, 1.0, 90.0), 0.9, 100.0 - math.log(9.0)),
        (Sigmoid(10.0, 0.0, 90.0), 0.5, math.inf),
        (Constant(3.0), 1.0, math.inf),
        (Constant(0.0), 0.5, math.inf),
        (None, 0.5, math.inf),
    ],
)
def test_the_deadline_is_the_latest_delay_at_which_a_job_is_worth_enough(utility, worth, expected):
    made = policy(worth=worth)
    made.reset(workload().site)
    found = made._deadline(replace(job("a", arrival=10.0), utility=utility))
    assert found == pytest.approx(expected, rel=1e-9)


def test_with_one_number_of_workers_alone_speed_is_linear():
    assert fit({(1, 1): 1.0, (1, 2): 3.0}, "sync") == LINEAR
    assert speed_of(LINEAR, (7, 2), "sync") == pytest.approx(7.0)


def test_the_loss_tells_when_a_job_will_have_converged():
    done = [float(k) for k in range(1, 8)]
    curve = [1.0 / (0.5 * k + 1.0) + 0.1 for k in done]
    # in units of the largest loss L: b0 = 0.5 L, b1 = L, and it falls by b0 / (b0 k + b1)^2
    largest = max(curve)
    slope, begin = 0.5 * largest, largest
    expected = (math.sqrt(slope / 0.001) - begin) / slope
    assert work_to_converge(done, curve, 0.001) == pytest.approx(expected, rel=0.05)
    assert work_to_converge(done, curve, 0.5) == done[-1]  # it has converged
    assert work_to_converge(done, [2.0] * len(done), 0.001) == done[-1]


def test_losses_say_what_is_left_where_they_are_asked():
    """The loss is flat long before the work is done: the job counts as converged."""
    curve = TrainingCurve(tuple((k / 50, 1.0 / (1.0 + 2 * k) + 0.01) for k in range(51)))
    flat = replace(job("flat", most=4, work=9000.0), curve=curve)
    other = job("other", most=4, work=4000.0)
    look = Observation(10.0)
    by_work = engine(Optimus(1.0), flat, other, until=300.0, gpus=(4,), observation=look)
    assert workers(by_work) == {"flat": {0: 2}, "other": {0: 2}}
    optimus = Optimus(1.0, convergence=0.01)
    by_loss = engine(optimus, flat, other, until=300.0, gpus=(4,), observation=look)
    assert workers(by_loss) == {"flat": {0: 1}, "other": {0: 3}}
    unseen = engine(Optimus(1.0, convergence=0.01), flat, other, until=300.0, gpus=(4,))
    assert workers(unseen) == {"flat": {0: 2}, "other": {0: 2}}


def test_who_has_no_scipy_hears_of_it_before_the_run(monkeypatch):
    monkeypatch.setattr("oasis.extras.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"Optimus needs scipy: pip install .*\[sweep\]"):
        Engine(workload(job("a")), Optimus(1.0))
