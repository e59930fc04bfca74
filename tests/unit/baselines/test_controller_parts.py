"""The parts of the controllers: the queue of gangs, the running jobs, one worker more or less."""

from baselines.gangs import add_worker, drop_worker
from oasis.simulator import (
    Allocation,
    Machine,
    PolicyJob,
    Room,
    Site,
)
from tests.unit.baselines.controllers import job


def room(*free, hosts=None):
    kinds = [frozenset(each) for each in hosts or [("worker", "ps")] * len(free)]
    machines = tuple(Machine(f"n{k}", (8.0,), kinds[k]) for k in range(len(free)))
    return Room(Site(("gpu",), machines), [(n,) for n in free])


# --- one worker more or less --------------------------------------------------------------------

BANDWIDTH = PolicyJob(
    "a", 0.0, 1.0, ((0, 1),), ((0, 1),), min_workers=1, max_workers=6, ps_per_worker=0.5
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
