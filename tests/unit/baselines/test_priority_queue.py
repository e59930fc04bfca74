"""The autoscaler by scenarios: each branch of its procedures, and where readings differ."""

from dataclasses import replace

import pytest

from baselines.fair_shares import MachineShares
from baselines.priority_queue import (
    FirstNode,
    PriorityQueue,
    scale_down,
    scale_down_as_printed,
    scale_up,
)
from oasis import Constant, Sigmoid
from oasis.simulator import Allocation, Machine, Outage, Room, Site
from tests.unit.baselines.controllers import engine, job, workers


def worth(value, each):
    return replace(each, utility=Constant(float(value)))


def room(*free):
    machines = tuple(Machine(f"n{k}", (8.0,)) for k in range(len(free)))
    return Room(Site(("gpu",), machines), [(n,) for n in free])


def numbered(*jobs):
    return [replace(each, index=k) for k, each in enumerate(jobs)]


# --- weighting ----------------------------------------------------------------------------------


def line(*jobs, **site):
    """The waiting jobs in the order of the queue, behind one that fills the machine."""
    full = worth(99, job("full", 4))
    run = engine(PriorityQueue(), full, *jobs, **site)
    return [each.id for each in sorted(run.policy._queue, key=run.policy.weighting)]


def test_the_queue_is_by_utility_and_then_by_what_is_asked_for():
    jobs = [worth(1, job("a", 2)), worth(2, job("b", 1)), worth(1, job("c", 3)), job("d", 4)]
    assert line(*jobs) == ["b", "c", "a", "d"]


def test_equals_stand_in_order_of_arrival():
    assert line(worth(1, job("a", 2)), worth(1, job("b", 2))) == ["a", "b"]


def test_the_line_that_splits_the_queue_cannot_be_meant():
    """Line 11 puts those that are worth *less* in front; the text wants the best first."""

    def printed(queue, new):
        for q in queue:
            if new > q:
                return [u for u in queue if new > u] + [new] + [u for u in queue if new <= u]
        return [*queue, new]

    queue = []
    for value in (3, 1, 2):
        queue = printed(queue, value)
    assert queue == [1, 2, 3]
    jobs = [worth(3, job("3", 1)), worth(1, job("1", 1)), worth(2, job("2", 1))]
    assert line(*jobs) == ["3", "2", "1"]


def test_the_utility_of_a_job_is_what_it_is_worth_without_delay():
    late = replace(job("late", 1), utility=Sigmoid(10.0, 1.0, 50.0))
    soon = replace(job("soon", 1), utility=Sigmoid(10.0, 1.0, 0.0))
    assert line(soon, late) == ["late", "soon"]


def test_cores_and_servers_count_in_the_request():
    site = Site(("memory",), (Machine("n0", (10.0,), cpu_cores=8.0),))
    assert MachineShares(site, "worker").of(((0, 2),), 4.0, 3) == [0.6, 1.5]
    assert line(job("a", 1), job("b", 1, ps=0), replace(job("c", 1, ps=2), ps=((0, 1),))) == [
        "c",
        "a",
        "b",
    ]


# --- gangs --------------------------------------------------------------------------------------


def test_all_tasks_go_to_the_first_machine_that_has_room_for_all():
    assert FirstNode().place(room(1, 3, 5), job("a", 3), 3, 0).workers == ((1, 3),)


def test_else_each_goes_to_the_first_that_has_room():
    there = room(1, 0, 3)
    assert FirstNode().place(there, job("a", 4), 4, 0).workers == ((0, 1), (2, 3))
    assert there.free == [(0,), (0,), (0,)]
    assert FirstNode().place(room(1, 0, 2), job("a", 4), 4, 0) is None


def test_the_printed_gang_loop_cannot_be_meant():
    """It stops at the first machine that fails, and lets pods in that do not fit together."""

    def printed(pods, free):
        one_node = False
        for row in free:
            left, stop, one_node = row, False, True
            for pod in pods:
                if left < pod:
                    one_node, stop = False, True
                    left -= pod
            if stop:
                break
        return one_node

    assert not printed([3], [1, 3])  # the second machine has room, but is never looked at
    assert FirstNode().place(room(1, 3), job("a", 3), 1, 0) is not None
    assert printed([1, 1, 1], [2])  # each fits, the three together do not
    assert FirstNode().place(room(2), job("a", 3), 3, 0) is None


