"""DRAGON by scenarios: each branch of its control flow, and each case that tells readings apart."""

import pytest

from baselines.dragon import Dragon, IdleClock, LocalityAware
from baselines.dragon_placing import FewestNodes, FullestStart, Ladder
from baselines.dragon_scaling import give_until, make_room
from oasis.simulator import (
    Allocation,
    Engine,
    FixedPs,
    Machine,
    Outage,
    PolicyJob,
    Room,
    Site,
    Workload,
)
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
    assert workers(code) == {"a": {0: 3}, "b": {0: 4}, "c": {0: 1}}


def test_a_victim_of_the_text_gives_all_it_can_that_of_the_code_a_worker_at_a_time():
    jobs = [job("a", 1, 4, asked=4, work=4e3), job("b", 1, arrival=10.0, work=1e4)]

    def sizes(reading):
        run = engine(Dragon(reading=reading), *jobs, until=400.0)
        return [held.worker_count for _, held in run.state.jobs[0].history]

    assert sizes("text") == [4, 1, 3]
    assert sizes("code") == sizes("release") == [4, 3]


def test_the_code_cuts_before_it_launches_only_if_there_is_strictly_more_than_the_request():
    """With as much as the request to spare, c, which fits, is launched first; then a is cut."""
    late = [job("b", 2, arrival=1.0), job("c", 1, arrival=121.0)]
    code = Dragon(reading="code", **QUIET)
    equal = engine(code, job("a", 2, 4, asked=4), *late, until=121.0, gpus=(5,))
    assert workers(equal) == {"a": {0: 2}, "b": {0: 2}, "c": {0: 1}}
    more = engine(code, job("a", 1, 4, asked=4), *late, until=121.0, gpus=(5,))
    assert workers(more) == {"a": {0: 3}, "b": {0: 2}, "c": {}}


@pytest.mark.parametrize("reading", ["text", "code", "release"])
def test_a_victim_that_does_not_help_is_given_back(reading):
    """u needs four CPUs, of which machine a has one: cutting x, which runs there, does not help."""
    site = Site(("gpu", "cpu"), (Machine("a", (4.0, 1.0)), Machine("b", (4.0, 8.0))))
    wide = {"max_workers": 4, "initial_workers": 4}
    jobs = [
        PolicyJob("x", 0.0, 1e4, ((0, 1),), min_workers=1, **wide),
        PolicyJob("y", 0.0, 1e4, ((0, 1),), min_workers=2, **wide),
        PolicyJob("u", 1.0, 1e4, ((0, 1), (1, 4))),
    ]
    run = Engine(Workload.of(site, jobs), Dragon(reading=reading, **QUIET))
    while run._agenda.next_time <= 150.0 and run.step():
        pass
    assert (
        workers(run)
        == {"x": {0: 4}}
        | {
            "text": {"y": {1: 2}, "u": {1: 1}},
            "code": {"y": {1: 4}, "u": {}},  # one GPU counts as enough, wherever it is
            "release": {"y": {1: 3}, "u": {1: 1}},
        }[reading]
    )
    assert run.state.jobs[0].changes == ()


def test_the_release_helps_the_first_of_the_queue_after_half_a_minute():
    jobs = [job("a", 1, 4, asked=4), job("b", 2, arrival=1.0), job("c", 1, arrival=2.0)]
    release = Dragon(reading="release", **QUIET)
    assert workers(engine(release, *jobs, until=30.9)) == {"a": {0: 4}, "b": {}, "c": {}}
    assert workers(engine(release, *jobs, until=31.0)) == {"a": {0: 2}, "b": {0: 2}, "c": {}}


def test_the_release_launches_nobody_while_it_cannot_help_the_first():
    jobs = [job("a", 3, 4, asked=4), job("b", 4, arrival=1.0), job("c", 1, arrival=50.0)]
    release = Dragon(reading="release", **QUIET)
    assert workers(engine(release, *jobs, until=100.0, gpus=(5,)))["c"] == {}
    code = Dragon(reading="code", **QUIET)
    assert workers(engine(code, *jobs, until=100.0, gpus=(5,)))["c"] == {0: 1}


def test_in_the_release_a_job_grows_on_every_machine_before_the_next():
    jobs = [job("a", 1, 4, asked=1), job("b", 1, 4, asked=1)]
    run = engine(Dragon(reading="release"), *jobs, until=60.0, gpus=(3, 2))
    assert workers(run) == {"a": {0: 2, 1: 2}, "b": {0: 1}}
    run = engine(Dragon(reading="code"), *jobs, until=60.0, gpus=(3, 2))
    assert workers(run) == {"a": {0: 2}, "b": {0: 1}}


def test_an_urgent_job_gets_what_it_asks_for_or_in_the_code_its_minimum():
    jobs = [job("a", 1, 4, asked=4), job("b", 1, 4, asked=3, arrival=1.0)]
    assert workers(engine(Dragon(**QUIET), *jobs, until=200.0)) == {"a": {0: 1}, "b": {0: 3}}
    code = Dragon(reading="code", **QUIET)
    assert workers(engine(code, *jobs, until=200.0)) == {"a": {0: 3}, "b": {0: 1}}


