"""DRAGON by scenarios: each branch of its control flow, and each case that tells readings apart."""

import pytest

from baselines.dragon import Dragon, FewestNodes, IdleClock, Ladder, LocalityAware, make_room
from oasis.simulator import Allocation, Machine, Outage, Room, Site
from tests.unit.baselines.controllers import engine, job, workers

QUIET = {"idle_after": 1e6}  # nobody grows


def test_a_job_is_launched_whole_or_not_at_all():
    run = engine(LocalityAware(), job("a", 3), job("b", 2), gpus=(4,))
    assert workers(run) == {"a": {0: 3}, "b": {}}


def test_a_job_that_fits_passes_those_before_it():
    run = engine(LocalityAware(), job("a", 3), job("b", 2), job("c", 1), gpus=(4,))
    assert workers(run) == {"a": {0: 3}, "b": {}, "c": {0: 1}}


def test_a_job_goes_on_the_fullest_machine_that_holds_all_of_it():
    run = engine(LocalityAware(), job("a", 2), job("b", 3), job("c", 2), gpus=(4, 4, 4))
    assert workers(run) == {"a": {0: 2}, "b": {1: 3}, "c": {0: 2}}


def test_a_job_that_no_machine_holds_takes_the_fewest():
    run = engine(LocalityAware(), job("a", 6), gpus=(2, 4, 3))
    assert workers(run) == {"a": {1: 4, 2: 2}}


def test_a_request_that_the_empty_cluster_cannot_hold_shrinks_and_one_that_never_fits_is_refused():
    run = engine(LocalityAware(), job("a", 2, 9, asked=9), job("b", 5), gpus=(4,))
    assert workers(run) == {"a": {0: 4}}
    assert run.settled[1].refusal == "does not fit the empty cluster"


def test_without_scaling_nothing_is_ever_resized():
    run = engine(LocalityAware(), job("a", 1, 4, asked=2), job("b", 3), until=600.0)
    assert workers(run) == {"b": {0: 3}}
    assert run.settled[0].changes == ()


def test_a_job_that_lost_its_machine_waits_at_its_old_place():
    jobs = [job("a", 4), job("b", 4), job("c", 4)]
    run = engine(LocalityAware(), *jobs, until=5.0, outages=[Outage(0, 2.0, 5.0)])
    assert workers(run) == {"a": {0: 4}, "b": {}, "c": {}}


# --- scale-down ---------------------------------------------------------------------------------


def test_an_urgent_job_is_launched_by_shrinking_another():
    jobs = [job("a", 2, 4, asked=4), job("b", 2, arrival=10.0)]
    before = engine(Dragon(**QUIET), *jobs, until=129.0)
    assert workers(before) == {"a": {0: 4}, "b": {}}
    after = engine(Dragon(**QUIET), *jobs, until=130.0)
    assert workers(after) == {"a": {0: 2}, "b": {0: 2}}


def test_nobody_is_shrunk_if_that_does_not_make_enough_room():
    jobs = [job("a", 2, 4, asked=4), job("b", 3, arrival=10.0)]
    run = engine(Dragon(**QUIET), *jobs, until=200.0)
    assert workers(run) == {"a": {0: 4}, "b": {}}
    assert run.state.jobs[0].changes == ()


def test_of_urgent_jobs_the_smallest_goes_first_and_the_first_failure_ends_it():
    jobs = [job("a", 2, 4, asked=4), job("b", 3, arrival=1.0), job("c", 2, arrival=2.0)]
    run = engine(Dragon(**QUIET), *jobs, until=200.0)
    assert workers(run) == {"a": {0: 2}, "b": {}, "c": {0: 2}}


def test_a_small_urgent_job_passes_one_that_came_earlier():
    """When a GPU comes free, first come first served would have given it to b."""
    jobs = [job("a", 4, work=800.0), job("b", 3, arrival=1.0), job("c", 2, arrival=2.0)]
    assert workers(engine(LocalityAware(), *jobs, until=200.0)) == {"b": {0: 3}, "c": {}}
    assert workers(engine(Dragon(**QUIET), *jobs, until=200.0)) == {"b": {}, "c": {0: 2}}


def test_the_victim_of_the_text_has_most_surplus_that_of_the_code_was_launched_first():
    jobs = [job("a", 2, 4, asked=4), job("b", 1, 4, asked=4), job("c", 1, arrival=1.0)]
    text = engine(Dragon(**QUIET), *jobs, until=200.0, gpus=(8,))
    assert workers(text) == {"a": {0: 4}, "b": {0: 1}, "c": {0: 1}}
    code = engine(Dragon(reading="code", **QUIET), *jobs, until=200.0, gpus=(8,))
    assert workers(code) == {"a": {0: 2}, "b": {0: 4}, "c": {0: 1}}


def test_the_code_wants_strictly_more_surplus_than_the_request():
    jobs = [job("a", 2, 4, asked=4), job("b", 2, arrival=1.0)]
    code = Dragon(reading="code", **QUIET)
    assert workers(engine(code, *jobs, until=200.0)) == {"a": {0: 4}, "b": {}}
    assert workers(engine(Dragon(**QUIET), *jobs, until=200.0)) == {"a": {0: 2}, "b": {0: 2}}


def test_an_urgent_job_gets_what_it_asks_for_or_in_the_code_its_minimum():
    jobs = [job("a", 1, 4, asked=4), job("b", 1, 4, asked=3, arrival=1.0)]
    assert workers(engine(Dragon(**QUIET), *jobs, until=200.0)) == {"a": {0: 1}, "b": {0: 3}}
    code = Dragon(reading="code", **QUIET)
    assert workers(engine(code, *jobs, until=200.0)) == {"a": {0: 1}, "b": {0: 1}}


