"""The search for one job on a ledger that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oasis import Cluster, Constant, Job, Piecewise, Server
from oasis.online.dp.lagrangian import Split
from oasis.online.ledger import Ledger
from oasis.online.search import Search, check_granularity
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


def with_ps(share: float) -> Job:
    """A worker sends at `share` of what a parameter server takes."""
    return replace(JOB, worker={"cpu": 1.0, BANDWIDTH: share}, ps={"cpu": 1.0, BANDWIDTH: 1.0})


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


@pytest.mark.parametrize("granularity", ["", "slot", "chunks", "Chunk"])
def test_unknown_granularity_is_refused(granularity: str) -> None:
    expected = "granularity: expected worker-slot or chunk, got"
    with pytest.raises(ValueError, match=expected):
        check_granularity(granularity)
    with pytest.raises(ValueError, match=expected):
        Search(JOB, ledger(), granularity)  # type: ignore[arg-type]
