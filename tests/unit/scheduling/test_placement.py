"""The placement rules: which machine is next, whose turn it is, and where a whole job goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.groups import GROUPS
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.placement import (
    PLACEMENTS,
    BestFit,
    FirstFit,
    MinimumOnOneNode,
    MostIdle,
    OneNode,
    Room,
    RoundRobin,
    placement_named,
)
from oasis.scheduling.site import Machine, Site

GPU_ONLY = ((0, 1),)
JOB = PolicyJob("a", 0.0, 1.0, ((0, 1), (1, 1)), ((1, 1),), min_workers=2, max_workers=8)


def room(*free: tuple[int, int], hosts: list[tuple[str, ...]] | None = None) -> Room:
    """Machines of 4 GPUs and 8 cores with this many of both free."""
    kinds = hosts or [GROUPS] * len(free)
    machines = tuple(Machine(f"n{k}", (4.0, 8.0), frozenset(kind)) for k, kind in enumerate(kinds))
    return Room(Site(("gpu", "cpu"), machines), list(free))


# -- task by task ----------------------------------------------------------------------------------


def test_best_fit_compares_the_resources_of_the_task_in_their_order() -> None:
    """Equal GPUs: fewer cores decide; cores do not count for a task that asks for none."""
    made = room((2, 6), (2, 3), (3, 1))
    assert BestFit().next_machine(made, (0, 1, 2), JOB.worker, "worker") == 1
    assert BestFit().next_machine(made, (0, 1, 2), GPU_ONLY, "worker") == 0


def test_round_robin_goes_on_where_it_stopped_for_each_kind_of_task() -> None:
    rule, made = RoundRobin(), room((4, 8), (4, 8), (4, 8))
    found = [rule.next_machine(made, (0, 1, 2), GPU_ONLY, "worker") for _ in range(4)]
    assert found == [0, 1, 2, 0]
    assert rule.next_machine(made, (0, 1, 2), GPU_ONLY, "ps") == 0
    assert rule.next_machine(made, (0, 1, 2), GPU_ONLY, "worker") == 1


def test_round_robin_passes_over_full_machines_and_remembers_that() -> None:
    rule, made = RoundRobin(), room((0, 8), (4, 8), (0, 8))
    assert [rule.next_machine(made, (0, 1, 2), GPU_ONLY, "worker") for _ in range(2)] == [1, 1]
    made.free[2] = (4, 8)
    assert rule.next_machine(made, (0, 1, 2), GPU_ONLY, "worker") == 2


def test_workers_are_placed_before_parameter_servers() -> None:
    """The only core goes to the worker, so the parameter server finds none."""
    assert FirstFit().place(room((4, 1)), JOB, 1, 1) is None
    assert FirstFit().place(room((4, 2)), JOB, 1, 1) == Allocation(((0, 1),), ((0, 1),))


# -- whole machines --------------------------------------------------------------------------------


def test_one_node_takes_the_fullest_machine_and_the_first_of_equals() -> None:
    assert OneNode().place(room((4, 8), (2, 8), (2, 8)), JOB, 2, 0) == Allocation(((1, 2),))


def test_one_node_places_parameter_servers_alone_where_they_may_be() -> None:
    made = room((4, 8), (0, 8), hosts=[("worker",), ("ps",)])
    assert OneNode().place(made, JOB, 0, 2) == Allocation((), ((1, 2),))
    assert made.free == [(4, 8), (0, 6)]


def test_one_node_counts_worker_and_parameter_server_together() -> None:
    """Three tasks of one core each; the machine with two cores holds the workers only."""
    assert OneNode().place(room((2, 2), (4, 3)), JOB, 2, 1) == Allocation(((1, 2),), ((1, 1),))


def test_most_idle_fills_a_machine_before_it_begins_the_next() -> None:
    made = room((4, 8), (3, 8), (2, 8))
    assert MostIdle().place(made, JOB, 6, 0) == Allocation(((0, 4), (1, 2)))


def test_most_idle_begins_beside_the_parameter_servers() -> None:
    """The parameter server goes to machine 1, idle but for a GPU; so do the first workers."""
    made = room((2, 8), (3, 8), (0, 8))
    assert MostIdle().place(made, JOB, 4, 1) == Allocation(((0, 1), (1, 3)), ((1, 1),))


def test_most_idle_places_apart_where_no_machine_hosts_both() -> None:
    made = room((2, 8), (4, 8), (4, 8), hosts=[("worker",), ("ps",), ("worker",)])
    assert MostIdle().place(made, JOB, 5, 2) == Allocation(((0, 1), (2, 4)), ((1, 2),))


def test_the_minimum_goes_on_one_node_and_the_rest_follows() -> None:
    """Two workers and the parameter server fit best on machine 0; one more fits there too."""
    made = room((3, 8), (4, 8), (1, 8))
    assert MinimumOnOneNode().place(made, JOB, 5, 1) == Allocation(((0, 3), (1, 2)), ((0, 1),))


def test_fewer_workers_than_the_minimum_are_placed_as_they_are() -> None:
    assert MinimumOnOneNode().place(room((1, 8)), JOB, 1, 1) == Allocation(((0, 1),), ((0, 1),))


# -- all rules -------------------------------------------------------------------------------------


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
    workers=st.integers(0, 6),
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
        assert tasks == tuple(sorted(dict(tasks).items()))
        assert all(count > 0 for _, count in tasks)
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
