"""Costs and counts of jobs that work with a minimum of workers, or with none."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oasis.online.dp.worker_slots import workers_for

counts_of_slots = st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any)


@given(counts_of_slots, st.integers(1, 5))
def test_counts_are_raised_and_the_work_ends_where_it_can(counts: list[int], least: int) -> None:
    given_counts = np.array(counts)
    work = int(given_counts.sum())
    workers = workers_for(given_counts, least, work)
    assert given_counts.tolist() == counts  # not written over
    assert all(n == 0 or n >= least for n in workers)
    assert workers.sum() >= work > workers[:-1].sum()
    raised = workers_for(given_counts, least, None)
    assert raised.tolist() == [max(n, least) if n else 0 for n in counts]
    lowered = workers < raised[: len(workers)]
    assert set(workers.tolist()) <= {0, least} or workers.sum() == work  # no more than it has to do
    assert (workers <= raised[: len(workers)]).all()
    later = np.flatnonzero(lowered)[
        :1
    ].tolist()  # all that could be lowered after it are at `least`
    assert all(n <= least for first in later for n in workers[first + 1 :])