def test_victims_are_cut_only_until_the_job_fits():
    machines = Site(("gpu",), (Machine("n0", (8.0,)),))
    able = [job("a", 1, 4), job("b", 1, 4)]
    held = {-1: Allocation(((0, 4),))}
    room = Room(machines, [(0,)])
    made = make_room(room, able[:1], held, lambda room: None)
    assert made is None
    assert room.free == [(0,)]


# --- scale-up -----------------------------------------------------------------------------------


def test_gpus_idle_for_lambda_go_to_jobs_on_their_machine_by_turns():
    jobs = [job("a", 1, 4, asked=1), job("b", 1, 4, asked=1, work=1000.0)]
    run = engine(Dragon(), *jobs, until=60.0, gpus=(5,))
    assert workers(run) == {"a": {0: 3}, "b": {0: 2}}


def test_idle_gpus_on_a_machine_where_nobody_runs_stay_idle():
    jobs = [job("x", 2, work=20.0), job("a", 1, 4, asked=2)]
    run = engine(Dragon(), *jobs, until=300.0, gpus=(2, 2))
    assert workers(run) == {"a": {1: 2}}


def test_no_job_grows_beyond_its_most():
    run = engine(Dragon(), job("a", 1, 2, asked=1), until=400.0)
    assert workers(run) == {"a": {0: 2}}


def test_a_job_that_fits_goes_before_growth():
    jobs = [job("a", 1, 4, asked=2), job("b", 2, arrival=60.0)]
    run = engine(Dragon(), *jobs, until=60.0)
    assert workers(run) == {"a": {0: 2}, "b": {0: 2}}


def test_by_the_text_each_gpu_has_its_own_clock_by_the_code_any_launch_starts_it_again():
    jobs = [job("a", 1, 4, asked=1), job("b", 1, arrival=50.0)]
    assert workers(engine(Dragon(), *jobs, until=60.0))["a"] == {0: 3}
    code = Dragon(reading="code")
    assert workers(engine(code, *jobs, until=60.0))["a"] == {0: 1}
    assert workers(engine(code, *jobs, until=110.0))["a"] == {0: 3}


def test_by_the_text_a_job_grows_on_each_of_its_machines_by_the_code_beside_its_server():
    """It runs on both machines, with its server on the first."""
    jobs = [job("x", 2), job("y", 2), job("a", 6, 8, asked=6, ps=1, work=6000.0)]
    short = [job("x", 2, work=20.0), job("y", 2, work=20.0), jobs[2]]
    text = engine(Dragon(), *short, until=100.0, gpus=(5, 5))
    code = engine(Dragon(reading="code"), *short, until=100.0, gpus=(5, 5))
    assert sum(workers(text)["a"].values()) == 8
    assert set(workers(text)["a"]) == {0, 1}
    home = dict(code.state.jobs[2].allocation.ps)
    grown = {
        machine: count - dict(code.state.jobs[2].history[0][1].workers).get(machine, 0)
        for machine, count in workers(code)["a"].items()
    }
    assert {machine for machine, more in grown.items() if more} <= set(home)


def test_without_alarms_it_acts_only_when_something_happens():
    jobs = [job("a", 1, 4, asked=2, work=4e3), job("b", 1, work=30.0), job("c", 1, arrival=500.0)]
    run = engine(Dragon(alarms=False), *jobs, until=499.0)
    assert workers(run) == {"a": {0: 2}}
    assert workers(engine(Dragon(), *jobs, until=499.0)) == {"a": {0: 4}}
    run = engine(Dragon(alarms=False), *jobs, until=500.0)
    assert workers(run)["a"] == {0: 3}  # at the arrival of c, what c leaves


def test_it_goes_through_no_end_of_alarms():
    run = engine(Dragon(0.0, 0.0), job("a", 1, 4, asked=2), job("b", 3, arrival=1.0), until=2e3)
    assert len(run.settled) == 2
    assert len(run.policy_seconds) < 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"urgent_after": -1.0}, "urgent_after: expected seconds >= 0"),
        ({"idle_after": float("inf")}, "idle_after: expected seconds >= 0"),
        ({"reading": "x"}, "reading: expected text or code"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Dragon(**options)


# --- parts --------------------------------------------------------------------------------------


def test_what_was_idle_last_is_used_first():
    clock = IdleClock(1)
    clock.note(0, 2, 0.0)
    clock.note(0, 4, 10.0)
    clock.note(0, 3, 20.0)
    assert [clock.idle(0, limit, 20.0) for limit in (20.0, 10.0, 0.0)] == [2, 3, 3]
    assert clock.next_passing(0, 15.0, 20.0) == 25.0
    clock.note(0, 0, 30.0)
    assert clock.idle(0, 0.0, 30.0) == 0
    assert clock.next_passing(0, 15.0, 30.0) == float("inf")


@pytest.mark.parametrize("rule", [FewestNodes(), Ladder()])
def test_a_placement_that_fails_leaves_the_room_as_it_was(rule):
    machines = tuple(Machine(f"n{k}", (4.0,)) for k in range(2))
    room = Room(Site(("gpu",), machines), [(2,), (1,)])
    assert rule.place(room, job("a", 4), 4, 0) is None
    assert room.free == [(2,), (1,)]


def test_the_ladder_goes_from_all_on_one_machine_to_the_fewest_spread():
    site = Site(("gpu",), tuple(Machine(f"n{k}", (4.0,)) for k in range(2)))

    def put(*free):
        held = Ladder().place(Room(site, [(n,) for n in free]), job("a", 2, 4), 4, 0)
        return dict(held.workers)

    assert put(4, 4) == {0: 4}
    assert put(3, 3) == {0: 2, 1: 2}
    assert put(3, 0) == {0: 2}
    assert put(1, 1) == {0: 1, 1: 1}
