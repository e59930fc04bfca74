"""Where the rules put a whole job, on cases worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.placement import PLACEMENTS, Room, placement_named
from oasis.scheduling.site import Machine, Site

JOB = PolicyJob("a", 0.0, 1.0, ((0, 1), (1, 1)), ((1, 1),), min_workers=2, max_workers=8)


def room(*free, hosts=None):
    """Machines of 4 GPUs and 8 cores with this many of both free."""
    kinds = hosts or [("worker", "ps")] * len(free)
    machines = tuple(Machine(f"n{k}", (4.0, 8.0), frozenset(kind)) for k, kind in enumerate(kinds))
    return Room(Site(("gpu", "cpu"), machines), list(free))


def put(name, free, workers, ps=0, **changes):
    made = room(*free, **changes)
    found = placement_named(name, made.site).place(made, JOB, workers, ps)
    return found and found.by_group


@pytest.mark.parametrize(
    ("name", "workers", "ps", "expected"),
    [
        ("best-fit", 3, 0, (((0, 2), (1, 1)), ())),
        ("first-fit", 3, 0, (((0, 2), (1, 1)), ())),
        ("round-robin", 3, 0, (((0, 1), (1, 1), (2, 1)), ())),
        ("spread", 3, 0, (((1, 1), (2, 2)), ())),
        ("one-node", 3, 1, (((1, 3),), ((1, 1),))),
        ("one-node", 4, 2, (((2, 4),), ((2, 2),))),
        ("most-idle", 5, 1, (((1, 1), (2, 4)), ((2, 1),))),
        ("minimum-on-one-node", 5, 1, (((0, 2), (2, 3)), ((0, 1),))),
    ],
)
def test_rules_differ_in_where_they_put_a_job(name, workers, ps, expected):
    """Free: 2 of 4 GPUs on the first machine, 3 on the second, all on the third."""
    assert put(name, [(2, 4), (3, 6), (4, 8)], workers, ps) == expected


@pytest.mark.parametrize("name", PLACEMENTS)
def test_what_does_not_fit_leaves_the_room_as_it_was(name):
    made = room((2, 2), (1, 8))
    assert placement_named(name, made.site).place(made, JOB, 4, 1) is None
    assert made.free == [(2, 2), (1, 8)]


def test_one_node_of_each_kind_where_no_machine_hosts_both():
    hosts = [("worker",), ("ps",), ("worker",)]
    free = [(4, 8), (0, 8), (3, 8)]
    assert put("one-node", free, 3, 2, hosts=hosts) == (((2, 3),), ((1, 2),))


@pytest.mark.parametrize("name", PLACEMENTS)
@given(
    free=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), min_size=1, max_size=4),
    kinds=st.lists(
        st.sampled_from([("worker",), ("ps",), ("worker", "ps")]), min_size=4, max_size=4
    ),
    workers=st.integers(1, 6),
    ps=st.integers(0, 3),
)
def test_a_job_is_placed_whole_on_what_is_free(name, free, kinds, workers, ps):
    made = room(*free, hosts=kinds[: len(free)])
    found = placement_named(name, made.site).place(made, JOB, workers, ps)
    if found is None:
        assert made.free == free
        return
    assert (found.worker_count, found.ps_count) == (workers, ps)
    assert all(min(row) >= 0 for row in made.free)
    for group, tasks in (("worker", found.workers), ("ps", found.ps)):
        assert set(dict(tasks)) <= set(made.site.machines_for(group))
        assert tasks == tuple(sorted(tasks))
    made.release(JOB, found)
    assert made.free == free


def test_a_rule_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"placement: expected one of best-fit, .*, got 'heap'"):
        placement_named("heap", room((4, 8)).site)


def test_a_machine_that_is_down_takes_nothing_not_even_what_reserves_nothing():
    room = Room(Site(("gpu",), tuple(Machine(n, (4.0,)) for n in "ab")), [(4,), (4,)], {0})
    assert [room.fits(machine, ()) for machine in (0, 1)] == [False, True]
    assert room.fitting((0, 1), ()) == [1]
    assert [room.count(machine, (), 3) for machine in (0, 1)] == [0, 3]
    idle = PolicyJob("a", 0.0, 1.0, ())
    assert [room.hold(idle, Allocation(((machine, 1),))) for machine in (0, 1)] == [False, True]


def test_a_room_counts_what_fits():
    made = room((3, 1))
    assert made.count(0, ((0, 1), (1, 1)), 9) == 1
    assert made.count(0, (), 9) == 9
    assert made.hold(JOB, Allocation(((0, 2),))) is False
