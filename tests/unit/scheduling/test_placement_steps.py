"""The placement rules one decision at a time: which machine is next, and whose turn it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.groups import GROUPS
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.placement import (
    BestFit,
    FirstFit,
    MinimumOnOneNode,
    MostIdle,
    OneNode,
    Placement,
    Room,
    RoundRobin,
    Spread,
    TaskByTask,
)
from oasis.scheduling.site import Machine, Site

GPU_ONLY = ((0, 1),)
JOB = PolicyJob("a", 0.0, 1.0, ((0, 1), (1, 1)), ((1, 1),), min_workers=2, max_workers=8)
RULES = (BestFit, FirstFit, RoundRobin, Spread, OneNode, MostIdle, MinimumOnOneNode)


def room(*free: tuple[int, int], hosts: list[tuple[str, ...]] | None = None) -> Room:
    """Machines of 4 GPUs and 8 cores with this many of both free."""
    kinds = hosts or [GROUPS] * len(free)
    machines = tuple(Machine(f"n{k}", (4.0, 8.0), frozenset(kind)) for k, kind in enumerate(kinds))
    return Room(Site(("gpu", "cpu"), machines), list(free))


# -- task by task ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected"), [(BestFit, 1), (FirstFit, 0), (RoundRobin, 0), (Spread, 2)]
)
def test_the_next_machine_by_each_rule(rule: type[TaskByTask], expected: int) -> None:
    made = room((3, 8), (1, 8), (4, 8))
    assert rule().next_machine(made, (0, 1, 2), GPU_ONLY, "worker") == expected


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


def test_the_base_class_places_by_no_rule() -> None:
    with pytest.raises(NotImplementedError):
        TaskByTask().place(room((4, 8)), JOB, 1, 0)


def test_workers_are_placed_before_parameter_servers() -> None:
    """The only core goes to the worker, so the parameter server finds none."""
    assert FirstFit().place(room((4, 1)), JOB, 1, 1) is None
    assert FirstFit().place(room((4, 2)), JOB, 1, 1) == Allocation(((0, 1),), ((0, 1),))


def test_placing_nothing_takes_nothing() -> None:
    made = room((4, 8))
    assert BestFit().place(made, JOB, 0, 0) == NOTHING
    assert made.free == [(4, 8)]


# -- whole machines --------------------------------------------------------------------------------


def test_one_node_takes_the_fullest_machine_and_the_first_of_equals() -> None:
    assert OneNode().place(room((4, 8), (2, 8), (2, 8)), JOB, 2, 0) == Allocation(((1, 2),))


def test_one_node_refuses_what_only_two_nodes_hold() -> None:
    made = room((2, 8), (2, 8))
    assert OneNode().place(made, JOB, 3, 0) is None
    assert made.free == [(2, 8), (2, 8)]


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


def test_the_minimum_is_given_back_where_the_rest_does_not_fit() -> None:
    made = room((2, 8), (1, 8))
    assert MinimumOnOneNode().place(made, JOB, 4, 1) is None
    assert made.free == [(2, 8), (1, 8)]


# -- all rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@given(
    free=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), min_size=1, max_size=4),
    workers=st.integers(0, 6),
    ps=st.integers(0, 2),
)
def test_what_is_placed_is_what_is_taken(
    rule: type[Placement], free: list[tuple[int, int]], workers: int, ps: int
) -> None:
    made = room(*free)
    found = rule().place(made, JOB, workers, ps)
    if found is None:
        assert made.free == free
        return
    assert (found.worker_count, found.ps_count) == (workers, ps)
    for tasks in found.by_group:
        assert list(tasks) == sorted(tasks)
        assert len(dict(tasks)) == len(tasks)
        assert all(count > 0 for _, count in tasks)
    made.release(JOB, found)
    assert made.free == free


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), min_size=1, max_size=4),
    st.integers(1, 6),
    st.integers(0, 2),
)
def test_rules_that_look_for_single_places_find_them_all_alike(
    free: list[tuple[int, int]], workers: int, ps: int
) -> None:
    """Whether workers fit does not depend on the order of machines, if they are alike in cores."""
    found = [rule().place(room(*free), JOB, workers, 0) is None for rule in (FirstFit, BestFit)]
    assert found[0] == found[1]
    if OneNode().place(room(*free), JOB, workers, ps) is not None:
        assert MinimumOnOneNode().place(room(*free), JOB, workers, ps) is not None
