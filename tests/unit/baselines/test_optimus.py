"""Optimus, branch by branch, on cases worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from baselines.optimus import LINEAR, Evenly, Optimus, fitted, speed_of, terms, work_to_converge
from oasis.model.errors import InputError
from oasis.scheduling import ByBandwidth, Machine, PolicyJob, Room, Site, TrainingCurve
from oasis.simulator import (
    ChangeCosts,
    Engine,
    Observation,
    Outage,
    ScalingTable,
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


def test_terms_of_the_two_models():
    assert terms(4, 0, "sync") == [0.25, 1.0, 0.0, 4.0, 0.0]
    assert terms(4, 0, "async") == [0.25, 0.0, 1.0, 0.0, 0.0]


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


# -- marginal gains --------------------------------------------------------------------------------


def test_workers_go_to_whom_they_save_most_time():
    """Time left with n workers: 1000 / s(n), and 3000 / s(n) for the long job."""
    jobs = [told("short", 1000.0), told("long", 3000.0)]
    # gains of the second worker 333 and 1000, of the third of the long job 286, of its fourth 93
    assert workers(engine(policy(), *jobs, gpus=(4,))) == {"short": {0: 2}, "long": {0: 2}}
    assert workers(engine(policy(), *jobs, gpus=(5,))) == {"short": {0: 2}, "long": {0: 3}}


def test_everybody_gets_the_fewest_first_in_order_of_arrival():
    jobs = [told("a", 10.0), told("b", 1e6), job("wide", least=3, work=1e9), told("c", 10.0)]
    found = workers(engine(policy(), *jobs, gpus=(4,)))
    assert found == {"a": {0: 1}, "b": {0: 2}, "wide": {}, "c": {0: 1}}


def test_nobody_gets_what_makes_it_slower():
    peak = told("a", speedup=(1.0, 1.2, 1.1, 0.9, 0.8), most=5)
    assert workers(engine(policy(), peak, gpus=(8,))) == {"a": {0: 2}}


def test_a_parameter_server_alone_is_given_where_it_gains():
    """With one server the links are full: the time of a step is 1/w + w/p."""
    site = Site(("gpu", "cpu"), (Machine("m", (2.0, 4.0)),))
    made = PolicyJob(
        *("a", 0.0, 100.0, ((0, 1),), ((1, 1),)), max_workers=2, ps_rule=ByBandwidth(0.5)
    )
    optimus = policy()
    run = Engine(Workload.of(site, [made]), optimus)
    optimus._sampled = lambda _: replace_known(Optimus._sampled(optimus, made))
    run.step()
    assert (run.state.jobs[0].allocation.worker_count, run.state.jobs[0].allocation.ps_count) == (
        2,
        2,
    )


def replace_known(known):
    known.coefficients = (1.0, 0.0, 0.2, 0.0, 0.0)
    return known


def test_a_job_that_was_not_observed_yet_stands_behind_an_equal_one_that_was():
    jobs = [job("new", most=2), job("old", most=2)]
    optimus = policy()
    run = Engine(workload(*jobs, gpus=(3,)), optimus)
    sampled = optimus._sampled

    def known(of):
        found = sampled(of)
        found.observed = of.id == "old"
        return found

    optimus._sampled = known
    run.step()
    assert workers(run) == {"new": {0: 1}, "old": {0: 2}}


# -- learning --------------------------------------------------------------------------------------


def test_a_job_that_turns_out_to_scale_badly_gives_workers_back():
    """Nobody said so: both are taken for linear until the first is seen with three workers."""
    jobs = [job("bad", most=4, work=4000.0), job("good", most=4, work=3000.0)]
    speed = ScalingTable({"bad": (1.0, 1.01, 1.02, 1.03)})
    first = engine(policy(), *jobs, until=0.0, gpus=(5,), speed=speed)
    assert workers(first)["bad"] == {0: 3}
    later = engine(policy(), *jobs, until=480.0, gpus=(5,), speed=speed)
    assert workers(later) == {"bad": {0: 1}, "good": {0: 4}}


def test_time_in_which_a_job_is_set_up_is_not_taken_for_slow_work():
    optimus = policy()
    run = Engine(
        workload(told("a", 1e4, most=2), gpus=(2,)), optimus, costs=ChangeCosts(start=90.0)
    )
    while run._agenda.next_time <= 240.0 and run.step():
        pass
    assert optimus._known[0].observed
    assert optimus._known[0].pairs[2, 0] == pytest.approx(2.0)


def test_sampling_runs_are_small():
    optimus = policy(samples=3)
    optimus.reset(workload().site)
    assert optimus._sampled(told("a", most=6)).pairs == {(1, 0): 1.0, (2, 0): 1.5, (3, 0): 1.75}
    assert optimus._sampled(told("a", most=2)).pairs == {(1, 0): 1.0, (2, 0): 1.5}
    assert optimus._sampled(job("a", most=6)).pairs == {(1, 0): 1.0}


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


def test_a_job_that_comes_within_an_interval_begins_with_its_fewest_and_grows_at_its_end():
    jobs = [job("a", most=2, work=300.0), job("b", most=2, arrival=10.0)]
    assert workers(engine(policy(), *jobs, until=59.0)) == {"a": {0: 2}, "b": {0: 1}}
    assert workers(engine(policy(), *jobs, until=60.0)) == {"a": {0: 2}, "b": {0: 2}}
    full = [job("a", most=4, work=300.0), job("b", most=2, arrival=10.0)]
    assert workers(engine(policy(), *full, until=59.0)) == {"a": {0: 4}, "b": {}}
    assert workers(engine(policy(), *full, until=60.0)) == {"a": {0: 2}, "b": {0: 2}}


def test_an_interval_begins_at_once_where_nobody_runs_or_machines_change():
    jobs = [job("a", most=1, work=10.0), job("b", most=4, arrival=20.0, work=900.0)]
    assert workers(engine(policy(), *jobs, until=20.0)) == {"b": {0: 4}}
    lost = [Outage(0, 30.0, 50.0)]
    run = engine(policy(), *jobs, until=30.0, gpus=(4, 2), outages=lost)
    assert workers(run) == {"b": {1: 2}}
    assert workers(engine(policy(), *jobs, until=50.0, gpus=(4, 2), outages=lost)) == {"b": {0: 4}}


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"round_minutes": 0.0}, "round_minutes: expected a finite number > 0"),
        ({"training": "both"}, "training: expected sync or async"),
        ({"samples": 0}, "samples: expected at least 1"),
        ({"convergence": 1.0}, "convergence: expected a number of at least 0 and below 1"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Optimus(**options)


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