# --- scale-down ---------------------------------------------------------------------------------


def test_a_better_job_takes_workers_from_the_last_of_the_order_first():
    jobs = [worth(2, job("a", 1, 3, asked=3)), worth(1, job("b", 1, 3, asked=3))]
    run = engine(PriorityQueue(), *jobs, worth(3, job("c", 2, arrival=1.0)), until=1.0, gpus=(6,))
    assert workers(run) == {"a": {0: 3}, "b": {0: 1}, "c": {0: 2}}


def test_nobody_gives_more_than_its_surplus_and_on_failure_nobody_gives_anything():
    jobs = [worth(1, job("a", 2, 4, asked=4)), worth(3, job("b", 3, arrival=1.0))]
    run = engine(PriorityQueue(), *jobs, until=1.0)
    assert workers(run) == {"a": {0: 4}, "b": {}}
    assert run.state.jobs[0].changes == ()


def test_when_all_have_given_the_job_may_be_spread():
    jobs = [worth(1, job(n, 2, 3, asked=3)) for n in "ab"]
    run = engine(PriorityQueue(), *jobs, worth(2, job("c", 2, arrival=1.0)), until=1.0, gpus=(3, 3))
    assert workers(run) == {"a": {0: 2}, "b": {1: 2}, "c": {0: 1, 1: 1}}


def test_a_job_worth_no_more_than_the_best_running_one_takes_nothing():
    for value in (1, 2):
        jobs = [worth(2, job("a", 1, 4, asked=4)), worth(value, job("b", 1, arrival=1.0))]
        assert workers(engine(PriorityQueue(), *jobs, until=1.0)) == {"a": {0: 4}, "b": {}}


def test_printed_a_job_gives_one_worker_a_machine_and_what_is_won_is_seen_late():
    (giver,) = numbered(job("a", 1, 4))
    held = {0: Allocation(((0, 2), (1, 2)))}

    def read(there):
        new = job("b", 2)

        def on_node(m):
            found = Allocation(((m, 2),))
            return found if there.hold(new, found) else None

        return scale_down(there, [giver], held, on_node, lambda: None)

    def printed(there, wanted):
        return scale_down_as_printed(there, [giver], held, lambda m: there.free[m][0] >= wanted)

    assert read(room(0, 0)) == ({0: Allocation(((1, 2),))}, Allocation(((0, 2),)))
    assert printed(room(0, 0), 2) is None  # one worker a machine is not enough
    # the one that it gives on the first machine would do, but a second one is given meanwhile
    assert printed(room(0, 0), 1) == {0: Allocation(((0, 1), (1, 1)))}
    assert printed(room(2, 0), 2) == {}


def test_printed_those_launched_first_give_first():
    jobs = [worth(2, job("a", 1, 3, asked=3)), worth(1, job("b", 1, 3, asked=3))]
    better = worth(3, job("c", 1, arrival=1.0))
    for printed, given in ((False, {0: 2}), (True, {0: 3})):
        run = engine(PriorityQueue(printed=printed), *jobs, better, until=1.0, gpus=(6,))
        assert workers(run)["b"] == given


# --- scale-up -----------------------------------------------------------------------------------


def test_machine_after_machine_jobs_take_what_fits_in_the_order_given():
    one, two = numbered(job("a", 1, 3), job("b", 1, 9))
    held = {0: Allocation(((1, 1),)), 1: Allocation(((1, 1),))}
    grown = scale_up(room(1, 0, 4), [two, one], held, lambda each: each.index)
    assert grown == {
        0: Allocation(((0, 1), (1, 1), (2, 1))),
        1: Allocation(((1, 1), (2, 3))),
    }


