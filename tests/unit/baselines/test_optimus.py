"""Optimus, branch by branch, on cases worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from baselines.optimus import LINEAR, Evenly, Optimus, fitted, speed_of, work_to_converge
from oasis.scheduling import Machine, Room, Site, TrainingCurve
from oasis.simulator import (
    ChangeCosts,
    Engine,
    Observation,
    Workload,
    replay,
)
from tests.unit.baselines.controllers import engine, job, workers, workload
from tests.unit.baselines.test_gavel import on, site

LONG = {"a": 600.0, "b": 6000.0}  # the work of a job on each kind
CONCAVE = (1.0, 1.5, 1.75, 1.85, 1.9, 1.95)


def told(name, work=1000.0, most=4, speedup=CONCAVE, **more):
    return replace(job(name, most=most, work=work, **more), speedup=speedup)


def policy(**options):
    return Optimus(1.0, **options)


# -- the speed model -------------------------------------------------------------------------------


def test_with_one_number_of_workers_alone_speed_is_linear():
    assert fitted({(1, 1): 1.0, (1, 2): 3.0}, "sync") == LINEAR
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


def test_time_in_which_a_job_is_set_up_is_not_taken_for_slow_work():
    optimus = policy()
    run = Engine(
        workload(told("a", 1e4, most=2), gpus=(2,)), optimus, costs=ChangeCosts(start=90.0)
    )
    while run.step(240.0):
        pass
    assert optimus._known[0].observed
    assert optimus._known[0].pairs[2, 0] == pytest.approx(2.0)


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


def test_who_gets_the_numbers_that_it_has_stays_where_it_is():
    jobs = [
        job("a", least=2, work=900.0),
        job("b", least=2, work=30.0),
        job("c", least=1, arrival=40.0),
    ]
    run = engine(policy(), *jobs, until=120.0, gpus=(3, 2))
    assert run.state.jobs[0].changes == ()


def test_with_no_even_parts_tasks_go_where_there_is_room_or_are_fewer():
    site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    made = job("j", most=6)
    assert Evenly().place(Room(site, [(4,), (1,)]), made, 5, 0).workers == ((0, 4), (1, 1))
    assert Evenly().place(Room(site, [(4,), (1,)]), made, 6, 0) is None
    jobs = [replace(job("wide", least=2, most=6), worker=((0, 3),)), job("b", work=100.0)]
    # four tasks of three would be taken to fit in 13 GPUs, were they not on machines of four
    assert workers(engine(policy(), *jobs, gpus=(4, 4, 4, 1))) == {
        "wide": {0: 1, 1: 1, 2: 1},
        "b": {0: 1},
    }


def test_a_job_that_never_fits_is_turned_away():
    outcome = replay(workload(job("wide", least=9)), policy())
    assert outcome.jobs[0].refusal == "does not fit the empty cluster"


def test_tasks_that_reserve_nothing_are_given_as_long_as_they_gain():
    free = replace(job("free", most=3), worker=())
    assert workers(engine(policy(), free)) == {"free": {0: 3}}


def test_who_has_no_scipy_hears_of_it_before_the_run(monkeypatch):
    monkeypatch.setattr("oasis.model.extras.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"Optimus needs scipy: pip install .*\[sweep\]"):
        Engine(workload(job("a")), policy())


def test_a_job_that_waits_is_shown_in_another_form_and_still_known():
    """It leaves and comes in one call, when the machine of its second form is free."""
    where = site(1, 1, gpus=2.0)
    first, second = (replace(on(where, v, workers=2, work=w), ps=()) for v, w in LONG.items())
    both = [replace(on(where, v, workers=2, work=600.0), ps=()) for v in "ba"]
    third = replace(both[0], arrival=1.0, forms=tuple(both))
    jobs = [replace(each, id=str(k)) for k, each in enumerate((first, second, third))]
    ends = [times.end for times in replay(Workload.of(where, jobs), policy()).jobs]
    assert all(end is not None for end in ends)
    assert ends[2] < ends[1]