def test_victims_are_cut_only_until_the_job_fits():
    jobs = [job("a", 1, 4, asked=4), job("b", 1, 4, asked=4), job("c", 3, arrival=1.0)]
    run = engine(Dragon(**QUIET), *jobs, until=200.0, gpus=(8,))
    assert workers(run) == {"a": {0: 1}, "b": {0: 4}, "c": {0: 3}}
    room = Room(Site(("gpu",), (Machine("n0", (8.0,)),)), [(0,)])
    assert make_room(room, [jobs[0]], {-1: Allocation(((0, 4),))}, lambda room: None) is None
    assert room.free == [(0,)]


def test_the_first_urgent_job_that_cannot_be_helped_ends_it():
    """u asks for less of the cluster than v, and nobody can give it CPUs; v must wait with it."""
    site = Site(("gpu", "cpu"), (Machine("a", (5.0, 2.0)), Machine("b", (4.0, 8.0))))
    gpu, both = ((0, 1),), ((0, 1), (1, 4))
    jobs = [
        PolicyJob("x", 0.0, 1e4, gpu, min_workers=1, max_workers=5, initial_workers=5),
        PolicyJob("y", 0.0, 1e4, gpu, min_workers=4, max_workers=4),
        PolicyJob("u", 1.0, 1e4, both),
        PolicyJob("v", 2.0, 1e4, gpu, min_workers=4, max_workers=4),
    ]
    run = Engine(Workload.of(site, jobs), Dragon(**QUIET))
    while run._agenda.next_time <= 200.0 and run.step():
        pass
    assert workers(run) == {"x": {0: 5}, "y": {1: 4}, "u": {}, "v": {}}


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


def test_an_attempt_in_vain_starts_the_one_clock_of_the_code_again():
    """x ends at 100 s; d asked at 70 s, when nothing was free."""
    jobs = [job("a", 1, 4, asked=2), job("x", 2, work=200.0), job("d", 4, arrival=70.0)]
    code = Dragon(reading="code")
    assert workers(engine(code, *jobs, until=129.0))["a"] == {0: 2}
    assert workers(engine(code, *jobs, until=130.0))["a"] == {0: 4}


def test_in_the_release_nobody_grows_while_a_job_is_urgent():
    jobs = [job("a", 1, 4, asked=1), job("b", 4, arrival=1.0), job("c", 4, arrival=50.0)]
    assert workers(engine(Dragon(reading="release"), *jobs, until=300.0))["a"] == {0: 1}
    alone = engine(Dragon(reading="release"), jobs[0], until=100.0)
    assert workers(alone)["a"] == {0: 4}


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
        ({"reading": "x"}, "reading: expected text, code or release"),
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


@pytest.mark.parametrize("rule", [FewestNodes(), Ladder(), FullestStart()])
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
    assert put(2, 4) == {1: 4}
    assert put(3, 3) == {0: 3, 1: 1}
    assert put(3, 0) == {0: 2}
    assert put(1, 1) == {0: 1, 1: 1}


def test_the_fewest_machines_count_that_of_the_parameter_server():
    site = Site(("gpu", "cpu"), tuple(Machine(name, (4.0, 4.0)) for name in "abc"))
    one = PolicyJob("j", 0.0, 1.0, ((0, 1),), ((1, 1),), 1, 6, ps_rule=FixedPs(1))
    held = FewestNodes().place(Room(site, [(4, 0), (2, 0), (2, 4)]), one, 6, 1)
    assert (held.workers, held.ps) == (((0, 4), (2, 2)), ((2, 1),))
    # and where the workers alone would take the room that the server needs
    one = PolicyJob("j", 0.0, 1.0, ((0, 1), (1, 1)), ((1, 2),), 1, 6, ps_rule=FixedPs(1))
    held = FewestNodes().place(Room(site, [(3, 1), (3, 4), (1, 1)]), one, 4, 1)
    assert (held.workers, held.ps) == (((0, 1), (1, 2), (2, 1)), ((1, 1),))


def test_a_try_of_the_ladder_is_given_up_if_the_parameter_server_fits_nowhere():
    site = Site(("gpu", "cpu"), (Machine("a", (4.0, 4.0)),))
    one = PolicyJob("j", 0.0, 1.0, ((0, 1), (1, 1)), ((1, 1),), 2, 4, ps_rule=FixedPs(1))
    held = Ladder().place(Room(site, [(4, 4)]), one, 4, 1)
    assert (held.workers, held.ps) == (((0, 2),), ((0, 1),))


def test_the_release_begins_where_most_tasks_fit_and_takes_as_many_as_there_are():
    site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "abc"))

    def put(*free):
        held = FullestStart().place(Room(site, [(n,) for n in free]), job("a", 2, 6), 6, 0)
        return held and dict(held.workers)

    assert put(2, 3, 3) == {0: 2, 1: 3, 2: 1}
    assert put(2, 2, 4) == {0: 2, 2: 4}
    assert put(1, 0, 3) == {0: 1, 2: 3}
    assert put(1, 0, 0) is None


def test_in_the_release_workers_away_from_the_server_go_first():
    site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    one = PolicyJob("j", 0.0, 1.0, ((0, 1),), ((0, 1),), 1, 4, ps_rule=FixedPs(1), index=0)
    held = {0: Allocation(((0, 2), (1, 2)), ((0, 1),))}
    cut = give_until(Room(site, [(0,), (0,)]), [one], held, lambda room: bool(sum(room.free[1])))
    assert cut == {0: Allocation(((0, 2), (1, 1)), ((0, 1),))}
