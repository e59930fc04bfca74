"""KOD2 by scenarios: each branch of its algorithms, and each case that tells readings apart."""

import math

import pytest

from baselines import KubernetesDefault
from baselines.counts import on_node
from baselines.kod2 import AffinityPlacement, JobState, Kod2, Weights, scale_in, scale_out
from oasis.simulator import Allocation, Machine, Outage, PolicyJob, Room, Site, replay
from tests.unit.baselines.controllers import engine, job, workers, workload


def states(run, *jobs):
    known = {progress.job.id: progress.job for progress in run.settled.values()}
    known |= {progress.job.id: progress.job for progress in run.state.jobs.values()}
    return [run.policy.state_of(known[name]) for name in jobs]


# --- weights ------------------------------------------------------------------------------------


def test_more_workers_weigh_more_and_larger_demands_less():
    site = Site(("gpu", "memory"), (Machine("n0", (4.0, 64.0), cpu_cores=8.0),))

    def raw(least, gpus, memory, cores=0.0, form="ratio"):
        one = PolicyJob("a", 0.0, 1.0, ((0, gpus), (1, memory)), (), least, 9, worker_cpu=cores)
        return Weights(site, form).raw(one)

    for form in ("ratio", "difference"):
        assert raw(2, 1, 8, form=form) > raw(1, 1, 8, form=form) > raw(1, 1, 16, form=form)
        assert raw(1, 1, 8, form=form) > raw(1, 1, 8, cores=2.0, form=form)
    assert raw(1, 1, 16, cores=4.0) == 1 / (0.25 + 0.25 + 0.5)


def test_the_two_forms_order_some_jobs_differently():
    """Ten workers of half a machine each, or one of a twentieth."""
    site = Site(("memory",), (Machine("n0", (20.0,)),))
    many = PolicyJob("a", 0.0, 1.0, ((0, 10),), (), 9, 9)
    small = PolicyJob("b", 0.0, 1.0, ((0, 1),), (), 1, 1)
    ratio, difference = Weights(site), Weights(site, "difference")
    assert ratio.raw(small) > ratio.raw(many)
    assert difference.raw(small) < difference.raw(many)


def test_weights_are_compared_before_the_sigmoid_rounds_them_to_one():
    assert Weights.sigmoid(0.0) == 0.5
    assert Weights.sigmoid(-800.0) == 0.0
    assert Weights.sigmoid(40.0) == Weights.sigmoid(50.0) == 1.0
    site = Site(("memory",), (Machine("n0", (100.0,)),))
    light, lighter = (PolicyJob(n, 0.0, 1.0, ((0, k),), (), 1, 1) for n, k in (("a", 2), ("b", 1)))
    assert Weights(site).raw(light) < Weights(site).raw(lighter)


# --- launching ----------------------------------------------------------------------------------


def test_a_job_is_launched_at_its_minimum_and_grows_at_once():
    run = engine(Kod2(), job("a", 1, 3))
    assert workers(run) == {"a": {0: 3}}
    assert states(run, "a") == [JobState.RUNNING]


def test_a_weightier_job_takes_workers_from_a_lighter_one_above_its_minimum():
    run = engine(Kod2(), job("a", 1, 4), job("b", 2, 2, arrival=1.0), until=1.0)
    assert workers(run) == {"a": {0: 2}, "b": {0: 2}}


def test_nobody_gives_more_than_the_surplus():
    run = engine(Kod2(), job("a", 2, 4), job("b", 3, 3, arrival=1.0), until=1.0)
    assert workers(run) == {"a": {0: 4}, "b": {}}
    assert states(run, "b") == [JobState.WAITING]


def test_a_job_of_the_same_weight_that_came_earlier_gives_nothing():
    run = engine(Kod2(), job("a", 1, 4), job("b", 1, 1, arrival=1.0), until=1.0)
    assert workers(run) == {"a": {0: 4}, "b": {}}


