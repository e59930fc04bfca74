"""Where a job goes by each placement rule; the rows are those of placements.toml."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.groups import GROUPS
from oasis.scheduling import Allocation, BestFit, Machine, PolicyJob, Room, RoundRobin, Site
from oasis.scheduling.placement import PLACEMENTS, placement_named
from tests.builders import GPU, rows

JOB = PolicyJob("a", 0.0, 1.0, ((0, 1), (1, 1)), ((1, 1),), min_workers=2, max_workers=8)


def room(*free: tuple[int, ...], hosts: Any = None) -> Room:
    """Machines of 4 GPUs and 8 cores with this many of both free."""
    kinds = hosts or [GROUPS] * len(free)
    machines = tuple(Machine(f"n{k}", (4.0, 8.0), frozenset(kind)) for k, kind in enumerate(kinds))
    return Room(Site(("gpu", "cpu"), machines), list(free))


@pytest.mark.parametrize("row", rows(__file__, "placements.toml")["row"], ids=lambda r: r["shows"])
def test_where_a_rule_puts_a_job(row):
    made = room(*map(tuple, row["free"]), hosts=row.get("hosts"))
    found = placement_named(row["rule"], made.site).place(made, JOB, *row["tasks"])
    tasks = found and [[list(task) for task in group] for group in found.by_group]
    assert (tasks or "nowhere") == row["put"]


def test_best_fit_leaves_out_what_a_task_does_not_ask_for():
    made = room((2, 6), (2, 3), (3, 1))
    assert BestFit().next_machine(made, (0, 1, 2), GPU, "worker") == 0


def test_round_robin_goes_on_where_it_stopped_for_each_kind_of_task():
    rule, made = RoundRobin(), room((4, 8), (4, 8), (4, 8))
    kinds = ["worker"] * 4 + ["ps", "worker"]
    found = [rule.next_machine(made, (0, 1, 2), GPU, kind) for kind in kinds]
    assert found == [0, 1, 2, 0, 0, 1]
    made.free[2] = (0, 8)
    assert rule.next_machine(made, (0, 1, 2), GPU, "worker") == 0


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
    for group, tasks in zip(GROUPS, found.by_group, strict=True):
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
    assert made.hold(JOB, Allocation(((0, 2),))) is False
