"""The parts of the controllers: the queue of gangs, the running jobs, one worker more or less."""

from dataclasses import replace

from baselines.gangs import GangQueue, RunningJobs, add_worker, drop_worker, shrink
from oasis.simulator import (
    NOTHING,
    Allocation,
    ByBandwidth,
    FixedPs,
    Machine,
    PolicyJob,
    Room,
    Site,
)
from tests.unit.baselines.controllers import job


def numbered(*jobs):
    return [replace(each, index=k) for k, each in enumerate(jobs)]


def room(*free, hosts=None):
    kinds = [frozenset(each) for each in hosts or [("worker", "ps")] * len(free)]
    machines = tuple(Machine(f"n{k}", (8.0,), kinds[k]) for k in range(len(free)))
    return Room(Site(("gpu",), machines), [(n,) for n in free])


# --- the queue ----------------------------------------------------------------------------------


def queue_of(*jobs):
    queue = GangQueue(lambda job: (job.min_workers, 0))
    for each in jobs:
        queue.add(each)
    return queue


def test_a_job_that_comes_back_stands_where_it_stood():
    a, b, c = numbered(job("a", 1), job("b", 1), job("c", 1))
    queue = queue_of(b, c)
    queue.add(a)
    assert [each.id for each in queue] == ["a", "b", "c"]
    queue.remove(b)
    queue.remove(b)
    assert [each.id for each in queue] == ["a", "c"]
    assert (len(queue), b.index in queue, c.index in queue) == (2, False, True)


def test_a_size_that_does_not_fit_is_tried_once():
    jobs = numbered(*(job(f"j{k}", least) for k, least in enumerate((3, 1, 3, 1, 3))))
    queue, tried, hopeless = queue_of(*jobs), [], set()

    def launch(each):
        tried.append(each.id)
        return Allocation(((0, 1),)) if each.min_workers == 1 else None

    queue.launch_all(lambda each: (each.index,), launch, hopeless)
    assert tried == ["j0", "j1", "j3"]
    assert [each.id for each in queue] == ["j0", "j2", "j4"]
    queue.launch_all(lambda each: (each.index,), launch, hopeless)
    assert tried == ["j0", "j1", "j3"]


def test_the_key_decides_who_goes_first():
    jobs = numbered(job("a", 1), job("b", 2), job("c", 2))
    queue, order = queue_of(*jobs), []
    queue.launch_all(
        lambda each: (-each.min_workers, each.index),
        lambda each: order.append(each.id) or NOTHING,
        set(),
    )
    assert order == ["b", "c", "a"]
    assert not list(queue.sizes())


# --- the running jobs ---------------------------------------------------------------------------


def names(jobs):
    return [each.id for each in jobs]


def test_who_can_grow_and_shrink_follows_what_is_held():
    a, b = numbered(job("a", 1, 3), job("b", 1, 2))
    running = RunningJobs()
    running.set(b, Allocation(((0, 2),)))
    running.set(a, Allocation(((0, 1), (1, 1))))
    assert (names(running), names(running.growing()), names(running.shrinking())) == (
        ["b", "a"],
        ["a"],
        ["b", "a"],
    )
    assert names(running.growing_on(1)) == ["a"]
    running.set(a, Allocation(((0, 3),)))
    running.set(b, Allocation(((1, 1),)))
    assert (names(running.growing()), names(running.shrinking())) == (["b"], ["a"])
    assert (names(running.growing_on(0)), names(running.growing_on(1))) == ([], ["b"])
    running.remove(b)
    running.remove(b)
    assert (names(running), running.growing(), running.growing_on(1)) == (["a"], [], [])


# --- one worker more or less --------------------------------------------------------------------

BANDWIDTH = PolicyJob(
    "a", 0.0, 1.0, ((0, 1),), ((0, 1),), min_workers=1, max_workers=6, ps_rule=ByBandwidth(0.5)
)


def test_a_worker_brings_the_server_that_the_rule_wants_beside_most_workers():
    held = Allocation(((0, 1), (1, 1)), ((0, 1),))
    there = room(2, 2)
    assert add_worker(there, BANDWIDTH, held, 1) == Allocation(((0, 1), (1, 2)), ((0, 1), (1, 1)))
    assert there.free == [(2,), (0,)]


def test_a_worker_without_room_for_its_server_is_not_added():
    held, there = Allocation(((0, 2),), ((0, 1),)), room(1)
    assert add_worker(there, BANDWIDTH, held, 0) is None
    assert there.free == [(1,)]


def test_no_worker_goes_where_none_may_or_beyond_the_most():
    held = Allocation(((0, 1),))
    assert add_worker(room(2, 2, hosts=[("worker",), ("ps",)]), job("a", 1, 4), held, 1) is None
    assert add_worker(room(2), job("a", 1, 1), held, 0) is None


def test_a_worker_less_gives_back_the_server_with_fewest_workers_beside_it():
    held = Allocation(((0, 2), (1, 1)), ((0, 1), (1, 1)))
    there = room(0, 0)
    assert drop_worker(there, BANDWIDTH, held, 0) == Allocation(((0, 1), (1, 1)), ((0, 1),))
    assert there.free == [(1,), (1,)]


def test_workers_leave_until_so_many_are_left():
    one = job("a", 1, 9, ps=1)
    assert one.ps_rule == FixedPs(1)
    held = Allocation(((0, 3), (1, 1), (2, 2)), ((1, 1),))
    there = room(0, 0, 0)
    assert shrink(there, one, held, 3) == Allocation(((0, 2), (1, 1)), ((1, 1),))
    assert there.free == [(1,), (0,), (2,)]
    assert shrink(there, one, held, 9) == held