def test_the_best_job_grows_first():
    jobs = [worth(1, job("a", 1, 4, asked=1)), worth(2, job("b", 1, 3, asked=1))]
    assert workers(engine(PriorityQueue(), *jobs)) == {"a": {0: 1}, "b": {0: 3}}


# --- the main step ------------------------------------------------------------------------------


def test_while_the_best_job_is_worth_most_and_finds_no_room_nobody_else_starts():
    jobs = [worth(1, job("a", 3)), worth(3, job("b", 4, arrival=1.0)), job("c", 1, arrival=1.0)]
    run = engine(PriorityQueue(), *jobs, until=1.0)
    assert workers(run) == {"a": {0: 3}, "b": {}, "c": {}}


def test_else_the_first_that_fits_starts_and_the_others_after_it():
    jobs = [worth(9, job("a", 2)), worth(3, job("b", 4, arrival=1.0))]
    jobs += [worth(1, job(n, 1, arrival=1.0)) for n in "cd"]
    run = engine(PriorityQueue(), *jobs, until=1.0)
    assert workers(run) == {"a": {0: 2}, "b": {}, "c": {0: 1}, "d": {0: 1}}


def test_a_job_is_launched_as_asked_and_grows_at_once():
    assert workers(engine(PriorityQueue(), job("a", 1, 4, asked=2), gpus=(3,))) == {"a": {0: 3}}


def test_printed_nobody_else_is_launched_at_that_instant_and_nobody_grows():
    """The best is launched, and one more as scale-down succeeds at once; then the step is over."""
    jobs = [job("a", 1, 2), job("b", 1, 2), job("c", 1, 2)]
    read, printed = (
        workers(engine(PriorityQueue(printed=choice), *jobs, gpus=(8,))) for choice in (False, True)
    )
    assert read == {"a": {0: 2}, "b": {0: 2}, "c": {0: 2}}
    assert printed == {"a": {0: 1}, "b": {0: 1}, "c": {}}


def test_printed_a_better_job_that_finds_room_by_scale_down_is_launched_by_the_walk():
    jobs = [worth(1, job("a", 1, 4, asked=4)), worth(2, job("b", 1, arrival=1.0))]
    printed = engine(PriorityQueue(printed=True), *jobs, until=1.0)
    assert workers(printed) == {"a": {0: 3}, "b": {0: 1}}


def test_printed_running_jobs_grow_when_nobody_waits_or_scale_down_failed():
    jobs = [worth(1, job("a", 2, 3, asked=2)), worth(2, job("b", 3, arrival=1.0))]
    printed = engine(PriorityQueue(printed=True), *jobs, until=1.0)
    assert workers(printed) == {"a": {0: 3}, "b": {}}


def test_printed_scale_down_runs_for_a_job_that_was_launched_and_another_takes_the_room():
    jobs = [worth(1, job("a", 1, 3, asked=3)), worth(2, job("b", 1, arrival=1.0))]
    jobs.append(job("c", 1, arrival=1.0))
    full = {"a": {0: 3}, "b": {0: 1}, "c": {}}
    assert workers(engine(PriorityQueue(), *jobs, until=1.0)) == full
    printed = engine(PriorityQueue(printed=True), *jobs, until=1.0)
    assert workers(printed) == {"a": {0: 2}, "b": {0: 1}, "c": {0: 1}}


def test_a_job_that_lost_its_machine_stands_where_it_stood():
    jobs = [worth(2, job("a", 2)), worth(3, job("b", 2, arrival=1.0)), worth(2, job("c", 2))]
    lost = [Outage(0, 5.0, 6.0)]
    run = engine(PriorityQueue(), *jobs, until=6.0, gpus=(2,), outages=lost)
    assert workers(run) == {"a": {}, "c": {}, "b": {0: 2}}
    jobs[1] = worth(1, jobs[1])
    run = engine(PriorityQueue(), *jobs, until=6.0, gpus=(2,), outages=lost)
    assert workers(run) == {"a": {0: 2}, "c": {}, "b": {}}


@pytest.mark.parametrize("printed", [False, True])
def test_it_names_its_option(printed):
    assert PriorityQueue(printed=printed).parameters == {"printed": printed}
