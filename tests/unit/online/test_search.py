"""The search for one job on a ledger that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oasis import Cluster, Constant, Job, Piecewise, Server
from oasis.online.dp.lagrangian import Split
from oasis.online.ledger import Ledger
from oasis.online.search import Search, check_granularity, searches
from tests import builders

BANDWIDTH = "bandwidth_gbps"
CLUSTER = Cluster(
    ("cpu", BANDWIDTH),
    (Server("w0", {"cpu": 2.0, BANDWIDTH: 9.0}), Server("w1", {"cpu": 1.0, BANDWIDTH: 9.0})),
    (Server("p", {"cpu": 2.0, BANDWIDTH: 9.0}),),
    1.0,
)
# two chunks of 1.5 worker-slots each: three in all; a whole chunk in a slot needs two workers
JOB = builders.job(
    "a", 1, chunks=2, minibatch_time=1.5, worker={"cpu": 1.0}, utility=Constant(10.0)
)
HORIZON = 4
GRANULARITIES = ("worker-slot", "chunk")


def ledger(cpu: Any = 1.0, used: Any = 0.0, ps_cpu: Any = 0.0, ps_used: Any = 0.0) -> Ledger:
    """CPU prices and used CPUs by slot and server, (T, 2) and (T, 1); bandwidth is free."""
    tables = []
    for values, servers in ((cpu, 2), (ps_cpu, 1), (used, 2), (ps_used, 1)):
        table = np.zeros((HORIZON, servers, 2))
        table[:, :, 0] = values
        tables.append(table)
    return Ledger.of_arrays(CLUSTER, *tables)


def counts(split: Split | None) -> list[int]:
    assert split is not None
    return split.counts[: split.completion + 1].tolist()


@pytest.mark.parametrize(("granularity", "cost"), [("worker-slot", 3.0), ("chunk", 4.0)])
def test_whole_chunks_cost_the_workers_that_a_chunk_needs_at_once(
    granularity: Any, cost: float
) -> None:
    """Three worker-slots; or a chunk in each of two slots, of 1.5, hence two workers."""
    search = Search(JOB, ledger(), granularity)
    best, cheapest = search.best(), search.cheapest()
    assert best is not None
    assert cheapest is not None
    assert best.payoff == 10.0 - cost
    assert cheapest.payoff == -cost
    assert search.smallest_factor() == pytest.approx(cost / 10.0)
    assert best.counts.sum() == cost


@pytest.mark.parametrize(("granularity", "cost"), [("worker-slot", 3.0), ("chunk", 4.0)])
def test_only_a_positive_payoff_is_best(granularity: Any, cost: float) -> None:
    for value in (cost, cost - 0.5, 0.5):
        job = replace(JOB, utility=Constant(value))
        assert Search(job, ledger(), granularity).best() is None
    gains = Search(replace(JOB, utility=Constant(cost + 0.5)), ledger(), granularity).best()
    assert gains is not None
    assert gains.payoff == 0.5


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_where_there_is_no_room_nothing_is_found(granularity: Any) -> None:
    full = Search(JOB, ledger(used=[2.0, 1.0]), granularity)
    assert full.best() is full.cheapest() is full.smallest_factor() is None
    late = Search(replace(JOB, arrival=3), ledger(), granularity)
    assert late.best() is late.cheapest() is late.smallest_factor() is None


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_job_worth_nothing_has_a_cheapest_split_but_no_best_one(granularity: Any) -> None:
    search = Search(replace(JOB, utility=Constant(0.0)), ledger(), granularity)
    assert search.best() is search.smallest_factor() is None
    assert search.cheapest() is not None


def test_utility_is_nothing_where_the_job_cannot_have_finished() -> None:
    """Three worker-slots by two workers: not before the second slot."""
    job = replace(JOB, utility=Piecewise((0.0, 1.0, 2.0), (9.0, 6.0, 2.0)))
    assert Search(job, ledger()).utility.tolist() == [0.0, 6.0, 2.0]
    (found,) = searches(job, ledger(), min_utility_fraction=0.5)
    assert found.utility.tolist() == [0.0, 6.0]
    assert Search(replace(job, arrival=3), ledger()).utility.tolist() == []


def test_cheap_slots_and_servers_are_taken_first() -> None:
    """Slot 1 costs 5 and 7, slot 2 costs 1 and 4, slot 3 costs 2 and 3 a worker."""
    prices = [[9.0, 9.0], [5.0, 7.0], [1.0, 4.0], [2.0, 3.0]]
    search = Search(JOB, ledger(prices))
    best = search.best()
    assert best is not None
    assert best.payoff == 10.0 - (1.0 + 1.0 + 2.0)
    assert counts(best) == [0, 2, 1]
    assert search.schedule(best).workers.tolist() == [[2, 0, 2], [3, 0, 1]]


def test_workers_move_to_the_next_server_where_the_cheapest_is_full() -> None:
    """w0 costs 1 and has room for one in slot 1, then none; w1 costs 4."""
    used = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 0.0]]
    search = Search(JOB, ledger([[1.0, 4.0]] * HORIZON, used))
    best = search.best()
    assert best is not None
    assert best.payoff == 10.0 - (1.0 + 4.0 + 4.0)
    assert counts(best) == [2, 1]  # not later than it must be
    assert search.schedule(best).workers.tolist() == [[1, 0, 1], [1, 1, 1], [2, 1, 1]]


def test_slots_of_a_run_are_filled_alike_and_idle_ones_left_out() -> None:
    dear = [[1.0, 1.0], [1.0, 1.0], [50.0, 50.0], [1.0, 1.0]]
    search = Search(replace(JOB, arrival=0, minibatch_time=3.0), ledger(dear))
    best = search.best()
    assert counts(best) == [2, 2, 0, 2]
    assert best is not None
    assert search.schedule(best).workers.tolist() == [[0, 0, 2], [1, 0, 2], [3, 0, 2]]
    assert search.schedule(best).ps.tolist() == []


def with_ps(share: float) -> Job:
    """A worker sends at `share` of what a parameter server takes."""
    return replace(JOB, worker={"cpu": 1.0, BANDWIDTH: share}, ps={"cpu": 1.0, BANDWIDTH: 1.0})


@pytest.mark.parametrize(("share", "servers"), [(1.0, [2, 1]), (0.5, [1, 1]), (0.6, [2, 1])])
def test_parameter_servers_are_paid_and_placed(share: float, servers: list[int]) -> None:
    search = Search(with_ps(share), ledger(ps_cpu=0.25))
    best = search.best()
    assert counts(best) == [2, 1]
    assert best is not None
    assert best.payoff == 10.0 - 3.0 - 0.25 * sum(servers)
    assert search.schedule(best).ps.tolist() == [[1, 0, servers[0]], [2, 0, servers[1]]]


def test_room_is_that_of_workers_with_their_parameter_servers() -> None:
    assert [Search(JOB, ledger()).room_until(t) for t in (1, 2, 3)] == [2, 4, 6]
    assert Search(replace(JOB, chunks=9), ledger()).room_until(1) == 3
    assert Search(replace(JOB, chunks=9), ledger(used=[2.0, 0.0])).room_until(2) == 2
    full = ledger(ps_used=[[0.0], [1.0], [2.0], [0.0]])
    assert [Search(with_ps(1.0), full).room_until(t) for t in (1, 2, 3)] == [1, 1, 3]
    assert [Search(with_ps(0.5), full).room_until(t) for t in (1, 2, 3)] == [2, 2, 4]


def test_room_and_costs_are_the_same_whatever_was_looked_up_before() -> None:
    """A search that has looked as far as slot 3 answers for earlier slots from what it knows."""
    busy = ledger(cpu=[[1.0], [3.0], [2.0], [2.0]], used=[[2.0, 0], [0, 0], [0, 1.0], [0, 1.0]])
    for job in (
        JOB,
        with_ps(1.0),
        replace(JOB, utility=Piecewise((0.0, 1.0, 2.0), (90.0, 60.0, 0.0))),
    ):
        for slots in ((3, 1, 2), (1, 3, 2), (2, 3, 1)):
            search = Search(job, busy)
            rooms = {slot: search.room_until(slot) for slot in slots}
            assert rooms == {slot: Search(job, busy).room_until(slot) for slot in slots}
            found, fresh = search.best(), Search(job, busy).best()
            assert counts(found) == counts(fresh)
            assert search.smallest_factor() == Search(job, busy).smallest_factor()
            assert counts(search.cheapest()) == counts(Search(job, busy).cheapest())


def test_no_more_workers_than_work() -> None:
    small = replace(JOB, chunks=2, minibatch_time=0.5)
    assert Search(small, ledger()).work == 1
    assert Search(small, ledger()).room_until(1) == 1


@pytest.mark.parametrize("granularity", ["", "slot", "chunks", "Chunk"])
def test_unknown_granularity_is_refused(granularity: str) -> None:
    expected = "granularity: expected worker-slot or chunk, got"
    with pytest.raises(ValueError, match=expected):
        check_granularity(granularity)
    with pytest.raises(ValueError, match=expected):
        Search(JOB, ledger(), granularity)  # type: ignore[arg-type]


def test_the_earliest_completion_is_the_slot_in_which_the_last_of_the_work_fits() -> None:
    """Two workers fit in slot 1 and the third worker-slot in slot 2, or one worker in each slot."""
    search = Search(JOB, ledger())
    assert search.soonest() == 2
    assert search.earliest(1) is None
    for until in (2, 3):
        assert sorted(counts(search.earliest(until))) == [1, 2]
    half_full = Search(JOB, ledger(used=[1.0, 1.0]))
    assert half_full.earliest(2) is None
    assert counts(half_full.earliest(3)) == [1, 1, 1]


def test_a_job_that_is_too_late_to_count_is_never_complete() -> None:
    late = Search(replace(JOB, arrival=3), ledger())
    assert late.soonest() is late.earliest(3) is None
    assert Search(JOB, ledger(used=[2.0, 1.0])).earliest(3) is None