def test_a_lighter_job_takes_nothing_but_is_launched_where_it_fits():
    jobs = [job("a", 2, 4, asked=4), job("b", 1, 1, arrival=1.0)]
    assert workers(engine(Kod2(), *jobs, until=1.0)) == {"a": {0: 4}, "b": {}}
    roomy = engine(Kod2(), *jobs, until=1.0, gpus=(5,))
    assert workers(roomy) == {"a": {0: 4}, "b": {0: 1}}


def test_while_the_weightiest_waiting_job_could_preempt_but_finds_no_room_nobody_else_starts():
    """Algorithm 1 as printed: the else of line 18 belongs to the comparison of weights."""
    jobs = [job("a", 2, 2), job("b", 3, 3, arrival=1.0), job("c", 1, 1, arrival=1.0)]
    run = engine(Kod2(), *jobs, until=1.0)
    assert workers(run) == {"a": {0: 2}, "b": {}, "c": {}}


def test_the_queue_is_walked_by_weight_when_no_waiting_job_weighs_most():
    jobs = [job("a", 4, 4), job("b", 1, 1, arrival=1.0), job("c", 2, 2, arrival=1.0)]
    run = engine(Kod2(), *jobs, until=1.0, gpus=(6,))
    assert workers(run) == {"a": {0: 4}, "b": {}, "c": {0: 2}}


def test_a_job_that_ended_is_completed_and_the_next_one_starts():
    run = engine(Kod2(), job("a", 4, work=40.0), job("b", 4), until=10.0)
    assert workers(run) == {"b": {0: 4}}
    assert states(run, "a", "b") == [JobState.COMPLETED, JobState.RUNNING]


# --- starvation ---------------------------------------------------------------------------------


def test_a_job_that_starves_weighs_most_and_takes_what_it_could_not_before():
    jobs = [job("a", 2, 4), job("b", 1, 1, arrival=1.0)]
    before = engine(Kod2(100.0), *jobs, until=100.0)
    assert workers(before) == {"a": {0: 4}, "b": {}}
    after = engine(Kod2(100.0), *jobs, until=101.0)
    assert workers(after) == {"a": {0: 3}, "b": {0: 1}}
    assert after.policy.weight(after.state.jobs[1].job) < 1.0  # its own again


def test_a_job_that_starves_and_finds_no_room_says_so_and_stops_the_queue():
    jobs = [job("a", 3), job("b", 2, arrival=1.0), job("c", 1, arrival=50.0)]
    run = engine(Kod2(40.0), *jobs, until=50.0)
    assert workers(run) == {"a": {0: 3}, "b": {}, "c": {}}
    assert states(run, "b", "c") == [JobState.STARVING, JobState.WAITING]
    assert run.policy.weight(run.state.jobs[1].job) == 1.0


def test_printed_a_job_does_not_starve_while_weightier_ones_keep_waiting():
    """Line 27 is reached only when no waiting job weighs as much as the weightiest that runs."""
    jobs = [job("a", 3), job("light", 1, arrival=1.0)]
    jobs += [job(f"w{k}", 3, arrival=2.0 + k) for k in range(5)]
    read, printed = (
        engine(Kod2(100.0, printed=choice), *jobs, until=900.0, gpus=(3,))
        for choice in (False, True)
    )
    assert states(read, "light") == [JobState.RUNNING]
    assert states(printed, "light") == [JobState.WAITING]


def test_a_starving_job_is_not_hidden_behind_an_earlier_one_that_waits_again():
    jobs = [job("a", 2), job("b", 2, arrival=5.0), job("c", 3, arrival=31.0)]
    run = engine(Kod2(40.0), *jobs, until=60.0, gpus=(3,), outages=[Outage(0, 30.0, 60.0)])
    assert workers(run) == {"a": {}, "b": {0: 2}, "c": {}}


# --- scale-in, scale-out and placement ----------------------------------------------------------


def room(*free, sizes=None):
    machines = tuple(Machine(f"n{k}", (float(n),)) for k, n in enumerate(sizes or [8] * len(free)))
    return Room(Site(("gpu",), machines), [(n,) for n in free])


def indexed(one, index):
    return workload(*[job(f"x{k}") for k in range(index)], one).jobs[index]


def test_workers_leave_machines_without_a_server_first():
    victim = indexed(job("a", 1, 4, ps=1), 0)
    held = {0: Allocation(((0, 2), (1, 2)), ((0, 1),))}
    there = room(0, 0)
    new = job("b", 1)
    changes, found = scale_in(there, [victim], held, lambda m: on_node(there, new, 1, 0, m))
    assert changes == {0: Allocation(((0, 2), (1, 1)), ((0, 1),))}
    assert found == Allocation(((1, 1),))


def test_printed_the_last_worker_of_a_machine_is_taken_in_vain():
    """Lines 14-18 look before a worker is taken: what the only one gave is never looked at."""
    victim = indexed(job("a", 1, 2), 0)
    held = {0: Allocation(((0, 1), (1, 1)))}
    new = job("b", 1)
    for printed, expected in ((False, {0: Allocation(((1, 1),))}), (True, None)):
        there = room(0, 0)
        made = scale_in(
            there,
            [victim],
            held,
            lambda m, there=there: on_node(there, new, 1, 0, m),
            printed=printed,
        )
        assert (made and made[0]) == expected
        assert there.free == ([(0,), (0,)])


def test_printed_the_last_resource_is_never_given_to_a_worker():
    able = [indexed(job("a", 1, 4), 0)]
    held = {0: Allocation(((0, 1),))}
    order = (lambda job: 1.0, lambda job: (job.arrival, job.index))
    assert scale_out(room(2), able, held, *order)[0].worker_count == 3
    assert scale_out(room(2), able, held, *order, printed=True)[0].worker_count == 2


def test_the_weightiest_grows_first_machine_after_machine():
    one, two = indexed(job("a", 1, 9), 0), indexed(job("b", 2, 9), 1)
    held = {0: Allocation(((0, 1),)), 1: Allocation(((1, 2),))}
    changes = scale_out(
        room(2, 3), [one, two], held, lambda job: job.min_workers, lambda job: (0.0, job.index)
    )
    assert changes == {1: Allocation(((0, 2), (1, 5)))}


def test_a_job_goes_on_one_machine_or_on_the_most_idle_ones():
    rule = AffinityPlacement()
    assert rule.place(room(2, 3, 5), job("a", 3), 3, 0).workers == ((1, 3),)
    assert rule.place(room(2, 3, 5), job("a", 6), 6, 0).workers == ((1, 1), (2, 5))
    assert rule.place(room(1, 1, 1), job("a", 6), 6, 0) is None


def test_where_machines_host_one_kind_the_servers_find_their_own():
    kinds = [frozenset({"worker"}), frozenset({"ps"})]
    machines = tuple(Machine(f"n{k}", (4.0,), kinds[k]) for k in range(2))
    there = Room(Site(("gpu",), machines), [(2,), (1,)])
    one = PolicyJob("a", 0.0, 1.0, ((0, 1),), ((0, 1),))
    assert on_node(there, one, 2, 2, 0) is None
    assert on_node(there, one, 2, 1, 0) == Allocation(((0, 2),), ((1, 1),))


# --- the rival ----------------------------------------------------------------------------------


def test_the_operator_without_gangs_deadlocks_where_kod2_does_not():
    jobs = [job("a", 3, work=30.0), job("b", 3, work=30.0)]
    stuck = replay(workload(*jobs, partial_gangs=True), KubernetesDefault())
    assert stuck.completions == []
    assert replay(workload(*jobs, partial_gangs=True), Kod2()).completions == [10.0, 20.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"starve_limit": -1.0}, "starve_limit: expected seconds >= 0"),
        ({"starve_limit": math.nan}, "starve_limit: expected seconds >= 0"),
        ({"form": "x"}, "form: expected ratio or difference"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Kod2(**options)
